#!/usr/bin/env bash
# Makes the database on the first start, by the same settings as the official image, and becomes the server.
set -euo pipefail
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  # The settings are words, as in the official image.
  # shellcheck disable=SC2086
  initdb -U "$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --auth-local=trust ${POSTGRES_INITDB_ARGS-}
  echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
  pg_ctl -w -o "-c listen_addresses= -k /tmp" start
  createdb -h /tmp -U "$POSTGRES_USER" "$POSTGRES_DB"
  pg_ctl -w -m fast stop
fi
exec postgres -c 'listen_addresses=*' -k /tmp
