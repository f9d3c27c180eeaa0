#!/usr/bin/env bash
# Builds the packages for this machine's release and tries them in a bare system of it: installs them, serves with the
# unit's settings, trains, upgrades over itself with a live data directory, removes, purges.
#   bash tests/deploy/packages_test.sh BUILD_DIRECTORY
set -euo pipefail
build=$1
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
case "$release" in
  bookworm | trixie) ;;
  *)
    echo "SKIPPED: packages are made on Debian 12 and 13"
    exit 77
    ;;
esac
packages=$build/packages
rm -rf "$packages"
bash "$repository/deploy/packages.sh" "$packages"
DPAR_BARE_COPY=$packages bash "$repository/tests/platform/bare_debian.sh" "$release" \
  bash /project/tests/deploy/use_packages.sh /given
