#!/usr/bin/env bash
# Runs the tests of the operator's page. Skips, with exit code 77 and the reason, where there is no Chromium, no Node.js
# or no way to its packages. The packages are those of package-lock.json, kept below the build directory.
#   DPAR_BINARY_DIR=build/release bash tests/page/run.sh [--screenshots DIR]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${DPAR_BINARY_DIR:?names the build directory}" && pwd)

skip() {
  echo "page_test: skipped: $*"
  exit 77
}
chromium=$(command -v chromium || true)
[ -n "$chromium" ] || skip "there is no chromium (Debian's package chromium)"
command -v node >/dev/null || skip "there is no node (Debian's package nodejs)"
command -v npm >/dev/null || skip "there is no npm (Debian's package npm)"
[ "$(node -p 'Number(process.versions.node.split(".")[0]) >= 20')" = true ] ||
  skip "node is $(node --version), and playwright-core needs 20"

modules=$build/page_test
mkdir -p "$modules"
if ! cmp -s "$here/package-lock.json" "$modules/installed-lock.json" || [ ! -d "$modules/node_modules" ]; then
  cp "$here/package.json" "$here/package-lock.json" "$modules/"
  (cd "$modules" && npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1) ||
    skip "npm could not install $here/package-lock.json; $modules/npm.log says why"
  cp "$here/package-lock.json" "$modules/installed-lock.json"
fi
# Modules are looked for beside the files that import them.
cp "$here"/*.mjs "$modules/"
cd "$modules"
export CHROMIUM=$chromium DPAR_BINARY_DIR=$build
exec node page_test.mjs "$@"
