#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# The power goes at any moment: the image of a filesystem, copied at once (its sharing of
# extents makes that one moment) while a program writes, mounts, is sound, and has a prefix
# of the file; after fsync, and after close with BLKTUNE_SYNC=close, it has all of it.
load lib

CUTS=${CUTS:-4}
KINDS=(ext4 xfs btrfs)

setup_file() {
	require_shim || return
	helper killer >/dev/null || return
	[ "$(id -u)" = 0 ] || return 0
	local base kind
	base=$(FS_SIZE=6G fs_make xfs) || return
	pattern 40000001 7 >"$BATS_FILE_TMPDIR/in"
	tar cf "$BATS_FILE_TMPDIR/in.tar" -C "$BATS_FILE_TMPDIR" in
	for kind in "${KINDS[@]}"; do
		truncate -s 320M "$base/$kind.raw"
		"mkfs.$kind" -q "$base/$kind.raw" || return
	done
	SEED=${SEED:-$RANDOM}
	export SEED
	echo "# seed $SEED (SEED)" >&3
}

teardown_file() {
	fs_drop
}

setup() {
	need_root
	RANDOM=$SEED
	BASE=$BATS_FILE_TMPDIR/fs/xfs
	# unmounted before it, in the order of names
	LIVE=$BATS_FILE_TMPDIR/fs/z-live CUT=$BATS_FILE_TMPDIR/fs/z-cut
	mkdir -p "$LIVE" "$CUT"
}

teardown() {
	local dir
	for dir in "$CUT" "$LIVE"; do
		! mountpoint -q "$dir" || umount "$dir"
	done
}

# check_image KIND IMAGE: by the filesystem's own checker.
check_image() {
	case $1 in
	ext4) e2fsck -fn "$2" ;;
	xfs) xfs_repair -n "$2" ;;
	btrfs) btrfs check "$2" ;;
	esac &>"$BATS_TEST_TMPDIR/check" || fail "$1: not sound: $(tail -n 5 "$BATS_TEST_TMPDIR/check")"
}

# take_cut KIND N: the image as it is now. The journal is first made to say all that it
# may, which writes no data of the file's: by an fsync of another file, on btrfs by a
# commit (BTRFS_IOC_START_SYNC and WAIT_SYNC in linux/btrfs.h).
take_cut() {
	echo >>"$LIVE/other"
	sync "$LIVE/other"
	[ "$1" != btrfs ] || perl -e 'open F, "<", $ARGV[0] and ioctl F, 0x80089418, $t = "\0" x 8 and
		ioctl F, 0x40089416, $t or die "commit: $!\n"' "$LIVE"
	cp --reflink=always "$BASE/$1.raw" "$BASE/cut.$2"
}

# judge_cut KIND N REFERENCE: prints how long the file is in it; it is a prefix. On btrfs a
# hole may follow: with its no-holes format the size on disk runs ahead of the data, bare too.
judge_cut() {
	local n hole
	# the journal is replayed by the mount
	mount -o loop "$BASE/cut.$2" "$CUT" || fail "$1: does not mount" || return
	n=$(stat -c %s "$CUT/out" 2>/dev/null || echo 0)
	hole=$n
	[ "$n" = 0 ] || hole=$(perl -e 'open F, "<", $ARGV[0] or die; print 0 + sysseek F, 0, 4' "$CUT/out") || return
	[ "$n" = 0 ] || cmp -n "$hole" "$3" "$CUT/out" || fail "$1: no prefix of $hole bytes" || return
	if [ "$1" = btrfs ]; then
		tail -c +$((hole + 1)) "$CUT/out" | tr -d '\0' | cmp - /dev/null || return
		n=$hole
	fi
	[ "$hole" = "$n" ] || fail "$1: a hole at $hole of $n bytes" || return
	umount "$CUT"
	check_image "$1" "$BASE/cut.$2" || return
	rm "$BASE/cut.$2"
	echo "$n"
}

# cuts REFERENCE COMMAND...: the command writes $LIVE/out. Cuts that all came too early or too
# late say nothing: there are others then.
cuts() {
	local met=0 round
	for ((round = 0; met == 0; round++)); do
		[ "$round" -lt 8 ] || fail "no cut met it half-way"
		cut_all "$@"
	done
}

cut_all() {
	local kind i pid lengths reference=$1 whole took
	shift
	whole=$(stat -c %s "$reference")
	for kind in "${KINDS[@]}"; do
		mount -o loop "$BASE/$kind.raw" "$LIVE"
		took=$(date +%s%N)
		shim "$@" 3>&- 4>&-
		took=$((($(date +%s%N) - took) / 1000000 + 1))
		for ((i = 0; i < CUTS; i++)); do
			rm -f "$LIVE/out"
			# an old one must not come back
			sync -f "$LIVE"
			(exec env LD_PRELOAD="$LIB" "$@") 3>&- 4>&- &
			pid=$!
			sleep "$(printf '0.%03d' $((RANDOM % (took < 1000 ? took : 999))))"
			# it may be over
			kill -STOP "$pid" 2>/dev/null || :
			take_cut "$kind" "$i"
			kill -CONT "$pid" 2>/dev/null || :
			wait "$pid" || fail "$kind: $* fails"
		done
		sync "$LIVE/out"
		take_cut "$kind" synced
		rm "$LIVE/out"
		sync -f "$LIVE"
		shim BLKTUNE_SYNC=close "$@" 3>&- 4>&-
		cp --reflink=always "$BASE/$kind.raw" "$BASE/cut.closed"
		umount "$LIVE"
		lengths=()
		for ((i = 0; i < CUTS; i++)); do
			lengths+=("$(judge_cut "$kind" "$i" "$reference")") || fail "$kind, cut $i, seed $SEED"
			[ "${lengths[-1]}" = 0 ] || [ "${lengths[-1]}" -gt $((whole - 65536)) ] || met=$((met + 1))
		done
		echo "# $kind, ${1##*/}: ${lengths[*]} of $whole bytes" >&3
		[ "$(judge_cut "$kind" synced "$reference")" = "$whole" ] || fail "$kind: not all of it after fsync"
		[ "$(judge_cut "$kind" closed "$reference")" = "$whole" ] || fail "$kind: not all of it after close"
	done
}

@test "power cut: dd bs=512" { cuts "$BATS_FILE_TMPDIR/in" dd if="$BATS_FILE_TMPDIR/in" of="$LIVE/out" bs=512 status=none; }
@test "power cut: cp" { cuts "$BATS_FILE_TMPDIR/in" cp "$BATS_FILE_TMPDIR/in" "$LIVE/out"; }
@test "power cut: tar" { cuts "$BATS_FILE_TMPDIR/in.tar" tar cf "$LIVE/out" -C "$BATS_FILE_TMPDIR" in; }
# What was drained at a pause went through the page cache: the direct transfers behind it
# must not be on the disk before it.
@test "power cut: a writer that pauses" {
	cuts "$BATS_FILE_TMPDIR/in" perl -e 'open I, "<", $ARGV[0]; open O, ">", $ARGV[1] or die;
		while (sysread I, $data, 9001) {
			syswrite O, $data or die;
			select undef, undef, undef, $n ? 0.01 : 0.12 if $n++ % 400 == 0
		}
		close O or die' "$BATS_FILE_TMPDIR/in" "$LIVE/out"
}
