#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# A program that moves no bulk data cannot tell that the library is loaded: hardly any
# system call more, no descriptor, thread, handler or output.
load lib

setup_file() {
	require_shim || return
	helper quiet >/dev/null || return
	echo 'int blktune_test_empty;' >"$BATS_FILE_TMPDIR/empty.c"
	"${CC:-cc}" -shared -fPIC -o "$BATS_FILE_TMPDIR/empty.so" "$BATS_FILE_TMPDIR/empty.c"
}

setup() {
	cd "$BATS_TEST_TMPDIR"
	touch a b c
}

# count LIBRARY PROGRAM ARG...: its system calls and its children's.
count() {
	local lib=$1
	shift
	strace -f -c -o count -E LD_PRELOAD="$lib" "$@" >/dev/null
	awk '$NF == "total" { print $4 }' count
}

# cheap MOST PROGRAM ARG...: at most so many system calls more than with an empty library.
# One or two of them are the loader's, for the larger of the two.
cheap() {
	local most=$1 empty ours
	shift
	empty=$(count "$BATS_FILE_TMPDIR/empty.so" "$@")
	ours=$(count "$LIB" "$@")
	[ "$empty" -gt 10 ]
	[ "$ours" -gt 10 ]
	[ $((ours - empty)) -le "$most" ] ||
		fail "$*: $ours system calls, $empty with an empty library"
}

@test "system calls of true" { cheap 2 true; }
@test "system calls of ls -l" { cheap 4 ls -l; }
@test "system calls of a shell that writes a line and shows it" { cheap 8 sh -c 'echo x >f; cat f'; }
@test "system calls of a shell that appends to a file and copies it" { cheap 14 sh -c 'echo x >>f; cat f >g; cp g h'; }
# 20 files are written, and looked at where they were written
@test "system calls of small writes and reads" { cheap 100 "$(helper quiet)" .; }
@test "system calls of a pipeline" { cheap 10 sh -c 'ls | sort | head -n 1'; }

@test "the count can fail: a library that calls" {
	echo '#include <unistd.h>
	__attribute__((constructor)) static void many(void) { for (int i = 0; i < 30; i++) getppid(); }' >many.c
	"${CC:-cc}" -shared -fPIC -o many.so many.c
	LIB=$PWD/many.so
	run ! cheap 20 true
}

@test "no descriptor, thread, handler or blocked signal" {
	same "$(bare "$(helper quiet)" .)" "$(shim "$(helper quiet)" .)"
}

@test "none after bulk data either, but what the program has" {
	local how out=() SETTINGS=(BLKTUNE_ENGINE=sync)
	pattern 8000000 >in
	for how in bare shim; do
		out+=("$("$how" perl -e '
			open I, "<", "in"; open O, ">", "out"; while (sysread I, $b, 4096) { syswrite O, $b } close I; close O;
			opendir D, "/proc/self/fd"; print join(" ", sort grep /\d/, readdir D), "\n";
			opendir D, "/proc/self/task"; print scalar(grep /\d/, readdir D), " threads\n"' 3>&- 4>&-)")
		cmp in out
	done
	grep -q "^0 1 .*2" <<<"${out[0]}"
	grep -qx "1 threads" <<<"${out[0]}"
	same "${out[0]}" "${out[1]}"
}

@test "the environment and the arguments are the program's" {
	same "$(bare LD_PRELOAD= env | grep -v LD_PRELOAD | sort)" "$(shim env | grep -v LD_PRELOAD | sort)"
}

@test "small programs say the same" {
	local job how out
	printf 'one\ntwo\nthree\n' >a
	for job in 'cat a' 'wc a' 'sort a' 'head -n 1 a' 'tail -n 1 a' 'grep two a' 'sed -n 2p a' 'od -c a' 'cmp a a' \
		'stat -c "%n %s %a %B" a' 'find . -type f' 'ls -la --time-style=+ .' 'cat nothing' 'ls nothing' 'df -h --output=target /' \
		'{ head -n 1 >/dev/null; cat; } <a' '{ read x; echo "$x"; cat; } <a' 'cat <a; (exit 7)' 'tee d <a; cat d' 'dd if=a bs=1 count=5 status=none'; do
		out=()
		for how in bare shim; do
			rm -f d
			out+=("$("$how" sh -c "$job" 2>&1; echo "$?")")
		done
		same "${out[0]}" "${out[1]}" "$job"
	done
}
