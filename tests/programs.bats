#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Whole programs with a small job give the same output and the same files.
load lib

setup_file() {
	require_shim || return
	pattern 3000000 >"$BATS_FILE_TMPDIR/in"
}

setup() {
	export HOME=$BATS_TEST_TMPDIR GIT_CONFIG_NOSYSTEM=1 SOURCE_DATE_EPOCH=1000000000
	export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
	export GIT_AUTHOR_DATE="1000000000 +0000" GIT_COMMITTER_DATE="1000000000 +0000"
}

SHELL_SCRIPT='
exec 3<in 4>log
head -c 100000 <&3 | cksum
dd bs=1000 count=7 <&3 2>/dev/null | cksum
cat <&3 | cksum
for i in 1 2 3 4 5 6 7 8 9 10; do echo "line $i" >&4; done
cat log
while read -r a b; do [ "$b" = 5 ] && cat >rest || echo "$a/$b"; done <log
cat rest
cat in in >twice; wc -c <twice
{ echo first; cat in; echo last; } >mixed; cksum mixed; tail -c 5 mixed
cat >here <<EOF
$(head -c 30 in | od -c)
EOF
cat here
cp in copy && cmp in copy && echo same
(sleep 0.1; echo late) >>log; tail -n 1 log
exec 4>&-; : >log; wc -c <log
gzip -nc in | gunzip | cksum
'

@test "bash" { job bash script <<<"$SHELL_SCRIPT"; }
@test "dash" { job dash script <<<"$SHELL_SCRIPT"; }
@test "a script fed to the shell on stdin" {
	job bash -c 'bash -s <script' <<'EOF'
echo one
read -r line
this line is data
echo "got $line"
exec cat >rest
the rest is data
as is this
EOF
	grep -q "as is this" rest
}

@test "python3" {
	job_python <<'EOF'
import hashlib, os, shutil, subprocess, sqlite3, tempfile, zipfile, mmap
d = open('in', 'rb').read()
h = lambda p: hashlib.sha256(open(p, 'rb').read()).hexdigest()
print(len(d), h('in'))
shutil.copyfile('in', 'a'); shutil.copy2('in', 'b'); print(h('a'), h('b'))
with open('c', 'wb') as f:
    for i in range(0, len(d), 777): f.write(d[i:i + 777])
    f.flush(); print(os.path.getsize('c'), subprocess.run(['wc', '-c', 'c'], capture_output=True).stdout)
with open('d', 'wb', buffering=0) as f:
    for i in range(0, len(d), 5000): f.write(d[i:i + 5000])
    print(os.stat('d').st_size, os.fstat(f.fileno()).st_size, subprocess.check_output('cksum d', shell=True))
    f.seek(1000); f.write(b'x' * 10); f.truncate(2000000)
print(h('c'), h('d'))
with zipfile.ZipFile('z', 'w') as z: z.writestr(zipfile.ZipInfo('in'), d)
with zipfile.ZipFile('z', 'a') as z: z.writestr(zipfile.ZipInfo('more'), d[:999])
print(zipfile.ZipFile('z').testzip(), h('z'))
with open('c', 'r+b') as f, mmap.mmap(f.fileno(), 0) as m:
    m[5:8] = b'abc'; f.seek(0); print(f.read(10)); os.pwrite(f.fileno(), b'zz', 6); print(m[5:9])
db = sqlite3.connect('s'); db.execute('create table t(x)')
for i in range(300): db.execute('insert into t values(?)', (d[i * 100:i * 100 + 500],))
db.commit(); print(db.execute('select count(*), sum(length(x)) from t').fetchall()); db.close()
print(sqlite3.connect('s').execute('pragma integrity_check').fetchall())
pid = os.fork()
if pid == 0:
    f = open('e', 'wb'); f.write(d); f.flush(); os._exit(3)
print(os.waitpid(pid, 0)[1], h('e'))
src = os.open('in', os.O_RDONLY); dst = os.open('f', os.O_WRONLY | os.O_CREAT)
n = 0
while True:
    m = os.sendfile(dst, src, n, 100000)
    if not m: break
    n += m
print(n, h('f'))
fd, name = tempfile.mkstemp(dir='.'); os.write(fd, d); os.rename(name, 'g'); print(h('g')); os.close(fd)
EOF
}

@test "perl" {
	need perl
	job perl script <<'EOF'
use strict; use Fcntl qw(:seek);
$| = 1;
open my $in, '<', 'in' or die; open my $out, '>', 'out' or die;
my ($n, $b) = 0;
while (sysread $in, $b, 4097) { syswrite $out, $b; $n += length $b }
print "$n ", -s 'out', " ", -s $out, "\n"; print `cksum out`;
close $out; print `cmp in out && echo same`;
open $out, '+<', 'out' or die; seek $out, 1000, SEEK_SET; print $out 'through stdio'; seek $out, 995, SEEK_SET;
read $out, $b, 30; print unpack('H*', $b), "\n"; close $out;
open $out, '>>', 'out' or die; print $out "end\n"; close $out; print -s 'out', "\n";
open $in, '<', 'in'; binmode $in; local $/ = \10000; my $c = 0; $c += unpack '%32C*', $_ while <$in>; print "$c\n";
rename 'out', 'renamed' or die; truncate 'renamed', 12345; print -s 'renamed', "\n";
if (my $p = fork) { waitpid $p, 0; print $? >> 8, "\n" } else { open my $f, '>', 'child'; syswrite $f, 'x' x 70000; exit 4 }
open my $p, '|-', 'cat >piped' or die; print $p 'y' x 100000; close $p; print -s 'piped', "\n";
EOF
}

@test "git" {
	need git
	job bash script <<'EOF'
set -e
mkdir repo; cd repo
git init -q -b main .; git config gc.auto 0
cp ../in big; for i in $(seq 50); do head -c $((i * 1000)) big >f$i; done
git add .; git commit -qm one; git rev-parse HEAD
for i in $(seq 50); do echo more >>f$i; done
git commit -qam two; git rev-parse HEAD; git status --short
git gc -q; git fsck --no-progress
git clone -q . ../clone; cd ../clone; git log --format=%H; git checkout -q HEAD~1; cksum big f50
git archive --format=tar HEAD | cksum
git bundle create -q ../bundle --all; git bundle verify -q ../bundle && echo verified
cd ..; rm -rf repo/.git clone/.git bundle
EOF
	cmp in clone/big
}

@test "gcc and make" {
	need gcc make
	job bash script <<'EOF'
set -e
for i in $(seq 8); do echo "int f$i(int x) { return x + $i; }" >f$i.c; done
{ for i in $(seq 8); do echo "int f$i(int);"; done
  echo '#include <stdio.h>'
  echo 'int main(void) { int s = 0;'; for i in $(seq 8); do echo "s += f$i(s);"; done
  echo 'printf("%d\n", s); return 0; }'; } >main.c
printf 'static const char big[] = {' >table.c; od -An -v -tu1 -w16 -N 200000 in | sed 's/ *\([0-9]\+\)/\1,/g' >>table.c
echo '0}; int first(void) { return big[0]; }' >>table.c
cat >Makefile <<'MAKE'
OBJ = main.o table.o $(patsubst %,f%.o,1 2 3 4 5 6 7 8)
prog: $(OBJ) lib.a
	gcc -g0 -o $@ $(OBJ)
lib.a: $(OBJ)
	ar rcD $@ $(OBJ)
%.o: %.c
	gcc -O1 -g0 -w -c -o $@ $<
MAKE
make -s -j2
./prog
make -q && echo up to date
make -n -W f1.c
objcopy --strip-all prog stripped; ./stripped
ar t lib.a
EOF
}

@test "tar and gzip, archives changed in place" {
	job bash script <<'EOF'
set -eo pipefail
mkdir d; for i in $(seq 20); do head -c $((i * 7777)) in >d/f$i; done; touch -d @1000000000 d/* d
tar c --sort=name d | gzip -n >t.gz; tar tzvf t.gz --full-time; mkdir x; tar xzf t.gz -C x
tar cf t.tar d/f1; tar rf t.tar d/f2 d/f20; tar tf t.tar; tar --delete -f t.tar d/f2; tar tf t.tar; tar uf t.tar d/f3; tar tf t.tar
gzip -nk d/f20; gunzip -c d/f20.gz | cmp - d/f20; gzip -n d/f19; zcat d/f19 | cksum
diff -r d/f1 x/d/f1 && echo same
EOF
}

@test "pax: the same archive, and the same files out of it" {
	need pax
	local size how
	cd "$BATS_TEST_TMPDIR"
	mkdir -p in/sub
	for size in 0 1 511 512 65536 1048577 5000001; do
		pattern "$size" >"in/sub/$size"
	done
	chmod 640 in/sub/512
	touch -d '2001-02-03 04:05:06' in/sub/* in/sub in
	for how in bare shim; do
		"$how" pax -w -f "$how.pax" in
		mkdir "$how.out"
		(cd "$how.out" && "$how" pax -r -p e -f ../bare.pax)
		diff -r in "$how.out/in"
		mkdir "$how.copy"
		"$how" pax -rw -p e in "$how.copy"
		diff -r in "$how.copy/in"
		(cd "$how.out" && find in -printf '%p %s %m %T@\n' | sort) >"$how.list"
	done
	cmp bare.pax shim.pax
	same "$(cat bare.list)" "$(cat shim.list)"
}
