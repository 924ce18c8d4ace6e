#!/bin/bash
# bench_coll.sh: refuses what it does not understand, measures a little, and its tables, ratios and
# targets are those of what was measured. Which is fast is not asked here.
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || exit 77
export WEFT_BUILD=$BUILD
script=$SOURCE/src/bench/bench_coll.sh
[ -x "$BUILD/bin/weft-mpi-perf.openmpi" ] || exit 77
unset WEFT_COLL

"$script" -h >"$tmp/help" || fail "-h"
for word in arrival scale late made fft others allreduce "Exit status"; do
	grep -q -- "$word" "$tmp/help" || fail "-h does not mention $word"
done
refuses "there is no part 'frobnicate'" late frobnicate
refuses "not a number of rounds: '0'" -r 0 late
refuses "there is no MPI 'carrier'" -m carrier late
refuses "there is no place 'moon'" -l moon late
refuses "there is no network 'string'" -n string late
refuses Usage: -Z

# quick PART...: the exit status is that of a build with or without the library.
if [ -e "$BUILD/lib/libweft-coll.openmpi.so" ]; then
	expected=0 columns='["auto", "auto bound", "own", "own bound"]'
else
	expected=1 columns='["own", "own bound"]'
fi
quick() {
	timeout 170 "$script" -q -r 1 -m openmpi -l host -o "$tmp" "$@" >"$tmp/table" 2>"$tmp/err"
	[ $? -eq $expected ] || fail "$*"
	[ $expected -eq 0 ] || grep -q "no libweft-coll for openmpi" "$tmp/err" || fail "nothing is said of the library"
}

quick arrival fft
holds '[.results[].key] | unique == ["host openmpi 256", "host openmpi 4", "host openmpi 8192"]' \
	"$tmp/coll-arrival-own.json"
holds "([.results[].variant] | unique) == $columns and .unit == \"usec\"" "$tmp/coll-arrival-32.json"
# What is beyond the bound is what is left of the whole, as far as medians can be subtracted.
holds 'all(.results[]; .median > 0)' "$tmp/coll-beyond-32.json"
holds '.results[] | select(.variant == "own") | .median > 0' "$tmp/coll-fft.json"
if [ $expected -eq 0 ]; then
	holds '[.targets[] | select(.limit < 1)] | length == 3' "$tmp/coll-beyond-32.json"
	holds '[.targets[] | select(.limit > 1)] | length == 3' "$tmp/coll-beyond-32.json"
	grep -Eq 'host openmpi 4: auto / own beside auto .* <= 0.286 (PASS|MISS)$' "$tmp/table" ||
		fail "no target in the table"
	# The ratio is that of the two that were measured in the same processes.
	holds '.results as $r | (.targets[] | select(.what | startswith("host openmpi 4:")) | .value) as $v |
		def of(w): $r[] | select(.key == "host openmpi 4" and .variant == w) | .median;
		(of("auto") / of("own") - $v | fabs) < 0.01 * $v' "$tmp/coll-beyond-32.json"
fi
# judged RATIO LOW WANTED: above the limit it is missed, unless its lower end, if there is one, is not above 1.
judged() {
	printf 'k\tauto\t1\t%s\nk\town beside auto\t1\t1\n' "$1" >"$tmp/judged"
	[ -z "$2" ] || printf 'k\tat least auto\t1\t%s\n' "$2" >>"$tmp/judged"
	(
		# shellcheck source=src/bench/bench_table.sh
		. "$SOURCE/src/bench/bench_table.sh"
		# shellcheck disable=SC2034
		rec=$tmp/judged chance='at least auto'
		target k auto '<=' 1.1 'own beside auto'
	) >"$tmp/verdict"
	grep -Eq "$3\$" "$tmp/verdict" || fail "$1 from $2 on: $(cat "$tmp/verdict")"
	checks=$((checks + 1))
}
judged 1.05 1.02 '1.1 PASS'
judged 1.05 '' '1.1 PASS'
judged 1.3 1.02 '1.1 MISS'
judged 1.3 '' '1.1 MISS'
judged 1.3 0.98 'may be by chance.*1.1 PASS'
"$PERF" report "$tmp/coll-beyond-32.json" >"$tmp/report" 2>&1 || fail "weft-perf does not understand it"
echo "ok, $checks checks"
