# shellcheck shell=bash
# Shared by the sweeps: their options, whole commands timed in alternating runs by hyperfine, CSV and pictures.
# Sourced after lib.sh. A script sets FULL_MIB, QUICK_MIB, FULL_N, QUICK_N before it calls options.

MIB='' REPEATS='' OUT='' LETTERS=${LETTERS:-}
unset LD_PRELOAD

# ---------------------------------------------------------------------------- options

common_usage() {
	cat <<END
  -s MIB      size of the files (default $FULL_MIB, with -q $QUICK_MIB)
  -d DIR      where files and loop disks are made (default BENCH_DIR, TMPDIR or /var/tmp); removed at the end
  -n REPEATS  alternating runs of each (default $FULL_N, with -q $QUICK_N)
  -q          quick: fewer points, small sizes
  -o DIR      where $BENCH_NAME.txt, the CSV and the pictures go (default bench/results/HOST-DATE)
END
}

# options ARG...: sets MIB, REPEATS, QUICK, OUT and the array ARGS. LETTERS are a script's own options; it takes
# them in a function: option LETTER VALUE.
options() {
	local opt
	while getopts ":s:d:n:qo:h$LETTERS" opt; do
		case $opt in
		s) is_number "$OPTARG" || die "-s needs a positive number of MiB, not '$OPTARG'"; MIB=$OPTARG ;;
		d) [ -d "$OPTARG" ] || die "-d needs a directory, not '$OPTARG'"; BENCH_DIR=$OPTARG ;;
		n) is_number "$OPTARG" || die "-n needs a positive number, not '$OPTARG'"; REPEATS=$OPTARG ;;
		q) QUICK=yes ;;
		o) OUT=$OPTARG ;;
		h) usage; exit 0 ;;
		:) die "-$OPTARG needs a value (-h explains)" ;;
		\?) die "unknown option -$OPTARG (-h explains)" ;;
		*) option "$opt" "${OPTARG:-}" ;;
		esac
	done
	shift $((OPTIND - 1))
	MIB=${MIB:-$(size "$FULL_MIB" "$QUICK_MIB")}
	REPEATS=${REPEATS:-$(size "$FULL_N" "$QUICK_N")}
	ARGS=("$@")
}

# no_more ARG...: there should be none.
no_more() { [ $# -eq 0 ] || die "unknown argument '$1' (-h explains)"; }

# choice DEFAULTS ALL ARG...: the ARGs, each one of ALL, into CHOSEN; DEFAULTS where there are none.
choice() {
	local defaults=$1 all=$2 word
	shift 2
	for word; do
		case " $all " in
		*" $word "*) ;;
		*) die "unknown argument '$word', not one of: $all" ;;
		esac
	done
	CHOSEN=${*:-$defaults}
}

# tools NAME...: ends with one line that says what to install.
tools() {
	local tool missing='' package packages=''
	for tool; do
		have "$tool" && continue
		case $tool in
		gnuplot) package=gnuplot-nox ;;
		fincore|losetup) package=util-linux ;;
		mkfs.ext4) package=e2fsprogs ;;
		*) package=$tool ;;
		esac
		missing+=" $tool" packages+=" $package"
	done
	[ -z "$missing" ] || die "needs$missing: install the package$packages"
}

# sweep_begin TOOL...: tools, BENCH_TMP, OUT and the two arms: words before a command.
sweep_begin() {
	tools "$@"
	have gnuplot || say "no pictures: install the package gnuplot-nox"
	bench_begin
	OUT=$(results_dir "$OUT") || exit 2
	is_root || say "without root caches are not dropped, only the files' own pages; no throttled disks, no cgroups"
	export -f cold uncache is_root plain shim
	export BENCH_TMP
	BARE=(env) TUNED=(env "LD_PRELOAD=$BLKTUNE_LIB")
}

# bytes SIZE: of 512, 64K, 1M.
bytes() {
	case $1 in
	*K) echo $((${1%K} << 10)) ;;
	*M) echo $((${1%M} << 20)) ;;
	*) echo "$1" ;;
	esac
}

# ---------------------------------------------------------------------------- alternating runs of whole commands

NAMES=() PREPARES=() COMMANDS=()
declare -A VOLUME=() FAILED=()

quoted() { local q; q=$(printf '%q ' "$@"); printf '%s' "${q% }"; }

# enter NAME MIB PREPARE CMD...: one competitor. PREPARE is shell code, run untimed before each run; MIB is how
# much the command moves.
enter() {
	NAMES+=("$1")
	VOLUME[$1]=$2
	PREPARES+=("bash -c $(quoted "BLKTUNE_LIB=$(quoted "$BLKTUNE_LIB"); $3")")
	shift 3
	COMMANDS+=("$(quoted "$@")")
}

# durable TO CMD...: WORDS of a command that is over when TO is on stable storage. Only CMD is under the shim.
durable() {
	# shellcheck disable=SC2016 # expanded by that shell
	WORDS=(sh -c '"$@" && sync "$0"' "$@")
}

# contest [CMD...]: all that entered, once a round, REPEATS rounds, backwards in every other; hyperfine under CMD.
# Samples NAME (seconds), NAME.user, NAME.sys, NAME.rate (MiB/s). A competitor that fails gets its reason in
# FAILED[NAME] and no sample of that run.
# shellcheck disable=SC2120 # CMD is optional
contest() {
	local round i list args json=$BENCH_TMP/hyperfine.json status wall user sys
	for ((round = 0; round < REPEATS; round++)); do
		read -ra list <<<"$(order $round "${!NAMES[@]}")"
		args=()
		for i in "${list[@]}"; do
			args+=(--prepare "${PREPARES[i]}" "${COMMANDS[i]}")
		done
		rm -f "$json"
		"$@" hyperfine -N -i --runs 1 --style none --export-json "$json" "${args[@]}" >"$BENCH_TMP/log" 2>&1 ||
			{ fail "hyperfine: $(grep -m 1 Error "$BENCH_TMP/log" || tail -n 1 "$BENCH_TMP/log")"; return 1; }
		i=0
		while read -r wall user sys status; do
			record "${NAMES[list[i]]}" "$wall" "$user" "$sys" "$status"
			i=$((i + 1))
		done < <(awk '
			/"user":/ { user = $2 + 0 }
			/"system":/ { sys = $2 + 0 }
			/"times":/ { getline; wall = $1 + 0 }
			/"exit_codes":/ { getline; print wall, user, sys, $1 }' "$json")
	done
	NAMES=() PREPARES=() COMMANDS=()
}

# record NAME WALL USER SYS STATUS
record() {
	if [ "$5" != 0 ]; then
		FAILED[$1]="ended with status $5"
		return
	fi
	sample "$1" "$2"
	sample "$1.user" "$3"
	sample "$1.sys" "$4"
	[ "${VOLUME[$1]:-0}" = 0 ] || sample "$1.rate" "$(calc "${VOLUME[$1]} / $2")"
}

# ---------------------------------------------------------------------------- statistics

# stats NAME [DECIMALS]: median, lower and upper quartile, or three dashes.
stats() {
	# shellcheck disable=SC2086 # words on purpose
	printf '%s\n' ${SAMPLES[$1]:-} | sort -g | awk -v d="${2:-3}" '
		NF { v[++n] = $1 }
		function q(k,  p, i) { p = 1 + (n - 1) * k / 4; i = int(p); return i < n ? v[i] + (p - i) * (v[i + 1] - v[i]) : v[i] }
		END { if (n) printf "%.*f %.*f %.*f\n", d, q(2), d, q(1), d, q(3); else print "- - -" }'
}

# shown NAME [DECIMALS]: its median, or a dash. noise NAME: its spread; a dash where one run or none says nothing. against A B: A / B, or a dash.
shown() { stats "$@" | cut -d ' ' -f 1; }
noise() { case ${SAMPLES[$1]:-} in *' '?*) spread "$1" ;; *) echo - ;; esac; }
against() {
	if [ -n "${SAMPLES[$1]:-}" ] && [ -n "${SAMPLES[$2]:-}" ]; then fixed 2 "$(ratio "$1" "$2")"; else echo -; fi
}

# medians: what the figures of a table are.
medians() {
	if [ "$REPEATS" -gt 1 ]; then echo "medians of $REPEATS alternating runs, iqr their interquartile range"
	else echo "one run of each, so the noise is not known"; fi
}

# tab FIELD...: a line for table.
tab() { local IFS=$'\t'; printf '%s\n' "$*"; }

# ---------------------------------------------------------------------------- output

# report FILE TITLE: a table's lines on stdin, to the terminal and to FILE in OUT with the setting above it.
report() {
	{
		echo "$2"
		bench_setting
		echo
		table
	} | tee "$OUT/$1"
	echo
}

# wide PREFIX SUFFIX XS SERIES: data for a picture: each x, and of each series the median and the quartiles of
# PREFIX.SERIES.X.SUFFIX.
wide() {
	local x s line
	line=x
	for s in $4; do line+=$'\t'$s$'\t'low$'\t'high; done
	printf '%s\n' "$line"
	for x in $3; do
		line=$x
		for s in $4; do line+=$'\t'$(stats "$1.$s.$x$2" 4 | tr ' ' '\t'); done
		printf '%s\n' "$line"
	done
}

# picture FILE: gnuplot commands on stdin.
picture() {
	have gnuplot || return 0
	{
		cat <<END
set terminal pngcairo noenhanced size ${PICTURE_SIZE:-860,420} font ",10"
set output "$OUT/$1"
set datafile separator "\t"
set datafile missing "-"
set grid
set key outside right top
END
		cat
	} >"$BENCH_TMP/picture.gp"
	gnuplot "$BENCH_TMP/picture.gp" >"$BENCH_TMP/log" 2>&1 || say "no picture $1: gnuplot: $(grep -m 1 . "$BENCH_TMP/log")"
}

# curves FILE DATA TITLE XLABEL YLABEL: medians as lines, quartiles as bars, of what wide made.
curves() {
	picture "$1" <<END
set title "$3"
set xlabel "$4"
set ylabel "$5"
set yrange [0:*]
set xtics rotate by -40
plot for [i=2:$(awk -F '\t' 'NR == 1 { print NF }' "$2"):3] "$2" using 0:i:i+1:i+2:xtic(1) with yerrorlines linewidth 2 pointtype 7 pointsize 0.7 title columnheader(i)
END
}

# bars FILE DATA TITLE YLABEL: the same as columns.
bars() {
	picture "$1" <<END
set title "$3"
set ylabel "$4"
set yrange [0:*]
set style data histograms
set style histogram errorbars gap 1.5 linewidth 1
set style fill solid 0.7 border -1
set xtics rotate by -30
plot for [i=2:$(awk -F '\t' 'NR == 1 { print NF }' "$2"):3] "$2" using i:i+1:i+2:xtic(1) title columnheader(i)
END
}
