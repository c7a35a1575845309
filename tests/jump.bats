#!/usr/bin/env bats
# Signal handlers that leave by siglongjmp in the middle of a call: nothing is torn, lost
# or locked for good, and the file goes on in large transfers.
load lib

setup_file() {
	require_shim && helper jump -pthread >/dev/null
}

# jumps HOW COUNT [WHAT ...]: with each engine.
jumps() {
	local engine how=$1 count=$2 most=$(($2 / 10))
	need jq
	cd "$BATS_TEST_TMPDIR" || return
	timeout 60 "$(helper jump -pthread)" "$how" file "$count" "${@:3}" || fail "without the shim: $?" || return
	for engine in uring aio sync; do
		shim BLKTUNE_ENGINE=$engine BLKTUNE_BLOCK=64K BLKTUNE_REPORT=r.json \
			timeout 60 "$(helper jump -pthread)" "$how" file "$count" "${@:3}" || fail "$engine: $?" || return
		# but what raise(3) drains, and the blocks that a handler came in on
		[ "$how" = out ] || most=$count
		jq -es --argjson most "$most" '
			[.[].files[]? | select(.path | endswith("/file"))][0].write
				| .transfers - $most <= .bytes / 65536 + 100' r.json >/dev/null ||
			fail "$engine: $(cat r.json)" || return
		rm r.json
	done
}

@test "out of a handler" { jumps out 2000; }

@test "out of a handler, while another thread waits for the file" { jumps out 2000 thread; }

@test "out of a handler on a stack of its own" { jumps out 2000 thread stack; }

@test "within a handler: what it came in on goes on" {
	jumps within 2000 thread
	jumps within 2000 stack
}

@test "out of raise(3): what is written afterwards is held again" {
	jumps raise 2000
	jumps raise 500 thread
}
