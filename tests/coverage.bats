#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2034,SC2164
# Which part of the library's and the launcher's lines a few of the tests reach: those that
# are quick for what they reach. `make coverage` does it with all.
load lib

QUICK=(doors errors stdio kinds launcher report summary filters progress cache engines full jump exerciser room limits blockdev memory)

@test "lines that tests reach" {
	need gcc
	need gcov
	local tree=$BATS_TEST_TMPDIR/tree line files=("${QUICK[@]/#/tests/}")
	mkdir "$tree"
	tar -C "$ROOT" -cf - Makefile README.md shim tests bench packaging | tar -C "$tree" -xf -
	# a tree of its own, as it adds up what it counts, and that tree's library
	env -u TEST_LIBRARY "$tree/tests/coverage" "${files[@]/%/.bats}" >"$tree/table" || fail "$(<"$tree/table")"
	cat "$tree/table"
	line=$(grep '^all of shim/' "$tree/table")
	echo "# $(head -n 1 "$tree/table" | sed 's/, in .*//')" >&3
	echo "# $line" >&3
	awk '{ exit !($(NF - 1) > 85) }' <<<"$line" || fail "$line"
}
