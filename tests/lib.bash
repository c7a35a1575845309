# Shared by the test files: the library under test, the programs that judge, and
# filesystems to run on. Only the program under test is ever preloaded.
#
#   BLKTUNE_LIB      the library under test (default: the one in the repository's root)
#   BLKTUNE_PASSIVE  1: accept a library that does nothing. For trying out the tests
#                    themselves: those that prove tuning must then fail.
# shellcheck shell=bash

bats_require_minimum_version 1.5.0

ROOT=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
LIB=${TEST_LIBRARY:-$(realpath -m "${BLKTUNE_LIB:-$ROOT/libblktune.so}")}
PASSIVE=${TEST_PASSIVE:-${BLKTUNE_PASSIVE:-0}}
# bats loads this anew for each test, out of an environment that has lost the names below.
export TEST_LIBRARY=$LIB TEST_PASSIVE=$PASSIVE
# shellcheck disable=SC2034
LAUNCHER=$ROOT/blktune
# Nothing of the caller's may reach a program under test.
for var in ${!BLKTUNE*}; do
	unset "$var"
done
unset var LD_PRELOAD
export LC_ALL=C TZ=UTC
# What each shimmed program gets in its environment, on top of the preload.
SETTINGS=()

# shim [NAME=VALUE ...] PROGRAM [ARG ...]: run one program under the library.
shim() {
	env LD_PRELOAD="$LIB" ${SETTINGS[@]+"${SETTINGS[@]}"} "$@"
}

# bare [NAME=VALUE ...] PROGRAM [ARG ...]: the same without it.
bare() {
	env "$@"
}

# shim_trace TRACE STRACE-OPTION... -- PROGRAM [ARG ...]: the same under strace.
shim_trace() {
	local trace=$1 options=() set=() s
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	for s in LD_PRELOAD="$LIB" ${SETTINGS[@]+"${SETTINGS[@]}"}; do
		set+=(-E "$s")
	done
	strace -y -s 0 -e signal=none -o "$trace" "${options[@]}" "${set[@]}" "$@"
}

# Says why and fails.
fail() {
	printf '%s\n' "$@" >&2
	return 1
}

same() {
	[ "$1" = "$2" ] && return
	echo "${3:-outputs differ}:" >&2
	diff <(printf '%s\n' "$1") <(printf '%s\n' "$2") | head -n "${4:-40}" >&2
	return 1
}

need_root() {
	[ "$(id -u)" = 0 ] || skip "needs root (loop devices and mounts)"
}

need() {
	local tool
	for tool in "$@"; do
		command -v "$tool" >/dev/null || skip "needs $tool"
	done
}

# A library that is missing, refused by the loader or asleep would make every
# comparison pass. Called by each file's setup_file, whose failure fails the file.
require_shim() {
	local said dir=$BATS_FILE_TMPDIR
	[ -f "$LIB" ] || fail "no library under test at $LIB: run make, or set BLKTUNE_LIB" || return
	said=$(shim true 2>&1) || fail "true fails under the library" || return
	[ -z "$said" ] || fail "the loader or the library complains: $said" || return
	shim cat /proc/self/maps | grep -qF " $LIB" || fail "$LIB is not in the memory of a preloaded program" || return
	[ "$PASSIVE" = 1 ] && return
	head -c 300000 /dev/zero >"$dir/guard.in"
	shim BLKTUNE_REPORT="$dir/guard.json" dd if="$dir/guard.in" of="$dir/guard.out" bs=512 status=none ||
		fail "dd fails under the library" || return
	grep -qF guard.out "$dir/guard.json" || fail "the library reports nothing: it is not active" || return
	rm -f "$dir"/guard.*
}

# helper NAME [CC-OPTION ...]: compile tests/NAME.c, say where the program is.
helper() {
	local name=$1 out=$BATS_FILE_TMPDIR/bin/$1
	shift
	[ -x "$out" ] || {
		mkdir -p "${out%/*}"
		"${CC:-cc}" -O1 -Wall -Wextra -o "$out" "$BATS_TEST_DIRNAME/$name.c" "$@" >&2 || return
	}
	echo "$out"
}

# pattern SIZE [SEED]: that many bytes, no block like another, always the same.
pattern() {
	"$(helper pattern)" "$@"
}

# ---------------------------------------------------------------- filesystems

# fs_make NAME: make and mount a filesystem, print where. NAME is one of ext4, xfs,
# btrfs, tmpfs, overlay (on ext4), ext4-4096 and xfs-4096 (on 4096-byte sectors),
# or one of them with :TAG for a second one. FS_SIZE sets its size.
fs_make() {
	local name=$1 kind=${1%%:*} img=$BATS_FILE_TMPDIR/fs/$1.img dir=$BATS_FILE_TMPDIR/fs/$1 sector=512 dev
	img=${img//:/-} dir=${dir//:/-}
	mkdir -p "$dir"
	case $kind in
	tmpfs)
		mount -t tmpfs -o "size=${FS_SIZE:-1500M}" tmpfs "$dir" && echo "$dir"
		return
		;;
	overlay)
		local base
		base=$(fs_make "ext4:under-${name//:/-}") || return
		mkdir "$base/lower" "$base/upper" "$base/work"
		mount -t overlay -o "lowerdir=$base/lower,upperdir=$base/upper,workdir=$base/work" overlay "$dir" && echo "$dir"
		return
		;;
	*-4096) sector=4096 kind=${kind%-4096} ;;
	esac
	truncate -s "${FS_SIZE:-2G}" "$img"
	dev=$(losetup -f --show -b "$sector" "$img") || return
	case $kind in
	ext4) mkfs.ext4 -q -E nodiscard "$dev" ;;
	xfs) mkfs.xfs -q -K "$dev" ;;
	btrfs) mkfs.btrfs -q -K "$dev" ;;
	*) fail "no filesystem $kind" ;;
	esac >&2 || return
	# user_xattr is every filesystem's default by now. What xfs allocates ahead shows
	# as data or as a hole by the moment of its write-back: no more than a page of it.
	if [ "$kind" = xfs ]; then
		mount -o allocsize=4k "$dev" "$dir" || return
	elif [ "$kind" = ext4 ]; then
		# nothing is written behind the tests' back
		mount -o noinit_itable "$dev" "$dir" || return
	else
		mount "$dev" "$dir" || return
	fi
	# freed by the umount
	losetup -d "$dev"
	echo "$dir"
}

# Unmount and detach whatever this file made, whether its tests passed or not.
fs_drop() {
	local dir img dev
	while read -r dir; do
		umount "$dir" || umount -l "$dir"
	done < <(awk -v top="$BATS_FILE_TMPDIR/" 'index($5, top) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
	for img in "$BATS_FILE_TMPDIR"/*.img "$BATS_FILE_TMPDIR"/fs/*.img; do
		[ -e "$img" ] || continue
		for dev in $(losetup -j "$img" -n -O NAME); do
			losetup -d "$dev"
		done
		rm -f "$img"
	done
}

# cold FILE...: written out, and no page of it in the cache.
cold() {
	local f
	sync "$@"
	for f; do
		dd if="$f" iflag=nocache count=0 status=none
		[ "$(cached "$f")" = 0 ] || fail "$f stays in the cache: $(cached "$f") pages" || return
	done
}

# cached FILE: its pages in the page cache.
cached() {
	fincore -nbr -o PAGES "$1"
}

# ---------------------------------------------------------------- what the kernel saw

# The calls that move bytes of a file; give to strace -e.
# shellcheck disable=SC2034
TRANSFERS=trace=read,readv,pread64,preadv,preadv2,write,writev,pwrite64,pwritev,pwritev2,copy_file_range,sendfile,splice,fcntl,ioctl,io_submit,io_uring_enter

# transfers TRACE PATH read|write: the size of each transfer of the file, one a line,
# as strace -y recorded them. What it cannot parse is an error, and so is seeing none.
transfers() {
	awk -v path="<$2>" -v want="$3" '
		/io_submit\(|io_uring_enter\(/ { print "cannot see into: " $0 >"/dev/stderr"; bad = 1; exit }
		index($0, path) == 0 { next }
		/unfinished \.\.\.>|resumed>/ { print "cannot parse: " $0 >"/dev/stderr"; bad = 1; exit }
		{
			line = $0
			sub(/^[0-9]+ +/, "", line)
			name = substr(line, 1, index(line, "(") - 1)
			first = index(line, "<")
			own = substr(line, first, length(path)) == path
			if (name ~ /^(read|readv|pread64|preadv|preadv2)$/) way = "read"
			else if (name ~ /^(write|writev|pwrite64|pwritev|pwritev2)$/) way = "write"
			else if (name ~ /^(copy_file_range|splice)$/) way = own ? "read" : "write"
			else if (name == "sendfile") way = own ? "write" : "read"
			else next
			n = split(line, part, / = /)
			if (way == want && part[n] + 0 > 0) { print part[n] + 0; seen = 1 }
		}
		END { if (!bad && !seen) print "no " want " of " path " in the trace" >"/dev/stderr"
		      exit bad || !seen }' "$1"
}

# big_transfers TRACE PATH read|write SIZE: the whole file moved, in transfers
# of at least 64 KiB except for the last.
big_transfers() {
	local list
	list=$(transfers "$1" "$2" "$3") || return
	awk -v size="$4" -v what="$3 $2" '
		{ sum += $1; if (NR > 1 && last < 65536) { print what ": a transfer of " last " bytes"; bad = 1; exit }
		  last = $1 }
		END { if (!bad && sum != size) { print what ": " sum " bytes, not " size; bad = 1 }
		      exit bad }' <<<"$list" >&2
}

# set_direct TRACE PATH: O_DIRECT was set on it by fcntl.
set_direct() {
	grep -F "<$2>, F_SETFL, " "$1" | grep -q O_DIRECT || fail "O_DIRECT was not set on $2"
}

# ---------------------------------------------------------------- names

# Those of a library; names of the version GLIBC_PRIVATE are for glibc's own libraries.
exported() {
	nm -D --defined-only "$1" | grep -v GLIBC_PRIVATE | awk '{ sub(/@.*/, "", $3); print $3 }' | sort -u
}

# strangers OURS THEIRS: is there a name of ours that libc does not have?
strangers() {
	local strangers
	[ "$(wc -l <<<"$1")" -gt 50 ] && [ "$(wc -l <<<"$2")" -gt 2000 ] || fail "hardly any names" || return
	strangers=$(comm -23 <(echo "$1") <(echo "$2"))
	[ -z "$strangers" ] || fail "exported, but no name of libc's:" "$strangers"
}

# whole_families OURS THEIRS: is there a name that comes without one of its kin?
whole_families() {
	local name kin missing=()
	[ "$(wc -l <<<"$1")" -gt 50 ] && [ "$(wc -l <<<"$2")" -gt 2000 ] || fail "hardly any names" || return
	while read -r name; do
		case $name in *64 | *_chk | __*) continue ;; esac
		for kin in "${name}64" "__${name}_chk" "__${name}64_chk" "__$name" "__${name}64" "__${name}_2" \
			"__${name}_time64" "__${name}64_time64"; do
			grep -qxF -e "$kin" <<<"$2" || continue
			grep -qxF -e "$kin" <<<"$1" || missing+=("$name without $kin")
		done
	done <<<"$1"
	[ ${#missing[@]} = 0 ] || fail "${missing[@]}"
}

# ---------------------------------------------------------------- the same job twice

SIZES=(0 1 511 512 513 4095 4096 4097 65535 65536 65537 1048575 1048576 1048577 4194305)

# make_sources DIR: small/ with a file of each size, one with holes, links, modes and
# attributes; big/ with one of 64 MiB and a bit.
make_sources() {
	local size n=0
	mkdir -p "$1/small/sub" "$1/big" || return
	for size in "${SIZES[@]}"; do
		n=$((n + 1))
		pattern "$size" "$n" >"$1/small/f$size"
		touch -d "2001-02-03 04:05:$n.123456789" "$1/small/f$size"
	done
	pattern 300000 50 >"$1/small/sub/holes"
	truncate -s 3000000 "$1/small/sub/holes"
	pattern 70000 51 | dd of="$1/small/sub/holes" bs=1000 seek=2000 conv=notrunc iflag=fullblock status=none
	chmod 4755 "$1/small/f65537"
	chmod 0444 "$1/small/f4097"
	chmod 0600 "$1/small/f1048577"
	chown 1:1 "$1/small/f4096"
	setfattr -n user.note -v "kept with it" "$1/small/f1048576" || return
	ln -s f4096 "$1/small/link"
	touch -d "2002-02-02 02:02:02.5" "$1/small/sub/holes"
	pattern 67121209 60 >"$1/big/f"
	touch -d "2003-03-03 03:03:03.75" "$1/big/f"
	sync -f "$1"
}

# make_sparse FILE: 6 GiB, with data here and there and over the 4 GiB line.
make_sparse() {
	local at
	truncate -s 6G "$1"
	for at in 0 1048576 4294964224 5368709120 6442442752; do
		pattern 8192 $((at / 1024 + 1)) | dd of="$1" bs=1024 seek=$((at / 1024)) conv=notrunc iflag=fullblock status=none
	done
	# a size off every boundary, and data up to the end
	printf tail >>"$1"
	sync -f "$1"
}

# differential DIR SUB DUMP-OPTIONS JOB [ARG ...]: JOB SOURCE OUT ARG... runs the
# programs of interest under "$RUN"; once bare, once under the shim, and the two trees
# that it leaves in OUT, its output and its status must be alike.
differential() {
	local dir=$1 sub=$2 opts=$3 how said=() rc=() dump=() where
	shift 3
	for how in bare shim; do
		rm -rf "$dir/out"
		mkdir "$dir/out"
		rc+=(0)
		said+=("$(RUN=$how "$1" "$dir/src/$sub" "$dir/out" "${@:2}" 2>&1)") || rc[-1]=$?
		sync -f "$dir/out"
		# shellcheck disable=SC2086
		dump+=("$("$(helper treedump)" $opts "$dir/out")")
	done
	rm -rf "$dir/out"
	where="$* ${SETTINGS[*]-} on ${dir##*/}"
	same "${rc[0]} ${said[0]}" "${rc[1]} ${said[1]}" "$where: status and output, bare (<) and under the shim (>)" || return
	same "${dump[0]}" "${dump[1]}" "$where: files, bare (<) and under the shim (>)" || return
	[ "${rc[0]}" = 0 ] || fail "$where: the job fails even bare: ${said[0]}" || return
	grep -q ' size=[1-9]' <<<"${dump[0]}" || fail "$where: the job leaves no files to compare"
}

# job PROGRAM ARG...: in the empty directory "work" below JOB_DIR (by default the test's own),
# with "in" in it and the here-document as "script"; once bare, once with the shim, and once
# with the shim in small blocks: output, status and files alike.
job() {
	local how out=() rc=() dump=() dir=${JOB_DIR:-$BATS_TEST_TMPDIR}/work script SETTINGS=()
	script=$(cat)
	for how in bare shim blocks; do
		rm -rf "$dir"
		mkdir "$dir"
		cd "$dir" || return
		cp "$BATS_FILE_TMPDIR/in" in
		printf '%s\n' "$script" >script
		[ $how != blocks ] || SETTINGS=(BLKTUNE_DIRECT_MIN=4K BLKTUNE_BLOCK=64K) how=shim
		rc+=(0)
		out+=("$("$how" "$@" 2>&1 </dev/null)") || rc[-1]=$?
		dump+=("$("$(helper treedump)" -s .)")
		[ "${rc[0]}" = 0 ] || fail "bare: ${out[0]}" || return
		[ -n "${out[0]}" ] || return
		same "${rc[0]} ${out[0]}" "${rc[-1]} ${out[-1]}" "status and output, bare (<) and $how ${SETTINGS[*]} (>)" || return
		same "${dump[0]}" "${dump[-1]}" "files, bare (<) and $how ${SETTINGS[*]} (>)" || return
	done
}

# The same for a script in Python. Debian's own comes first: another one may be a script itself.
job_python() {
	local python=/usr/bin/python3
	[ -x $python ] || python=python3
	need $python
	job $python script
}

# dump_options FILESYSTEM: what of a file is the same at each run there. Allocated
# space is not on xfs (preallocation) nor on btrfs (inline extents).
dump_options() {
	case ${1##*/} in
	xfs* | btrfs*) ;;
	*) echo -b ;;
	esac
}

# everywhere SUB DUMP-OPTIONS JOB [ARG ...]: differential on each of "${FS[@]}".
everywhere() {
	local dir bad=0
	for dir in "${FS[@]}"; do
		differential "$dir" "$1" "$2 $(dump_options "$dir")" "${@:3}" || bad=1
	done
	return $bad
}

# The jobs. "$RUN" before each program that is under test, and before no other.
# shellcheck disable=SC2317
{
	job_cp() {
		"$RUN" cp -r "${@:3}" "$1/." "$2"
	}
	# Files from another filesystem, which mv has to copy.
	job_mv() {
		local from=$BATS_FILE_TMPDIR/elsewhere
		rm -rf "$from"
		cp -a "$1" "$from" && "$RUN" mv "$from"/* "$2" || return
		rm -r "$from"
	}
	job_install() {
		local f
		for f in "$1"/f*; do
			"$RUN" install "${@:3}" "$f" "$2/${f##*/}" || return
		done
	}
	# The output is opened by a shell that is not under the shim.
	job_cat() {
		local f
		for f in "$1"/f*; do
			"$RUN" cat "$f" >"$2/${f##*/}" || return
		done
	}
	# The output is opened by a shell that is.
	job_shell_cat() {
		# shellcheck disable=SC2016
		"$RUN" "$3" -c 'for f in "$1"/f*; do cat "$f" >"$2/${f##*/}" || exit; done' sh "$1" "$2"
	}
	job_dd() {
		local f
		for f in "$1"/f*; do
			"$RUN" dd if="$f" of="$2/${f##*/}" status=none "${@:3}" || return
		done
	}
	# Into a file that is there already.
	job_dd_over() {
		local f
		for f in "$1"/f65537 "$1"/f1048577 "$1"/f4194305; do
			pattern 3000000 77 >"$2/${f##*/}"
			"$RUN" dd if="$f" of="$2/${f##*/}" status=none "${@:3}" || return
		done
	}
	job_split() {
		"$RUN" split "${@:3}" "$1/f4194305" "$2/part." || return
		"$RUN" cat "$2"/part.* >"$2/joined" && cmp "$1/f4194305" "$2/joined"
	}
	job_tar_c() {
		# xfs counts cached pages of preallocated blocks as data: SEEK_DATA depends on who read before
		sync && echo 3 >/proc/sys/vm/drop_caches
		"$RUN" tar c -f "$2/archive.tar" "${@:3}" -C "$1" . && tar t -f "$2/archive.tar" >/dev/null
	}
	job_tar_x() {
		tar c -f "$2/archive.tar" --xattrs -C "$1" . || return
		"$RUN" tar x -p -f "$2/archive.tar" "${@:3}" -C "$2" && rm "$2/archive.tar"
	}
	job_cpio_o() {
		(cd "$1" && find . | sort | "$RUN" cpio -o --quiet -F "$2/archive.cpio" "${@:3}")
	}
	job_cpio_i() {
		(cd "$1" && find . | sort | cpio -o --quiet -H newc -F "$2/archive.cpio") || return
		(cd "$2" && "$RUN" cpio -i -d -m --quiet -F archive.cpio "${@:3}" && rm archive.cpio)
	}
	job_rsync() {
		"$RUN" rsync "${@:3}" "$1/" "$2/"
	}
	job_rsync_over() {
		local f
		for f in "$1"/f*; do
			[ -h "$f" ] || pattern 2000000 88 >"$2/${f##*/}"
		done
		"$RUN" rsync "${@:3}" "$1/" "$2/"
	}
	job_sparse_tar() {
		"$RUN" tar c -S -f "$2/archive.tar" -C "$1" . && "$RUN" tar x -f "$2/archive.tar" -C "$2" &&
			cksum <"$2/archive.tar" && rm "$2/archive.tar"
	}
	job_sparse_split() {
		(cd "$2" && "$RUN" split -b 3G "$1/f" part. && "$RUN" cat part.* >joined &&
			cmp "$1/f" joined && rm joined)
	}
	# The format ends at 4 GiB: what it says of more is compared, too.
	job_sparse_cpio() {
		(
			cd "$2" || exit
			(cd "$1" && echo f | "$RUN" cpio -o -H newc --quiet 2>"$2/said") >refused
			echo "status $?"
			cat said
			mkdir back && cp --sparse=always "$1/f" half && truncate -s 3221225999 half || exit
			echo half | "$RUN" cpio -o -H newc --quiet -F archive &&
				(cd back && "$RUN" cpio -i -m --sparse --quiet -F ../archive) &&
				cmp half back/half && stat -c %s archive && rm archive
		)
	}
	job_sparse_pax() {
		(cd "$1" && "$RUN" pax -w -x ustar -f "$2/archive" f) && (cd "$2" && "$RUN" pax -r -p e -f archive) &&
			cksum <"$2/archive" && rm "$2/archive"
	}
	# Reads and writes on both sides of 4 GiB.
	job_sparse_dd() {
		"$RUN" dd if="$1/f" of="$2/window" bs=10000 skip=429490 count=20 status=none &&
			"$RUN" dd if="$1/f" of="$2/tail" bs=512 skip=12582900 status=none &&
			"$RUN" dd if="$1/f" of="$2/over" bs=3000 count=300 seek=1431600 status=none &&
			"$RUN" dd if="$1/f" of="$2/over" bs=512 skip=8388600 seek=8388700 count=100 conv=notrunc status=none
	}
}
