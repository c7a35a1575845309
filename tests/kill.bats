#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# SIGKILL at any moment: what is left is a prefix of what was written, behind it by at most
# the write window; nothing else is left. A thousand times in all.
load lib

KILLS=${KILLS:-84}
WINDOW=$((8 << 20))

setup_file() {
	require_shim || return
	helper killer >/dev/null || return
	[ "$(id -u)" = 0 ] || return 0
	local fs dir
	for fs in ext4 xfs btrfs; do
		dir=$(fs_make "$fs") || return
		pattern 50000001 7 >"$dir/in"
		mkdir "$dir/out"
		(cd "$dir" && tar cf whole.tar in)
		sync -f "$dir"
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
}

# killed REFERENCE COMMAND...: the command, which writes out/out, on each filesystem; {} is
# where it works.
killed() {
	local fs dir met lag said reference=$1 sum=0
	shift
	for fs in ext4 xfs btrfs; do
		dir=$BATS_FILE_TMPDIR/fs/$fs
		cd "$dir"
		said=$(KILLER_PRELOAD=$LIB "$(helper killer)" "$SEED" "$KILLS" "$reference" out/out "$@") || fail "on $fs, seed $SEED" || return
		read -r met lag <<<"$said"
		[ "$lag" -le $((WINDOW + 20000)) ] || fail "$fs, seed $SEED: $lag bytes behind" || return
		# nothing but the file, and nobody holds a lock on it
		[ "$(find out -mindepth 1 | grep -cv '^out/out$')" = 0 ] || fail "$fs: $(find out)" || return
		[ ! -e out/out ] || flock -n out/out true || fail "$fs: a lock is left" || return
		sum=$((sum + met))
		echo "# $fs: $met of $KILLS met ${1##*/} running; at most $lag bytes behind" >&3
	done
	# else the kills came too late to say anything
	[ $sum -ge "$KILLS" ] || fail "only $sum kills met it running"
}

@test "cp" { killed in cp --reflink=never in out/out; }
@test "dd bs=512" { killed in dd if=in of=out/out bs=512 status=none; }
@test "tar" { killed whole.tar tar cf out/out in; }
@test "a writer of odd pieces" { killed in writer; }
