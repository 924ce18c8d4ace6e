#!/bin/sh
# libweftdv exports what <weft/weftdv.h> declares and nothing else, and brings nothing into a
# program but itself.
set -eu
: "${DV:?libweftdv}" "${HEADER:?weftdv.h}" "${LIB:?the replacement}" "${READELF:=readelf}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

LC_ALL=C "$READELF" -W --dyn-syms "$DV" |
	awk '$1 ~ /^[0-9]+:$/ && $7 != "UND" && $7 != "ABS" { print $4, $8 }' | sort >"$tmp/have"
sed -n 's/^[a-z].*[ *]\(weftdv_[a-z_]*\)(.*/FUNC \1@@WEFTDV_1/p' "$HEADER" | sort >"$tmp/want"
[ "$(wc -l <"$tmp/want")" -ge 4 ] || { echo "no functions found in $HEADER"; exit 1; }
diff -u "$tmp/want" "$tmp/have"

dynamic=$(LC_ALL=C "$READELF" -W -d "$DV")
case $dynamic in
*"soname: [libweftdv.so.1]"*) ;;
*) echo "wrong soname"; exit 1 ;;
esac
extra=$(echo "$dynamic" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
	grep -v -e '^libc\.so' -e '^ld-linux' -e '^libdl' -e '^lib[a-z]*san\.so' -e '^libgcc_s' \
		-e '^libm\.so' || true)
[ -z "$extra" ] || { echo "needs more than libc: $extra"; exit 1; }
# Not one of verbs either, neither strong nor weak.
if LC_ALL=C "$READELF" -W --dyn-syms "$DV" | grep -w UND | grep -e ibv_ -e weft; then
	echo "undefined symbols of other libraries"
	exit 1
fi
LC_ALL=C "$READELF" -W --dyn-syms "$LIB" | grep -q ' weft_dv_ops@@WEFT_VERBS_1$' ||
	{ echo "$LIB has no weft_dv_ops"; exit 1; }
