#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Bulk transfers are large, direct, and leave nothing in the page cache, as seen by
# strace and fincore.
load lib

SIZE=67108864

setup_file() {
	require_shim || return
	[ "$(id -u)" = 0 ] || return 0
	local fs dir
	pattern 1 >/dev/null
	for fs in ext4 xfs btrfs ext4-4096; do
		dir=$(fs_make "$fs") || return
		pattern $SIZE >"$dir/A"
		sync -f "$dir"
	done
}

teardown_file() {
	fs_drop
}

setup() {
	need_root
	SETTINGS=(BLKTUNE_ENGINE=sync)
	TRACE=$BATS_TEST_TMPDIR/trace
}

# bulk FILESYSTEM PROGRAM ARG...: the program copies A, or the head of it, to B there.
bulk() {
	DIR=$BATS_FILE_TMPDIR/fs/$1
	shift
	cd "$DIR"
	rm -f B
	cold A
	shim_trace "$TRACE" -e "$TRANSFERS" -- "$@"
	cmp -n "$(stat -c %s B)" A B
}

# bulk_uncached FILESYSTEM PROGRAM ARG...: the program copies A to B there; large,
# direct and without a page in the cache, which is looked at before any judge reads.
bulk_uncached() {
	local a b
	DIR=$BATS_FILE_TMPDIR/fs/$1
	shift
	cd "$DIR"
	rm -f B
	cold A
	shim_trace "$TRACE" -e "$TRANSFERS" -- "$@"
	a=$(cached A) b=$(cached B)
	cmp A B
	big_transfers "$TRACE" "$DIR/A" read $SIZE
	big_transfers "$TRACE" "$DIR/B" write $SIZE
	set_direct "$TRACE" "$DIR/A"
	set_direct "$TRACE" "$DIR/B"
	[ "$a" = 0 ] || fail "$a pages of the source are in the cache"
	[ "$b" = 0 ] || fail "$b pages of the copy are in the cache"
}

@test "without the shim these tests see small, cached transfers" {
	DIR=$BATS_FILE_TMPDIR/fs/ext4
	cd "$DIR"
	cold A
	strace -y -s 0 -o "$TRACE" -e "$TRANSFERS" dd bs=16k if=A of=B status=none
	[ "$(cached B)" -gt 0 ]
	run ! big_transfers "$TRACE" "$DIR/A" read $SIZE
	run ! big_transfers "$TRACE" "$DIR/B" write $SIZE
	run ! set_direct "$TRACE" "$DIR/B"
	run ! transfers "$TRACE" "$DIR/nothing" read
}

@test "dd bs=512 on ext4" { bulk_uncached ext4 dd bs=512 if=A of=B status=none; }
@test "dd bs=512 on xfs" { bulk_uncached xfs dd bs=512 if=A of=B status=none; }
@test "dd bs=512 on a device with 4096-byte sectors" { bulk_uncached ext4-4096 dd bs=512 if=A of=B status=none; }
@test "dd bs=3000 on ext4" { bulk_uncached ext4 dd bs=3000 if=A of=B status=none; }
@test "dd bs=10k on xfs" { bulk_uncached xfs dd bs=10k if=A of=B status=none; }
@test "dd from one filesystem to another" {
	rm -f "$BATS_FILE_TMPDIR/fs/xfs/B"
	cd "$BATS_FILE_TMPDIR/fs/ext4"
	cold A
	shim_trace "$TRACE" -e "$TRANSFERS" -- dd bs=512 if=A of=../xfs/B status=none
	[ "$(cached A) $(cached ../xfs/B)" = "0 0" ]
	cmp A ../xfs/B
	big_transfers "$TRACE" "$PWD/A" read $SIZE
	big_transfers "$TRACE" "$BATS_FILE_TMPDIR/fs/xfs/B" write $SIZE
}
@test "cp on ext4, which is one copy_file_range bare" { bulk_uncached ext4 cp A B; }
@test "cp --reflink=never on ext4" { bulk_uncached ext4 cp --reflink=never A B; }
@test "cp --reflink=never on xfs" { bulk_uncached xfs cp --reflink=never A B; }
@test "cat on ext4, into a descriptor that it inherited" {
	DIR=$BATS_FILE_TMPDIR/fs/ext4
	cd "$DIR"
	rm -f B
	cold A
	shim_trace "$TRACE" -e "$TRANSFERS" -- cat A >"$BATS_TEST_TMPDIR/C"
	[ "$(cached A)" = 0 ] || fail "$(cached A) pages of the source are in the cache"
	cmp A "$BATS_TEST_TMPDIR/C"
	big_transfers "$TRACE" "$DIR/A" read $SIZE
}
@test "split on ext4" {
	DIR=$BATS_FILE_TMPDIR/fs/ext4
	cd "$DIR"
	rm -f part.*
	cold A
	shim_trace "$TRACE" -e "$TRANSFERS" -- split -b 32M A part.
	[ "$(cached A) $(cached part.aa) $(cached part.ab)" = "0 0 0" ]
	cat part.aa part.ab | cmp - A
	big_transfers "$TRACE" "$DIR/A" read $SIZE
	big_transfers "$TRACE" "$DIR/part.aa" write $((SIZE / 2))
	big_transfers "$TRACE" "$DIR/part.ab" write $((SIZE / 2))
	rm -f part.*
}

@test "tar reads and writes in large transfers" {
	DIR=$BATS_FILE_TMPDIR/fs/ext4
	cd "$DIR"
	rm -f B
	cold A
	shim_trace "$TRACE" -e "$TRANSFERS" -- tar c -f B -b 1 A
	[ "$(cached A)" = 0 ] || fail "$(cached A) pages of the source are in the cache"
	tar x -O -f B A | cmp - A
	big_transfers "$TRACE" "$DIR/A" read $SIZE
	[ "$(transfers "$TRACE" "$DIR/B" write | awk '$1 < 65536' | wc -l)" -le 2 ]
	# the headers before the data and the end behind it leave an unaligned tail
	[ "$(transfers "$TRACE" "$DIR/B" write | awk '{ n += $1 } END { print n }')" = "$(stat -c %s B)" ]
}

@test "a direct read leaves pages alone that others have cached" {
	cd "$BATS_FILE_TMPDIR/fs/ext4"
	local before
	cold A
	cat A >/dev/null
	before=$(cached A)
	[ "$before" -gt 16000 ]
	rm -f B
	shim dd bs=512 if=A of=B status=none
	[ "$(cached A)" = "$before" ]
	[ "$(cached B)" = 0 ]
}

@test "btrfs: reads are direct, writes large, and the copy is not left in the cache" {
	DIR=$BATS_FILE_TMPDIR/fs/btrfs
	cd "$DIR"
	rm -f B
	cold A
	shim_trace "$TRACE" -e "$TRANSFERS" -- dd bs=512 if=A of=B status=none
	[ "$(cached A)" = 0 ] || fail "$(cached A) pages of the source are in the cache"
	cmp A B
	big_transfers "$TRACE" "$DIR/A" read $SIZE
	big_transfers "$TRACE" "$DIR/B" write $SIZE
}

@test "ext4 with journalled data is not direct, which shows while a file is read and written by turns" {
	local dir=$BATS_FILE_TMPDIR/fs/journal how
	need python3
	mkdir -p "$dir"
	truncate -s 200M "$dir.img"
	mkfs.ext4 -q -F "$dir.img"
	mount -o loop,data=journal "$dir.img" "$dir"
	for how in bare shim; do
		pattern 2000000 >"$dir/f"
		"$how" BLKTUNE_REPORT="$BATS_TEST_TMPDIR/report" python3 -c 'import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
for i in range(9):
	os.write(fd, b"1" * 1000)
	os.read(fd, 1000)
	os.write(fd, b"2" * 1000)' "$dir/f"
		cp "$dir/f" "$BATS_TEST_TMPDIR/$how"
	done
	cmp "$BATS_TEST_TMPDIR/bare" "$BATS_TEST_TMPDIR/shim"
	grep -F "$dir/f" "$BATS_TEST_TMPDIR/report" | grep -w filesystem
}

@test "tmpfs is never direct" {
	local dir
	dir=$(fs_make tmpfs)
	pattern 8388608 >"$dir/A"
	cd "$dir"
	shim_trace "$TRACE" -e "$TRANSFERS" -- dd bs=512 if=A of=B status=none
	cmp A B
	run ! grep O_DIRECT "$TRACE"
	transfers "$TRACE" "$dir/B" write >/dev/null
}

@test "BLKTUNE_MODE=buffered: large transfers through the cache" {
	SETTINGS+=(BLKTUNE_MODE=buffered)
	bulk ext4 dd bs=512 if=A of=B status=none
	big_transfers "$TRACE" "$DIR/A" read $SIZE
	big_transfers "$TRACE" "$DIR/B" write $SIZE
	run ! grep O_DIRECT "$TRACE"
}

@test "BLKTUNE_MODE=observe: the program's own calls" {
	SETTINGS+=(BLKTUNE_MODE=observe)
	bulk ext4 dd bs=4k if=A of=B status=none
	[ "$(transfers "$TRACE" "$DIR/A" read | sort | uniq -c | tr -s ' ')" = " 16384 4096" ]
	[ "$(transfers "$TRACE" "$DIR/B" write | sort | uniq -c | tr -s ' ')" = " 16384 4096" ]
	run ! grep O_DIRECT "$TRACE"
}

@test "BLKTUNE=off: the program's own calls" {
	SETTINGS+=(BLKTUNE=off)
	bulk ext4 dd bs=64k if=A of=B status=none
	[ "$(transfers "$TRACE" "$DIR/B" write | sort | uniq -c | tr -s ' ')" = " 1024 65536" ]
	run ! grep O_DIRECT "$TRACE"
}

@test "BLKTUNE_BLOCK is the size of a transfer, and its ceiling" {
	SETTINGS+=(BLKTUNE_BLOCK=256K)
	bulk ext4 dd bs=512 if=A of=B status=none
	[ "$(transfers "$TRACE" "$DIR/B" write | sort | uniq -c | tr -s ' ')" = " 256 262144" ]
	[ "$(transfers "$TRACE" "$DIR/A" read | sort -n | tail -n 1)" = 262144 ]
	bulk ext4 dd bs=4M if=A of=B status=none
	[ "$(transfers "$TRACE" "$DIR/A" read | sort -n | tail -n 1)" = 262144 ]
	[ "$(transfers "$TRACE" "$DIR/B" write | sort -n | tail -n 1)" = 262144 ]
}

@test "BLKTUNE_READ_BLOCK and BLKTUNE_WRITE_BLOCK apart" {
	SETTINGS+=(BLKTUNE_READ_BLOCK=128K BLKTUNE_WRITE_BLOCK=512K)
	bulk ext4 dd bs=512 if=A of=B status=none
	[ "$(transfers "$TRACE" "$DIR/A" read | sort -n | tail -n 1)" = 131072 ]
	[ "$(transfers "$TRACE" "$DIR/B" write | sort -n | uniq -c | tr -s ' ')" = " 128 524288" ]
}

@test "BLKTUNE_MIN is the floor" {
	SETTINGS+=(BLKTUNE_MIN=512K)
	bulk ext4 dd bs=512 if=A of=B status=none
	[ "$(transfers "$TRACE" "$DIR/A" read | sort -n | head -n 1)" -ge 524288 ]
	[ "$(transfers "$TRACE" "$DIR/B" write | sort -n | head -n 1)" -ge 524288 ]
}

@test "BLKTUNE_MIN above the block size raises it" {
	SETTINGS+=(BLKTUNE_BLOCK=64K BLKTUNE_MIN=256K)
	bulk ext4 dd bs=512 if=A of=B status=none
	[ "$(transfers "$TRACE" "$DIR/B" write | sort -n | head -n 1)" -ge 262144 ]
}

@test "BLKTUNE_HOLD=never: each write reaches the kernel before it returns" {
	SETTINGS+=(BLKTUNE_HOLD=never)
	bulk ext4 dd bs=4k if=A of=B count=1000 status=none
	[ "$(transfers "$TRACE" "$DIR/B" write | sort | uniq -c | tr -s ' ')" = " 1000 4096" ]
}

@test "BLKTUNE_DIRECT_MIN: smaller files keep the cache" {
	cd "$BATS_FILE_TMPDIR/fs/ext4"
	DIR=$PWD
	head -c 900000 A >small
	cold small
	rm -f B
	shim_trace "$TRACE" -e "$TRANSFERS" -- dd bs=512 if=small of=B status=none
	cmp small B
	run ! grep O_DIRECT "$TRACE"
	big_transfers "$TRACE" "$DIR/small" read 900000
	big_transfers "$TRACE" "$DIR/B" write 900000
	SETTINGS+=(BLKTUNE_DIRECT_MIN=512K)
	cold small
	rm -f B
	shim_trace "$TRACE" -e "$TRANSFERS" -- dd bs=512 if=small of=B status=none
	cmp small B
	set_direct "$TRACE" "$DIR/small"
}

@test "F_GETFL does not show O_DIRECT, and the flag is off in the end" {
	cd "$BATS_FILE_TMPDIR/fs/ext4"
	shim "$(helper flags -D_GNU_SOURCE)" A B2 >"$BATS_TEST_TMPDIR/out"
	bare "$(helper flags -D_GNU_SOURCE)" A B2 >"$BATS_TEST_TMPDIR/bare"
	diff "$BATS_TEST_TMPDIR/bare" "$BATS_TEST_TMPDIR/out"
	grep -q . "$BATS_TEST_TMPDIR/out"
	rm -f B2
}

@test "a few bytes first, which go straight to the kernel, then bulk" {
	local list
	DIR=$BATS_FILE_TMPDIR/fs/ext4
	cd "$DIR"
	rm -f B
	cold A
	shim_trace "$TRACE" -e "$TRANSFERS" -- perl -e '
		open I, "<", "A"; open O, ">", "B";
		sysread I, $b, 100; syswrite O, $b;
		while (sysread I, $b, 512) { syswrite O, $b }'
	cmp A B
	list=$(transfers "$TRACE" "$DIR/B" write)
	[ "$(head -n 1 <<<"$list")" = 100 ]
	awk 'NR > 1 { if (NR > 2 && last < 65536) bad = 1; last = $1; sum += $1 }
		END { exit bad || sum != 67108864 - 100 }' <<<"$list" || fail "$list"
	set_direct "$TRACE" "$DIR/B"
}
