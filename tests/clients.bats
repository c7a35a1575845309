#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Real programs, with their usual options: the same output, status and files with the shim
# as without it, with default settings and with all files direct in small blocks; what they
# bring back is what was there; and the report says of each what README.md's table does.
load lib
load clients

setup_file() {
	need_root
	clients_setup
}

teardown_file() {
	clients_drop
}

setup() { clients_begin; }

@test "cp -a" { client cp direct; }
@test "cp -a --reflink=never --sparse=never" { client cp_read_write direct; }
@test "mv from xfs to ext4" { client mv direct; }
@test "install -p" { client install direct; }
@test "cat FILE >OUT" { client cat none kernel; }
@test "split -b 3000000" { client split direct; }
@test "dd, 512 bytes and bs=10k" { client dd direct; }
@test "tar -c, -d, -x" { client tar direct; }
@test "tar -cz, -xz" { client tar_z direct; }
@test "bsdtar -c, -x" { client bsdtar direct; }
@test "cpio -o, -i" { client cpio direct; }
@test "pax -w, -r" { client pax direct; }
@test "afio -o, -i" { client afio direct; }
@test "dar -c, -t, -x" { client dar direct; }
@test "dump, restore" { client dump direct; }
@test "dump of a mounted filesystem, restore" { client dump_mounted direct; }
@test "rsync -a, then changed files" { client rsync direct; }
@test "xfsdump, xfsrestore" { client xfsdump direct; }
@test "e2image -ra, -Q" { client e2image direct; }
@test "partclone -c, restore" { client partclone direct; }
@test "sqlite3 .backup, .dump, vacuum into" { client sqlite_backup none locked; }
@test "sqlite3 at work, with locks" { client sqlite_write none locked; }
@test "mbuffer" { client mbuffer none sync; }
@test "buffer" { client buffer none forked; }
@test "pv" { client pv direct; }
@test "gzip, gunzip" { client gzip direct; }
@test "pigz, unpigz" { client pigz direct; }
@test "xz, unxz" { client xz direct; }
@test "bzip2, bunzip2" { client bzip2 direct; }
@test "zstd, unzstd" { client zstd direct; }
@test "sha256sum, -c" { client sha256sum direct; }
@test "sort -o, in memory and with files" { client sort direct; }
@test "zip, unzip" { client zip direct; }
@test "7z a, x" { client 7z direct; }
@test "mksquashfs, unsquashfs" { client squashfs direct; }
@test "xorriso" { client xorriso direct; }
@test "git clone, fsck" { client git direct; }
@test "tar -S, -W, -M" { client tar_more direct; }
@test "cpio -p, pax -rw" { client pass direct; }
@test "rsync -W --inplace, -S" { client rsync_inplace direct; }
@test "tee" { client tee direct; }
@test "md5sum, b2sum, cksum, sum" { client sums direct; }
@test "lz4, unlz4" { client lz4 direct; }
@test "openssl enc, dgst" { client openssl direct; }
@test "genisoimage" { client genisoimage direct; }
@test "ddrescue" { client ddrescue direct; }
@test "dc3dd, dcfldd" { client dc3dd direct; }
@test "fsarchiver savedir, restdir" { client fsarchiver direct; }
@test "python3, shutil and tarfile" { client python direct; }
@test "perl, File::Copy and lines" { client perl direct; }
