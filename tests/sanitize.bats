#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# The library under AddressSanitizer, UndefinedBehaviorSanitizer, ThreadSanitizer and
# valgrind: it does the same, and they find nothing.
load lib
load sanitize

setup_file() {
	require_shim || return
	pattern 9000000 >"$BATS_FILE_TMPDIR/in"
}

setup() {
	cd "$BATS_TEST_TMPDIR"
	cp "$BATS_FILE_TMPDIR/in" in
}

@test "address, undefined: cp, dd, tar, split and cat" {
	address
	local small
	for small in "" "$SMALL"; do
		rm -rf out* parts*
		export LD_PRELOAD=$SAN ${small:+$small}
		cp --reflink=never in out
		dd if=in of=out2 bs=513 status=none
		tar -cf out.tar --mtime=@1 in
		split -b 1000003 in parts.
		cat parts.* >out3
		sort -o sorted in
		unset LD_PRELOAD ${!BLKTUNE@}
		cmp in out
		cmp in out2
		cmp in out3
		tar -xOf out.tar | cmp - in
		sort in | cmp - sorted
	done
	clean
}

@test "address, undefined: the exerciser" {
	address
	PROGRAM=$(helper exerciser -std=gnu11 -pthread)
	exercised -n 300 -s 40 -c 12 -e "$SMALL"
	exercised -n 300 -s 60 -c 6 -e "$SMALL BLKTUNE_ENGINE=aio BLKTUNE_REPORT=$BATS_TEST_TMPDIR/r.json"
	exercised -n 300 -s 70 -c 6
	clean
}

@test "address, undefined: streams" {
	address
	local job
	head -c 1048576 "$BATS_FILE_TMPDIR/in" >in
	helper streams -w -pthread >/dev/null
	for job in bytes blocks lines seeks buffers again mixed looked-at threads; do
		env $SMALL LD_PRELOAD="$SAN" "$(helper streams)" $job in out >/dev/null
	done
	clean
}

@test "threads: several on one file, on its number, and forks between" {
	threads
	threaded shared-offset
	local how
	for how in writers readers handler cancel forking close-written close-read; do
		rm -f f*
		run timeout 120 env $SMALL LD_PRELOAD="$SAN" "$PROGRAM" "$BATS_TEST_TMPDIR/f" $how
		[ "$status $output" = "0 whole" ] || fail "$how: status $status: $output"
	done
	clean
}

@test "threads: one ring, one context, or none; one stream" {
	threads
	local engine
	threaded engines
	for engine in uring aio sync; do
		timeout 120 env LD_PRELOAD="$SAN" BLKTUNE_ENGINE=$engine "$PROGRAM" threads in out
	done
	threaded streams
	head -c 1048576 "$BATS_FILE_TMPDIR/in" >in
	timeout 120 env $SMALL LD_PRELOAD="$SAN" "$PROGRAM" threads in out
	clean
}

@test "threads: the exerciser" {
	threads
	threaded exerciser
	exercised -N $NOT_THERE -n 200 -s 905 -c 1 -w threads -e "$SMALL"
	exercised -N $NOT_THERE -n 100 -s 900 -c 12 -e "$SMALL BLKTUNE_REPORT=$BATS_TEST_TMPDIR/r.json BLKTUNE_RATE=500M"
	clean
}

@test "what they would find is told" {
	threads
	cat >race.c <<-'END'
		int count;
		void add(void) { count++; }
	END
	cat >main.c <<-'END'
		#include <pthread.h>
		void add(void);
		static void *work(void *p) { for (int i = 0; i < 1000; i++) add(); return p; }
		int main(void)
		{
			pthread_t t;
			pthread_create(&t, 0, work, 0);
			work(0);
			return pthread_join(t, 0);
		}
	END
	gcc -g -fsanitize=thread -shared -fPIC -o libracy.so race.c
	gcc -g -fsanitize=thread -o main main.c -L. -lracy -Wl,-rpath,"$PWD"
	./main
	run ! clean libracy
	clean libblktune
	address
	echo 'int main(int n, char **v) { (void)v; return ((char *)__builtin_malloc(3))[n + 2]; }' >bad.c
	gcc -g -w -fsanitize=address -o bad bad.c
	run ./bad
	run ! clean
	rm found.*
	echo 'int main(int n, char **v) { (void)v; return (n + 0x7ffffffe + n) & 1; }' >bad.c
	gcc -g -w -fsanitize=undefined -o bad bad.c
	run ./bad
	run ! clean
}

@test "valgrind: cp, dd and tar" {
	need valgrind
	local small
	head -c 3000001 "$BATS_FILE_TMPDIR/in" >in
	for small in "" "$SMALL"; do
		rm -f out*
		# it does not know io_uring: the next engine falls in
		for job in "cp --reflink=never in out" "dd if=in of=out2 bs=777 status=none" "tar -cf out.tar in"; do
			env $small LD_PRELOAD="$LIB" valgrind -q --error-exitcode=99 $job 2>said || fail "$job: $(head -c 3000 said)"
			[ ! -s said ] || fail "$job: $(head -c 3000 said)"
		done
		cmp in out
		cmp in out2
		tar -xOf out.tar | cmp - in
	done
}
