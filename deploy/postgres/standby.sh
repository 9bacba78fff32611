#!/bin/sh
# Run once, by the database's own image, when the database is made: it lets the standby in, and has
# commits wait for it from the next start on. Set on the command line, the latter would already hold
# while the image makes the database, and wait for a standby that cannot be there yet.
set -eu
echo "host replication $POSTGRES_USER all scram-sha-256" >> "$PGDATA/pg_hba.conf"
# In the cluster and not on the command line: the standby, which is a copy, must allow as many.
psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" \
  -c "ALTER SYSTEM SET max_connections = 200" \
  -c "ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (standby)'"
