#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154
# The bench scripts: each in its quickest form leaves a CSV with its columns and no empty cell, a table and
# a picture; a bad argument gets one line.
load lib

SWEEPS="dd-sweep cp-grid raw-block sink streams ab-min-io peers limits"

setup_file() {
	require_shim
}

setup() {
	OUT=$BATS_TEST_TMPDIR/out
	mkdir "$OUT" "$BATS_TEST_TMPDIR/work"
}

# bench SCRIPT ARG...: with the library under test, results to OUT.
bench() {
	local script=$1
	shift
	BLKTUNE_LIB=$LIB BENCH_DIR=$BATS_TEST_TMPDIR/work "$ROOT/bench/$script" -o "$OUT" "$@"
}

# quick SCRIPT ARG...: its quickest form.
quick() {
	local script=$1
	shift
	bench "$script" -q -n 1 "$@"
}

# good_csv NAME COLUMNS ROWS: these columns, at least that many rows, as many cells in each, none of them empty.
good_csv() {
	local file=$OUT/$1.csv
	same "$2" "$(head -n 1 "$file")" "columns of $1" || return
	sed 's/"[^"]*"/quoted/g' "$file" | awk -F , -v rows="$3" '
		NR == 1 { n = NF }
		NF != n { print "line " NR ": " NF " cells, not " n; bad = 1 }
		{ for (i = 1; i <= NF; i++) if ($i == "") { print "line " NR ": cell " i " is empty"; bad = 1 } }
		END { if (NR - 1 < rows) { print NR - 1 " rows, not " rows; bad = 1 }
		      exit bad }' >&2
}

# measured NAME COLUMN: at least one row has a number there.
measured() {
	awk -F , -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i }
		NR > 1 && $c ~ /^[0-9.]+$/ && $c > 0 { seen = 1 }
		END { exit !seen }' "$OUT/$1.csv" || fail "no figure in column $2 of $1"
}

# shown NAME...: a table each, and a picture where gnuplot is installed.
shown() {
	local name
	for name; do
		[ -s "$OUT/$name.txt" ] || fail "no table $name" || return
	done
}
pictures() {
	local name
	command -v gnuplot >/dev/null || return 0
	for name; do
		[ "$(head -c 4 "$OUT/$name.png" | tail -c 3)" = PNG ] || fail "no picture $name" || return
	done
}

# clean: nothing is left in the directory, no loop device, no mount.
clean() {
	[ -z "$(ls -A "$BATS_TEST_TMPDIR/work")" ] || fail "left: $(ls -A "$BATS_TEST_TMPDIR/work")" || return
	if grep -F "$BATS_TEST_TMPDIR/work" /proc/self/mounts; then fail "still mounted"; fi
}

@test "each explains itself" {
	local script letter
	for script in $SWEEPS all demo; do
		run "$ROOT/bench/$script" -h
		[ "$status" -eq 0 ] || fail "$script -h: $output"
		[[ $output == "usage: bench/$script"* ]] || fail "$script -h: $output"
		[ "$script" != demo ] || continue
		for letter in "-s MIB" "-d DIR" "-n REPEATS" "-q " "-o DIR"; do
			grep -q "^ *$letter" <<<"$output" || fail "$script -h does not explain $letter"
		done
	done
}

@test "a bad argument gets one line" {
	local script args
	for script in $SWEEPS; do
		for args in "-n none" "-n 0" "-s 1x" "-d /nonexistent" "-o" "-Z" "nonsense"; do
			# shellcheck disable=SC2086
			run "$ROOT/bench/$script" $args
			[ "$status" -eq 2 ] || fail "$script $args: status $status, $output"
			[ "${#lines[@]}" -eq 1 ] || fail "$script $args: $output"
			[[ $output == "$script: "* ]] || fail "$script $args: $output"
		done
	done
	for args in "all -Z" "all -d /nonexistent" "all -n 0" "all -s x" "all -o" "all nonsense" "demo -s 0" "demo -Z" "demo nonsense" \
		"raw-block /dev/null" "cp-grid -p mv" "sink -r 0" "sink -g x" "streams -j 0"; do
		# shellcheck disable=SC2086
		run "$ROOT/bench/"$args
		[ "$status" -eq 2 ] && [ "${#lines[@]}" -eq 1 ] && [[ $output == "${args%% *}: "* ]] || fail "$args: $status $output"
	done
}

@test "a missing tool gets one line that names its package" {
	local bin=$BATS_TEST_TMPDIR/bin tool
	mkdir "$bin"
	for tool in bash basename dirname readlink; do ln -s "$(command -v $tool)" "$bin"; done
	PATH=$bin run "$ROOT/bench/dd-sweep" -q
	[ "$status" -eq 2 ]
	[ "$output" = "dd-sweep: needs hyperfine: install the package hyperfine" ]
}

@test "dd-sweep" {
	need hyperfine
	quick dd-sweep -s 4
	good_csv dd-sweep part,series,block,mib,repeats,mib_s,mib_s_q1,mib_s_q3,seconds 40
	measured dd-sweep mib_s
	shown dd-sweep
	pictures dd-sweep-zero dd-sweep-read dd-sweep-copy
	clean
}

@test "cp-grid" {
	need hyperfine
	quick cp-grid -s 2
	good_csv cp-grid program,read_block,write_block,mib,repeats,mean_s,sd_s,mib_s,mib_s_sd,plain_over_this 17
	good_csv cp-grid-small series,file_size,files,repeats,seconds,seconds_q1,seconds_q3,mib_s 12
	measured cp-grid mib_s
	measured cp-grid-small mib_s
	shown cp-grid cp-grid-small
	pictures cp-grid cp-grid-small
	clean
}

@test "cp-grid with dd's own flags" {
	need hyperfine
	quick cp-grid -s 2 -p dd grid
	good_csv cp-grid-dd program,read_block,write_block,mib,repeats,mean_s,sd_s,mib_s,mib_s_sd,plain_over_this 17
	clean
}

@test "raw-block" {
	need_root
	need hyperfine
	quick raw-block -s 2
	good_csv raw-block device,block,series,seen_as,mib,repeats,real_s,real_s_q1,real_s_q3,user_s,sys_s,kb_s,sys_s_per_gib 18
	measured raw-block kb_s
	shown raw-block
	pictures raw-block
	clean
}

@test "sink: every record that arrives has the size asked for" {
	need hyperfine
	quick sink -s 2
	good_csv sink read_block,record,series,mib,rate_mib_s,gap_us,repeats,seconds,seconds_q1,seconds_q3,cpu_s,drive_s 18
	measured sink seconds
	run ! grep WRONG "$OUT/sink.txt"
	shown sink
	pictures sink
	clean
}

@test "sink: a record of another size is told, and is no sample" {
	need hyperfine
	local bin=$BATS_TEST_TMPDIR/bin
	mkdir "$bin"
	# A dd that writes its records by halves.
	# shellcheck disable=SC2016 # expanded by that shell
	printf '#!/bin/sh\nset -- $(echo "$@" | sed s/obs=512K/obs=256K/)\nexec %s "$@"\n' "$(command -v dd)" >"$bin/dd"
	chmod 755 "$bin/dd"
	PATH=$bin:$PATH quick sink -s 2
	[ "$(grep -c 'WRONG RECORDS: 8, of 262144 to 262144 bytes' "$OUT/sink.txt")" -eq 2 ]
	grep -q '^512K,512K,plain,.*,-,-,-,-,' "$OUT/sink.csv"
	grep -q '^8K,8K,plain,.*,[0-9.]*,[0-9.]*,[0-9.]*,[0-9.]*,' "$OUT/sink.csv"
	clean
}

@test "streams" {
	need hyperfine
	quick streams -s 2 -j 2
	good_csv streams block,series,writers,mib_each,disk_mib_s,repeats,seconds,seconds_q1,seconds_q3,mib_s,cpu_s 12
	measured streams mib_s
	run ! grep WRONG "$OUT/streams.txt"
	shown streams
	pictures streams
	clean
}

@test "ab-min-io: the arms of cp are what they claim" {
	need hyperfine strace
	quick ab-min-io -s 4 cp
	good_csv ab-min-io program,state,arm,reads,writes,as_claimed,mib,repeats,seconds,seconds_q1,seconds_q3,cpu_s,mib_s,ratio_to_32k 12
	measured ab-min-io ratio_to_32k
	[ "$PASSIVE" = 1 ] || [ "$(grep -cE '^cp,cached,[0-9]+K,.*,yes,' "$OUT/ab-min-io.csv")" -eq 4 ]
	grep -q '^cached, 64K against 32K: ' "$OUT/ab-min-io.txt"
	shown ab-min-io ab-min-io-detail
	pictures ab-min-io
	clean
}

@test "peers" {
	need hyperfine fincore
	quick peers -s 24 copy tar
	good_csv peers job,peer,mib,hot_mib,group_mib,repeats,wall_s,wall_s_q1,wall_s_q3,cpu_s,pages_added,hot_pages_lost,hot_pages,peak_mib,refused,plain_over_this 16
	measured peers wall_s
	run ! grep WRONG "$OUT"/peers-*.txt
	shown peers-copy peers-tar
	pictures peers-copy peers-tar
	clean
}

@test "limits" {
	need fio
	quick limits -s 64 start calls
	good_csv limits row,measured,baseline,shim,ratio,target,met,spread,repeats,note 5
	shown limits
	pictures limits
	clean
}

@test "where no cgroup can be used one line says so, and the rest is measured" {
	need_root
	need hyperfine
	# shellcheck disable=SC2016
	BLKTUNE_LIB=$LIB BENCH_DIR=$BATS_TEST_TMPDIR/work run -0 unshare -m bash -c '
		awk '\''$3 ~ /^cgroup2?$/ { print $2 }'\'' /proc/self/mounts | tac | xargs -r umount -l &&
		exec "$@"' bash "$ROOT/bench/streams" -q -n 1 -s 1 -j 2 -o "$OUT"
	[ "$(grep -c 'neither cgroup v1 nor v2 can be used: v1 has no blkio and memory controller mounted; v2 is not mounted' <<<"$output")" -eq 1 ]
	measured streams mib_s
	clean
}

@test "all: one page with the tables and pictures of what ran; -p puts it into the README and keeps the text there" {
	need hyperfine
	local copy=$BATS_TEST_TMPDIR/copy readme
	readme=$copy/bench/README.md
	mkdir "$copy"
	cp -R "$ROOT/bench" "$copy"
	rm -rf "$copy/bench/pictures" "$copy/bench/results"
	BLKTUNE_LIB=$LIB BENCH_DIR=$BATS_TEST_TMPDIR/work run -0 "$copy/bench/all" -q -s 4 -n 1 -o "$OUT" -p dd-sweep
	grep -q '^## dd-sweep$' "$OUT/index.md"
	grep -q '^a cold file to /dev/null$' "$OUT/index.md"
	grep -q '^\[dd-sweep.csv\](dd-sweep.csv)$' "$OUT/index.md"
	grep -q '^a cold file to /dev/null$' <<<"$output"
	[ "$(grep -c '^a cold file to /dev/null$' "$readme")" -eq 1 ]
	same "$(sed '/measured: begin/,$d' "$ROOT/bench/README.md")" "$(sed '/measured: begin/,$d' "$readme")" "what stands above the measured part"
	if command -v gnuplot >/dev/null; then
		grep -q '!\[dd-sweep-zero\](dd-sweep-zero.png)' "$OUT/index.md"
		grep -q '!\[dd-sweep-zero\](pictures/dd-sweep-zero.png)' "$readme"
		[ "$(stat -c %s "$copy/bench/pictures/dd-sweep-zero.png")" -le 61440 ]
	fi
	sed -i 's/^<!-- text: dd-sweep -->$/&\nIt is *flat* \& good \\ "here"./' "$readme"
	cp "$readme" "$BATS_TEST_TMPDIR/before"
	run -0 "$copy/bench/all" -P -o "$OUT"
	[[ $output == *"the text on dd-sweep was kept"* ]]
	cmp "$BATS_TEST_TMPDIR/before" "$readme"
	grep -qxF 'It is *flat* & good \ "here".' "$readme"
	clean
}

@test "all: a script that fails is named on the page, and in the status" {
	local bin=$BATS_TEST_TMPDIR/bin tool
	mkdir "$bin"
	for tool in bash basename dirname readlink realpath mkdir env cut sed head tail cat date uname nproc rm grep; do
		ln -s "$(command -v $tool)" "$bin"
	done
	PATH=$bin run "$ROOT/bench/all" -q -o "$OUT" dd-sweep
	[ "$status" -eq 1 ]
	grep -qF '**failed: dd-sweep: needs hyperfine' "$OUT/index.md"
}
