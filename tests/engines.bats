#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Each engine leaves the same files; the best that is there is taken; its descriptor,
# its threads and its read-ahead are in nobody's way.
load lib

ALL=(ext4 btrfs xfs)

setup_file() {
	require_shim || return
	helper filter >/dev/null && helper engines -pthread >/dev/null || return
	[ "$(id -u)" = 0 ] || return 0
	local fs dir src=$BATS_FILE_TMPDIR/src
	export TMPDIR=$BATS_FILE_TMPDIR
	# filesystems in memory, behind loop devices
	mkdir "$BATS_FILE_TMPDIR/fs"
	mount -t tmpfs -o size=3G tmpfs "$BATS_FILE_TMPDIR/fs" || return
	pattern 1 >/dev/null
	make_sources "$src"
	# in blocks of 4 MiB the ramp takes 8 MiB before there are several in flight
	mkdir "$src/some"
	pattern 31457280 70 | head -c 26000123 >"$src/some/f1"
	pattern 12582912 71 >"$src/some/f2"
	rm -r "$src/big"
	head -c 13000123 "$src/some/f1" >"$BATS_FILE_TMPDIR/fs/changes"
	for fs in "${ALL[@]}"; do
		dir=$(fs_make "$fs") || return
		cp -a "$src" "$dir/src"
	done
	sync
}

teardown_file() {
	fs_drop
}

setup() {
	need_root
	DIR=$BATS_FILE_TMPDIR/fs/ext4
	A=$DIR/src/some/f1
	CHANGES=$BATS_FILE_TMPDIR/fs/changes
	URING=$("$(helper filter)" probe | sed -n 1p)
	AIO=$("$(helper filter)" probe | sed -n 2p)
	cd "$DIR"
}

teardown() {
	local pid
	for pid in $(jobs -p); do
		kill -9 "$pid" 2>/dev/null || true
	done
	if [ -n "${SYSCTL:-}" ]; then
		echo "$SYSCTL" >/proc/sys/kernel/io_uring_disabled
	fi
}

need_uring() {
	[ "$URING" = yes ] || skip "no io_uring here: $URING"
}

need_aio() {
	[ "$AIO" = yes ] || skip "no Linux AIO here: $AIO"
}

# The engine that is to be taken here when nothing more is forbidden than NAME...
best_without() {
	if [ "$URING" = yes ] && [[ " $* " != *" uring "* ]]; then
		echo uring
	elif [ "$AIO" = yes ] && [[ " $* " != *" aio "* ]]; then
		echo aio
	else
		echo sync
	fi
}

# engine_of REPORT
engine_of() {
	sed -n 's/.*"engine":"\([a-z]*\)".*/\1/p' "$1"
}

# says NAME [PREFIX ...]: programs run behind PREFIX... under the shim copy A exactly,
# and report that engine, if NAME is not "any".
says() {
	local want=$1 cmd
	shift
	for cmd in 'dd if=A of=B bs=512 status=none' 'dd if=A of=B bs=64k conv=notrunc status=none' \
		'cp A B' 'cp --reflink=never A B'; do
		[[ $cmd == *notrunc* ]] || rm -f B
		rm -f r.json
		cold "$A"
		ln -sf "$A" A
		# shellcheck disable=SC2086
		"$@" env LD_PRELOAD="$LIB" BLKTUNE_REPORT=r.json "${SETTINGS[@]}" $cmd 3>&- || fail "$* $cmd: status $?" || return
		cmp "$A" B || return
		[ "$want" = any ] || [ "$(engine_of r.json)" = "$want" ] || fail "$* $cmd: engine $(engine_of r.json), not $want" || return
	done
	rm -f B r.json
}

# ---------------------------------------------------------------- the same result

# matrix ENGINE DEPTH BLOCK
matrix() {
	local engine=$1 depth=$2 block=$3
	[ "$engine" != uring ] || need_uring
	[ "$engine" != aio ] || need_aio
	FS=("$DIR")
	# files of 4 KiB and more are direct, and in transfers of that size from the first on
	SETTINGS=(BLKTUNE_ENGINE="$engine" BLKTUNE_DEPTH="$depth" BLKTUNE_BLOCK="$block" BLKTUNE_DIRECT_MIN=4K BLKTUNE_MIN=4K)
	everywhere small "" job_dd bs=3000
	if [ "$depth" = 8 ]; then
		everywhere small "" job_cp --reflink=never
		everywhere small "" job_dd_over bs=3000 skip=3 seek=7 conv=notrunc
		everywhere small -t job_tar_x --xattrs
	fi
	SETTINGS=("${SETTINGS[@]:0:3}")
	everywhere some -t job_cp -p
	[ "$depth" = 8 ] || return 0
	everywhere some "" job_dd ibs=70000 obs=10k
	[ "$engine" != sync ] || return 0
	FS=("$BATS_FILE_TMPDIR/fs/btrfs" "$BATS_FILE_TMPDIR/fs/xfs")
	if [ "$block" = 64K ]; then
		everywhere some -t job_cp -p --reflink=never
	else
		everywhere some "" job_shell_cat dash
	fi
}

@test "uring, depth 0, 64 KiB" { matrix uring 0 64K; }
@test "uring, depth 0, 4 MiB" { matrix uring 0 4M; }
@test "uring, depth 1, 64 KiB" { matrix uring 1 64K; }
@test "uring, depth 1, 4 MiB" { matrix uring 1 4M; }
@test "uring, depth 8, 64 KiB" { matrix uring 8 64K; }
@test "uring, depth 8, 4 MiB" { matrix uring 8 4M; }
@test "aio, depth 0, 64 KiB" { matrix aio 0 64K; }
@test "aio, depth 0, 4 MiB" { matrix aio 0 4M; }
@test "aio, depth 1, 64 KiB" { matrix aio 1 64K; }
@test "aio, depth 1, 4 MiB" { matrix aio 1 4M; }
@test "aio, depth 8, 64 KiB" { matrix aio 8 64K; }
@test "aio, depth 8, 4 MiB" { matrix aio 8 4M; }
@test "sync, depth 0, 64 KiB" { matrix sync 0 64K; }
@test "sync, depth 0, 4 MiB" { matrix sync 0 4M; }
@test "sync, depth 1, 64 KiB" { matrix sync 1 64K; }
@test "sync, depth 1, 4 MiB" { matrix sync 1 4M; }
@test "sync, depth 8, 64 KiB" { matrix sync 8 64K; }
@test "sync, depth 8, 4 MiB" { matrix sync 8 4M; }
@test "depth 64, with memory for a few blocks only" {
	FS=("$DIR")
	SETTINGS=(BLKTUNE_DEPTH=64 BLKTUNE_BLOCK=1M BLKTUNE_MEMORY=3M)
	everywhere some "" job_cp
	everywhere some "" job_dd bs=512
}

# ---------------------------------------------------------------- which engine

@test "the report names the engine that was asked for" {
	SETTINGS=(BLKTUNE_ENGINE=sync)
	says sync
	SETTINGS=(BLKTUNE_ENGINE=aio)
	[ "$AIO" != yes ] || says aio
	SETTINGS=(BLKTUNE_ENGINE=uring)
	[ "$URING" != yes ] || says uring
}

@test "auto: the first of uring, aio and sync that is there" {
	says "$(best_without)"
}

@test "io_uring forbidden by a filter: EPERM" {
	run bare "$(helper filter)" EPERM io_uring_setup "$(helper filter)" probe
	[ "${lines[0]}" = "Operation not permitted" ]
	says "$(best_without uring)" "$(helper filter)" EPERM io_uring_setup
}

@test "io_uring forbidden by a filter: ENOSYS" {
	says "$(best_without uring)" "$(helper filter)" ENOSYS io_uring_setup,io_uring_enter
}

@test "who asks for io_uring is killed: the copy is not" {
	run bare "$(helper filter)" KILL io_uring_setup "$(helper filter)" probe
	[ "$status" = 159 ] # SIGSYS
	says "$(best_without uring)" "$(helper filter)" KILL io_uring_setup
	SETTINGS=(BLKTUNE_ENGINE=uring)
	says sync "$(helper filter)" KILL io_uring_setup
}

@test "who asks for io_uring or AIO is killed: the copy is not" {
	says sync "$(helper filter)" KILL io_uring_setup,io_setup
}

@test "io_uring and AIO both forbidden" {
	says sync "$(helper filter)" EPERM io_uring_setup,io_setup
	says sync "$(helper filter)" ENOSYS io_uring_setup,io_setup
	SETTINGS=(BLKTUNE_ENGINE=aio)
	says sync "$(helper filter)" EPERM io_setup
}

@test "rings may be made but not entered, contexts be made but not used" {
	local answer
	for answer in EPERM ENOSYS; do
		says any "$(helper filter)" $answer io_uring_enter
		says any "$(helper filter)" $answer io_uring_setup,io_submit
	done
}

@test "who enters a ring, or submits to a context, is killed: the copy is not" {
	says any "$(helper filter)" KILL io_uring_enter
	says any "$(helper filter)" KILL io_uring_setup,io_submit
}

@test "kernel.io_uring_disabled" {
	need_uring
	local before
	before=$(cat /proc/sys/kernel/io_uring_disabled 2>/dev/null) || skip "no kernel.io_uring_disabled here"
	SYSCTL=$before
	echo 2 >/proc/sys/kernel/io_uring_disabled || skip "kernel.io_uring_disabled cannot be set"
	says "$(best_without uring)"
	SETTINGS=(BLKTUNE_ENGINE=uring)
	says sync
}

@test "RLIMIT_MEMLOCK 0, without privileges" {
	need setpriv prlimit
	local as=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all
		prlimit --memlock=0:0) there cmd
	# what is not a directory of the tests' own may be closed to that user
	mkdir -p "$DIR/user"
	cp "$LIB" "$DIR/user/lib.so"
	cp "$(helper filter)" "$DIR/user/filter"
	cp "$A" "$DIR/user/A"
	chmod -R a+rX "$DIR/user"
	chmod 777 "$DIR/user"
	cd "$DIR/user"
	there=$("${as[@]}" ./filter probe)
	URING=$(sed -n 1p <<<"$there") AIO=$(sed -n 2p <<<"$there")
	for cmd in 'dd if=A of=B bs=512 status=none' 'cp A B'; do
		rm -f B r.json
		cold A
		# shellcheck disable=SC2086
		"${as[@]}" env LD_PRELOAD=./lib.so BLKTUNE_REPORT=r.json $cmd
		cmp A B
		[ "$(engine_of r.json)" = "$(best_without)" ] || fail "$cmd: engine $(engine_of r.json), not $(best_without)"
	done
	rm -f B r.json
}

# ---------------------------------------------------------------- depth

# runs TRACE START WAIT: how many transfers were started before the first wait, and the most
# between any two, of an strace with these calls alone; fails when none were started.
runs() {
	awk -v start="$2" -v wait="$3" '
		{ sub(/^[0-9]+ +/, "") }
		/unfinished|resumed/ { print "cannot parse: " $0 >"/dev/stderr"; bad = 1; exit }
		index($0, start "(") == 1 || index($0, wait "(") == 1 {
			# io_uring_enter(FD, TO_SUBMIT, MIN_COMPLETE, FLAGS, ...): both in one
			n = split($0, part, /, /)
			waits = start == wait ? part[3] > 0 : index($0, wait "(") == 1
			starts = start == wait ? part[2] > 0 : index($0, start "(") == 1
			if (starts) { all++; if (++now > most) most = now }
			if (waits) { if (first == "") first = now; now = 0 }
		}
		END { if (!all) print "no " start " in the trace" >"/dev/stderr"
		      else if (!bad) print first == "" ? all : first, most
		      exit bad || !all }' "$1"
}

# submits ENGINE PROGRAM ARG...: what runs says of it, for a cold A, as FIRST and MOST.
submits() {
	local said calls=(io_submit io_getevents)
	[ "$1" = aio ] || calls=(io_uring_enter io_uring_enter)
	cold "$A"
	rm -f B
	SETTINGS+=(BLKTUNE_ENGINE="$1")
	shim_trace trace -e trace="${calls[0]},${calls[1]}" -- "${@:2}" || return
	[ ! -e B ] || cmp "$A" B || return
	said=$(runs trace "${calls[@]}") || return
	read -r FIRST MOST <<<"$said"
	rm -f B trace
	SETTINGS=()
}

reads_ahead() {
	local depth
	for depth in 4 8; do
		SETTINGS=(BLKTUNE_DEPTH="$depth")
		submits "$1" dd if="$A" of=/dev/null bs=512 status=none
		[ "$FIRST" -ge "$depth" ] || fail "depth $depth: the first wait is after $FIRST transfers"
	done
	# several is the default
	submits "$1" dd if="$A" of=/dev/null bs=512 status=none
	[ "$FIRST" -ge 2 ] || fail "the first wait is after $FIRST transfers"
}

# cp begins with smaller pieces.
copies_ahead() {
	local how
	for how in auto never; do
		submits "$1" cp --reflink=$how "$A" B
		[ "$MOST" -ge 3 ] || fail "cp --reflink=$how: at most $MOST transfers between two waits"
		SETTINGS=(BLKTUNE_DEPTH=4)
		submits "$1" cp --reflink=$how "$A" B
		[ "$MOST" -ge 3 ] || fail "cp --reflink=$how, depth 4: at most $MOST transfers between two waits"
	done
}

@test "uring: several reads of dd are in flight before the first wait" {
	need_uring
	reads_ahead uring
}

@test "aio: several reads of dd are in flight before the first wait" {
	need_aio
	reads_ahead aio
}

@test "uring: several transfers of cp are in flight" {
	need_uring
	copies_ahead uring
}

@test "aio: several transfers of cp are in flight" {
	need_aio
	copies_ahead aio
}

# Started less taken in, at its highest.
@test "never more are in flight than BLKTUNE_DEPTH" {
	need_aio
	local depth most
	for depth in 2 3 8; do
		cold "$A"
		SETTINGS=(BLKTUNE_ENGINE=aio BLKTUNE_DEPTH="$depth")
		shim_trace trace -e trace=io_submit,io_getevents -- dd if="$A" of=/dev/null bs=512 status=none
		most=$(awk '/= [0-9]+$/ { now += /^io_submit/ ? $NF : -$NF; if (now > most) most = now } END { print most }' trace)
		[ "$most" = "$depth" ] || fail "depth $depth: $most in flight"
	done
	rm -f trace
}

@test "one is in flight at depth 0 and 1, and none of an engine at BLKTUNE=off" {
	local set
	for set in BLKTUNE_DEPTH=0 BLKTUNE_DEPTH=1 BLKTUNE_ENGINE=sync BLKTUNE_MODE=observe BLKTUNE=off; do
		cold "$A"
		SETTINGS=("$set")
		shim_trace trace -e trace=io_uring_enter,io_submit,io_getevents -- dd if="$A" of=/dev/null bs=64k status=none
		if [[ $set == BLKTUNE_DEPTH=* ]]; then
			[ "$(runs trace io_uring_enter io_uring_enter 2>/dev/null || echo 1 1)" = "1 1" ]
			[ "$(runs trace io_submit io_getevents 2>/dev/null || echo 1 1)" = "1 1" ]
		else
			! grep -q '^[0-9 ]*io_' trace || fail "$set: $(head -n 3 trace)"
		fi
	done
	rm -f trace
}

@test "the judge of traces can count" {
	printf 'io_uring_enter(512, %s, 0, NULL, 8) = 1\n' '1, 0' '0, 1' '1, 0' '1, 0' '2, 0' '0, 1' '1, 1' >trace
	[ "$(runs trace io_uring_enter io_uring_enter)" = "1 3" ]
	run ! runs trace io_submit io_getevents
	rm -f trace
}

@test "nothing is set up where no bulk data moves" {
	local engine job
	mkdir -p small
	for job in {1..40}; do
		pattern $((job * 1000)) "$job" >"small/$job"
	done
	pattern 500000 >small/500000
	sync -f small
	for engine in auto uring aio; do
		SETTINGS=(BLKTUNE_ENGINE="$engine")
		for job in true 'ls -l small' 'cp -r small small2' 'cat small/500000' 'tar cf small2/t -C small 1 2 3' \
			'dd if=small/500000 of=small2/d bs=512 status=none' 'sh -c "cat small/* | wc -c; ls | sort"' \
			'find small -newer small/1' 'cmp small/500000 small2/500000' 'rm -r small2'; do
			rm -f trace
			eval "shim_trace trace -f -e trace=io_uring_setup,io_setup -- $job" >/dev/null
			[ -e trace ]
			! grep -qE 'io_(uring_)?setup' trace || fail "$engine, $job: $(grep -E 'io_(uring_)?setup' trace)"
		done
	done
	rm -r small
	# and the trace would show it
	SETTINGS=()
	[ "$(best_without)" = sync ] && return
	cold "$A"
	shim_trace trace -f -e trace=io_uring_setup,io_setup -- dd if="$A" of=/dev/null bs=512 status=none
	grep -qE 'io_(uring_)?setup' trace
	rm -f trace
}

# ---------------------------------------------------------------- a program in its way

# situation ENGINE NAME [ARG]: the same output, status and copy; and there was a ring.
situation() {
	local how out=() rc=() engine=$1 name=$2 f
	shift 2
	[ "$engine" != uring ] || need_uring
	[ "$engine" != aio ] || need_aio
	SETTINGS=(BLKTUNE_ENGINE="$engine")
	rm -f note.*
	for how in bare shim; do
		rm -f B B.*
		rc+=(0)
		cold "$A"
		out+=("$("$how" NOTE=note.$how timeout 60 "$(helper engines -pthread)" "$name" "$A" B "$@" 2>&1 3>&- 4>&- </dev/null)") || rc[-1]=$?
		for f in B B.*; do
			[ ! -e "$f" ] || cmp "$A" "$f" || fail "$how: $f is not the source" || return
		done
	done
	[ "${rc[0]}" = 0 ] || fail "$name $*: fails even bare: ${out[0]}" || return
	same "${rc[0]} ${out[0]}" "${rc[1]} ${out[1]}" "$engine, $name $*: bare (<) and under the shim (>)" || return
	[ "$(sort -u note.bare)" = -1 ] || fail "a ring without the shim" || return
	[ "$engine" = uring ] || {
		[ "$(sort -u note.shim)" = -1 ] || fail "a ring of the engine $engine"
		return
	}
	[ "$(head -n 1 note.shim)" -ge 512 ] || fail "no ring was in the way of $name" || return
	# and there is one after it, unless it had to be given back
	RING=$(sed -n 2p note.shim)
	rm -f B B.* note.*
}

@test "the ring stays when all descriptors are closed in a loop" {
	situation uring close-loop
	[ "$RING" -ge 512 ]
	situation uring close-down
	[ "$RING" -ge 512 ]
	situation uring close-listed
	[ "$RING" -ge 512 ]
}
@test "the ring stays after close_range, with each flag" {
	situation uring close_range
	[ "$RING" -ge 512 ]
	situation uring close_range-cloexec
	[ "$RING" -ge 512 ]
	situation uring close_range-unshare
}
@test "the ring stays after closefrom" {
	situation uring closefrom
	[ "$RING" -ge 512 ]
}
@test "close of the ring's number: EBADF" { situation uring close-number; }
@test "dup2 onto the ring's number" { situation uring dup2; }
@test "dup3 onto the ring's number" { situation uring dup3; }
@test "dup2 onto the ring's number, wherever it goes" { situation uring dup2-chase; }
@test "dup2 onto the ring's number where there is no other" { situation uring few; }
@test "the ring's number cannot be copied or changed" { situation uring touch; }

@test "the ring is absent in children" { situation uring forks; }
@test "the ring is absent in programs that children become" {
	situation uring execs "$(helper engines -pthread)"
}
@test "a child moves bulk data while its parent does" {
	situation uring worker
	situation aio worker
}
@test "four threads, one ring" {
	situation uring threads
	situation aio threads
}

# Kernel workers of a ring count as threads, which these calls refuse.
namespaces() {
	unshare --user --pid --net true 2>/dev/null || skip "no user namespaces here"
	situation "$1" namespaces "$2"
}
@test "uring: unshare of user, pid and net namespaces after bulk data" {
	namespaces uring user,pid
	namespaces uring user
	namespaces uring user,pid,net
}
@test "uring: unshare of pid, net and mount namespaces after bulk data" {
	namespaces uring pid
	namespaces uring net,mount
	namespaces uring fs,files
}
@test "uring: unshare of the thread group after bulk data" { namespaces uring thread; }
@test "uring: setns after bulk data" { situation uring join; }
@test "aio: namespaces after bulk data" {
	namespaces aio user,pid,net
	situation aio join
}

@test "a filter that the program installs half-way" {
	situation uring forbid-EPERM
	situation uring forbid-KILL
	situation uring forbid-KILL-raw
	situation aio forbid-EPERM
	situation aio forbid-KILL
	situation aio forbid-KILL-raw
}

# ---------------------------------------------------------------- a source that changes

# changing WAY BEFORE CHANGE: the program moves so many bytes of C to B, C is changed,
# the program goes on to the end. Counts and copy as bare, for each engine.
changing() {
	local how engine out
	for engine in bare uring aio sync; do
		[ "$engine" != uring ] || [ "$URING" = yes ] || continue
		[ "$engine" != aio ] || [ "$AIO" = yes ] || continue
		[ "$engine" != sync ] || [ "$1" = read ] || continue
		how=shim
		[ "$engine" != bare ] || how=bare
		SETTINGS=(BLKTUNE_ENGINE="$engine" BLKTUNE_DEPTH=8 BLKTUNE_BLOCK=1M)
		rm -f B B.at B.go C
		cp "$CHANGES" C
		cold C
		mkfifo B.at B.go
		"$how" timeout 60 "$(helper engines -pthread)" changing C B "$1,$2" 2>said 3>&- &
		timeout 60 head -c 1 B.at >/dev/null
		"$3"
		timeout 60 tee B.go <<<x >/dev/null
		wait $! || fail "$engine: $(cat said)" || return
		if [ "$engine" = bare ]; then
			out=$(cat said)
			mv B bare.B
			grep -q "^before: [1-9]" said || fail "$out" || return
		else
			same "$out" "$(cat said)" "$engine, $1, $3 after $2: bare (<) and under the shim (>)" || return
			cmp bare.B B || fail "$engine, $1, $3 after $2: the copy is not the one that bare makes" || return
		fi
	done
	rm -f B B.* C bare.B said
}

each_way() {
	changing read "$1" "$2"
	changing range "$1" "$2"
	changing sendfile "$1" "$2"
}

grow() { pattern 7000001 90 >>C; }
grow_a_little() { echo more >>C; }
cut_beyond() { truncate -s 11000001 C; }
cut_just_beyond() { truncate -s $((9 * 1048576 + 5)) C; }
cut_here() { truncate -s 8388608 C; }
cut_before() { truncate -s 3000 C; }
# the same size again, with other bytes
cut_and_grow() { truncate -s 8388608 C && pattern $((13000123 - 8388608)) 91 >>C; }
overwrite() { pattern $((13000123 - 8388608)) 92 | dd of=C bs=1M seek=8 conv=notrunc iflag=fullblock status=none; }
punch() { fallocate -p -o 9000000 -l 3000000 C; }
grow_and_cut() { grow && cut_beyond; }

@test "a source that grows half-way" { each_way 8388608 grow; }
@test "a source that grows by a line, half-way and at an odd place" {
	changing read 8388608 grow_a_little
	changing read 9000001 grow_a_little
	changing read 12990000 grow_a_little
}
@test "a source that grows after its end was seen" {
	each_way 999999999 grow
	changing read 999999999 grow_a_little
}
@test "a source that is cut beyond what was read ends there" {
	each_way 8388608 cut_beyond
	changing read 9000001 cut_beyond
	changing read 8388608 cut_just_beyond
}
@test "a source that is cut where the program is ends" {
	each_way 8388608 cut_here
}
@test "a source that is cut before where the program is ends" {
	each_way 8388608 cut_before
	changing read 999999999 cut_before
}
@test "a source that is cut and grows again" { each_way 8388608 cut_and_grow; }
@test "a source that is overwritten ahead of the program" { each_way 8388608 overwrite; }
@test "a source that gets a hole ahead of the program" { changing read 8388608 punch; }
@test "a source that grows and is cut" {
	changing read 8388608 grow_and_cut
	changing range 8388608 grow_and_cut
}

# In the middle of a block a program may be given the rest of that block, and no more.
@test "a source that is cut in the middle of a block: at most that block is old" {
	local at=9000001 after engine
	for engine in uring aio sync; do
		[ "$engine" != uring ] || [ "$URING" = yes ] || continue
		[ "$engine" != aio ] || [ "$AIO" = yes ] || continue
		SETTINGS=(BLKTUNE_ENGINE="$engine" BLKTUNE_DEPTH=8 BLKTUNE_BLOCK=1M)
		rm -f B B.at B.go C
		cp "$CHANGES" C
		cold C
		mkfifo B.at B.go
		shim timeout 60 "$(helper engines -pthread)" changing C B "read,$at" 2>said 3>&- &
		timeout 60 head -c 1 B.at >/dev/null
		cut_before
		timeout 60 tee B.go <<<x >/dev/null
		wait $!
		grep -qx "before: $at" said
		grep -qx "end: 0" said
		after=$(sed -n 's/^after: //p' said)
		[ "$after" -le 1048576 ] || fail "$engine: $after bytes of a file that has none there"
		cmp -n $((at + after)) "$CHANGES" B
	done
	rm -f B B.* C said
}
