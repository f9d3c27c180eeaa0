#!/usr/bin/env bash
# Installs the server below a temporary prefix and has systemd's own tools judge what was installed: the unit is valid, its
# exposure at most 2.5, the user and the directories that it needs are made by the snippets beside it.
#   bash tests/deploy/systemd_test.sh BUILD_DIRECTORY
set -euo pipefail
build=$1
most_exposed=25 # Tenths, on systemd's scale from 0 to 100.

skip() {
  echo "SKIPPED: $*"
  exit 77
}
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
for tool in systemd-analyze systemd-sysusers systemd-tmpfiles; do
  command -v $tool >/dev/null || skip "$tool is not installed"
done
[ "$(id -u)" -eq 0 ] || skip "only root can make users and directories below another root"

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
prefix=$root/usr
cmake --install "$build" --component server --prefix "$prefix" >/dev/null
[ "$("$prefix/bin/dpard" --version | cut -d' ' -f1)" = dpard ] || fail "the installed dpard does not start"
unit=$prefix/lib/systemd/system/dpard.service
start="$prefix/bin/dpard --config /etc/dpar/dpard.conf --data-dir /var/lib/dpar --witness-dir /var/lib/dpar-witness"
grep -qxF "ExecStart=$start" "$unit" ||
  fail "the unit does not start the dpard that was installed beside it: $(grep ExecStart "$unit")"
[ -s "$prefix/share/doc/dpar/OPERATIONS.md" ] || fail "the operations guide was not installed"

# It also warns of what it only ignores, such as a misspelt setting.
said=$(systemd-analyze verify "$unit" 2>&1) || fail "systemd-analyze verify: $said"
[ -z "$said" ] || fail "systemd-analyze verify warns: $said"
systemd-analyze security --offline=true --threshold=$most_exposed --no-pager "$unit" >"$root/security" ||
  fail "exposed to more than $most_exposed tenths: $(cat "$root/security")"
grep 'Overall exposure' "$root/security"

mkdir -p "$root/etc"
systemd-sysusers --root="$root" "$prefix/lib/sysusers.d/dpar.conf" 2>/dev/null
grep -q '^dpar:.*:/var/lib/dpar:/usr/sbin/nologin$' "$root/etc/passwd" || fail "no such user: $(cat "$root/etc/passwd")"
owner=$(sed -n 's/^dpar:[^:]*:\([0-9]*\):\([0-9]*\):.*/\1:\2/p' "$root/etc/passwd")
systemd-tmpfiles --root="$root" --create "$prefix/lib/tmpfiles.d/dpar.conf"
expect() { # PATH MODE OWNER
  local found
  found=$(stat -c '%a %u:%g' "$root$1") || fail "$1 was not made"
  [ "$found" = "$2 $3" ] || fail "$1 is $found, expected $2 $3"
}
expect /var/lib/dpar 700 "$owner"
expect /var/lib/dpar-witness 700 "$owner"
expect /etc/dpar 750 "0:${owner#*:}"
expect /etc/dpar/dpard.conf 640 "0:${owner#*:}"
# The empty file is a valid one.
"$prefix/bin/dpard" keys list --config "$root/etc/dpar/dpard.conf" --data-dir "$root/nothing" 2>"$root/said" &&
  fail "there are no keys to list"
grep -q "$root/nothing" "$root/said" || fail "dpard did not take the settings: $(cat "$root/said")"
echo "PASSED"
