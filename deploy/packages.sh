#!/usr/bin/env bash
# Builds the Debian packages dpar, dpar-server, libdpar-dev and python3-dpar for the release that this machine runs.
#   bash deploy/packages.sh [DIRECTORY]    default: build/packages
set -euo pipefail
case "${1-}" in
  -h | --help)
    sed -n '2,3s/^# //p' "$0"
    exit 0
    ;;
esac
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
output=$(mkdir -p "${1:-$repository/build/packages}" && cd "${1:-$repository/build/packages}" && pwd)
cd "$repository"

bash deploy/install-dependencies.sh --with-python
command -v dpkg-shlibdeps >/dev/null || apt-get install -y --no-install-recommends dpkg-dev
release=$(. /etc/os-release && echo "deb${VERSION_ID-0}")
bash deploy/build.sh dpard dpar dpar_documents dpar_sdk dpar_python
cmake -S . -B build/release -DDPAR_PACKAGE_REVISION="1~$release" >/dev/null
cpack --config build/release/CPackConfig.cmake -B "$output/work" >"$output/log" || {
  cat "$output/log" >&2
  exit 1
}
mv "$output/work"/*.deb "$output"
rm -rf "$output/work" "$output/log"
ls -l "$output"/*.deb
