#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Where a filesystem shares extents between a file and its copy, it still does.
load lib

setup_file() {
	require_shim || return
	[ "$(id -u)" = 0 ] || return 0
	local fs dir
	pattern 1 >/dev/null
	for fs in xfs btrfs; do
		dir=$(fs_make "$fs") || return
		pattern 33554432 >"$dir/A"
		sync -f "$dir"
	done
}

teardown_file() {
	fs_drop
}

setup() {
	need_root
}

used() {
	stat -f -c '%b %f %S' "$1" | awk '{ print ($1 - $2) * $3 }'
}

# shares PROGRAM ARG...: makes B of A on both, with hardly any space used by it. Bare
# first: a program that copies bare proves nothing.
shares() {
	local dir how before after
	for dir in "$BATS_FILE_TMPDIR"/fs/{xfs,btrfs}; do
		cd "$dir"
		for how in bare shim; do
			rm -f B
			sync -f .
			before=$(used .)
			"$how" "$@"
			sync -f .
			after=$(used .)
			cmp A B
			[ $((after - before)) -lt 4000000 ] || fail "$how $* on ${dir##*/}: $((after - before)) bytes more in use"
			filefrag -v B | grep -q shared || fail "$how $* on ${dir##*/}: no shared extent"
		done
	done
}

@test "cp" { shares cp A B; }
@test "cp --reflink=always" { shares cp --reflink=always A B; }
@test "cp -p" { shares cp -p A B; }
@test "cat > file" { shares dash -c 'cat A > B'; }
@test "install" { shares install A B; }
@test "copy_file_range in pieces" {
	local python=/usr/bin/python3
	need $python
	shares $python -c 'import os
a, b = os.open("A", os.O_RDONLY), os.open("B", os.O_WRONLY | os.O_CREAT)
while os.copy_file_range(a, b, 1 << 20): pass'
}
@test "mv in place moves nothing" {
	local dir
	for dir in "$BATS_FILE_TMPDIR"/fs/{xfs,btrfs}; do
		cd "$dir"
		cp A C
		shim mv C D
		cmp A D
		rm D
	done
}
