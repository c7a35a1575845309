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
	export -f cold uncache is_root plain shim have same fail seen cached_pages
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

NAMES=() PREPARES=() COMMANDS=() AFTERS=() AFTER=
declare -A VOLUME=() SCALE=() FAILED=()

quoted() { local q; q=$(printf '%q ' "$@"); printf '%s' "${q% }"; }

# enter NAME MIB PREPARE CMD...: one competitor. PREPARE is shell code, run untimed before each run; MIB is how
# much the command moves. AFTER, where set, is shell code for after each run. Both may call seen and use $ROUND.
# SCALE[NAME] multiplies the time of a competitor that does only a part of what the others do.
enter() {
	NAMES+=("$1")
	VOLUME[$1]=$2
	PREPARES+=("$3")
	AFTERS+=("$AFTER")
	AFTER=
	shift 3
	COMMANDS+=("$(quoted "$@")")
}

# seen KEY VALUE: a sample of NAME.KEY, by a competitor's shell code. seen failed REASON: the run does not count.
seen() { printf '%s\n' "$COMPETITOR $*" >>"$BENCH_TMP/seen"; }

# between PREVIOUS NEXT: the command that does what is to be done between two runs; either may be empty.
between() {
	local code
	code="BLKTUNE_LIB=$(quoted "$BLKTUNE_LIB")"
	[ -z "$1" ] || code+="; COMPETITOR=$1; ${AFTERS[$1]:-:}"
	[ -z "$2" ] || code+="; COMPETITOR=$2; ${PREPARES[$2]}"
	quoted bash -c "$code"
}

# durable TO CMD...: WORDS of a command that is over when TO is on stable storage. Only CMD is under the shim.
durable() {
	# shellcheck disable=SC2016 # expanded by that shell
	WORDS=(sh -c '"$@" && sync "$0"' "$@")
}

# contest [CMD...]: all that entered, once a round, REPEATS rounds, backwards in every other; hyperfine under CMD.
# Samples NAME (seconds), NAME.user, NAME.sys, NAME.cpu, NAME.rate (MiB/s) and what was seen. A competitor that fails
# gets its reason in FAILED[NAME] and no sample of that run.
# shellcheck disable=SC2120 # CMD is optional
contest() {
	local list args i previous code json=$BENCH_TMP/hyperfine.json
	export ROUND
	for ((ROUND = 0; ROUND < REPEATS; ROUND++)); do
		read -ra list <<<"$(order $ROUND "${!NAMES[@]}")"
		args=() previous=
		for i in "${list[@]}"; do
			args+=(--prepare "$(between "$previous" "$i")" "${COMMANDS[i]}")
			previous=$i
		done
		rm -f "$json"
		: >"$BENCH_TMP/seen"
		"$@" hyperfine -N -i --runs 1 --style none --export-json "$json" "${args[@]}" >"$BENCH_TMP/log" 2>&1 ||
			{ fail "hyperfine: $(grep -m 1 Error "$BENCH_TMP/log" || tail -n 1 "$BENCH_TMP/log")"; return 1; }
		code=$(between "$previous" '')
		eval "$code"
		read_round "$json" "${list[@]}"
	done
	NAMES=() PREPARES=() COMMANDS=() AFTERS=()
}

# read_round JSON COMPETITOR...: what hyperfine measured, in that order, and what was seen.
read_round() {
	local json=$1 i n=0 key value wall user sys status
	local -A why=()
	shift
	while read -r i key value; do
		[ "$key" != failed ] || why[$i]=$value
	done <"$BENCH_TMP/seen"
	while read -r wall user sys status; do
		n=$((n + 1))
		i=${!n}
		[ "$status" = 0 ] || why[$i]="ended with status $status"
		if [ -n "${why[$i]:-}" ]; then FAILED[${NAMES[i]}]=${why[$i]}; else record "${NAMES[i]}" "$wall" "$user" "$sys"; fi
	done < <(awk '
		/"user":/ { user = $2 + 0 }
		/"system":/ { sys = $2 + 0 }
		/"times":/ { getline; wall = $1 + 0 }
		/"exit_codes":/ { getline; print wall, user, sys, $1 }' "$json")
	while read -r i key value; do
		[ -n "${why[$i]:-}" ] || sample "${NAMES[i]}.$key" "$value"
	done <"$BENCH_TMP/seen"
}

# record NAME WALL USER SYS
record() {
	local scale=${SCALE[$1]:-1}
	sample "$1" "$(calc "$2 * $scale")"
	sample "$1.user" "$(calc "$3 * $scale")"
	sample "$1.sys" "$(calc "$4 * $scale")"
	sample "$1.cpu" "$(calc "($3 + $4) * $scale")"
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

# clear_of A B: do the quartiles of the two stay apart? One run of each has none.
clear_of() {
	case ${SAMPLES[$1]} in *' '?*) ;; *) return 1 ;; esac
	holds "$(quartile "$1" 3) < $(quartile "$2" 1) || $(quartile "$2" 3) < $(quartile "$1" 1)"
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
# PREFIX.SERIES.X.SUFFIX. Dots in the names of x and series become spaces.
wide() {
	local x s line
	line=x
	for s in $4; do line+=$'\t'${s//./ }$'\t'low$'\t'high; done
	printf '%s\n' "$line"
	for x in $3; do
		line=${x//./ }
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

# series DATA USING STYLE: gnuplot's plot command for what wide made. A series has its colour in every picture: plain (and
# block, which is plain too) grey, shim green, direct (raw) orange; its variants a lighter one.
series() {
	local name colour column=2 out='' taken=' '
	while read -r name; do
		case $name in
		plain*|block*) colour='#888888 #c8c8c8' ;;
		shim*) colour='#1b9e77 #8fd6bd' ;;
		*direct*|raw*) colour='#d95f02 #f5b277' ;;
		*) colour= ;;
		esac
		case $taken in *" ${colour% *} "*) colour=${colour#* } ;; *) colour=${colour% *} ;; esac
		taken+="$colour "
		out+="${out:+, }\"$1\" using ${2//N/$column} with $3${colour:+ linecolor rgb \"$colour\"} title \"$name\""
		column=$((column + 3))
	done < <(awk -F '\t' '{ for (i = 2; i <= NF; i += 3) print $i; exit }' "$1")
	printf 'set key autotitle columnhead\nplot %s\n' "$out"
}

# curves FILE DATA TITLE XLABEL YLABEL: medians as lines, quartiles as bars, of what wide made.
curves() {
	picture "$1" <<END
set title "$3"
set xlabel "$4"
set ylabel "$5"
set yrange [0:*]
set xtics rotate by -40
$(series "$2" '0:N:(column(N+1)):(column(N+2)):xtic(1)' 'yerrorlines linewidth 2 pointtype 7 pointsize 0.7')
END
}

# bars FILE DATA TITLE XLABEL YLABEL [COMMAND]: the same as columns.
bars() {
	picture "$1" <<END
set title "$3"
set xlabel "$4"
set ylabel "$5"
set yrange [0:*]
set style data histograms
set style histogram errorbars gap 1.5 linewidth 1
set style fill solid 0.8 border -1
set xtics rotate by -30
${6:-}
$(series "$2" 'N:(column(N+1)):(column(N+2)):xtic(1)' histograms)
END
}
