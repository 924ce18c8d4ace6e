#!/bin/bash
# Formats every C file of the repository, or with --check only says which are not.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -d '' files < <(find src include tests -name '*.[ch]' -print0)
if [ "${1:-}" = --check ]; then
	clang-format --dry-run --Werror "${files[@]}"
else
	clang-format -i "${files[@]}"
fi
