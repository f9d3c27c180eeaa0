#!/usr/bin/env bash
# Installs what the build needs from Debian's packages (Debian 12, and by the names of Debian 13), naming it first and asking nothing.
#   bash deploy/install-dependencies.sh                what dpard and dpar are built from
#   bash deploy/install-dependencies.sh --with-checks  and the tools that the tests run
#   bash deploy/install-dependencies.sh --with-python  and what the Python package needs
#   bash deploy/install-dependencies.sh --without-torch  all but LibTorch, for those who bring their own
# Does nothing when everything is there. Needs root, or sudo, only when something is missing.
set -euo pipefail

build_packages=(
  g++ cmake ninja-build mold ccache pkg-config git ca-certificates
  # libtorch-dev is only fast with a real BLAS: the reference one makes its products 30 times slower.
  libtorch-dev libopenblas0-pthread libeigen3-dev
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libabsl-dev libspdlog-dev libcli11-dev nlohmann-json3-dev
  libsqlite3-dev libpq-dev libssl-dev libboost-dev libmpfr-dev libfftw3-dev libxxhash-dev libexpat1-dev
  libyaml-cpp-dev libzip-dev zlib1g-dev
  prometheus-cpp-dev
  # CMake looks for them also when only the programs are built.
  libgtest-dev libgmock-dev libbenchmark-dev
)
# The Python package, and what it runs with.
python_packages=(pybind11-dev python3-dev python3-numpy python3-protobuf python3-grpcio)
# A private PostgreSQL and a Prometheus for the tests; a Python client of the API, whose python3-torch loads our
# TorchScript files as a user would, and a verifier of certificates in Python with their schema; clang's runtime for the
# fuzzers; what dpar-lab draws and partitions with; what sets manual pages; a browser for the operator's page, which is
# driven with Node.js 20: Debian 12's is older, and where there is no newer one that test skips. For the Python package:
# type checks, the libraries whose graphs it takes, ONNX's checker, and what executes its notebook.
check_packages=("${python_packages[@]}" mypy pyflakes3 python3-venv python3-pip python3-pandas python3-networkx python3-tqdm
  python3-onnx python3-nbclient python3-nbformat python3-ipykernel clang-format clang-tidy clang postgresql prometheus python3-torch
  python3-scipy python3-cryptography python3-jsonschema python3-matplotlib metis groff-base
  chromium)
# What has another name, or is new enough, in one release only.
system=$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME-} ${PRETTY_NAME-}" || true)
case "$system" in
  bookworm*) check_packages+=(libclang-rt-14-dev) ;;
  *) check_packages+=(libclang-rt-dev nodejs npm) ;;
esac

fail() {
  echo "install-dependencies: $*" >&2
  exit 1
}

packages=("${build_packages[@]}")
case "${1-}" in
  "") ;;
  --with-checks) packages+=("${check_packages[@]}") ;;
  --with-python) packages+=("${python_packages[@]}") ;;
  --without-torch)
    for i in "${!packages[@]}"; do
      [ "${packages[i]}" != libtorch-dev ] || unset "packages[i]"
    done
    ;;
  -h | --help)
    sed -n '2,7s/^# //p' "$0"
    exit 0
    ;;
  *)
    echo "install-dependencies: unknown option '$1'; only --with-checks, --with-python and --without-torch are known" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  fail "needs Debian's dpkg and apt. On another system, install the equivalents of: ${packages[*]}"
fi

case "$system" in
  bookworm* | trixie*) ;;
  *)
    echo "Dependencies: this is ${system#* }. Debian 12 is built and tested; here Debian 13's package names are" \
      "tried. Where one is missing (libtorch-dev is the likeliest: --without-torch), install its equivalent by hand." >&2
    ;;
esac

installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null |
  sed -n 's/ installed$//p' || true)
missing=()
for package in "${packages[@]}"; do
  grep -qxF -- "$package" <<<"$installed" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "Dependencies: all ${#packages[@]} packages are installed."
  exit 0
fi
echo "Dependencies: installing ${#missing[@]} of ${#packages[@]} packages: ${missing[*]}"

as_root=(env)
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null ||
    fail "not root and no sudo here. As root, run: apt-get install --no-install-recommends ${missing[*]}"
  as_root=(sudo env)
fi
apt_get() {
  "${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -q "$@" </dev/null
}
install_missing() {
  apt_get install -y --no-install-recommends "${missing[@]}"
}

# The lists of a fresh machine are empty, those of an old one may point at versions that are gone.
updated=no
if [ "$(apt-cache policy "${missing[@]}" 2>/dev/null | grep -c 'Candidate: [0-9]')" -lt ${#missing[@]} ]; then
  apt_get update
  updated=yes
fi
if ! install_missing; then
  [ $updated = no ] || fail "apt-get could not install: ${missing[*]}"
  apt_get update
  install_missing || fail "apt-get could not install: ${missing[*]}"
fi
