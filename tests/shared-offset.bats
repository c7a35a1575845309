#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034
# One open file used by several at once, or in turn: every record whole and exactly
# once, and each continues where the one before stopped.
load lib

SMALL=(BLKTUNE_MIN=4K BLKTUNE_BLOCK=64K BLKTUNE_DIRECT_MIN=4K)

setup_file() {
	require_shim || return
	OFFSET=$(helper shared-offset -pthread) || return
	export OFFSET
	pattern 1 >/dev/null
}

# whole SITUATION: bare, by default, and with small blocks always held.
whole() {
	local how
	for how in bare shim small; do
		SETTINGS=()
		[ "$how" != small ] || SETTINGS=("${SMALL[@]}" BLKTUNE_HOLD=always)
		rm -f "$BATS_TEST_TMPDIR"/f*
		run "${how/small/shim}" timeout 30 "$OFFSET" "$BATS_TEST_TMPDIR/f" "$1"
		[ "$status $output" = "0 whole" ] || fail "$1, $how: status $status: $output"
	done
}

# turns SCRIPT: a shell script on $1, a file of lines, and $2, a file to write: its
# output and the file are the same.
turns() {
	local how shell said=() sum=()
	for how in bare shim small; do
		SETTINGS=()
		[ "$how" != small ] || SETTINGS=("${SMALL[@]}")
		for shell in bash dash; do
			rm -f "$BATS_TEST_TMPDIR/out"
			said+=("$("${how/small/shim}" "$shell" -c "$1" "$shell" "$BATS_TEST_TMPDIR/in" "$BATS_TEST_TMPDIR/out" 2>&1 | cksum; echo "${PIPESTATUS[0]}")")
			sum+=("$(cksum <"$BATS_TEST_TMPDIR/out")")
			same "${said[0]}" "${said[-1]}" "$shell, $how: output"
			same "${sum[0]}" "${sum[-1]}" "$shell, $how: file"
		done
	done
	[ "${said[0]#*$'\n'}" = 0 ] || fail "the script fails even bare"
}

setup() {
	seq 200000 >"$BATS_TEST_TMPDIR/in"
}

@test "four threads write through one descriptor" { whole writers; }
@test "four threads read through one descriptor" { whole readers; }
@test "a signal handler writes to the file being written" { whole handler; }
@test "a raw clone writes, then its parent" { whole clone; }
@test "a thread is cancelled while it writes" { whole cancel; }
@test "a thread writes on while the file is closed, and the number is another's" { whole close-written; }
@test "a thread reads on while the file is closed, and the number is another's" { whole close-read; }
@test "three threads write while a fourth forks, and its children write" { whole forking; }
@test "a program that becomes a daemon half-way" { whole daemon; }
@test "vfork: children close, fail to exec, and get the file as their output" { whole vforking; }
@test "head, then cat, on one input" { turns '(head -n 1; cat) <"$1" >"$2"'; }
@test "cat, then cat, on one input" { turns '{ cat; echo between; cat; } <"$1" >"$2"'; }
@test "dd in turns on one input" {
	turns '{ dd bs=7 count=1; dd bs=4096 count=100; dd bs=64k; } <"$1" >"$2" 2>/dev/null'
}
@test "a loop whose body reads the loop's input" {
	turns 'while read -r line; do echo "<$line>"; head -c 60000; done <"$1" >"$2"'
}
@test "exec 3<>file: written, read on, written by a child" {
	turns 'cp "$1" "$2"; exec 3<>"$2"; echo new >&3; read -r line <&3; echo "$line"; cat "$1" >&3; echo end >&3'
}
