#!/usr/bin/env bash
# What packages_test.sh runs inside the bare system.
#   bash use_packages.sh DIRECTORY_OF_PACKAGES
set -euo pipefail
packages=$1
export DEBIAN_FRONTEND=noninteractive
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
say() { echo "== $*"; }
apt() { apt-get -q -y -o Dpkg::Use-Pty=0 --no-install-recommends "$@" >/tmp/apt.log 2>&1 || fail "apt-get $*: $(tail -n 5 /tmp/apt.log)"; }

say "lintian"
apt update
apt install lintian
# Not Debian's own package: no intent to package, and static libraries and vendored names are ours to choose.
lintian --allow-root --fail-on error --tag-display-limit 0 "$packages"/*.deb || fail "lintian"

say "install"
apt install "$packages"/dpar_*.deb "$packages"/dpar-server_*.deb "$packages"/libdpar-dev_*.deb "$packages"/python3-dpar_*.deb
dpar --version && dpard --version
[ -s /usr/share/man/man1/dpar.1.gz ] || fail "no manual page"
[ -s /usr/lib/cmake/dpar/dparConfig.cmake ] || fail "no CMake package"
id dpar >/dev/null || fail "no user dpar"
[ "$(stat -c '%a %U' /var/lib/dpar)" = "700 dpar" ] || fail "/var/lib/dpar is $(stat -c '%a %U' /var/lib/dpar)"
[ "$(stat -c '%a %U %G' /etc/dpar/dpard.conf)" = "640 root dpar" ] || fail "the settings' owner is wrong"

server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true' EXIT
# As the unit starts it: there is no systemd in a bare system.
serve() {
  local start
  start=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/dpard.service)
  setpriv --reuid=dpar --regid=dpar --init-groups bash -c "umask 077; exec $start" >/tmp/dpard.log 2>&1 &
  server=$!
  for _ in $(seq 300); do
    runuser -u dpar -- dpard health --data-dir /var/lib/dpar >/dev/null 2>&1 && return
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  fail "dpard does not serve: $(tail -n 5 /tmp/dpard.log)"
}
stop() {
  kill -TERM "$server"
  wait "$server" || fail "dpard ended with $?"
  server=
}

say "one training"
serve
export DPAR_SERVER=127.0.0.1:7443 DPAR_CA=/var/lib/dpar/tls/ca.pem DPAR_TOKEN_FILE=/var/lib/dpar/operator.token
dpar tenant create demo
dpar token create --tenant demo --role owner --json 2>/dev/null | grep -o 'dpar_[a-z0-9-]*_[0-9a-f]\{64\}' >/root/owner
chmod 600 /root/owner
export DPAR_TOKEN_FILE=/root/owner
cd /root
dpar graph generate -o graph.npz --nodes 2000
dpar upload graph.npz --name people
dpar train people --epsilon 1 --yes
dpar graph generate -o query.npz --nodes 500
/usr/bin/python3 -c '
import dpar
with dpar.Client(token_file="/root/owner", progress=False) as client:
    model = client.jobs()[0].download("model")
assert model.certificate.verify(), "the certificate does not verify"
assert len(model.predict("query.npz")) == 500
'
spent=$(dpar population show people --json)

say "upgrade over itself, with the data of a running server"
stop
apt install --reinstall "$packages"/dpar-server_*.deb
serve
[ "$(dpar population show people --json)" = "$spent" ] || fail "the budget changed by an upgrade"
stop

say "remove, then purge"
apt remove dpar-server
[ ! -e /usr/bin/dpard ] || fail "dpard is still there"
[ -f /etc/dpar/dpard.conf ] || fail "settings went with the package"
apt purge dpar-server
[ ! -e /etc/dpar ] || fail "settings outlive the purge"
[ -f /var/lib/dpar/dpar.sqlite ] || fail "the ledger was purged"
apt purge dpar libdpar-dev python3-dpar
[ -z "$(dpkg -l | awk '/dpar/ {print $2}')" ] || fail "packages are left"
echo "PASSED"
