#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# What fuzz.bats does, for five minutes each.
load lib
load fuzz

setup() { fuzz_setup; }

@test "settings" { fuzz_settings 300; }
@test "patterns" { fuzz_glob 300; }
@test "reports of other hosts" { fuzz_summary 300; }
@test "command lines" { fuzz_options 300; }
