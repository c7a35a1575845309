#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Poor surroundings: where a program works without the library, it works with it, alike.
load lib

setup_file() {
	require_shim || return
	pattern 5000000 3 >"$BATS_FILE_TMPDIR/in"
}

setup() {
	cd "$BATS_TEST_TMPDIR"
	cp "$BATS_FILE_TMPDIR/in" in
	chmod 755 . in
	WITH=()
}

teardown() {
	local pair
	for pair in "${RESTORE[@]}"; do
		echo "${pair#*=}" >"/proc/sys/${pair%%=*}"
	done
}

# alike COMMAND...: under "${WITH[@]}", bare and with LIBRARY preloaded: output, status, and
# what is left in the directory "made".
LIBRARY=
alike() {
	local how said=()
	for how in bare shim; do
		rm -rf made
		mkdir -m 777 made
		if [ $how = bare ]; then
			said+=("$("${WITH[@]}" env ${BARE:+LD_PRELOAD="$BARE"} "$@" 2>&1; echo "status $?"; cd made && find . -type f | sort | xargs -r cksum)")
		else
			said+=("$("${WITH[@]}" env LD_PRELOAD="${LIBRARY:-$LIB}" "$@" 2>&1; echo "status $?"; cd made && find . -type f | sort | xargs -r cksum)")
		fi
	done
	[ "${EXPECT:-0}" = any ] || grep -qx "status ${EXPECT:-0}" <<<"${said[0]}" || fail "bare: ${said[0]}"
	same "${said[0]}" "${said[1]}" "$*"
}

JOB='cp in made/cp; cp --reflink=never in made/cp2; dd if=in of=made/dd bs=512 status=none; cat in >made/cat; tar cf made/tar in; dd if=made/dd bs=3000 status=none | cksum'

# root_with PROGRAM...: a directory to chroot into, with these, their libraries and ours.
root_with() {
	local p path lib
	mkdir -p root/bin root/lib root/etc root/made root/tmp
	cp "$LIB" root/lib/blk.so
	for p; do
		path=$(type -P "$p") || skip "needs $p"
		cp -L "$path" "root/bin/${p##*/}"
		for lib in $(ldd "$path" | grep -o '/[^ ]*'); do
			mkdir -p "root/${lib%/*}"
			[ -e "root/$lib" ] || cp -L "$lib" "root/$lib"
		done
	done
	cp in root/in
}

@test "a chroot with nothing in it: no proc, no sys, no dev" {
	need_root
	root_with sh cp dd cat tar cksum env find sort xargs rm mkdir
	local how said=()
	for how in "" /lib/blk.so; do
		said+=("$(chroot root /bin/env PATH=/bin ${how:+LD_PRELOAD=$how} sh -c "rm -rf made; mkdir made; $JOB; find made -type f | sort | xargs cksum" 2>&1; echo "status $?")")
	done
	grep -qx "status 0" <<<"${said[0]}" || fail "bare: ${said[0]}"
	same "${said[0]}" "${said[1]}"
}

@test "system-wide by /etc/ld.so.preload: what a boot and a package script do" {
	need_root
	root_with sh cp dd cat tar cksum env find sort xargs rm mkdir mv ln ls sed awk grep gzip install mktemp chmod chown touch \
		date head tail tr cut wc tee split stat ldconfig mount umount hostname id true
	# a shell's jobs in the background read from there
	mkdir root/dev
	cp -a /dev/null root/dev
	local how said=() script='
		rm -rf made; mkdir made; cd made; set -e
		for i in 1 2 3 4 5 6 7 8 9; do echo "line $i" >>log; done; cat log | tr a-z A-Z | head -n 3
		sed -i "s/line/LINE/" log; grep -c LINE log; awk "{ s += \$2 } END { print s }" log
		tar cf - --mtime=@1 log | gzip -nc >log.tgz; gzip -dc log.tgz | tar xf - -O | tail -n 1
		install -m 600 ../in installed; mv installed moved; ln moved hard; ln -s moved soft; stat -c "%a %s %h" moved soft
		t=$(mktemp ./XXXXXX); chmod 644 $t; mv $t plain; touch -d "2001-02-03 04:05:06" plain; stat -c %Y plain
		(cp ../in a & cp ../in b & wait); cksum a b; split -b 1M ../in part.; cat part.* | cksum; rm part.*
		cat <<-END | tee here | wc -l
			one
			two
		END
		ldconfig -r .. 2>&1 | head -n 1; id -u; find . -type f | sort | xargs cksum; rm hard; ls'
	for how in "" /lib/blk.so; do
		echo "$how" >root/etc/ld.so.preload
		[ -n "$how" ] || rm root/etc/ld.so.preload
		rm -f root/etc/ld.so.cache
		said+=("$(chroot root /bin/env -i PATH=/bin BLKTUNE_DIRECT_MIN=4K sh -c "$script" 2>&1; echo "status $?")")
	done
	grep -qx "status 0" <<<"${said[0]}" || fail "bare: ${said[0]}"
	same "${said[0]}" "${said[1]}"
}

@test "somebody who is not root; files of mode 0444 and 0200" {
	need_root
	need setpriv
	cp "$LIB" lib.so
	chmod 755 lib.so
	# what is not a directory of the tests' own may be closed to that user
	LIBRARY=./lib.so
	WITH=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	chmod 444 in
	alike sh -c "$JOB"
	alike sh -c 'umask 0577; dd if=in of=made/w bs=512 status=none; cp in made/w2; dd if=made/w bs=512 2>&1 | head -n 1; rm -f made/w made/w2'
	EXPECT=any alike sh -c 'dd if=in of=in bs=512 conv=notrunc'
}

@test "a read-only filesystem" {
	need_root
	truncate -s 64M image
	mkfs.ext4 -q image
	mkdir mnt
	mount -o loop image mnt
	cp in mnt/in
	mount -o remount,ro mnt
	alike sh -c 'cp mnt/in made/a; dd if=mnt/in bs=512 status=none | cksum; cat mnt/in >made/b'
	EXPECT=1 alike dd if=in of=mnt/new bs=512
	EXPECT=1 alike cp in mnt/in
	umount mnt
}

@test "io_uring and Linux AIO switched off" {
	need_root
	[ -e /proc/sys/kernel/io_uring_disabled ] || skip "this kernel cannot switch io_uring off"
	RESTORE=("kernel/io_uring_disabled=$(cat /proc/sys/kernel/io_uring_disabled)" "fs/aio-max-nr=$(cat /proc/sys/fs/aio-max-nr)")
	echo 2 >/proc/sys/kernel/io_uring_disabled
	alike sh -c "$JOB"
	echo 0 >/proc/sys/fs/aio-max-nr
	alike sh -c "$JOB"
}

@test "programs that lock themselves in" {
	need file xz
	gzip -c in >in.gz
	xz -kc in >in.xz
	alike file -z in.gz in.xz
	alike sh -c 'xz -kc in >made/x; xz -dc made/x | cksum; xz -t in.xz; xz -l in.xz | tail -n 1'
}

@test "another network and other processes" {
	need_root
	WITH=(unshare -n -p -f)
	alike sh -c "$JOB"
}

@test "a program that may not be looked into" {
	cat >dump.c <<-'END'
		#include <fcntl.h>
		#include <sys/prctl.h>
		#include <unistd.h>
		int main(void)
		{
			static char b[3000];
			int in = open("in", O_RDONLY), out;
			ssize_t n;
			prctl(PR_SET_DUMPABLE, 0);
			out = open("made/out", O_WRONLY | O_CREAT, 0644);
			while ((n = read(in, b, sizeof(b))) > 0)
				if (write(out, b, n) != n)
					return 1;
			return close(out);
		}
	END
	"${CC:-cc}" -o dump dump.c
	alike ./dump
}

@test "programs with sanitizers" {
	cat >asan.c <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		int main(void)
		{
			char *b = malloc(3000);
			FILE *in = fopen("in", "r"), *out = fopen("made/out", "w");
			size_t n;
			while ((n = fread(b, 1, 3000, in)) > 0)
				fwrite(b, 1, n, out);
			fclose(in);
			free(b);
			return fclose(out);
		}
	END
	"${CC:-cc}" -g -fsanitize=address,undefined -o asan asan.c || skip "this compiler has no sanitizers"
	alike env ASAN_OPTIONS=verify_asan_link_order=0 ./asan
}

# other NAME...: the path of another preload's library.
other() {
	local path
	for path in $(printf '%s\n' "/usr/lib/$(uname -m)-linux-gnu/"{,*/}"$1"* "/usr/lib/"{,*/}"$1"* | sort); do
		[ ! -f "$path" ] || { echo "$path"; return; }
	done
	return 1
}

@test "beside other preloads, before them and after" {
	local name path tried=0
	for name in libeatmydata.so nocache.so libfaketime.so.1 libjemalloc.so.2; do
		path=$(other $name) || continue
		tried=$((tried + 1))
		BARE=$path LIBRARY=$path:$LIB alike sh -c "$JOB"
		BARE=$path LIBRARY=$LIB:$path alike sh -c "$JOB"
	done
	[ $tried -ge 2 ] || fail "only $tried other preloads are installed"
}

@test "under fakeroot" {
	need fakeroot
	WITH=(fakeroot)
	local how said=()
	for how in "" "$LIB"; do
		rm -rf made
		mkdir made
		said+=("$(fakeroot sh -c 'LD_PRELOAD=$LD_PRELOAD${1:+:$1}; export LD_PRELOAD; cp in made/a; chown 12:34 made/a; tar cf made/t --mtime=@1 made/a; tar tvf made/t; stat -c "%u %g" made/a; cksum made/*' sh "$how" 2>&1; echo "status $?")")
	done
	grep -qx "status 0" <<<"${said[0]}" || fail "bare: ${said[0]}"
	same "${said[0]}" "${said[1]}"
}
