#!/usr/bin/env bash
# Builds dpard and dpar with clang in build/clang; warnings are errors. Clang alone checks that what ABSL_GUARDED_BY
# guards is used under its lock (-Wthread-safety).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --preset clang >"$log" 2>&1 || { cat "$log"; exit 1; }
exec ninja -C build/clang --quiet dpard dpar
