#!/bin/bash
# clang-tidy over everything that build/ compiles, with the checks of .clang-tidy.
set -euo pipefail
cd "$(dirname "$0")/.."

# What only gcc understands is taken out of the commands.
mkdir -p build/lint
sed -E 's/ -(mmemset-strategy=[^ ]*|flto=auto|ffat-lto-objects|Wno-stringop-overflow)//g' \
	build/compile_commands.json >build/lint/compile_commands.json

# Tests put a record without its flexible part into a larger structure, on purpose.
args=(-p build/lint --quiet --extra-arg=-Wno-gnu-variable-sized-type-not-at-end)

mapfile -t files < <(sed -n 's/^ *"file": "\(.*\.c\)".*/\1/p' build/compile_commands.json | sort -u)
printf '%s\0' "${files[@]}" |
	nice xargs -0 -n 4 -P "${JOBS:-$(nproc)}" clang-tidy "${args[@]}" 2> >(grep -Ev 'warnings? generated' >&2)
echo "lint: ${#files[@]} files, nothing found"
