#!/usr/bin/env bash
# Builds and tests the repository's HEAD in a bare Debian 13, as README's commands do. Takes as long as a first build.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bash "$here/bare_debian.sh" trixie bash -ec 'bash deploy/quickstart.sh && bash tests/run.sh'
