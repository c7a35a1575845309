#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# BLKTUNE_PROGRESS: one line on a terminal, none anywhere else; and those who look from
# outside, at /proc/PID/fdinfo, still see how far it is.
load lib

setup_file() {
	require_shim || return
	pattern 3000000 >"$BATS_FILE_TMPDIR/in"
}

setup() {
	cd "$BATS_TEST_TMPDIR"
	cp "$BATS_FILE_TMPDIR/in" in
	sync in
	PYTHON=/usr/bin/python3
	ERASE=$'\r\e[K'
	# at this rate there is something to be seen
	SLOW=(BLKTUNE_PROGRESS=on BLKTUNE_RATE=2M "BLKTUNE_ONLY=$PWD/*" BLKTUNE_REPORT="$PWD/r.json")
}

# on_terminal COMMAND: runs it in a terminal of its own; what came out there is in the file screen.
on_terminal() {
	need script
	# script turns a newline into two characters, as terminals do, and runs the command by
	# $SHELL; the quotes of %q are those of bash
	SHELL=/bin/bash script -qec "$1" typescript </dev/null >/dev/null || return
	perl -0pe 's/\A.*?\n//; s/\nScript done.*\z//s' typescript >screen
}

with_shim() {
	printf '%q ' env LD_PRELOAD="$LIB" "${SLOW[@]}" "$@"
}

# Each state of the line, without its control characters.
states() {
	tr '\r' '\n' <screen | sed -n 's/^\x1b\[K\(.\{1,\}\)/\1/p'
}

@test "cp: bytes, share, rate, time left; at most five a second; nothing of it stays" {
	need jq
	on_terminal "$(with_shim cp --reflink=never in out)"
	cmp in out
	states >list
	[ "$(wc -l <list)" -ge 2 ] || fail "only: $(cat -v screen)"
	run ! grep -vE '^[0-9.]+ [KM]iB  [0-9]+%  [0-9.]+ [KM]iB/s  [0-9]+:[0-9]{2} left$' list
	jq -e --argjson n "$(wc -l <list)" '.elapsed_s * 5 >= $n' r.json
	# never backwards, and never more than there is
	sed 's/.*  \([0-9]*\)%.*/\1/' list >shares
	sort -nc shares
	[ "$(tail -n 1 shares)" -le 100 ]
	# one line, and taken away
	[ "$(wc -l <screen)" = 0 ]
	[ "$(tail -c 4 screen)" = "$ERASE" ]
}

@test "tar: many files" {
	mkdir d
	for i in 1 2 3 4 5 6; do
		head -c 500000 in >d/$i
	done
	on_terminal "$(with_shim tar -cf out.tar d)"
	tar -df out.tar
	[ "$(states | wc -l)" -ge 2 ]
	[ "$(tail -c 4 screen)" = "$ERASE" ]
}

@test "never a byte where stderr is not a terminal" {
	# not even onto one that is there
	on_terminal "$(with_shim dd if=in of=out status=none) 2>err"
	[ ! -s screen ]
	[ ! -s err ]
	on_terminal "$(with_shim dd if=in of=out status=none) 2>&1 | cat"
	[ ! -s screen ]
	run shim "${SLOW[@]}" dd if=in of=out bs=10k status=none
	[ "$status$output" = 0 ]
}

@test "a program that closes its stderr" {
	on_terminal "$(with_shim $PYTHON -ISB -c '
import os
os.close(2)
i, o = os.open("in", 0), os.open("out", os.O_WRONLY | os.O_CREAT)
# what got the number is not written to
print(i)
while os.write(o, os.read(i, 10000)):
	pass')"
	cmp in out
	[ "$(states | wc -l)" -ge 2 ]
	[ "$(tail -c 4 screen)" = "$ERASE" ]
	grep -q '^2' screen
}

@test "what the program writes to the terminal has its line" {
	on_terminal "$(with_shim $PYTHON -ISB -c '
import os
i, o = os.open("in", 0), os.open("out", os.O_WRONLY | os.O_CREAT)
n = 0
while os.write(o, os.read(i, 10000)):
	n += 1
	if n % 100 == 0:
		os.write(1, b"%d done\n" % n)
		os.write(3 - 1, b"error\n")')"
	[ "$(states | wc -l)" -ge 2 ]
	# each begins a line: at its start, or where the progress was taken away
	[ "$(tr '\r' '\n' <screen | grep -cE '^(.\[K)?[123]00 done$')" = 3 ]
	[ "$(tr '\r' '\n' <screen | grep -cE '^(.\[K)?error$')" = 3 ]
	grep -qF "${ERASE}100 done" screen || fail "$(cat -v screen)"
	# through stdio, too
	on_terminal "$(with_shim perl -e '
		open I, "<", "in"; open O, ">", "out"; $n = 0;
		while (sysread I, $b, 10000) { syswrite O, $b; $n++ % 100 == 99 and print STDERR "$n done\n" }')"
	[ "$(tr '\r' '\n' <screen | grep -cE '^(.\[K)?[123]00 done$')" = 3 ] || fail "$(cat -v screen)"
	on_terminal "$(with_shim tar --totals -cvf out.tar in)"
	tr '\r' '\n' <screen | grep -qE '^(.\[K)?Total bytes written' || fail "$(cat -v screen)"
	# to a file or a pipe they are as ever
	run --separate-stderr shim "${SLOW[@]}" $PYTHON -ISB -c 'import os; os.write(1, b"x\n")'
	[ "$output" = x ]
}

@test "a narrow terminal, and one that becomes narrow" {
	local longest
	on_terminal "stty cols 12; $(with_shim cp --reflink=never in out)"
	longest=$(states | wc -L)
	[ "$longest" -gt 4 ] && [ "$longest" -le 11 ] || fail "$longest: $(cat -v screen)"
	on_terminal "stty cols 80; $(with_shim $PYTHON -ISB -c '
import fcntl, os, struct, termios
i, o = os.open("in", 0), os.open("out", os.O_WRONLY | os.O_CREAT)
n = 0
while os.write(o, os.read(i, 10000)):
	n += 1
	if n == 150:
		fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 10, 0, 0))
		os.write(1, b"narrow\n")')"
	[ "$(sed '1,/narrow/d' screen | tr '\r' '\n' | sed -n 's/^\x1b\[K//p' | wc -L)" -le 9 ]
	[ "$(sed '/narrow/q' screen | tr '\r' '\n' | sed -n 's/^\x1b\[K//p' | wc -L)" -gt 9 ]
}

@test "a job in the background leaves the terminal alone" {
	on_terminal "bash -mc '$(with_shim cp --reflink=never in out | sed "s/'/'\\\\''/g") & wait'"
	cmp in out
	! states | grep -q .
}

@test "children do not draw over their parent's line" {
	on_terminal "$(with_shim $PYTHON -ISB -c '
import os
pid = os.fork()
if not pid:
	i = os.open("in", 0)
	while os.read(i, 10000):
		pass
	os._exit(len([1 for fd in os.listdir("/proc/self/fd") if os.path.realpath("/proc/self/fd/" + fd).startswith("/dev/pts")]))
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))')"
	# no more descriptors of the terminal than the standard ones
	grep -q '^3' screen || fail "$(cat -v screen)"
	! states | grep -q .
}

@test "progress(1) and fdinfo: from outside it is to be seen how far it is" {
	need progress
	local pid fd pos said=
	env LD_PRELOAD="$LIB" BLKTUNE_RATE=1M dd if=in of=out bs=10k status=none &
	pid=$!
	# as long as it runs
	while [ -z "$said" ] && kill -0 $pid; do
		said=$(progress -qp $pid | sed -n 's/^[^0-9]*\([1-9][0-9.]*\)% (\(.* MiB\|.* KiB\) \/ 2.9 MiB)$/\1/p')
	done
	wait $pid
	[ -n "$said" ] || fail "progress did not see it move"
	cmp in out
	# the file's offset, while it is written
	shim "BLKTUNE_ONLY=$PWD/*" $PYTHON -ISB -c '
import os, re
i, o = os.open("in", 0), os.open("out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
def pos(fd):
	return int(re.search(r"pos:\s*(\d+)", open("/proc/self/fdinfo/%d" % fd).read())[1])
done = 0
while True:
	b = os.read(i, 10000)
	done += len(b)
	os.write(o, b)
	# the kernel is ahead with reading, behind with writing, by a block at most
	assert pos(i) <= done <= pos(i) + (1 << 20), ("read", done, pos(i))
	assert pos(o) <= done <= pos(o) + (8 << 20), ("write", done, pos(o))
	if not b:
		break
os.close(o)'
}
