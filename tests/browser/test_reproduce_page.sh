#!/bin/bash
# The report of `weft reproduce` in a real browser: readable on a phone, on light and on dark, and
# on paper; every figure is there, nothing is fetched, and nobody complains.
# shellcheck source=tests/browser/lib.sh
. "$(dirname "$0")/lib.sh"

# Some figures that take no time, and all others as what they are after an interrupt.
quick=(reproduce --quick --out "$tmp/r")
"$WEFT" "${quick[@]}" fattree/table2 fattree/fig3 hsal/fig4 thesis/fig5.4 thesis/fig3.10 \
	>/dev/null 2>"$tmp/err" || fail 'cannot measure' "$(cat "$tmp/err")"
"$WEFT" "${quick[@]}" --all --resume >/dev/null 2>"$tmp/err" &
pid=$!
for _ in $(seq 200); do
	grep -q 'round 1' "$tmp/err" && break
	sleep 0.1
done
kill -INT $pid
wait $pid
check_eq $? 130
page=$tmp/r/report.html
[ -z "${KEEP:-}" ] || cp "$page" "$KEEP/report.html"
names=$("$WEFT" reproduce --list --json | jq -r '.[].name')

open_page "$page"
check_eq "$(js 'document.title')" 'Weft: the papers, and this machine'
check_eq "$(js 'document.compatMode')" CSS1Compat
check_eq "$(js "[...document.querySelectorAll('section[id],tr[id]')].map(e => e.id).sort().join(' ')")" \
	"$(LC_ALL=C sort <<<"$names" | paste -sd' ')"
check_eq "$(js "[...document.querySelectorAll('section[id],tr[id]')].filter(
	e => !e.querySelector('.v')).length")" 0
# Every link leads somewhere.
check_eq "$(js "[...document.querySelectorAll('a')].filter(a =>
	!a.hash || !document.getElementById(decodeURIComponent(a.hash.slice(1)))).length")" 0
if command -v gnuplot >/dev/null; then
	check_true test "$(js "document.querySelectorAll('svg').length")" -ge 5
	# Ids of gnuplot's own are the same in each picture.
	check_eq "$(js "(() => { const n = {}; document.querySelectorAll('[id]').forEach(
		e => n[e.id] = (n[e.id] || 0) + 1); return Object.values(n).filter(v => v > 1).length })()")" 0
fi

# What sticks out of the screen, but for boxes that scroll by themselves.
wide='(() => { const w = document.documentElement.clientWidth; return [...document.querySelectorAll("body *")]
	.filter(e => !e.closest("svg *") && e.getBoundingClientRect().right > w + 1 && !e.closest(".scroll > *"))
	.map(e => e.tagName + " " + e.textContent.slice(0, 40)).slice(0, 5).join("; ") })()'
# Text whose contrast with what is behind it is below 4.5 (WCAG AA), and text too small for a phone.
faint='(() => {
	const rgb = c => (c.match(/[\d.]+/g) || [0, 0, 0]).map(Number);
	const light = c => { const [r, g, b] = c.slice(0, 3).map(v => { v /= 255;
		return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 });
		return 0.2126 * r + 0.7152 * g + 0.0722 * b };
	const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
		if (c.length < 4 || c[3] > 0) return c } return [255, 255, 255] };
	const bad = [];
	for (const e of document.querySelectorAll("body *")) {
		if (/^(title|desc)$/.test(e.tagName) || ![...e.childNodes].some(n => n.nodeType == 3 && n.data.trim())) continue;
		const s = getComputedStyle(e), c = rgb(e.closest("svg") ? s.fill : s.color);
		const a = light(c), b = light(behind(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) bad.push(ratio.toFixed(1) + " " + e.tagName + " " + e.textContent.slice(0, 40));
		const svg = e.closest("svg"), px = parseFloat(s.fontSize) *
			(svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1);
		if (px < 9) bad.push(px.toFixed(1) + "px " + e.tagName + " " + e.textContent.slice(0, 40));
	}
	return bad.slice(0, 5).join("; ") })()'
for scheme in light dark; do
	for width in 360 1200; do
		screen $width 800 $scheme
		check_eq "$(js 'innerWidth')" $width
		check_eq "$(js 'document.documentElement.scrollWidth')" $width
		check_eq "$(js "$wide")" ''
		check_eq "$(js "$faint")" ''
		[ -z "${KEEP:-}" ] || picture "$KEEP/$scheme-$width.png"
	done
done
dark=$(js 'getComputedStyle(document.body).backgroundColor')
check_true test "$dark" != 'rgb(255, 255, 255)'
# No word of a table's head is torn apart.
screen 360 800 light
check_eq "$(js "[...document.querySelectorAll('th')].filter(e => e.getClientRects().length &&
	e.getBoundingClientRect().height > 56).map(e => e.textContent).join(' ')")" ''
# What scrolls can be reached without a mouse.
check_eq "$(js "[...document.querySelectorAll('.scroll')].filter(e => e.tabIndex < 0).length")" 0

# On paper: dark on white, whatever the screen has, and all of it.
screen 794 1123 dark # A4
cdp Emulation.setEmulatedMedia '{"media": "print",
	"features": [{"name": "prefers-color-scheme", "value": "dark"}]}' >/dev/null
check_eq "$(js "$faint")" ''
check_eq "$(js 'getComputedStyle(document.body).backgroundColor')" 'rgb(255, 255, 255)'
check_eq "$(js "[...document.querySelectorAll('section,tr[id],svg')].filter(
	e => e.getBoundingClientRect().height < 10).length")" 0
cdp Emulation.setEmulatedMedia '{"media": "", "features": []}' >/dev/null
cdp Emulation.clearDeviceMetricsOverride '{}' >/dev/null
wd print '{"page": {"width": 21, "height": 29.7}, "shrinkToFit": false}' | jq -r .value | base64 -d >"$tmp/page.pdf"
[ -z "${KEEP:-}" ] || cp "$tmp/page.pdf" "$KEEP/"
check_eq "$(head -c 5 "$tmp/page.pdf")" '%PDF-'
pages=$(grep -ac '/Type */Page\>' "$tmp/page.pdf")
check_true test "$pages" -ge 8
check_true test "$pages" -le 60
if command -v pdftotext >/dev/null; then
	pdftotext "$tmp/page.pdf" "$tmp/page.txt"
	for name in $names; do
		check_true grep -q "$name" "$tmp/page.txt"
	done
fi

# No script, nothing from elsewhere, no text that was a number once, and nobody complained.
check_eq "$(js "document.querySelectorAll('script,link,img,iframe,object,[onclick],[onload]').length")" 0
check_eq "$(js "(document.body.innerText.match(/\\b(nan|inf|null|undefined)\\b/gi) || []).join(' ')")" ''
check_eq "$(complaints)" ''
check_eq "$(fetched)" ''
check_eq "$(grep -o 'https\?://[^" <]*' "$page" | sort -u | grep -v '^http://www.w3.org/')" ''
finish
