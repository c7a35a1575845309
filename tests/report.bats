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

@test "bytes moved direct: all but the tail, and none of a small file" {
	head -c 500000 in >small
	shim BLKTUNE_REPORT=r.json dd if=in of=out bs=10k status=none
	# 8000000 is 1953 times 4096 and 512
	[ "$(entry r.json out .write.direct_bytes)" = $((8000000 - 512)) ]
	[ "$(entry r.json out .write.moved)" = 8000000 ]
	[ "$(entry r.json out '.write.transfers - .write.direct')" = 1 ]
	shim BLKTUNE_REPORT=s.json dd if=small of=out bs=10k status=none
	[ "$(entry s.json out '.write | [.moved, .direct, .direct_bytes] | join(" ")')" = "500000 0 0" ]
}

@test "a file still open when the process ends keeps its reason, or has none" {
	need_root
	need perl
	mkdir tmp
	mount -t tmpfs tmpfs tmp
	cp in tmp/in
	shim BLKTUNE_REPORT=r.json perl -MPOSIX -e 'for (0, 1) {
		$fd = POSIX::open($ARGV[$_]) or die;
		1 while POSIX::read($fd, $b, 10000) > 0;
	}' in tmp/in
	umount tmp
	[ "$(jq -c '[.files[] | select(.path | endswith("/in")) | [.mode, .reason]]' r.json)" = '[["direct",""],["buffered","filesystem"]]' ]
}

@test "a writer that pauses: slow, not small; bulk data after that is direct again" {
	need perl
	SETTINGS+=(BLKTUNE_REPORT=r.json)
	shim perl -e 'open $f, ">", "out"; for (1 .. 3) { select undef, undef, undef, 0.15; syswrite $f, "x" x 700000 }'
	[ "$(entry r.json out '[.mode, .reason] | join(" ")')" = "buffered slow" ]
	rm r.json
	shim perl -e 'open $f, ">", "out"; for (1 .. 3) { select undef, undef, undef, 0.15 if $_ < 3; syswrite $f, "x" x 9000000 }'
	[ "$(entry r.json out '[.mode, .reason] | join(" ")')" = "direct " ]
}

@test "written by pwrite: random, not small" {
	shim BLKTUNE_REPORT=r.json /usr/bin/env python3 -c 'import os
fd = os.open("out", os.O_WRONLY | os.O_CREAT)
for i in range(500): os.pwrite(fd, b"x" * 10000, i * 10000)'
	jq -e 'select(.program | startswith("python")) | .files[] | select(.path | endswith("/out")) | .reason == "random"' r.json
}

@test "what the kernel copies to a file that is not tuned is counted, and said so" {
	shim BLKTUNE_REPORT=r.json cat in >out
	cmp in out
	[ "$(entry r.json in '.read | [.bytes, .moved, .direct] | join(" ")')" = "8000000 8000000 0" ]
	[ "$(entry r.json in .reason)" = kernel ]
	head -c 50000 in >small
	shim BLKTUNE_REPORT=s.json cp small out
	[ "$(entry s.json small '[.reason, .read.bytes] | join(" ")')" = "small 50000" ]
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
	[ "$output" = "blktune: BLKTUNE_REPORT=/nonexistent/dir/r.json: expected - or a file in a directory that is there" ]
	run shim BLKTUNE_REPORT="$PWD" dd if=in of=out bs=10k status=none
	[ "$status" = 0 ]
	[[ $output == "blktune: BLKTUNE_REPORT=$(head -c 64 <<<"$PWD")"*": expected - or a file in a directory that is there" ]]
	# what may be right for others is no line's matter
	run shim BLKTUNE_REPORT=/proc/report.json dd if=in of=out bs=10k status=none
	[ "$status" = 0 ]
	[ -z "$output" ]
}

@test "no report without asking" {
	rm -f ./*
	cp "$BATS_FILE_TMPDIR/in" in
	run shim dd if=in of=out bs=10k status=none
	[ -z "$output" ]
	[ "$(echo ./*)" = "./in ./out" ]
}


@test "observe: the kernel gets the program's own calls, as strace -c counts them" {
	local job
	mkdir d
	head -c 700000 in >d/a
	head -c 5000 in >d/b
	for job in "dd if=in of=out bs=7000 status=none" "cp --reflink=never in out" "tar -cf out d" "split -b 1000000 in"; do
		rm -f out r.json
		# shellcheck disable=SC2086
		strace -fc -U name,calls -o bare.count -e trace='!execve' -P "$PWD/in" -P "$PWD/out" -P "$PWD/d/a" -P "$PWD/d/b" $job
		rm -f out
		# shellcheck disable=SC2086
		strace -fc -U name,calls -o shim.count -e trace='!execve' -P "$PWD/in" -P "$PWD/out" -P "$PWD/d/a" -P "$PWD/d/b" \
			-E LD_PRELOAD="$LIB" -E BLKTUNE_MODE=observe -E BLKTUNE_REPORT=r.json $job
		grep -qE '^(read|copy_file_range) ' bare.count || fail "$job: nothing counted: $(<bare.count)"
		# what the shim asks about a file, once, is not the program's
		same "$(grep -E '^(read|write|lseek|copy_file_range|close|openat) ' bare.count | sort)" \
			"$(grep -E '^(read|write|lseek|copy_file_range|close|openat) ' shim.count | sort)" "$job"
	done
}

@test "the report's path is where the program was started, wherever it goes" {
	mkdir d
	cp in d/
	shim BLKTUNE_REPORT=r.json tar -cf out -C d in
	entry r.json d/in .read.bytes | grep -qx 8000000
	[ ! -e d/r.json ]
}

@test "many processes into one file: each object in a line of its own" {
	local i
	for i in {1..20}; do
		head -c 100000 in >s$i
	done
	SETTINGS=(BLKTUNE_REPORT="$PWD/all.json")
	for i in {1..20}; do
		shim dd if=s$i of=o$i bs=1k status=none &
	done
	wait
	[ "$(wc -l <all.json)" = 20 ]
	[ "$(jq -s '[.[].files[].write.bytes] | add' all.json)" = 2000000 ]
}

@test "a table: most bytes first, the tail folded, a total; stderr closed by then" {
	local i
	for i in {1..25}; do
		head -c $((i * 1000 + 70000)) in >s$i
	done
	run --separate-stderr shim BLKTUNE_REPORT=- cat s{1..25}
	[ "$status" = 0 ]
	[ "$(grep -o '/s[0-9]*$' <<<"$stderr" | xargs)" = "$(printf '/s%d ' {25..6} | xargs)" ]
	grep -q '^and 5 more files, 356 KiB$' <<<"$stderr"
	grep -q '^read .* total$' <<<"$stderr"
}

@test "each mode is told by its name" {
	local mode
	for mode in direct dontcache buffered; do
		rm -f out
		shim BLKTUNE_MODE=$mode BLKTUNE_REPORT=$mode.json dd if=in of=out bs=10k status=none
		[ "$(entry $mode.json out .mode)" = $mode ]
	done
	shim BLKTUNE_MODE=observe BLKTUNE_REPORT=observe.json dd if=in of=out bs=10k status=none
	[ "$(entry observe.json out .mode)" = passed ]
}
