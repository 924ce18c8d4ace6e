# Runs and tables of bench_coll.sh. To be sourced by it, behind bench_table.sh and bench_lab.sh.
#
# Rows of weft-mpi-perf are kept in $raw, a line each: place and MPI, ranks, operation, size, MIF,
# percent late, way, by which name, round; completion, bound, beyond, total, and the lower end of the ratio
# to the MPI's own, call by call, at 99 %, unless there were so few calls that nearly anything may be by
# chance. Tables are made of them afterwards. "own" is the MPI's, as it was beside each of the ways; a way is
# judged by the ratio to what was measured in the same processes, round by round, which is in $rec.pairs.
# shellcheck shell=bash

# ---- ways ----

# chosen "WAY ...": of these the ones that were asked for.
chosen() {
	local way list=''
	[ $quick = no ] || { echo "${1%% *}" && return; }
	[ -n "$asked" ] || { echo "$1" && return; }
	for way in $1; do
		case " $asked " in *" $way "*) list+=" $way" ;; esac
	done
	echo "${list# }"
}

# way_vars WAY OPERATION: what it means, in $vars.
way_vars() {
	case $1 in
	own) vars=(WEFT_COLL=off) ;;
	auto) vars=(WEFT_COLL=auto) ;;
	blind) vars=(WEFT_COLL="$2=tree" WEFT_COLL_TOPOLOGY=) ;;
	apart) vars=(WEFT_COLL="$2=pap_direct" WEFT_COLL_SHM=no) ;;
	copied) vars=(WEFT_COLL="$2=pap_direct" WEFT_COLL_COPY_MAX=1m WEFT_COLL_COPY_FAR=1m) ;;
	zerocopy) vars=(WEFT_COLL="$2=pap_direct" WEFT_COLL_COPY_MAX=0 WEFT_COLL_COPY_FAR=0) ;;
	*) vars=(WEFT_COLL="$2=$1") ;;
	esac
}

# Without the library there is the MPI's own, which is figure 1.
has_library() {
	[ ! -e "$BUILD/lib/libweft-coll.$1.so" ] || return 0
	case $missing in *" $1 "*) ;; *) say "no libweft-coll for $1: its own collectives only" ;; esac
	missing+=" $1 "
	failed=1
	return 1
}
missing=''

first_mpi() {
	local list
	read -ra list <<<"$mpis"
	echo "${list[0]}"
}

# ---- running ----

more=() # what else weft run is told
label='' # instead of the place

# place_args PLACE: in $where; the lab of four hosts is made when it is first needed.
place_args() {
	where=()
	[ "$1" != host ] || return 0
	[ "$1" != lab ] || [ -n "${labs[lab]:-}" ] || lab_make lab --pgft '2;2,2;1,2;1,1' --rate unlimited --mtu 9000 || return
	[ -n "${labs[$1]:-}" ] || return
	where=(--lab "${labs[$1]}")
}

# start WAY OPERATION PLACE MPI RANKS PROGRAM...: its output in $tmp/out.
start() {
	local where vars coll=(--coll)
	way_vars "$1" "$2"
	place_args "$3" || return
	[ "$1" != own ] || coll=()
	say "${label:-$3}, $4, $5 processes, $1${round:+, round $round}"
	bounded env "${vars[@]}" "$WEFT" run "${coll[@]}" "${where[@]}" --net "$net" "${more[@]}" -n "$5" "${@:6}" \
		>"$tmp/out" 2>"$tmp/err" && return
	say "${label:-$3}, $4, $1: failed ($?): $(grep -v '^weft\[\|^-*$' "$tmp/err" | head -n 5)"
	failed=1
	return 1
}

# rows PREFIX ROUND WAY: lines for $raw, of what weft-mpi-perf has printed.
rows() {
	awk -v prefix="$1" -v round="$2" -v way="$3" '/^ \{"size"/ {
		gsub(/[ {}"]|\]/, "")
		n = split($0, f, ",")
		for (i = 1; i <= n; i++) {
			split(f[i], kv, ":")
			v[kv[1]] = kv[2]
		}
		OFS = "\t"
		print prefix, v["op"], v["size"], v["mif"], v["late_pct"], way, way == "own" ? "own" : v["by"],
			round, v["p50_us"], v["bound_us"], v["beyond_us"], v["total_us"],
			v["n"] < 20 ? "" : v["of_own_lo"]
	}' "$tmp/out"
}

# measure NAME SECONDS "WAY ..." RANKS OPTIONS: all MPIs, all places, all rounds; the first of a part
# begins $raw.
measure() {
	local name=$1 seconds=$2 list=$3 n=$4 op=alltoall place mpi way own patience spare=$limit limit
	shift 4
	[[ " $* " =~ \ --op\ ([a-z]*) ]] && op=${BASH_REMATCH[1]}
	if [ "$name" != "$measured" ]; then
		raw=$out/coll-$name.raw measured=$name was_busy=''
		: >"$raw"
		! is_busy || was_busy=yes
		stolen_before=$(stolen)
	fi
	for ((round = 1; round <= rounds; round++)); do
		for mpi in $mpis; do
			for place in $places; do
				# MPICH spins, and where processes share cores a call takes tens of milliseconds.
				case $mpi-$place in
				mpich-host) patience=4 ;;
				mpich-*) patience=2 ;;
				*) patience=1 ;;
				esac
				limit=$((spare + patience * seconds))
				for way in $(has_library "$mpi" && echo "$list" || echo own); do
					own=(--own)
					[ "$way" != own ] || own=()
					start "$way" "$op" "$place" "$mpi" "$n" "$PERF.$mpi" arrival "${own[@]}" "$@" \
						-T $((patience * seconds)) -w 2 --json || continue
					rows "${label:-$place} $mpi"$'\t'"$n" "$round" "$way" >>"$raw"
				done
			done
		done
	done
	has_library "$mpi" || failed=1 # the loop asks in a subshell
}
measured=''

# fft_once PLACE MPI RANKS CLASS WAY
fft_once() {
	local program=$BUILD/tests/coll/$2/fft way=$5 own=(--own) by seconds key="$1 $2 $3 $4"
	[ -x "$program" ] || { say "no $program; build it first" && failed=1 && return; }
	has_library "$2" || { way=own own=(); }
	start $way alltoall "$1" "$2" "$3" "$program" -c "$4" -r "$(pick 15 1)" "${own[@]}" --csv || return
	while IFS=, read -r by seconds _; do
		case $by in
		MPI_*) pair "$key" $way "$seconds" ;;
		PMPI_*) pair "$key" "own beside $way" "$seconds" && record "$key" own "$seconds" ;;
		esac
	done <"$tmp/out"
}

# pair KEY WAY VALUE: to be compared; ways are also in the table.
pair() {
	[[ $2 == own* ]] || record "$@"
	printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$round" "$3" >>"$rec.pairs"
}

# ---- tables ----

# from_raw PART WHAT "FIELD ..." all|own TITLE [MIF] [LATE]: a table of the completion, the time beyond
# the bound or the total; the fields (ranks, op, late, mif) are in the keys. own: columns are MIFs.
from_raw() {
	begin "$1" usec "$5"
	busy=$was_busy stolen_since=$stolen_before
	: >"$rec.pairs"
	awk -F'\t' -v what="$2" -v fields=" $3 " -v which="$4" -v mif="${6:-}" -v late="${7:-}" -v pairs="$rec.pairs" '
	(mif == "" || $5 == mif) && (late == "" || $6 == late) && (which == "all" || $8 == "own") {
		key = $1
		if (fields ~ / ranks /) key = key " " $2 " processes"
		if (fields ~ / op /) key = key " " $3
		if (fields ~ / late /) key = key " " $6 " % late"
		if (fields ~ / mif / && which == "all") key = key " MIF " $5
		key = key " " $4
		value = what == "completion" ? $10 : what == "beyond" ? $12 : $13
		way = which == "own" ? "MIF " $5 : $8 == "own" ? "own" : $7
		OFS = "\t"
		print key, way, $9, value
		if (what == "completion") print key, way " bound", $9, $11
		if (which == "all") print key, $8 == "own" ? "own beside " $7 : $7, $9, value >>pairs
		if (what == "beyond" && $8 == "mpi" && $14 ~ /[0-9]/) print key, "at least " $7, $9, $14 >>pairs
	}' "$raw" >"$rec"
}

# explain TEXT: what the targets below are.
explain() { echo "# wanted: $1"; }

# beside KEY WAY LIMIT: a target, against the MPI's own in the same processes.
beside() { rec=$rec.pairs target "$1" "$2" "<=" "$3" "own beside $2"; }

# never_slower: the way that is chosen automatically, by nothing but noise: by no more than a tenth, or so
# that the calls, compared one by one, do not show a difference.
never_slower() {
	local key
	grep -q $'\tauto\t' "$rec.pairs" || return 0
	explain "auto never slower than the MPI's own in the same processes, but for noise"
	while read -r key; do
		chance='at least auto' beside "$key" auto $NOISE
	done < <(awk -F'\t' '$2 == "auto" && !seen[$1]++ { print $1 }' "$rec.pairs")
}

# wheres: places and MPIs that there are results of, one per line; the rest of a key is a size.
wheres() { cut -f 1 "$rec" | sed 's/ [^ ]*$//' | awk '!seen[$0]++'; }

# totals NAME: until the last rank is through, with all MIFs: where early ones take cores from late ones,
# they pay here.
totals() {
	from_raw "$1-total" total "$([ "$1" = late ] && echo late || echo mif)" all \
		"from the beginning of the computation to the end of the last rank"
	table
	write_json
	note
}

# ---- pictures ----

# lines: by size, a line for each column; a picture for each place and MPI.
lines() {
	local where way file list
	while read -r where; do
		list=''
		while read -r way; do
			file="$out/coll-$part.${where// /-}.${way// /-}.dat"
			awk "$stats"'index($1, where " ") == 1 && $2 == way { take() }
				END { for (k = 1; k <= n_keys; k++) { size = keys[k]; sub(/.* /, "", size)
					print size, median(keys[k], way) } }' where="$where" way="$way" "$rec" >"$file"
			list+="${list:+, }'$file' with linespoints title '$way'"
		done < <(cut -f 2 "$rec" | awk '!seen[$0]++')
		plot "coll-$part-${where// /-}" "$title: $where" "microseconds" "set logscale xy
set logscale x 2
set format x '%.0b%B'
set xlabel 'message size [bytes]'
set key outside right
plot $list"
	done < <(wheres)
}
