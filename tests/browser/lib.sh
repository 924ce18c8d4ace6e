# A real browser for tests of pages: Chromium, driven through its WebDriver (chromedriver), on
# loopback. To be sourced; begins a session, which ends with the script.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"

for program in chromium chromedriver curl jq; do
	if ! command -v $program >/dev/null; then
		echo "skipped: $program is not installed (scripts/setup.sh test)"
		exit 77
	fi
done
port=$((20000 + RANDOM % 20000))
chromedriver --port=$port >"$tmp/driver.log" 2>&1 &
driver=$!
session=
cleanup() {
	[ -z "$session" ] || curl -s -m 10 -X DELETE "$base" >/dev/null
	kill $driver 2>/dev/null
	wait $driver 2>/dev/null
	rm -rf "$tmp"
}
trap cleanup EXIT
for _ in $(seq 100); do
	curl -s -m 2 "http://127.0.0.1:$port/status" | grep -q '"ready":true' && break
	sleep 0.1
done
# /dev/shm may be small, and root has no sandbox.
session=$(curl -s -m 60 "http://127.0.0.1:$port/session" -d '{"capabilities":{"alwaysMatch":{
	"goog:loggingPrefs":{"browser":"ALL","performance":"ALL"},"goog:chromeOptions":{"args":[
	"--headless=new","--no-sandbox","--disable-gpu","--disable-dev-shm-usage",
	"--window-size=1200,800"]}}}}' | jq -r .value.sessionId)
base=http://127.0.0.1:$port/session/$session
if [ -z "$session" ] || [ "$session" = null ]; then
	session=
	fail 'no browser' "$(cat "$tmp/driver.log")"
	finish
fi

wd() { curl -s -m 60 "$base/$1" -d "$2"; }
# cdp METHOD PARAMETERS: Chromium's own protocol.
cdp() {
	wd goog/cdp/execute "$(jq -n --arg c "$1" --argjson p "$2" '{cmd: $c, params: $p}')" |
		jq -c .value
}
open_page() { wd url "$(jq -n --arg u "file://$1" '{url: $u}')" >/dev/null; }
js() { wd execute/sync "$(jq -n --arg s "return $1" '{script: $s, args: []}')" | jq -r .value; }
element() { wd element "$(jq -n --arg s "$1" '{using: "css selector", value: $s}')" |
	jq -r '.value | to_entries[0].value'; }
click() { wd "element/$(element "$1")/click" '{}' >/dev/null; }
text() { js "document.querySelector('$1').textContent"; }
# What the browser complained about, and what it fetched that is no part of the page.
complaints() { wd se/log '{"type":"browser"}' | jq -r '.value[].message'; }
fetched() {
	wd se/log '{"type":"performance"}' | jq -r '.value[].message | fromjson.message |
		select(.method == "Network.requestWillBeSent") | .params.request.url' |
		grep -v '^\(file\|data\|about\):'
}
# screen WIDTH HEIGHT light|dark
screen() {
	cdp Emulation.setDeviceMetricsOverride \
		"{\"width\": $1, \"height\": $2, \"deviceScaleFactor\": 1, \"mobile\": true}" >/dev/null
	cdp Emulation.setEmulatedMedia \
		"{\"features\": [{\"name\": \"prefers-color-scheme\", \"value\": \"$3\"}]}" >/dev/null
}
# picture FILE: what is to be seen, as PNG.
picture() { curl -s -m 60 "$base/screenshot" | jq -r .value | base64 -d >"$1"; }
