#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# A file that grows is at any moment a prefix of what the program wrote, even if the
# program is killed where nothing can be done about it.
load lib

setup_file() {
	require_shim || return
	pattern 83886080 >"$BATS_FILE_TMPDIR/in"
	[ "$(id -u)" = 0 ] || return 0
	fs_make ext4 >/dev/null && fs_make xfs >/dev/null && fs_make btrfs >/dev/null
}

teardown_file() {
	fs_drop
}

setup() {
	need_root
}

teardown() {
	[ -z "${PID:-}" ] || kill -9 "$PID" 2>/dev/null || true
}

is_prefix() {
	local size
	size=$(stat -c %s "$1")
	cmp -n "$size" "$BATS_FILE_TMPDIR/in" "$1" || fail "$1 of $size bytes is not a prefix"
}

@test "killed with all of it written and nothing closed: a prefix, short by a window at most" {
	local dir written=60001000 size
	for dir in "$BATS_FILE_TMPDIR"/fs/{ext4,xfs,btrfs}; do
		cd "$dir"
		mkfifo ready
		env LD_PRELOAD="$LIB" BLKTUNE_ENGINE=sync perl -e 'open I, "<", $ARGV[0]; open O, ">", "out"; open R, ">", "ready";
			for (1..$ARGV[1] / 1000) { sysread I, $b, 1000; syswrite O, $b }
			syswrite R, "x"; 1 while 1' "$BATS_FILE_TMPDIR/in" $written 3>&- &
		PID=$!
		[ "$(head -c 1 ready)" = x ]
		kill -9 "$PID"
		wait "$PID" || true
		PID=
		is_prefix out
		size=$(stat -c %s out)
		[ "$size" -gt $((written - 8388608)) ] || fail "${dir##*/}: $((written - size)) bytes behind"
		rm out ready
	done
}

# At whatever moment the signal comes, the outcome must be a prefix; nothing is said of when.
@test "killed in the middle of dd, cp and cat" {
	local dir job signal
	for dir in "$BATS_FILE_TMPDIR"/fs/{ext4,xfs,btrfs}; do
		cd "$dir"
		for job in 'dd if=in of=out bs=512 status=none' 'cp --reflink=never in out' 'cp in out'; do
			cp --reflink=auto "$BATS_FILE_TMPDIR/in" in
			sync -f .
			for signal in KILL TERM; do
				rm -f out
				# shellcheck disable=SC2086
				env LD_PRELOAD="$LIB" $job 3>&- &
				PID=$!
				until [ -s out ] || ! kill -0 "$PID" 2>/dev/null; do :; done
				kill -"$signal" "$PID" 2>/dev/null || true
				wait "$PID" || true
				PID=
				is_prefix out
			done
		done
		rm -f in out
	done
}

@test "while it runs: what others see of it is a prefix each time" {
	local dir i sizes
	for dir in "$BATS_FILE_TMPDIR"/fs/{ext4,xfs,btrfs}; do
		cd "$dir"
		rm -f out
		env LD_PRELOAD="$LIB" dd if="$BATS_FILE_TMPDIR/in" of=out bs=512 status=none 3>&- &
		PID=$!
		while kill -0 "$PID" 2>/dev/null; do
			[ ! -e out ] || is_prefix out
		done
		wait "$PID"
		PID=
		cmp "$BATS_FILE_TMPDIR/in" out
		rm out
	done
}
