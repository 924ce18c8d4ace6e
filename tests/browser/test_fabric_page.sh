#!/bin/bash
# The page of `weft fabric draw` in a real browser: what it shows is what `weft fabric hsd` says,
# and buttons, keys, clicks and the wheel do what they should.
# shellcheck source=tests/browser/lib.sh
. "$(dirname "$0")/lib.sh"

tree='2;4,4;1,2;1,2'
job=(--pgft "$tree" --cps shift --order random:7)
"$WEFT" fabric draw "${job[@]}" -o "$tmp/page.html" || fail 'cannot draw'
"$WEFT" fabric hsd "${job[@]}" --per-stage --hottest 1 --json >"$tmp/hsd.json"
worst() { jq ".per_stage[$1].max" "$tmp/hsd.json"; }

open_page "$tmp/page.html"
check_eq "$(js 'document.title')" "$tree, dmodk, shift"
check_eq "$(js "document.querySelectorAll('line').length")" 32
check_eq "$(js "document.querySelectorAll('circle').length")" 16
check_has "$(text '#name')" '1 of 15'
check_has "$(text '#sum')" "worst link $(worst 0),"

# Every stage has the degrees that hsd computes.
for ((s = 1; s < 15; s++)); do
	click '#forth'
	check_has "$(text '#name')" "$((s + 1)) of 15"
	check_has "$(text '#sum')" "worst link $(worst $s),"
done
click '#forth' # there is no more
check_has "$(text '#name')" '15 of 15'
click '#back'
check_has "$(text '#name')" '14 of 15'
wd actions '{"actions":[{"type":"key","id":"k","actions":[{"type":"keyDown","value":"\uE012"},
	{"type":"keyUp","value":"\uE012"}]}]}' >/dev/null
check_has "$(text '#name')" '13 of 15'

# The hottest link of all, and its flows.
hot=$(jq '.hottest[0].stage' "$tmp/hsd.json")
degree=$(jq '.hottest[0].degree' "$tmp/hsd.json")
open_page "$tmp/page.html#stage=$hot"
wd refresh '{}' >/dev/null
check_eq "$(js "document.querySelector('#hot tr td').textContent")" "$degree"
click '#hot tr'
check_has "$(text '#link h2')" "degree $degree"
check_eq "$(js "document.querySelectorAll('#link tr').length")" "$degree"
for ((i = 0; i < degree; i++)); do
	check_has "$(text '#link table')" "$(jq -r ".hottest[0].flows[$i] |
		\"rank \\(.from_rank) (\\(.from))\"" "$tmp/hsd.json")"
done
check_eq "$(js "document.querySelectorAll('line.on').length")" 1
click '#link tr'
check_true test "$(js "document.querySelectorAll('line.on').length")" -gt 1
check_has "$(js 'location.hash')" "stage=$hot&link="

# Zoom: the wheel over the picture, the buttons, and back.
view="document.querySelector('svg').getAttribute('viewBox')"
all=$(js "$view")
wd actions '{"actions":[{"type":"wheel","id":"w","actions":[{"type":"scroll","x":300,"y":300,
	"deltaX":0,"deltaY":-100,"origin":"viewport"}]}]}' >/dev/null
check_true test "$(js "$view")" != "$all"
click '#fit'
check_eq "$(js "$view")" "$all"
click '#in'
check_true test "$(js "$view")" != "$all"

# Names come from files: nothing in them is markup.
"$WEFT" fabric convert --pgft '1;2;1;1' --to ibnetdiscover |
	sed 's|"h0"|"</script><b>x</b>"|' >"$tmp/net"
"$WEFT" fabric draw --topology "$tmp/net" --cps ring -o "$tmp/evil.html"
open_page "$tmp/evil.html"
check_eq "$(js "document.querySelectorAll('b').length")" 0
check_eq "$(js "document.querySelectorAll('circle').length")" 2

# Nothing was complained about, and nothing is fetched.
check_eq "$(complaints)" ''
check_eq "$(fetched)" ''
check_eq "$(grep -c 'https\?://' "$tmp/page.html")" \
	"$(grep -c 'http://www.w3.org/2000/svg' "$tmp/page.html")"
finish
