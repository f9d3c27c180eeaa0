#!/usr/bin/env bash
# Runs clang-tidy with .clang-tidy over every source of ours that the build compiles.
#   bash tests/clang_tidy.sh [BUILD_DIRECTORY] [PATH_PREFIX...]    default: build/release, everything
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/release}
[ $# -eq 0 ] || shift
[ -f "$build/compile_commands.json" ] || {
  echo "clang_tidy.sh: no $build/compile_commands.json; run: bash deploy/build.sh" >&2
  exit 2
}
prefixes=("${@:-}")

# Generated sources lie below the build directory and are nobody's to tidy.
sources=()
while IFS= read -r source; do
  relative=${source#"$PWD"/}
  case "$relative" in
    core/* | server/* | client/* | tests/*) ;;
    *) continue ;;
  esac
  for prefix in "${prefixes[@]}"; do
    case "$relative" in "$prefix"*) sources+=("$relative") && break ;; esac
  done
done < <(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json" | sort -u)
[ ${#sources[@]} -gt 0 ] || {
  echo "clang_tidy.sh: no source to check" >&2
  exit 2
}
echo "clang-tidy over ${#sources[@]} sources"
# GCC's precompiled headers, and what goes with them, mean nothing to clang.
mkdir -p "$build/tidy"
sed -E 's/ -Winvalid-pch -include [^ "]+//; s/ -fpch-preprocess//; s/ --param=[^ "]+//' "$build/compile_commands.json" \
  >"$build/tidy/compile_commands.json"
printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$(nproc)" clang-tidy -p "$build/tidy" --quiet
