#!/usr/bin/env bash
# Writes BUILD_DIRECTORY/clang/compile_commands.json: the build's commands without what only GCC knows, so that clang's tools
# can read them. Prints the directory.
#   bash tests/clang_database.sh [BUILD_DIRECTORY]    default: build/release
set -euo pipefail
build=${1:-build/release}
[ -f "$build/compile_commands.json" ] || {
  echo "clang_database.sh: no $build/compile_commands.json; run: bash deploy/build.sh" >&2
  exit 2
}
mkdir -p "$build/clang"
sed -E 's/ -Winvalid-pch -include [^ "]+//; s/ -fpch-preprocess//; s/ --param=[^ "]+//; s/ -Wno-stringop-overflow//' \
  "$build/compile_commands.json" >"$build/clang/compile_commands.json"
echo "$build/clang"
