#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Errors are the kernel's own, neither lost nor late: full disks, bad pointers, size
# limits, wrong arguments.
load lib

setup_file() {
	require_shim || return
	helper errors >/dev/null || return
	pattern 41943040 >"$BATS_FILE_TMPDIR/in"
	tar c -f "$BATS_FILE_TMPDIR/in.tar" -C "$BATS_FILE_TMPDIR" in
	[ "$(id -u)" = 0 ] || return 0
	FS_SIZE=24M fs_make ext4 >/dev/null || return
	fs_make ext4:room >/dev/null || return
	cp "$BATS_FILE_TMPDIR/in" "$BATS_FILE_TMPDIR/fs/ext4-room/in"
}

teardown_file() {
	fs_drop
}

# full PREFIX-OF PROGRAM ARG...: writes x on a disk that is too small. The same status
# and message; what is there is a prefix of what should be.
full() {
	local whole=$1 how out=() rc=() size
	need_root
	shift
	cd "$BATS_FILE_TMPDIR/fs/ext4"
	for how in bare shim; do
		rm -f x
		sync -f .
		run "$how" "$@"
		rc+=("$status")
		out+=("$(grep -v 'copied\|records' <<<"$output")")
		sync -f .
		size=$(stat -c %s x)
		[ "$size" -gt 1000000 ] || fail "$how: $size bytes"
		cmp -n "$size" "$whole" x || fail "$how: not a prefix"
	done
	rm -f x
	[ "${rc[0]}" != 0 ]
	same "${rc[0]} ${out[0]}" "${rc[1]} ${out[1]}"
	# tar tells of the short write that came first
	grep -q 'No space left\|Wrote only' <<<"${out[0]}"
}

@test "disk full: cp" { full "$BATS_FILE_TMPDIR/in" cp "$BATS_FILE_TMPDIR/in" x; }
@test "disk full: cp from a filesystem of the same kind" {
	full "$BATS_FILE_TMPDIR/in" cp "$BATS_FILE_TMPDIR/fs/ext4-room/in" x
}
@test "disk full: cat by a shell" {
	full "$BATS_FILE_TMPDIR/in" dash -c 'cat ../../in >x'
}
@test "disk full: dd bs=512" { full "$BATS_FILE_TMPDIR/in" dd if=../../in of=x bs=512; }
@test "disk full: dd bs=10k" { full "$BATS_FILE_TMPDIR/in" dd if=../../in of=x bs=10k; }
@test "disk full: dd bs=1M conv=fsync" { full "$BATS_FILE_TMPDIR/in" dd if=../../in of=x bs=1M conv=fsync; }
@test "disk full: tar c" { full "$BATS_FILE_TMPDIR/in.tar" tar c -f x -C "$BATS_FILE_TMPDIR" in; }

@test "disk full: a program that looks only at write, then finds room" {
	need_root
	local how out=() errors
	errors=$(helper errors)
	cd "$BATS_FILE_TMPDIR/fs/ext4"
	for how in bare shim; do
		rm -f x y
		sync -f .
		out+=("$("$how" "$errors" full x 2>&1)")
	done
	rm -f x
	grep -q "No space left" <<<"${out[0]}"
	same "${out[0]}" "${out[1]}"
}

@test "/dev/full" {
	local how out=()
	cd "$BATS_FILE_TMPDIR"
	for how in bare shim; do
		run "$how" dd if=in of=/dev/full bs=10k count=3
		out+=("$status $(grep -v copied <<<"$output")")
		run "$how" cp in /dev/full
		out[-1]+=" $status $output"
		run "$how" sh -c 'cat in >/dev/full'
		out[-1]+=" $status $output"
		run "$how" tar c -f /dev/full in
		out[-1]+=" $status $output"
	done
	[[ ${out[0]} == *"No space left"* ]]
	same "${out[0]}" "${out[1]}"
}

@test "a limit on file size" {
	local how out=() job
	cd "$BATS_FILE_TMPDIR"
	for job in 'cp in x' 'dd if=in of=x bs=512' 'dd if=in of=x bs=1000000' 'cat in >x' 'tar c -f x in'; do
		out=()
		for how in bare shim; do
			rm -f x
			run bash -c 'ulimit -f 3001; ulimit -c 0; "$@"' - env LD_PRELOAD="$([ "$how" = bare ] || echo "$LIB")" dash -c "$job"
			out+=("$status $(grep -v 'copied\|records' <<<"$output") $(stat -c %s x)")
			run bash -c 'ulimit -f 3001; trap "" XFSZ; "$@"' - env LD_PRELOAD="$([ "$how" = bare ] || echo "$LIB")" dash -c "$job"
			out[-1]+=" $status $(grep -v 'copied\|records' <<<"$output") $(stat -c %s x)"
		done
		[[ ${out[0]} == *" 3073024"* || ${out[0]} == *" 3072000"* ]] || fail "bare: ${out[0]}"
		same "${out[0]}" "${out[1]}" "$job"
	done
	rm -f x
}

# The rest is in errors.c: it prints each result, and both must print the same.
situation() {
	local how out=() rc=() errors
	errors=$(helper errors)
	mkdir -p "$BATS_TEST_TMPDIR/e"
	cd "$BATS_TEST_TMPDIR/e"
	for how in bare shim; do
		rm -f x
		rc+=(0)
		out+=("$("$how" "$errors" "$1" x 2>&1)") || rc[-1]=$?
	done
	[ -n "${out[0]}" ]
	[ "${rc[0]}" = 0 ] || fail "bare: ${out[0]}"
	same "${rc[0]} ${out[0]}" "${rc[1]} ${out[1]}"
}

@test "bad pointers" { situation pointers; }
@test "wrong arguments" { situation arguments; }
@test "errno is left alone by what succeeds" { situation errno; }
@test "reads at the end, beyond it, and after it moved" { situation ends; }
