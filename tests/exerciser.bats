#!/usr/bin/env bats
# A long random sequence of file operations returns the same with the library as without it, and leaves the same
# files behind. A failing seed is shrunk by hand: tests/exerciser -x -s SEED -c 1 and the other options shown.

small="BLKTUNE_MIN=4K BLKTUNE_BLOCK=8K BLKTUNE_DIRECT_MIN=4K"

setup_file()
{
	export EXERCISER=$BATS_FILE_TMPDIR/exerciser
	"${CC:-cc}" -std=gnu11 -O2 -Wall -Wextra -o "$EXERCISER" "$BATS_TEST_DIRNAME/exerciser.c" -pthread
}

same()	# options of the driver
{
	TMPDIR=$BATS_TEST_TMPDIR run "$BATS_TEST_DIRNAME/exerciser" -n 400 -w each "$@"
	[ "$status" != 77 ] || skip "$output"
	echo "tests/exerciser -n 400 -w each $*"
	echo "$output"
	[ "$status" = 0 ]
}

@test "the exerciser sees no difference in the temporary directory, default settings" {
	same -s 1000 -c 12
}

@test "the exerciser sees no difference in the temporary directory, small blocks always held" {
	same -s 2000 -c 12 -e "$small BLKTUNE_HOLD=always"
}

@test "the exerciser sees no difference on ext4, small blocks" {
	same -s 3000 -c 18 -f ext4 -e "$small"
}

@test "the exerciser sees no difference on xfs, small blocks" {
	same -s 4000 -c 18 -f xfs -e "$small"
}

@test "the exerciser sees no difference on tmpfs, small blocks" {
	same -s 5000 -c 18 -f tmpfs -e "$small"
}

@test "the exerciser sees no difference on btrfs, small blocks" {
	same -s 6000 -c 6 -f btrfs -e "$small"
}

@test "the exerciser sees no difference on 4096-byte sectors, small blocks" {
	same -s 7000 -c 6 -f 4k -e "$small"
}

@test "the exerciser sees no difference on ext4 with journalled data, which is found not to be direct on the way" {
	same -s 109 -c 6 -f journal
}
