#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Times, modes, attributes and capabilities that are set on a file with data pending
# are not undone by that data.
load lib

setup_file() {
	require_shim || return
	[ "$(id -u)" = 0 ] || return 0
	helper stamp >/dev/null || return
	local fs dir
	pattern 1 >/dev/null
	for fs in ext4 xfs btrfs; do
		dir=$(fs_make "$fs") || return
		mkdir "$dir/src"
		pattern 700 1 >"$dir/src/small"
		pattern 100001 2 >"$dir/src/middle"
		pattern 5000001 3 >"$dir/src/large"
		setfattr -n user.note -v something "$dir/src/large"
		touch -d "1999-12-31 23:59:59.987654321" "$dir"/src/*
		chmod 4711 "$dir/src/large"
		chmod 2751 "$dir/src/middle"
		chmod 1640 "$dir/src/small"
	done
}

teardown_file() {
	fs_drop
}

setup() {
	need_root
}

# on_each COMMAND...: run in a directory "out" of each filesystem, bare and under the
# shim; times, modes, attributes and content alike.
on_each() {
	local dir how dump
	for dir in "$BATS_FILE_TMPDIR"/fs/*/; do
		dump=()
		for how in bare shim shim-always; do
			[ "$how" = shim-always ] && SETTINGS=(BLKTUNE_HOLD=always) || SETTINGS=()
			cd "$dir"
			rm -rf out
			mkdir out
			RUN=${how%-always} "$@"
			dump+=("$("$(helper treedump)" -t out)")
		done
		grep -q 'size=5000001' <<<"${dump[0]}"
		same "${dump[0]}" "${dump[1]}" "$* in $dir"
		same "${dump[0]}" "${dump[2]}" "$* in $dir, held"
	done
}

copy_p() { "$RUN" cp -p src/* out; }
copy_a() { "$RUN" cp -a --reflink=never src/. out; }
tar_x() { tar c --xattrs -C src . | "$RUN" tar x --xattrs -p -C out; }
tar_file_x() {
	tar c --xattrs -f archive.tar -C src .
	"$RUN" tar x --xattrs -p -f archive.tar -C out
}
install_m() { "$RUN" install -p -m 4755 -o 1 -g 1 src/* out; }
unpack_cpio() { (cd src && find . -type f | cpio -o --quiet -H newc) | (cd out && "$RUN" cpio -i -m --quiet); }
rsync_a() { "$RUN" rsync -aX src/ out/; }
caps() {
	cp --preserve=mode src/* out
	setcap cap_net_raw+ep out/large
	mkdir out/copy
	"$RUN" cp -a out/large out/copy/large
	touch -d 2000-01-01 out/* out/copy/*
	getcap out/copy/large | grep -q cap_net_raw || fail "$RUN: the capability is not copied"
}
# Writing to it drops the capability and the set-user-id bit of a file, as it should.
caps_dropped() {
	cp --preserve=mode src/* out
	setcap cap_net_raw+ep out/middle
	"$RUN" dd if=src/large of=out/middle bs=512 conv=notrunc status=none
	touch -d 2000-01-01 out/*
	[ -z "$(getcap out/middle)" ] || fail "$RUN: the capability is still there"
}
touch_r() {
	"$RUN" bash -c 'for f in small middle large; do cat "src/$f" >"out/$f"; touch -r "src/$f" "out/$f"; done'
}
perl_utime() {
	"$RUN" perl -e 'for my $f (qw(small middle large)) {
		open my $in, "<", "src/$f" or die; open my $out, ">", "out/$f" or die;
		while (sysread $in, my $b, 777) { syswrite $out, $b }
		utime 1e9, 1e9, "out/$f" or die; chmod 04751, "out/$f" or die; close $out or die }'
}
stamp() {
	local f
	for f in small middle large; do
		"$RUN" "$(helper stamp)" "src/$f" "out/$f"
	done
}

@test "cp -p" { on_each copy_p; }
@test "cp -a --reflink=never" { on_each copy_a; }
@test "tar x from a pipe" { on_each tar_x; }
@test "tar x from a file" { on_each tar_file_x; }
@test "install -p -m 4755" { on_each install_m; }
@test "cpio -i -m" { on_each unpack_cpio; }
@test "rsync -aX" { on_each rsync_a; }
@test "a file with capabilities" {
	need setcap getcap
	on_each caps
}
@test "capabilities are dropped by a write, as always" {
	need setcap getcap
	on_each caps_dropped
}
@test "touch -r right after the output" { on_each touch_r; }
@test "utime and chmod by path before close" { on_each perl_utime; }
@test "futimens, fchmod, fchown, fsetxattr before close" { on_each stamp; }
