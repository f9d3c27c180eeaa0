#!/usr/bin/env bash
# From a clone to a private model: installs what is missing, builds dpard and dpar, and shows one run of the product
# against a server on loopback. Asks nothing. The server and its data live in a temporary directory that is removed at
# the end.
#   bash deploy/quickstart.sh [--keep]    --keep leaves the directory behind
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

keep=no
case "${1-}" in
  "") ;;
  --keep) keep=yes ;;
  -h | --help)
    sed -n '2,5s/^# //p' "$0"
    exit 0
    ;;
  *)
    echo "quickstart: unknown option '$1'; only --keep is known" >&2
    exit 2
    ;;
esac

server=
directory=
clean_up() {
  trap - EXIT INT TERM
  if [ -n "$server" ]; then
    kill -TERM "$server" 2>/dev/null || true
    wait "$server" || true
  fi
  if [ -n "$directory" ]; then
    if [ $keep = yes ]; then
      echo "Kept: $directory"
    else
      rm -rf "$directory"
    fi
  fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { printf '\n# %s\n' "$*"; }
show() {
  printf '$ %s\n' "$*"
  "$@"
}
give_up() {
  echo "quickstart: $*" >&2
  if [ -f "$directory/dpard.log" ]; then
    echo "quickstart: the server's log ends with:" >&2
    tail -n 20 "$directory/dpard.log" >&2
  fi
  exit 1
}

bash "$repository/deploy/install-dependencies.sh"
bash "$repository/deploy/build.sh" dpard dpar
export PATH="$repository/build/release/bin:$PATH"
unset DPAR_TOKEN DPAR_TOKEN_FILE DPAR_PROFILE
# The usual port of metrics and health may be taken by a server that runs here already.
export DPARD_METRICS_LISTEN=127.0.0.1:0 DPARD_PAGE_LISTEN=127.0.0.1:0

directory=$(mktemp -d "${TMPDIR:-/tmp}/dpar-quickstart.XXXXXX")
cd "$directory"
# The user's own profiles and digest keys stay as they are.
export XDG_CONFIG_HOME=$directory/config XDG_DATA_HOME=$directory/share

say "A server on loopback, with its own certificate authority, signing key and operator token"
echo '$ dpard --data-dir server --listen 127.0.0.1:0 &'
dpard --data-dir server --listen 127.0.0.1:0 >dpard.log 2>&1 &
server=$!
for _ in $(seq 600); do
  [ -s server/address ] && break
  kill -0 "$server" 2>/dev/null || give_up "dpard stopped before it served"
  sleep 0.1
done
[ -s server/address ] || give_up "dpard does not serve after a minute"
DPAR_SERVER=$(cat server/address)
export DPAR_SERVER DPAR_CA=$directory/server/tls/ca.pem
echo "dpard serves at $DPAR_SERVER"

say "The operator makes a tenant and a token for its owner"
export DPAR_TOKEN_FILE=$directory/server/operator.token
show dpar tenant create demo
echo '$ dpar token create --tenant demo --role owner'
dpar token create --tenant demo --role owner --json 2>/dev/null |
  grep -o 'dpar_[a-z0-9-]*_[0-9a-f]\{64\}' >owner.token || give_up "no token was made"
chmod 600 owner.token
echo "The token is in owner.token; the server keeps only its hash."
export DPAR_TOKEN_FILE=$directory/owner.token

say "A generated bank. One part of its accounts plays the private data, the other comes later"
show dpar graph generate --tables bank
show dpar graph split --schema bank/accounts.schema.yaml --nodes bank/accounts.csv --edges bank/transfers.csv \
  --train private --test new --test-share 0.2

say "What the bank declares about its columns. It knows all of it without looking at the rows"
show cat bank/accounts.schema.yaml

say "The private part goes up. From here on, its budget is all that can be spent on it"
show dpar upload --schema bank/accounts.schema.yaml --nodes private/accounts.csv --edges private/transfers.csv --name accounts

say "Training under node-level differential privacy with epsilon 1"
show dpar train accounts --epsilon 1 --yes

say "The model and the signed statement of what it cost"
job=$(dpar jobs --json 2>/dev/null | grep -o 'tenants/demo/jobs/[a-z0-9-]*' | sed -n 1p) || true
[ -n "$job" ] || give_up "the job is not listed"
show dpar download "${job##*/}" -o model
show dpar verify model/certificate.json --model model/model.npz

say "Prediction happens here, on the new accounts; it costs nothing, and nothing is sent"
show dpar predict --model model/model.npz --nodes new/accounts.csv --edges new/transfers.csv -o predictions.csv
show head -n 4 predictions.csv
show dpar evaluate --predictions predictions.csv --nodes new/accounts.csv --model model/model.npz

say "What is left"
show dpar population show accounts

cat <<END

Done. What to try next:
  bash deploy/quickstart.sh --keep        keep the model, the certificate and the server's directory
  build/release/bin/dpard --help          run a server that stays: dpard --data-dir DIR
  build/release/bin/dpar train --help     another epsilon, or --dry-run to see plan and price first
  bash tests/run.sh                       every test
README.md goes on from here; docs/privacy.md says what exactly is promised.
END
