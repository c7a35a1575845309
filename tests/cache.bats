#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# The page cache is left as it was found: BLKTUNE_MODE=dontcache, BLKTUNE_HOT=cache, and
# the cache of others. What is resident is counted by fincore.
load lib

SIZE=33554432

setup_file() {
	require_shim || return
	[ "$(id -u)" = 0 ] || return 0
	local fs dir
	pattern 1 >/dev/null
	for fs in ext4 xfs btrfs; do
		dir=$(fs_make "$fs") || return
		pattern $SIZE >"$dir/A"
		cp "$dir/A" "$dir/hot"
		sync -f "$dir"
	done
}

teardown_file() {
	fs_drop
}

setup() {
	need_root
	need fincore
}

# warm FILE PAGES: just these pages at its start are resident.
warm() {
	cold "$1"
	# in pieces, at random: no read-ahead
	python3 - "$1" "$2" <<-'END'
		import os, sys
		f = os.open(sys.argv[1], os.O_RDONLY)
		os.posix_fadvise(f, 0, 0, os.POSIX_FADV_RANDOM)
		for page in range(int(sys.argv[2])):
		    os.pread(f, 4096, page * 4096)
	END
	[ "$(cached "$1")" = "$2" ] || fail "$(cached "$1") pages of $1 are warm, not $2"
}

# copies FILESYSTEM: dd from A to B under the settings, cold; both equal afterwards.
copies() {
	cd "$BATS_FILE_TMPDIR/fs/$1"
	rm -f B
	cold A
	shim dd bs=5000 if=A of=B status=none
	CACHED_A=$(cached A) CACHED_B=$(cached B)
	cmp A B
}

dontcache() {
	SETTINGS=(BLKTUNE_MODE=dontcache)
	copies "$1"
	[ "$CACHED_A" = 0 ] || fail "$CACHED_A pages of the source are in the cache"
	# written behind, without waiting for the last: most are gone, and all once they are clean
	sync B
	cold A
	rm B
	shim dd bs=5000 if=A of=B conv=fsync status=none
	[ "$(cached B)" -le $((SIZE / 4096 / 4)) ] || fail "$(cached B) pages of the copy are in the cache"
	[ "$(cached A)" = 0 ] || fail "$(cached A) pages of the source are in the cache"
}

@test "dontcache on ext4: neither source nor copy stay" { dontcache ext4; }
@test "dontcache on xfs: neither source nor copy stay" { dontcache xfs; }
@test "dontcache on btrfs: neither source nor copy stay" { dontcache btrfs; }

@test "the count can fail: buffered mode keeps both" {
	SETTINGS=(BLKTUNE_MODE=buffered)
	copies ext4
	[ "$CACHED_A" -ge $((SIZE / 4096)) ]
	[ "$CACHED_B" -ge $((SIZE / 4096)) ]
}

@test "dontcache: pages that were cached before stay" {
	local fs
	SETTINGS=(BLKTUNE_MODE=dontcache)
	for fs in ext4 xfs btrfs; do
		cd "$BATS_FILE_TMPDIR/fs/$fs"
		cat hot >/dev/null
		[ "$(cached hot)" = $((SIZE / 4096)) ]
		shim dd bs=5000 if=hot of=/dev/null status=none
		[ "$(cached hot)" = $((SIZE / 4096)) ] || fail "$fs: $(cached hot) pages are left"
	done
}

hot() {
	SETTINGS=(BLKTUNE_HOT=cache)
	cd "$BATS_FILE_TMPDIR/fs/$1"
	rm -f B
	warm A 2048
	shim dd bs=5000 if=A of=B status=none
	[ "$(cached A)" = 2048 ] || fail "$(cached A) pages are resident, 2048 were"
	cmp A B
	warm A 2048
	shim cp --reflink=never A B
	[ "$(cached A)" = 2048 ] || fail "$(cached A) pages are resident after cp, 2048 were"
	cmp A B
}

@test "HOT=cache on ext4: what was resident before is what is resident after" { hot ext4; }
@test "HOT=cache on xfs: what was resident before is what is resident after" { hot xfs; }

@test "HOT=cache where the kernel has no cachestat" {
	SETTINGS=(BLKTUNE_HOT=cache)
	cd "$BATS_FILE_TMPDIR/fs/ext4"
	rm -f B
	warm A 2048
	local filter
	filter=$(helper filter)
	"$filter" ENOSYS cachestat env LD_PRELOAD="$LIB" BLKTUNE_HOT=cache dd bs=5000 if=A of=B status=none
	[ "$(cached A)" = 2048 ] || fail "$(cached A) pages are resident, 2048 were"
	cmp A B
}

@test "HOT=cache reads resident blocks from the cache, the others direct" {
	SETTINGS=(BLKTUNE_HOT=cache BLKTUNE_ENGINE=sync)
	cd "$BATS_FILE_TMPDIR/fs/ext4"
	warm A 2048
	local before after
	shim_trace "$BATS_TEST_TMPDIR/trace" -e trace=fcntl,pread64 -- dd bs=5000 if=A of=/dev/null status=none
	# the flag goes on once, where the cold part begins, and no transfer before is direct
	awk '/F_SETFL.*O_DIRECT/ { on = 1 }
		/pread64.*\/A>/ && $NF > 0 { if (on) cold += $NF; else warm += $NF }
		END { exit !(warm >= 8388608 && cold >= 20000000) }' "$BATS_TEST_TMPDIR/trace" ||
		fail "$(grep -c pread64 "$BATS_TEST_TMPDIR/trace") reads, O_DIRECT set $(grep -c O_DIRECT "$BATS_TEST_TMPDIR/trace") times"
}

@test "direct: a hot file next to the copy keeps its pages" {
	local fs
	for fs in ext4 xfs; do
		cd "$BATS_FILE_TMPDIR/fs/$fs"
		cat hot >/dev/null
		copies "$fs"
		[ "$(cached hot)" = $((SIZE / 4096)) ]
		[ "$CACHED_A" = 0 ]
		[ "$CACHED_B" = 0 ]
	done
}
