#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Children that only go on to exec: what exec closes stays tuned, what they get is theirs.
load lib

setup_file() {
	require_shim || return
	pattern 8000000 >"$BATS_FILE_TMPDIR/in"
}

setup() {
	cd "$BATS_TEST_TMPDIR"
	cp "$BATS_FILE_TMPDIR/in" in
	need jq
}

# kept SCRIPT-ENGINE ARG...: the program leaves "out" and prints what children saw; alike
# bare and under the shim, where out is written by direct transfers to its end.
kept() {
	local how said=()
	for how in bare shim; do
		rm -f out
		[ "$how" = bare ] || SETTINGS+=("BLKTUNE_REPORT=$PWD/%n.%p.json")
		said+=("$("$how" "$@" 2>&1; echo "status $?"; cksum out)")
	done
	grep -q "^status 0" <<<"${said[0]}"
	same "${said[0]}" "${said[1]}"
}

# mode NAME: of out in the report of the program of that name.
mode() {
	jq -r --arg path "$PWD/out" '.files[] | select(.path == $path) | .mode + " " + .reason' "$PWD/$1"*.json
}

@test "a child of fork may do anything: its parent's file is given up" {
	kept perl -e '$| = 1; sub child { system "cksum <out" }
		use Fcntl; sysopen O, "out", O_RDWR | O_CREAT | O_TRUNC or die; open I, "<", "in" or die;
		my $n = 0;
		while (sysread I, my $b, 10000) { syswrite O, $b; child() if ++$n % 200 == 0 }
		close O;'
	[ "$(mode perl)" = "direct forked" ] || fail "$(mode perl)"
}

cat_looker() {
	cat >looker.c <<-'END'
		#include <fcntl.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <unistd.h>
		int main(int argc, char **argv)
		{
			static char b[10000], line[100];
			int cloexec = argc > 1 ? 0 : O_CLOEXEC;
			int fd = open("out", O_RDWR | O_CREAT | O_TRUNC | cloexec, 0644), in = open("in", O_RDONLY | O_CLOEXEC);
			(void)argv;
			for (int i = 0; i < 700; i++) {
				if (write(fd, b, read(in, b, sizeof(b))) < 0)
					return 1;
				if (i % 200 == 199) {
					if (system("cksum <out"))
						return 1;
					FILE *f = popen("wc -c <out", "r");
					printf("%s", fgets(line, sizeof(line), f));
					fflush(stdout);
					pclose(f);
				}
			}
			return close(fd);
		}
	END
	"${CC:-cc}" -o looker looker.c
}

@test "system and popen look at a half-written file, which stays tuned" {
	cat_looker
	kept ./looker
	[ "$(mode looker)" = "direct " ] || fail "$(mode looker)"
}

@test "a descriptor that outlives exec is given up" {
	cat_looker
	kept ./looker inherit
	[ "$(mode looker)" = "direct forked" ] || fail "$(mode looker)"
}

PYTHON_WRITER='
import os, subprocess, sys
fd = os.open("out", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
src = open("in", "rb", buffering=0)
for i in range(700):
    os.write(fd, src.read(10000))
    if i % 200 == 199:
        sys.stdout.flush()
        child(fd)
os.close(fd)
'

python() {
	local python=/usr/bin/python3
	[ -x $python ] || python=python3
	kept "$python" -c "$1$PYTHON_WRITER"
}

@test "a child of Python's looks, and the file stays tuned" {
	python 'def child(fd): subprocess.run(["cksum", "out"])'
	[ "$(mode python3)" = "direct " ] || fail "$(mode python3)"
}

@test "a child of Python's gets the file as its output, in order" {
	python 'def child(fd): subprocess.run(["echo", "the child writes here"], stdout=fd)'
	grep -aq "the child writes here" out
	[[ "$(mode python3)" = *forked ]] || fail "$(mode python3)"
}

@test "a child that inherits the file writes to it, in order" {
	python 'def child(fd): subprocess.run(["sh", "-c", "echo the child writes >&%d" % fd], pass_fds=[fd])'
	grep -aq "the child writes" out
}

cat_spawn() {
	cat >spawn.c <<-'END'
		#define _GNU_SOURCE
		#include <fcntl.h>
		#include <spawn.h>
		#include <stdio.h>
		#include <string.h>
		#include <sys/wait.h>
		#include <unistd.h>
		extern char **environ;
		int main(int argc, char **argv)
		{
			static char b[10000];
			char *look[] = {"cksum", "out", NULL}, *say[] = {"echo", "said by the child", NULL};
			int fd = open("out", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), in = open("in", O_RDONLY | O_CLOEXEC);
			posix_spawn_file_actions_t act;
			pid_t pid;
			posix_spawn_file_actions_init(&act);
			if (argc > 1)
				posix_spawn_file_actions_adddup2(&act, fd, 1);
			else
				posix_spawn_file_actions_addopen(&act, 7, "in", O_RDONLY, 0);
			for (int i = 0; i < 700; i++) {
				if (write(fd, b, read(in, b, sizeof(b))) < 0)
					return 1;
				if (i % 200 == 199) {
					posix_spawnp(&pid, argc > 1 ? "echo" : "cksum", &act, NULL, argc > 1 ? say : look, environ);
					waitpid(pid, NULL, 0);
				}
			}
			return close(fd);
		}
	END
	"${CC:-cc}" -o spawn spawn.c
}

@test "posix_spawn whose child looks" {
	cat_spawn
	kept ./spawn
	[ "$(mode spawn)" = "direct " ] || fail "$(mode spawn)"
}

@test "posix_spawn with an action that hands the file on" {
	cat_spawn
	kept ./spawn hand
	grep -aq "said by the child" out
	[[ "$(mode spawn)" = *forked ]] || fail "$(mode spawn)"
}
