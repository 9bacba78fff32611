"""What remains of the limits of callers, over all processes on one database."""

from collections.abc import Mapping

from readingroom.storage.errors import DatabaseFailed, StorageFailed
from readingroom.storage.postgres.database import PostgresDatabase, clean_text

# By the clock of the database, which is one for all processes. A bucket owes at most as much as it
# holds, so whoever sends through many processes at once waits for a minute and no longer.
_SPEND_REQUESTS_SQL = """
INSERT INTO rate_buckets AS stored (caller, remaining, updated_at)
SELECT caller, ? - spent, extract(epoch FROM clock_timestamp())
FROM unnest(?::text[], ?::float8[]) AS sent (caller, spent)
ON CONFLICT (caller) DO UPDATE SET
    remaining = greatest(
        least(?, stored.remaining + (excluded.updated_at - stored.updated_at) * ?)
        - (? - excluded.remaining), -?),
    updated_at = greatest(stored.updated_at, excluded.updated_at)
RETURNING caller, remaining
"""
# Whoever sent nothing for so long has all of its requests again.
_FORGET_OLD_BUCKETS_SQL = (
    "DELETE FROM rate_buckets WHERE updated_at < extract(epoch FROM clock_timestamp()) - 120"
)


class SharedBuckets:
    """One bucket for each caller, which every process takes its requests out of."""

    def __init__(self, postgres_database: PostgresDatabase) -> None:
        self._database = postgres_database

    def spend_requests(
        self, spent_by_caller: Mapping[str, int], requests_per_minute: int
    ) -> dict[str, float]:
        """Take requests that were made out of the buckets; return what each caller has left.

        Less than 0 when several processes let too many through at once. Raise `StorageFailed`.
        """
        bucket_capacity, requests_per_second = float(requests_per_minute), requests_per_minute / 60
        # In one order for everybody, so that nobody waits crosswise.
        caller_ids = sorted(spent_by_caller)
        spent_counts = [float(spent_by_caller[caller_id]) for caller_id in caller_ids]
        try:
            self._database.prepare()
            with self._database.lend_connection() as connection:
                bucket_rows = connection.execute(
                    _SPEND_REQUESTS_SQL,
                    (
                        bucket_capacity,
                        [clean_text(caller_id) for caller_id in caller_ids],
                        spent_counts,
                        bucket_capacity,
                        requests_per_second,
                        bucket_capacity,
                        bucket_capacity,
                    ),
                ).fetchall()
        except DatabaseFailed as error:
            raise StorageFailed(f"The limits cannot be shared: {error.message}") from error
        return {
            caller_id: float(remaining_requests) for caller_id, remaining_requests in bucket_rows
        }

    def forget_full_buckets(self) -> None:
        """Delete the buckets that are full again. Raise `StorageFailed`."""
        try:
            with self._database.lend_connection() as connection:
                connection.execute(_FORGET_OLD_BUCKETS_SQL)
        except DatabaseFailed as error:
            raise StorageFailed(f"The limits cannot be shared: {error.message}") from error
