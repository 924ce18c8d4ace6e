#!/bin/bash
# clang-tidy over everything that build/ compiles, with the checks of .clang-tidy.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(sed -n 's/^ *"file": "\(.*\.c\)".*/\1/p' build/compile_commands.json | sort -u)
printf '%s\0' "${files[@]}" |
	nice xargs -0 -n 4 -P "${JOBS:-$(nproc)}" clang-tidy -p build --quiet 2> >(grep -v 'warnings generated' >&2)
echo "lint: ${#files[@]} files, nothing found"
