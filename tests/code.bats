#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# The sources: no warning of either compiler, nothing that the checkers find, and a plain
# word where it cannot be built.
load lib

setup() {
	cd "$BATS_TEST_DIRNAME/.."
	OUT=$BATS_TEST_TMPDIR
}

# compiles COMPILER [FLAG ...]: every source alone, each warning an error.
compiles() {
	local source bad=0
	for source in shim/*.c shim/*/*.c; do
		"$1" -O2 -std=gnu11 -D_GNU_SOURCE -D_LARGEFILE64_SOURCE -fPIC -fno-strict-aliasing -fno-builtin-abort \
			-Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Werror \
			-DLIBDIR='"/usr/local/lib"' -DVERSION='"0"' "${@:2}" -c -o "$OUT/object" "$source" || bad=1
	done
	return $bad
}

@test "gcc finds nothing" {
	need gcc
	compiles gcc -U_FORTIFY_SOURCE
}

@test "clang finds nothing" {
	need clang
	compiles clang -U_FORTIFY_SOURCE
}

@test "a warning is an error there" {
	need gcc
	echo 'int f(int a) { int b; return a; }' >"$OUT/warns.c"
	run ! gcc -Wall -Wextra -Werror -c -o "$OUT/object" "$OUT/warns.c"
}

@test "another C library is refused by one clear line" {
	need musl-gcc
	run ! musl-gcc -D_GNU_SOURCE -c -o "$OUT/object" shim/real.c
	[[ $output == *"libblktune interposes glibc's entry points"* ]]
}

@test "cppcheck finds nothing" {
	need cppcheck
	cppcheck --enable=warning,portability --error-exitcode=1 --quiet --std=c11 -D__x86_64__ -D__SIZEOF_LONG__=8 -D__GLIBC__=2 \
		-D_GNU_SOURCE --suppress=missingIncludeSystem shim
}

# One by one: several in one run get false alarms about va_list from clang-tidy 14.
@test "clang-tidy finds nothing" {
	need clang-tidy
	printf '%s\n' shim/*.c shim/*/*.c | xargs -P 2 -n 1 sh -c 'clang-tidy --quiet "$0" -- -std=gnu11 -D_GNU_SOURCE \
		-D_LARGEFILE64_SOURCE -U_FORTIFY_SOURCE -DLIBDIR="\"/usr/local/lib\"" -DVERSION="\"0\""' >"$OUT/found" 2>&1 ||
		fail "$(grep -E 'warning:|error:' "$OUT/found")"
}

@test "shellcheck finds nothing in the scripts and the tests" {
	need shellcheck
	local file list=()
	for file in bench/* packaging/* tests/* .ci/run; do
		[ -f "$file" ] || continue
		read -r line <"$file" || true
		case $file:$line in
		*.bats:* | *.bash:* | *.sh:* | *:'#!/bin/bash'* | *:'#!/bin/sh'*) list+=("$file") ;;
		esac
	done
	[ "${#list[@]}" -gt 40 ]
	shellcheck -S warning "${list[@]}"
}

@test "README's table of real programs has a row for each" {
	same "$(sed -n 's/^@test "\(.*\)" {.*/\1/p' tests/clients.bats tests/all-clients.bats)" \
		"$(sed -n '/^<!-- by make clients-table -->$/,/^<!-- end of the table -->$/s/^| \([^|]*\) | [0-9].*/\1/p' README.md)" \
		"clients of the tests (<) and of the table (>)"
}
