#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Variables, paths, patterns and command lines that nobody would write: the program's work
# is done all the same, and at most one line says what was expected.
load lib

setup_file() {
	require_shim || return
	pattern 3000000 >"$BATS_FILE_TMPDIR/in"
}

setup() {
	cd "$BATS_TEST_TMPDIR"
	IN=$BATS_FILE_TMPDIR/in
	TOOL=$ROOT/blktune
	mapfile -t VARIABLES < <("$TOOL" --show-config | awk '/^BLKTUNE/ { print $1 }')
	[ ${#VARIABLES[@]} -gt 20 ]
}

# unhurt LINES ENTRY...: a copy with these in its environment; so many lines on stderr, each
# readable, and nothing else.
unhurt() {
	local lines=$1 said
	rm -f out
	env LD_PRELOAD="$LIB" "${@:2}" dd if="$IN" of=out bs=5000 status=none >said 2>errors || fail "status $?: $(head -c 300 errors)" || return
	cmp "$IN" out || return
	! LC_ALL=C grep -nE '.{512}' errors || return
	[ ! -s said ] || fail "on stdout: $(head -c 300 said)" || return
	[ "$(wc -l <errors)" = "$lines" ] || fail "$(printf '%.200q ' "${@:2}"): $(head -c 1000 errors)" || return
	readable errors
}

# readable FILE: UTF-8 without control characters but newlines.
readable() {
	! iconv -f UTF-8 -t UTF-8 "$1" 2>&1 >/dev/null | grep . || return
	! LC_ALL=C.UTF-8 grep -n '[[:cntrl:]]' "$1"
}

@test "the judge of lines can fail" {
	printf 'a\033[31m\n' >a; run ! readable a
	printf 'a\377\n' >a; run ! readable a
	printf 'a\302\233\n' >a; run ! readable a
	printf 'a\303\244\n' >a; readable a
}

@test "values as long as the kernel takes them: one line each" {
	local v long
	# its limit for one string is 128 KiB, the name and "=" included
	long=$(head -c 131000 /dev/zero | tr '\0' x)
	run ! env "V=$long$long" true
	for v in "${VARIABLES[@]}"; do
		unhurt 1 "$v=$long"
	done
	unhurt 1 "BLKTUNE_$long=1"
}

@test "all of them long, at once" {
	local v long entries=()
	long=$(head -c 80000 /dev/zero | tr '\0' 9)
	for v in "${VARIABLES[@]}"; do
		entries+=("$v=$long")
	done
	unhurt ${#VARIABLES[@]} "${entries[@]}"
}

# Where a page is larger than 4 KiB the kernel takes longer ones.
@test "values of 1 MiB" {
	cat >long.c <<-'END'
		#include <stdlib.h>
		#include <stdio.h>
		#include <string.h>
		#include "config.h"
		int main(int argc, char **argv)
		{
			static const char fill[] = "x9*:";
			struct config before;
			config_read(NULL);
			before = config;
			for (int i = 1; i < argc; i++)
				for (int k = 0; k < 4; k++) {
					size_t n = strlen(argv[i]);
					char *e = malloc(n + (1 << 20) + 2), *env[] = { e, NULL };
					memcpy(e, argv[i], n);
					e[n] = '=';
					memset(e + n + 1, fill[k], 1 << 20);
					e[n + 1 + (1 << 20)] = 0;
					config_read(env);
					if (memcmp(&before, &config, sizeof(config)))
						return 1;
					free(e);
				}
			return 0;
		}
	END
	"${CC:-cc}" -D_GNU_SOURCE -g -fsanitize=address,undefined -I"$ROOT/shim/core" -o long long.c "$ROOT"/shim/core/{config,glob,say,text}.c
	./long "${VARIABLES[@]}" 2>errors
	[ "$(wc -l <errors)" = $((${#VARIABLES[@]} * 4)) ]
	readable errors
}

@test "bytes of any kind in every variable" {
	local v value
	for v in "${VARIABLES[@]}"; do
		for value in $'\377\376\001' $'\033[31mred\033[0m' $'two\nlines' '%s%n%99999d' '' ' ' '-1' '0x10' '1e3' $'1K\n' 99999999999999999999 \
			$'\302\233m' $'\342\202' 'ON' '/../../*'; do
			case $v:$value in
			*_ONLY:?* | *_SKIP:?* | *PROGRAMS:?*) unhurt 0 "$v=$value" ;;
			*_REPORT:?*) ;;
			*) unhurt 1 "$v=$value" ;;
			esac
		done
	done
	unhurt 1 $'BLKTUNE_\001=1'
	unhurt 1 $'BLKTUNE_\377=1'
	unhurt 1 BLKTUNE_=1
	unhurt 0 BLKTUNED=$'\001'
	# where the report cannot go, one line says so
	unhurt 1 BLKTUNE_REPORT=$'/no/such\n\033/dir.json'
	unhurt 1 BLKTUNE_REPORT=/../../..
}

# Names with every byte that a name may have, and the longest.
make_names() {
	local i name=
	for i in {1..254}; do
		[ $i = 47 ] || printf -v name '%s%b' "$name" "\\x$(printf %x $i)"
	done
	NAMES=("$name" $'new\nline' $'\033[31mred' $'not utf-8 \377\376' $'cut short \342\202' "quote\"back\\slash'" ' ' '-rf' '*' "$(head -c 255 /dev/zero | tr '\0' n)" 'ä☃😀')
}

@test "names with every byte: copied, reported, matched" {
	need jq
	local name where n=0 NAMES
	make_names
	for name in "${NAMES[@]}"; do
		n=$((n + 1))
		mkdir $n
		cp "$IN" "./$n/$name"
		shim BLKTUNE_REPORT="$PWD/$n.json" cp --reflink=never "./$n/$name" "./$n/copy"
		shim BLKTUNE_REPORT="$PWD/$n.back.json" dd if="$n/copy" of="$n/$name" bs=5000 status=none
		cmp "$IN" "./$n/$name"
		cmp "$IN" $n/copy
		jq -e '[.files[] | select(.read.bytes + .write.bytes == 3000000)] | length == 2' $n.json >/dev/null
		jq -e '[.files[] | select(.read.bytes + .write.bytes == 3000000)] | length == 2' $n.back.json >/dev/null
		iconv -f UTF-8 -t UTF-8 $n.json >/dev/null
		# where it is UTF-8, it is the name
		if iconv -f UTF-8 -t UTF-8 <<<"$name" >/dev/null 2>&1; then
			jq -e --arg p "/$n/$name" 'any(.files[]; .path | endswith($p))' $n.json >/dev/null
		fi
		shim BLKTUNE_REPORT="$PWD/$n.table" cp --reflink=never "./$n/$name" "./$n/copy"
		readable $n.table
		[ "$(grep -c '^read ' $n.table)" = 2 ]
		"$TOOL" --summary $n.json $n.back.json >$n.sum 2>&1
		readable $n.sum
		[ "$(grep -c '^read ' $n.sum)" -ge 2 ]
	done
	# as a pattern, its special characters taken literally
	for name in "${NAMES[@]}"; do
		[[ $name != *:* ]] || continue
		where=$(sed 's/[][*?\\]/\\&/g' <<<"$PWD/p/$name.")
		rm -rf p
		mkdir p
		[ ${#name} -lt 250 ] || continue
		cp "$IN" "p/$name."
		shim BLKTUNE_ONLY="$where" BLKTUNE_REPORT="$PWD/only.json" dd if="p/$name." of=p/copy bs=5000 status=none
		jq -e 'any(.files[]; .reason == "" and .read.calls > 0)' only.json >/dev/null
		shim BLKTUNE_SKIP="$where" BLKTUNE_REPORT="$PWD/skip.json" dd if="p/$name." of=p/copy bs=5000 status=none
		jq -e '[.files[] | select(.reason != "filter" and .read.calls > 0)] | length == 0' skip.json >/dev/null
	done
}

@test "paths as long as they get, and longer ones step by step" {
	need jq
	local part=d i path=
	part=$(head -c 200 /dev/zero | tr '\0' d)
	while [ ${#path} -lt 3700 ]; do
		path+=$part/
	done
	mkdir -p "$path"
	# 4095 bytes is the most; what the shim makes of it, its directory in front, is longer
	path+=$(head -c $((4095 - ${#path})) /dev/zero | tr '\0' e | head -c 255)
	cp "$IN" "$path"
	shim BLKTUNE_REPORT="$PWD/long.json" dd if="$path" of=out bs=5000 status=none
	cmp "$IN" out
	jq -e . long.json >/dev/null
	rm out
	shim BLKTUNE_ONLY='/*d/*' BLKTUNE_SKIP='*x' dd if="$path" of=out bs=5000 status=none
	cmp "$IN" out
	for i in {1..40}; do
		mkdir -p "$part"
		cd -P "$part"
	done
	cp "$IN" in
	shim BLKTUNE_REPORT="$BATS_TEST_TMPDIR/deep.json" cp --reflink=never in out
	cmp in out
	shim BLKTUNE_ONLY='*d*' dd if=in of=out bs=5000 status=none
	cmp in out
	cd "$BATS_TEST_TMPDIR"
	jq -e . deep.json >/dev/null
}

@test "patterns that explode elsewhere" {
	local stars path name
	name=$(head -c 250 /dev/zero | tr '\0' a)
	path=$PWD/$name/$name/$name
	mkdir -p "$path"
	cp "$IN" "$path/in"
	stars=$(printf 'a*%.0s' {1..2000})
	for globs in "*$stars" "$stars*b" "$(printf '*%.0s' {1..4000})b" "$(printf '*?%.0s' {1..2000})x" "$(printf '*[a-z]%.0s' {1..600})x" \
		"$(printf '*a*a*a*b:%.0s' {1..400})" "$(printf '[%.0s' {1..4000})" "$(printf '\\%.0s' {1..4001})" "$(printf ':%.0s' {1..4000})"; do
		# a minute would be an explosion
		timeout 60 env LD_PRELOAD="$LIB" BLKTUNE_ONLY="$globs" BLKTUNE_SKIP="$globs" BLKTUNE_PROGRAMS="$globs:*" \
			dd if="$path/in" of=out bs=5000 status=none 2>errors
		cmp "$IN" out
		[ ! -s errors ]
	done
}

@test "three hundred command lines of random words" {
	local words=(--min --block --mode --only= --report --rate=1M --off --stdio --progress=x -r -p -q -rq -x --min=4K --blok --pro --= - --engine=sync
		--depth=65 --depth=6 --hot=cache --sync --sync=close --memory=$'\377' --skip=$'\033' --quiet --blksize=1 --blksize=8K) i n line status ran=0 refused=0
	RANDOM=7
	for i in {1..300}; do
		line=()
		for ((n = RANDOM % 6; n > 0; n--)); do
			line+=("${words[RANDOM % ${#words[@]}]}")
		done
		status=0
		"$TOOL" "${line[@]}" -- sh -c 'exit 7' >said 2>errors || status=$?
		case $status in
		7 | 127 | 126) ran=$((ran + 1)) ;;
		125)
			refused=$((refused + 1))
			[ "$(wc -l <errors)" = 1 ] || fail "$(printf '%q ' "${line[@]}"): $(cat errors)"
			grep -q '^blktune: ' errors
			;;
		*) fail "$(printf '%q ' "${line[@]}"): status $status" ;;
		esac
		readable errors
	done
	echo "$ran ran, $refused were refused"
	[ $ran -gt 30 ] && [ $refused -gt 30 ]
}

@test "a command line as long as it gets goes through" {
	local words word
	mapfile -t words < <(seq -f w%g 1 100000)
	"$TOOL" -q -- printf '%s\n' "${words[@]}" | cmp - <(printf '%s\n' "${words[@]}")
	word=$(head -c 131000 /dev/zero | tr '\0' w)
	"$TOOL" -q -- printf '%s\n' "$word" | cmp - <(printf '%s\n' "$word")
	run "$TOOL" "--mode=$word" true
	[ "$status" = 125 ]
	[ ${#lines[@]} = 1 ] && [ ${#output} -lt 300 ]
	run "$TOOL" "--$word" true
	[ "$status" = 125 ]
	[ ${#lines[@]} = 1 ] && [ ${#output} -lt 300 ]
}
