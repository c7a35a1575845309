# The fuzzing of fuzz.bats and all-fuzz.bats.
# shellcheck shell=bash disable=SC2154

fuzz_setup() {
	need clang
	FUZZ=$BATS_TEST_DIRNAME/fuzz
	SHIM=$BATS_TEST_DIRNAME/../shim
	# What a run finds out stays for the next one.
	FOUND=$BATS_TEST_DIRNAME/../build/fuzz
	echo 'int LLVMFuzzerTestOneInput(const void *d, long n) { return !d * n * 0; }' >"$BATS_TEST_TMPDIR/none.c"
	clang -fsanitize=fuzzer,address -o "$BATS_TEST_TMPDIR/none" "$BATS_TEST_TMPDIR/none.c" 2>/dev/null ||
		skip "needs libFuzzer (libclang-rt-14-dev)"
}

# fuzz TARGET SECONDS SOURCE...: runs tests/fuzz/TARGET.c with these sources of shim/'s for so long.
# It has to go through the kept inputs and at least ten thousand more; what it finds is shown.
fuzz() {
	local target=$1 seconds=$2 dir=$FOUND/$1 runs file
	mkdir -p "$dir/corpus"
	rm -f "$dir"/crash-* "$dir"/timeout-* "$dir"/oom-*
	clang -g -O1 -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-o "$dir/target" "$FUZZ/$target.c" "${@:3}" || return
	"$dir/target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=1024 -max_len=4096 -dict="$FUZZ/words" \
		-artifact_prefix="$dir/" "$dir/corpus" "$FUZZ/corpus/$target" >"$dir/log" 2>&1 || {
		grep -aE 'does not hold|ERROR|runtime error|SUMMARY' "$dir/log"
		for file in "$dir"/crash-* "$dir"/timeout-* "$dir"/oom-*; do
			[ ! -f "$file" ] || { echo "the input is in $file:" && head -c 300 "$file" | od -A d -c; }
		done
		return 1
	}
	runs=$(sed -nE 's/^Done ([0-9]+) runs.*/\1/p' "$dir/log")
	echo "$target: $runs inputs"
	[ "$runs" -ge 10000 ]
}

fuzz_settings() { fuzz settings "$1" "$SHIM/core/glob.c" "$SHIM/core/text.c"; }
fuzz_glob() { fuzz glob "$1" "$SHIM/core/glob.c" "$SHIM/core/text.c"; }
fuzz_summary() { fuzz summary "$1" "$SHIM/core/table.c" "$SHIM/core/text.c"; }
fuzz_options() { fuzz options "$1" "$SHIM/tool/options.c" "$SHIM/core/config.c" "$SHIM/core/glob.c" "$SHIM/core/text.c"; }
