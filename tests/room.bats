#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Room that goes while a file is written, and comes back: others fill the disk, a quota
# bites, the device itself cannot take more. What was refused stays queued; who makes
# room and goes on has all of it.
load lib

KINDS=(ext4 xfs btrfs tmpfs)

setup_file() {
	require_shim || return
	helper room >/dev/null || return
	pattern 60000001 3 >"$BATS_FILE_TMPDIR/in"
	[ "$(id -u)" = 0 ] || return 0
	local kind
	for kind in "${KINDS[@]}"; do
		FS_SIZE=320M fs_make "$kind" >/dev/null || return
	done
}

teardown_file() {
	fs_drop
}

setup() {
	IN=$BATS_FILE_TMPDIR/in FS=$BATS_FILE_TMPDIR/fs
	need_root
}

# fill_up FILE: until nothing goes into it any more.
fill_up() {
	dd if=/dev/zero of="$1" bs=1M status=none 2>/dev/null || :
	dd if=/dev/zero of="$1" bs=4k oflag=append conv=notrunc status=none 2>/dev/null || :
	sync -f "$1"
}

# filler GO FILLER FILLED: fills the disk when GO appears.
filler() {
	until [ -e "$1" ]; do sleep 0.01; done
	fill_up "$2"
	: >"$3"
}

@test "others fill the disk: a program that makes room ends with all of it" {
	local kind how said rest pid
	for kind in "${KINDS[@]}"; do
		said=()
		for how in bare shim; do
			cd "$FS/$kind"
			rm -f x "$BATS_TEST_TMPDIR"/{go,filled}
			filler "$BATS_TEST_TMPDIR/go" "$PWD/filler" "$BATS_TEST_TMPDIR/filled" 3>&- 4>&- &
			pid=$!
			run "$how" "$(helper room)" "$IN" x "$BATS_TEST_TMPDIR/go" "$BATS_TEST_TMPDIR/filled" filler
			wait $pid
			[ "$status" = 0 ] || fail "$kind, $how: $output"
			cmp "$IN" x || fail "$kind, $how"
			said+=("$output")
			rm -f x
		done
		[[ ${said[0]} == *"room made: yes" ]] || fail "$kind: the disk was not full: ${said[0]}"
		same "${said[0]}" "${said[1]}" "$kind"
	done
}

@test "others fill the disk: whatever ends the file says that bytes of it are lost" {
	local door said pid how lost=0
	cd "$FS/ext4"
	for door in close fsync dup2 close_by_number fsync_by_number dup3_by_number write_by_number freopen; do
		for how in bare shim; do
			rm -f x filler "$BATS_TEST_TMPDIR"/{go,filled}
			filler "$BATS_TEST_TMPDIR/go" "$PWD/filler" "$BATS_TEST_TMPDIR/filled" 3>&- 4>&- &
			pid=$!
			said=$("$how" "$(helper room)" "$door" x "$BATS_TEST_TMPDIR/go" "$BATS_TEST_TMPDIR/filled")
			wait $pid
			echo "$how, $said"
			case "$how $said" in
			*": success, all there" | "bare write_by_number: No space left on device, all there") ;;
			"shim $door: No space left on device, "*) lost=$((lost + 1)) ;;
			*) fail "$how, $said" ;;
			esac
		done
	done
	rm -f x filler
	# held bytes were refused, or nothing is shown
	[ $lost -ge 7 ] || fail "$lost refusals"
}

# fed COMMAND...: x from a pipe through which the second part comes when the disk is full.
fed() {
	local kind how said n
	for kind in "${KINDS[@]}"; do
		said=()
		for how in bare shim; do
			cd "$FS/$kind"
			rm -f x
			feed() {
				head -c 9000001 "$IN"
				until [ "$(stat -c %s x)" -ge 9000001 ]; do sleep 0.01; done
				fill_up filler
				tail -c +9000002 "$IN"
			}
			run "$how" "$@" < <(feed 2>/dev/null)
			said+=("$status $(grep -v 'copied\|records' <<<"$output")")
			n=$(stat -c %s x)
			cmp -n "$n" x "$IN" || fail "$kind, $how: $n bytes are no prefix"
			[ "$n" -ge 9000001 ] || fail "$kind, $how: $n bytes"
			rm -f x filler
		done
		[[ ${said[0]} == [1-9]*"No space left on device"* ]] || fail "$kind: ${said[0]}"
		same "${said[0]}" "${said[1]}" "$kind: $*"
	done
}

@test "others fill the disk: cat" { fed dash -c 'cat >x'; }
@test "others fill the disk: dd bs=512" { fed dd of=x bs=512 status=none; }
@test "others fill the disk: tee" { fed dash -c 'tee x >/dev/null'; }

@test "a quota bites" {
	local how job said=() n
	cd "$FS/btrfs"
	btrfs -q subvolume create limited
	btrfs quota enable . || skip "this kernel has no quota groups of btrfs"
	btrfs -q qgroup limit 30M limited
	for job in "cp '$IN' limited/x" "dd if='$IN' of=limited/x bs=512" "cat '$IN' >limited/x" "tar c -f limited/x -C '${IN%/*}' in"; do
		said=()
		for how in bare shim; do
			rm -f limited/x
			sync -f .
			run "$how" dash -c "$job"
			# Bytes that were taken before may be refused at last, and close repeats it. Whether
			# tar's last write was a short one is a matter of where the quota ends.
			[[ $output == *"uota exceeded"* || $output == *"Wrote only"* ]] || fail "$how: $job: $output"
			said+=("$status $(grep -v 'copied\|records\|closing output\|Wrote only\|Cannot ' <<<"$output")")
			n=$(stat -c %s limited/x)
			[ "$n" -gt 10000000 ] || fail "$how: $job: $n bytes"
			[[ $job == tar* ]] || cmp -n "$n" limited/x "$IN" || fail "$how: $job: no prefix"
			echo "# $how, ${job%% *}: $n bytes" >&3
		done
		[[ ${said[0]} != 0* ]]
		same "${said[0]}" "${said[1]}" "$job"
	done
	btrfs quota disable .
	btrfs -q subvolume delete limited
}

@test "tar -M: a new volume when the disk is full" {
	local how kind
	FS_SIZE=24M fs_make tmpfs:volumes >/dev/null
	cd "$BATS_TEST_TMPDIR"
	cat >next <<-'S'
		#!/bin/sh
		# the volume that is full goes elsewhere
		mv "$TAR_ARCHIVE" "$KEEP/volume$((TAR_VOLUME - 1))"
	S
	cat >back <<-'S'
		#!/bin/sh
		cat "$KEEP/volume$TAR_VOLUME" >"$TAR_ARCHIVE"
	S
	chmod +x next back
	for how in bare shim; do
		export KEEP=$PWD/$how
		mkdir "$how"
		run "$how" tar c -M -F "$PWD/next" -f "$FS/tmpfs-volumes/v" -C "${IN%/*}" in
		same "0 " "$status $output" "$how, written"
		mv "$FS/tmpfs-volumes/v" "$how/volume3"
		cat "$how/volume1" >v
		run "$how" tar x -M -F "$PWD/back" -f v </dev/null
		same "0 " "$status $output" "$how, read"
		cmp in "$IN"
		rm in v
	done
	[ "$(find bare -size +1M | wc -l)" = 3 ]
	diff -r bare shim
}

# answering FILLER COMMAND...: on a terminal; removes FILLER when the program asks whether it
# can go on, and says yes until it does.
answering() {
	python3 -c '
import os, pty, select, sys
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
said, asked = b"", 0
while True:
    waiting = said.rstrip().endswith(b"NO]")
    if waiting:
        asked = 1
        if os.path.exists(sys.argv[1]):
            os.unlink(sys.argv[1])
        os.write(fd, b"\n")
    if not select.select([fd], [], [], 0.1 if waiting else None)[0]:
        continue
    try:
        piece = os.read(fd, 4096)
    except OSError:
        break
    if not piece:
        break
    said += piece
print("asked" if asked else said.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
' "$@"
}

@test "dar asks for room, gets it and goes on" {
	need dar
	local how
	FS_SIZE=80M fs_make tmpfs:asked >/dev/null
	cd "$FS/tmpfs-asked"
	mkdir "$BATS_TEST_TMPDIR/from"
	ln "$IN" "$BATS_TEST_TMPDIR/from/in"
	for how in bare shim; do
		head -c 50M /dev/zero >filler
		run answering filler env LD_PRELOAD="$([ "$how" = bare ] || echo "$LIB")" dar -c a -R "$BATS_TEST_TMPDIR/from"
		same "0 asked" "$status $output" "$how"
		mkdir "$BATS_TEST_TMPDIR/$how"
		bare dar -Q -x a -R "$BATS_TEST_TMPDIR/$how" >/dev/null
		cmp "$IN" "$BATS_TEST_TMPDIR/$how/in"
		rm a.1.dar
	done
}

# on_device IMAGE DIR JOB: the job, in a fresh filesystem in the image, mounted there; status and output as of run.
on_device() {
	truncate -s 300M "$1"
	mkfs.ext4 -q -O ^has_journal "$1"
	mount -o loop,errors=continue "$1" "$2"
	cd "$2"
	run shim dash -c "$3"
	cd /
	umount "$2"
	rm "$1"
}

# A device that cannot take more: its image lies, sparse, where there is no room.
@test "a device that takes no more: the program hears of it, at the latest from fsync" {
	local job base
	base=$(FS_SIZE=30M fs_make tmpfs:under)
	mkdir -p "$FS/device"
	for job in "dd if='$IN' of=x bs=512 conv=fsync" "dd if='$IN' of=x bs=1M conv=fsync" "cp '$IN' x && sync x" \
		"tar c -f x -C '${IN%/*}' in && sync x" "cat '$IN' >x && sync x"; do
		on_device "$base/img" "$FS/device" "$job"
		[ "$status" != 0 ] || fail "$job: $output"
		[[ $output == *"nput/output error"* || $output == *"No space left"* ]] || fail "$job: $output"
	done
	# What goes direct is refused at once: these would end well bare, as they never ask.
	for job in "cp '$IN' x" "dd if='$IN' of=x bs=512" "tar c -f x -C '${IN%/*}' in"; do
		on_device "$base/img" "$FS/device" "$job"
		[ "$status" != 0 ] || fail "$job: $output"
	done
}
