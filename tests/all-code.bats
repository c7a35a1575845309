#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# The checks of the sources that take minutes.
load lib

setup() {
	cd "$BATS_TEST_DIRNAME/.."
	OUT=$BATS_TEST_TMPDIR
}

@test "clang-tidy finds nothing" {
	need clang-tidy
	local source pids=() half=() pid bad=0
	clang-tidy --quiet shim/core/*.c shim/engine/*.c shim/real.c -- -std=gnu11 -D_GNU_SOURCE -D_LARGEFILE64_SOURCE \
		-U_FORTIFY_SOURCE >"$OUT/core" 2>&1 &
	pids+=($!)
	clang-tidy --quiet shim/intercept/*.c shim/tool/*.c -- -std=gnu11 -D_GNU_SOURCE -D_LARGEFILE64_SOURCE \
		-U_FORTIFY_SOURCE -DLIBDIR='"/usr/local/lib"' -DVERSION='"0"' >"$OUT/rest" 2>&1 &
	pids+=($!)
	for pid in "${pids[@]}"; do
		wait "$pid" || bad=1
	done
	[ $bad = 0 ] || fail "$(grep -E 'warning:|error:' "$OUT/core" "$OUT/rest")"
}
