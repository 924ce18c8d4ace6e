#!/bin/bash
# An installed weft works from any prefix, also after the prefix was moved.
set -u
. "$(dirname "$0")/lib.sh"
: "${BUILD:?build directory}"

DESTDIR="$tmp/stage" cmake --install "$BUILD" --prefix /opt/weft >"$tmp/log" 2>&1 ||
	fail "cmake --install" "$(cat "$tmp/log")"
root=$tmp/stage/opt/weft
for f in bin/weft lib/weft/libibverbs.so.1 lib/weft/libweft-probe.so \
	lib/pkgconfig/weft.pc share/man/man1/weft.1 share/man/man1/weft-verbs.1 \
	share/man/man1/weft-info.1 share/man/man1/weft-lab.1 share/man/man1/weft-run.1 share/man/man7/weft-tunables.7 \
	share/bash-completion/completions/weft; do
	check_true test -f "$root/$f"
done
# Nothing outside of the prefix, and nothing where a loader looks by itself.
check_eq "$(cd "$tmp/stage" && find . -type f ! -path './opt/weft/*')" ""
check_eq "$(find "$root/lib" -maxdepth 1 -name '*.so*')" ""

try() {
	run "$1/bin/weft" verbs sh -c 'cat /proc/self/maps; true'
	check_code 0
	check_has "$out" "$1/lib/weft/libibverbs.so.1"
	run "$1/bin/weft" info --json
	check_eq "$(jq -r '.libraries[0].path' <<<"$out")" "$1/lib/weft/libibverbs.so.1"
}
try "$root"
mv "$root" "$tmp/moved"
try "$tmp/moved"

run env PKG_CONFIG_PATH="$tmp/moved/lib/pkgconfig" pkg-config --modversion weft
check_eq "$out" "$VERSION"
run env PKG_CONFIG_PATH="$tmp/moved/lib/pkgconfig" pkg-config --variable=preload weft
for f in ${out//:/ }; do
	check_true test -f "$f"
done

# The completion offers the commands.
run bash -c ". '$tmp/moved/share/bash-completion/completions/weft'
	COMP_WORDS=(weft ver) COMP_CWORD=1; _weft; echo \"\${COMPREPLY[*]}\"
	COMP_WORDS=(weft env --log w) COMP_CWORD=3; _weft; echo \"\${COMPREPLY[*]}\"
	COMP_WORDS=(weft info --) COMP_CWORD=2; _weft; echo \"\${COMPREPLY[*]}\""
check_eq "$out" "verbs
warn
--json --help"

finish
