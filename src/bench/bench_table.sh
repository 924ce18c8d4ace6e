# Results, tables and targets of benchmarks that compare policies or settings. To be sourced, behind
# bench_lib.sh.
#
# A result is a line of $rec: what was measured (the key), by which policy, in which round, and the
# number. Tables have a row for each key and a column for each policy, with medians of the rounds; a
# target is asked of the median of the rounds' ratios.
#
# Wants `series`, how its files are named; `varies`, what the columns are, and `facts`, JSON that
# belongs to all results. shellcheck can not see who uses what.
# shellcheck shell=bash disable=SC2034

# ---- results ----

# begin PART UNIT TITLE: the title may have more lines, which a picture has no room for.
begin() {
	part=$1 unit=$2 title=${3%%$'\n'*} text=$3 round='' key=''
	rec=$out/$series-$part.rec
	: >"$rec"
	: >"$tmp/targets"
	say "$part"
	busy=''
	! is_busy || busy=yes
	stolen_since=$(stolen)
}

# record KEY POLICY VALUE
record() { printf '%s\t%s\t%s\t%s\n' "$1" "$2" "${round:-1}" "$3" >>"$rec"; }

# For awk: number(text) and the q-quantile of v[1..n], sorted by insertion.
# shellcheck disable=SC2016
stats='
function sort(v, n,   i, k, x) {
	for (i = 2; i <= n; i++) {
		x = v[i]
		for (k = i - 1; k > 0 && v[k] > x; k--)
			v[k + 1] = v[k]
		v[k + 1] = x
	}
}
function quantile(v, n, q,   at, i) {
	at = 1 + (n - 1) * q
	i = int(at)
	return i < n ? v[i] + (at - i) * (v[i + 1] - v[i]) : v[n]
}
# Keys and policies in the order in which they came; all values of a pair in all[], with spaces.
function take() {
	if (!($1 in seen_key)) { seen_key[$1] = 1; keys[++n_keys] = $1 }
	if (!($2 in seen_policy)) { seen_policy[$2] = 1; policies[++n_policies] = $2 }
	all[$1, $2] = all[$1, $2] " " $4
}
function median(key, policy,   v, n, i) {
	n = split(all[key, policy], v, " ")
	for (i = 1; i <= n; i++) v[i] += 0
	sort(v, n)
	return quantile(v, n, 0.5)
}
BEGIN { FS = "\t" }
'

# table: of all that was recorded.
table() {
	[ -s "$rec" ] || { say "$part: nothing was measured" && failed=1; }
	echo "# $text"
	echo "# medians of up to $(cut -f 3 "$rec" | sort -n | tail -n 1) rounds, ${varies/%y/ie}s in turn; $unit"
	awk "$stats"'{ take() }
	END {
		width = 8
		for (k = 1; k <= n_keys; k++) if (length(keys[k]) > width) width = length(keys[k])
		printf "#%-*s", width, ""
		for (p = 1; p <= n_policies; p++) {
			column[p] = length(policies[p]) > 10 ? length(policies[p]) : 10
			printf " %*s", column[p], policies[p]
		}
		print ""
		for (k = 1; k <= n_keys; k++) {
			printf " %-*s", width, keys[k]
			for (p = 1; p <= n_policies; p++)
				if ((keys[k], policies[p]) in all)
					printf " %*.*f", column[p], digits, median(keys[k], policies[p])
				else
					printf " %*s", column[p], "-"
			print ""
		}
	}' digits="${digits:-2}" "$rec"
}

# target KEY POLICY RELATION LIMIT BASE [BASE-KEY]: the ratio of two policies, round by round, and
# whether it is what is wanted; RELATION is >= or <=. What could not be measured is not met; what
# nobody wanted to compare with is left out. chance: a policy whose values are lower ends of the same
# ratio; where these are not above 1 either, it may be by chance, and nothing is missed.
target() {
	case " ${compared:-$5} " in *" $5 "*) ;; *) return ;; esac
	awk "$stats"'
	$1 == key && $2 == policy { mine[$3] = $4 }
	$1 == base_key && $2 == base { other[$3] = $4 }
	$1 == key && $2 == chance && chance != "" { all[key, chance] = all[key, chance] " " $4 }
	END {
		for (r in mine) if (r in other && other[r] > 0) v[++n] = mine[r] / other[r]
		sort(v, n)
		m = n ? quantile(v, n, 0.5) : 0
		pass = n && (relation == ">=" ? m >= limit : m <= limit)
		least = (key, chance) in all ? median(key, chance) : 2
		by_chance = n && !pass && least <= 1
		pass = pass || by_chance
		what = key ": " policy " / " base (base_key == key ? "" : " (" base_key ")")
		if (n)
			line = sprintf("%.3f [%.3f..%.3f]", m, quantile(v, n, 0.25), quantile(v, n, 0.75))
		else
			line = "not measured"
		if (by_chance)
			line = line sprintf(" (at least %.3f: may be by chance)", least)
		printf "  %-52s %s, %s %s %s\n", what, line, relation, limit, pass ? "PASS" : "MISS"
		printf "{\"what\": \"%s\", \"value\": %s, \"relation\": \"%s\", \"limit\": %s, \"pass\": %s",
			what, n ? m : "null", relation, limit, pass ? "true" : "false" >>targets
		if (n)
			printf ", \"q1\": %s, \"q3\": %s", quantile(v, n, 0.25), quantile(v, n, 0.75) >>targets
		if (by_chance)
			printf ", \"by_chance\": true" >>targets
		print "}" >>targets
	}' key="$1" policy="$2" relation="$3" limit="$4" base="$5" base_key="${6:-$1}" \
		chance="${chance:-}" targets="$tmp/targets" "$rec"
}

# judge WHAT VALUE RELATION LIMIT: a target that is no ratio.
judge() {
	awk -v what="$1" -v value="$2" -v relation="$3" -v limit="$4" -v targets="$tmp/targets" 'BEGIN {
		pass = relation == ">=" ? value >= limit : value <= limit
		printf "  %-52s %s, %s %s %s\n", what, value, relation, limit, pass ? "PASS" : "MISS"
		printf "{\"what\": \"%s\", \"value\": %s, \"relation\": \"%s\", \"limit\": %s, \"pass\": %s}\n",
			what, value, relation, limit, pass ? "true" : "false" >>targets
	}'
}

# write_json: SERIES-PART.json, with what was recorded and the targets, which are counted.
write_json() {
	met=$((met + $(grep -c '"pass": true' "$tmp/targets")))
	missed=$((missed + $(grep -c '"pass": false' "$tmp/targets")))
	awk "$stats"'{ take() }
	END {
		printf "{\"program\": \"%s.sh\", \"command\": \"%s\", \"unit\": \"%s\",\n", bench, part, unit
		printf "%s\"busy\": %s,\n\"results\": [", facts, busy ? "true" : "false"
		for (k = 1; k <= n_keys; k++)
			for (p = 1; p <= n_policies; p++) {
				if (!((keys[k], policies[p]) in all)) continue
				list = substr(all[keys[k], policies[p]], 2)
				gsub(/ /, ", ", list)
				printf "%s\n {\"key\": \"%s\", \"%s\": \"%s\", \"median\": %s, \"rounds\": [%s]}",
					comma, keys[k], varies, policies[p],
					median(keys[k], policies[p]), list
				comma = ","
			}
		printf "],\n\"targets\": ["
		comma = ""
		while ((getline line <targets) > 0) {
			printf "%s\n %s", comma, line
			comma = ","
		}
		print "]}"
	}' bench="$bench" part="$part" unit="$unit" facts="$facts" varies="$varies" busy="$busy" \
		targets="$tmp/targets" "$rec" >"$out/$series-$part.json"
}

# verdicts: how many targets were met, of all parts of this run.
verdicts() {
	[ $((met + missed)) -eq 0 ] || echo "# $met of $((met + missed)) targets were met"
}
met=0 missed=0

# bars [LIMIT]: a picture of the table, one group for each key; LIMIT is drawn as a line.
bars() {
	[ -s "$rec" ] || return 0
	awk "$stats"'{ take() }
	END {
		printf "key"
		for (p = 1; p <= n_policies; p++) printf "\t%s", policies[p]
		print ""
		for (k = 1; k <= n_keys; k++) {
			printf "%s", keys[k]
			for (p = 1; p <= n_policies; p++)
				printf "\t%s", (keys[k], policies[p]) in all ? median(keys[k], policies[p]) : "?"
			print ""
		}
	}' "$rec" >"$out/$series-$part.dat"
	plot "$series-$part" "$title" "$unit" "set datafile separator '\t'
set datafile missing '?'
set style data histogram
set style fill solid 0.7
set xtics rotate by -20
set key outside right
set yrange [0:*]
plot for [i=2:$(head -n 1 "$out/$series-$part.dat" | awk -F'\t' '{ print NF }')] \
'$out/$series-$part.dat' using i:xtic(1) title columnheader(i)${1:+, $1 with lines lc 0 title 'the link'}"
}

# note: what spoils it.
note() {
	local percent
	percent=$(stolen "$stolen_since")
	[ -z "$busy" ] ||
		echo "# NOTE: the machine was busy with other work: neither absolute values nor ratios are reliable"
	[ "${percent:-0}" -lt 5 ] ||
		echo "# NOTE: its host took $percent % of the time that this machine wanted to work: nor are they then"
	echo
}
