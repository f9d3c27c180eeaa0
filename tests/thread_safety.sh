#!/usr/bin/env bash
# Checks with clang that what ABSL_GUARDED_BY guards is used under its lock: every source that has a lock, or includes a
# header of ours that has one. tests/clang_build.sh builds everything that way.
#   bash tests/thread_safety.sh [BUILD_DIRECTORY]    default: build/release
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/release}
database=$(bash tests/clang_database.sh "$build")

locks='ABSL_GUARDED_BY|\bMutex\b'
headers=$(grep -lE "$locks" -r core server client tests --include='*.h')
{
  grep -lE "$locks" -r core server client tests --include='*.cc'
  grep -lFf <(sed 's/.*/#include "&"/' <<<"$headers") -r core server client tests --include='*.cc'
} | sort -u >"$build/sources_with_locks"
echo "clang's analysis of locks over $(wc -l <"$build/sources_with_locks") sources"
# clang-tidy reads the build's flags; it wants one check of its own, and the cheapest will do.
xargs -a "$build/sources_with_locks" -n 4 -P "$(nproc)" clang-tidy -p "$database" --quiet \
  '--checks=-*,readability-duplicate-include,clang-diagnostic-thread-safety*' '--warnings-as-errors=*' \
  --extra-arg=-Wthread-safety
