#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Whoever could look finds the data in the kernel and the offset true: this process
# through another way, its children, receivers of its descriptors. order.c has the
# situations; below, at and above the sizes of a block, held as long as may be.
load lib

setup_file() {
	require_shim || return
	ORDER=$(helper order) || return
	export ORDER
	[ "$(id -u)" = 0 ] || return 0
	fs_make ext4 && fs_make xfs && fs_make tmpfs
}

teardown_file() {
	fs_drop
}

setup() {
	need_root
}

# Sizes around nothing, the floor, the direct threshold and the write block.
ORDER_SIZES=(10 4096 70001 1048577 5000000)

# looks SITUATION: the same output, status and files, bare and under the shim.
looks() {
	local dir size how out rc dump hold
	for dir in "$BATS_FILE_TMPDIR"/fs/{ext4,xfs,tmpfs}; do
		for size in "${ORDER_SIZES[@]}"; do
			out=() rc=() dump=()
			for how in bare shim-auto shim-always; do
				SETTINGS=(BLKTUNE_HOLD="${how#shim-}")
				rm -rf "$dir/o"
				mkdir "$dir/o"
				rc+=(0)
				out+=("$("${how%%-*}" "$ORDER" "$1" "$dir/o" "$size" 2>&1)") || rc[-1]=$?
				dump+=("$("$(helper treedump)" -s "$dir/o")")
			done
			rm -r "$dir/o"
			[ -n "${out[0]}" ] || [[ $1 == end-* ]] || fail "$1 prints nothing"
			for hold in 1 2; do
				same "${rc[0]} ${out[0]}" "${rc[hold]} ${out[hold]}" "$1 with $size bytes on ${dir##*/} (run $hold), bare (<) and shim (>)"
				same "${dump[0]}" "${dump[hold]}" "files of $1 with $size bytes on ${dir##*/} (run $hold), bare (<) and shim (>)"
			done
		done
	done
}

@test "stat, lstat, fstatat, statx by path" { looks stat; }
@test "fstat, fstatat, statx by descriptor" { looks fstat; }
@test "stat through a link" { looks stat-link; }
@test "a second open" { looks second-open; }
@test "a second open by syscall(openat2), syscall(creat)" { looks raw-open; }
@test "a second open that was there before, both ways" { looks open-before; }
@test "pread of what was written" { looks pread; }
@test "fork: child reads, writes on" { looks fork; }
@test "vfork and exec" { looks vfork; }
@test "system" { looks system; }
@test "popen" { looks popen; }
@test "posix_spawn" { looks spawn; }
@test "exec" { looks exec; }
@test "exec that fails" { looks exec-fails; }
@test "dup, F_DUPFD" { looks dup; }
@test "dup2 over a written descriptor" { looks dup2; }
@test "mmap" { looks mmap; }
@test "rename, link, unlink" { looks rename; }
@test "truncate by path, ftruncate" { looks truncate; }
@test "lseek: end, data, hole, beyond" { looks seek; }
@test "fsync, fdatasync, syncfs, sync_file_range, sync" { looks sync; }
@test "fallocate, posix_fallocate" { looks allocate; }
@test "copy_file_range, sendfile, splice" { looks move; }
@test "a descriptor passed over a socket" { looks pass; }
@test "a descriptor passed that was opened after the fork" { looks pass-fresh; }
@test "the offset of a file read in part: fork, system, exec" { looks read-fork; }
@test "locks: data is out before the lock is" { looks unlock; }
@test "sleep and wait" {
	ORDER_SIZES=(10 70001)
	looks sleep
}
@test "fdopen, fclose, and the number again" { looks stdio; }
@test "exit" { looks end-exit; }
@test "_exit" { looks end-_exit; }
@test "_Exit" { looks end-_Exit; }
@test "quick_exit" { looks end-quick_exit; }
@test "abort" { looks end-abort; }
@test "raise" { looks end-raise; }
@test "SIGINT raised again, as dd does" { looks end-sigint; }
@test "kill aimed at itself" { looks end-kill-self; }
@test "a write in an exit handler" { looks end-atexit; }
