#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Each call that the shim makes fails, one after the other (inject.c, faults.c): no wrong
# byte with status 0, no error lost, no hang, and a fault of the shim's own is nobody's
# business. BLKTUNE_CHECK=all: every fault at every call, not by turns.
BIG=${TEST_BIG:-${BLKTUNE_CHECK:-}}
export TEST_BIG=$BIG
load lib

# The library with the injector between it and the kernel.
setup_file() {
	require_shim || return
	local dir=$BATS_FILE_TMPDIR/inject f bad=0
	local options=(-O1 -g -std=gnu11 -D_GNU_SOURCE -D_LARGEFILE64_SOURCE -fPIC -fvisibility=hidden
		-fno-strict-aliasing -fno-builtin-abort -Wall -Wextra -I"$ROOT")
	helper faults >/dev/null || return
	mkdir -p "$dir"
	for f in "$ROOT"/shim/real.c "$ROOT"/shim/{intercept,core,engine}/*.c; do
		"${CC:-cc}" "${options[@]}" -include "$BATS_TEST_DIRNAME/inject.h" -c -o "$dir/$(basename "${f%/*}")-$(basename "$f").o" "$f" || bad=1
	done
	[ $bad = 0 ] || return
	"${CC:-cc}" "${options[@]}" -c -o "$dir/inject.o" "$BATS_TEST_DIRNAME/inject.c" || return
	"${CC:-cc}" -E -P -x c -D_GNU_SOURCE -DCALLS_NAMES_ONLY "$ROOT/shim/exports.map.in" >"$dir/exports.map" || return
	"${CC:-cc}" -shared -Wl,--wrap=real_init -Wl,--version-script="$dir/exports.map" \
		-o "$dir/inject.so" "$dir"/*.o -ldl || return
	[ "$(id -u)" = 0 ] || return 0
	FS_SIZE=200M fs_make ext4 >/dev/null || return
	pattern 1300001 >"$BATS_FILE_TMPDIR/fs/ext4/in"
	tar c -f "$BATS_FILE_TMPDIR/fs/ext4/in.tar" -C "$BATS_FILE_TMPDIR/fs/ext4" in
}

teardown_file() {
	fs_drop
}

# faulty WANT PROGRAM ARG...: the program, which makes "out", with each engine.
faulty() {
	local want=$1 engine said bad=0 quick=-q
	need_root
	shift
	[ "$BIG" != all ] || quick=
	cd "$BATS_FILE_TMPDIR/fs/ext4"
	for engine in uring aio sync dontcache; do
		local set=(BLKTUNE_BLOCK=128K BLKTUNE_DIRECT_MIN=128K)
		if [ $engine = dontcache ]; then
			set+=(BLKTUNE_MODE=dontcache)
		else
			set+=("BLKTUNE_ENGINE=$engine")
		fi
		said=$(env "${set[@]}" "$(helper faults)" $quick "$want" out "$BATS_FILE_TMPDIR/log" \
			"$BATS_FILE_TMPDIR/inject/inject.so" -- "$@" 2>&1) || bad=1
		echo "$1, $engine: $said"
		echo "# $1, $engine: ${said##*$'\n'}" >&3
		# A run that made nothing fail shows nothing.
		grep -q '^[1-9][0-9][0-9]* faults' <<<"$said" || bad=1
	done
	return $bad
}

@test "each call fails: cp" { faulty in cp in out; }
@test "each call fails: dd bs=512 conv=fsync" { faulty in dd if=in of=out bs=512 conv=fsync; }
@test "each call fails: cat" { FAULTS_STDOUT=1 faulty in cat in; }
@test "each call fails: tar" { faulty in.tar tar c -f out in; }
