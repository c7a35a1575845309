#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# The report: valid JSON, true to the program's own calls as strace counts them bare, and
# to the kernel's transfers as strace counts them under the shim.
load lib

setup_file() {
	require_shim || return
	pattern 8000000 >"$BATS_FILE_TMPDIR/in"
}

setup() {
	need jq strace
	cd "$BATS_TEST_TMPDIR"
	cp "$BATS_FILE_TMPDIR/in" in
	sync in
	SETTINGS=(BLKTUNE_ENGINE=sync)
}

# entry FILE NAME EXPRESSION: of the entry whose path ends in NAME.
entry() {
	jq -r --arg name "/$2" "first(.files[] | select(.path | endswith(\$name))) | $3" "$1"
}

@test "JSON: one object with the promised fields" {
	shim BLKTUNE_REPORT=r.json dd if=in of=out bs=10k status=none
	jq -e . r.json >/dev/null
	[ "$(jq -r .program r.json)" = dd ]
	[ "$(jq -r '.pid | type' r.json)" = number ]
	[ "$(jq -r .engine r.json)" = sync ]
	[ "$(jq -r '.elapsed_s | type' r.json)" = number ]
	local name way field
	for name in in out; do
		[[ $(entry r.json $name .mode) =~ ^(direct|dontcache|buffered|passed)$ ]]
		entry r.json $name 'has("reason")' | grep -qx true
	done
	for field in calls bytes transfers smallest largest; do
		[ "$(entry r.json in ".read.$field | type")" = number ] || fail "no read.$field"
		[ "$(entry r.json out ".write.$field | type")" = number ] || fail "no write.$field"
	done
}

# shim_and_bare PROGRAM ARG...: leaves bare.trace, shim.trace and r.json.
shim_and_bare() {
	strace -y -s 0 -o bare.trace -e "$TRANSFERS" "$@"
	rm -f out
	SETTINGS+=(BLKTUNE_REPORT=r.json)
	shim_trace shim.trace -e "$TRANSFERS" -- "$@"
	cmp in out
}

sum() { awk '{ n += $1 } END { print n + 0 }'; }

# Compares one file's numbers with what strace saw.
true_numbers() {
	local name=$1 way=$2 bare shim
	bare=$(transfers bare.trace "$PWD/$name" "$way")
	shim=$(transfers shim.trace "$PWD/$name" "$way")
	[ "$(entry r.json "$name" ".$way.bytes")" = "$(sum <<<"$bare")" ] || fail "$name: bytes"
	[ "$(entry r.json "$name" ".$way.transfers")" = "$(wc -l <<<"$shim")" ] || fail "$name: transfers"
	[ "$(entry r.json "$name" ".$way.smallest")" = "$(sort -n <<<"$shim" | head -n 1)" ] || fail "$name: smallest"
	[ "$(entry r.json "$name" ".$way.largest")" = "$(sort -n <<<"$shim" | tail -n 1)" ] || fail "$name: largest"
	# the read that finds the end is a call too
	local calls eof=0
	calls=$(wc -l <<<"$bare")
	[ "$way" = write ] || eof=$(grep -F "<$PWD/$name>" bare.trace | grep -E '^read\(' | grep -c ' = 0$' || true)
	[ "$(entry r.json "$name" ".$way.calls")" = $((calls + eof)) ] ||
		fail "$name: $(entry r.json "$name" ".$way.calls") $way calls reported, $calls + $eof made"
}

@test "numbers of dd bs=512" {
	shim_and_bare dd if=in of=out bs=512 status=none
	true_numbers in read
	true_numbers out write
}

@test "numbers of dd bs=10000" {
	shim_and_bare dd if=in of=out bs=10000 status=none
	true_numbers in read
	true_numbers out write
}

@test "numbers of BLKTUNE_MODE=observe" {
	SETTINGS+=(BLKTUNE_MODE=observe)
	shim_and_bare dd if=in of=out bs=4k status=none
	true_numbers in read
	true_numbers out write
	[ "$(entry r.json out .write.smallest)" = 512 ] # 8000000 is 1953 times 4096 and 512
}

@test "BLKTUNE_REPORT=- goes to stderr and leaves stdout alone" {
	run --separate-stderr shim BLKTUNE_REPORT=- dd if=in bs=10k of=out status=none
	[ "$status" = 0 ]
	[ -z "$output" ]
	# shellcheck disable=SC2154
	[[ $stderr == *out* ]]
}

@test "%p and %n in the path; one report for each process" {
	shim BLKTUNE_REPORT="$PWD/rep.%n.%p.json" bash -c 'cp in out; cat in >out2'
	local f cps
	cps=(rep.cp.*.json)
	[ -e "${cps[0]}" ]
	for f in rep.*.json; do
		jq -e . "$f" >/dev/null || fail "$f is not JSON"
		[ "$f" = "rep.$(jq -r .program "$f").$(jq -r .pid "$f").json" ]
	done
	entry "${cps[0]}" in .read.bytes | grep -qx 8000000
}

@test "a file whose name needs quoting in JSON" {
	local name
	name=$(printf 'a "quoted\\" \n\tname\001 \377')
	cp in "$name"
	shim BLKTUNE_REPORT=r.json dd if="$name" of=out bs=10k status=none
	cmp in out
	jq -e '.files | length == 2' r.json
}

@test "a report that cannot be written: the job completes" {
	run shim BLKTUNE_REPORT=/nonexistent/dir/r.json dd if=in of=out bs=10k status=none
	[ "$status" = 0 ]
	cmp in out
	[ "${#lines[@]}" -le 1 ]
}

@test "no report without asking" {
	rm -f ./*
	cp "$BATS_FILE_TMPDIR/in" in
	run shim dd if=in of=out bs=10k status=none
	[ -z "$output" ]
	[ "$(echo ./*)" = "./in ./out" ]
}
