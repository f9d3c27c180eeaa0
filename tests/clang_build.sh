#!/usr/bin/env bash
# Compiles what dpard and dpar are made of with clang in build/clang; warnings are errors. Clang alone checks that what
# ABSL_GUARDED_BY guards is used under its lock (-Wthread-safety). Left out are sources that include LibTorch, since
# clang 14 cannot read LibTorch 1.13's headers as C++20, and dpard's main.cc, which waits for their library.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --preset clang >"$log" 2>&1 || { cat "$log"; exit 1; }
ninja -C build/clang -t targets all | sed -n 's/: CXX_COMPILER__.*//p' | grep -E '^(core|server|client)/' |
  grep -vE '_test\.|/testing/|torch|dpard\.dir|/device\.cc' >"$log"
echo "clang compiles $(wc -l <"$log") sources"
xargs -a "$log" ninja -C build/clang --quiet
