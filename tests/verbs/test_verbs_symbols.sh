#!/bin/sh
# The replacement exports every symbol@version of the library that it stands in for,
# default marks, kinds and sizes of data included, and nothing else but its own two.
set -eu
: "${LIB:?the replacement}" "${REAL:?the library that it stands in for}" "${READELF:=readelf}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

symbols() {
	LC_ALL=C "$READELF" -W --dyn-syms "$1" |
		awk '$1 ~ /^[0-9]+:$/ && $7 != "UND" && $7 != "ABS" && $5 == "GLOBAL" {
			print $4, $4 == "OBJECT" ? $3 : "-", $8 }' |
		grep -v -e ' weft_verbs_library@@' -e ' weft_dv_ops@@' | sort
}
versions() {
	LC_ALL=C "$READELF" -W -V "$1" | awk '
		/ Rev: .* Name: / { node = $NF; print node }
		/ Parent [0-9]+: / { print node, "inherits", $NF }' |
		grep -v '^WEFT_VERBS_' | sort
}
for what in symbols versions; do
	$what "$REAL" >"$tmp/real"
	$what "$LIB" >"$tmp/ours"
	[ -s "$tmp/real" ] || { echo "no $what in $REAL"; exit 1; }
	diff -u "$tmp/real" "$tmp/ours"
	echo "$what: $(wc -l <"$tmp/real") the same"
done

dynamic=$(LC_ALL=C "$READELF" -W -d "$LIB")
for want in "soname: [libibverbs.so.1]" NODELETE; do
	case $dynamic in
	*"$want"*) ;;
	*) echo "$LIB has no $want"; exit 1 ;;
	esac
done
# Libraries that it brings into every process that it is preloaded into.
extra=$(echo "$dynamic" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
	grep -v -e '^libc\.so' -e '^ld-linux' -e '^libm\.so' -e '^libpthread' -e '^libdl' \
		-e '^lib[a-z]*san\.so' -e '^libgcc_s' || true)
[ -z "$extra" ] || { echo "needs more than libc: $extra"; exit 1; }
