# shellcheck shell=bash
# Shared by the bench scripts: set-up, measuring, statistics, tables. Sourced, never run.
#
# A script calls bench_begin once; everything it makes after that (files, loop devices, mounts, limits,
# cgroups) is undone by one trap, in reverse order, also on failure or Ctrl-C.

BENCH_HOME=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
BENCH_ROOT=$(dirname "$BENCH_HOME")
BLKTUNE_LIB=${BLKTUNE_LIB:-$BENCH_ROOT/libblktune.so}
export -n BLKTUNE_LIB    # the shim knows no such setting and would say so
BENCH_NAME=$(basename "$0")
BENCH_TMP=
FAIL=            # why the last step could not be done, one line
WALL=0 CPU=0     # of the last measure
QUICK=no
export LC_ALL=C

say()   { printf '%s: %s\n' "$BENCH_NAME" "$*" >&2; }
die()   { say "$*"; exit 2; }
have()  { command -v "$1" >/dev/null 2>&1; }
# shellcheck disable=SC2034 # read by the scripts
fail()  { FAIL=$*; return 1; }
is_root() { [ "$(id -u)" -eq 0 ]; }
need_root() { is_root || fail "needs root ($1)"; }
need_tool() { have "$1" || fail "needs $1, which is not installed"; }

# ---------------------------------------------------------------------------- begin and end

DEFERRED=()

# defer CMD ARG...: run it at the end; last deferred, first run.
defer() { DEFERRED+=("$(printf '%q ' "$@")"); }

bench_end() {
	local i
	trap '' INT TERM HUP
	for ((i = ${#DEFERRED[@]} - 1; i >= 0; i--)); do
		eval "${DEFERRED[i]}" >/dev/null 2>&1
	done
	DEFERRED=()
}

# bench_begin: the temporary directory, and the trap that removes all.
bench_begin() {
	local dir=${BENCH_DIR:-${TMPDIR:-/var/tmp}}
	[ -r "$BLKTUNE_LIB" ] || die "no $BLKTUNE_LIB: run make, or set BLKTUNE_LIB"
	BLKTUNE_LIB=$(realpath "$BLKTUNE_LIB")
	[ -w "$dir/." ] || die "cannot write to $dir: set BENCH_DIR"
	trap bench_end EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	BENCH_TMP=$(mktemp -d "$(realpath "$dir")/blktune-bench.XXXXXX") || exit 2
	defer rm -rf "$BENCH_TMP"
}

# results_dir [DIR]: where tables, CSV and pictures go; prints it.
results_dir() {
	local dir=${1:-$BENCH_HOME/results/$(uname -n)-$(date +%Y-%m-%d)}
	mkdir -p "$dir" 2>/dev/null
	[ -w "$dir/." ] || { say "cannot write to $dir"; return 1; }
	realpath "$dir"
}

# size FULL QUICK: the one that applies.
size() { if [ $QUICK = yes ]; then echo "$2"; else echo "$1"; fi; }
# is_number WORD: a positive whole number.
is_number() { [[ $1 =~ ^[1-9][0-9]{0,8}$ ]]; }

# bench_setting: one line that says what was measured where.
bench_setting() {
	local set
	set=$(env | sed -n '/^BLKTUNE_LIB=/d; /^BLKTUNE/p' | tr '\n' ' ')
	printf '%s, Linux %s, %s CPUs, %s MiB of memory, %s on %s%s\n' "$(uname -n)" "$(uname -r)" "$(nproc)" \
		"$(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo)" "${BENCH_TMP%/*}" \
		"$(df --output=fstype "$BENCH_TMP" | tail -n 1)" "${set:+, $set}"
}

# built NAME: the path of bench/NAME.c compiled into build/bench, compiled again when it is older.
built() {
	local src=$BENCH_HOME/$1.c out=$BENCH_ROOT/build/bench/$1
	if ! [ -x "$out" ] || [ "$src" -nt "$out" ]; then
		mkdir -p "${out%/*}" || return 1
		"${CC:-cc}" -O2 -Wall -Wextra -o "$out" "$src" -ldl >&2 || return 1
	fi
	printf '%s\n' "$out"
}

# ---------------------------------------------------------------------------- files and caches

filesystem_of() { stat -f -c %T "$1"; }
free_mib() { df -Pm "$1" | awk 'NR == 2 { print $4 }'; }
need_space() { [ "$(free_mib "$1")" -ge "$2" ] || fail "needs $2 MiB free in $1"; }

# make_file PATH MIB: incompressible data, on stable storage, not in the cache.
make_file() {
	local path=$1 mib=$2 unit=$BENCH_TMP/random
	need_space "$(dirname "$path")" "$((mib + 64))" || return 1
	if ! [ -s "$unit" ]; then
		head -c 64M /dev/urandom >"$unit" || return 1
	fi
	while [ "$mib" -gt 0 ]; do
		head -c "$((mib < 64 ? mib : 64))M" "$unit"
		mib=$((mib - 64))
	done >"$path" || { fail "cannot make $path"; return 1; }
	uncache "$path"
}

# make_tree DIR FILES: files of 1 to 16 KiB, a hundred to a directory, always the same ones.
make_tree() {
	local d
	for ((d = 0; d < ($2 + 99) / 100; d++)); do echo "$1/$d"; done | xargs mkdir -p
	awk -v dir="$1" -v n="$2" 'BEGIN {
		srand(1)
		while (length(s) < 16384) s = s sprintf("%08x", int(rand() * 2147483647))
		for (i = 0; i < n; i++) {
			f = dir "/" int(i / 100) "/" i
			printf "%s", substr(s, 1, 1024 + int(rand() * 15361)) > f
			close(f)
		}
	}' || fail "cannot make the tree"
}

# uncache FILE...: write out and drop these files' pages; needs no privilege but write access.
uncache() {
	local f
	for f; do
		[ -e "$f" ] || continue
		dd of="$f" oflag=nocache conv=notrunc,fdatasync count=0 status=none if=/dev/null
	done
}

# cold FILE...: an empty cache. Root drops everything, inodes and directories too; others only the named files' pages.
# The library and the programs are loaded again: reading them from a cold disk (tens of milliseconds) is no part
# of a copy, and the library would be read in one arm only.
cold() {
	if is_root && sync && { echo 3 >/proc/sys/vm/drop_caches; } 2>/dev/null; then
		cat "$BLKTUNE_LIB" "$(type -P cp)" "$(type -P dd)" "$(type -P tar)" >/dev/null 2>&1
		BLKTUNE=off shim env true
		plain sync -d "$BENCH_TMP"
		return 0
	fi
	uncache "$@"
}

# warm FILE...: all of it in the cache.
warm() { cat -- "$@" >/dev/null; }

# cached_pages FILE...: how many pages of them are in the page cache; - where fincore is missing.
cached_pages() {
	have fincore || { echo -; return; }
	fincore -n -r -o PAGES "$@" 2>/dev/null | awk '{ n += $1 } END { print n + 0 }'
}

# same A B: are the files identical?
same() { cmp -s "$1" "$2" || fail "WRONG COPY: $1 and $2 differ"; }

# direct_dir: a directory under BENCH_TMP where direct I/O is real; sets DIRECT_DIR. Where the file system of
# BENCH_DIR is not ext4 or xfs (a tmpfs, an overlay, btrfs), that is a loop device with ext4.
DIRECT_DIR=
direct_dir() {
	[ -n "$DIRECT_DIR" ] && return
	case $(filesystem_of "$BENCH_TMP") in
	ext2/ext3|xfs|f2fs) DIRECT_DIR=$BENCH_TMP; return ;;
	esac
	disk work ext4 6144 || return 1
	DIRECT_DIR=$DISK
}

# ---------------------------------------------------------------------------- loop disks

# disk NAME ext4|xfs MIB: a loop device on a file in BENCH_TMP, formatted and mounted; sets DISK to the mount
# point and DISK_DEV[NAME] to the device. The loop device itself does direct I/O, so nothing is cached twice.
declare -A DISK_DEV=()
DISK=
disk() {
	local name=$1 fs=$2 mib=$3 image=$BENCH_TMP/$1.img dev
	DISK=$BENCH_TMP/$name
	[ -n "${DISK_DEV[$name]:-}" ] && return
	need_root "loop disks" && need_tool losetup && need_tool "mkfs.$fs" && need_space "$BENCH_TMP" "$mib" || return 1
	fallocate -l "${mib}M" "$image" 2>/dev/null || truncate -s "${mib}M" "$image" || return 1
	dev=$(losetup --show -f --direct-io=on "$image" 2>&1) || { fail "losetup: $dev"; return 1; }
	defer losetup -d "$dev"
	case $fs in
	ext4) mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$dev" ;;
	xfs) mkfs.xfs -q -f "$dev" ;;
	esac >/dev/null 2>&1 || { fail "mkfs.$fs failed on $dev"; return 1; }
	mkdir -p "$DISK"
	mount "$dev" "$DISK" || { fail "cannot mount $dev"; return 1; }
	defer umount "$DISK"
	DISK_DEV[$name]=$dev
}

device_number() { printf '%d:%d' "0x$(stat -c %t "$1")" "0x$(stat -c %T "$1")"; }

# ---------------------------------------------------------------------------- cgroups: throttle and memory
#
# cgroup v1. A limit in the blkio ROOT group, with the script itself in that group, holds everything back: the
# flusher threads that write buffered data out belong to the root group, and v1 charges write-back to whoever
# submits it. A limit in a child group would leave buffered writes unlimited. Verified at 40 MiB/s on a 6.18
# kernel, ext4 on a loop device, 200 MiB each: direct write 40.6 MiB/s, direct read 40.6, buffered read 40.3,
# buffered write with fsync 37.6, fio read 1 MiB x depth 8 through io_uring 40.6. (Above 40 because the kernel grants about 0.1 s
# of the rate as a burst after a pause.)
#
# cgroup v2. One group with io.max, under it a leaf for the script and one for each memory limit (a group
# with processes cannot have limited children). Write-back is charged to the group that dirtied the pages if the memory
# controller is on too, and ext4 and xfs take part in that.
#
# Nothing is taken on trust: throttled_disk measures each device and refuses one that runs faster.

CG_VERSION='' CG_BLKIO='' CG_MEMORY='' CG_TOP='' CG_NONE='' CG_V1='' CG_V2=''

cgroup_write() { { echo "$2" >"$1"; } 2>/dev/null || fail "cannot write '$2' to $1"; }

cgroup_mount() { # cgroup_mount CONTROLLER: where v1 has it
	awk -v c="$1" '$3 == "cgroup" && ("," $4 ",") ~ ("," c ",") { print $2; exit }' /proc/self/mounts
}

# cgroup_begin: sets CG_VERSION, or says that neither version can be used, and why.
cgroup_begin() {
	[ -n "$CG_VERSION" ] && return
	need_root "cgroups" || return 1
	CG_BLKIO=$(cgroup_mount blkio)
	CG_MEMORY=$(cgroup_mount memory)
	if [ -z "$CG_NONE" ]; then
		cgroup_v1 || cgroup_v2 || CG_NONE="neither cgroup v1 nor v2 can be used: v1 $CG_V1; v2 $CG_V2"
	fi
	[ -z "$CG_NONE" ] || fail "$CG_NONE"
}

cgroup_v1() {
	CG_V1="has no blkio and memory controller mounted"
	[ -n "$CG_BLKIO" ] && [ -n "$CG_MEMORY" ] || return 1
	CG_V1="has no blkio throttle"
	[ -w "$CG_BLKIO/blkio.throttle.read_bps_device" ] || return 1
	CG_V1="does not take this process into its root group"
	cgroup_write "$CG_BLKIO/cgroup.procs" $$ || return 1
	CG_VERSION=1
}

cgroup_v2() {
	local base own
	CG_V2="is not mounted"
	base=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
	[ -n "$base" ] || return 1
	CG_V2="has no io and memory controller"
	[ "$(tr ' ' '\n' <"$base/cgroup.controllers" | grep -cx -e io -e memory)" -eq 2 ] || return 1
	CG_V2="does not give io and memory to groups"
	cgroup_write "$base/cgroup.subtree_control" '+io +memory' || return 1
	own=$(sed -n 's/^0:://p' /proc/self/cgroup)
	CG_TOP=$base/blktune-bench.$$
	mkdir "$CG_TOP" || return 1
	defer rmdir "$CG_TOP"
	cgroup_write "$CG_TOP/cgroup.subtree_control" '+io +memory' && mkdir "$CG_TOP/run" || return 1
	defer rmdir "$CG_TOP/run"
	CG_V2="does not take this process into a group"
	cgroup_write "$CG_TOP/run/cgroup.procs" $$ || return 1
	defer cgroup_write "$base$own/cgroup.procs" $$
	CG_VERSION=2
}

# throttle NAME MIB: bytes per second of the disk, reading and writing each; 0 lifts the limit.
throttle() {
	local number bps=$(($2 << 20))
	cgroup_begin || return 1
	number=$(device_number "${DISK_DEV[$1]}")
	if [ "$CG_VERSION" -eq 1 ]; then
		cgroup_write "$CG_BLKIO/blkio.throttle.read_bps_device" "$number $bps" &&
			cgroup_write "$CG_BLKIO/blkio.throttle.write_bps_device" "$number $bps"
	else
		[ "$bps" -gt 0 ] || bps=max
		cgroup_write "$CG_TOP/io.max" "$number rbps=$bps wbps=$bps"
	fi
}

slow_enough() { # slow_enough FILE COMMAND
	cold "$1"
	# shellcheck disable=SC2086 # words on purpose
	measure plain $2 && holds "$WALL >= 0.3"
}

# throttled_disk NAME FS MIB RATE: a disk on which a limit of RATE MiB/s was seen to hold for direct and for
# buffered writes and for reads. It is left without the limit, to be filled: throttle NAME RATE before timing.
throttled_disk() {
	local name=$1 fs=$2 mib=$3 rate=$4 probe file
	disk "$name" "$fs" "$mib" || return 1
	[ -n "${THROTTLED[$name]:-}" ] && return
	throttle "$name" "$rate" || return 1
	defer throttle "$name" 0
	file=$DISK/probe
	for probe in "dd if=/dev/zero of=$file bs=1M count=$((rate / 2)) oflag=direct" \
		"dd if=$file of=/dev/null bs=1M iflag=direct" \
		"dd if=/dev/zero of=$file bs=64k count=$((rate * 8)) conv=fsync" \
		"dd if=$file of=/dev/null bs=64k"; do
		# Half a second's worth. The kernel gives a tenth of a second or more on credit, but not twice in a row.
		slow_enough "$file" "$probe" || slow_enough "$file" "$probe" ||
			{ fail "the limit has no effect here: ${probe//$BENCH_TMP\//} took $WALL s"; return 1; }
	done
	rm -f "$file"
	throttle "$name" 0
	THROTTLED[$name]=1
}
declare -A THROTTLED=()

# memory_group NAME MIB: a memory cgroup. in_group NAME CMD...: run in it.
declare -A MEMORY_GROUP=()
memory_group() {
	local dir
	cgroup_begin || return 1
	if [ "$CG_VERSION" -eq 1 ]; then
		dir=$CG_MEMORY/blktune-bench.$$.$1
	else
		dir=$CG_TOP/$1
	fi
	if [ -z "${MEMORY_GROUP[$1]:-}" ]; then
		mkdir "$dir" || { fail "cannot make $dir"; return 1; }
		defer group_end "$dir"
		MEMORY_GROUP[$1]=$dir
	fi
	if [ "$CG_VERSION" -eq 1 ]; then
		cgroup_write "$dir/memory.limit_in_bytes" $(($2 << 20))
	else
		cgroup_write "$dir/memory.max" $(($2 << 20))
	fi
}

# What the group's limit killed may take a moment to be gone.
group_end() {
	local try
	for try in 1 2 3 4 5 6 7 8 9 10; do
		rmdir "$1" && return
		sleep 0.2
	done
}

in_group() {
	local procs=${MEMORY_GROUP[$1]}/cgroup.procs
	shift
	( echo "$BASHPID" >"$procs" && "$@" )
}

# ---------------------------------------------------------------------------- measuring

plain() { LD_PRELOAD='' "$@"; }
shim()  { LD_PRELOAD=$BLKTUNE_LIB "$@"; }

# measure CMD...: run it (a function too) and set WALL and CPU (user + system of it and its children), in seconds.
# When it fails, FAIL is its last line of output.
measure() {
	local times status=0 log=$BENCH_TMP/log TIMEFORMAT='%R %U %S'
	times=$({ time "$@" >"$log" 2>&1; } 2>&1) || status=$?
	read -r WALL USER_S SYS_S <<<"$times"
	# shellcheck disable=SC2034 # read by the scripts
	CPU=$(calc "$USER_S + $SYS_S")
	[ "$status" -eq 0 ] || fail "'$*' ended with $status: $(tail -n 1 "$log")"
}

# fio_read FILE DEPTH: MiB/s of a direct sequential read in 1 MiB transfers, into FIO_RATE.
fio_read() {
	local engine kib
	for engine in ${FIO_ENGINE:-io_uring libaio}; do
		kib=$(cd "$BENCH_TMP" && LD_PRELOAD='' fio --name=read --filename="$1" --readonly --rw=read --bs=1M --direct=1 --thread \
			--iodepth="$2" --ioengine="$engine" --output-format=terse --terse-version=3 2>/dev/null | cut -d ';' -f 7)
		if is_number "${kib:-0}"; then
			FIO_ENGINE=$engine
			FIO_RATE=$(calc "$kib / 1024")
			return
		fi
	done
	fail "fio could not read $1 with io_uring or libaio"
}

calc()  { awk "BEGIN { printf \"%.6g\", $1 }"; }
holds() { awk "BEGIN { exit !($1) }"; }
fixed() { awk -v d="$1" -v v="$2" 'BEGIN { s = sprintf("%.*f", d, v); if (s + 0 == 0) sub(/^-/, "", s); printf "%s", s }'; }

# sample NAME VALUE, then median NAME, and spread NAME: the interquartile range in percent of the median.
declare -A SAMPLES=()
sample() { SAMPLES[$1]="${SAMPLES[$1]:-}$2 "; }
# shellcheck disable=SC2086 # words on purpose
quartile() { # quartile NAME 0..4, linear between neighbours
	printf '%s\n' ${SAMPLES[$1]} | sort -g | awk -v q="$2" '
		{ v[NR] = $1 }
		END { p = 1 + (NR - 1) * q / 4; i = int(p); print i < NR ? v[i] + (p - i) * (v[i + 1] - v[i]) : v[i] }'
}
median() { quartile "$1" 2; }
spread() { awk -v a="$(quartile "$1" 1)" -v m="$(median "$1")" -v b="$(quartile "$1" 3)" \
	'BEGIN { printf "%.0f%%", m ? 100 * (b - a) / m : 0 }'; }

ratio() { calc "$(median "$1") / $(median "$2")"; }
last() { local v=${SAMPLES[$1]% }; echo "${v##* }"; }

# order I ARM...: the arms by turns, backwards in every other repeat, so that none always follows the same other:
# the first run after a pause can pay for memory that the host took back, and the disk remembers too.
order() {
	local i=$1 arm out=
	shift
	for arm; do
		if ((i % 2)); then out="$arm $out"; else out+="$arm "; fi
	done
	echo "$out"
}

# ---------------------------------------------------------------------------- tables

# table: tab-separated lines, the first a heading, to aligned columns; columns of numbers to the right.
table() {
	awk -F '\t' '
		{ for (i = 1; i <= NF; i++) { cell[NR, i] = $i; if (length($i) > w[i]) w[i] = length($i)
			if (NR > 1 && $i !~ /^(-|[-+0-9.]+( ?(s|x|%|ns|ms|MiB|MiB\/s|KiB))?)$/) text[i] = 1 }
		  if (NF > n) n = NF }
		END { for (r = 1; r <= NR; r++) { line = ""
			for (i = 1; i <= n; i++) line = line sprintf(text[i] ? "%-*s" : "%*s", w[i], cell[r, i]) (i < n ? "  " : "")
			sub(/ +$/, "", line); print line
			if (r == 1) { gsub(/./, "-", line); print line } } }'
}

# csv FIELD...: one line; no field is empty.
csv() {
	local f line=
	for f; do
		f=${f:--}
		case $f in *[,\"]*) f="\"${f//\"/\"\"}\"" ;; esac
		line+=${line:+,}$f
	done
	printf '%s\n' "$line"
}
