#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# The sparse file of 6 GiB by programs that read or write all of it: takes minutes.
load lib

ALL=(ext4 xfs btrfs tmpfs overlay ext4-4096)

setup_file() {
	require_shim || return
	[ "$(id -u)" = 0 ] || return 0
	local fs dir
	export TMPDIR=$BATS_FILE_TMPDIR FS_SIZE=15G
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

# The images give back what the last test wrote.
teardown() {
	local dir
	for dir in ext4 xfs btrfs ext4-4096 ext4-under-overlay; do
		fstrim "$BATS_FILE_TMPDIR/fs/$dir"
	done
}

setup() {
	need_root
	FS=("${ALL[@]/#/$BATS_FILE_TMPDIR/fs/}")
}

@test "rsync -S of 6 GiB with holes" { everywhere sparse -t job_rsync -aS; }
@test "rsync of 6 GiB" { everywhere sparse -t job_rsync -a; }
@test "cat of 6 GiB into a file" { everywhere sparse "" job_cat; }
@test "split of 6 GiB in two, and cat of the parts" { everywhere sparse "" job_sparse_split; }
@test "cpio refuses 6 GiB alike, and takes 3 GiB there and back" { everywhere sparse "" job_sparse_cpio; }
@test "pax of 6 GiB there and back" {
	need pax
	everywhere sparse -t job_sparse_pax
}
