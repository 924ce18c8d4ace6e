#!/bin/bash
# An installed weft works from any prefix, also after the prefix was moved.
set -u
. "$(dirname "$0")/lib.sh"
: "${BUILD:?build directory}" "${SOURCE:?source directory}"

DESTDIR="$tmp/stage" cmake --install "$BUILD" --prefix /opt/weft >"$tmp/log" 2>&1 ||
	fail "cmake --install" "$(cat "$tmp/log")"
root=$tmp/stage/opt/weft
for f in bin/weft bin/weft-verbs-perf lib/weft/libibverbs.so.1 lib/weft/libweft-probe.so lib/weft/libweft-fi.so \
	lib/weft/libweftdv.so.1 lib/libweftdv.so.1 lib/libweftdv.so include/weft/weftdv.h lib/pkgconfig/weftdv.pc \
	share/man/man7/weftdv.7 lib/pkgconfig/weft.pc share/man/man1/weft.1 share/man/man1/weft-verbs.1 \
	share/man/man1/weft-info.1 share/man/man1/weft-lab.1 share/man/man1/weft-fabric.1 share/man/man1/weft-run.1 share/man/man1/weft-paths.1 share/man/man1/weft-bench.1 share/man/man1/weft-reproduce.1 share/man/man7/weft-tunables.7 share/man/man7/weft-coll.7 \
	share/bash-completion/completions/weft; do
	check_true test -f "$root/$f"
done
# Nothing outside of the prefix, and where a loader looks by itself only what programs link.
check_eq "$(cd "$tmp/stage" && find . -type f ! -path './opt/weft/*')" ""
check_eq "$(find "$root/lib" -maxdepth 1 -name '*.so*' ! -name 'libweftdv.so*')" ""

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

# weft-perf finds libweftdv, and no libibverbs of Weft's beside it.
run "$tmp/moved/bin/weft-perf" --help
check_code 0
check_has "$(ldd "$tmp/moved/bin/weft-perf")" "$tmp/moved/bin/../lib/libweftdv.so.1"
check_lacks "$(ldd "$tmp/moved/bin/weft-perf")" "/lib/weft/"

# The program in weftdv(7), as a reader would try it: compiled with what pkg-config says, and
# no run path. What troff escapes is \- and \e.
sed -n '/^#include <stdio/,/^\.EE/p' "$tmp/moved/share/man/man7/weftdv.7" |
	sed -e '/^\.EE/d' -e 's/\\-/-/g' -e 's/\\e/\\/g' >"$tmp/rd.c"
check_eq "$(cat "$SOURCE/examples/rd.c")" "$(cat "$tmp/rd.c")"
export WEFT_ADDR=127.0.0.1

# wrote COMMAND...: the program runs on the device.
wrote() {
	run timeout 20 "$@"
	check_code 0
	check_eq "$out" "b has: written by a"
}

if command -v pkg-config >/dev/null && command -v cc >/dev/null; then
	export PKG_CONFIG_PATH=$tmp/moved/lib/pkgconfig
	run pkg-config --modversion weftdv
	check_eq "$out" "$VERSION"
	flags=$(pkg-config --cflags --libs weftdv)
	# shellcheck disable=SC2086
	run cc -Wall -Wextra -Werror "$tmp/rd.c" $flags -o "$tmp/rd"
	check_code 0
	wrote "$tmp/moved/bin/weft" verbs "$tmp/rd"
	wrote bash -c "eval \"\$('$tmp/moved/bin/weft' env)\"; '$tmp/rd'"
	check_eq "$(readlink "$tmp/moved/lib/weft/libweftdv.so.1")" ../libweftdv.so.1
	run env LD_LIBRARY_PATH="$tmp/moved/lib" "$tmp/rd"
	check_code 1
	check_has "$err" "no Weft device here"
	# And against the build tree.
	run cc "$tmp/rd.c" -I"$SOURCE/include" -L"$BUILD/lib/dv" -lweftdv -libverbs -o "$tmp/rd-tree"
	check_code 0
	wrote "$WEFT" verbs "$tmp/rd-tree"
	wrote bash -c "eval \"\$('$WEFT' env)\"; '$tmp/rd-tree'"
	check_eq "$(readlink "$BUILD/lib/libweftdv.so.1")" dv/libweftdv.so.1
	# Nor is the header only for C.
	if command -v c++ >/dev/null; then
		echo '#include <weft/weftdv.h>
			int main(void) { return weftdv_is_supported(nullptr); }' >"$tmp/rd.cc"
		# shellcheck disable=SC2086
		run c++ -Wall -Wextra -Werror "$tmp/rd.cc" $flags -Wl,-rpath,"$tmp/moved/lib" \
			-o "$tmp/rd++"
		check_code 0
		run "$tmp/rd++"
		check_code 0
	fi
fi

# The completion offers the commands.
run bash -c ". '$tmp/moved/share/bash-completion/completions/weft'
	COMP_WORDS=(weft ver) COMP_CWORD=1; _weft; echo \"\${COMPREPLY[*]}\"
	COMP_WORDS=(weft env --log w) COMP_CWORD=3; _weft; echo \"\${COMPREPLY[*]}\"
	COMP_WORDS=(weft paths --b) COMP_CWORD=2; _weft; echo \"\${COMPREPLY[*]}\"
	COMP_WORDS=(weft info --) COMP_CWORD=2; _weft; echo \"\${COMPREPLY[*]}\""
check_eq "$out" "verbs
warn
--brief
--json --help"

finish
