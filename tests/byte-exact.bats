#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# What copying programs leave behind is the same with the shim as without: content,
# size, mode, times, attributes and holes, on each filesystem.
load lib

ALL=(ext4 xfs btrfs tmpfs overlay ext4-4096)

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

@test "cp" { everywhere small "" job_cp; }
@test "cp -p" { everywhere small -t job_cp -p; }
@test "cp -a" { everywhere small -t job_cp -a; }
@test "cp --sparse=always" { everywhere small "" job_cp --sparse=always; }
@test "cp --sparse=never" { everywhere small "" job_cp --sparse=never; }
@test "cp --reflink=never" { everywhere small "" job_cp --reflink=never; }
@test "mv across filesystems" { everywhere small -t job_mv; }
@test "install" { everywhere small "" job_install; }
@test "install -p -m 4755" { everywhere small -t job_install -p -m 4755; }
@test "cat > file" { everywhere small "" job_cat; }
@test "cat > file, opened by dash" { everywhere small "" job_shell_cat dash; }
@test "cat > file, opened by bash" { everywhere small "" job_shell_cat bash; }
@test "dd bs=512" { everywhere small "" job_dd bs=512; }
@test "dd bs=4k" { everywhere small "" job_dd bs=4k; }
@test "dd bs=10k" { everywhere small "" job_dd bs=10k; }
@test "dd bs=64k" { everywhere small "" job_dd bs=64k; }
@test "dd bs=1M" { everywhere small "" job_dd bs=1M; }
@test "dd bs=3000" { everywhere small "" job_dd bs=3000; }
@test "dd ibs and obs unequal" {
	everywhere small "" job_dd ibs=3000 obs=70000
	everywhere small "" job_dd ibs=1M obs=512
}
@test "dd conv=fsync" { everywhere small "" job_dd bs=10k conv=fsync; }
@test "dd conv=sync pads as it should" { everywhere small "" job_dd bs=3000 conv=sync; }
@test "dd conv=sparse" { everywhere small "" job_dd bs=4k conv=sparse; }
@test "dd with flags of its own" {
	everywhere small "" job_dd bs=10k oflag=dsync count=20
	everywhere small "" job_dd bs=10k oflag=append conv=notrunc
	everywhere small "" job_dd bs=10000 skip=777 count=30001 iflag=skip_bytes,count_bytes
	# on all but the last file system, whose sectors are larger
	FS=("${FS[@]:0:3}")
	everywhere small "" job_dd bs=4096 iflag=direct
}
@test "dd skip and seek into an existing file, cut there" {
	everywhere small "" job_dd_over bs=3000 skip=3 seek=7
	everywhere small "" job_dd_over bs=4k skip=1 seek=300
}
@test "dd skip and seek into an existing file, conv=notrunc" {
	everywhere small "" job_dd_over bs=512 skip=3 seek=7 conv=notrunc
	everywhere small "" job_dd_over bs=4k skip=3 seek=5 conv=notrunc
	everywhere small "" job_dd_over bs=3000 skip=3 seek=900 conv=notrunc
	everywhere small "" job_dd_over bs=1M seek=1 conv=notrunc
}
@test "split and cat" {
	everywhere small "" job_split -b 100000
	everywhere small "" job_split -b 1M
}
@test "tar c" {
	everywhere small "" job_tar_c
	everywhere small "" job_tar_c -S -b 1
}
@test "tar x" { everywhere small -t job_tar_x --xattrs; }
@test "cpio -o" {
	everywhere small "" job_cpio_o -H newc
	everywhere small "" job_cpio_o -H odc --io-size=65536
}
@test "cpio -i" { everywhere small -t job_cpio_i; }
@test "rsync" { everywhere small -t job_rsync -aX; }
@test "rsync -S" { everywhere small -t job_rsync -aS; }
@test "rsync over older files" {
	everywhere small -t job_rsync_over -a --no-whole-file
	everywhere small -t job_rsync_over -a --inplace --no-whole-file
}

@test "64 MiB and a bit: cp, dd and tar" {
	everywhere big -t job_cp -p
	everywhere big "" job_dd bs=10k
	FS=("${FS[@]:0:3}")
	everywhere big "" job_cp --reflink=never
	everywhere big "" job_dd bs=512
	everywhere big "" job_dd ibs=3000 obs=1M
	everywhere big "" job_cat
	everywhere big -t job_tar_x
}
