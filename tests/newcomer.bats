#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154,SC2164
# A first session: what the README's "Install" and "Is it working?" say, in a clean copy
# of the tree and a prefix of its own.
load lib

@test "build, install, probe, copy, report, uninstall; nothing is left" {
	cd "$BATS_TEST_TMPDIR"
	need jq strace
	if [ -e "$ROOT/.git" ]; then
		git -c safe.directory='*' clone -q "$ROOT" tree
	else
		mkdir tree
		cp -R "$ROOT"/[!.]* tree
		make -s -C tree clean
	fi
	make -s -C tree CFLAGS=-O1 PREFIX="$PWD/prefix" >make.out 2>&1 || fail "$(<make.out)"
	! grep -i warning make.out || fail "make warns"
	make -s -C tree CFLAGS=-O1 PREFIX="$PWD/prefix" install >make.out 2>&1 || fail "$(<make.out)"
	mv tree gone
	PATH=$PWD/prefix/bin:$PATH
	hash -r
	[ "$(blktune printenv LD_PRELOAD)" = "$PWD/prefix/lib/libblktune.so" ]
	run -0 blktune --probe . "$BATS_TEST_TMPDIR"
	[ "$(grep -c '^  direct read' <<<"$output")" = 2 ]
	run -0 blktune --show-config
	grep -q '^BLKTUNE_MODE  *direct  *default$' <<<"$output"
	pattern 3000000 >big
	run --separate-stderr -0 blktune -r cp --reflink=never big copy
	cmp big copy
	[ -z "$output" ]
	grep -q "^read .*2.9 MiB .*/big$" <<<"$stderr"
	grep -q "^write .*2.9 MiB .*/copy$" <<<"$stderr"
	mkdir reports
	LD_PRELOAD=$PWD/prefix/lib/libblktune.so BLKTUNE_REPORT="$PWD/reports/%n.%p.json" tar -cf big.tar big
	tar -df big.tar
	run -0 blktune --summary reports
	[[ $output == "blktune: 1 process, "* ]]
	make -s -C gone PREFIX="$PWD/prefix" uninstall >make.out 2>&1 || fail "$(<make.out)"
	[ -z "$(find prefix -type f -o -type l)" ] || fail "left: $(find prefix -type f)"
}
