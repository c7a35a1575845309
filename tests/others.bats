#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Other processes, threads and signals around a file: locks, logs that are followed and
# rotated, mailboxes. The same with the shim as without.
load lib

setup_file() {
	require_shim || return
	pattern 3000000 >"$BATS_FILE_TMPDIR/in"
}

@test "a counter under a lock, by four processes" {
	job_python <<'EOF'
import fcntl, os
d = open('in', 'rb').read(300000); open('counter', 'wb').write(b'%08d\n' % 0 + d)
for child in range(4):
    if not os.fork():
        f = os.open('counter', os.O_RDWR)
        for i in range(200):
            fcntl.lockf(f, fcntl.LOCK_EX, 8, 0, 0); os.lseek(f, 0, 0); n = int(os.read(f, 8)); os.lseek(f, 0, 0); os.write(f, b'%08d' % (n + 1)); fcntl.lockf(f, fcntl.LOCK_UN, 8, 0, 0)
        os._exit(0)
for child in range(4): print(os.wait()[1])
c = open('counter', 'rb').read(); print(c[:8], c[9:] == d)
EOF
}

@test "a mailbox with three writers" {
	job_python <<'EOF'
import mailbox, os
open('box', 'w').close() # two that find none would both make it, and the second cut what the first had written
for who in 'abc':
    if not os.fork():
        for i in range(20):
            m = mailbox.mbox('box', create=True)
            while True:
                try: m.lock(); break
                except mailbox.ExternalClashError: pass
            m.add(f'From: {who}\nSubject: {i}\n\n' + 'a line of it\n' * 300); m.flush(); m.unlock(); m.close()
        os._exit(0)
for who in 'abc': print(os.wait()[1])
m = mailbox.mbox('box'); print(len(m), len({(x['From'], x['Subject']) for x in m}), all(x.get_payload().count('a line') == 300 for x in m)); os.unlink('box')
EOF
}

@test "six processes append to one log" {
	job bash script <<'EOF'
for w in 1 2 3 4; do (for i in {1..300}; do echo "writer $w line $i xxxxxxxxxxxxxxxxxxxxxxxx"; done >>log) & done
for w in 5 6; do dd if=<(for i in {1..300}; do printf 'writer %d line %03d xxxxxxxxxxxxxxxxxx\n' $w $i; done) of=log oflag=append conv=notrunc ibs=1 obs=37 status=none & done
wait; wc -l <log; sort -u log | wc -l; grep -c '^writer . line .* x*$' log; tr -dc '\0' <log | wc -c; rm log
EOF
}

# What logrotate calls copytruncate.
@test "a log is copied and cut to nothing while it is written" {
	job_python <<'EOF'
import os
for flags in os.O_APPEND, 0:
    r, w = os.pipe(); r2, w2 = os.pipe()
    if not os.fork():
        f = os.open('log', os.O_WRONLY | os.O_CREAT | os.O_TRUNC | flags)
        for i in range(3000):
            os.write(f, b'line %04d\n' % i)
            if i == 1499: os.write(w, b'x'); os.read(r2, 1)
        os._exit(0)
    os.read(r, 1); old = open('log', 'rb').read(); os.truncate('log', 0); os.write(w2, b'x'); print(os.wait()[1])
    new = open('log', 'rb').read(); print(len(old), old.count(b'\n'), len(new), new.count(b'\n'), new.count(b'\0'), new.strip(b'\0')[:9])
EOF
}

@test "who follows a file sees each line before the next is written" {
	job_python <<'EOF'
import os, signal, time
r, w = os.pipe(); go = False
pid = os.fork()
if not pid:
    f = os.open('log', os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND); os.write(f, b'-' * 100000 + b'\n')
    for i in range(10): os.write(f, b'line %d\n' % i); os.read(r, 1)
    os.write(f, b'last\n'); os._exit(0)
def seen(text):
    end = time.time() + 60
    while time.time() < end:
        if os.path.exists('log') and open('log', 'rb').read().endswith(text): return True
        time.sleep(0.01)
    return False
for i in range(10): print(i, seen(b'line %d\n' % i)); os.write(w, b'x')
print(os.waitpid(pid, 0)[1], seen(b'last\n'))
EOF
}

@test "tail -f and tail -F" {
	need timeout
	job bash script <<'EOF'
# until COUNT LINES... are in "seen": at most a minute
until_lines() { for _ in {1..3000}; do [ "$(wc -l <seen)" -ge "$1" ] && return; sleep 0.02; done; echo "$1 lines do not come"; }
: >log; : >seen
timeout 100 tail -n +1 -s 0.05 -f log >seen & pid=$!
for i in {1..8}; do echo "line $i" >>log; until_lines $i; done
kill $pid; wait $pid 2>/dev/null; cat seen; : >seen
echo one >log
timeout 100 tail -n +1 -s 0.05 -F log >seen 2>/dev/null & pid=$!
until_lines 1; echo two >>log; until_lines 2; mv log log.1; echo three >log; until_lines 3; echo four >>log; until_lines 4
kill $pid; wait $pid 2>/dev/null; cat seen
EOF
}

# Signals that queue are counted one by one, and the thread that takes them is the program's.
@test "signals arrive once each, in the program's thread, and interrupt what they would" {
	local dir=$BATS_TEST_TMPDIR
	cat >"$dir/job.c" <<'EOF'
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_t mine;
static volatile sig_atomic_t got, elsewhere;
static void on(int sig)
{
	(void)sig;
	got++;
	elsewhere += !pthread_equal(mine, pthread_self());
}
static char b[5000];
int main(void)
{
	int in = open("in", O_RDONLY), out = open("out", O_RDWR | O_CREAT | O_TRUNC, 0644), bad = 0;
	long n;
	mine = pthread_self();
	struct sigaction a = { .sa_handler = on };
	sigaction(SIGRTMIN, &a, 0);
	pid_t pid = fork();
	if (!pid) {
		for (int i = 0; i < 1000; i++)
			while (sigqueue(getppid(), SIGRTMIN, (union sigval){ 0 }))
				usleep(1000);
		_exit(0);
	}
	// files are not interrupted, whatever the flags
	for (int turn = 0; turn < 20; turn++) {
		lseek(in, 0, SEEK_SET);
		while ((n = read(in, b, sizeof(b))) > 0)
			bad += write(out, b, n) != n;
		bad += n < 0;
	}
	while (waitpid(pid, 0, 0) < 0 && errno == EINTR)
		;
	while (got < 1000)
		usleep(1000);
	printf("%d of 1000, %d elsewhere, %d bad, %ld bytes\n", got, elsewhere, bad, (long)lseek(out, 0, SEEK_CUR));

	// a pipe is
	int p[2];
	pipe(p);
	if (!(pid = fork())) {
		pause();
		_exit(0);
	}
	timer_t t;
	struct sigevent e = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	struct itimerspec every = { { 0, 50000000 }, { 0, 50000000 } };
	timer_create(CLOCK_MONOTONIC, &e, &t);
	timer_settime(t, 0, &every, 0);
	n = read(p[0], b, 1);
	printf("%ld %s\n", n, strerror(errno));
	timer_delete(t);
	kill(pid, SIGKILL);
	waitpid(pid, 0, 0);

	// what the program blocks waits for it
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, 0);
	kill(getpid(), SIGTERM);
	for (int i = 0; i < 1000; i++)
		bad += write(out, b, sizeof(b)) != sizeof(b);
	printf("%d %d\n", sigtimedwait(&set, 0, &(struct timespec){ 30, 0 }) == SIGTERM, bad);
	return 0;
}
EOF
	"${CC:-cc}" -D_GNU_SOURCE -O1 -w -o "$dir/job" "$dir/job.c" -pthread -lrt
	job "$dir/job" </dev/null
}

@test "dd prints its counts when asked, and goes on" {
	job bash script <<'EOF'
mkfifo gate; exec 3<>gate
dd if=gate of=out bs=1000 iflag=fullblock count=300 2>said & pid=$!
head -c 150000 in >&3
for turn in 1 2 3; do
	for _ in {1..300}; do kill -USR1 $pid; sleep 0.02; [ "$(grep -c copied said)" -ge $turn ] && break; done
done
head -c 150000 in >&3; wait $pid; echo "status $?"
[ "$(grep -c copied said)" -gt 3 ] && echo counts; grep out said | tail -n 1; cksum out; rm said gate
EOF
}
