#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154,SC2164
# Bad words of every kind: what is set, named, asked for or read. The program does its
# work and ends as without the shim; of what is wrong there is one plain line.
load lib

setup_file() {
	require_shim || return
	pattern 3000000 >"$BATS_FILE_TMPDIR/in"
}

setup() {
	cd "$BATS_TEST_TMPDIR"
	IN=$BATS_FILE_TMPDIR/in
}

# plain FILE: nothing in it that a terminal might obey, and all of it UTF-8.
plain() {
	iconv -f UTF-8 -t UTF-8 "$1" >/dev/null || fail "not UTF-8: $(cat -v "$1")" || return
	! grep -qaP '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$1" || fail "control characters: $(cat -v "$1")"
}

# What a terminal takes as a command, what breaks a line, what is not UTF-8.
EVIL=$'\e[2J\e]0;x\a\r\n\t\x7f\xc2\x9b31m\x9b\xff\xc3'

# ---------------------------------------------------------------- what people are shown

@test "no line and no table has control characters in it, nor what is not UTF-8" {
	# a value that ends within a character where it is cut, an unknown name, a program's, a file's
	shim BLKTUNE_MIN="$EVIL" BLKTUNE_MODE="$(printf 'x%.0s' {1..63})ä" "BLKTUNE_$EVIL=1" BLKTUNE_REPORT=- \
		bash -c 'exec -a "$0" dd if="$1" of="$2" bs=10k status=none' "prog$EVIL" "$IN" "out$EVIL" 2>said
	cmp "$IN" "out$EVIL"
	plain said
	grep -q '^blktune: BLKTUNE_MIN=.\[2J' said
	grep -q '^blktune: prog.\[2J.* engine ' said
	grep -q '^write .*/out.\[2J' said
	# the launcher's own
	"$LAUNCHER" --probe . "$EVIL" "out$EVIL" >shown 2>said || [ $? = 1 ]
	plain said
	plain shown
	grep -q '/\?out.\[2J' shown
	"$LAUNCHER" --only="$EVIL" --show-config >shown
	plain shown
	for word in "--$EVIL" "--mode=$EVIL" "--off=$EVIL" $'-\e' $'-\xc3' "./$EVIL"; do
		run ! --separate-stderr "$LAUNCHER" "$word"
		[ "${#stderr_lines[@]}" = 1 ] || fail "$word: $stderr"
		printf '%s\n' "$stderr" >said
		plain said
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
	plain shown
	plain said
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
