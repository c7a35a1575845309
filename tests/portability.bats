#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2153,SC2030,SC2031,SC2034,SC2164
# The same library from other compilers, with other options and for other machines: built without a
# warning, the same names exported, and programs do the same with it as without.
load lib

SMALL="BLKTUNE_MIN=4K BLKTUNE_BLOCK=8K BLKTUNE_DIRECT_MIN=4K"

setup_file() {
	require_shim || return
	pattern 5000000 3 >"$BATS_FILE_TMPDIR/in"
}

teardown_file() {
	fs_drop
}

# build NAME MAKE-ARGUMENT...: the library and the launcher, in a tree of their own: LIB and LAUNCHER.
build() {
	local tree=$BATS_FILE_TMPDIR/$1
	[ -x "$tree/blktune" ] || {
		mkdir -p "$tree"
		cp -R "$ROOT/Makefile" "$ROOT/shim" "$tree"
		make -s -j2 -C "$tree" "${@:2}"
	}
	LIB=$tree/libblktune.so LAUNCHER=$tree/blktune
}

names() {
	nm -D --defined-only "$1" | awk '{ print $3 }' | sort
}

# program NAME SOURCE CC OPTION...: a program of the tests' own, built by another compiler.
program() {
	local out=$BATS_FILE_TMPDIR/$1
	[ -x "$out" ] || "${@:3}" -o "$out" "$BATS_TEST_DIRNAME/$2" -pthread
	PROGRAM=$out
}

# exercise OPTION...: what tests/exerciser does with PROGRAM and LIB.
exercise() {
	TMPDIR=$BATS_TEST_TMPDIR EXERCISER=$PROGRAM BLKTUNE_LIB=$LIB \
		run "$BATS_TEST_DIRNAME/exerciser" -n 400 -w each "$@"
	[ "$status" != 77 ] || skip "$output"
	echo "$output"
	[ "$status" = 0 ]
}

# own_calls: the names that the library exports and its own code calls: there are to be none, its
# calls are those of real.c. A fortified piece would call the checking forms, which are ours, too.
own_calls() {
	local tree=${LIB%/*}
	find "$tree/build/shim" -name '*.o' ! -path '*/tool/*' -exec nm -u {} + | awk '$1 == "U" { print $2 }' | sort -u >"$tree/undefined"
	grep -qx dlsym "$tree/undefined"
	names "$LIB" | sort -u | comm -12 - "$tree/undefined"
}

# ---------------------------------------------------------------- other options, another compiler

@test "fortified: built without a warning, works, and does not call itself" {
	build fortified CFLAGS="-O2 -g -Werror -D_FORTIFY_SOURCE=3"
	# what is checked is the library's own copying, not its wrappers
	nm -D --undefined-only "$LIB" | grep -q snprintf_chk
	[ -z "$(own_calls)" ] || fail "$(own_calls)"
	diff <(names "$ROOT/libblktune.so") <(names "$LIB")
	program exerciser exerciser.c "${CC:-cc}" -std=gnu11 -O2
	exercise -s 400 -c 12 -e "$SMALL"
	exercise -s 500 -c 6
}

@test "clang: built without a warning, works, and does not call itself" {
	need clang
	build clang CC=clang CFLAGS="-O2 -g -Werror -D_FORTIFY_SOURCE=3"
	[ -z "$(own_calls)" ] || fail "$(own_calls)"
	diff <(names "$ROOT/libblktune.so") <(names "$LIB")
	program exerciser exerciser.c "${CC:-cc}" -std=gnu11 -O2
	exercise -s 600 -c 12 -e "$SMALL"
	exercise -s 700 -c 6
}

# ---------------------------------------------------------------- i386

X86_CC=i686-linux-gnu-gcc
X86_ROOT=/usr/i686-linux-gnu/lib
# Without options of its own: off_t and time_t have 32 bits.
X86=("$X86_CC" -std=gnu11 -O2 "-Wl,--dynamic-linker=$X86_ROOT/ld-linux.so.2" "-Wl,-rpath,$X86_ROOT")
WIDE=-D_FILE_OFFSET_BITS=64

# x86: builds for i386; BOTH is this library for programs of that kind, and the usual one for
# those of the machine's own, as the loader takes them.
x86() {
	need $X86_CC
	echo 'int main(void) { return 0; }' >"$BATS_TEST_TMPDIR/none.c"
	"${X86[@]}" -o "$BATS_TEST_TMPDIR/none" "$BATS_TEST_TMPDIR/none.c"
	"$BATS_TEST_TMPDIR/none" || skip "programs for i386 do not run here"
	build i386 CC=$X86_CC CFLAGS="-O2 -g -Werror"
	local at=$BATS_FILE_TMPDIR/both
	mkdir -p "$at"/lib/{i386,x86_64}-linux-gnu
	cp "$LIB" "$at/lib/i386-linux-gnu/libblktune.so"
	cp "$ROOT/libblktune.so" "$at/lib/x86_64-linux-gnu/libblktune.so"
	BOTH=$at'/$LIB/libblktune.so'
}

@test "i386: built without a warning; its names are libc's, and with each come its kin" {
	x86
	local ours theirs
	readelf -h "$LIB" | grep -q "Machine:.*80386"
	ours=$(exported "$LIB") theirs=$(exported "$X86_ROOT/libc.so.6")
	strangers "$ours" "$theirs"
	whole_families "$ours" "$theirs"
	[ -z "$(own_calls)" ] || fail "$(own_calls)"
	"$LAUNCHER" --probe "$BATS_TEST_TMPDIR" | grep -E '^ *engine +(uring|aio|sync)'
}

@test "i386: programs built in all fortified and large-file forms, and streams" {
	x86
	local form n=0 dir=$BATS_TEST_TMPDIR
	for form in "" $WIDE "$WIDE -D_TIME_BITS=64" "-D_FORTIFY_SOURCE=2" "$WIDE -D_FORTIFY_SOURCE=2" "-D_LARGEFILE64_SOURCE -DUSE64"; do
		n=$((n + 1))
		# shellcheck disable=SC2086
		program x86-forms$n forms.c "${X86[@]}" $form
		"$PROGRAM" "$dir/bare" >"$dir/bare.out"
		env LD_PRELOAD="$LIB" BLKTUNE_REPORT="$dir/report.json" "$PROGRAM" "$dir/shim" >"$dir/shim.out"
		grep -q "size 3000000" "$dir/bare.out"
		diff "$dir/bare.out" "$dir/shim.out"
		cmp "$dir/bare" "$dir/shim"
		jq -e 'any(.files[]; .write.largest >= 500000)' "$dir/report.json"
	done
}

@test "i386: over 4 GiB, and where files end for programs with 32 bits" {
	x86
	local form n=0 set how at
	cd "$BATS_TEST_TMPDIR"
	for form in "" $WIDE; do
		n=$((n + 1))
		# shellcheck disable=SC2086
		program x86-wide$n wide.c "${X86[@]}" $form
		for set in "" "$SMALL" BLKTUNE_HOLD=always BLKTUNE_ENGINE=aio BLKTUNE_ENGINE=sync; do
			rm -f bare* shim* report.json
			"$PROGRAM" bare >bare.out
			env $set LD_PRELOAD="$LIB" BLKTUNE_REPORT="$PWD/report.json" "$PROGRAM" shim >shim.out
			grep -qx "pieces $([ -z "$form" ] && echo 1000 || echo 3000)" bare.out
			same "$(<bare.out)" "$(<shim.out)" "$form $set"
			cmp bare.copy shim.copy
			for how in bare shim; do
				for at in 2046 4094; do
					dd if=$how bs=1M skip=$at count=4 status=none | cksum
				done >$how.sum
			done
			diff bare.sum shim.sum
			jq -e --arg path "$PWD/shim" 'any(.files[]; .path == $path and .write.transfers < .write.calls / 4)' report.json
		done
	done
}

@test "i386: the exerciser sees no difference" {
	x86
	LIB=$BOTH
	program x86-exerciser exerciser.c "${X86[@]}" $WIDE
	exercise -s 100 -c 12 -e "$SMALL"
	exercise -s 200 -c 6
	exercise -s 300 -c 6 -e "$SMALL BLKTUNE_ENGINE=aio BLKTUNE_REPORT=$BATS_TEST_TMPDIR/r.json"
	program x86-exerciser-narrow exerciser.c "${X86[@]}"
	exercise -s 400 -c 12 -e "$SMALL"
	exercise -s 500 -c 6 -e "$SMALL BLKTUNE_ENGINE=sync"
}

@test "i386: large direct transfers of small reads and writes" {
	x86
	cd "$BATS_TEST_TMPDIR"
	cat >copy.c <<-'END'
		#include <fcntl.h>
		#include <unistd.h>
		int main(int argc, char **argv)
		{
			static char b[512];
			int in = open(argv[1], O_RDONLY), out = open(argv[argc - 1], O_WRONLY | O_CREAT, 0644);
			ssize_t n;
			while ((n = read(in, b, sizeof(b))) > 0)
				if (write(out, b, n) != n)
					return 1;
			return close(out);
		}
	END
	"${X86[@]}" -o copy copy.c
	cp "$BATS_FILE_TMPDIR/in" in
	sync in
	env LD_PRELOAD="$LIB" BLKTUNE_REPORT="$PWD/report.json" ./copy in out
	cmp in out
	jq -e '.files | length == 2 and all(.mode == "direct" and .read.calls + .write.calls > 9000 and .read.transfers + .write.transfers < 30)' report.json || fail "$(<report.json)"
}

# ---------------------------------------------------------------- aarch64

ARM_CC=aarch64-linux-gnu-gcc
ARM_ROOT=/usr/aarch64-linux-gnu

# arm: builds for aarch64, and sets ARM, what runs a program of that machine's.
arm() {
	local qemu
	need $ARM_CC
	qemu=$(type -P qemu-aarch64 || type -P qemu-aarch64-static) || skip "needs qemu-aarch64"
	ARM=("$qemu" -L "$ARM_ROOT")
	build aarch64 CC=$ARM_CC CFLAGS="-O2 -g -Werror"
}

@test "aarch64: built without a warning, and the same names are exported" {
	arm
	local ours=$ROOT/libblktune.so
	readelf -h "$LIB" | grep -q "Machine:.*AArch64"
	[ "$(uname -m)" != x86_64 ] || diff <(names "$ours") <(names "$LIB")
	[ -z "$(own_calls)" ] || fail "$(own_calls)"
}

@test "aarch64: the launcher says what is there" {
	arm
	# the emulator has neither io_uring nor Linux AIO
	"${ARM[@]}" "$LAUNCHER" --probe "$BATS_TEST_TMPDIR" | grep -E '^ *engine +sync \(no io_uring here: .*; no aio: '
	"${ARM[@]}" "$LAUNCHER" --show-config | grep -E '^BLKTUNE_ENGINE +auto'
}

@test "aarch64: programs built in all fortified and large-file forms, and streams" {
	arm
	local form n=0 dir=$BATS_TEST_TMPDIR
	for form in "" "-D_FILE_OFFSET_BITS=64" "-O2 -D_FORTIFY_SOURCE=2" "-D_LARGEFILE64_SOURCE -DUSE64"; do
		n=$((n + 1))
		# shellcheck disable=SC2086
		program arm-forms$n forms.c $ARM_CC $form
		"${ARM[@]}" "$PROGRAM" "$dir/bare" >"$dir/bare.out"
		"${ARM[@]}" -E "LD_PRELOAD=$LIB,BLKTUNE_MODE=buffered,BLKTUNE_REPORT=$dir/report.json" "$PROGRAM" "$dir/shim" >"$dir/shim.out"
		grep -q "size 3000000" "$dir/bare.out"
		diff "$dir/bare.out" "$dir/shim.out"
		cmp "$dir/bare" "$dir/shim"
		grep -q '"engine":"' "$dir/report.json"
	done
}

@test "aarch64: bytes of streams come to the shim" {
	arm
	local dir=$BATS_TEST_TMPDIR
	cat >"$dir/copy.c" <<-'END'
		#include <stdio.h>
		int main(int argc, char **argv)
		{
			FILE *in = fopen(argv[1], "r"), *out = fopen(argv[argc - 1], "w");
			for (int c; (c = getc(in)) != EOF;)
				putc(c, out);
			return fclose(out) || fclose(in);
		}
	END
	$ARM_CC -O1 -o "$dir/copy" "$dir/copy.c"
	"${ARM[@]}" -E "LD_PRELOAD=$LIB,BLKTUNE_MODE=buffered,BLKTUNE_REPORT=$dir/report.json" \
		"$dir/copy" "$BATS_FILE_TMPDIR/in" "$dir/out"
	cmp "$BATS_FILE_TMPDIR/in" "$dir/out"
	jq -e '.files | map(select(.mode == "buffered")) | length == 2 and all(.read.largest + .write.largest >= 1000000)' "$dir/report.json"
}

@test "aarch64: a block device is read and written directly" {
	need_root
	need strace
	arm
	local dir=$BATS_TEST_TMPDIR dev
	truncate -s 16M "$BATS_FILE_TMPDIR/device.img"
	dev=$(losetup -f --show "$BATS_FILE_TMPDIR/device.img")
	cat >"$dir/copy.c" <<-'END'
		#include <fcntl.h>
		#include <unistd.h>
		int main(int argc, char **argv)
		{
			static char b[1000];
			int in = open(argv[1], O_RDONLY), out = open(argv[argc - 1], O_WRONLY | O_CREAT, 0644);
			ssize_t n;
			while ((n = read(in, b, sizeof(b))) > 0)
				if (write(out, b, n) != n)
					return 1;
			return fsync(out) || (fcntl(out, F_GETFL) & O_DIRECT) || close(out);
		}
	END
	$ARM_CC -D_GNU_SOURCE -O1 -o "$dir/copy" "$dir/copy.c"
	strace -f -y -s 0 -o "$dir/trace" -e trace=fcntl,pwrite64,pread64 \
		"${ARM[@]}" -E "LD_PRELOAD=$LIB,BLKTUNE_REPORT=$dir/report.json" "$dir/copy" "$BATS_FILE_TMPDIR/in" "$dev"
	cmp -n 5000000 "$BATS_FILE_TMPDIR/in" "$dev"
	# the number of O_DIRECT is another one there
	grep -E "F_SETFL, .*O_DIRECT" "$dir/trace" | grep -F "<$dev>"
	jq -e --arg dev "$dev" '.engine == "sync" and any(.files[]; .path == $dev and .mode == "direct" and .write.transfers < 6)' "$dir/report.json"
	"${ARM[@]}" -E "LD_PRELOAD=$LIB,BLKTUNE_REPORT=$dir/report.json" "$dir/copy" "$dev" "$dir/back"
	cmp "$dev" "$dir/back"
	jq -e --arg dev "$dev" 'any(.files[]; .path == $dev and .mode == "direct" and .read.transfers < 40)' "$dir/report.json"
}

# Bad memory is not seen by the emulator's madvise, and it cannot exec its own kind.
NOT_EMULATED=badcall,exec_self,vfork_cat,cat_into,spawn,system,popen,pass_to_child

@test "aarch64: the exerciser sees no difference" {
	arm
	program arm-exerciser exerciser.c $ARM_CC -std=gnu11 -O2 -Wall -Wextra -Werror
	exercise -u "${ARM[*]}" -N $NOT_EMULATED -s 100 -c 6 -e "$SMALL BLKTUNE_MODE=buffered"
	exercise -u "${ARM[*]}" -N $NOT_EMULATED -s 200 -c 6
}

@test "aarch64: the exerciser sees no difference on btrfs, where reads are direct" {
	need_root
	arm
	program arm-exerciser exerciser.c $ARM_CC -std=gnu11 -O2 -Wall -Wextra -Werror
	exercise -u "${ARM[*]}" -N $NOT_EMULATED -f btrfs -s 300 -c 6 -e "$SMALL"
}
