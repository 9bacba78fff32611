"""Checks the shared database: versions, collation, damaged indexes, standbys, statistics."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from readingroom.storage.postgres.database import Connection, PostgresDatabase

_MIN_SERVER_VERSION = 160_000
_MIN_VECTOR_VERSION = (0, 8, 4)  # earlier ones overflow a buffer, or damage indexes
_MAX_LAG_SECONDS = 30
_MIN_COUNTED_ROWS = 10_000
_IS_OUR_SCHEMA_SQL = "LIKE 'readingroom%'"  # the common one, and one for each base that has its own


@dataclass(frozen=True, slots=True)
class HealthProblem:
    """Something about the database that keeps it from working well, and what to do."""

    problem: str
    fix: str
    is_note: bool = False
    """Whether it is only worth knowing: nothing fails because of it."""


def list_problems(postgres_database: PostgresDatabase) -> list[HealthProblem]:
    """Return what is wrong with a database. Raise `DatabaseFailed` or `SchemaTooNew`."""
    postgres_database.prepare()
    with postgres_database.connection() as connection:
        return [
            *_check_versions(connection),
            *_check_collation(connection),
            *_check_indexes(connection),
            *_check_standbys(connection),
            *_check_statistics(connection),
        ]


def _check_versions(connection: Connection) -> Iterator[HealthProblem]:
    (server_version,) = connection.execute("SHOW server_version_num").fetchone()
    if int(server_version) < _MIN_SERVER_VERSION:
        yield HealthProblem(
            f"PostgreSQL {int(server_version) // 10_000} is older than what is tested",
            f"upgrade the server to {_MIN_SERVER_VERSION // 10_000} or later",
        )
    (vector_version,) = connection.execute(
        "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    ).fetchone()
    version_numbers = tuple(
        int(version_part) for version_part in re.findall(r"\d+", vector_version)[:3]
    )
    if version_numbers < _MIN_VECTOR_VERSION:
        yield HealthProblem(
            f"pgvector {vector_version} has defects that can damage data",
            f"install {'.'.join(map(str, _MIN_VECTOR_VERSION))} or later on the server, then run "
            "ALTER EXTENSION vector UPDATE",
        )


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
