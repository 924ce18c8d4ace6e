#!/bin/bash
# weft info: text and JSON agree with the machine and with the tunables' tables.
set -u
. "$(dirname "$0")/lib.sh"
unset WEFT_LOG WEFT_ADDR WEFT_NETDEV WEFT_DEVICE

json() { jq -r "$1" "$tmp/json"; }
info_json() {
	run "$@" --json
	cp "$tmp/out" "$tmp/json"
	check_true jq -e . "$tmp/json" >/dev/null
}

run "$WEFT" info
check_code 0
for part in Devices Libraries Machine Programs Tunables Missing; do
	check_has "$out" "$part"
done
check_has "$out" "weft0"
check_has "$out" "uses n > R/(C-V)"

info_json "$WEFT" info
check_code 0
check_eq "$(json .version)" "$VERSION"
check_eq "$(json '.devices[0].name')" weft0
check_eq "$(json '.devices[0].kind')" software
check_eq "$(json '.devices[0].state')" active
check_true test "$(json '.devices[0].gids | length')" -ge 1
check_eq "$(json '.devices[0].gids[0] | .gid == "::ffff:" + .address')" true
check_eq "$(json '.tunables | map(.name) | index("WEFT_LOG") != null')" true
check_eq "$(json '[.tunables[].name] | (unique | length) == length')" true
check_eq "$(json '[.tunables[] | select(.help == "" or .type == "")] | length')" 0
check_eq "$(json '[.tunables[] | select(.error != null)] | length')" 0
check_eq "$(json '.tunables[] | select(.name == "WEFT_LOG") | [.value, .default, .set] | tostring')" \
	'["warn","warn",false]'

# What copies and registrations cost, and what follows from that; as the tunables want it.
worth='[.devices[0].costs.sizes[] | select(.uses != null) |
	select(.uses > .register_ns / (.copy_ns - .overhead_ns) | not)] | length'
check_eq "$(json '.devices[0].costs.needed')" false
check_eq "$(json '.devices[0].costs.sizes | map(.bytes) | [.[0], .[-1], length] | tostring')" '[64,65536,11]'
check_eq "$(json '[.devices[0].costs.sizes[] | select(.copy_ns <= 0)] | length')" 0
check_eq "$(json "$worth")" 0
info_json env FI_WEFT_LOCAL=pieces FI_WEFT_CACHE=on "$WEFT" info
check_eq "$(json '.devices[0].costs | [.needed, .kept] | tostring')" '[true,true]'
check_eq "$(json '[.devices[0].costs.sizes[] | select(.register_ns <= 0)] | length')" 0
check_eq "$(json "$worth")" 0
info_json env FI_WEFT_LOCAL=pieces FI_WEFT_CACHE=off "$WEFT" info
check_eq "$(json '.devices[0].costs | [.needed, .kept] | tostring')" '[true,false]'
check_eq "$(json '[.devices[0].costs.sizes[].register_ns] | add')" 0

# One address only: the device shows it, and its LID is the low 16 bits.
info_json env WEFT_ADDR=127.0.0.1 "$WEFT" info
check_code 0
check_eq "$(json '.devices[0].gids | map(.address) | tostring')" '["127.0.0.1"]'
check_eq "$(json '.devices[0].gids[0].netdev')" lo
check_eq "$(json '.devices[0].lid')" 1
check_eq "$(json '.tunables[] | select(.name == "WEFT_ADDR") | [.value, .set] | tostring')" \
	'["127.0.0.1",true]'

# The device switched off.
info_json env WEFT_DEVICE=off "$WEFT" info
check_code 1
check_eq "$(json '[.devices[] | select(.kind == "software")] | length')" 0
check_eq "$(json '.missing[0].what')" "the software RNIC"

# A bad value is shown where it stands, and the default beside it.
info_json env WEFT_LOG=loud "$WEFT" info
check_eq "$(json '.tunables[] | select(.name == "WEFT_LOG") | [.value, .set] | tostring')" \
	'["warn",true]'
check_has "$(json '.tunables[] | select(.name == "WEFT_LOG") | .error')" \
	"WEFT_LOG=loud is not understood"

# So is one whose mistake is deeper than its type; and no seed is drawn only to look.
for bad in WEFT_FAULT=lost=5% WEFT_RD_MTU=100; do
	info_json env "$bad" "$WEFT" info
	check_has "$(json ".tunables[] | select(.name == \"${bad%%=*}\") | .error")" "$bad: "
done
run env WEFT_FAULT=loss=5% "$WEFT" info
check_eq "$err" ""
check_lacks "$out" "NOT USED"

# What is not installed is missing, with the way to get it.
mkdir "$tmp/path"
ln -s "$(command -v jq)" "$tmp/path/jq"
info_json env PATH="$tmp/path" "$WEFT" info
check_eq "$(json '.missing[] | select(.what == "tshark") | .get')" "apt-get install tshark"

# So are collectives above an MPI that was not there when Weft was built.
mkdir -p "$tmp/tree/bin" "$tmp/tree/lib"
cp "$WEFT" "$tmp/tree/bin"
cp "${WEFT%/bin/*}"/lib/lib{ibverbs.so.1,weft-probe.so} "$tmp/tree/lib"
info_json "$tmp/tree/bin/weft" info
check_eq "$(json '.missing[] | select(.what == "libweft-coll.openmpi.so") | .get')" \
	"apt-get install libopenmpi-dev, then make build (or install)"
check_eq "$(json '.missing[] | select(.what == "libweft-coll.mpich.so") | .get')" \
	"apt-get install libmpich-dev, then make build (or install)"
check_eq "$(json '.missing[] | select(.what == "libweft-fi.so") | .get')" "make build, or make install"

# The manual pages hold every tunable, with its default.
for prefix in WEFT_ FI_WEFT_; do
	page=$MAN_TUNABLES
	[ $prefix = WEFT_ ] || page=${MAN_TUNABLES%/*}/fi_weft.7
	run "$WEFT" info --man-tunables $prefix
	check_code 0
	for name in $(json ".tunables[].name | select(startswith(\"$prefix\"))"); do
		check_has "$out" ".B $name"
		check_has "$(cat "$page")" ".B $name"
	done
done
check_eq "$(json '[.tunables[].name | select(startswith("FI_WEFT_"))] | length > 5')" true
check_eq "$(json '.mpis | map(has("name") and has("how")) | all')" true

finish
