#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Whatever the settings, files come out the same: each mode, each way of holding, and
# limits so low that small files go through every edge.
load lib

ALL=(ext4 btrfs)

setup_file() {
	require_shim || return
	[ "$(id -u)" = 0 ] || return 0
	local fs dir
	export TMPDIR=$BATS_FILE_TMPDIR
	pattern 1 >/dev/null
	mkdir "$BATS_FILE_TMPDIR/src"
	make_sources "$BATS_FILE_TMPDIR/src"
	for fs in "${ALL[@]}"; do
		dir=$(fs_make "$fs") || return
		cp -a "$BATS_FILE_TMPDIR/src" "$dir/src"
	done
	sync
}

teardown_file() {
	fs_drop
}

setup() {
	need_root
	FS=("${ALL[@]/#/$BATS_FILE_TMPDIR/fs/}")
}

some_jobs() {
	SETTINGS=("$@")
	everywhere small -t job_cp -p
	everywhere small "" job_cp --reflink=never
	everywhere small "" job_shell_cat dash
	everywhere small "" job_dd bs=3000
	everywhere small "" job_dd bs=512 count=3000
	everywhere small "" job_dd ibs=70000 obs=10k
	everywhere small "" job_dd_over bs=3000 skip=3 seek=7 conv=notrunc
	everywhere small "" job_split -b 100000
	everywhere small "" job_tar_c
	everywhere small -t job_tar_x --xattrs
	everywhere small -t job_rsync -aS
}

@test "BLKTUNE=off" { some_jobs BLKTUNE=off; }
@test "BLKTUNE_MODE=buffered" { some_jobs BLKTUNE_MODE=buffered; }
@test "BLKTUNE_MODE=observe" { some_jobs BLKTUNE_MODE=observe; }
@test "BLKTUNE_HOLD=always" { some_jobs BLKTUNE_HOLD=always; }
@test "BLKTUNE_HOLD=never" { some_jobs BLKTUNE_HOLD=never; }
@test "direct from 4 KiB on, in blocks of 64 KiB" {
	some_jobs BLKTUNE_DIRECT_MIN=4K BLKTUNE_MIN=4K BLKTUNE_BLOCK=64K
}
@test "direct from the first byte on, always held" {
	some_jobs BLKTUNE_DIRECT_MIN=0 BLKTUNE_MIN=512 BLKTUNE_BLOCK=4K BLKTUNE_HOLD=always
}
@test "blocks that are no multiple of a page, or less than one" {
	local read
	for read in 512 6656 66K; do
		SETTINGS=(BLKTUNE_MIN=512 "BLKTUNE_READ_BLOCK=$read" BLKTUNE_WRITE_BLOCK=1M)
		everywhere small -t job_cp -p
		everywhere small "" job_dd bs=3000
		SETTINGS=(BLKTUNE_MIN=512 BLKTUNE_READ_BLOCK=1M "BLKTUNE_WRITE_BLOCK=$read")
		everywhere small -t job_cp -p
		everywhere small "" job_dd bs=3000
	done
}
@test "read and write blocks unequal, little memory" {
	some_jobs BLKTUNE_READ_BLOCK=64K BLKTUNE_WRITE_BLOCK=256K BLKTUNE_MEMORY=512K
}
