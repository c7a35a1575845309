#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Descriptor numbers, record locks, leases and append mode are what they are without
# the shim, and nothing of the program's is lost when it closes or covers all numbers.
load lib

setup_file() {
	require_shim || return
	DESCRIPTORS=$(helper descriptors) || return
	export DESCRIPTORS
	mkdir "$BATS_FILE_TMPDIR/dir"
}

# situation NAME: the same output, status and files.
situation() {
	local how out=() rc=() dump=() dir=$BATS_FILE_TMPDIR/dir
	for how in bare shim; do
		rm -rf "$dir"
		mkdir "$dir"
		rc+=(0)
		out+=("$("$how" "$DESCRIPTORS" "$1" "$dir" 2>&1 3>&- 4>&- </dev/null)") || rc[-1]=$?
		dump+=("$("$(helper treedump)" -s "$dir")")
	done
	[ "${rc[0]}" = 0 ] || fail "bare: ${out[0]}"
	[ -n "${out[0]}" ]
	same "${rc[0]} ${out[0]}" "${rc[1]} ${out[1]}"
	same "${dump[0]}" "${dump[1]}"
}

@test "each new descriptor gets the lowest free number" {
	situation numbers
}
@test "a number closed inside libc and used again" { situation reuse; }
@test "record locks last until the program itself closes the file" { situation locks; }
@test "leases" { situation leases; }
@test "O_APPEND" { situation append; }
@test "few descriptors allowed: the program gets all of them" { situation few; }
@test "all descriptors closed, and on" { situation close-all; }
@test "dup2 over every number, and on" { situation dup2-all; }

@test "a static program after bulk output" {
	need busybox
	local how out=()
	readelf -l "$(command -v busybox)" | grep -q INTERP && skip "busybox is not a static program here"
	cd "$BATS_TEST_TMPDIR"
	for how in bare shim; do
		rm -f f
		# bash opens f itself, writes to it and becomes busybox
		out+=("$("$how" bash -c 'exec 5>f; for ((i = 0; i < 20000; i++)); do echo "line $i" >&5; done; exec busybox md5sum f' 2>&1)")
	done
	grep -q f <<<"${out[0]}"
	same "${out[0]}" "${out[1]}"
}
