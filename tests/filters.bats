#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2034,SC2164
# What is tuned at all, by path and by program; what close promises; what stat tells.
load lib

setup_file() {
	require_shim || return
	pattern 8000000 >"$BATS_FILE_TMPDIR/in"
}

setup() {
	cd "$BATS_TEST_TMPDIR"
	ln "$BATS_FILE_TMPDIR/in" in 2>/dev/null || cp "$BATS_FILE_TMPDIR/in" in
}

# small_calls FILE PROGRAM...: reads and writes of at most 5000 bytes that the kernel sees on FILE.
small_calls() {
	local file=$1
	shift
	shim_trace trace -e trace=read,write,pread64,pwrite64 -- "$@"
	grep -c "<[^>]*/$file>, .* = [1-9][0-9]\{0,3\}$" trace || true
}

@test "BLKTUNE_ONLY: other paths are left alone" {
	SETTINGS=(BLKTUNE_ENGINE=sync "BLKTUNE_ONLY=/nowhere/*:*/out.a")
	[ "$(small_calls out.a dd bs=5000 if=in of=out.a status=none)" -le 1 ]
	[ "$(small_calls out.b dd bs=5000 if=in of=out.b status=none)" = 1600 ]
	[ "$(small_calls in dd bs=5000 if=in of=out.a status=none)" = 1600 ]
	cmp in out.a
	cmp in out.b
}

@test "BLKTUNE_SKIP: these paths are left alone" {
	SETTINGS=(BLKTUNE_ENGINE=sync "BLKTUNE_SKIP=*.b:*.c")
	[ "$(small_calls out.a dd bs=5000 if=in of=out.a status=none)" -le 1 ]
	[ "$(small_calls out.b dd bs=5000 if=in of=out.b status=none)" = 1600 ]
	[ "$(small_calls out.c dd bs=5000 if=in of=out.c status=none)" = 1600 ]
	[ "$(small_calls in dd bs=5000 if=in of=out.a status=none)" -le 1 ]
}

@test "a path is matched as an absolute one, wherever the program is" {
	SETTINGS=(BLKTUNE_ENGINE=sync "BLKTUNE_ONLY=$PWD/*")
	[ "$(small_calls out.a dd bs=5000 if=in of=out.a status=none)" -le 1 ]
}

@test "BLKTUNE_PROGRAMS and BLKTUNE_SKIP_PROGRAMS, by name" {
	SETTINGS=(BLKTUNE_ENGINE=sync "BLKTUNE_PROGRAMS=tar:d?")
	[ "$(small_calls out dd bs=5000 if=in of=out status=none)" -le 1 ]
	SETTINGS=(BLKTUNE_ENGINE=sync "BLKTUNE_PROGRAMS=tar:cp")
	[ "$(small_calls out dd bs=5000 if=in of=out status=none)" = 1600 ]
	SETTINGS=(BLKTUNE_ENGINE=sync "BLKTUNE_SKIP_PROGRAMS=d*")
	[ "$(small_calls out dd bs=5000 if=in of=out status=none)" = 1600 ]
	SETTINGS=(BLKTUNE_ENGINE=sync "BLKTUNE_SKIP_PROGRAMS=tar")
	[ "$(small_calls out dd bs=5000 if=in of=out status=none)" -le 1 ]
}

@test "BLKTUNE_SYNC=close: what was written is synced before close returns" {
	local how
	for how in "" BLKTUNE_SYNC=close; do
		rm -f out
		SETTINGS=(${how:+"$how"})
		shim_trace trace -e trace=fsync,fdatasync,close -- dd bs=5000 if=in of=out status=none
		awk -v want="${how:+1}" '/fsync\([0-9]+<[^>]*\/out>\) *= 0/ { synced = 1 }
			/close\([0-9]+<[^>]*\/out>\)/ { at_close = synced }
			END { exit at_close + 0 != want + 0 }' trace
	done
	# a file that is only read is not
	shim_trace trace -e trace=fsync -- dd bs=5000 if=in of=/dev/null status=none
	! grep -q fsync trace
}

@test "BLKTUNE_BLKSIZE: st_blksize of regular files, and of nothing else" {
	SETTINGS=(BLKTUNE_BLKSIZE=256K)
	[ "$(shim stat -c %o in)" = 262144 ]
	[ "$(shim stat -c %o .)" = "$(bare stat -c %o .)" ]
	[ "$(shim python3 -c 'import os; print(os.fstat(os.open("in", 0)).st_blksize)')" = 262144 ]
	SETTINGS=()
	[ "$(shim stat -c %o in)" = "$(bare stat -c %o in)" ]
}

@test "wrong values get their line" {
	local v
	for v in SYNC=always BLKSIZE=1 BLKSIZE=big ONLY= PROGRAMS=; do
		run --separate-stderr shim "BLKTUNE_$v" true
		[ "$status" = 0 ]
		# shellcheck disable=SC2154
		[ "$(wc -l <<<"$stderr")" = 1 ]
		[[ $stderr == *"BLKTUNE_${v%%=*}=${v#*=}: expected "*"; using "* ]]
	done
}

@test "a path below a directory's descriptor is matched whole" {
	mkdir sub
	cp in sub/in
	SETTINGS=(BLKTUNE_ENGINE=sync "BLKTUNE_ONLY=$PWD/sub/in")
	[ "$(small_calls in tar -b 10 -cf "$PWD/out.tar" -C sub in)" -le 1 ]
	SETTINGS=(BLKTUNE_ENGINE=sync "BLKTUNE_ONLY=$PWD/in")
	[ "$(small_calls in tar -b 10 -cf "$PWD/out.tar" -C sub in)" -gt 100 ]
}

@test "a pattern means the same in every locale, and asks the program's malloc for nothing" {
	local p locale long
	p=$(helper locale)
	long=$(printf '%0200d/' 1 2)
	mkdir -p "$long"
	cp in "${long}ä.a"
	for locale in C C.UTF-8; do
		# one character, though two bytes
		SETTINGS=(BLKTUNE_ENGINE=sync "BLKTUNE_ONLY=*/?.a")
		[ "$(small_calls '[^>]*[.]a' "$p" $locale "${long}ä.a")" -le 1 ]
		SETTINGS=(BLKTUNE_ENGINE=sync "BLKTUNE_ONLY=*/??.a")
		[ "$(small_calls '[^>]*[.]a' "$p" $locale "${long}ä.a")" = 1600 ]
		SETTINGS=(BLKTUNE_ENGINE=sync "BLKTUNE_ONLY=*/[!0-9].a:*x*y*[0-9]*z")
		[ "$(shim "$p" $locale "${long}ä.a" 2>&1)" = 0 ]
	done
}
