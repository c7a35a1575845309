#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# A full disk is said by write itself, and what is on it is a prefix without a hole,
# as long as it is bare up to one minimum transfer.
load lib

KINDS=(ext4 xfs btrfs tmpfs)

setup_file() {
	require_shim || return
	helper careless >/dev/null || return
	[ "$(id -u)" = 0 ] || return 0
	local kind size
	pattern 524288000 >"$BATS_FILE_TMPDIR/in"
	for kind in "${KINDS[@]}"; do
		case $kind in
		xfs) size=320M ;;
		btrfs) size=120M ;;
		*) size=40M ;;
		esac
		FS_SIZE=$size fs_make $kind >/dev/null || return
	done
}

teardown_file() {
	fs_drop
}

# whole FILE: nothing but data in it.
whole() {
	python3 - "$1" <<-'P'
		import os, sys
		fd = os.open(sys.argv[1], os.O_RDONLY)
		size = os.fstat(fd).st_size
		hole = os.lseek(fd, 0, os.SEEK_HOLE)
		assert hole == size, f"a hole at {hole} of {size}"
	P
}

# fill PROGRAM ARG...: x from ../../in on each filesystem, until it is full.
fill() {
	local kind how said=() size=() n
	need_root
	for kind in "${KINDS[@]}"; do
		cd "$BATS_FILE_TMPDIR/fs/$kind"
		said=() size=()
		for how in bare shim; do
			rm -f x
			sync -f .
			run "$how" "$@"
			grep -q 'No space left\|Wrote only' <<<"$output" || fail "$kind, $how: $output"
			# Whether tar's last write was a short one is a matter of where the disk ends. What
			# btrfs has left nobody knows: bytes taken before may be refused, and close repeats it.
			said+=("$status $(grep -v 'copied\|records\|Wrote only\|Cannot write' <<<"$output" |
				if [ $kind = btrfs ]; then grep -v 'closing output file\|Cannot close'; else cat; fi)")
			n=$(stat -c %s x)
			size+=("$n")
			[ "$n" -gt 10000000 ] || fail "$kind, $how: $n bytes"
			if [ "$1" != tar ]; then
				cmp -n "$n" ../../in x || fail "$kind, $how: not a prefix"
			fi
			whole x
			rm -f x
		done
		[[ ${said[0]} != 0* ]] || fail "$kind: the disk is not full"
		same "${said[0]}" "${said[1]}" "$kind: $1"
		n=$((size[0] - size[1]))
		echo "# $kind, $1: ${size[*]} bytes" >&3
		# btrfs fits its metadata in as it comes: two bare runs differ by more
		[ "$kind" = btrfs ] || [ "${n#-}" -le 65536 ] || fail "$kind: ${size[0]} bytes bare, ${size[1]} under the shim"
	done
}

@test "full: cp" { fill cp ../../in x; }
@test "full: dd bs=512" { fill dd if=../../in of=x bs=512; }
@test "full: cat" { fill dash -c 'cat ../../in >x'; }
@test "full: tar" { fill tar c -f x -C ../.. in; }
@test "full: a program that ignores the result of close" { fill "$(helper careless)" ../../in x; }
