#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# As clients.bats, of clients that need a server or take long. Servers run bare.
load lib
load clients
load all-clients

setup_file() {
	need_root
	clients_setup
}

teardown_file() {
	servers_stop
	clients_drop
}

setup() { clients_begin; }

@test "pg_basebackup, pg_verifybackup" { postgres_up && client pg_basebackup direct; }
@test "pg_basebackup -Ft, pg_verifybackup" { postgres_up && client pg_basebackup_tar direct; }
@test "pg_dump -Fc, pg_restore" { postgres_up && client pg_dump_c direct; }
@test "pg_dump -Fd -j 2, pg_restore" { postgres_up && client pg_dump_d direct; }
@test "pg_dump, psql -f" { postgres_up && client pg_dump direct; }
@test "mariadb-dump, mariadb" { mariadb_up && client mariadb_dump direct; }
@test "borg create, extract, check" { need borg && client borg direct; }
@test "duplicity full, verify, restore" { need duplicity && client duplicity direct; }
@test "amdump, amrestore" { need amdump amrestore && client amanda direct; }
