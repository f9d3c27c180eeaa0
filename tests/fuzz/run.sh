#!/usr/bin/env bash
# Builds a fuzzer (preset `fuzz`: clang, libFuzzer, address and undefined behaviour) and runs it from the checked-in
# seeds and from what earlier runs found on the way (build/fuzz/corpus).
#   bash tests/fuzz/run.sh NAME [SECONDS]    default: 60 seconds; NAME is certificate, http, manifest, mark, model, npz,
#                                            request, sealed, table or upload
# A finding ends it with a non-zero exit code and is left below build/fuzz/findings; replay it with
# build/fuzz/bin/NAME_fuzzer FILE, or the program of the same name in any other build. Exit code 77 and a reason where
# clang or its libFuzzer is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exec </dev/null

name=${1-}
seconds=${2-60}
# Inputs as long as the seeds need. Memory: far below what a file of that length may claim to hold.
case "$name" in
  certificate) limits=(-max_len=8192 -malloc_limit_mb=256 -rss_limit_mb=1024) ;;
  http) limits=(-max_len=2048 -malloc_limit_mb=96 -rss_limit_mb=1024 -dict=tests/fuzz/http.dict) ;;
  manifest | mark) limits=(-max_len=2048 -malloc_limit_mb=96 -rss_limit_mb=1024) ;;
  model) limits=(-max_len=2048 -malloc_limit_mb=96 -rss_limit_mb=1024) ;;
  sealed) limits=(-max_len=256 -len_control=0 -malloc_limit_mb=96 -rss_limit_mb=1024) ;;
  npz) limits=(-max_len=8192 -malloc_limit_mb=96 -rss_limit_mb=1024) ;;
  request) limits=(-max_len=2048 -malloc_limit_mb=256 -rss_limit_mb=1024 -dict=tests/fuzz/request.dict) ;;
  table) limits=(-max_len=4096 -malloc_limit_mb=96 -rss_limit_mb=1024) ;;
  upload) limits=(-max_len=256 -len_control=0 -malloc_limit_mb=96 -rss_limit_mb=1024) ;;
  *)
    echo "run.sh: which fuzzer? $(ls tests/fuzz/corpus | xargs)" >&2
    exit 2
    ;;
esac

probe='#include <cstdint>
#include <cstddef>
extern "C" int LLVMFuzzerTestOneInput(const uint8_t*, size_t) { return 0; }'
if ! clang++ -fsanitize=fuzzer,address,undefined -x c++ - -o /dev/null <<<"$probe" 2>/dev/null; then
  echo "skipped: no clang++ with libFuzzer here (Debian 12: clang, libclang-rt-14-dev; Debian 13: clang, libclang-rt-dev)"
  exit 77
fi

[ -f build/fuzz/build.ninja ] || cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target "${name}_fuzzer" -- --quiet

mkdir -p "build/fuzz/corpus/$name" build/fuzz/findings
# Stores that are synced are much faster in memory.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm
export ASAN_OPTIONS=quarantine_size_mb=64
export UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS=suppressions=$PWD/cmake/lsan.supp:print_suppressions=0
# libFuzzer's own exit code for a finding is 77, which stands for skipped here.
exec "build/fuzz/bin/${name}_fuzzer" "${limits[@]}" -max_total_time="$seconds" -timeout=30 -print_final_stats=1 \
  -error_exitcode=1 -timeout_exitcode=1 -artifact_prefix="build/fuzz/findings/$name-" \
  "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name"
