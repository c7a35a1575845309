#!/usr/bin/env bats
# As kill.bats: a thousand kills in all.
load lib

@test "a thousand kills" {
	need_root
	local said
	said=$(KILLS=84 BLKTUNE_LIB=$LIB bats "$BATS_TEST_DIRNAME/kill.bats") || fail "$said"
	grep "of 84 met" <<<"$said" >&3
}
