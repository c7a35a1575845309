# The jobs of real programs, for clients.bats and all-clients.bats: each does some work
# with the files in $SRC in the empty directory it is started in, and brings them back
# where it can. "$RUN" stands before each program under test, and before no other.
# What it prints and leaves behind is compared; what differs by nature from one run to the
# next (an archive with the time of day in it) it takes away.
# shellcheck shell=bash disable=SC2012,SC2154,SC2164,SC2317

# The files: empty, a byte, about a page, about the size from which transfers are direct,
# larger ones, and one with holes.
clients_setup() {
	local size n=0
	require_shim && helper treedump >/dev/null || return
	EXT=$(fs_make ext4) OTHER=$(fs_make xfs) || return
	SRC=$EXT/src INPUT=$EXT/input WORK=$EXT/work FILES=()
	mkdir "$SRC" "$SRC/sub" "$INPUT" "$WORK"
	for size in 0 1 4097 1048577; do
		n=$((n + 1))
		pattern "$size" $n >"$SRC/sub/f$size"
	done
	pattern 5242880 10 >"$SRC/f5M"
	pattern 12582912 11 >"$SRC/f12M"
	pattern 300000 12 >"$SRC/sparse"
	truncate -s 8M "$SRC/sparse"
	pattern 70000 13 | dd of="$SRC/sparse" bs=1M seek=5 conv=notrunc iflag=fullblock status=none
	chmod 444 "$SRC/f5M"
	chmod 640 "$SRC/sub/f4097"
	ln -s f5M "$SRC/link"
	find "$SRC" -exec touch -h -d @1000000000 {} +

	base64 "$SRC/f5M" >"$INPUT/lines"
	pattern 2500000 14 >"$INPUT/f2M"
	sqlite3 "$INPUT/db" "create table t(a integer primary key, b text); with recursive c(x) as
		(select 1 union all select x + 1 from c where x < 10000) insert into t select x, hex(randomblob(x % 400)) from c"
	git init -q -b main "$INPUT/repo" && cp -R "$SRC/." "$INPUT/repo" && git -C "$INPUT/repo" add . &&
		git -C "$INPUT/repo" -c user.name=a -c user.email=a@b commit -q -m one || return
	mke2fs -q -t ext4 -d "$SRC" "$BATS_FILE_TMPDIR/device.img" 64M || return
	DEVICE=$(losetup -f --show "$BATS_FILE_TMPDIR/device.img") || return
	cp -a "$SRC" "$OTHER/tree"
	sync -f "$EXT" && sync -f "$OTHER"
	export EXT OTHER SRC INPUT WORK DEVICE
}

clients_drop() {
	fs_drop
}

clients_begin() {
	# no shell function of bats' may see these
	mapfile -t FILES < <(cd "$SRC" && find . -type f -printf '%P\n' | sort)
	STATE=$BATS_TEST_TMPDIR
	export HOME=$STATE SOURCE_DATE_EPOCH=1000000000
}

# client JOB WANT [REASON]: runs client_JOB bare, with the shim, and with the shim in small
# blocks, and compares. WANT is what the report of the second run has to say: "direct", most
# went so; "part", some, and most of the rest not for REASON; "none", next to nothing, and REASON why.
client() {
	local name=$1 how said=() rc=() dump=()
	for how in ${RUNS:-bare shim blocks}; do
		rm -rf "$WORK/out"
		mkdir "$WORK/out"
		rc+=(0)
		(cd "$WORK/out" && RUN=run_$how "client_$name") >"$STATE/said" 2>&1 </dev/null || rc[-1]=$?
		if [ "$(type -t "plain_$name")" = function ]; then
			said+=("$("plain_$name" <"$STATE/said")")
		else
			said+=("$(cat "$STATE/said")")
		fi
		dump+=("$("$(helper treedump)" -s "$WORK/out")")
		[ "${rc[0]}" = 0 ] || fail "bare: status ${rc[0]}: $(cat "$STATE/said")" || return
		same "${rc[0]} ${said[0]}" "${rc[-1]} ${said[-1]}" "status and output, bare (<) and $how (>)" || return
		same "${dump[0]}" "${dump[-1]}" "files, bare (<) and $how (>)" || return
	done
	rm -rf "$WORK/out"
	numbers >"$STATE/numbers" || return
	[ -z "${KEEP-}" ] || cp "$STATE"/*.json "$KEEP"
	claim "${@:2}" || fail "the report says otherwise: $(cat "$STATE/numbers")" || return
	[ -z "${TEST_TABLE-}" ] || row >"$TEST_TABLE/$(basename "$BATS_TEST_FILENAME" .bats)-$(printf %02d "$BATS_TEST_NUMBER")"
}

# What the kernel counted of the bare programs, and what the reports say.
numbers() {
	local all
	all=$(awk '{ n += $1 } END { printf "%d", n }' "$STATE/io")
	jq -ers --argjson all "$all" '
		[.[].files[]] as $f
		| def of(e): [$f[] | .read, .write | e] | add // 0;
		"\($all) \(of(.bytes)) \(of(.calls)) \(of(.transfers)) \(of(.direct_bytes))",
		($f | map({reason, n: (.read.moved + .write.moved - .read.direct_bytes - .write.direct_bytes)})
			| group_by(.reason) | map({reason: .[0].reason, n: map(.n) | add}) | sort_by(-.n)[]
			| "\(if .reason == "" then "unaligned" else .reason end) \(.n)")' "$STATE"/*.json
}

claim() {
	local all seen calls transfers direct why
	{ read -r all seen calls transfers direct && read -r why _; } <"$STATE/numbers" || return
	case $1 in
	direct) [ "$direct" -ge $((seen / 2)) ] && [ "$direct" -gt 1000000 ] ;;
	part) [ "$direct" -gt 1000000 ] && { [ $# = 1 ] || [ "$why" = "$2" ]; } ;;
	none) [ "$direct" -lt $((seen / 100)) ] && [ "$why" = "$2" ] ;;
	*) false ;;
	esac
}

mib() { awk -v n="$1" 'BEGIN { printf "%.1f", n / 1048576 }'; }

# A line of the table. What is less than a hundredth of all bytes needs no reason.
row() {
	local all seen calls transfers direct why n rest=
	{
		read -r all seen calls transfers direct
		while read -r why n; do
			[ "$n" -lt $((all / 100)) ] || rest+="${rest:+, }\`$why\` $(mib "$n")"
		done
	} <"$STATE/numbers"
	n=$((all - seen))
	[ $n -lt $((all / 100)) ] || rest+="${rest:+, }not its own $(mib $n)"
	echo "| $BATS_TEST_DESCRIPTION | $(mib "$all") | $(mib "$direct") | $calls | $transfers | $rest |"
}

# Of several runs, the bare one is measured, by the kernel's count of bytes read and written.
io_now() {
	local key value
	IO=0
	while read -r key value; do
		case $key in rchar: | wchar:) IO=$((IO + value)) ;; esac
	done <"/proc/$BASHPID/io"
}

run_bare() {
	local before ended=0
	io_now
	before=$IO
	bare "$@" || ended=$?
	io_now
	echo $((IO - before)) >>"$STATE/io"
	return $ended
}

run_shim() {
	shim BLKTUNE_REPORT="$STATE/%n.%p.json" "$@"
}

# Small files, too, and many transfers.
run_blocks() {
	shim BLKTUNE_DIRECT_MIN=4K BLKTUNE_BLOCK=64K "$@"
}

# equal DIR [OPTION...]: it holds what the source does: content, mode, owner, and time
# unless the options say otherwise.
equal() {
	local opts=${2--s -t}
	# shellcheck disable=SC2086
	diff <("$(helper treedump)" $opts "$SRC") <("$(helper treedump)" $opts "$1") >&2
}

# gone FILE...: not to be compared but for its size.
gone() {
	stat -c '%n %s' "$@" && rm "$@"
}

client_cp() {
	"$RUN" cp -a "$SRC" back && equal back "-t"
}

client_cp_read_write() {
	"$RUN" cp -a --reflink=never --sparse=never "$SRC" back && equal back
}

# From another filesystem.
client_mv() {
	cp -a "$SRC" "$OTHER/from" && mkdir back && "$RUN" mv "$OTHER"/from/* back/ && rm -r "$OTHER/from" && equal back
}

client_install() {
	local f
	mkdir back back/sub
	for f in "${FILES[@]}"; do
		"$RUN" install -p -m "$(stat -c %a "$SRC/$f")" "$SRC/$f" "back/$f" || return
	done
	cp -P "$SRC/link" back
	equal back
}

client_cat() {
	local f
	for f in "${FILES[@]}"; do
		"$RUN" cat "$SRC/$f" >"${f##*/}" && cmp "$SRC/$f" "${f##*/}" || return
	done
}

client_split() {
	"$RUN" split -b 3000000 "$SRC/f12M" part. && cat part.* | cmp - "$SRC/f12M"
}

client_dd() {
	"$RUN" dd if="$SRC/f5M" of=a && "$RUN" dd if="$SRC/f12M" of=b bs=10k conv=fsync &&
		cmp "$SRC/f5M" a && cmp "$SRC/f12M" b
}

plain_dd() { sed -E 's/ copied, .*/ copied/'; }

client_tar() {
	"$RUN" tar -c -f a.tar -C "$SRC" --sort=name . && "$RUN" tar -d -f a.tar -C "$SRC" &&
		mkdir back && "$RUN" tar -x -p -f a.tar -C back && equal back
}

client_tar_z() {
	GZIP=-n "$RUN" tar -c -z -f a.tgz -C "$SRC" --sort=name f5M && "$RUN" tar -x -z -f a.tgz && cmp f5M "$SRC/f5M"
}

client_bsdtar() {
	"$RUN" bsdtar -c -f a.tar -C "$SRC" . && mkdir back && "$RUN" bsdtar -x -p -f a.tar -C back && equal back
}

names() { (cd "$SRC" && find . | sort); }

client_cpio() {
	(cd "$SRC" && names | "$RUN" cpio -o -H newc -F "$OLDPWD/a.cpio") &&
		mkdir back && (cd back && "$RUN" cpio -i -d -m -F ../a.cpio) && equal back
}

client_pax() {
	(cd "$SRC" && names | "$RUN" pax -w -d -x ustar -f "$OLDPWD/a.pax") &&
		mkdir back && (cd back && "$RUN" pax -r -p e -f ../a.pax) && equal back
}

client_afio() {
	(cd "$SRC" && names | "$RUN" afio -o "$OLDPWD/a.afio") &&
		mkdir back && (cd back && "$RUN" afio -i ../a.afio) && equal back
}

# A label made of the time is in the archive.
client_dar() {
	"$RUN" dar -c a -R "$SRC" -N -Q -q && "$RUN" dar -t a -N -Q -q && mkdir back &&
		"$RUN" dar -x a -R back -N -Q -q && gone a.1.dar && equal back
}

# The time of the dump is in it, and what it says has times and rates. A device that
# nobody has mounted.
client_dump() {
	"$RUN" dump -0 -f a.dump "$DEVICE" && mkdir back && (cd back && "$RUN" restore -r -f ../a.dump) &&
		gone a.dump && rm -r back/restoresymtable back/lost+found && equal back
}

# The same while it is mounted.
client_dump_mounted() {
	mkdir mnt back && mount -o ro "$DEVICE" mnt || return
	"$RUN" dump -0 -f a.dump "$DEVICE"
	local ended=$?
	umount mnt && (cd back && "$RUN" restore -r -f ../a.dump) && gone a.dump &&
		rm -r back/restoresymtable back/lost+found && equal back && return $ended
}

plain_dump() {
	sed -E '/DUMP: (Date of this level|Volume 1 (started|completed|took|transfer)|Average transfer)/d
		s/(Date this dump completed:|finished in).*/\1/'
}

plain_dump_mounted() { plain_dump; }

client_rsync() {
	"$RUN" rsync -a --stats "$SRC/" back && equal back &&
		pattern 12582912 1234 | dd of=back/f12M bs=1M seek=3 count=1 conv=notrunc iflag=fullblock status=none &&
		"$RUN" rsync -a --no-whole-file --checksum "$SRC/" back && equal back
}

plain_rsync() {
	sed -E 's/^(File list (generation|transfer) time):.*/\1/; s/ [0-9.,]+ bytes\/sec//; s/^(Total bytes (sent|received)|sent ).*/\1/'
}

client_xfsdump() {
	local from=$OTHER/tree
	"$RUN" xfsdump -J -F -L a -M a -s tree -f a.xfsdump "$OTHER" && mkdir back &&
		"$RUN" xfsrestore -J -F -f a.xfsdump back && gone a.xfsdump && SRC=$from equal back/tree
}

plain_xfsdump() {
	sed -E 's/(dump date|session id|session time|media id|level|fs id|dump complete|restore complete|elapsed).*/\1/; s/: [0-9]+ seconds/:/; s/(media file size|dump size \(non-dir files\) :|estimated dump size:|ino map phase|using online session inventory).*/\1/'
}

client_e2image() {
	"$RUN" e2image -r -a "$DEVICE" a.img && e2fsck -f -n a.img >/dev/null 2>&1 && mkdir mnt && mount -o ro,loop a.img mnt || return
	SRC=$SRC equal mnt "-s -t" | grep -v lost+found
	umount mnt && "$RUN" e2image -Q "$DEVICE" a.qcow2
}

# It sleeps for two seconds each time. Of a target that is not there it looks at a mode that
# was never set.
client_partclone() {
	"$RUN" partclone.ext4 -c -L log -s "$DEVICE" -o a.img && : >restored &&
		"$RUN" partclone.restore -C -L log -s a.img -O restored && e2fsck -f -n restored >/dev/null 2>&1 && rm log
}

# Each second it says where it is, and goes up a few lines again.
plain_partclone() { tr '\r' '\n' | sed 's/\x1b\[[0-9;]*[A-Za-z]//g' | grep -v -i -E 'elapsed|rate|time|current block|^ *$'; }

client_sqlite_backup() {
	"$RUN" sqlite3 "$INPUT/db" ".backup copy" ".dump" >dump && "$RUN" sqlite3 again <dump &&
		"$RUN" sqlite3 "$INPUT/db" "vacuum into 'vacuumed'" &&
		"$RUN" sqlite3 again "pragma integrity_check; select count(*), sum(length(b)) from t"
}

client_sqlite_write() {
	local i
	cp "$INPUT/db" db
	for i in 1 2 3; do
		"$RUN" sqlite3 db ".timeout 60000" "begin immediate; update t set b = b || '$i' where a % 7 = $i; commit;
			delete from t where a % 11 = $i; insert into t select a + $i * 1000000, hex(b) from t where a % 5 = $i;"
	done
	"$RUN" sqlite3 db "pragma journal_mode = wal; update t set b = upper(b) where a % 3 = 0; pragma wal_checkpoint(full);
		delete from t where a % 13 = 0; pragma integrity_check; select count(*), sum(length(b)) from t; pragma journal_mode = delete"
}

client_mbuffer() {
	"$RUN" mbuffer -q -i "$SRC/f12M" -o a && cat "$SRC/f5M" | "$RUN" mbuffer -q -o b && "$RUN" mbuffer -q -i "$SRC/f5M" | cmp - b &&
		cmp "$SRC/f12M" a
}

client_buffer() {
	"$RUN" buffer -i "$SRC/f12M" -o a && cmp -n 12582912 "$SRC/f12M" a
}

client_pv() {
	"$RUN" pv -q "$SRC/f12M" >a && cmp "$SRC/f12M" a
}

compressor() {
	cp -p "$INPUT/f2M" f && "$RUN" "$1" "${@:4}" f && "$RUN" "$2" -k f"$3" && cmp "$INPUT/f2M" f && "$RUN" "$1" -t f"$3"
}
client_gzip() { compressor gzip gunzip .gz -n -1; }
client_pigz() { compressor pigz unpigz .gz -n -1; }
client_xz() { compressor xz unxz .xz -0; }
client_bzip2() { compressor bzip2 bunzip2 .bz2; }
client_zstd() { compressor zstd unzstd .zst -q --rm; }

client_sha256sum() {
	(cd "$SRC" && "$RUN" sha256sum "${FILES[@]}") | tee sums && (cd "$SRC" && "$RUN" sha256sum -c --quiet "$OLDPWD/sums")
}

client_sort() {
	"$RUN" sort -o a "$INPUT/lines" && "$RUN" sort -S 1M -T . -o b "$INPUT/lines" && cmp a b && sort -c a
}

client_zip() {
	(cd "$SRC" && "$RUN" zip -q -r -y -1 "$OLDPWD/a.zip" f5M link sub) && "$RUN" unzip -q -d back a.zip && "$RUN" unzip -tq a.zip &&
		cp -p "$SRC/f12M" "$SRC/sparse" back && equal back
}

client_7z() {
	(cd "$SRC" && "$RUN" 7z a -bd -mx=1 -snl "$OLDPWD/a.7z" f5M link sub) && "$RUN" 7z x -bd -oback a.7z &&
		cp -p "$SRC/f12M" "$SRC/sparse" back && equal back
}

plain_7z() { grep -v -E '^(p7zip|7-Zip|.*threads:|.*CPU)'; }

client_squashfs() {
	"$RUN" mksquashfs "$SRC" a.sqsh -quiet -no-progress -Xcompression-level 1 &&
		"$RUN" unsquashfs -q -no-progress -d back a.sqsh && equal back
}

client_xorriso() {
	"$RUN" xorriso -outdev a.iso -volume_date all_file_dates "=1000000000" -volume_date uuid 2001090901464000 \
		-map "$SRC" / 2>said && "$RUN" xorriso -osirrox on -indev a.iso -extract / back 2>>said
	local ended=$?
	sed -E '/^xorriso : UPDATE/d; s/[0-9]+ *(MB|g|k)? free//' said
	rm said
	return $ended
}

client_git() {
	"$RUN" git clone -q --no-local "$INPUT/repo" back && "$RUN" git -C back fsck --no-progress &&
		rm -rf back/.git && diff -r "$SRC" back
}

client_tar_more() {
	local n list=()
	for n in 1 2 3 4 5; do
		list+=(-f "volume$n")
	done
	# each volume says when it was made
	"$RUN" tar -c -S -W -f a.tar -C "$SRC" --sort=name . && mkdir back && "$RUN" tar -x -p -f a.tar -C back && equal back "-t" &&
		"$RUN" tar -c -M -L 8000 "${list[@]}" -C "$SRC" --sort=name . && rm -r back && mkdir back &&
		"$RUN" tar -x -p -M "${list[@]}" -C back && equal back && gone volume?
}

client_pass() {
	mkdir cpio pax && (cd "$SRC" && names | "$RUN" cpio -p -d -m "$OLDPWD/cpio") && equal cpio &&
		(cd "$SRC" && "$RUN" pax -r -w -p e . "$OLDPWD/pax") && equal pax
}

client_rsync_inplace() {
	mkdir back && pattern 9000000 1234 >back/f12M && "$RUN" rsync -a -W --inplace "$SRC/" back && equal back &&
		rm -r back && "$RUN" rsync -a -S "$SRC/" back && equal back "-t"
}

client_tee() {
	"$RUN" tee a b <"$SRC/f12M" | cmp - "$SRC/f12M" && cmp a b && cmp a "$SRC/f12M"
}

client_sums() {
	local sum
	for sum in md5sum b2sum cksum sum; do
		(cd "$SRC" && "$RUN" $sum "${FILES[@]}") || return
	done
}

client_lz4() {
	"$RUN" lz4 -q "$INPUT/f2M" a.lz4 && "$RUN" unlz4 -q a.lz4 a && cmp a "$INPUT/f2M" && "$RUN" lz4 -q -t a.lz4
}

client_openssl() {
	"$RUN" openssl enc -aes-256-ctr -K 0123456789 -iv 01 -in "$SRC/f12M" -out a && "$RUN" openssl enc -d -aes-256-ctr \
		-K 0123456789 -iv 01 -in a -out b && cmp b "$SRC/f12M" && "$RUN" openssl dgst -sha256 b
}

# The time of creation is in it at several places.
client_genisoimage() {
	"$RUN" genisoimage -quiet -R -iso-level 3 -o a.iso "$SRC" && xorriso -osirrox on -indev a.iso -extract / back 2>/dev/null &&
		(cd "$SRC" && sha256sum "${FILES[@]}") | (cd back && sha256sum -c --quiet) && gone a.iso && rm -r back
}

client_ddrescue() {
	"$RUN" ddrescue -q "$SRC/f12M" a map && cmp a "$SRC/f12M" && "$RUN" ddrescue -q "$DEVICE" b && cmp b "$DEVICE" && rm map
}

client_dc3dd() {
	"$RUN" dc3dd if="$SRC/f12M" of=a hash=md5 && cmp a "$SRC/f12M" && "$RUN" dcfldd if="$SRC/f12M" of=b hash=md5 &&
		cmp b "$SRC/f12M"
}

# What they say of time and rate, line by line as they go.
plain_dc3dd() { tr '\r' '\n' | grep -v -E ' s\b|started|completed|Mb\) written|bytes .* copied'; }

# The archive has an identity of its own.
client_fsarchiver() {
	"$RUN" fsarchiver savedir -Z 1 -j 2 a.fsa "$SRC" >/dev/null && mkdir back && "$RUN" fsarchiver restdir a.fsa back >/dev/null &&
		equal "back$SRC" "-s -t" && rm -r a.fsa back
}

client_python() {
	"$RUN" python3 -B -c 'import shutil, sys, tarfile
shutil.copytree(sys.argv[1], "tree", symlinks=True)
shutil.copyfileobj(open("tree/f12M", "rb"), open("copy", "wb"))
with tarfile.open("a.tar", "w") as tar: tar.add(sys.argv[1], ".")
with tarfile.open("a.tar") as tar: tar.extractall("back")' "$SRC" && cmp copy "$SRC/f12M" && equal tree && equal back
}

client_perl() {
	"$RUN" perl -MFile::Copy -e 'copy("$ARGV[0]/f12M", "a") or die; open(my $in, "<", "a") or die;
		open(my $out, ">", "b") or die; print $out $_ while <$in>; close($out) or die' "$SRC" && cmp a "$SRC/f12M" && cmp b a
}
