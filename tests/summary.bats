#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154,SC2164
# blktune --summary: what many processes reported, added up; what is no report, named and skipped.
load lib

setup_file() {
	require_shim
}

setup() {
	cd "$BATS_TEST_TMPDIR"
	mkdir r
}

# report NAME HOST START ELAPSED PATH READ-BYTES [MORE]: one file r/NAME.json.
report() {
	cat >"r/$1.json" <<-END
		{"program":"cp","pid":1,"host":"$2","engine":"uring","start_s":$3,"elapsed_s":$4,"files":[{"path":"$5","mode":"direct","reason":"","read":{"calls":10,"bytes":$6,"transfers":2,"moved":$6}}]}
	END
}

# lines WHAT: of the table in $output, its bytes, calls and transfers.
total() {
	sed -n 's/^read  *\([0-9.]* [KMGT]*i*B\)  *\([0-9]*\)  *[0-9.]* [KMGT]*i*B  *\([0-9]*\) .* total$/\1 \2 \3/p' <<<"$output"
}

@test "real reports: the sums are those of the files" {
	need jq
	local i
	pattern 3000000 >in
	for i in 1 2 3; do
		shim BLKTUNE_REPORT="$PWD/r/%n.%p.json" cp --reflink=never in out.$i
	done
	shim BLKTUNE_REPORT="$PWD/r/%n.%p.json" dd if=in of=out.4 bs=10k status=none
	run --separate-stderr -0 "$LAUNCHER" --summary r
	[ -z "$stderr" ]
	[[ $output == "blktune: 4 processes, "* ]]
	[ "$(total)" = "11.4 MiB $(jq -s '[.[].files[].read.calls] | add' r/*.json) $(jq -s '[.[].files[].read.transfers] | add' r/*.json)" ] ||
		fail "$output"
	# the same file in one line, each of the others in its own
	[ "$(grep -c '^read .*/in$' <<<"$output")" = 1 ]
	[ "$(grep -c '^write .*/out\.[1-4]$' <<<"$output")" = 4 ]
}

@test "hosts: named where there are several; their time is from the first start to the last end" {
	report a alpha 1000 2 /x 1048576
	report b beta 1003 4 /x 2097152
	run -0 "$LAUNCHER" --summary r
	[[ $output == "blktune: 2 processes on 2 hosts, 7.00 s, engine uring"* ]]
	grep -q '^read  *1 MiB .* alpha:/x$' <<<"$output"
	grep -q '^read  *2 MiB .* beta:/x$' <<<"$output"
	[ "$(total)" = "3 MiB 20 4" ]
	run -0 "$LAUNCHER" --summary r/a.json r/b.json
	[ "$(total)" = "3 MiB 20 4" ]
}

@test "most bytes first, the tail folded" {
	local i
	for i in {1..25}; do
		report $i alpha 1000 2 /f$i $((i * 1024))
	done
	run -0 "$LAUNCHER" --summary r
	[ "$(grep -o '/f[0-9]*$' <<<"$output" | xargs)" = "$(printf '/f%d ' {25..6} | xargs)" ]
	grep -qx 'and 5 more files, 15 KiB' <<<"$output"
	[ "$(total)" = "325 KiB 250 50" ]
}

@test "any order of fields, unknown ones, escapes, several objects in a file, white space" {
	cat >r/a.json <<-'END'
		{ "files" : [ {"new":[{"a":null},[],{},true,false,-1.5e-3,"\u0041"],"write":{},"mode":"direct",
		  "read":{"bytes":1024,"x":{"calls":7},"calls":1},"path":"/\u00e4\ud83d\ude00\"\\\/\n"} ],
		  "program":"p" }
		{"program":"q","files":[]}
	END
	run --separate-stderr -0 "$LAUNCHER" --summary r
	[ -z "$stderr" ]
	[[ $output == "blktune: 2 processes, "* ]]
	[ "$(total)" = "1 KiB 1 0" ]
	# what would break the line does not
	grep -qF $'/\xc3\xa4\xf0\x9f\x98\x80"\\/?' <<<"$output"
}

# skips TEXT WORD: the file gets one line with the word, and the rest is summed.
skips() {
	printf %b "$1" >r/bad.json
	run --separate-stderr -1 "$LAUNCHER" --summary r
	[ "${#stderr_lines[@]}" = 1 ] || fail "$1: ${#stderr_lines[@]} lines: $stderr" || return
	[[ $stderr == "blktune: r/bad.json: "*"$2"*"; skipped"* ]] || fail "$1: $stderr" || return
	[ "$(total)" = "1 MiB 10 2" ] || fail "$1: $output"
}

@test "malformed, truncated, empty, foreign: one line each, and the rest is summed" {
	report good alpha 1000 2 /x 1048576
	local whole at
	whole=$(<r/good.json)
	skips '' empty
	skips ' \n' empty
	# at whatever place it ends
	for at in 1 20 60 120 150 "$((${#whole} - 1))"; do
		printf %s "${whole:0:at}" >r/cut
		skips "$(sed 's/\\/\\\\/g' r/cut)" "ends too early"
	done
	rm r/cut
	skips '{"a":1}' "not a report"
	skips '[1,2]' "expected {"
	skips 'hello' "expected {"
	skips '{"program":"p","files":[{"path":"x"}]}' "without path or mode"
	skips '{"program":"p","files":[],}' "expected a string"
	skips '{"program":"p" "files":[]}' "expected , or }"
	skips '{"program":1,"files":[]}' "expected a string"
	skips '{"program":"p","files":[],"x":01}' "expected , or }"
	skips '{"program":"p","files":[],"x":.5}' "expected a number"
	skips '{"program":"p","files":[],"x":tru}' "expected a value"
	skips '{"program":"\\x","files":[]}' escape
	skips '{"program":"\\ud800","files":[]}' '\u'
	skips '{"program":"\xff","files":[]}' UTF-8
	skips '{"program":"\t","files":[]}' control
	skips '{"program":"p","files":[{"path":"/","mode":"m","read":{"bytes":-1}}]}' whole
	skips '{"program":"p","files":[{"path":"/","mode":"m","read":{"bytes":99999999999999999999}}]}' "too large"
	skips "{\"x\":$(printf '[%.0s' {1..100})1" deep
	# of a broken line the whole ones around it are taken
	{
		cat r/good.json
		head -c 100 r/good.json
		echo
		cat r/good.json
	} >r/bad.json
	run --separate-stderr -1 "$LAUNCHER" --summary r
	[[ $stderr == "blktune: r/bad.json: line "*"; skipped" ]]
	[ "$(total)" = "3 MiB 30 6" ] || fail "$output"
}

@test "what cannot be read" {
	run --separate-stderr -1 "$LAUNCHER" --summary missing
	[ "$stderr" = "blktune: missing: No such file or directory; skipped" ]
	run --separate-stderr -1 "$LAUNCHER" --summary r
	[ "$stderr" = "blktune: r: no .json files in it" ]
	mkfifo r/fifo.json
	run --separate-stderr -1 "$LAUNCHER" --summary r
	[ "$stderr" = "blktune: r/fifo.json: expected a file; skipped" ]
	run -125 bash -c '"$1" --summary r >/dev/full 2>&1' - "$LAUNCHER"
}
