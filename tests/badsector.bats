#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# A bad sector: every good byte before it arrives, the error at the program's own call,
# and a program that goes on finds what the kernel would give it. The bad place is a
# block of btrfs whose checksum does not fit, and a loop device over such a file.
load lib

SIZE=6291456 BAD=3145728 # bytes; where the bad block is

setup_file() {
	need_root
	require_shim || return
	local dir img=$BATS_FILE_TMPDIR/fs/btrfs.img at dev
	dir=$(FS_SIZE=300M fs_make btrfs) || return
	pattern $SIZE >"$BATS_FILE_TMPDIR/good"
	cp --reflink=never "$BATS_FILE_TMPDIR/good" "$dir/bad" && sync -f "$dir" || return
	umount "$dir" || return
	# The block is found by its bytes: they are like no other's.
	at=$(python3 - "$img" "$BATS_FILE_TMPDIR/good" $BAD <<-'P'
		import sys
		want = open(sys.argv[2], "rb").read()[int(sys.argv[3]):][:4096]
		data = open(sys.argv[1], "rb").read()
		at = data.find(want)
		assert at >= 0 and data.find(want, at + 1) < 0
		print(at)
	P
	) || return
	printf 'spoilt' | dd of="$img" bs=1 seek="$at" conv=notrunc status=none || return
	dev=$(losetup -f --show "$img") && mount "$dev" "$dir" || return
	losetup -d "$dev"
	dev=$(losetup -f --show --direct-io=on "$dir/bad") || return
	# Else the cache reads ahead in large folios, and fails with them as a whole.
	blockdev --setra 0 "$dev"
	echo "$dev" >"$BATS_FILE_TMPDIR/dev"
}

teardown_file() {
	[ ! -s "$BATS_FILE_TMPDIR/dev" ] || losetup -d "$(cat "$BATS_FILE_TMPDIR/dev")"
	fs_drop
}

# alike PROGRAM ARG...: makes "out" from BAD, a file and a device; bare and shimmed.
alike() {
	local from how said=() sum=()
	cd "$BATS_TEST_TMPDIR"
	for from in "$BATS_FILE_TMPDIR/fs/btrfs/bad" "$(cat "$BATS_FILE_TMPDIR/dev")"; do
		said=() sum=()
		for how in bare shim; do
			rm -f out
			echo 3 >/proc/sys/vm/drop_caches
			run "$how" "${@//BAD/$from}"
			said+=("$status $(grep -v copied <<<"$output")")
			sum+=("$(stat -c %s out) $(cksum <out)")
		done
		[[ ${said[0]} == *"nput/output error"* || ${said[0]} == *"File shrank"* ]] || fail "bare finds no bad sector in $from: ${said[0]}"
		same "${said[0]}" "${said[1]}" "$* from $from"
		same "${sum[0]}" "${sum[1]}" "$* from $from: what was copied"
	done
}

@test "bad sector: cp" { alike cp BAD out; }
@test "bad sector: cat" { alike dash -c 'cat BAD >out'; }
@test "bad sector: tar" { alike dash -c 'tar c -C "${1%/*}" "${1##*/}" >out' - "$BATS_FILE_TMPDIR/fs/btrfs/bad"; }
@test "bad sector: dd stops, by block size" {
	local bs
	for bs in 512 4k 64k; do
		alike dd if=BAD of=out bs=$bs
	done
}
@test "bad sector: dd conv=noerror,sync, by block size" {
	local bs
	for bs in 512 4k 64k; do
		alike dd if=BAD of=out bs=$bs conv=noerror,sync
	done
}
@test "bad sector: ddrescue gives the same image and map" {
	need ddrescue
	local from how map=() sum=()
	cd "$BATS_TEST_TMPDIR"
	for from in "$BATS_FILE_TMPDIR/fs/btrfs/bad" "$(cat "$BATS_FILE_TMPDIR/dev")"; do
		map=() sum=()
		for how in bare shim; do
			rm -f out map
			echo 3 >/proc/sys/vm/drop_caches
			"$how" ddrescue -q "$from" out map
			sum+=("$(stat -c %s out) $(cksum <out)")
			map+=("$(grep '^0x.*[?+*/-]$' map)")
		done
		grep -q -- '-$' <<<"${map[0]}" || fail "bare finds no bad sector in $from: ${map[0]}"
		same "${map[0]}" "${map[1]}" "$from: map"
		same "${sum[0]}" "${sum[1]}" "$from: image"
	done
}
