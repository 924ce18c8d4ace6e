# Parts of bench_stripe.sh in which something happens while messages are under way: a hot spot that
# comes and goes, another job, links that fail. To be sourced by it.
# shellcheck shell=bash

# background COMMAND...: with a time limit; its number is $!, and stop() ends it.
background() {
	timeout -k 5 "$limit" "$@" </dev/null &
	pids+=($!)
}

# ---- hot spot ----

PAIR=(h0 h12) # on either leaf
CROSS=4       # seconds

# loads LAB SECONDS: lines "FROM TO part-of-the-rate" of all that leaves the first leaf or its hosts.
loads() {
	"$WEFT" lab top "${labs[$1]}" --json -i "$2" -n 1 | tr '{' '\n' |
		sed -n 's/.*"from":"\([^"]*\)","to":"\(s1\.0\|s2[^"]*\)".*"utilisation":\([0-9.e-]*\).*/\1 \2 \3/p' |
		awk '$1 == "s1.0" || $1 ~ /^h/'
}

# cross_hits SOURCE: whether the flow from there is on a spine that the pair uses, by the loads
# before it ($tmp/before) and with it ($tmp/with). A cable that is as hot as the flow and was not:
# that is where it goes. If there is none, it is where the pair has a whole cable. 2: no flow yet.
cross_hits() {
	awk -v source="$1" '
		FNR == NR { before[$2] = $3; next }
		$1 == source && $3 > 0.5 { flows = 1 }
		$1 == "s1.0" && $3 > 0.6 && before[$2] < 0.6 { new = $2 }
		END { exit !flows ? 2 : new != "" && before[new] < 0.04 }
	' <(awk '$1 == "s1.0"' "$tmp/before") "$tmp/with"
}

# Under ecmp nobody knows where a flow will go, so flows are tried until one meets the pair; those
# that do not meet it do not disturb it. With several addresses, an address chooses the way.
# cross_start LAB: $cross_pid, $cross_from.
cross_start() {
	local i source to address look result
	read -ra address < <("$WEFT" lab exec "${labs[$1]}" h13 -- hostname -I)
	loads "$1" 1 >"$tmp/before"
	for ((i = 0; i < 40; i++)); do
		source=h$((1 + i % 11)) to=h$((13 + i % 11))
		[ ${#address[@]} -eq 1 ] || to=${address[i % ${#address[@]}]}
		cross_from=$EPOCHREALTIME
		background "$WEFT" lab cross "${labs[$1]}" --from "$source" --to "$to" \
			--rate "$(awk -v l="$(link_MBps)" 'BEGIN { print l * 8 * 0.8 }')mbit" \
			--for "$CROSS" >"$tmp/cross" 2>&1
		cross_pid=$!
		result=2
		for ((look = 0; look < 3 && result == 2; look++)); do
			loads "$1" 0.2 >"$tmp/with"
			cross_hits "$source"
			result=$?
		done
		[ $result -ne 0 ] || return 0
		kill "$cross_pid" 2>/dev/null
		wait "$cross_pid" 2>/dev/null
	done
	say "$key: none of 40 flows met the pair"
	return 1
}

# first_row: waits until the trace has begun.
first_row() {
	local i
	for ((i = 0; i < 200; i++)); do
		! grep -q '"message": 5,' "$tmp/trace" || return 0
		sleep 0.1
	done
	say "$key: no message within 20 s: $(tail -n 3 "$tmp/err")"
	return 1
}

# trace ROUTING POLICY: rows in $tmp/trace; between $cross_from and $cross_to was the hot spot.
trace() {
	command_of "$2" "$1" 2 "$(hosts pair "${PAIR[@]}")" "$MPI_PERF" trace -m 1M -T 60 --json
	: >"$tmp/trace"
	say "$key, $2${round:+, round $round}"
	background "${cmd[@]}" >"$tmp/trace" 2>"$tmp/err"
	# The weights are with whoever reads the data, which is the second one.
	background "$WEFT" paths --json -i 100ms -n 0 -H "${labs[$1]}-${PAIR[1]}" >"$tmp/paths"
	first_row || return
	sleep 2
	cross_start "$1" || return
	wait "$cross_pid"
	cross_to=$EPOCHREALTIME
	sleep "$(pick 4 3)"
}

# Seconds since the hot spot came, ms of the message, MB/s.
trace_rows() {
	paste <(field seconds_since_1970 "$tmp/trace") <(field us "$tmp/trace") <(field MBps "$tmp/trace") |
		awk -v from="$cross_from" 'NF == 3 { printf "%.4f\t%.3f\t%s\n", $1 - from, $2 / 1000, $3 }'
}

# Seconds since the hot spot came, and each path's part of all weights: of which only ratios matter.
weight_rows() {
	awk -v from="$cross_from" '
		match($0, /"time":[0-9.]+/) {
			at = substr($0, RSTART + 7, RLENGTH - 7) - from
			total = n = 0
			while (match($0, /"weight":[0-9.e+-]+/)) {
				total += weight[++n] = substr($0, RSTART + 9, RLENGTH - 9) + 0
				$0 = substr($0, RSTART + RLENGTH)
			}
			if (!total) next
			printf "%.3f", at
			for (i = 1; i <= n; i++) printf "\t%.4f", weight[i] / total
			print ""
		}' "$tmp/paths"
}

# Of those rows, with the end of the hot spot: "name<TAB>value". A change is over with the first
# message that takes no more than 1.1 times what they take in the end; it begins with the first one
# that differs from those before it by as much.
# shellcheck disable=SC2016
phases='
function keep(phase, ms) { list[phase, ++n[phase]] = ms }
function middle(phase,   i, v) {
	for (i = 1; i <= n[phase]; i++) v[i] = list[phase, i]
	sort(v, n[phase])
	return n[phase] ? quantile(v, n[phase], 0.5) : "nan"
}
function first(phase,   i, s, m) {
	m = n[phase] < 3 ? n[phase] : 3
	for (i = 1; i <= m; i++) s += list[phase, i]
	return m ? s / m : "nan"
}
function reaction(phase, old, new,   i, begun, count) {
	for (i = 1; i <= n[phase]; i++) {
		ms = list[phase, i]
		begun = begun || ms > 1.1 * old || ms < old / 1.1
		if (begun && ms <= 1.1 * new) return count + 0
		count += begun
	}
	return count + 0
}
{ end = $1 + $2 / 1000 } # a message that is under way when things change has a part in both
$1 >= -2 && end < 0 { keep("before", $2) }
end >= 0 && $1 < gone { keep("hot", $2) }
$1 >= 1.5 && end < gone { keep("later", $2) }
end >= gone { keep("cool", $2) }
$1 >= gone + 1.5 { keep("after", $2) }
END {
	printf "before\t%s\nfirst three\t%s\nlater\t%s\n", middle("before"), first("hot"), middle("later")
	printf "gone, first three\t%s\nafter\t%s\n", first("cool"), middle("after")
	printf "messages to adapt\t%s\n", reaction("hot", middle("before"), middle("later"))
	printf "messages to recover\t%s\n", reaction("cool", middle("later"), middle("after"))
}'

hotspot_once() { # ROUTING POLICY
	local what value
	key=$1
	if trace "$@"; then
		stop
		trace_rows >"$out/stripe-hotspot.$1.$2.dat"
		weight_rows >"$out/stripe-weights.$1.$2.dat"
		while IFS=$'\t' read -r what value; do
			[ "$value" != nan ] || say "$key, $2: $what: there was no message"
			[ "$value" = nan ] || record "$1, $what" "$2" "$value"
		done < <(awk "$stats$phases" gone="$(awk -v a="$cross_from" -v b="$cross_to" \
			'BEGIN { print b - a }')" "$out/stripe-hotspot.$1.$2.dat")
	else
		failed=1
	fi
	stop
}

# Weights of all paths in the last round over time.
weights_plot() { # ROUTING POLICY
	local file=$out/stripe-weights.$1.$2.dat
	[ -s "$file" ] || return 0
	plot "stripe-weights-$1-$2" "weights of the paths beside a hot spot, $2, $1" "part of all weights" \
		"set yrange [0:*]
set xrange [-4:$((CROSS + 5))]
set key outside right
set xlabel 'seconds since the hot spot came; it goes after $CROSS'
plot for [i=2:$(awk 'NF > n { n = NF } END { print n }' "$file")] '$file' using 1:i with lines \
title sprintf('path %d', i - 2)"
}

# Bandwidth of each message of the last round over time.
hotspot_plot() { # ROUTING POLICY...
	local p lines='' routing=$1
	shift
	for p; do
		[ ! -s "$out/stripe-hotspot.$routing.$p.dat" ] || lines+="${lines:+, }\
'$out/stripe-hotspot.$routing.$p.dat' using 1:3 with linespoints title '$p'"
	done
	[ -z "$lines" ] || plot "stripe-hotspot-$routing" "$title, $routing" "MB/s of each message" \
		"set yrange [0:*]
set xrange [-4:$((CROSS + 5))]
set key outside right
set xlabel 'seconds since the hot spot came; it goes after $CROSS'
plot $lines, $(link_MBps) with lines lc 0 title 'the link'"
}

part_hotspot() {
	local routing p some routings
	# All policies, round by round, would take long, and show nothing new.
	# Of twelve paths, one needs less than a busy link has left: with four, weights have to move.
	some="$(pick 'single hsam:4 bss:4,2 hsam:12 bss:12,3' single) $ours $(pick pull:4 '')"
	routings=$(pick 'ecmp lmc:4' ecmp)
	begin hotspot ms "1 MB between two hosts, beside a flow of 80 % of a link for $CROSS s: time of a message;
# at $(link_MBps) MB/s, the link, one takes $(awk -v l="$(link_MBps)" 'BEGIN { printf "%.1f", 1.048576e3 / l }') ms"
	for routing in $routings; do
		lab_up "$routing" "$TREE_24" "$routing" || return
	done
	for ((round = 1; round <= rounds; round++)); do
		for routing in $routings; do
			for p in $some; do
				hotspot_once "$routing" "$p"
			done
		done
	done
	digits=1 table
	for routing in $routings; do
		for p in $ours; do
			target "$routing, after" "$p" "<=" 1.1 "$p" "$routing, before"
			target "$routing, later" "$p" "<=" 1 single
		done
		# shellcheck disable=SC2086
		hotspot_plot "$routing" $some
		for p in $some; do
			weights_plot "$routing" "$p"
		done
	done
	write_json
	note
}

# ---- two jobs ----

# job NAME ORDER POLICY: in the background.
job() {
	command_of "$3" ecmp 12 "$2" "$MPI_PERF" drc --steps 6 -m 1M -i 1000 -w 2 -T "$(pick 12 4)" --json
	background "${cmd[@]}" >"$tmp/job.$1" 2>"$tmp/err.$1"
}

# jobs_once KEY POLICY JOB...: at the same time.
jobs_once() {
	local name job_pids=()
	say "$1, $2, round $round"
	for name in "${@:3}"; do
		job "$name" "file:$tmp/$name" "$2"
		job_pids+=($!)
	done
	for name in "${@:3}"; do
		if wait "${job_pids[0]}" && grep -q MBps "$tmp/job.$name"; then
			record "$1: job $name" "$2" "$(field MBps "$tmp/job.$name")"
		else
			say "$1: $2: job $name failed: $(tail -n 3 "$tmp/err.$name")"
			failed=1
		fi
		job_pids=("${job_pids[@]:1}")
	done
	pids=()
}

part_jobs() {
	local p name
	begin jobs MB/s "two jobs, 12 hosts each, every other host, displaced ring of 1 MB, step 6, under ecmp:
# bandwidth per rank; the link: $(link_MBps) MB/s"
	lab_up ecmp "$TREE_24" ecmp || return
	hosts a h{0..22..2} >/dev/null
	hosts b h{1..23..2} >/dev/null
	for ((round = 1; round <= rounds; round++)); do
		for p in single $ours; do
			jobs_once alone "$p" a
			jobs_once alone "$p" b
			jobs_once together "$p" a b
		done
	done
	table
	for p in $ours; do
		for name in a b; do
			target "together: job $name" "$p" ">=" 1 single
		done
	done
	write_json
	bars "$(link_MBps)"
	note
}

# ---- links that fail ----

# fail_links LAB PID: until the process ends, up to a third of the cables between leaves and spines
# at a time is pulled out and put back, by chance; how often in $cuts.
fail_links() {
	local cables=(s1.{0,1}-s2.{0..11}) some
	cuts=0
	while kill -0 "$2" 2>/dev/null && [ $cuts -lt 400 ]; do
		mapfile -t some < <(printf '%s\n' "${cables[@]}" |
			awk -v seed="$((SEED * 1000 + cuts))" 'BEGIN { srand(seed) } { print rand() "\t" $0 }' |
			sort -n | cut -f 2 | head -n $((1 + RANDOM % (${#cables[@]} / 3))))
		"$WEFT" lab fail "${labs[$1]}" "${some[@]}" >/dev/null || break
		sleep "0.$((2 + RANDOM % 7))"
		"$WEFT" lab heal "${labs[$1]}" --all >/dev/null || break
		sleep "0.$((2 + RANDOM % 4))"
		cuts=$((cuts + 1))
	done
}

fail_once() { # POLICY
	local line
	key=fail
	command_of "$1" ecmp 8 "$(hosts halves h{0..3} h{12..15})" "$LINKS" -s "$SEED" \
		-n "$(pick 200 40)" -t "$(pick 40 8)" -T 110
	say "$1, round $round"
	RANDOM=$((SEED + round))
	background "${cmd[@]}" >"$tmp/out" 2>"$tmp/err"
	fail_links ecmp "$!"
	if ! wait "${pids[0]}" || ! line=$(grep '^messages ' "$tmp/out") ||
		! grep -q ' checks, 0 failures' "$tmp/out"; then
		say "$1: links failed, and so did messages: $(grep -h -v '^weft\[' "$tmp/out" "$tmp/err" | head -n 20)"
		failed=1
		return
	fi
	[[ $line =~ messages\ ([0-9]+),\ MB\ ([0-9.]+),\ seconds\ ([0-9.]+),\ longest_ms\ ([0-9.]+) ]]
	record "messages, all right and in order" "$1" "${BASH_REMATCH[1]}"
	record "MB/s per rank" "$1" \
		"$(awk -v b="${BASH_REMATCH[2]}" -v s="${BASH_REMATCH[3]}" 'BEGIN { print b / s / 8 }')"
	record "longest message, ms" "$1" "${BASH_REMATCH[4]}"
	record "links cut, times" "$1" "$cuts"
	record "packets sent again" "$1" "$(sed -n 's/.*, sent again \([0-9]*\);.*/\1/p' "$tmp/err" |
		awk '{ n += $1 } END { print n + 0 }')"
	pids=()
}

part_fail() {
	local p
	LINKS=$BUILD/tests/mpi/openmpi/mpi_links
	[ -x "$LINKS" ] || { say "no $LINKS; build it first" && failed=1 && return; }
	begin fail "each as it says" "links that fail and heal, 8 hosts on two leaves, 1 KB to 2 MB, every byte
# looked at; the link: $(link_MBps) MB/s"
	lab_up ecmp "$TREE_24" ecmp || return
	for ((round = 1; round <= rounds; round++)); do
		for p in $ours; do
			fail_once "$p"
			stop
			"$WEFT" lab heal "${labs[ecmp]}" --all >/dev/null
		done
	done
	digits=1 table
	write_json
	bars
	note
}
