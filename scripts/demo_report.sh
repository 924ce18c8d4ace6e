#!/bin/bash
# The demo, last part: some figures of the papers, measured or simulated here beside what was
# published, and a page that shows them. Takes half a minute. Everything that it starts it also
# ends (weft-reproduce(1)).
#
#   scripts/demo_report.sh [--quick]      --quick: two figures that are simulated
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
BUILD=${WEFT_BUILD:-$PWD/build}
out=$BUILD/demo-report
figures=(hsal/fig4 hsal/fig14 fattree/fig1 fattree/table2 fattree/table3 thesis/fig3.1 thesis/fig3.4
	thesis/fig3.10 thesis/fig5.4 thesis/fig6.3 onetomany/fig2 onetomany/fig6)
[ "${1:-}" != --quick ] || figures=(hsal/fig4 fattree/table2)

echo "Figures of the papers, beside this machine"
echo
"$BUILD/bin/weft" reproduce --quick --out "$out" "${figures[@]}" || exit
echo
echo "The report, one page: file://$out/report.html"
echo "(make bench measures all figures, in up to 20 minutes)"
