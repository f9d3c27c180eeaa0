#!/usr/bin/env bash
# Gathers what an image holds beside its base: programs, the shared libraries that they reach and the base has not, those
# libraries' licences, and the public certificate authorities. The packages that these libraries come from would bring
# three times as much.
#   bash deploy/docker/collect.sh BASE_LIBRARIES IMAGE PROGRAM...
# BASE_LIBRARIES names the base's libraries, one a line; IMAGE is made, as the root of a file tree.
set -euo pipefail
[ $# -ge 3 ] || {
  sed -n '5,6s/^# *//p' "$0" >&2
  exit 2
}
base_libraries=$1 image=$2
shift 2
libraries=$image/usr/lib/dpar
install -d "$image/usr/bin" "$image/etc/ld.so.conf.d" "$image/etc/ssl/certs" "$libraries"
install "$@" "$image/usr/bin/"

reached=$(ldd "$@")
if grep -F 'not found' <<<"$reached" >&2; then
  echo "collect: these libraries are missing" >&2
  exit 1
fi
# The files that names stand for, also through Debian's alternatives, as for BLAS.
files=()
while read -r name path; do
  grep -qxF -- "$name" "$base_libraries" && continue
  cp -L "$path" "$libraries/$name"
  files+=("/$(basename "$(readlink -f "$path")")")
done < <(awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' <<<"$reached" | sort -u)
# A CUDA build of LibTorch opens some of its own libraries only when it runs.
if [ -d /opt/libtorch/lib ]; then
  cp -an /opt/libtorch/lib/*.so* "$libraries/"
fi
echo /usr/lib/dpar >"$image/etc/ld.so.conf.d/dpar.conf"
cp -L /etc/ssl/certs/ca-certificates.crt "$image/etc/ssl/certs/"

grep -lF -f <(printf '%s\n' "${files[@]}") /var/lib/dpkg/info/*.list | while read -r list; do
  package=$(basename "${list%.list}")
  package=${package%:*}
  [ -e "/usr/share/doc/$package/copyright" ] || continue
  install -D -m 0644 "/usr/share/doc/$package/copyright" "$image/usr/share/doc/$package/copyright"
done
echo "collect: ${#files[@]} libraries, $(du -sm "$libraries" | cut -f1) MB"
