#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# The calls that few programs make, each with bytes of a file pending: they return what they
# return without the shim, and others see of the file what they would (tests/doors.c).
load lib

setup_file() {
	require_shim || return
	helper doors -D_GNU_SOURCE -w -pthread -lutil -lrt >/dev/null || return
	pattern 1 >"$BATS_FILE_TMPDIR/in"
}

@test "waits: whoever ends them has seen all of the file" { job "$(helper doors)" waits </dev/null; }
@test "descriptors of other kinds, on a number that was closed unseen" { job "$(helper doors)" makers </dev/null; }
@test "other programs, signals to oneself, ends of every kind" { job "$(helper doors)" ends </dev/null; }
@test "prints by number, by streams that end together, and a limit" { job "$(helper doors)" prints </dev/null; }

@test "a limit on file size does not reach back to what was written before it" { job "$(helper doors)" limits </dev/null; }
@test "calls by number on a path: what is pending is there before" { job "$(helper doors)" numbers </dev/null; }
@test "calls that fail leave a file that is read ahead where it was" { job "$(helper doors)" refused </dev/null; }

@test "fortified forms" {
	local dir=$BATS_TEST_TMPDIR
	"${CC:-cc}" -D_GNU_SOURCE -w -O2 -D_FORTIFY_SOURCE=2 -o "$dir/fortified" "$BATS_TEST_DIRNAME/doors.c" -pthread -lutil -lrt
	nm -D "$dir/fortified" | grep -q __dprintf_chk
	job "$dir/fortified" waits </dev/null
	job "$dir/fortified" prints </dev/null
}
