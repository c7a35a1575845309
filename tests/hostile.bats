#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154,SC2164
# Variables, paths, patterns, reports and command lines that nobody would write: the program's
# work is done all the same, and at most one line says what was expected.
load lib

setup_file() {
	require_shim || return
	pattern 3000000 >"$BATS_FILE_TMPDIR/in"
}

setup() {
	cd "$BATS_TEST_TMPDIR"
	IN=$BATS_FILE_TMPDIR/in
	mapfile -t VARIABLES < <("$LAUNCHER" --show-config | awk '/^BLKTUNE/ { print $1 }')
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
		"$LAUNCHER" --summary $n.json $n.back.json >$n.sum 2>&1
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
		"$LAUNCHER" "${line[@]}" -- sh -c 'exit 7' >said 2>errors || status=$?
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
	"$LAUNCHER" -q -- printf '%s\n' "${words[@]}" | cmp - <(printf '%s\n' "${words[@]}")
	word=$(head -c 131000 /dev/zero | tr '\0' w)
	"$LAUNCHER" -q -- printf '%s\n' "$word" | cmp - <(printf '%s\n' "$word")
	run "$LAUNCHER" "--mode=$word" true
	[ "$status" = 125 ]
	[ ${#lines[@]} = 1 ] && [ ${#output} -lt 300 ]
	run "$LAUNCHER" "--$word" true
	[ "$status" = 125 ]
	[ ${#lines[@]} = 1 ] && [ ${#output} -lt 300 ]
}

# What a terminal takes as a command, what breaks a line, what is not UTF-8.
EVIL=$'\e[2J\e]0;x\a\r\n\t\x7f\xc2\x9b31m\x9b\xff\xc3'

# ---------------------------------------------------------------- what people are shown

@test "no line and no table has control characters in it, nor what is not UTF-8" {
	# a value that ends within a character where it is cut, an unknown name, a program's, a file's
	shim BLKTUNE_MIN="$EVIL" BLKTUNE_MODE="$(printf 'x%.0s' {1..63})ä" "BLKTUNE_$EVIL=1" BLKTUNE_REPORT=- \
		bash -c 'exec -a "$0" dd if="$1" of="$2" bs=10k status=none' "prog$EVIL" "$IN" "out$EVIL" 2>said
	cmp "$IN" "out$EVIL"
	readable said
	grep -q '^blktune: BLKTUNE_MIN=.\[2J' said
	grep -q '^blktune: prog.\[2J.* engine ' said
	grep -q '^write .*/out.\[2J' said
	# the launcher's own
	"$LAUNCHER" --probe . "$EVIL" "out$EVIL" >shown 2>said || [ $? = 1 ]
	readable said
	readable shown
	grep -q '/\?out.\[2J' shown
	"$LAUNCHER" --only="$EVIL" --show-config >shown
	readable shown
	for word in "--$EVIL" "--mode=$EVIL" "--off=$EVIL" $'-\e' $'-\xc3' "./$EVIL"; do
		run ! --separate-stderr "$LAUNCHER" "$word"
		[ "${#stderr_lines[@]}" = 1 ] || fail "$word: $stderr"
		printf '%s\n' "$stderr" >said
		readable said
	done
}

@test "words of other hosts' reports, in the table of blktune --summary" {
	local evil='\u001b[2J\u001b]0;x\u0007\r\n\t\u007f\u009b31m' host
	for host in a b; do
		cat >$host.json <<-END
			{"program":"$evil","host":"$host$evil","engine":"$evil","files":[
			{"path":"$evil","mode":"$evil","reason":"$evil","read":{"calls":1,"bytes":1},"write":{"calls":1}},
			{"path":"/x","mode":"ä$(printf 'ö%.0s' {1..40})","reason":"ü","read":{"calls":1,"bytes":1}}]}
		END
	done
	"$LAUNCHER" --summary a.json b.json "$EVIL" . >shown 2>said || [ $? = 1 ]
	readable shown
	readable said
	[ "$(grep -c '^read .*  ?\[2J.* [ab]?\[2J' shown)" = 2 ]
}

@test "the reason stands in the line, however long the name is" {
	local long
	long=$(printf '%04100d' 0)
	run --separate-stderr -126 "$LAUNCHER" "/$long"
	[[ ${#stderr_lines[@]} = 1 && $stderr == "blktune: /000"*"...0"*": File name too long" ]] || fail "$stderr"
	[ "${#stderr}" -lt 4096 ]
	run --separate-stderr -1 "$LAUNCHER" --probe "/$long"
	[[ ${#stderr_lines[@]} = 1 && $stderr == *": File name too long" ]] || fail "$stderr"
	run --separate-stderr -1 "$LAUNCHER" --summary "/$long"
	[[ ${#stderr_lines[@]} = 1 && $stderr == *": File name too long; skipped" ]] || fail "$stderr"
}

@test "words of any length are quoted in part" {
	local long word
	long=$(printf '%0100000d' 0)
	for word in "--$long" "--mode=$long" "--min=$long" "--only=$long" "--off=$long" "--$long=1"; do
		run --separate-stderr -125 "$LAUNCHER" "$word" true
		[[ ${#stderr_lines[@]} = 1 && ${#stderr} -lt 300 ]] || fail "${word:0:20}: ${#stderr} bytes: ${stderr:0:400}"
		[[ $word = --off=* || $stderr = *0...:* ]] || fail "${word:0:20}: $stderr"
	done
	shim "BLKTUNE_MIN=$long" "BLKTUNE_A_NAME_THAT_IS_OF_FORTY_CHARACTERS_=secret" "BLKTUNE_$long=1" true 2>said
	[ "$(wc -l <said)" = 3 ]
	[ "$(wc -c <said)" -lt 600 ]
	[ "$(grep -c '\.\.\.: ' said)" = 3 ]
	! grep -q secret said
}

@test "options that getopt has letters for, and names of variables" {
	local word
	for word in -: -+ -q: -qr+ '-;'; do
		run --separate-stderr -125 "$LAUNCHER" -q "$word" true
		[ "$stderr" = "blktune: -${word: -1}: no such option; blktune -h lists them" ] || fail "$word: $stderr"
	done
	run --separate-stderr -125 "$LAUNCHER" --quiet=1 true
	[ "$stderr" = "blktune: --quiet takes no value" ]
	run --separate-stderr -125 "$LAUNCHER" --READ_BLOCK=1M true
	[ "$stderr" = "blktune: --READ_BLOCK: no such option; the nearest is --read-block" ]
}

# ---------------------------------------------------------------- where nobody reads

# unheard PROGRAM ARG...: its stderr is a pipe whose reader is gone before it starts.
unheard() {
	python3 -c 'import os, subprocess, sys
r, w = os.pipe()
os.close(r)
sys.exit(subprocess.run(sys.argv[1:], stderr=w).returncode)' "$@"
}

@test "stderr that nobody reads, a report that may not grow: the program ends as without the shim" {
	local setting
	for setting in BLKTUNE_MIN=x BLKTUNE_REPORT=- BLKTUNE_NO=1; do
		rm -f out
		run -0 unheard env LD_PRELOAD="$LIB" "$setting" dd if="$IN" of=out bs=10k status=none
		cmp "$IN" out
	done
	# of a static program the launcher warns
	run -0 unheard "$LAUNCHER" "$(command -v busybox)" true
	# the third report does not fit
	for _ in 1 2 3 4 5; do
		run -0 bash -c 'ulimit -f 1; exec env "$@" >/dev/null' - LD_PRELOAD="$LIB" BLKTUNE_REPORT="$PWD/r.json" cat "$IN"
	done
	[ "$(stat -c %s r.json)" = 1024 ]
}

# ---------------------------------------------------------------- paths

# deep BYTES: goes to a directory whose name is that long, or a little longer.
deep() {
	local part
	part=$(printf 'd%.0s' {1..200})
	while [ "${#PWD}" -lt "$1" ]; do
		mkdir -p "$part" && cd "$part"
	done
}

# copied SETTING...: out is made of the input, in calls of 10k; how the report says.
copied() {
	rm -f out r.json
	run -0 --separate-stderr shim BLKTUNE_REPORT=r.json "$@" dd if="$IN" of=out bs=10k status=none
	[ -z "$stderr" ] || fail "$stderr" || return
	cmp "$IN" out || return
	jq -r '.files[] | select(.path | endswith("/out") or . == "out") | "\(.mode) \(.reason) \(.path)"' r.json
}

@test "deep directories: reported, and filtered by their names" {
	need jq
	local top=$PWD bytes
	for bytes in 900 1100 2100 3700; do
		cd "$top"
		deep $bytes
		[ "$(copied)" = "direct  $PWD/out" ] || fail "$bytes: $(copied)"
		[ "$(copied BLKTUNE_SKIP="$top/*/out")" = "passed filter $PWD/out" ] || fail "$bytes"
		[ "$(copied BLKTUNE_ONLY="$top/*/out")" = "direct  $PWD/out" ] || fail "$bytes"
		# the same through the directory's descriptor
		run -0 shim BLKTUNE_REPORT=at.json python3 -c 'import os
d = os.open(".", os.O_RDONLY)
os.write(os.open("by", os.O_WRONLY | os.O_CREAT, dir_fd=d), b"x" * 70000)'
		[ "$(jq -r '.files[].path | select(endswith("/by"))' at.json)" = "$PWD/by" ]
	done
	# the kernel has no name for it: what is to be skipped is not known
	cd "$top"
	deep 4400
	[ "$(copied)" = "direct  out" ]
	[ "$(copied BLKTUNE_SKIP="$top/*/out")" = "passed filter out" ]
	[ "$(copied BLKTUNE_ONLY="$top/*/out")" = "passed filter out" ]
	cd "$top"
}
