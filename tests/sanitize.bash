# For sanitize.bats: the library built with gcc's sanitizers. The wrappers and real.c are not.
# shellcheck shell=bash disable=SC2034,SC2154

# What the exerciser may not do there: start programs that lack the sanitizer's runtime, or
# hand a process of threads on.
NOT_THERE=badcall,exec_self,vfork_cat,cat_into,spawn,system,popen,pass_to_child,fork,fork_turns
SMALL="BLKTUNE_MIN=4K BLKTUNE_BLOCK=8K BLKTUNE_DIRECT_MIN=4K"

# instrumented NAME FLAGS LINK: SAN is its path. The runtime asks libc for this and that
# before it is ready: what it meets first, the wrappers, is built without.
instrumented() {
	local tree=$BATS_FILE_TMPDIR/$1 source plain=()
	SAN=$tree/libblktune.so
	[ ! -f "$SAN" ] || return 0
	echo 'int main(void) { return 0; }' >"$BATS_TEST_TMPDIR/none.c"
	gcc $2 -o "$BATS_TEST_TMPDIR/none" "$BATS_TEST_TMPDIR/none.c" 2>/dev/null || skip "this compiler has no $1 sanitizer"
	mkdir "$tree"
	cp -R "$ROOT/Makefile" "$ROOT/shim" "$tree"
	for source in "$tree"/shim/intercept/*.c "$tree/shim/real.c"; do
		source=${source#"$tree"/}
		plain+=("build/${source%.c}.o")
	done
	make -s -j2 -C "$tree" CC=gcc CFLAGS="-O1 -g" "${plain[@]}" &&
		make -s -j2 -C "$tree" CC=gcc CFLAGS="-O1 -g -fno-omit-frame-pointer $2" LDFLAGS="$3" libblktune.so
}

address() {
	need gcc
	instrumented address "-fsanitize=address,undefined" \
		"-fsanitize=address,undefined -Wl,--push-state,--no-as-needed -lasan -lubsan -Wl,--pop-state"
	rm -f "$BATS_TEST_TMPDIR"/found.*
	# what is mapped for good is no leak
	export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0:log_path=$BATS_TEST_TMPDIR/found
	export UBSAN_OPTIONS=print_stacktrace=1:log_path=$BATS_TEST_TMPDIR/found
}

threads() {
	need gcc
	instrumented thread -fsanitize=thread ""
	rm -f "$BATS_TEST_TMPDIR"/found.*
	# The runtime looks names up by calls that come to the library, whose lock may be held.
	export TSAN_OPTIONS=symbolize=0:die_after_fork=0:exitcode=0:log_path=$BATS_TEST_TMPDIR/found
}

# threaded NAME: tests/NAME.c, built with the thread sanitizer: PROGRAM.
threaded() {
	PROGRAM=$BATS_FILE_TMPDIR/$1.threaded
	[ -x "$PROGRAM" ] || gcc -std=gnu11 -O1 -g -w -fsanitize=thread -o "$PROGRAM" "$BATS_TEST_DIRNAME/$1.c" -pthread
}

# clean: nothing was found. A race counts where the library is on top of one of its two
# stacks: what the test programs do among themselves is theirs.
clean() {
	local file found=0
	for file in "$BATS_TEST_TMPDIR"/found.*; do
		[ -f "$file" ] || continue
		if grep -q ThreadSanitizer "$file"; then
			awk -v lib="${1:-libblktune}" '
				/^WARNING/ { top = 0 }
				/#0 / && index($0, lib) { top = 1 }
				{ text = text $0 "\n" }
				/^SUMMARY/ { if (top) printf "%s", text; text = "" }' "$file" >"$BATS_TEST_TMPDIR/ours"
			[ -s "$BATS_TEST_TMPDIR/ours" ] || continue
			frames "$BATS_TEST_TMPDIR/ours"
		else
			cat "$file"
		fi
		found=$((found + 1))
	done
	[ $found = 0 ]
}

# Where that was.
frames() {
	local line
	while IFS= read -r line; do
		if [[ $line =~ libblktune.so\+(0x[0-9a-f]+) ]]; then
			echo "${line%% (*} $(addr2line -fpe "$SAN" "${BASH_REMATCH[1]}")"
		else
			echo "$line"
		fi
	done <"$1"
}

# exercised [OPTION...]: the exerciser sees no difference between bare and the instrumented library.
exercised() {
	local rc=0
	TMPDIR=$BATS_TEST_TMPDIR EXERCISER=$PROGRAM BLKTUNE_LIB=$SAN "$BATS_TEST_DIRNAME/exerciser" -w each "$@" || rc=$?
	[ $rc != 77 ] || skip "this filesystem cannot be made here"
	[ $rc = 0 ]
}
