#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# A wrong setting gets one line on stderr that names the variable, its value, what is
# expected and what is used instead; the job completes. A right one gets none.
load lib

setup_file() {
	require_shim || return
	pattern 3000000 >"$BATS_FILE_TMPDIR/in"
}

# job SETTING...: copies under it; $output is its stderr.
job() {
	rm -f "$BATS_TEST_TMPDIR/out"
	run shim "$@" dd if="$BATS_FILE_TMPDIR/in" of="$BATS_TEST_TMPDIR/out" bs=10k status=none
	[ "$status" = 0 ]
	cmp "$BATS_FILE_TMPDIR/in" "$BATS_TEST_TMPDIR/out"
}

# complains NAME VALUE WORD...: exactly one line, with all of these in it.
complains() {
	local word
	job "$1=$2"
	[ "${#lines[@]}" = 1 ] || fail "$1=$2: ${#lines[@]} lines, not one:" "$output"
	for word in "$1" "${@:2}"; do
		[[ $output == *"$word"* ]] || fail "$1=$2: no '$word' in: $output"
	done
}

@test "wrong sizes" {
	complains BLKTUNE_MIN 64Q 64K
	complains BLKTUNE_MIN -1 64K
	complains BLKTUNE_MIN lots 64K
	complains BLKTUNE_BLOCK 12X34
	complains BLKTUNE_BLOCK 0
	complains BLKTUNE_READ_BLOCK 1Mx 1M
	complains BLKTUNE_WRITE_BLOCK "4 M" 4M
	complains BLKTUNE_MEMORY none 64M
	complains BLKTUNE_DIRECT_MIN K 1M
	complains BLKTUNE_MIN 99999999999999999999999 64K
	complains BLKTUNE_MEMORY 99999999999G 64M
}

@test "wrong words" {
	complains BLKTUNE maybe on off
	complains BLKTUNE_MODE fast direct buffered observe
	complains BLKTUNE_MODE DIRECT direct
	complains BLKTUNE_HOLD sometimes auto always never
	complains BLKTUNE_STDIO yes on off
	complains BLKTUNE_PROGRESS 1 on off
	complains BLKTUNE_RATE fast 1K none
	complains BLKTUNE_RATE 1023 1K none
	complains BLKTUNE_ENGINE steam auto uring aio sync
	complains BLKTUNE_HOT warm direct cache
	complains BLKTUNE_DEPTH 65 64
}

@test "two wrong ones, two lines; nothing from the others" {
	job BLKTUNE_MIN=x BLKTUNE_HOLD=y BLKTUNE_BLOCK=1M
	[ "${#lines[@]}" = 2 ]
	grep -q 'BLKTUNE_MIN.*x' <<<"$output"
	grep -q 'BLKTUNE_HOLD.*y' <<<"$output"
}

# unknown NAME NEAREST
unknown() {
	job "$1=1M"
	[ "${#lines[@]}" = 1 ] || fail "$1: ${#lines[@]} lines, not one:" "$output"
	[[ $output == *"$1"* && $output == *"$2"* ]] || fail "$1: no '$2' in: $output"
}

@test "an unknown name gets one line with the nearest known one" {
	unknown BLKTUNE_MODUS BLKTUNE_MODE
	unknown BLKTUNE_READBLOCK BLKTUNE_READ_BLOCK
	unknown BLKTUNE_REPROT BLKTUNE_REPORT
	unknown BLKTUNE_DIRECTMIN BLKTUNE_DIRECT_MIN
	unknown BLKTUNE_WRITEBLOCK BLKTUNE_WRITE_BLOCK
}

@test "right ones are silent" {
	local setting
	for setting in BLKTUNE=on BLKTUNE=off BLKTUNE_MODE=direct BLKTUNE_MODE=buffered BLKTUNE_MODE=observe \
		BLKTUNE_MIN=512 BLKTUNE_MIN=128K BLKTUNE_BLOCK=65536 BLKTUNE_BLOCK=8M BLKTUNE_READ_BLOCK=2M \
		BLKTUNE_WRITE_BLOCK=1M BLKTUNE_MEMORY=1G BLKTUNE_MEMORY=8M BLKTUNE_DIRECT_MIN=4K BLKTUNE_DIRECT_MIN=1G \
		BLKTUNE_HOLD=auto BLKTUNE_HOLD=always BLKTUNE_HOLD=never BLKTUNE_ENGINE=sync BLKTUNE_ENGINE=auto; do
		job "$setting"
		[ -z "$output" ] || fail "$setting: $output"
	done
}

@test "names that only begin alike are nobody's business" {
	job BLKTUNER=1 XBLKTUNE=1
	[ -z "$output" ]
}
