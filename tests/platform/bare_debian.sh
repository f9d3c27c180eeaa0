#!/usr/bin/env bash
# Runs a command in a bare Debian: debootstrap's smallest system, with a clone of this repository's HEAD in /project and
# this machine's way to Debian's packages. Needs root. Exits with 77 where it cannot run.
#   bash tests/platform/bare_debian.sh bookworm|trixie COMMAND...
# DPAR_BARE_COPY names a file or directory of this machine that the system gets as /given. The unpacked system is made
# once for each release, and kept as a tar file below ${TMPDIR:-/tmp}/dpar-bare.
set -euo pipefail
release=$1
shift
skip() {
  echo "SKIPPED: $*"
  exit 77
}
[ "$(id -u)" -eq 0 ] || skip "only root can make a bare system"
command -v debootstrap >/dev/null || apt-get install -y --no-install-recommends debootstrap >/dev/null 2>&1 ||
  skip "debootstrap is not installed"

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${TMPDIR:-/tmp}/dpar-bare
root=$cache/run-$release-$$
clean_up() {
  for place in proc sys dev/shm dev; do umount -l "$root/$place" 2>/dev/null || true; done
  rm -rf --one-file-system "$root"
}
trap clean_up EXIT
mkdir -p "$root"
if [ ! -f "$cache/$release.tar" ]; then
  mirror=$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -m1 '/debian' || echo http://deb.debian.org/debian)
  debootstrap --variant=minbase --include=git,ca-certificates "$release" "$root" "$mirror" >"$cache/debootstrap.log" 2>&1 ||
    skip "debootstrap cannot make $release here: $(tail -n 1 "$cache/debootstrap.log")"
  echo "deb $mirror $release main contrib non-free" >"$root/etc/apt/sources.list"
  tar -C "$root" -cf "$cache/$release.tar.part" . && mv "$cache/$release.tar.part" "$cache/$release.tar"
else
  tar -C "$root" -xf "$cache/$release.tar"
fi
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
mount -t proc proc "$root/proc"
mount -t sysfs sys "$root/sys"
mount --rbind /dev "$root/dev"
mount --make-rslave "$root/dev"
git -c safe.directory='*' clone -q "$repository" "$root/project"
[ -z "${DPAR_BARE_COPY-}" ] || cp -a "$DPAR_BARE_COPY" "$root/given"
env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb \
  chroot "$root" bash -c 'cd /project && "$@"' bare "$@"
