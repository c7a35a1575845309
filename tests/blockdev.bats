#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Block devices: raw ones are tuned like files, mounted ones are read through the
# cache, since only there is what the filesystem has not written yet.
load lib

SIZE=33554432

setup_file() {
	require_shim || return
	[ "$(id -u)" = 0 ] || return 0
	pattern 1 >/dev/null
	pattern $SIZE >"$BATS_FILE_TMPDIR/data"
	pattern $((SIZE + 12345)) 2 >"$BATS_FILE_TMPDIR/longer"
}

teardown_file() {
	fs_drop
}

setup() {
	need_root
	SETTINGS=(BLKTUNE_ENGINE=sync)
	TRACE=$BATS_TEST_TMPDIR/trace
	cd "$BATS_FILE_TMPDIR"
}

teardown() {
	[ -z "${DEV:-}" ] || losetup -d "$DEV"
}

# device SECTOR: a fresh loop device of $SIZE bytes as $DEV.
device() {
	[ -z "${DEV:-}" ] || losetup -d "$DEV"
	rm -f device.img
	cp data device.img
	DEV=$(losetup -f --show -b "$1" device.img)
	blockdev --flushbufs "$DEV"
}

from_device() {
	device "$1"
	rm -f out
	shim_trace "$TRACE" -e "$TRANSFERS" -- dd "bs=$2" if="$DEV" of=out status=none
	cmp data out
	big_transfers "$TRACE" "$DEV" read $SIZE
	set_direct "$TRACE" "$DEV"
}

to_device() {
	device "$1"
	head -c $SIZE longer >in
	shim_trace "$TRACE" -e "$TRANSFERS" -- dd "bs=$2" if=in of="$DEV" status=none
	cmp in "$DEV"
	big_transfers "$TRACE" "$DEV" write $SIZE
	set_direct "$TRACE" "$DEV"
}

@test "dd from a device with 512-byte sectors" {
	from_device 512 512
	from_device 512 10000
}
@test "dd from a device with 4096-byte sectors" {
	from_device 4096 512
	from_device 4096 10000
}
@test "dd to a device with 512-byte sectors" {
	to_device 512 512
	to_device 512 10240
}
@test "dd to a device with 4096-byte sectors" {
	to_device 4096 512
	to_device 4096 10240
}

@test "writing past the end of a device: the same error, the same bytes" {
	local how sector said
	for sector in 512 4096; do
		for how in bare shim; do
			device "$sector"
			run "$how" dd bs=10000 if=longer of="$DEV"
			[ "$status" = 1 ]
			grep -q "No space left on device" <<<"$output"
			said=$(grep -v copied <<<"$output")
			[ "$how" = bare ] && bare_said=${said//"$DEV"/DEV} || same "$bare_said" "${said//"$DEV"/DEV}"
			head -c $SIZE longer | cmp - "$DEV"
		done
	done
}

@test "small writes stop at the end of a device that is in the middle of a block" {
	local bs said=()
	for bs in 512 700 4096; do
		said=()
		for how in bare shim; do
			[ -z "${DEV:-}" ] || losetup -d "$DEV"
			rm -f device.img
			truncate -s $((10485760 + 3 * 512)) device.img
			DEV=$(losetup -f --show device.img)
			run "$how" dd bs=$bs if=longer of="$DEV"
			said+=("$status $(grep -v copied <<<"${output//"$DEV"/DEV}")")
			head -c 10487296 longer | cmp - "$DEV"
		done
		[[ ${said[0]} == "1 "*"No space left on device"* ]] || fail "bs=$bs, bare: ${said[0]}"
		same "${said[0]}" "${said[1]}" "bs=$bs"
	done
}

@test "pieces of a device: skip, seek and odd sizes change no other byte" {
	local how sums=()
	for sector in 512 4096; do
		sums=()
		for how in bare shim; do
			device "$sector"
			"$how" dd if=longer of="$DEV" bs=3000 seek=11 skip=5 count=1001 status=none
			"$how" dd if=longer of="$DEV" bs=512 seek=30001 count=333 conv=notrunc status=none
			"$how" dd if="$DEV" of=piece bs=777 skip=1000 count=9999 status=none
			sums+=("$(sha256sum <"$DEV") $(sha256sum <piece)")
		done
		same "${sums[0]}" "${sums[1]}"
	done
}

@test "the size of a device by lseek, and its end by read" {
	local how out=()
	device 512
	for how in bare shim; do
		out+=("$("$how" perl -e 'open F, "<", $ARGV[0] or die; print sysseek(F, 0, 2), " "; print sysseek(F, -100, 2), " ";
			print sysread(F, $b, 1000), " "; print sysread(F, $b, 1000), "\n"' "$DEV")")
	done
	[ "${out[0]}" = "$SIZE $((SIZE - 100)) 100 0" ]
	same "${out[0]}" "${out[1]}"
}

@test "a mounted device is read through the cache, with the same bytes" {
	local dir dev i
	dir=$(FS_SIZE=200M fs_make ext4)
	dev=$(findmnt -no SOURCE "$dir")
	for i in 1 2 3 4 5 6 7 8 9; do
		mkdir "$dir/$i"
		head -c $((i * 100000)) data >"$dir/$i/f"
	done
	sync -f "$dir"
	# metadata that so far is in the device's cache only
	for i in 1 2 3 4 5; do
		mv "$dir/$i/f" "$dir/$i/g"
		chmod 600 "$dir/$i/g"
	done
	bare dd if="$dev" of=bare.raw bs=10k status=none
	shim_trace "$TRACE" -e "$TRANSFERS" -- dd if="$dev" of=shim.raw bs=10k status=none
	cmp bare.raw shim.raw
	big_transfers "$TRACE" "$dev" read "$(blockdev --getsize64 "$dev")"
	run ! set_direct "$TRACE" "$dev"
	rm bare.raw shim.raw
	umount "$dir"
}

@test "e2image of a mounted device" {
	need e2image
	local dir dev how
	dir=$(FS_SIZE=100M fs_make ext4:image)
	dev=$(findmnt -no SOURCE "$dir")
	head -c 5000000 data >"$dir/f"
	mkdir "$dir/d"
	sync -f "$dir"
	chmod 700 "$dir/d"
	for how in bare shim; do
		"$how" e2image -f -r "$dev" "$how.e2i" 2>/dev/null
	done
	cmp bare.e2i shim.e2i
	rm ./*.e2i
	umount "$dir"
}

@test "dump of a mounted device, restored" {
	need dump restore
	local dir dev how
	dir=$(FS_SIZE=100M fs_make ext4:dump)
	dev=$(findmnt -no SOURCE "$dir")
	cp data "$dir/f"
	mkdir "$dir/d"
	head -c 70001 data >"$dir/d/g"
	truncate -s 3M "$dir/d/holes"
	sync
	for how in bare shim; do
		"$how" dump -0 -f "$how.dump" "$dev" 2>"$how.log" || fail "$(cat "$how.log")"
		grep -q "DUMP IS DONE" "$how.log"
		mkdir "$how.tree"
		(cd "$how.tree" && "$how" restore -r -f "../$how.dump" && rm restoresymtable)
	done
	[ "$(stat -c %s bare.dump)" = "$(stat -c %s shim.dump)" ]
	same "$("$(helper treedump)" -t bare.tree)" "$("$(helper treedump)" -t shim.tree)"
	grep -q "size=$SIZE" <<<"$("$(helper treedump)" shim.tree)"
	rm -r bare.tree shim.tree
	umount "$dir"
}
