#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Memory: the cap on the buffers holds, and a small memory group is enough.
load lib

setup_file() {
	require_shim || return
	helper many >/dev/null || return
}

setup() {
	cd "$BATS_TEST_TMPDIR"
}

teardown() {
	rm -f many.* big copy
	[ -z "${GROUP-}" ] || rmdir "$GROUP"
}

@test "500 files at once stay under the cap" {
	local bare shim cap
	ulimit -n 1024
	bare=$("$(helper many)" 500 256)
	for cap in 64 16; do
		rm many.*
		SETTINGS=("BLKTUNE_MEMORY=${cap}M" BLKTUNE_DIRECT_MIN=64K)
		shim=$(shim "$(helper many)" 500 256)
		# the library, its tables and what each file needs beside its buffers
		[ $((shim - bare)) -le $((cap * 1024 + 8192)) ] || fail "cap $cap MiB: $((shim - bare)) KiB more than $bare"
		[ "$(cat many.* | wc -c)" = $((500 * 256 * 1024)) ]
	done
}

@test "a large file is copied in a memory group of 256 MiB" {
	need_root
	[ -w /sys/fs/cgroup/memory/memory.limit_in_bytes ] || skip "no memory cgroup of version 1 here"
	local size=1G kills
	[ "${BLKTUNE_CHECK-}" != all ] || size=4G
	GROUP=/sys/fs/cgroup/memory/blktune-test.$$
	mkdir "$GROUP"
	echo 256M >"$GROUP/memory.limit_in_bytes"
	head -c $size /dev/zero | tr '\0' x >big
	sync big
	for job in 'cp --reflink=never big copy' 'dd if=big of=copy bs=512 status=none' 'tar cf copy big'; do
		rm -f copy
		(echo $BASHPID >"$GROUP/cgroup.procs" && shim $job) || fail "$job: $?"
		[ "$(stat -c %s copy)" -ge "$(stat -c %s big)" ]
		kills=$(sed -n 's/^oom_kill //p' "$GROUP/memory.oom_control")
		[ "$kills" = 0 ] || fail "$job: $kills killed"
	done
	tail -c +513 copy | cmp -n "$(stat -c %s big)" - big
}
