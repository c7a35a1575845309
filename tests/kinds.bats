#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Files that are not plain ones on a plain filesystem, open flags and rights of every kind,
# and doors that few programs use: the same with the shim as without.
load lib

setup_file() {
	require_shim || return
	pattern 3000000 >"$BATS_FILE_TMPDIR/in"
	export JOB_DIR=$BATS_FILE_TMPDIR
	if [ "$(id -u)" = 0 ]; then
		JOB_DIR=$(fs_make ext4) || return
		# somebody who is not root works there, too
		local dir=$JOB_DIR
		while [ "$dir" != / ]; do
			chmod a+x "$dir"
			dir=$(dirname "$dir")
		done
	fi
}

teardown_file() {
	fs_drop
}

# c OPTION...: the here-document is a C program.
c() {
	cat >"$BATS_TEST_TMPDIR/job.c"
	"${CC:-cc}" -D_GNU_SOURCE -O1 -w -o "$BATS_TEST_TMPDIR/job" "$BATS_TEST_TMPDIR/job.c" "$@"
	job "$BATS_TEST_TMPDIR/job" </dev/null
}

@test "proc, sys and devices" {
	job bash script <<'EOF'
for f in /proc/version /proc/filesystems /proc/sys/kernel/ostype /proc/self/limits /sys/kernel/mm/transparent_hugepage/enabled; do
	cat $f | cksum
	cp $f copy && cat copy | cksum
	dd if=$f bs=7 status=none | cksum
done
rm copy
(echo 17 >/proc/self/oom_score_adj && cat /proc/self/oom_score_adj) 2>&1
(echo junk >/proc/self/oom_score_adj) 2>&1
head -c 1000003 /dev/zero | cksum
head -c 1000003 /dev/urandom | wc -c
dd if=/dev/zero of=zeros bs=3000 count=500 status=none; cksum zeros
dd if=in of=/dev/null bs=5000 2>&1 | head -n 2
dd if=in of=/dev/full bs=5000 2>&1 | head -n 3
tar -cf /dev/null in && echo tar
EOF
}

@test "a process looks at itself in proc" {
	job_python <<'EOF'
import os
f = os.open('/proc/self/comm', os.O_RDWR); os.write(f, b'abc'); os.lseek(f, 0, 0); print(os.read(f, 99))
os.lseek(f, 0, 0); print(os.read(f, 2), os.read(f, 99))
m = os.open('/proc/self/mem', os.O_RDONLY)
try: os.pread(m, 10, 0)
except OSError as e: print(e.strerror)
f = os.open('out', os.O_RDWR | os.O_CREAT); os.write(f, b'x' * 70000)
print(os.readlink('/proc/self/fd/%d' % f).split('/')[-1], os.stat('/proc/self/fd/%d' % f).st_size)
# a ring of the shim's has a high one
print([n for n in map(int, os.listdir('/proc/self/fd')) if n < 100])
EOF
}

@test "sealed memory files, pseudo-terminals, named pipes, epoll" {
	job_python <<'EOF'
import fcntl, os, pty, select, tty
d = open('in', 'rb').read()
def err(f, *a):
    try: print(f(*a))
    except OSError as e: print(e.strerror)
f = os.memfd_create('x', os.MFD_ALLOW_SEALING); os.write(f, d); os.lseek(f, 0, 0); print(os.read(f, 4000000) == d)
fcntl.fcntl(f, 1033, 2 | 4 | 8); err(os.write, f, b'x'); err(os.ftruncate, f, 5); print(os.pread(f, 5, 7) == d[7:12])
m, s = pty.openpty(); tty.setraw(s); os.write(m, b'typed'); print(os.read(s, 99))
r, w = os.pipe(); os.set_blocking(r, False); err(os.read, r, 1)
os.mkfifo('q'); a = os.open('q', os.O_RDWR | os.O_NONBLOCK); os.write(a, b'fifo'); print(os.read(os.open('q', os.O_RDONLY | os.O_NONBLOCK), 9))
os.mkfifo('q2'); err(os.open, 'q2', os.O_WRONLY | os.O_NONBLOCK)
z = os.open('/dev/zero', os.O_RDWR); print(os.read(z, 5), os.write(z, b'x' * 70000), os.lseek(z, 0, 1))
n = os.open('/dev/null', os.O_RDWR); print(os.read(n, 5), os.write(n, b'x' * 70000)); print(len(os.read(os.open('/dev/random', os.O_RDONLY), 16)))
e = select.epoll(); i = os.open('in', os.O_RDONLY); err(e.register, i); print(select.select([i], [i], [], 1) == ([i], [i], []))
o = os.open('out', os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK); print(os.write(o, d)); err(e.register, o)
EOF
}

@test "ends of pipes: no copy of them stays open" {
	job_python <<'EOF'
import os, socket, subprocess
r, w = os.pipe(); p = subprocess.Popen(['cat'], stdin=r, stdout=open('o', 'wb')); os.close(r)
f = os.open('big', os.O_WRONLY | os.O_CREAT)
for i in range(300): os.write(f, b'd' * 5000)
os.write(w, b'd' * 100000); os.close(w); print(p.wait(timeout=60), os.path.getsize('o'))
a, b = socket.socketpair(); os.write(a.fileno(), b'hi'); a.close(); print(b.recv(9), b.recv(9))
os.mkfifo('q'); p = subprocess.Popen('seq 1 100000 >q', shell=True); print(subprocess.check_output(['tail', '-n1', 'q'])); print(p.wait(timeout=60))
EOF
}

# A socket that keeps the bounds of records stands for the tape.
@test "records: as many bytes in each as the program writes" {
	job_python <<'EOF'
import os, socket, subprocess, threading
d = open('in', 'rb').read(400000); os.mkdir('d'); open('d/1', 'wb').write(d[:40000]); open('d/2', 'wb').write(d)
def record(cmd):
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET); b.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    p = subprocess.Popen(cmd, stdout=b, stderr=subprocess.DEVNULL); b.close(); all = []
    while x := a.recv(1 << 20): all.append(x)
    return p.wait(), all
def play(cmd, all):
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET); p = subprocess.Popen(cmd, stdin=b, stdout=subprocess.PIPE); b.close()
    def feed():
        try:
            for x in all: a.send(x)
        except OSError: pass
        a.close()
    t = threading.Thread(target=feed); t.start(); o = p.communicate()[0]; t.join(); return p.returncode, o
for n in 20, 112, 256:
    rc, all = record(['tar', '-b', str(n), '--sort=name', '-cf', '-', 'd']); print(rc, {len(x) for x in all} == {n * 512}, play(['tar', '-b', str(n), '-tf', '-'], all))
rc, all = record(['dd', 'if=d/2', 'bs=7000']); print(rc, len(all), len(all[0]), len(all[-1])); print(play(['dd', 'bs=64k', 'of=back', 'status=none'], all), open('back', 'rb').read() == d)
rc, all = record(['dd', 'if=d/2', 'ibs=3000', 'obs=10240']); print(rc, len(all), len(all[0]), len(all[-1]))
EOF
}

@test "run what was just written" {
	job_python <<'EOF'
import errno, os, subprocess, threading
src = open('/bin/true', 'rb').read(); bad = 0; stop = False
def busy():
    while not stop: subprocess.run(['/bin/true'])
t = threading.Thread(target=busy); t.start()
for i in range(30):
    f = os.open('p', os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o755)
    for n in range(0, len(src), 1000): os.write(f, src[n:n + 1000])
    os.close(f)
    # a child of the other thread's may hold the file until its exec: that is so bare, too
    for turn in range(1000):
        try: bad += subprocess.call(['./p']) != 0; break
        except OSError as e:
            if e.errno != errno.ETXTBSY: raise
    else: bad += 1
    os.unlink('p')
stop = True; t.join(); print('failures', bad)
for i in range(30):
    f = os.open('p', os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o755)
    for n in range(0, len(src), 1000): os.write(f, src[n:n + 1000])
    os.close(f); print(subprocess.call(['./p']), end=' '); os.unlink('p')
open('s', 'w').write('#!/bin/sh\n' + '# a comment\n' * 10000 + 'exit 7\n'); os.chmod('s', 0o755); print(subprocess.call(['./s']))
EOF
}

@test "flags: O_EXCL, O_TRUNC, O_TMPFILE, O_NOFOLLOW, O_PATH, O_DIRECTORY, O_SYNC" {
	job_python <<'EOF'
import fcntl, os
d = open('in', 'rb').read()
def err(f, *a):
    try: print(f(*a))
    except OSError as e: print(e.strerror)
f = os.open('ex', os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600); print(os.write(f, d[:200000])); err(os.open, 'ex', os.O_RDWR | os.O_CREAT | os.O_EXCL); os.close(f)
t = os.open('ex', os.O_WRONLY | os.O_TRUNC); print(os.fstat(t).st_size, os.write(t, d[:150000]))
u = os.open('ex', os.O_WRONLY | os.O_TRUNC); print(os.write(u, d[:10]), os.write(t, b'X')); os.close(u); os.close(t); print(os.path.getsize('ex'))
f = os.open('.', os.O_RDWR | os.O_TMPFILE, 0o600); print(os.write(f, d), os.fstat(f).st_nlink, os.fstat(f).st_size)
os.link('/proc/self/fd/%d' % f, 'named', src_dir_fd=0, follow_symlinks=True); os.lseek(f, 0, 0); print(os.read(f, 4000000) == d, os.path.getsize('named')); os.close(f)
os.symlink('in', 'ln'); err(os.open, 'ln', os.O_RDONLY | os.O_NOFOLLOW); f = os.open('in', os.O_PATH); err(os.read, f, 5); print(os.fstat(f).st_size)
err(os.open, 'in', os.O_RDONLY | os.O_DIRECTORY); err(os.read, os.open('.', os.O_RDONLY), 5); err(os.open, '.', os.O_WRONLY); err(os.open, 'no/such', os.O_RDONLY)
for flag in os.O_SYNC, os.O_DSYNC, os.O_APPEND, os.O_NONBLOCK, os.O_NOATIME, os.O_NOCTTY, os.O_DIRECT:
    f = os.open('fl', os.O_RDWR | os.O_CREAT | flag); print(oct(fcntl.fcntl(f, fcntl.F_GETFL)), fcntl.fcntl(f, fcntl.F_GETFD)); err(os.write, f, d[:4095]); err(os.write, f, d[:777]); os.close(f)
EOF
}

@test "POSIX asynchronous I/O, contexts of the kernel's, and raw system calls" {
	c -lrt <<'EOF'
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
static char b[300000], ref[300000];
static long ended(struct aiocb *a)
{
	const struct aiocb *l[] = { a };
	while (aio_suspend(l, 1, 0) && errno == EINTR)
		;
	return aio_return(a);
}
int main(void)
{
	int i = open("in", O_RDONLY), o = open("o", O_RDWR | O_CREAT | O_TRUNC, 0644);
	pread(i, ref, sizeof(ref), 0);
	write(o, ref, 100001);
	struct aiocb a = { .aio_fildes = o, .aio_buf = b, .aio_nbytes = 6, .aio_offset = 99990 };
	aio_read(&a);
	printf("%ld ", ended(&a));
	printf("%d\n", !memcmp(b, ref + 99990, 6));
	a.aio_buf = "XYZ", a.aio_nbytes = 3, a.aio_offset = 50000;
	aio_write(&a);
	printf("%ld\n", ended(&a));
	lseek(o, 49999, SEEK_SET);
	printf("%zd ", read(o, b, 9));
	printf("%.3s\n", b + 1);
	struct aiocb two[2] = { { .aio_fildes = o, .aio_buf = "one", .aio_nbytes = 3, .aio_offset = 7, .aio_lio_opcode = LIO_WRITE },
		{ .aio_fildes = o, .aio_buf = b, .aio_nbytes = 1000, .aio_offset = 3000, .aio_lio_opcode = LIO_READ } }, *list[] = { two, two + 1 };
	printf("%d", lio_listio(LIO_WAIT, list, 2, 0));
	printf(" %zd %zd %d\n", aio_return(two), aio_return(two + 1), !memcmp(b, ref + 3000, 1000));
	aio_fsync(O_SYNC, &a);
	printf("%ld\n", ended(&a));

	aio_context_t c = 0;
	struct iocb k[2] = { { .aio_fildes = i, .aio_lio_opcode = IOCB_CMD_PREAD, .aio_buf = (long)b, .aio_nbytes = 65536, .aio_offset = 100 },
		{ .aio_fildes = o, .aio_lio_opcode = IOCB_CMD_PWRITE, .aio_buf = (long)ref, .aio_nbytes = 5000, .aio_offset = 200000 } }, *kk[] = { k, k + 1 };
	struct io_event e[2];
	printf("%ld ", syscall(SYS_io_setup, 4, &c));
	printf("%ld ", syscall(SYS_io_submit, c, 2, kk));
	printf("%ld ", syscall(SYS_io_getevents, c, 2, 2, e, 0));
	printf("%ld %d %ld\n", (long)(e[0].res + e[1].res), !memcmp(b, ref + 100, 65536), (long)lseek(o, 0, SEEK_END));
	syscall(SYS_io_destroy, c);

	struct iovec v[3] = { { ref, 7 }, { ref + 7, 0 }, { ref + 7, 100000 } }, r[2] = { { b, 50000 }, { b + 50000, 60000 } };
	lseek(o, 0, SEEK_SET);
	printf("%zd\n", writev(o, v, 3));
	lseek(o, 0, SEEK_SET);
	printf("%zd ", readv(o, r, 2));
	printf("%d\n", !memcmp(b, ref, 100007));
	printf("%zd ", pwritev2(o, v, 1, 0, RWF_APPEND));
	printf("%ld ", (long)lseek(o, 0, SEEK_END));
	lseek(o, 20, SEEK_SET);
	printf("%zd ", preadv2(o, r, 1, -1, 0));
	printf("%ld ", (long)lseek(o, 0, SEEK_CUR));
	printf("%zd\n", preadv(i, r, 2, 250000));

	syscall(SYS_write, o, "SYS", 3);
	lseek(o, -3, SEEK_CUR);
	syscall(SYS_read, o, b, 3);
	write(o, "+", 1);
	printf("%ld ", syscall(SYS_lseek, o, -4, SEEK_CUR));
	printf("%zd ", read(o, b, 4));
	printf("%.4s\n", b);
	int p = syscall(SYS_openat, AT_FDCWD, "p", O_RDWR | O_CREAT, 0600), q = syscall(SYS_dup, p);
	syscall(SYS_write, p, ref, 70000);
	write(q, "by another number", 17);
	printf("%ld ", syscall(SYS_lseek, p, 0, SEEK_CUR));
	printf("%ld ", syscall(SYS_close, p));
	printf("%ld\n", (long)lseek(q, 0, SEEK_CUR));
	return 0;
}
EOF
}

# What liburing and libaio do, they do by system calls of their own: nobody sees it.
@test "programs with a library of asynchronous calls" {
	local dir=$BATS_TEST_TMPDIR name
	cat >"$dir/x.c" <<'EOF'
#include "shim/sys.h"
long unseen_pwrite(int fd, const void *p, long n, long off) { return sys(SYS_pwrite64, fd, p, n, off); }
long unseen_pread(int fd, void *p, long n, long off) { return sys(SYS_pread64, fd, p, n, off); }
EOF
	cat >"$dir/job.c" <<'EOF'
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
long unseen_pwrite(int, const void *, long, long), unseen_pread(int, void *, long, long);
static char b[5000];
int main(void)
{
	int f = open("in", O_RDWR), w = open("out", O_RDWR | O_CREAT, 0644), news = 0;
	for (int i = 0; i < 300; i++) {
		read(f, b, sizeof(b));
		news += !memcmp(b, "news", 4);
		unseen_pwrite(f, "news", 4, (i + 1) * 5000L);
	}
	printf("%d news\n", news);
	for (int i = 0; i < 300; i++) {
		memset(b, i, sizeof(b));
		write(w, b, sizeof(b));
		b[7] = 0;
		news -= unseen_pread(w, b, sizeof(b), i * 5000L) == sizeof(b) && b[7] == (char)i;
	}
	printf("%d\n", news);
	return 0;
}
EOF
	for name in liburing.so.2 libaio.so.1; do
		"${CC:-cc}" -D_GNU_SOURCE -shared -fPIC -I"$ROOT" -Wl,-soname,$name -o "$dir/$name" "$dir/x.c"
		"${CC:-cc}" -O1 -w -o "$BATS_TEST_TMPDIR/job" "$dir/job.c" "$dir/$name" -Wl,-rpath,"$dir"
		job "$BATS_TEST_TMPDIR/job" </dev/null
		shim BLKTUNE_REPORT="$dir/report.json" "$BATS_TEST_TMPDIR/job"
		jq -e '.files | length == 2 and all(.[]; .reason == "aio")' "$dir/report.json"
	done
}

@test "other libraries read and write before main and at exit" {
	local dir=$BATS_TEST_TMPDIR
	cat >"$dir/x.c" <<'EOF'
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int f;
static char b[90000];
__attribute__((constructor)) static void early(void)
{
	memset(b, 'c', sizeof(b));
	f = open("trace", O_RDWR | O_CREAT | O_TRUNC, 0644);
	write(f, b, sizeof(b));
	lseek(f, 0, SEEK_SET);
	read(f, b, 5);
}
static void at(void) { write(f, "atexit ", 7); }
__attribute__((destructor)) static void late(void)
{
	write(f, "late ", 5);
	int g = open("late", O_WRONLY | O_CREAT | O_TRUNC, 0644);
	for (int i = 0; i < 100; i++)
		write(g, b, 5000);
	write(g, "opened at exit", 14);
}
void hello(void)
{
	atexit(at);
	lseek(f, 0, SEEK_END);
	write(f, "hello ", 6);
}
EOF
	"${CC:-cc}" -w -shared -fPIC -o "$dir/libx.so" "$dir/x.c"
	c -L"$dir" -lx -Wl,-rpath,"$dir" <<'EOF'
#include <stdio.h>
void hello(void);
int main(void) { hello(); return puts("main") < 0; }
EOF
	cd "$JOB_DIR/work"
	[ "$(tail -c 18 trace)" = "hello atexit late " ]
	[ "$(tail -c 14 late)" = "opened at exit" ]
}

@test "numbers as high as they go" {
	job_python <<'EOF'
import os, resource
n = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 1 << 20); resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
f = os.open('in', os.O_RDONLY); os.dup2(f, n - 1); print(len(os.read(n - 1, 50000)), os.lseek(f, 0, 1))
w = os.open('g', os.O_WRONLY | os.O_CREAT); os.dup2(w, n // 2); os.write(n // 2, b'h' * 70000); os.close(n // 2); os.write(w, b'i'); os.close(w); print(os.stat('g').st_size)
os.closerange(3, n); x = os.open('in', os.O_RDONLY); print(x, len(os.read(x, 10)))
print('memory', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40000)
EOF
}

# -------------------------------------------------------------------- these need root

@test "no access time where none is wanted, and one where it is" {
	need_root
	mount -o remount,strictatime "$JOB_DIR"
	job bash script <<'EOF'
touch -a -d 2001-01-01 in
seen() { echo "$1 $(stat -c %x in | cut -c1-4)"; }
tar --atime-preserve=system -cf - in | cat >/dev/null; seen system
tar --atime-preserve=replace -cf - in | cat >/dev/null; seen replace
dd if=in iflag=noatime bs=4096 status=none | cksum; seen noatime
cat in >/dev/null; [ "$(stat -c %X in)" -gt 1500000000 ] && echo "cat: now"
touch -a -d 2001-01-01 in; cp in copy; [ "$(stat -c %X in)" -gt 1500000000 ] && echo "cp: now"
setpriv --reuid 65534 --regid 65534 --clear-groups dd if=in iflag=noatime of=/dev/null 2>&1; :
EOF
	mount -o remount,relatime "$JOB_DIR"
}

@test "a file that may only grow" {
	need_root
	need chattr
	job bash script <<'EOF'
echo start >log; chattr +a log
for i in 1 2 3; do echo $i >>log; done
dd if=in of=log bs=700 count=100 oflag=append conv=notrunc status=none
cat in >>log; cksum log
(echo no >log) 2>&1
dd if=in of=log conv=notrunc 2>&1
chattr -a log
EOF
}

@test "rights given up after open; another root directory" {
	need_root
	job_python <<'EOF'
import hashlib, os
os.chmod('.', 0o777); os.chmod('in', 0o600); l = os.open('log', os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600); f = os.open('in', os.O_RDONLY)
pid = os.fork()
if not pid:
    os.setgroups([]); os.setgid(65534); os.setuid(65534); h = hashlib.sha256(); n = 0
    while d := os.read(f, 4096): h.update(d); n += len(d); os.write(l, b'%d\n' % n)
    print(n, h.hexdigest(), flush=True)
    try: os.open('in', os.O_RDONLY)
    except OSError as e: print(e.strerror, flush=True)
    g = os.open('of-nobody', os.O_RDWR | os.O_CREAT); os.write(g, b'j' * 100000); os._exit(0)
os.waitpid(pid, 0); os.lseek(f, 0, 0); os.mkdir('jail'); w = os.open('out', os.O_WRONLY | os.O_CREAT); os.read(f, 10)
os.chroot('jail'); os.chdir('/'); n = 0
while d := os.read(f, 4096): n += os.write(w, d)
g = os.open('inside', os.O_RDWR | os.O_CREAT); os.write(g, b'j' * 100000); os.lseek(g, 0, 0); print(n, len(os.read(g, 200000))); os.close(w)
EOF
}

@test "a set-uid bit set before close, by one who is not root" {
	need_root
	job bash script <<'EOF'
chmod 777 .
setpriv --reuid 65534 --regid 65534 --clear-groups /usr/bin/python3 -c '
import os
f = os.open("su", os.O_WRONLY | os.O_CREAT, 0o644); os.write(f, b"x" * 70001); os.fchmod(f, 0o4755); os.close(f); print(oct(os.stat("su").st_mode), os.path.getsize("su"))
f = os.open("su2", os.O_WRONLY | os.O_CREAT, 0o644); os.fchmod(f, 0o4755); os.write(f, b"x"); os.close(f); print(oct(os.stat("su2").st_mode))'
EOF
}

@test "umount right after the last close, by a process that goes on" {
	need_root
	export IMG=$BATS_FILE_TMPDIR/umount.img
	job_python <<'EOF'
import os, subprocess
img = os.environ['IMG']; os.mkdir('m'); d = open('in', 'rb').read()
subprocess.check_call(['bash', '-c', 'rm -f "$IMG"; truncate -s 64M "$IMG" && mkfs.ext4 -q "$IMG"'])
for turn in range(4):
    subprocess.check_call(['mount', '-o', 'loop', img, 'm'])
    if turn: print(os.path.getsize('m/out'), open('m/out', 'rb').read() == d * turn)
    f = os.open('m/in', os.O_RDWR | os.O_CREAT); os.write(f, d); os.lseek(f, 0, 0)
    while os.read(f, 4096): pass
    os.close(f); g = os.open('m/out', os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for n in range(0, len(d), 5000): os.write(g, d[n:n + 5000])
    os.close(g); print('umount', subprocess.call(['umount', 'm']))
EOF
}

@test "overlay: a file is copied up under an open reader" {
	need_root
	job bash script <<'EOF'
mkdir l u w o; cp in l/f; cp in ref
mount -t overlay none -o lowerdir=l,upperdir=u,workdir=w o || exit
/usr/bin/python3 -c '
import os
ref = open("ref", "rb").read(); r = os.open("o/f", os.O_RDONLY); d = os.read(r, 4096); w = os.open("o/f", os.O_RDWR)
os.pwrite(w, b"UPPER", 100000); os.write(w, b"HEAD")
while x := os.read(r, 4096): d += x
print("old", d == ref); print("new", os.pread(w, 5, 100000), open("o/f", "rb").read(4)); os.close(w)
f = os.open("o/new", os.O_RDWR | os.O_CREAT); os.write(f, ref); os.rename("o/new", "o/x"); os.link("o/x", "o/y"); os.lseek(f, 0, 0); print(len(os.read(f, 4000000)), os.stat("o/y").st_size)'
umount o; cksum u/*; rm -r w u; cmp l/f ref && echo lower untouched
EOF
}

@test "FUSE, with and without its direct_io" {
	need_root
	need bindfs
	[ -c /dev/fuse ] || skip "needs /dev/fuse"
	job bash script <<'EOF'
mkdir src fm; cp in src/a; trap 'umount fm 2>/dev/null' EXIT
for opt in "" "-o direct_io"; do
	bindfs $opt src fm || exit
	cp fm/a fm/b && cmp src/b in && echo "cp$opt"
	dd if=fm/a of=fm/c bs=3000 status=none && cmp src/c in && echo "dd$opt"
	for i in 1 2 3; do echo $i >>fm/log; done; cat fm/log
	/usr/bin/python3 -c '
import os
f = os.open("fm/a", os.O_RDWR); os.read(f, 9); os.pwrite(f, b"FUSE", 500); print(os.pread(f, 4, 500))'
	umount fm; rm src/b src/c src/log; cp in src/a
done
EOF
}

@test "programs that make, check and label filesystems" {
	need_root
	need e2fsck tune2fs e2label resize2fs sfdisk wipefs blkid
	job bash script <<'EOF'
truncate -s 48M img; dev=$(losetup -f --show img) || exit
trap 'umount m 2>/dev/null; losetup -d "$dev"; rm -rf m img' EXIT
mkdir m
mkfs.ext4 -q -F -b 1024 -U 6f4e2f6a-0001-4002-8003-000000000004 "$dev" && e2fsck -fp "$dev" >/dev/null; echo "fsck $?"
mount "$dev" m && cp in m/f
dumpe2fs -h "$dev" 2>/dev/null | grep -c "Filesystem volume"
mkfs.ext4 -q "$dev" </dev/null 2>&1 | grep -o "is mounted"
/usr/bin/python3 -c '
import os, sys
try: os.open(sys.argv[1], os.O_RDWR | os.O_EXCL)
except OSError as e: print(e.strerror)' "$dev"
umount m
/usr/bin/python3 -c '
import os, sys
f = os.open(sys.argv[1], os.O_RDWR | os.O_EXCL); os.read(f, 4096); os.close(f); f = os.open(sys.argv[1], os.O_RDWR | os.O_EXCL); print("again")' "$dev"
e2label "$dev" other; tune2fs -L third "$dev" >/dev/null; blkid -p -o value -s LABEL "$dev"
resize2fs "$dev" 40000 >/dev/null 2>&1; e2fsck -fp "$dev" >/dev/null; echo "fsck $?"
mount "$dev" m && cmp in m/f && echo same; umount m
mkfs.xfs -q -f -d size=320m,file=1,name=x.img && xfs_repair -f x.img >/dev/null 2>&1; echo "xfs $?"; rm x.img
truncate -s 120M img; losetup -c "$dev"; mkfs.btrfs -q -f "$dev" >/dev/null && btrfs check "$dev" >/dev/null 2>&1; echo "btrfs $?"
echo ",20M,L" | sfdisk -q "$dev" 2>/dev/null; sfdisk -l -o Size "$dev" 2>/dev/null | tail -n 1
wipefs -qa "$dev"; dd if=/dev/zero of="$dev" bs=1M count=2 conv=fsync status=none; blkid -p "$dev"; echo "blkid $?"
EOF
}

@test "btrfs: the program's buffer may change as soon as write has returned" {
	need_root
	export FS
	FS=$(FS_SIZE=256M fs_make btrfs)
	job_python <<'EOF'
import os, random, subprocess
fs = os.environ['FS']; r = random.Random(2); p = fs + '/b'; f = os.open(p, os.O_RDWR | os.O_CREAT | os.O_TRUNC); b = bytearray(5001); ref = bytearray(3000600)
for i in range(600): b[:] = bytes([i & 255]) * 5001; os.write(f, b); ref[i * 5001:i * 5001 + 5001] = b; b[:] = b'\xff' * 5001
for i in range(300):
    n = r.randrange(2900000); b[:] = bytes([i & 255]) * 5001; os.lseek(f, n, 0); os.write(f, b); ref[n:n + 5001] = b; b[:] = b'\xff' * 5001
os.close(f); subprocess.check_call(['sync', '-f', fs]); open('/proc/sys/vm/drop_caches', 'w').write('3'); print(open(p, 'rb').read() == ref)
print(subprocess.run(['btrfs', 'scrub', 'start', '-Bd', fs], capture_output=True, text=True).stdout.count('no errors found'))
EOF
}
