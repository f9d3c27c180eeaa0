#!/usr/bin/env bash
# Starts the fleet of docker-compose.yml, or brings it to the present sources: makes the secrets and .env where there are
# none, builds the image, waits until every server serves, and says what to do next. Asks nothing.
#   bash deploy/up.sh
# Needs Docker, with Compose v2 (docker compose) or docker-compose 1.29, and whoever runs it may use them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
patience=300 # Seconds for the servers to serve, once they were started.

case "${1-}" in
  "") ;;
  -h | --help)
    sed -n '2,5s/^# //p' "$0"
    exit 0
    ;;
  *)
    echo "up: unknown option '$1'; there are none" >&2
    exit 2
    ;;
esac
give_up() {
  echo "up: $*" >&2
  exit 1
}

command -v docker >/dev/null || give_up "Docker is not installed; deploy/OPERATIONS.md has the way without it"
if docker compose version >/dev/null 2>&1; then
  compose=(docker compose)
elif command -v docker-compose >/dev/null; then
  compose=(docker-compose)
else
  give_up "neither 'docker compose' nor 'docker-compose' is there"
fi

# Containers read secrets as users of their own, so that the files are open to all who reach them, and the directory is
# what keeps others on this machine away.
secrets=deploy/secrets
(umask 077 && mkdir -p "$secrets")
chmod 0700 "$secrets"
for secret in postgres_password grafana_admin_password; do
  [ ! -s "$secrets/$secret" ] || continue
  od -An -v -tx1 -N24 /dev/urandom | tr -d ' \n' >"$secrets/$secret.new"
  chmod 0444 "$secrets/$secret.new"
  mv "$secrets/$secret.new" "$secrets/$secret"
  echo "made $secrets/$secret"
done

if [ ! -e .env ]; then
  # For two servers and PostgreSQL on one machine.
  job_bytes=$(awk '/^MemTotal:/ {printf "%.0f", $2 * 1024 * 0.35}' /proc/meminfo)
  cat >.env <<END
# Read by Compose from here, whatever it is asked to do. After a change: bash deploy/up.sh
COMPOSE_PROJECT_NAME=dpar
# Where the servers are reached from: an address of this machine. 127.0.0.1 is this machine alone.
DPAR_BIND=127.0.0.1
DPAR_PORT_1=7443
DPAR_PORT_2=7444
DPAR_PAGE_PORT_1=7481
DPAR_PAGE_PORT_2=7482
# Names and addresses that clients reach them by, separated by commas; read at the first start.
DPAR_TLS_NAMES=$(uname -n)
# Memory for the jobs of each server, and how many run at once on it (0: half of the cores).
DPAR_MAX_JOB_BYTES=$job_bytes
DPAR_CONCURRENT_JOBS=0
END
  echo "made .env"
fi

if [ -z "${DPAR_COMMIT-}" ] && DPAR_COMMIT=$(git rev-parse --short=12 HEAD 2>/dev/null); then
  git diff --quiet HEAD || DPAR_COMMIT+=-modified
  export DPAR_COMMIT
fi
"${compose[@]}" up -d --build --remove-orphans

servers=(dpard-1 dpard-2)
health() { # SERVICE: starting, healthy or unhealthy
  docker inspect -f '{{.State.Health.Status}}' "$("${compose[@]}" ps -q "$1")" 2>/dev/null || echo gone
}
SECONDS=0
for server in "${servers[@]}"; do
  until [ "$(health "$server")" = healthy ]; do
    if [ $SECONDS -ge $patience ]; then
      "${compose[@]}" logs --tail 20 "$server" >&2
      give_up "$server does not serve after $patience seconds"
    fi
    sleep 1
  done
  echo "$server serves"
done

# For clients of this machine: what they trust, and who may make tenants.
inside=("${compose[@]}" exec -T "${servers[0]}")
"${inside[@]}" cat /var/lib/dpar/tls/ca.pem >"$secrets/ca.pem"
if "${inside[@]}" test -e /var/lib/dpar/operator.token; then
  (umask 077 && "${inside[@]}" cat /var/lib/dpar/operator.token >"$secrets/operator.token")
fi
published() { "${compose[@]}" port "$1" 7443 | sed 's/^0\.0\.0\.0:/127.0.0.1:/'; }
address=$(published "${servers[0]}")
cat <<END

The fleet serves at $address and $(published "${servers[1]}"). What to do next, with dpar on this machine
(bash deploy/quickstart.sh builds it, or take it out of the image: docker cp):

  export DPAR_SERVER=$address DPAR_CA=$PWD/$secrets/ca.pem DPAR_TOKEN_FILE=$PWD/$secrets/operator.token
  dpar tenant create acme
  dpar token create --tenant acme --role owner -o owner.token

or inside a container, with dpar there:

  ${compose[*]} exec ${servers[0]} dpar --ca /var/lib/dpar/tls/ca.pem --token-file /var/lib/dpar/operator.token tenant list

Keep $secrets to yourself. The operator's page: https://$("${compose[@]}" port "${servers[0]}" 7481)/. Prometheus: http://$("${compose[@]}" port prometheus 9090). Grafana, where it runs: user admin,
password in $secrets/grafana_admin_password. Stop with: ${compose[*]} down. The guide: deploy/OPERATIONS.md
END
