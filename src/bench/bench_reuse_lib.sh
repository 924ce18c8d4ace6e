# Runs and tables of bench_reuse.sh. To be sourced by it, behind bench_table.sh.
# shellcheck shell=bash

# ---- where ----

# The lab is made when it is first needed: two hosts for a pair, four for all, at one switch.
lab_up() {
	[ -z "$lab" ] || return 0
	lab=ru$$
	"$WEFT" lab up "$lab" --pgft "1;4;1;1" --rate unlimited --mtu 9000 >/dev/null && return
	lab=''
	say "without a lab there is no measurement between hosts"
	return 1
}

# ---- settings ----

# setting_vars SETTING: what it means, in $vars.
setting_vars() {
	vars=()
	case ${1%-[pc]*} in
	off) vars=(FI_WEFT_REUSE=no) ;;
	on) vars=(FI_WEFT_REUSE=auto) ;;
	always) vars=(FI_WEFT_REUSE=yes) ;;
	*) say "there is no setting '$1'" && return 1 ;;
	esac
	case $1 in
	*-pieces) vars+=(FI_WEFT_LOCAL=pieces) ;;
	*-cached) vars+=(FI_WEFT_LOCAL=pieces FI_WEFT_CACHE=on) ;;
	*-*) say "there is no setting '$1'" && return 1 ;;
	esac
	return 0
}

# shuffle: $settings in $order, another one each time, the same in each run of the script.
shuffle() {
	local i k s
	read -r -a order <<<"$settings"
	for ((i = ${#order[@]} - 1; i > 0; i--)); do
		k=$((RANDOM % (i + 1))) s=${order[i]}
		order[i]=${order[k]} order[k]=$s
	done
}

# ---- running ----

exports=() # variables of one run
pinned=yes # each rank on a core of its own: which they get makes a larger difference

# run SETTING PLACE RANKS PROGRAM...: its output in $tmp/out. What can not be measured is said, and
# is missing from the table.
run() {
	local vars where=() pin=()
	setting_vars "$1"
	if [ "$2" = rd ]; then
		lab_up || { failed=1 && return 1; }
		where=(--lab "$lab")
	fi
	# shellcheck disable=SC2016
	[ $pinned = no ] || pin=(sh -c 'exec taskset -c $((OMPI_COMM_WORLD_RANK % $(nproc))) "$0" "$@"')
	say "$key, $1, round $round"
	bounded env "${vars[@]}" "${exports[@]}" FI_WEFT_STATS=yes "$WEFT" run "${where[@]}" -n "$3" \
		"${pin[@]}" "${@:4}" >"$tmp/out" 2>"$tmp/err" || {
		say "$key: $1: failed ($?): $(grep -v '^weft\[\|^-*$' "$tmp/err" | head -n 5)"
		failed=1
		return 1
	}
	mv "$tmp/err" "$tmp/stats.$part.$2.$1"
	grep -q '^ {' "$tmp/out" && return
	say "$key: $1: the time was over before there was a result"
	failed=1
	return 1
}

# ---- what is gained ----

# overhead_us VARIABLE...: of finding a buffer and its registration on a device that needs memory
# registered. It does not depend on the size: the median of all sizes. 0 if nobody says.
overhead_us() {
	local us
	us=$(timeout 30 env FI_WEFT_LOCAL=pieces "$@" "$WEFT" info --json 2>/dev/null |
		grep -o '"overhead_ns": *[0-9.]*' | sed 's/.*: *//' | sort -g | awk '{ v[NR] = $1 }
			END { if (NR) printf "%.6f", v[int((NR + 1) / 2)] / 1000 }')
	echo "${us:-0}"
}

# gains [near|slower]: a row for each key and each setting beside the off of its kind, and targets:
# never slower, and with "near" as much as can be.
gains() {
	[ -s "$rec" ] || { say "$part: nothing was measured" && failed=1; }
	: >"$out/reuse-$part.dat"
	echo "# $text"
	echo "# up to $(cut -f 3 "$rec" | sort -n | tail -n 1) rounds, settings in turn; $unit"
	awk "$stats"'
	function limit_line(what, value, limit, n, q1, q3,   pass) {
		pass = n && value <= limit
		printf "{\"what\": \"%s\", \"value\": %s, \"relation\": \"<=\", \"limit\": %s, \"pass\": %s",
			what, n ? value : "null", limit, pass ? "true" : "false" >>targets
		if (n && q1 != "") printf ", \"q1\": %s, \"q3\": %s", q1, q3 >>targets
		print "}" >>targets
		return pass ? "PASS" : "MISS"
	}
	function overhead(on) { return on ~ /pieces/ ? pieces : on ~ /cached/ ? cached : 0 }
	# Of one key, both settings: v[] are the gains of the rounds, in percent.
	function row(key, on, off,   v, r, n, m, best, verdict) {
		for (r = 1; r <= rounds; r++)
			if ((key, on " / " off, r) in at)
				v[++n] = 100 * (1 - at[key, on " / " off, r])
			else if ((key, on, r) in at && at[key, off, r] > 0)
				v[++n] = 100 * (1 - at[key, on, r] / at[key, off, r])
		sort(v, n)
		printf " %-*s %-16s", width, key, on
		if (!n) {
			print "  not measured"
		} else {
			m = quantile(v, n, 0.5)
			printf " %9.3f %9.3f %7.2f %% [%6.2f .. %6.2f]", median(key, off), median(key, on), m,
				quantile(v, n, 0.25), quantile(v, n, 0.75)
		}
		if (aim != "" && n >= 0)
			verdict = "  slower <= " slower " %: " limit_line(key ": " on " / " off, n ? 1 - m / 100 : 0,
				1 + slower / 100, n, n ? 1 - quantile(v, n, 0.75) / 100 : "",
				n ? 1 - quantile(v, n, 0.25) / 100 : "")
		if (n && (key, "copy") in all) {
			best = 100 * (median(key, "copy") - overhead(on)) / median(key, off)
			if (best < 0) best = 0 # then nobody does it
			printf " %8.4f %7.2f %%", median(key, "copy"), best
			if (aim == "near")
				verdict = verdict "  away <= " away ": " limit_line(key ": " on \
					", points from theoretical", m > best ? m - best : best - m, away, n)
		}
		if (n) print verdict
		if (n)
			printf "%s\t%s\t%s\t%s\t%s\t%s\n", key, on, m, quantile(v, n, 0.25),
				quantile(v, n, 0.75), best == "" ? "?" : best >>gains
	}
	{ take(); at[$1, $2, $3] = $4; if ($3 > rounds) rounds = $3 }
	END {
		width = 8
		for (k = 1; k <= n_keys; k++) if (length(keys[k]) > width) width = length(keys[k])
		printf "#%-*s %-16s %9s %9s %30s %9s %10s\n", width, "", "", "off", "on",
			"improvement [quartiles]", "copy", "theoretical"
		n = split(settings, list, " ")
		for (i = 1; i <= n; i++) if (list[i] !~ /^off/) {
			off = list[i]
			sub(/^[a-z]*/, "off", off)
			if (index(" " settings " ", " " off " "))
				for (k = 1; k <= n_keys; k++) row(keys[k], list[i], off)
		}
	}' settings="$settings" aim="${1:-}" slower=$SLOWER away=$AWAY \
		pieces="$(overhead_us FI_WEFT_CACHE=auto)" cached="$(overhead_us FI_WEFT_CACHE=on)" \
		targets="$tmp/targets" gains="$out/reuse-$part.dat" "$rec"
	facts=$(gains_json)
}

gains_json() {
	awk -F'\t' 'BEGIN { printf "\"gains\": [" }
		{ printf "%s\n {\"key\": \"%s\", \"setting\": \"%s\", \"pct\": %s, \"q1\": %s, \"q3\": %s, " \
			"\"theoretical_pct\": %s}", comma, $1, $2, $3, $4, $5, $6 == "?" ? "null" : $6; comma = "," }
		END { printf "],\n" }' "$out/reuse-$part.dat"
}

# no_reuse_ratios: how much longer a message takes whose buffer is new than one whose buffer is not
# (the lower part of figure 3.12).
no_reuse_ratios() {
	awk "$stats"'{ take() }
	END {
		n_policies = split(settings, policies, " ")
		printf "# latency of 0 %% reuse by that of 100 %%\n#%-15s", ""
		for (p = 1; p <= n_policies; p++) printf " %11s", policies[p]
		print ""
		for (k = 1; k <= n_keys; k++) {
			if (keys[k] !~ / 0% /) continue
			full = keys[k]
			sub(/ 0% /, " 100% ", full)
			name = keys[k]
			sub(/ 0%/, "", name)
			printf " %-15s", name
			for (p = 1; p <= n_policies; p++) {
				m = median(full, policies[p])
				if (m > 0) printf " %11.3f", median(keys[k], policies[p]) / m
				else printf " %11s", "-"
			}
			print ""
		}
	}' settings="$settings" "$rec"
}

# adapted: whether tables of buffers have stopped growing, where there were any: in the last runs.
adapted() {
	local place s times
	for s in $settings; do
		case $s in on*) ;; *) continue ;; esac
		for place in $places; do
			times=$(sed -n 's/.*(stopped \([0-9]*\) times.*/\1/p' "$tmp/stats.$part.$place.$s" 2>/dev/null |
				sort -n | tail -n 1)
			[ -z "$times" ] || judge "$place, $s: times that the table of buffers stopped" "$times" ">=" 1
		done
	done
}

# statistics: what the provider has said of buffers, in the last run of each setting and place.
statistics() {
	local file lines
	for file in "$tmp/stats.$part".*; do
		lines=$(grep -i 'reuse\|frequent' "$file" 2>/dev/null | head -n 4)
		[ -z "$lines" ] || printf '# %s:\n%s\n' "${file#"$tmp/stats.$part."}" "${lines//weft\[/# weft[}"
	done
	return 0
}

# ---- pictures ----

# plot_gains: improvement by size, a line for each place, way and setting; dashed what can be.
plot_gains() {
	local lines='' line file=$out/reuse-$part.dat
	[ -s "$file" ] || return 0
	while IFS=$'\t' read -r key on; do
		line="$out/reuse-$part.${key// /-}.$on.dat"
		awk -F'\t' -v k="$key " -v on="$on" '$2 == on && index($1, k) == 1 {
			size = $1; sub(/.* /, "", size); print size, $3, $4, $5, $6 }' "$file" >"$line"
		lines+="${lines:+, }'$line' using 1:2:3:4 with yerrorlines title '$key, $on'"
		! awk '$5 != "?" { any = 1 } END { exit !any }' "$line" ||
			lines+=", '$line' using 1:5 with lines dashtype 2 title '$key, $on: theoretical'"
	done < <(awk -F'\t' '{ k = $1; sub(/ [^ ]*$/, "", k); s = k "\t" $2; if (!seen[s]++) print s }' "$file")
	plot "reuse-$part" "$title: improvement" "percent" "set logscale x 2
set format x '%.0b%B'
set xlabel 'message size [bytes]'
set key outside right
set datafile missing '?'
plot $lines"
}

# plot_patterns: latency by size, a line for each percentage, of all places, with the last setting.
plot_patterns() {
	local lines='' line key s=${settings##* }
	while read -r key; do
		line="$out/reuse-$part.${key// /-}.dat"
		awk "$stats"'index($1, key " ") == 1 && $2 == s { take() }
			END { for (k = 1; k <= n_keys; k++) { size = keys[k]; sub(/.* /, "", size)
				print size, median(keys[k], s) } }' key="$key" s="$s" "$rec" >"$line"
		lines+="${lines:+, }'$line' with linespoints title '$key'"
	done < <(cut -f 1 "$rec" | sed 's/ [^ ]*$//' | awk '!seen[$0]++')
	[ -z "$lines" ] || plot "reuse-$part" "buffer reuse, $s" "microseconds" "set logscale xy
set logscale x 2
set format x '%.0b%B'
set xlabel 'message size [bytes]'
set key outside right
plot $lines"
}

# plot_columns XLABEL BASE TITLE: a line for each column, by key.
plot_columns() {
	local name lines=''
	while read -r name; do
		awk "$stats"'$2 == name { take() } END { for (k = 1; k <= n_keys; k++)
			print keys[k], median(keys[k], name) }' name="$name" "$rec" >"$out/reuse-$part.$name.dat"
		lines+="${lines:+, }'$out/reuse-$part.$name.dat' with linespoints title '$name'"
	done < <(cut -f 2 "$rec" | grep -v '^known$' | awk '!seen[$0]++')
	[ -z "$lines" ] || plot "reuse-$part" "$3" "$unit" "set logscale xy
set logscale x $2
set xlabel '$1'
set key outside right
plot $lines"
}
