#!/bin/bash
# The whole benchmark in its quick form, on the software RNIC: everything is measured,
# the result is valid JSON with ratios, and nothing is absurd. Speed is not judged here.
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || exit 77
[ -x "$BUILD/bin/weft" ] || exit 77

WEFT_BUILD=$BUILD timeout 170 "$SOURCE/scripts/bench.sh" --quick --no-mpi --out "$tmp/out" \
	>"$tmp/stdout" 2>"$tmp/stderr" || fail "bench.sh --quick: exit status $?"
all=$tmp/out/bench.json
lat='."latency-8".results[]' bw='.bandwidth.results[]'

holds 'keys - ["same-host"] == ["bandwidth", "idle", "latency-8", "peers", "peers-rd"]' "$all"
holds "[$lat, $bw | select(has(\"error\"))] == []" "$all"
holds "[$lat.kind] | contains([\"tcp\", \"rc\", \"udp\", \"ud\", \"uc\", \"rc-write\", \"rc-read\",
	\"rd\", \"rd-write\", \"rd-read\"])" "$all"
holds "[$bw | select(.kind == \"rc\") | .size] == [8, 60000, 65536, 1048576]" "$all"

# Ratios: there, from every round, and within reason. (The kinds that leave progress to
# the device's thread may be slow on a busy machine.)
holds "all($lat | select(.kind == \"rc\" or .kind == \"ud\" or .kind == \"uc\");
	.ratios[0].ratio | .n >= 3 and .median > 0.2 and .median < 5)" "$all"
holds "all($bw | select(.kind == \"rc\" and .size >= 65536);
	.ratios[0].ratio | .n >= 3 and .median > 0.1 and .median < 10)" "$all"
holds "all($lat | select(.kind == \"rd\"); [.ratios[].base] == [\"rc\", \"udp\"] and
	all(.ratios[].ratio; .n >= 3 and .median > 0.2 and .median < 5))" "$all"
holds "all($bw | select(.kind == \"rd\" and .size == 1048576);
	[.ratios[].base] == [\"rc\", \"udp-gso\"] and
	all(.ratios[].ratio; .n >= 3 and .median > 0.05 and .median < 20))" "$all"
holds "all($bw | select(.kind == \"rc\" or .kind == \"rd\"); .lost == 0)" "$all"
holds "all($bw | select(.kind == \"ud\"); .received > .sent / 2)" "$all"

# Every connection is there and costs something, but not the earth.
holds '[.peers.results[].peers] == [0, 1, 2, 4, 8, 16, 32, 64]' "$all"
holds '.peers.results | .[7].used.client.tcp - .[0].used.client.tcp >= 64' "$all"
holds '.peers.results | (.[7].used.client.heap - .[0].used.client.heap) / 64 < 1e6' "$all"

# A peer of an RD queue pair has no socket of its own, and costs less than a connection may.
holds '."peers-rd".type == "rd" and [."peers-rd".results[].peers] == [0, 1, 2, 4, 8, 16, 32, 64]' "$all"
holds '."peers-rd".results | .[7].idle.client.fds - .[0].idle.client.fds < 16' "$all"
holds '."peers-rd".results | (.[7].idle.client.heap - .[0].idle.client.heap) / 64 < 1e5' "$all"

# A thread that wakes up for nothing would show up here many times over.
holds 'all(.idle.results[]; .cpu_ns < 1e6)' "$all"
holds '[."latency-8", .bandwidth, .idle | .targets[]] | length == 11' "$all"
# Sixty-four peers are too few to be judged.
holds '."peers-rd".targets == []' "$all"

# RD and UCX on one host, in pairs.
if command -v ucx_perftest >/dev/null && [ "$(nproc)" -ge 2 ]; then
	holds '[."same-host".results[] | [.test, .size]] ==
		[["lat", 8], ["lat", 8192], ["bw", 65536], ["bw", 1048576]]' "$all"
	holds 'all(."same-host".results[]; (.rd | length) == 5 and (.ucx_posix | length) == 5)' "$all"
	holds 'all(."same-host".targets[]; .q1 <= .value and .value <= .q3 and .limit == 1)' "$all"
	grep -q "^same-host  *latency at 8 bytes: rd / ucx posix " "$tmp/stdout" ||
		fail "no target for the same host"
fi
# No target is listed twice: every row of the report is of one part, and says of which.
holds '[to_entries[] | .key as $part | .value.targets[] | [$part, .what]] |
	length == (unique | length)' "$all"
grep -q "^latency-8  *latency at 8 bytes: rd / udp .*[PM][AI]SS$" "$tmp/stdout" ||
	fail "the report does not say which part"
echo "ok: $checks checks"
