#!/usr/bin/env bash
# Runs clang-tidy with .clang-tidy over every source of ours that the build compiles.
#   bash tests/clang_tidy.sh [BUILD_DIRECTORY] [PATH_PREFIX...]    default: build/release, everything
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/release}
[ $# -eq 0 ] || shift
database=$(bash tests/clang_database.sh "$build")
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
printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$(nproc)" clang-tidy -p "$database" --quiet
