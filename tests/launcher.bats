#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# blktune COMMAND: runs it with the library that lies beside the launcher.
load lib

setup_file() {
	require_shim || return
	[ -x "$LAUNCHER" ] || fail "no launcher at $LAUNCHER: run make"
}

teardown_file() {
	fs_drop
}

setup() {
	cd "$BATS_TEST_TMPDIR"
	OWN=$ROOT/libblktune.so
	pattern 3000000 >in
}

@test "it runs the command, arguments and all, with its status" {
	run "$LAUNCHER" sh -c 'echo "$0 $1 $#"; exit 7' zero "a b" --report
	[ "$status" = 7 ]
	[ "$output" = "zero a b 2" ]
}

@test "the library is in the command's memory, under its absolute path" {
	"$LAUNCHER" cat /proc/self/maps | grep -qF " $OWN"
	[ "$("$LAUNCHER" printenv LD_PRELOAD)" = "$OWN" ]
}

@test "it finds the library from anywhere, and through a link" {
	ln -s "$LAUNCHER" elsewhere
	[ "$(./elsewhere printenv LD_PRELOAD)" = "$OWN" ]
	[ "$(PATH=$ROOT:$PATH blktune printenv LD_PRELOAD)" = "$OWN" ]
}

@test "what is in LD_PRELOAD stays there" {
	echo 'int blktune_test_other;' >other.c
	"${CC:-cc}" -shared -fPIC -o other.so other.c
	run bash -c 'LD_PRELOAD="$1/other.so" exec "$2" cat /proc/self/maps' - "$PWD" "$LAUNCHER"
	[ "$status" = 0 ]
	grep -qF " $PWD/other.so" <<<"$output"
	grep -qF " $OWN" <<<"$output"
}

@test "it execs: no process of its own stays" {
	run bash -c 'echo $$; exec "$1" sh -c "echo \$\$"' - "$LAUNCHER"
	[ -n "${lines[1]}" ]
	[ "${lines[0]}" = "${lines[1]}" ]
}

@test "--report" {
	run --separate-stderr "$LAUNCHER" --report dd if=in of=out bs=10k status=none
	[ "$status" = 0 ]
	[ -z "$output" ]
	# shellcheck disable=SC2154
	grep -q out <<<"$stderr"
	cmp in out
}

@test "-- ends the options" {
	run "$LAUNCHER" -- echo --report
	[ "$output" = --report ]
}

@test "125 for its own errors, 126 and 127 as env does" {
	run -125 "$LAUNCHER" --no-such-option true
	[ -n "$output" ]
	run -125 "$LAUNCHER"
	run -127 "$LAUNCHER" no-such-command-anywhere
	touch not-executable
	run -126 "$LAUNCHER" ./not-executable
}

# field NAME: the rest of its line in the --probe in $output.
field() {
	sed -n "s/^  $1  *//p" <<<"$output"
}

# ---------------------------------------------------------------- options

# refused WORD ... -- OPTION ...: 125, nothing on stdout, and one line on stderr with all of the words in it.
refused() {
	local words=() word
	while [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	shift
	run --separate-stderr -125 "$LAUNCHER" "$@"
	[ -z "$output" ] || fail "$*: on stdout: $output" || return
	# shellcheck disable=SC2154
	[ "${#stderr_lines[@]}" = 1 ] || fail "$*: ${#stderr_lines[@]} lines, not one: $stderr" || return
	[[ $stderr == "blktune: "* ]] || fail "$*: $stderr" || return
	for word in "${words[@]}"; do
		[[ $stderr == *"$word"* ]] || fail "$*: no '$word' in: $stderr" || return
	done
}

# sets VARIABLE VALUE OPTION ...: the command finds it so.
sets() {
	run --separate-stderr "$LAUNCHER" "${@:3}" printenv "$1"
	[ "$status $output" = "0 $2" ] || fail "${*:3}: $1 is '$output', not '$2': $stderr"
}

@test "each option sets its variable" {
	sets BLKTUNE off --off
	sets BLKTUNE_MODE buffered --mode=buffered
	sets BLKTUNE_MIN 128K --min=128K
	sets BLKTUNE_BLOCK 2M --block=2M
	sets BLKTUNE_READ_BLOCK 512K --read-block=512K
	sets BLKTUNE_WRITE_BLOCK 8M --write-block=8M
	sets BLKTUNE_HOLD never --hold=never
	sets BLKTUNE_DEPTH 4 --depth=4
	sets BLKTUNE_MEMORY 32M --memory=32M
	sets BLKTUNE_DIRECT_MIN 64K --direct-min=64K
	sets BLKTUNE_HOT cache --hot=cache
	sets BLKTUNE_SYNC close --sync=close
	sets BLKTUNE_ONLY '/a b/*:/c' --only='/a b/*:/c'
	sets BLKTUNE_SKIP '*.log' --skip='*.log'
	sets BLKTUNE_PROGRAMS 'cp:tar' --programs=cp:tar
	sets BLKTUNE_SKIP_PROGRAMS 'sh' --skip-programs=sh
	sets BLKTUNE_BLKSIZE 64K --blksize=64K
	sets BLKTUNE_ENGINE sync --engine=sync
	sets BLKTUNE_STDIO on --stdio
	sets BLKTUNE_STDIO off --stdio=off
	sets BLKTUNE_RATE 10M --rate=10M
	sets BLKTUNE_PROGRESS on --progress
	sets BLKTUNE_PROGRESS off --progress=off
	sets BLKTUNE_PROGRESS on -p
	sets BLKTUNE_REPORT - --report
	sets BLKTUNE_REPORT "$PWD/r.json" --report="$PWD/r.json"
	sets BLKTUNE_REPORT - -r
}

@test "options: as two words, shortened, together, the last one wins over all before" {
	sets BLKTUNE_MODE buffered --mode buffered
	sets BLKTUNE_MODE buffered --mo=buffered
	sets BLKTUNE_REPORT - -qr
	sets BLKTUNE_MIN 2K --min=1K --min=2K
	run env BLKTUNE_MIN=4K "$LAUNCHER" --min=8K printenv BLKTUNE_MIN
	[ "$output" = 8K ]
}

@test "what is not an option's own stays as it is in the environment" {
	run env BLKTUNE_MIN=4K OTHER=1 "$LAUNCHER" sh -c 'echo "$BLKTUNE_MIN $OTHER ${BLKTUNE_MODE-none}"'
	[ "$output" = "4K 1 none" ]
}

@test "a value that the library would not take: one line with what was expected" {
	refused --mode=fast direct buffered -- --mode=fast true
	refused --min=3 512 -- --min=3 true
	refused --min= 512 -- --min= true
	refused --block=1X 64M -- --block=1X true
	refused --read-block=0 64M -- --read-block=0 true
	refused --write-block=1G 64M -- --write-block=1G true
	refused --hold=maybe always -- --hold=maybe true
	refused --depth=65 64 -- --depth=65 true
	refused --memory=all size -- --memory=all true
	refused --direct-min=-1 size -- --direct-min=-1 true
	refused --hot=warm cache -- --hot=warm true
	refused --engine=steam uring aio sync -- --engine=steam true
	refused --report= path -- --report= true
	refused --rate=1 1K 1024G -- --rate=1 true
	refused --stdio=x "on or off" -- --stdio=x true
	refused --progress=x "on or off" -- --progress=x true
	refused --mode=a?b direct -- --mode=$'a\nb' true
}

@test "an option without its value, or with one too many" {
	refused --mode expected direct -- --mode
	refused --blksize expected -- --blksize
	refused --off "no value" -- --off=on true
	refused --quiet "no value" -- --quiet=1 true
	refused --probe "no value" -- --probe=/ true
	refused --show-config "no value" -- --show-config=1
	refused --help "no value" -- --help=me
}

@test "an option that is not there: one line, with the nearest one" {
	refused --modus --mode -- --modus=direct true
	refused --writeblock --write-block -- --writeblock=1M true
	refused --re --read-block --report -- --re=1M true
	refused "-x" -h -- -x true
	refused "-x" -h -- --mode=direct -rx true
}

@test "nothing to do" {
	refused "a command" -- -r
	refused "a path" -- --probe
	refused "a directory" -- --summary
}

@test "-h and -V" {
	local option
	run --separate-stderr "$LAUNCHER" -h
	[ "$status" = 0 ]
	[ -z "$stderr" ]
	# shellcheck disable=SC2013
	for option in $(sed -n 's/^\.It Fl \(r , Fl \|p , Fl \|q , Fl \|h , Fl \|V , Fl \)\{0,1\}\\&-\([a-z-]*\).*/\2/p' "$ROOT/shim/tool/blktune.1"); do
		grep -q -- "--$option\b" <<<"$output" || fail "the manual's --$option is not in the help"
	done
	[ "$("$LAUNCHER" --help)" = "$output" ]
	run "$LAUNCHER" -V
	[ "$status" = 0 ]
	[[ $output == "blktune "[0-9]* ]]
	[ "$("$LAUNCHER" --version)" = "$output" ]
	# what cannot be written is an error
	run -125 bash -c '"$1" -h >/dev/full' - "$LAUNCHER"
}

@test "the manual and the completion know each option of the help, and the manual is clean" {
	local option said
	for option in $("$LAUNCHER" -h | grep -o '^  [ -][a-zA-Z ][, ] *--[a-z-]*' | grep -o -- '--[a-z-]*'); do
		grep -q "Fl .&-${option#--}\b" "$ROOT/shim/tool/blktune.1" || fail "$option is not in the manual"
		grep -q -- "$option\b" "$ROOT/shim/tool/blktune.bash" || fail "$option is not in the completion"
	done
	need mandoc
	said=$(mandoc -Tlint "$ROOT/shim/tool/blktune.1" 2>/dev/null) || fail "$said"
	[ -z "$said" ] || fail "$said"
}

# ---------------------------------------------------------------- settings

@test "--show-config: each setting, and where it comes from" {
	run --separate-stderr env BLKTUNE_MIN=8K BLKTUNE_HOLD=always "$LAUNCHER" --hold=never --show-config
	[ "$status" = 0 ]
	[ -z "$stderr" ]
	grep -qx 'BLKTUNE_MODE  *direct  *default' <<<"$output"
	grep -qx 'BLKTUNE_MIN  *8K  *environment' <<<"$output"
	grep -qx 'BLKTUNE_HOLD  *never  *option --hold' <<<"$output"
	grep -qx "LD_PRELOAD  *$OWN" <<<"$output"
	[ "$(grep -o '^BLKTUNE[A-Z_]*' <<<"$output")" = "$(sed -n 's/^\.It Ev \(BLKTUNE[A-Z_]*\).*/\1/p' "$ROOT/shim/tool/blktune.1")" ] ||
		fail "not the variables of the manual: $output"
}

@test "--show-config: blocks follow from others" {
	run "$LAUNCHER" --block=8M --read-block=2M --show-config
	grep -qx 'BLKTUNE_READ_BLOCK  *2M  *option --read-block' <<<"$output"
	grep -qx 'BLKTUNE_WRITE_BLOCK  *8M  *BLKTUNE_BLOCK' <<<"$output"
	run "$LAUNCHER" --min=2M --show-config
	grep -qx 'BLKTUNE_READ_BLOCK  *2M  *raised to BLKTUNE_MIN' <<<"$output"
	grep -qx 'BLKTUNE_WRITE_BLOCK  *4M  *default' <<<"$output"
}

@test "--show-config: a wrong variable gets the library's line, and the default stands" {
	run --separate-stderr env BLKTUNE_MIN=lots BLKTUNE_MODUS=1 "$LAUNCHER" --show-config
	[ "$status" = 0 ]
	[ "${#stderr_lines[@]}" = 2 ]
	[ "$(sort <<<"$stderr")" = "$(env LD_PRELOAD="$LIB" BLKTUNE_MIN=lots BLKTUNE_MODUS=1 true 2>&1 | sort)" ]
	grep -qx 'BLKTUNE_MIN  *64K  *default' <<<"$output"
}

@test "--show-config: its defaults are the library's" {
	local name value rest
	while read -r name value; do
		[[ $name == BLKTUNE* ]] || continue
		rest=$(env LD_PRELOAD="$LIB" "$name=" true 2>&1)
		[[ $rest == *"; using "* ]] || continue
		[[ "$value" == "${rest##*; using } "* || "${rest##*; using }" == "no ${name##*_}" || "$value $rest" == none*"using no "* ]] ||
			fail "$name: $value, but: $rest"
	done < <("$LAUNCHER" --show-config)
}

# ---------------------------------------------------------------- the library

# launcher_for LIBDIR: builds one that was installed for that directory.
launcher_for() {
	local f sources=()
	for f in "$ROOT"/shim/tool/*.c "$ROOT"/shim/core/{config,glob,place,table,text}.c; do
		[ ! -e "$f" ] || sources+=("$f")
	done
	mkdir -p bin
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -D_LARGEFILE64_SOURCE -DLIBDIR="\"$1\"" -o bin/blktune "${sources[@]}"
}

@test "the library: beside the launcher, else where it was installed, else one line" {
	launcher_for "$PWD/lib"
	run --separate-stderr -125 bin/blktune true
	[ "${#stderr_lines[@]}" = 1 ]
	[[ $stderr == *"$PWD/bin"*"$PWD/lib"* ]]
	mkdir lib
	cp "$OWN" lib/
	[ "$(bin/blktune printenv LD_PRELOAD)" = "$PWD/lib/libblktune.so" ]
	cp "$OWN" bin/
	[ "$(bin/blktune printenv LD_PRELOAD)" = "$PWD/bin/libblktune.so" ]
}

@test "a path that LD_PRELOAD cannot hold is refused" {
	local dir
	for dir in "a b" a:b; do
		mkdir "$dir"
		cp "$LAUNCHER" "$OWN" "$dir/"
		run --separate-stderr -125 "$dir/blktune" true
		[ "${#stderr_lines[@]}" = 1 ]
		[[ $stderr == *"$dir/libblktune.so"* ]]
	done
}

@test "a launcher under a launcher preloads once" {
	[ "$("$LAUNCHER" "$LAUNCHER" printenv LD_PRELOAD)" = "$OWN" ]
}

# ---------------------------------------------------------------- the command

# warns COUNT WORD ... -- COMMAND ...: that many warnings, with all of the words; and -q silences them.
# RC: the status to expect where bats would wonder.
warns() {
	local count=$1 words=() word
	shift
	while [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	shift
	run --separate-stderr ${RC:+-$RC} "${AS[@]}" "$LAUNCHER" "$@"
	[ "$(grep -c '^blktune: warning: ' <<<"$stderr")" = "$count" ] || fail "not $count warnings: $stderr" || return
	for word in "${words[@]}"; do
		grep -q "^blktune: warning: .*$word" <<<"$stderr" || fail "no '$word' in: $stderr" || return
	done
	run --separate-stderr ${RC:+-$RC} "${AS[@]}" "$LAUNCHER" -q "$@"
	! grep -q warning <<<"$stderr" || fail "-q, but: $stderr"
}

AS=()

@test "an ordinary command: not a word" {
	warns 0 -- true
	warns 0 -- sh -c true
	printf '#!/bin/sh\n' >script
	printf '#! /usr/bin/env sh\n' >by-env
	chmod +x script by-env
	warns 0 -- ./script
	warns 0 -- ./by-env
	run -127 "$LAUNCHER" no-such-command
	[ "${#lines[@]}" = 1 ]
	warns 0 -- "$(readelf -l /bin/sh | sed -n 's/.*interpreter: \(.*\)]/\1/p')" /bin/true
}

@test "a static command, and a script that one runs" {
	echo 'int main(void) { return 5; }' >s.c
	"${CC:-cc}" -static -o static s.c
	"${CC:-cc}" -static-pie -o static-pie s.c
	warns 1 ./static "statically linked" -- ./static
	[ "$status" = 5 ]
	warns 1 "statically linked" -- ./static-pie
	printf '#!%s\n' "$PWD/static" >script
	printf '#!%s\n' "$PWD/script" >second
	printf '#!/usr/bin/env static\n' >by-env
	chmod +x script second by-env
	warns 1 "$PWD/static" ./script "statically linked" -- ./script
	warns 1 "$PWD/static" ./second -- ./second
	PATH=$PWD:$PATH warns 1 "$PWD/static" ./by-env -- ./by-env
	PATH=$PWD:$PATH warns 1 "$PWD/static" -- static
}

@test "a Go command" {
	echo '__attribute__((section(".go.buildinfo"), used)) static char info[32]; int main(void) { return 0; }' >g.c
	"${CC:-cc}" -o go g.c
	warns 1 ./go "Go program" -- ./go
	"${CC:-cc}" -static -o go g.c
	warns 1 "Go program" -- ./go
}

@test "a command for another machine, or another C library" {
	cp "$(type -P true)" other
	printf '\x16\x00' | dd of=other bs=1 seek=18 conv=notrunc status=none
	warns 1 ./other "64-bit S/390 program" -- ./other
	printf '\x03\x00' | dd of=other bs=1 seek=18 conv=notrunc status=none
	printf '\x01' | dd of=other bs=1 seek=4 conv=notrunc status=none
	warns 1 ./other "32-bit i386 program" -- ./other
	echo 'int main(void) { return 0; }' >m.c
	"${CC:-cc}" -Wl,--dynamic-linker=/lib/ld-musl-none.so.1 -o musl m.c
	RC=127 warns 1 ./musl "ld-musl-none.so.1" "C library" -- ./musl
}

@test "a command that is no program" {
	echo 'exit 3' >text
	chmod +x text
	warns 1 ./text "neither" -- ./text
	[ "$status" = 3 ]
}

@test "setuid, setgid, file capabilities" {
	need_root
	need setpriv setcap
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/.." 
	cp "$(type -P true)" program
	if [[ ,$(findmnt -no OPTIONS -T program), == *,nosuid,* ]]; then
		skip "the mount ignores setuid"
	fi
	chown 1:1 program
	chmod 4755 program
	warns 1 ./program setuid -- ./program
	chmod 2755 program
	warns 1 ./program setgid -- ./program
	chmod 6755 program
	warns 2 setuid setgid -- ./program
	# mandatory locking, once: no x for the group
	chmod 2745 program
	warns 0 -- ./program
	chmod 755 program
	setcap cap_net_raw+ep program
	# root gains nothing by it
	warns 0 -- ./program
	AS=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	if "${AS[@]}" test -x "$LAUNCHER" -a -x "$PWD/program"; then
		warns 1 ./program "file capabilities" -- "$PWD/program"
		# nor does anybody who has given up gaining anything
		AS+=(--no-new-privs)
		warns 0 -- "$PWD/program"
	fi
}

@test "a command that cannot be read" {
	need_root
	need setpriv
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_TEST_TMPDIR"
	cp "$(type -P true)" program
	chmod 711 program
	AS=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	"${AS[@]}" test -x "$LAUNCHER" -a -x "$PWD/program" || skip "others do not get here"
	warns 1 program "cannot be read" -- "$PWD/program"
	run "${AS[@]}" "$LAUNCHER" --probe "$PWD/program"
	[[ $(field "direct read") != yes ]]
}

# ---------------------------------------------------------------- --probe

@test "--probe: a file, a directory, what is missing, and what is neither" {
	run --separate-stderr -0 "$LAUNCHER" --probe in .
	[ -z "$stderr" ]
	[ "$(grep -c '^  what ' <<<"$output")" = 2 ]
	grep -qx in <<<"$output"
	run --separate-stderr -1 "$LAUNCHER" --probe missing in
	[ "$stderr" = "blktune: missing: No such file or directory" ]
	grep -qx in <<<"$output"
	run --separate-stderr -1 "$LAUNCHER" --probe /dev/null
	[ "${#stderr_lines[@]}" = 1 ]
	[[ $stderr == */dev/null*expected* ]]
	# nothing is left behind
	mkdir empty
	run -0 "$LAUNCHER" --probe empty
	[ -z "$(ls -A empty)" ]
	run -125 bash -c '"$1" --probe / >/dev/full' - "$LAUNCHER"
}

@test "--probe: proc is left alone" {
	run "$LAUNCHER" --probe /proc
	[[ $(field "direct read") == no:*proc ]]
	[ "$(field "would read")" = "left alone (filesystem)" ]
}

@test "--probe: each filesystem, as the library takes it" {
	need_root
	local fs dir
	export FS_SIZE=300M
	for fs in ext4 xfs btrfs tmpfs overlay ext4-4096; do
		dir=$(fs_make "$fs")
		head -c 2000000 /dev/zero >"$dir/f"
		for path in "$dir" "$dir/f"; do
			run --separate-stderr -0 "$LAUNCHER" --probe "$path"
			[ -z "$stderr" ]
			[[ $(field filesystem) == "${fs%-4096} on $dir from "* ]] || fail "$fs: $output"
			[ "$(field alignment | cut -d' ' -f1)" = 4096 ]
			case $fs in
			tmpfs)
				[[ $(field "direct read") == no:* && $(field "direct write") == no:* ]]
				[ "$(field "would write")" = "left alone (filesystem)" ]
				;;
			btrfs)
				[ "$(field "direct read")" = yes ]
				[[ $(field "direct write") == no:*btrfs* ]]
				[[ $(field "would write") == "through the page cache in blocks of 4M"* ]]
				;;
			*)
				[ "$(field "direct read")" = yes ] || fail "$fs: $output"
				[ "$(field "direct write")" = yes ]
				[[ $(field "would read") == "direct in blocks of 1M"* ]]
				[[ $(field "would write") == "direct in blocks of 4M"* ]]
				;;
			esac
			case $fs in
			ext4-4096) [[ $(field device) == *"sectors of 4096 bytes"* ]] ;;
			ext4 | xfs | btrfs) [[ $(field device) == *"sectors of 512 bytes"* ]] ;;
			esac
		done
	done
}

@test "--probe: settings are taken into account" {
	cp in big
	run "$LAUNCHER" --mode=buffered --read-block=2M --probe big
	if [[ $(field "direct read") == yes ]]; then
		[ "$(field "would read")" = "through the page cache in blocks of 2M" ]
		run "$LAUNCHER" --mode=dontcache --probe big
		[[ $(field "would write") == *"dropped behind" ]]
		run "$LAUNCHER" --direct-min=1G --probe big
		[[ $(field "would read") == *"small: below 1G"* ]]
		run bash -c 'ulimit -f 1000; "$1" --probe big' - "$LAUNCHER"
		[ "$(field "would write")" = "left alone (limit)" ]
	fi
	run "$LAUNCHER" --off --probe big
	[ "$(field "would read")" = "left alone (off)" ]
	run "$LAUNCHER" --mode=observe --probe big
	[ "$(field "would write")" = "left alone (mode observe)" ]
	run "$LAUNCHER" --engine=sync --probe big
	[[ $(field engine) == sync* ]]
}

@test "--probe: a block device, free and mounted" {
	need_root
	local dev fs
	truncate -s 300M "$BATS_FILE_TMPDIR/probe.img"
	dev=$(losetup -f --show -b 4096 "$BATS_FILE_TMPDIR/probe.img")
	run -0 "$LAUNCHER" --probe "$dev"
	[ "$(field what)" = "block device" ]
	[[ $(field device) == *"sectors of 4096 bytes"* ]]
	[ "$(field "direct write")" = yes ]
	[ "$(field size)" = 300M ]
	mkdir m
	# mountinfo has another number for btrfs
	for fs in ext4 btrfs; do
		wipefs -qa "$dev"
		"mkfs.$fs" -q "$dev" >/dev/null
		mount "$dev" m
		run -0 "$LAUNCHER" --probe "$dev"
		umount m
		[[ $(field "direct read") == no:*mounted* ]] || fail "$fs: $output"
		[ "$(field "would write")" = "left alone (mounted)" ]
		[ "$(field "would read")" = "through the page cache in blocks of 1M" ]
	done
	losetup -d "$dev"
}

# ---------------------------------------------------------------- completion, package

# completes LINE WORD ...: the words are offered at its end.
completes() {
	local offered word
	offered=$(bash --norc -c '
		. /usr/share/bash-completion/bash_completion
		. "$1"
		COMP_WORDS=()
		for word in $2; do
			while [[ $word == *=* ]]; do
				COMP_WORDS+=("${word%%=*}" =)
				word=${word#*=}
			done
			[[ -z $word ]] || COMP_WORDS+=("$word")
		done
		[[ $2 != *[=\ ] ]] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$2 COMP_POINT=${#2} COMP_TYPE=9 COMP_KEY=9
		_blktune blktune 2>/dev/null
		printf "%s\n" "${COMPREPLY[@]}"' - "$ROOT/shim/tool/blktune.bash" "$1")
	for word in "${@:2}"; do
		grep -qxF -- "$word" <<<"$offered" || fail "$1: no '$word' in:" "$offered" || return
	done
}

@test "completion" {
	[ -e /usr/share/bash-completion/bash_completion ] || skip "needs bash-completion"
	completes "blktune --mo" --mode=
	completes "blktune --" --off --mode= --report --probe
	completes "blktune --mode=d" direct dontcache
	completes "blktune --mode " direct dontcache buffered observe
	completes "blktune --hold=never --en" --engine=
	completes "blktune --probe ./i" ./in
	completes "blktune -r mktem" mktemp
	completes "blktune --mode buffered mktem" mktemp
	completes "blktune --mode=direct ls ./i" ./in
	completes "blktune -- mktem" mktemp
}

@test "make install, make uninstall" {
	make -s -C "$ROOT" install DESTDIR="$PWD/root" >/dev/null
	[ -x root/usr/local/bin/blktune ]
	[ -f root/usr/local/lib/libblktune.so ]
	[ -f root/usr/local/share/man/man1/blktune.1 ]
	[ -f root/usr/local/share/bash-completion/completions/blktune ]
	make -s -C "$ROOT" uninstall DESTDIR="$PWD/root" >/dev/null
	[ -z "$(find root -type f -o -type l)" ]
}

@test "make deb: clean for lintian; installs and goes away without a trace" {
	need dpkg-deb
	local deb file
	make -s -C "$ROOT" deb DEBDIR="$PWD/debs" >/dev/null
	deb=$(echo debs/*.deb)
	run -0 dpkg-deb --info "$deb"
	[[ $output != *conffiles* ]]
	run -0 dpkg-deb --contents "$deb"
	for file in /usr/bin/blktune /libblktune.so /man1/blktune.1.gz /completions/blktune \
		/doc/libblktune/copyright /doc/libblktune/changelog.gz; do
		grep -q "$file\$" <<<"$output" || fail "no $file in the package: $output"
	done
	if command -v lintian >/dev/null; then
		run lintian --allow-root --fail-on error,warning "$deb"
		[ "$status" = 0 ] || fail "$output"
	fi
	need_root
	# into a root of its own, with the database beside it
	mkdir -p root/var/lib/dpkg/{info,updates}
	: >root/var/lib/dpkg/status
	: >root/var/lib/dpkg/available
	local dpkg=(dpkg --root="$PWD/root" --force-depends --force-script-chrootless --log=/dev/null)
	"${dpkg[@]}" -i "$deb" >&2
	(cd root && md5sum -c --quiet var/lib/dpkg/info/libblktune.md5sums)
	root/usr/bin/blktune -V
	"${dpkg[@]}" -P libblktune >&2
	[ -z "$(find root/usr -type f -o -type l 2>/dev/null)" ] || fail "left: $(find root/usr)"
}
