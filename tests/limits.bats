#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Under tight resource limits a program runs as it does bare.
load lib

setup_file() {
	require_shim || return
	helper thread -pthread >/dev/null || return
	pattern 9000001 >"$BATS_FILE_TMPDIR/in"
}

# limited OPTION VALUE: copies under ulimit end as they do bare.
limited() {
	local how said job
	cd "$BATS_TEST_TMPDIR"
	for job in "cp $BATS_FILE_TMPDIR/in x" "dd if=$BATS_FILE_TMPDIR/in of=x bs=512" "tar c -f x -C $BATS_FILE_TMPDIR in" "cat $BATS_FILE_TMPDIR/in >>x"; do
		said=()
		for how in bare shim; do
			rm -f x
			run bash -c 'ulimit "$1" "$2" || exit 99; exec env LD_PRELOAD="$3" dash -c "$4"' - "$1" "$2" "$([ $how = bare ] || echo "$LIB")" "$job"
			[ "$status" != 99 ] || skip "ulimit $1 $2 is refused"
			said+=("$status $(grep -v copied <<<"$output") $(cksum x 2>&1)")
		done
		same "${said[0]}" "${said[1]}" "ulimit $1 $2: $job"
	done
}

@test "limits: 16 descriptors" { limited -n 16; }
@test "limits: no locked memory" { limited -l 0; }
@test "limits: a stack of 128 KiB" { limited -s 128; }
@test "limits: address space, down to where bare still works" {
	local k works=0
	for k in 1000000 100000 30000 20000 12000 8000; do
		bash -c 'ulimit -v "$1"; exec dash -c "cp /etc/passwd /dev/null && tar c -f /dev/null /etc/passwd"' - $k 2>/dev/null || continue
		works=$((works + 1))
		limited -v $k || fail "$k KiB"
	done
	[ $works -gt 2 ]
}

@test "limits: threads with stacks of 16 KiB" {
	local thread
	thread=$(helper thread)
	cd "$BATS_TEST_TMPDIR"
	bare "$thread" "$BATS_FILE_TMPDIR/in" x
	cmp x "$BATS_FILE_TMPDIR/in"
	rm x
	shim BLKTUNE_REPORT=r.json "$thread" "$BATS_FILE_TMPDIR/in" x
	cmp x "$BATS_FILE_TMPDIR/in"
	[ "$PASSIVE" = 1 ] || grep -q '"mode":"\(direct\|dontcache\|buffered\)"' r.json || grep -q filesystem r.json
}

@test "limits: no frame of the shim's is large" {
	local f
	cd "$BATS_TEST_TMPDIR"
	for f in "$ROOT"/shim/real.c "$ROOT"/shim/{intercept,core,engine}/*.c; do
		"${CC:-cc}" -O2 -std=gnu11 -D_GNU_SOURCE -D_LARGEFILE64_SOURCE -fPIC -fno-strict-aliasing \
			-fstack-usage -c -o "$(basename "$f").o" "$f"
	done
	sort -t$'\t' -k2 -rn ./*.su | head -3 | sed 's|.*/||; s/^/# /' >&3
	# What a call may meet in a thread: not what the start and the end of the process do (adopt,
	# report.c), nor the reading of mountinfo for a block device (place.c).
	awk -F'\t' '$1 !~ /report\.c|config\.c|place\.c|:adopt/ && $2 > 2048 { print; bad = 1 } END { exit bad || !NR }' ./*.su
}
