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

@test "streams of C++, some of which read and write the number of a FILE themselves" {
	need g++
	local size how work
	cat >job.cc <<'EOF'
#include <cstdio>
#include <ext/stdio_filebuf.h>
#include <fcntl.h>
#include <fstream>
#include <iostream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
static long size_of(const char *path)
{
	struct stat s;
	return stat(path, &s) ? -1 : s.st_size;
}
int main()
{
	std::ifstream in("in", std::ios::binary);
	std::ofstream out("out", std::ios::binary);
	char b[777];
	long sum = 0;
	// pieces, then single characters, then the buffer as a whole
	for (int i = 0; i < 500 && in.read(b, sizeof(b)); i++) {
		out.write(b, in.gcount());
		sum += in.gcount();
	}
	std::cout << sum << ' ' << in.tellg() << ' ' << out.tellp() << '\n';
	for (int c, i = 0; i < 5000 && (c = in.get()) != EOF; i++)
		out.put(c);
	out.flush();
	std::cout << size_of("out") << '\n';
	in.clear();
	in.seekg(100);
	out << in.rdbuf();
	out.close();
	std::cout << size_of("out") << ' ' << out.fail() << '\n';

	std::fstream both("out", std::ios::in | std::ios::out | std::ios::binary);
	std::string line;
	both.seekg(0, std::ios::end);
	std::cout << both.tellg() << '\n';
	both.seekp(1000);
	both << "written in the middle";
	both.seekg(995);
	both.read(b, 30);
	both.clear();
	both.seekp(0, std::ios::end);
	both << "at the end" << std::endl;
	std::cout << size_of("out") << ' ' << std::string(b, 30).substr(5, 21) << '\n';
	both.close();

	// one description by a FILE, by its number, and by a C++ stream on either
	FILE *f = fopen("both", "w+");
	for (int i = 0; i < 20000; i++)
		fprintf(f, "line %d\n", i);
	fflush(f);
	{
		__gnu_cxx::stdio_filebuf<char> by_file(f, std::ios::in | std::ios::out | std::ios::binary);
		std::iostream s(&by_file);
		s.seekg(0);
		std::getline(s, line);
		s.seekp(0, std::ios::end);
		s << "by the stream\n" << std::flush;
		std::cout << line << ' ' << ftell(f) << ' ' << lseek(fileno(f), 0, SEEK_CUR) << '\n';
	}
	int fd = open("both", O_RDWR | O_APPEND);
	{
		__gnu_cxx::stdio_filebuf<char> by_number(fd, std::ios::in | std::ios::out | std::ios::binary);
		std::iostream s(&by_number);
		long n = 0;
		while (std::getline(s, line))
			n++;
		s.clear();
		s << "by the number\n" << std::flush;
		std::cout << n << ' ' << line << ' ' << size_of("both") << '\n';
	}
	std::ofstream more("both", std::ios::app);
	more << "appended\n";
	more.close();
	std::ifstream again("both");
	std::string last;
	while (std::getline(again, line))
		last = line;
	std::cout << last << ' ' << size_of("both") << ' ' << std::ifstream("no/such").fail() << '\n';
}
EOF
	g++ -O1 -w -o job job.cc
	for size in 0 1000 65536 1048576 3000000; do
		SETTINGS=()
		work=()
		for how in bare shim small observe; do
			case $how in
			small) SETTINGS=(BLKTUNE_MIN=4K BLKTUNE_BLOCK=8K BLKTUNE_DIRECT_MIN=4K) how=shim ;;
			observe) SETTINGS=(BLKTUNE_MODE=observe) how=shim ;;
			esac
			rm -f out both
			head -c "$size" "$BATS_FILE_TMPDIR/in" >in
			work+=("$("$how" ./job 2>&1; echo "status $?"; cksum out both)")
			grep -q "^status 0" <<<"${work[0]}"
			same "${work[0]}" "${work[-1]}" "$size bytes, bare (<) and ${SETTINGS[*]} (>)"
		done
	done
}

@test "streams of C++ read and write in large direct transfers" {
	need g++ jq
	cp "$BATS_FILE_TMPDIR/in" in
	printf '%s\n' '#include <fstream>' 'int main() { std::ifstream in("in"); std::ofstream out("out"); char c; while (in.get(c)) out.put(c); }' >job.cc
	g++ -O1 -w -o job job.cc
	shim BLKTUNE_REPORT="$PWD/report.json" ./job
	cmp in out
	large in read report.json
	large out write report.json
}
