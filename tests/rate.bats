#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# BLKTUNE_RATE. The debt is slept off in the calls, so a run cannot be shorter than its bytes
# at the rate, nor sleep longer than it runs: these two hold on any machine.
load lib

setup_file() {
	require_shim || return
	pattern 3000000 >"$BATS_FILE_TMPDIR/in"
}

setup() {
	need jq
	cd "$BATS_TEST_TMPDIR"
	cp "$BATS_FILE_TMPDIR/in" in
	sync in
	# of the interpreters only what they do here
	SETTINGS=(BLKTUNE_REPORT=r.json "BLKTUNE_ONLY=$PWD/*:/dev/*")
	PYTHON=/usr/bin/python3
}

# held_back BYTES RATE: by the report, the process was.
held_back() {
	jq -e --argjson s "$(jq -n "$1 / $2")" \
		'.throttle_s > 0 and .throttle_s <= .elapsed_s and .elapsed_s >= $s - 0.001' r.json >/dev/null ||
		fail "$1 bytes at $2: $(jq -c '[.elapsed_s, .throttle_s]' r.json)"
}

# moved NAME WAY FILTER: of the file's counts.
moved() {
	jq -r --arg name "/$1" "first(.files[] | select(.path | endswith(\$name))) | .$2 | $3" r.json
}

@test "a copy takes its time once, in each mode" {
	local mode
	for mode in direct dontcache buffered; do
		rm -f out r.json
		shim BLKTUNE_MODE=$mode BLKTUNE_RATE=6000000 dd if=in of=out bs=10k status=none
		cmp in out
		held_back 3000000 6000000
		[ "$(moved in read .bytes) $(moved out write .bytes)" = "3000000 3000000" ]
	done
}

@test "cp, by the pump" {
	shim BLKTUNE_RATE=6000000 cp --reflink=never in out
	cmp in out
	held_back 3000000 6000000
	rm r.json
	shim BLKTUNE_RATE=6000000 $PYTHON -ISB -c '
import os
i, o = os.open("in", 0), os.open("sent", os.O_WRONLY | os.O_CREAT)
while os.sendfile(o, i, None, 1 << 30):
	pass'
	cmp in sent
	held_back 3000000 6000000
}

@test "only reading, only writing" {
	shim BLKTUNE_RATE=6000000 dd if=in of=/dev/null bs=10k status=none
	held_back 3000000 6000000
	rm r.json
	shim BLKTUNE_RATE=6000000 dd if=/dev/zero of=out bs=10k count=300 status=none
	held_back 3072000 6000000
}

@test "a call of many blocks stays one call" {
	shim BLKTUNE_RATE=6000000 dd if=in of=out bs=3000000 status=none
	cmp in out
	held_back 3000000 6000000
	# with the one that finds the end
	[ "$(moved in read .calls)" = 2 ]
	[ "$(moved out write .calls)" = 1 ]
	[ "$(moved in read .transfers)" -ge 5 ]
	# a vector, too
	rm r.json
	shim BLKTUNE_RATE=6000000 $PYTHON -ISB -c '
import os
b = open("in", "rb").read()
o = os.open("vector", os.O_WRONLY | os.O_CREAT)
assert os.writev(o, [b[:1], b[1:2000000], b"", b[2000000:]]) == len(b)'
	cmp in vector
	[ "$(moved vector write .calls)" = 1 ]
}

@test "transfers small enough to be even, not below MIN before that is needed" {
	head -c 2M in >whole
	shim BLKTUNE_RATE=4M dd if=whole of=out bs=10k status=none
	# an eighth of a second
	[ "$(moved whole read .largest)" = 524288 ]
	[ "$(moved out write '[.transfers, .smallest, .largest] == [4, 524288, 524288]')" = true ]
	rm r.json
	head -c 200000 in >short
	shim BLKTUNE_RATE=400K dd if=short of=out bs=10k status=none
	# 0.16 s of the rate
	[ "$(moved out write .largest)" = 65536 ]
	[ "$(moved out write .transfers)" = 4 ]
	rm r.json
	head -c 40000 in >short
	shim BLKTUNE_RATE=64K dd if=short of=out bs=1k status=none
	[ "$(moved out write .largest)" = 8192 ]
	cmp short out
}

@test "without a rate, and for what is not tuned, nothing is held back" {
	shim dd if=in of=out bs=10k status=none
	[ "$(jq '[.rate, .throttle_s] == [0, 0]' r.json)" = true ]
	rm r.json
	shim BLKTUNE_RATE=1K BLKTUNE_MODE=observe dd if=in of=out bs=100k status=none
	[ "$(jq '[.rate, .throttle_s] == [1024, 0]' r.json)" = true ]
}

@test "signals arrive while it sleeps, and it sleeps on" {
	# dies at once, where it would sleep for a minute
	run -124 timeout -s TERM -k 30 1 env LD_PRELOAD="$LIB" BLKTUNE_RATE=1K dd if=in of=out bs=64k count=1 status=none
	head -c 60000 in >piece
	run shim BLKTUNE_RATE=100K $PYTHON -ISB -c '
import os, signal
hits = []
signal.signal(signal.SIGALRM, lambda *a: hits.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
b = open("piece", "rb").read()
o = os.open("out", os.O_WRONLY | os.O_CREAT)
n = os.write(o, b)
signal.setitimer(signal.ITIMER_REAL, 0)
os.close(o)
print(n, len(hits) > 0)'
	[ "$output" = "60000 True" ]
	held_back 60000 102400
	cmp piece out
}

@test "a child has a budget of its own" {
	SETTINGS=(BLKTUNE_REPORT="$PWD/%p.json" "BLKTUNE_ONLY=$PWD/*")
	shim BLKTUNE_RATE=6000000 $PYTHON -ISB -c '
import os
f = os.open("in", 0)
while os.read(f, 100000):
	pass
pid = os.fork()
if not pid:
	f = os.open("in", 0)
	os.read(f, 300000)
	os._exit(0)
print(pid, file=open("child", "w"))
os.waitpid(pid, 0)'
	mv "$(cat child).json" r.json
	[ "$(moved in read .bytes)" = 300000 ]
	jq -e --argjson most "$(moved in read '.moved / 6000000 + 0.001')" '.throttle_s <= $most' r.json
}

@test "each engine, and a raw device" {
	local engine dev
	for engine in uring aio sync; do
		rm -f out r.json
		shim BLKTUNE_ENGINE=$engine BLKTUNE_RATE=6000000 dd if=in of=out bs=10k status=none
		cmp in out
		held_back 3000000 6000000
	done
	need_root
	truncate -s 4M disk
	dev=$(losetup -f --show disk)
	rm r.json
	shim BLKTUNE_RATE=6000000 dd if=in of="$dev" bs=10k status=none || { losetup -d "$dev"; false; }
	losetup -d "$dev"
	cmp -n 3000000 in disk
	held_back 3000000 6000000
}

@test "threads share one rate" {
	cat >threads.c <<-'END'
		#include <fcntl.h>
		#include <pthread.h>
		#include <unistd.h>
		static void *one(void *name)
		{
			static __thread char b[10000];
			int in = open("in", O_RDONLY), out = open(name, O_WRONLY | O_CREAT, 0644);
			for (ssize_t n; (n = read(in, b, sizeof(b))) > 0;)
				if (write(out, b, n) != n)
					return one;
			return close(out) ? one : NULL;
		}
		int main(void)
		{
			pthread_t t;
			void *r = one;
			pthread_create(&t, NULL, one, "a");
			void *own = one("b");
			pthread_join(t, &r);
			return r || own;
		}
	END
	"${CC:-cc}" -o threads threads.c -pthread
	shim BLKTUNE_RATE=12000000 ./threads
	cmp in a
	cmp in b
	# both sleep at the same time
	jq -e '.throttle_s > 0 and .elapsed_s >= 0.499' r.json
}
