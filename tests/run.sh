#!/usr/bin/env bash
# Installs what is missing, builds everything (release preset) and runs the tests through CTest.
#   bash tests/run.sh          every test but those labelled long, fuzz or deploy
#   bash tests/run.sh --all    those too, and the suite once more under address and undefined behaviour, and under thread
#                              sanitizer
# CTest's "Label Time Summary" says how long each label took. The exit code is 0 only when every test passed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null

selection=(-LE '^(long|fuzz|deploy)$')
left_out=" (labels long, fuzz and deploy left out; --all runs them)"
case "${1-}" in
  "") ;;
  --all)
    selection=()
    left_out=
    ;;
  -h | --help)
    sed -n '2,6s/^# //p' "$0"
    exit 0
    ;;
  *)
    echo "tests/run.sh: unknown option '$1'; only --all is known" >&2
    exit 2
    ;;
esac

SECONDS=0
bash deploy/install-dependencies.sh --with-checks
installed_at=$SECONDS
bash deploy/build.sh
built_at=$SECONDS

code=0
ctest --preset release --output-on-failure --no-tests=error -j2 "${selection[@]}" || code=$?

# Labels that a sanitizer adds nothing to are left out.
if [ "${1-}" = --all ]; then
  for preset in asan tsan; do
    echo "tests/run.sh: the suite under $preset"
    cmake --preset $preset >/dev/null && cmake --build --preset $preset &&
      ctest --preset $preset --output-on-failure --no-tests=error -j2 -LE '^(long|fuzz|deploy|tidy|accuracy)$' || code=$?
  done
fi

result=passed
[ $code -eq 0 ] || result=FAILED
echo
echo "tests/run.sh: $result$left_out"
echo "  installing $installed_at s, building $((built_at - installed_at)) s, testing $((SECONDS - built_at)) s," \
  "in all $SECONDS s"
exit $code
