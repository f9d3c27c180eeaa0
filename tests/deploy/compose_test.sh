#!/usr/bin/env bash
# Deploys the fleet of docker-compose.yml with real containers and uses it from outside: uploads, trains, watches,
# downloads, verifies; kills the server that runs a job and sees the other finish it; finds the tenant's epsilon in
# Prometheus; restores a backup from before that job and is refused what was spent since. Starts a Docker daemon of its
# own below a temporary directory, needs no registry, and leaves nothing.
#   bash tests/deploy/compose_test.sh [BUILD_DIRECTORY]    where bin/dpar is; build/release unless it is given
# Needs root, Docker, docker-compose, debootstrap and Debian's packages within reach. The image's build finds what the
# machine's ccache holds; DPAR_COLD=1 compiles everything. DPAR_COMPOSE_V2 names the plugin of Compose v2, which Debian 12
# does not have: then the fleet is deployed by it as well.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(cd "${1:-$repository/build/release}" && pwd)
tests=$repository/tests/deploy

skip() {
  echo "SKIPPED: $*"
  exit 77
}
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
say() { printf '\n# %s\n' "$*"; }
# For what takes long: a signal is heard at once, and not when the command has ended.
patiently() {
  "$@" &
  wait $!
}

[ "$(id -u)" -eq 0 ] || skip "a Docker daemon needs root"
for tool in dockerd docker docker-compose debootstrap python3 git ip; do
  command -v $tool >/dev/null || skip "$tool is not installed"
done
[ -x "$build/bin/dpar" ] || fail "there is no $build/bin/dpar; build it first"
PATH=$build/bin:$PATH

work=$(mktemp -d "${TMPDIR:-/tmp}/dpar-compose.XXXXXX")
export DOCKER_HOST=unix://$work/docker.sock DOCKER_CONFIG=$work/docker-config DOCKER_BUILDKIT=0
unset COMPOSE_FILE COMPOSE_PROJECT_NAME DPAR_TOKEN DPAR_TOKEN_FILE DPAR_PROFILE
daemon=
cache=

# Ends everything that was started; again and again until nothing is left, or a minute has passed.
clean_up() {
  local code=$? bridges='' left_over left
  trap - EXIT INT TERM
  set +e
  if [ -n "$daemon" ] && kill -0 "$daemon" 2>/dev/null; then
    if [ -d "$work/dpar/deploy/secrets" ]; then
      [ $code -eq 0 ] || (cd "$work/dpar" && docker-compose logs --no-color --tail 40 2>&1)
      (cd "$work/dpar" && docker-compose down -v -t 5 >/dev/null 2>&1)
    fi
    docker ps -aq | xargs -r docker rm -f >/dev/null
    bridges=$(docker network ls -q --filter driver=bridge | sed 's/^/br-/')
    docker network ls -q --filter type=custom | xargs -r docker network rm >/dev/null
    kill "$daemon"
  fi
  [ -z "$cache" ] || kill "$cache"
  wait
  for _ in $(seq 60); do
    # Shims of containers; they name our own directory, so that they are ours.
    left_over=$(pgrep -f -- "(docker|containerd).* $work/")
    [ -n "$left_over" ] || break
    # shellcheck disable=SC2086
    kill -KILL $left_over 2>/dev/null
    sleep 1
  done
  awk -v below="$work/" 'index($5, below) == 1 {print $5}' /proc/self/mountinfo | sort -r | xargs -r -n1 umount -l
  for bridge in $bridges; do ip link delete "$bridge" 2>/dev/null; done
  left=$(
    pgrep -af -- "(docker|containerd).* $work/"
    awk -v below="$work" 'index($5, below) == 1 {print "mounted: " $5}' /proc/self/mountinfo
    for bridge in $bridges; do ip -o link show "$bridge" 2>/dev/null; done
  )
  rm -rf --one-file-system "$work" || left+=" $work"
  if [ -n "$left" ]; then
    echo "FAILED: left behind: $left" >&2
    code=1
  fi
  [ $code -ne 0 ] || echo "PASSED: nothing is left running"
  exit $code
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say "A Docker daemon of our own"
mkdir -p "$DOCKER_CONFIG"
dockerd --data-root "$work/docker" --exec-root "$work/exec" --pidfile "$work/docker.pid" --host "$DOCKER_HOST" \
  --storage-driver overlay2 --iptables=false --ip6tables=false --ip-forward=false --bridge none \
  >"$work/dockerd.log" 2>&1 &
daemon=$!
for _ in $(seq 60); do
  ! docker version >/dev/null 2>&1 || break
  kill -0 "$daemon" 2>/dev/null || break
  sleep 1
done
if ! docker version >/dev/null 2>&1; then
  tail -n 5 "$work/dockerd.log"
  skip "dockerd does not start here; its log ends above"
fi

say "A bare Debian, as debian:bookworm-slim, with this machine's way to Debian's packages"
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
  awk '/^deb /{for (i = 2; i <= NF; i++) if ($i ~ /^https?:.*debian/) {print $i; exit}} /^URIs:.*debian/{print $2; exit}' ||
  true)
patiently debootstrap --variant=minbase bookworm "$work/root" ${mirror:+"$mirror"} >"$work/debootstrap.log" 2>&1 || {
  tail -n 5 "$work/debootstrap.log"
  skip "debootstrap cannot fetch Debian; its log ends above"
}
cp /etc/resolv.conf "$work/root/etc/resolv.conf"
rm -f "$work/root/etc/apt/sources.list"
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
  [ ! -f "$file" ] || ! grep -q debian "$file" || grep -q signed-by=/etc "$file" || cp "$file" "$work/root$file"
done
cp -a /etc/apt/apt.conf.d "$work/root/etc/apt/"
# As the official image has it: nobody needs a layer that is half written.
echo force-unsafe-io >"$work/root/etc/dpkg/dpkg.cfg.d/docker-apt-speedup"
rm -rf "$work/root"/var/cache/apt/archives/*.deb
tar -C "$work/root" -c . | docker import - debian:bookworm-slim >/dev/null
rm -rf --one-file-system "$work/root"

# A copy, since .env and the secrets are made beside docker-compose.yml.
mkdir "$work/dpar"
git -C "$repository" ls-files -z --cached --others --exclude-standard | (cd "$repository" && tar --null -T - -c) |
  tar -C "$work/dpar" -x
cd "$work/dpar"
DPAR_COMMIT=$(git -C "$repository" rev-parse --short=12 HEAD)
export DPAR_COMMIT
if [ -z "${DPAR_COLD-}" ] && command -v ccache >/dev/null; then
  python3 "$tests/ccache_server.py" "$(ccache -k cache_dir)" >"$work/ccache.port" &
  cache=$!
  until [ -s "$work/ccache.port" ]; do sleep 0.1; done
  DPAR_CCACHE=http://127.0.0.1:$(cat "$work/ccache.port")
  export DPAR_CCACHE
fi
# Ports that are free; the rest as up.sh would write it.
cat >.env <<'END'
COMPOSE_PROJECT_NAME=dpar
COMPOSE_FILE=docker-compose.yml:deploy/compose.standin.yml
DPAR_PORT_1=0
DPAR_PORT_2=0
DPAR_PAGE_PORT_1=0
DPAR_PAGE_PORT_2=0
DPAR_PROMETHEUS_PORT=0
END

say "Every combination of compose files is valid"
bash deploy/up.sh --help >/dev/null
mkdir -p deploy/secrets && touch deploy/secrets/{postgres_password,grafana_admin_password}
docker-compose -f docker-compose.yml config -q
docker-compose config -q
DPAR_LIBTORCH=http://host/archive.zip DPAR_LIBTORCH_SHA256=0 \
  docker-compose -f docker-compose.yml -f deploy/compose.gpu.yml config -q
rm -rf deploy/secrets

say "The images, by the Dockerfile, unit tests included"
SECONDS=0
patiently docker build --network host --build-arg CCACHE_REMOTE_STORAGE="${DPAR_CCACHE-}" --build-arg DPAR_COMMIT="$DPAR_COMMIT" \
  -f deploy/docker/Dockerfile -t dpar:latest . >"$work/build.log" 2>&1 || {
  tail -n 60 "$work/build.log"
  fail "the image cannot be built; the log ends above"
}
grep -E '^(collect:|[0-9]+% tests passed|Total Test time)' "$work/build.log"
megabytes() { echo $(($(docker image inspect -f '{{.Size}}' "$1") / 1000000)); }
echo "image size: $(megabytes dpar:latest) MB, of which $(megabytes debian:bookworm-slim) MB are the base;" \
  "built in $SECONDS s"
(cd deploy/docker && for target in postgres prometheus; do
  docker build --network host -f standin.Dockerfile --target $target -t dpar-standin-$target . >"$work/standin.log" 2>&1 ||
    { tail -n 20 "$work/standin.log" && exit 1; }
done) || fail "a stand-in cannot be built"

say "bash deploy/up.sh"
SECONDS=0
patiently bash deploy/up.sh >"$work/up.log" 2>&1 || {
  tail -n 60 "$work/up.log"
  fail "the fleet does not start"
}
echo "time to ready: $SECONDS s, from nothing to two healthy servers"
sed -n '/^The fleet serves/,$p' "$work/up.log"

say "What runs is unprivileged, on a read-only root, and its secrets are in files"
container() { docker-compose ps -q "$1"; }
[ "$(docker-compose exec -T dpard-1 id -u)" = 10001 ] || fail "dpard does not run as user 10001"
! docker-compose exec -T dpard-1 touch /usr/bin/written 2>/dev/null || fail "the root file system can be written"
! docker-compose exec -T dpard-1 grep -qE '^CapEff:.*[1-9a-f]' /proc/1/status || fail "dpard has capabilities"
password=$(cat deploy/secrets/postgres_password)
for service in dpard-1 dpard-2 postgres; do
  ! docker inspect "$(container $service)" | grep -qF "$password" || fail "the password is in $service's configuration"
done
! docker-compose exec -T dpard-1 bash -c "tr '\\0' '\\n' </proc/1/environ" | grep -qF "$password" ||
  fail "the password is in dpard's environment"
[ "$(stat -c %a deploy/secrets)" = 700 ] || fail "others reach the secrets"

say "From outside: upload, train, watch, download, verify"
export XDG_CONFIG_HOME=$work/config XDG_DATA_HOME=$work/share DPAR_CA=$PWD/deploy/secrets/ca.pem
address() { docker-compose port "$1" 7443; }
DPAR_SERVER=$(address dpard-1)
export DPAR_SERVER DPAR_TOKEN_FILE=$PWD/deploy/secrets/operator.token
mkdir "$work/client" && cd "$work/client"
dpar tenant create acme
dpar token create --tenant acme --role owner -o owner.token >/dev/null
export DPAR_TOKEN_FILE=$work/client/owner.token
dpar graph generate -o graph.npz --nodes 6000
dpar graph split graph.npz --train private.npz --test query.npz --test-share 0.33
dpar upload private.npz --name people
dpar train people --epsilon 1 --yes
job=$(dpar jobs --json 2>/dev/null | grep -o 'tenants/acme/jobs/[a-z0-9-]*' | sed -n 1p)
dpar download "${job##*/}" -o model
(cd "$work/dpar" && docker-compose exec -T dpard-2 dpard keys print) >trusted-keys.pem
dpar verify model/certificate.json --model model/model.npz --key trusted-keys.pem | tail -n 1
dpar predict --model model/model.npz --graph query.npz -o predictions.csv

(cd "$work/dpar" && docker-compose exec -T dpard-2 bash -c 'compgen -G "/var/lib/dpar-witness/acme/*.mark"' >/dev/null) ||
  fail "what was released is not marked in the witness directory"

say "A backup, while both servers serve"
install -d -m 0700 -o 10001 -g 10001 "$work/backup"
# What dpard says, run as OPERATIONS.md has it, with a place to write to.
aside() { (cd "$work/dpar" && docker-compose run --rm -T -v "$work/backup:/backup" dpard-1 "$@" 2>&1); }
aside backup /backup/first
[ -s "$work/backup/first/store.pgdump" ] || fail "there is no dump in the backup: $(ls "$work/backup/first")"

say "The server that runs a job is killed, and the other finishes it"
# A quarter of a minute of steps on an idle machine, so that the job cannot end before its server does.
dpar train people --epsilon 0.5 --steps 150000 --no-watch --yes
job=$(dpar jobs --json 2>/dev/null | grep -o 'tenants/acme/jobs/[a-z0-9-]*' | sed -n 1p)
cd "$work/dpar"
starts() { docker-compose logs --no-color "$1" 2>/dev/null | grep -cF "$job starts" || true; }
runner=
for _ in $(seq 120); do
  for server in dpard-1 dpard-2; do [ "$(starts $server)" = 0 ] || runner=$server; done
  [ -z "$runner" ] || break
  sleep 0.5
done
[ -n "$runner" ] || fail "no server starts $job"
other=dpard-$((3 - ${runner#dpard-}))
docker kill "$(container "$runner")" >/dev/null
echo "killed $runner, which ran ${job##*/}"
DPAR_SERVER=$(address $other)
cd "$work/client"
dpar job show "${job##*/}" --json 2>/dev/null | grep -q '"state":"running"' || fail "the job had ended before"
patiently timeout 900 dpar job watch "${job##*/}" || fail "$other does not finish the job"
cd "$work/dpar"
[ "$(starts $other)" = 1 ] || fail "$other did not start the job exactly once"
cd "$work/client"
dpar download "${job##*/}" -o second
dpar verify second/certificate.json --model second/model.npz --key trusted-keys.pem | tail -n 1
dpar population show people
# Two jobs, each of them posted once.
[ "$(dpar population history people --json 2>/dev/null | grep -o '"kind":"post"' | wc -l)" = 2 ] ||
  fail "not two entries were posted: $(dpar population history people)"

say "Prometheus has the tenant's epsilon"
cd "$work/dpar"
docker-compose up -d "$runner" >/dev/null 2>&1
prometheus=http://$(docker-compose port prometheus 9090)
query() { # EXPRESSION: its values, one a line
  python3 - "$prometheus" "$1" <<'END'
import json, sys, urllib.parse, urllib.request
url = f"{sys.argv[1]}/api/v1/query?{urllib.parse.urlencode({'query': sys.argv[2]})}"
for sample in json.load(urllib.request.urlopen(url, timeout=60))["data"]["result"]:
    print(sample["value"][1])
END
}
spent='max(dpar_budget_equivalent_epsilon{tenant="acme", population="people"})'
# Both jobs: more than the first one alone, and no more than both added up.
for _ in $(seq 120); do
  epsilon=$(query "$spent > 1 and $spent <= 1.5")
  [ -z "$epsilon" ] || break
  sleep 1
done
[ -n "$epsilon" ] || fail "Prometheus has no epsilon between 1 and 1.5 for acme/people, but: $(query "$spent")"
echo "$spent is $epsilon"
for _ in $(seq 120); do
  [ "$(query 'sum(up{job="dpard"})')" != 2 ] || break
  sleep 1
done
[ "$(query 'sum(up{job="dpard"})')" = 2 ] || fail "Prometheus does not see both servers"
python3 tests/deploy/queries.py run "$prometheus"

say "A server that is told to stop does, and says so with its exit code"
stopped=$(container dpard-1)
docker-compose stop dpard-1 >/dev/null 2>&1
[ "$(docker inspect -f '{{.State.ExitCode}}' "$stopped")" = 0 ] ||
  fail "dpard as process 1 ended with $(docker inspect -f '{{.State.ExitCode}}' "$stopped") on SIGTERM"
docker logs "$stopped" 2>&1 | grep -q 'stopping on SIGTERM' || fail "dpard was killed, not stopped"

say "After a restore, what was spent since the backup cannot be spent again"
docker-compose stop dpard-2 >/dev/null 2>&1
aside restore /backup/first --replace >"$work/restore.log" || fail "the backup cannot be restored: $(cat "$work/restore.log")"
grep 'FROZEN: tenants/acme/datasets/people' "$work/restore.log" || fail "nothing is frozen: $(cat "$work/restore.log")"
patiently bash deploy/up.sh >"$work/up.log" 2>&1 || {
  tail -n 60 "$work/up.log"
  fail "the restored fleet does not start"
}
DPAR_SERVER=$(address dpard-1)
! dpar train people --epsilon 0.5 --yes >"$work/refused.log" 2>&1 || fail "a frozen budget was spent from"
grep -q 'dpard thaw' "$work/refused.log" || fail "refused for another reason: $(cat "$work/refused.log")"
docker-compose exec -T dpard-1 dpard thaw tenants/acme/datasets/people --reason "a test restored a backup"
dpar train people --epsilon 0.5 --yes
docker-compose exec -T dpard-1 dpard check || fail "dpard check finds something amiss"

say "And it all goes down"
docker-compose down -v >/dev/null 2>&1
[ -z "$(docker ps -aq)" ] || fail "containers are left: $(docker ps -a)"

if [ -n "${DPAR_COMPOSE_V2-}" ]; then
  say "The same with Compose v2"
  mkdir -p "$DOCKER_CONFIG/cli-plugins"
  ln -s "$DPAR_COMPOSE_V2" "$DOCKER_CONFIG/cli-plugins/docker-compose"
  docker compose version
  docker compose -f docker-compose.yml config -q
  docker compose config -q
  DPAR_LIBTORCH=http://host/archive.zip DPAR_LIBTORCH_SHA256=0 \
    docker compose -f docker-compose.yml -f deploy/compose.gpu.yml config -q
  SECONDS=0
  patiently bash deploy/up.sh >"$work/up.log" 2>&1 || {
    tail -n 60 "$work/up.log"
    fail "the fleet does not start"
  }
  grep -q "Stop with: docker compose down" "$work/up.log" || fail "up.sh did not use Compose v2"
  echo "time to ready: $SECONDS s"
  DPAR_SERVER=$(docker compose port dpard-2 7443)
  DPAR_TOKEN_FILE=$PWD/deploy/secrets/operator.token dpar tenant create acme
  docker compose down -v >/dev/null 2>&1
  [ -z "$(docker ps -aq)" ] || fail "containers are left: $(docker ps -a)"
fi
