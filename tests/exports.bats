#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2153,SC2030,SC2031,SC2034,SC2164
# The library exports intercepted names and nothing else; each exists in libc; where one
# name of a call is taken, so are all the others, or two views of a file would exist.
load lib

setup_file() {
	require_shim
}

setup() {
	LIBC=$(ldd "$(type -P env)" | awk '$1 ~ /^libc\.so/ { print $3 }')
	[ -e "$LIBC" ] || fail "ldd shows no libc"
	OURS=$(exported "$LIB")
	THEIRS=$(exported "$LIBC")
}

# One call per line, with all the names that libc has for it or ever had. A name that
# this libc does not have is passed over.
FAMILIES='
open open64 __open __open64 __open_2 __open64_2
openat openat64 __openat_2 __openat64_2
creat creat64
read __read __read_chk
write __write
pread pread64 __pread64 __pread_chk __pread64_chk
pwrite pwrite64 __pwrite64
readv
writev
preadv preadv64
pwritev pwritev64
preadv2 preadv64v2
pwritev2 pwritev64v2
lseek lseek64 __lseek
close __close
close_range
closefrom
dup
dup2 __dup2
dup3
fcntl fcntl64 __fcntl
ftruncate ftruncate64
truncate truncate64
fallocate fallocate64
posix_fallocate posix_fallocate64
posix_fadvise posix_fadvise64
readahead
fsync
fdatasync
sync
syncfs
sync_file_range
sendfile sendfile64
copy_file_range
splice
tee
vmsplice
ioctl
mmap mmap64
fstat fstat64 __fxstat __fxstat64
stat stat64 __xstat __xstat64
lstat lstat64 __lxstat __lxstat64
fstatat fstatat64 __fxstatat __fxstatat64
statx
flock
lockf lockf64
futimens
utimensat
utime
utimes
fchmod
chmod
fchmodat
fchown
chown
fchownat
fsetxattr
setxattr
rename
renameat
renameat2
link
linkat
unlink
unlinkat
fork __fork
_Fork
vfork __vfork
execve
execv
execvp
execvpe
execl
execlp
execle
fexecve
posix_spawn
posix_spawnp
system
popen
_exit
_Exit
quick_exit
abort
raise
kill
fdopen
freopen freopen64
fclose
sendmsg
mkstemp mkstemp64
mkostemp mkostemp64
mkstemps mkstemps64
mkostemps mkostemps64
pipe __pipe
pipe2
socket
accept
accept4
recvmsg
'

@test "every exported name exists in libc" {
	strangers "$OURS" "$THEIRS"
}

@test "every name of every call that must be seen is exported" {
	local family name missing=()
	while read -r family; do
		for name in $family; do
			grep -qxF -e "$name" <<<"$THEIRS" || continue
			grep -qxF -e "$name" <<<"$OURS" || missing+=("$name")
		done
	done <<<"$FAMILIES"
	[ ${#missing[@]} = 0 ] || fail "not exported: ${missing[*]}"
}

@test "whatever else is exported comes with its 64, _chk and __ kin" {
	whole_families "$OURS" "$THEIRS"
}

@test "what other libraries resolve is left to libc" {
	run ! grep -xE 'dlsym|dlvsym|dlopen|malloc|calloc|free|getenv|clock_gettime' <<<"$OURS"
}

@test "no library is needed but libc" {
	local needed
	needed=$(readelf -d "$LIB" | awk '/\(NEEDED\)/ { gsub(/[][]/, "", $NF); print $NF }')
	grep -q '^libc\.so' <<<"$needed"
	needed=$(grep -vE '^(libc|ld-linux[^/]*|libdl)\.so\.[0-9]+$' <<<"$needed" || true)
	[ -z "$needed" ] || fail "needs $needed"
}

@test "programs built with all fortified and large-file forms read and write alike" {
	local form how prog
	for form in "" "-D_FILE_OFFSET_BITS=64" "-O2 -D_FORTIFY_SOURCE=2" "-O2 -D_FORTIFY_SOURCE=2 -D_FILE_OFFSET_BITS=64" "-D_LARGEFILE64_SOURCE -DUSE64"; do
		prog=$BATS_TEST_TMPDIR/forms
		# shellcheck disable=SC2086
		"${CC:-cc}" -U_FORTIFY_SOURCE $form -o "$prog" "$BATS_TEST_DIRNAME/forms.c"
		for how in bare shim; do
			"$how" "$prog" "$BATS_TEST_TMPDIR/$how" >"$BATS_TEST_TMPDIR/$how.out"
		done
		grep -q "size 3000000" "$BATS_TEST_TMPDIR/bare.out"
		diff "$BATS_TEST_TMPDIR/bare.out" "$BATS_TEST_TMPDIR/shim.out"
		cmp "$BATS_TEST_TMPDIR/bare" "$BATS_TEST_TMPDIR/shim"
	done
}
