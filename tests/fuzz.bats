#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Inputs that a fuzzer makes up: variables, patterns, reports of other hosts, command lines.
# No fault, no line too many, nothing in a line that a terminal would obey (tests/fuzz/*.c).
load lib
load fuzz

setup() { fuzz_setup; }

@test "a minute of settings; patterns, reports and command lines meanwhile" {
	local job=$BATS_TEST_TMPDIR/others rc=0
	(fuzz_glob 18 && fuzz_summary 18 && fuzz_options 18) >"$job" 2>&1 3>&- &
	local pid=$!
	fuzz_settings 60 || rc=1
	wait $pid || rc=1
	cat "$job"
	return $rc
}

@test "a fault is found, and its input shown" {
	cat >"$BATS_TEST_TMPDIR/fault.c" <<-'END'
		#include "fuzz.h"
		int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
		{
			must(size < 2 || memcmp(data, "BL", 2));
			return 0;
		}
	END
	mkdir -p "$BATS_TEST_TMPDIR/corpus/fault"
	cp "$FUZZ"/fuzz.h "$FUZZ"/words "$BATS_TEST_TMPDIR"
	FUZZ=$BATS_TEST_TMPDIR FOUND=$BATS_TEST_TMPDIR/found
	run fuzz fault 60
	[ "$status" = 1 ]
	[[ $output == *'does not hold: size < 2'*'the input is in'*'B   L'* ]]
}
