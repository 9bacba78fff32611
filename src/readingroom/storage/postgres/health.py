"""Checks the shared database: versions, collation, damaged indexes, standbys, statistics."""

from collections.abc import Iterator

from readingroom.storage.errors import DatabaseFailed
from readingroom.storage.postgres.database import Connection, PostgresDatabase
from readingroom.storage.postgres.preflight import HealthProblem, list_obstacles

_MAX_LAG_SECONDS = 30
_MIN_COUNTED_ROWS = 10_000
_IS_OUR_SCHEMA_SQL = "LIKE 'readingroom%'"  # the common one, and one for each base that has its own


def list_problems(postgres_database: PostgresDatabase) -> list[HealthProblem]:
    """Return what is wrong with a database. Raise `DatabaseFailed` or `SchemaTooNew`."""
    with postgres_database.connection() as connection:
        obstacles = list_obstacles(connection)
    try:
        postgres_database.prepare()
    except DatabaseFailed:
        if obstacles:
            return obstacles  # which is why
        raise
    with postgres_database.connection() as connection:
        return [
            *obstacles,
            *_check_collation(connection),
            *_check_indexes(connection),
            *_check_standbys(connection),
            *_check_statistics(connection),
        ]


def _check_collation(connection: Connection) -> Iterator[HealthProblem]:
    (has_other_collation_version,) = connection.execute(
        "SELECT datcollversion IS DISTINCT FROM pg_database_collation_actual_version(oid) "
        "FROM pg_database WHERE datname = current_database()"
    ).fetchone()
    if has_other_collation_version:
        yield HealthProblem(
            "the operating system sorts texts otherwise than when the database was made",
            "REINDEX DATABASE, then ALTER DATABASE … REFRESH COLLATION VERSION",
        )
    (compares_bytes,) = connection.execute("SELECT 'B'::text < 'a'::text").fetchone()
    if not compares_bytes:
        yield HealthProblem(
            "texts are sorted by the rules of a language, so some lists have another order than "
            "in a data directory",
            "migrate to a database that was made with LOCALE_PROVIDER builtin LOCALE 'C.UTF-8'",
            is_note=True,
        )


def _check_indexes(connection: Connection) -> Iterator[HealthProblem]:
    invalid_indexes = connection.execute(
        "SELECT nspname, relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
        "JOIN pg_namespace ON pg_namespace.oid = relnamespace "
        f"WHERE nspname {_IS_OUR_SCHEMA_SQL} AND NOT indisvalid ORDER BY nspname, relname"
    ).fetchall()
    for schema_name, index_name in invalid_indexes:
        yield HealthProblem(
            f"the index {index_name} is not valid", f"REINDEX INDEX {schema_name}.{index_name}"
        )


def _check_standbys(connection: Connection) -> Iterator[HealthProblem]:
    standby_rows = connection.execute(
        "SELECT application_name, extract(epoch FROM replay_lag) FROM pg_stat_replication"
    ).fetchall()
    for standby_name, lag_seconds in standby_rows:
        if lag_seconds is not None and lag_seconds > _MAX_LAG_SECONDS:
            yield HealthProblem(
                f"the standby {standby_name} is {lag_seconds:.0f} seconds behind",
                "look at its log and its disk: what it has not got is lost with this server",
            )


def _check_statistics(connection: Connection) -> Iterator[HealthProblem]:
    table_rows = connection.execute(
        "SELECT schemaname, relname FROM pg_stat_user_tables "
        f"WHERE schemaname {_IS_OUR_SCHEMA_SQL} AND n_live_tup > ? AND last_analyze IS NULL "
        "AND last_autoanalyze IS NULL ORDER BY schemaname, relname",
        (_MIN_COUNTED_ROWS,),
    ).fetchall()
    for schema_name, table_name in table_rows:
        yield HealthProblem(
            f"nothing is known about the rows of {table_name}, so searches may be slow",
            f"ANALYZE {schema_name}.{table_name}, and see that autovacuum runs",
            is_note=True,
        )
