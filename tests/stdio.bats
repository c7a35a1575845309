#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# stdio streams: what a program sees of them is libc's, their bytes are large direct transfers.
load lib

setup_file() {
	require_shim || return
	helper streams -w -pthread >/dev/null || return
	pattern 5000000 >"$BATS_FILE_TMPDIR/in"
}

setup() {
	cd "$BATS_TEST_TMPDIR"
}

# streams JOB: on files of several sizes, bare and under the shim: what it printed,
# its status, the file that it read and the one that it wrote.
streams() {
	local size how said=()
	for size in 0 1000 65536 1048576 3000000; do
		said=()
		for how in bare shim; do
			rm -f out
			head -c "$size" "$BATS_FILE_TMPDIR/in" >in
			said+=("$("$how" "$(helper streams)" "$1" in out 2>&1; echo "status $?"; cksum in; [ ! -e out ] || cksum out)")
		done
		grep -q "^status 0" <<<"${said[0]}"
		same "${said[0]}" "${said[1]}" "$1 of $size bytes"
	done
}

for_each_setting() {
	streams "$1"
	SETTINGS=(BLKTUNE_MIN=4K BLKTUNE_BLOCK=8K BLKTUNE_DIRECT_MIN=4K)
	streams "$1"
	SETTINGS=(BLKTUNE_MODE=observe)
	streams "$1"
}

@test "byte by byte" { for_each_setting bytes; }
@test "blocks of all sizes, and where they leave the descriptor" { for_each_setting blocks; }
@test "lines" { for_each_setting lines; }
@test "seeks, flushes and raw reads between them" { for_each_setting seeks; }
@test "buffers of the program's own" { for_each_setting buffers; }
@test "freopen, and appending" { for_each_setting again; }
@test "wide characters, and ccs=" { for_each_setting wide; }
@test "one description by its number and by streams" { for_each_setting mixed; }
@test "a child, stat and another stream look, and exit flushes" { for_each_setting looked-at; }
@test "standard output that libc has written before" { for_each_setting standard; }
@test "errors" { for_each_setting errors; }
@test "threads on one stream" { for_each_setting threads; }

# large FILE read|write REPORT: its transfers were direct, and of 64 KiB or more in the mean.
large() {
	jq -e --arg path "$PWD/$1" --arg way "$2" '.files[] | select(.path == $path) | .mode == "direct"
		and .[$way].transfers > 0 and .[$way].bytes / .[$way].transfers >= 65536' "$3" >/dev/null ||
		fail "$1, $2: $(jq -c '.files[]' "$3")"
}

# through OUT PROGRAM ARG...: reads in and writes OUT ("" none) by streams, in large direct transfers.
through() {
	local how out=$1 said=()
	shift
	need jq "$1"
	cp "$BATS_FILE_TMPDIR/in" in
	for how in bare shim; do
		rm -rf made
		[ "$how" = bare ] || SETTINGS+=(BLKTUNE_REPORT=report.json)
		said+=("$("$how" "$@" | cksum; [ -z "$out" ] || cksum <"$out")")
		[ -z "$out" ] || mv "$out" made
	done
	same "${said[0]}" "${said[1]}" "$*"
	large in read report.json
	[ -z "$out" ] || large "$out" write report.json
}

@test "sort reads and writes in large direct transfers" { through out sort in -o out; }
@test "zstd" { through in.zst zstd -q in; }
# It rests between its blocks for longer than a writer may that is not to be a slow one.
@test "bzip2" {
	SETTINGS=(BLKTUNE_HOLD=always)
	through in.bz2 bzip2 -k in
}
@test "sha256sum" { through "" sha256sum in; }
@test "md5sum" { through "" md5sum in; }
@test "od" { through "" od -A d -t x1 in; }

@test "programs that read wide characters" {
	need rev column
	seq 100000 | sed 's/$/ é €/' >in
	for job in 'rev in' 'column -t in' 'LC_ALL=C.UTF-8 wc -m in' 'LC_ALL=C.UTF-8 rev in'; do
		same "$(bare sh -c "$job" | cksum)" "$(shim sh -c "$job" | cksum)" "$job"
	done
}

@test "standard input and output as files, when that is asked for" {
	need jq
	local job
	cp "$BATS_FILE_TMPDIR/in" in
	cat >std.c <<-'END'
		#include <stdio.h>
		#include <unistd.h>
		int main(void)
		{
			int c;
			while ((c = getchar()) != EOF)
				putchar(c);
			fflush(stdout);
			write(1, "raw\n", 4);
			printf("and by the stream\n");
			return 0;
		}
	END
	"${CC:-cc}" -o std std.c
	for job in 'cat' 'dd bs=512 status=none' './std' 'sort' 'gzip -n'; do
		bare sh -c "exec $job" <in >bare
		SETTINGS=(BLKTUNE_STDIO=on "BLKTUNE_REPORT=report.json")
		shim sh -c "exec $job" <in >shim
		cmp bare shim
		large in read report.json
		large shim write report.json
		SETTINGS=()
	done
	# in the middle of both, and not at all without the setting
	(dd bs=1000 count=1 status=none; bare cat) <in >bare
	SETTINGS=(BLKTUNE_STDIO=on)
	(dd bs=1000 count=1 status=none; shim cat) <in >shim
	cmp bare shim
	SETTINGS=("BLKTUNE_REPORT=report.json")
	shim cat <in >shim
	cmp in shim
	jq -e '.files == []' report.json
}
