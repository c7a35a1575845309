# Servers of a test's own and the jobs that need them, for all-clients.bats. What is started
# here is ended by its pid, whether the tests passed or not: see servers_stop.
# shellcheck shell=bash disable=SC2016,SC2154,SC2164,SC2317

# Where users that are not root get through to the files of this run.
let_through() {
	local dir=$BATS_FILE_TMPDIR
	while [[ $dir/ = "$BATS_RUN_TMPDIR"/* ]]; do
		chmod o+x "$dir"
		dir=${dir%/*}
	done
}

as_user() {
	setpriv --reuid "$1" --regid "$1" --init-groups "${@:2}"
}

# serve NAME READY... -- SERVER...: starts it, unless it runs, and waits until READY says yes.
serve() {
	local name=$BATS_FILE_TMPDIR/$1 ready=() tries=0
	shift
	while [ "$1" != -- ]; do
		ready+=("$1")
		shift
	done
	shift
	"$@" >"$name.log" 2>&1 </dev/null 3>&- &
	echo $! >"$name.pid"
	until "${ready[@]}" >/dev/null 2>&1; do
		tries=$((tries + 1))
		if [ $tries = 300 ] || [ ! -e "/proc/$(cat "$name.pid")/exe" ]; then
			servers_stop
			fail "no server: $(cat "$name.log")"
			return
		fi
		sleep 0.1
	done
}

# At once: nobody needs the data any more.
servers_stop() {
	local file pid tries
	for file in "$BATS_FILE_TMPDIR"/*.pid; do
		[ -e "$file" ] || continue
		pid=$(cat "$file") tries=0
		# postgres takes its children with it on SIGQUIT only
		kill -QUIT "$pid" 2>/dev/null
		while [ -e "/proc/$pid/exe" ]; do
			tries=$((tries + 1))
			[ $tries -lt 100 ] || kill -KILL "$pid"
			sleep 0.1
		done
		rm "$file"
	done
}

# ---------------------------------------------------------------- PostgreSQL

# A cluster at rest: what two clients copy of it is the same.
postgres_up() {
	PGBIN=$(dirname "$(find /usr/lib/postgresql -path '*/bin/postgres' 2>/dev/null | sort -V | tail -n 1)")
	[ -x "$PGBIN/initdb" ] || skip "needs a PostgreSQL server"
	export PGHOST=$BATS_FILE_TMPDIR/postgres PGUSER=postgres PGDATA=$EXT/postgres PATH=$PGBIN:$PATH
	[ ! -e "$BATS_FILE_TMPDIR/postgres.pid" ] || return 0
	let_through
	install -d -o postgres "$PGHOST" && install -d -o postgres -m 700 "$PGDATA"
	as_user postgres initdb -A trust -U postgres -N --no-locale -E UTF8 >"$BATS_TEST_TMPDIR/initdb" 2>&1 ||
		fail "$(cat "$BATS_TEST_TMPDIR/initdb")" || return
	serve postgres psql -c 'select 1' -- setpriv --reuid postgres --regid postgres --init-groups postgres \
		-c listen_addresses= -c unix_socket_directories="$PGHOST" -c autovacuum=off -c fsync=off || return
	createdb source && psql -q source <<-'END'
		create table t(a integer primary key, b text);
		insert into t select n, repeat(md5(n::text), 1 + n % 20) from generate_series(1, 60000) n;
		create table noise(a bytea);
		alter table noise alter a set storage external;
		insert into noise select decode(string_agg(md5(n::text || m), ''), 'hex')
			from generate_series(1, 400) m, generate_series(1, 1000) n group by m;
		vacuum freeze analyze;
		checkpoint;
	END
}

# The server's own files are in it, to the byte; what else is in it has the time or its
# place in the log in it.
same_cluster() {
	"$RUN" pg_verifybackup -q "$1" && diff -r -x pg_internal.init -x pgsql_tmp "$PGDATA/base" "$1/base" && rm -r "$1"
}

client_pg_basebackup() {
	"$RUN" pg_basebackup -c fast -D back && same_cluster back
}

client_pg_basebackup_tar() {
	"$RUN" pg_basebackup -c fast -F t -D tars && mkdir back && tar -x -f tars/base.tar -C back &&
		tar -x -f tars/pg_wal.tar -C back/pg_wal && cp tars/backup_manifest back && same_cluster back && rm -r tars
}

# Each dump of a table has a key of its own against injected commands.
plain_dump_of() { pg_dump "$1" | sed '/^\\\(un\)\?restrict /d'; }

# restored RESTORE...: into a new database, which is the same.
restored() {
	local ended
	createdb again && "$@" && cmp <(plain_dump_of source) <(plain_dump_of again)
	ended=$?
	dropdb again
	return $ended
}

# There is the time in it.
client_pg_dump_c() {
	"$RUN" pg_dump -F c -Z 1 -f a.dump source && restored "$RUN" pg_restore -d again a.dump && gone a.dump
}

client_pg_dump_d() {
	"$RUN" pg_dump -F d -Z 1 -j 2 -f a source && restored "$RUN" pg_restore -d again a && gone a/toc.dat
}

client_pg_dump() {
	"$RUN" pg_dump -f a.sql source && restored "$RUN" psql -q -o said -d again -f a.sql && sed -i '/^\\\(un\)\?restrict /d' a.sql
}

# ---------------------------------------------------------------- MariaDB

mariadb_up() {
	need mariadbd mariadb-install-db mariadb-dump
	export MYSQL_UNIX_PORT=$BATS_FILE_TMPDIR/mariadb/socket
	[ ! -e "$BATS_FILE_TMPDIR/mariadb.pid" ] || return 0
	mkdir "$BATS_FILE_TMPDIR/mariadb" "$EXT/mariadb"
	mariadb-install-db --no-defaults --user=root --datadir="$EXT/mariadb" --auth-root-authentication-method=normal \
		--skip-test-db >"$BATS_TEST_TMPDIR/install" 2>&1 || fail "$(cat "$BATS_TEST_TMPDIR/install")" || return
	serve mariadb mariadb --no-defaults -e 'select 1' -- mariadbd --no-defaults --user=root --datadir="$EXT/mariadb" \
		--skip-networking --socket="$MYSQL_UNIX_PORT" --pid-file="$EXT/mariadb/own.pid" --innodb-flush-log-at-trx-commit=0 || return
	mariadb --no-defaults -e "create database source; use source; create table t(a integer primary key, b text);
		insert into t select seq, repeat(md5(seq), 1 + seq % 20) from seq_1_to_60000;
		create table noise(a integer primary key, b longblob);
		insert into noise select seq, repeat(unhex(sha2(seq, 512)), 5000) from seq_1_to_40"
}

client_mariadb_dump() {
	local ended
	"$RUN" mariadb-dump --no-defaults --skip-dump-date --hex-blob -r a.sql source || return
	mariadb --no-defaults -e 'create database again' && "$RUN" mariadb --no-defaults again -e 'source a.sql' &&
		mariadb-dump --no-defaults --skip-dump-date --hex-blob again | sed 's/Database: again/Database: source/' | cmp - a.sql
	ended=$?
	mariadb --no-defaults -e 'drop database again'
	return $ended
}

# ---------------------------------------------------------------- the rest

# Keys, names and times of its own are in each repository.
client_borg() {
	export BORG_BASE_DIR=$PWD/base BORG_REPO=$PWD/repo BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes
	"$RUN" borg init -e none && (cd "$SRC" && "$RUN" borg create -C none ::a .) && mkdir back &&
		(cd back && "$RUN" borg extract ::a) && "$RUN" borg check --verify-data && equal back && rm -r base repo
}

client_duplicity() {
	local options=(--no-encryption --archive-dir "$PWD/archive" --tempdir "$PWD" --no-print-statistics -v 1)
	"$RUN" duplicity full "${options[@]}" "$SRC" "file://$PWD/target" &&
		"$RUN" duplicity verify --compare-data "${options[@]}" "file://$PWD/target" "$SRC" &&
		"$RUN" duplicity restore "${options[@]}" "file://$PWD/target" back && equal back && rm -r archive target
}

# A configuration of its own: one disk on this host, by way of a holding disk to a tape
# that is a directory. planner, driver, dumper, chunker, taper, sendbackup and their scripts run
# under the shim; tar does not, since runtar is set-user-id. Its directories are fixed
# at compile time: in a mount namespace of its own these are the test's.
amanda() {
	"$RUN" timeout -k 10 120 unshare -m sh -c 'mount --bind conf /etc/amanda && mount --bind logs /var/log/amanda &&
		mount --bind lib /var/lib/amanda && exec "$@"' sh \
		setpriv --reuid backup --regid backup --init-groups "$@"
}

client_amanda() {
	local here=$PWD dir
	let_through
	chmod o+rwx "$STATE"
	for dir in conf conf/t logs lib lib/gnutar-lists tapes tapes/slot1 hold log index info restored; do
		install -d -o backup -g backup "$dir"
	done
	cat >conf/t/amanda.conf <<-END
		org "t"
		dumpuser "backup"
		infofile "$here/info"
		logdir "$here/log"
		indexdir "$here/index"
		tpchanger "chg-disk:$here/tapes"
		labelstr "T[0-9]"
		autolabel "T%" any
		tapetype T
		runspercycle 1
		tapecycle 2
		inparallel 1
		define holdingdisk h {
		 	directory "$here/hold"
		 	use 500 mb
		}
		holdingdisk h
		define tapetype T {
		 	length 500 mb
		 	filemark 4 kb
		}
		define application-tool app {
		 	plugin "amgtar"
		}
		define dumptype D {
		 	auth "local"
		 	program "APPLICATION"
		 	application "app"
		 	compress none
		 	index no
		}
	END
	echo "localhost $SRC D" >conf/t/disklist
	amanda amdump t || { cat log/log; return 1; }
	# its name has the time in it
	amanda sh -c 'cd restored && exec amrestore -r "$1"/tapes/slot1/00001.*' sh "$here" >said 2>&1 || { cat said; return 1; }
	mkdir back && tail -c +32769 restored/*.RAW | tar -x -p -f - -C back && equal back &&
		stat -c %s tapes/slot1/* && rm -r conf logs lib tapes hold log index info restored said
}
