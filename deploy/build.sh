#!/usr/bin/env bash
# Configures the release preset (its output is shown only when it fails) and builds the targets named, or everything.
#   bash deploy/build.sh [TARGET...]
# On a terminal Ninja keeps to one line; elsewhere a line is printed for every tenth of the work, and every warning.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! cmake --preset release >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi

jobs=$(nproc)
if [ -t 1 ]; then
  ninja -C build/release -j "$jobs" "$@"
else
  NINJA_STATUS='@%f %t@ ' ninja -C build/release -j "$jobs" "$@" 2>&1 | {
    last=
    while IFS= read -r line; do
      if [[ $line =~ ^@([0-9]+)\ ([0-9]+)@ ]]; then
        done=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
        tenth="$((10 * done / total)) of $total"
        [ "$done" -eq 0 ] || [ "$tenth" = "$last" ] || echo "Building: $done of $total"
        last=$tenth
      elif [ "$line" = "ninja: no work to do." ]; then
        echo "Building: nothing to do"
      elif [[ $line != "ninja: Entering directory"* ]]; then
        printf '%s\n' "$line"
      fi
    done
  }
fi
