#!/usr/bin/env bash
# Builds the Python package `dpar` and a wheel of it, without a network where Debian's packages are installed.
#   bash client/python/build_wheel.sh [DIRECTORY]    default: build/wheel
# The wheel is for this release's /usr/bin/python3 and its libraries (protobuf, Abseil): build one for each release.
#   python3 -m venv --system-site-packages venv && venv/bin/pip install --no-index build/wheel/dpar-*.whl
set -euo pipefail
case "${1-}" in
  -h | --help)
    sed -n '2,5s/^# //p' "$0"
    exit 0
    ;;
esac
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
output=$(mkdir -p "${1:-$repository/build/wheel}" && cd "${1:-$repository/build/wheel}" && pwd)
cd "$repository"

bash deploy/install-dependencies.sh --with-python
bash deploy/build.sh dpar_python
version=$(sed -n 's/^project(dpar VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
staged=$(mktemp -d)
trap 'rm -rf "$staged"' EXIT
cp -r build/release/python/dpar "$staged"
strip --strip-unneeded "$staged"/dpar/_native.*.so
/usr/bin/python3 client/python/make_wheel.py "$staged/dpar" "$version" "$output"
