#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# A sparse file of 6 GiB: offsets beyond 4 GiB, and holes that stay holes.
load lib

ALL=(ext4 xfs btrfs tmpfs overlay ext4-4096)

setup_file() {
	require_shim || return
	[ "$(id -u)" = 0 ] || return 0
	local fs dir
	export TMPDIR=$BATS_FILE_TMPDIR FS_SIZE=20G
	pattern 1 >/dev/null
	for fs in "${ALL[@]}"; do
		dir=$(fs_make "$fs") || return
		mkdir -p "$dir/src/sparse"
		make_sparse "$dir/src/sparse/f"
	done
}

teardown_file() {
	fs_drop
}

setup() {
	need_root
	FS=("${ALL[@]/#/$BATS_FILE_TMPDIR/fs/}")
}

@test "the source is what the tests need: 6 GiB with few blocks" {
	local dir
	for dir in "${FS[@]}"; do
		[ "$(stat -c %s "$dir/src/sparse/f")" = 6442450948 ]
		[ "$(stat -c %b "$dir/src/sparse/f")" -lt 2000 ]
	done
}

@test "cp of 6 GiB with holes" { everywhere sparse "" job_cp; }
@test "cp --reflink=never of 6 GiB with holes" { everywhere sparse "" job_cp --reflink=never; }
@test "cp -p --sparse=always of 6 GiB with holes" { everywhere sparse -t job_cp -p --sparse=always; }
@test "mv of 6 GiB with holes across filesystems" { everywhere sparse -t job_mv; }
@test "tar -S and back of 6 GiB with holes" { everywhere sparse -t job_sparse_tar; }
@test "dd on both sides of 4 GiB" { everywhere sparse "" job_sparse_dd; }

@test "install -m 4755 of 6 GiB with holes" { everywhere sparse "" job_install -m 4755 -p; }
@test "cat of 6 GiB into a file" {
	FS=("$BATS_FILE_TMPDIR/fs/ext4")
	everywhere sparse "" job_cat
}
