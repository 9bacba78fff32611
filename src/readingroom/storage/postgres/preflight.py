"""What a database and the role of its URL lack: asked before anything is written, nothing made."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from readingroom.core.settings import RoomSettings
from readingroom.storage.errors import DatabaseFailed
from readingroom.storage.postgres.database import Connection, find_database
from readingroom.storage.postgres.schema import check_schema_version

_MIN_SERVER_VERSION = 160_000
MIN_VECTOR_VERSION = (0, 8, 4)  # earlier ones overflow a buffer, or damage indexes
_EXTENSIONS = ("vector", "btree_gist", "pg_trgm", "citext")
_SCHEMAS = ("readingroom", "readingroom_federal")
_TABLE_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")
_MAX_NAMED_TABLES = 3


@dataclass(frozen=True, slots=True)
class HealthProblem:
    """Something about the database that keeps it from working well, and what to do."""

    problem: str
    fix: str
    is_note: bool = False
    """Whether it is only worth knowing: nothing fails because of it."""


def check_database(settings: RoomSettings) -> None:
    """Raise `DatabaseFailed` for the first thing that the database of the settings lacks.

    Raise `InvalidSetting` for a URL that is none, `DatabaseUnreachable`, and `SchemaTooNew`.
    """
    database = find_database(settings)
    if database is None:
        return
    with database.connection() as connection:
        for obstacle in list_obstacles(connection):
            raise DatabaseFailed(f"The database cannot be used: {obstacle.problem}; {obstacle.fix}")
        check_schema_version(connection)


def list_obstacles(connection: Connection) -> list[HealthProblem]:
    """Return what keeps us from using a database: nothing of it is in order before it is mended."""
    return [
        *_check_server(connection),
        *_check_extensions(connection),
        *_check_schemas(connection),
        *_check_tables(connection),
    ]


def parse_version(version_text: str) -> tuple[int, ...]:
    """Return the first three numbers of a version."""
    return tuple(int(version_part) for version_part in re.findall(r"\d+", version_text)[:3])


def _check_server(connection: Connection) -> Iterator[HealthProblem]:
    (server_version, only_reads) = connection.execute(
        "SELECT current_setting('server_version_num')::integer, pg_is_in_recovery()"
    ).fetchone()
    if server_version < _MIN_SERVER_VERSION:
        yield HealthProblem(
            f"PostgreSQL {server_version // 10_000} is too old",
            f"upgrade the server to {_MIN_SERVER_VERSION // 10_000} or later",
        )
    if only_reads:
        yield HealthProblem(
            "this server only reads, as a standby does",
            "name the one that writes in the URL, or both with target_session_attrs=read-write",
        )


def _check_extensions(connection: Connection) -> Iterator[HealthProblem]:
    extension_rows = connection.execute(
        "SELECT name, default_version, installed_version, "
        "       (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) "
        "       OR (has_database_privilege(current_database(), 'CREATE') "
        "           AND coalesce((SELECT bool_or(trusted) FROM pg_available_extension_versions v "
        "                         WHERE v.name = e.name AND v.version = e.default_version), false))"
        "FROM pg_available_extensions e WHERE name = ANY (?)",
        (list(_EXTENSIONS),),
    ).fetchall()
    rows_by_name = {extension_row[0]: extension_row for extension_row in extension_rows}
    for name in _EXTENSIONS:
        if name not in rows_by_name:
            package = "pgvector 0.8.4 or later" if name == "vector" else "postgresql-contrib"
            yield HealthProblem(
                f"the server does not have the extension {name}", f"install {package} there"
            )
            continue
        _, available_version, installed_version, may_create = rows_by_name[name]
        if installed_version is None and not may_create:
            yield HealthProblem(
                f"it has no extension {name}, and the role {_read_role(connection)} may not "
                "create it",
                f"run CREATE EXTENSION {name} SCHEMA public in this database as a superuser",
            )
        version = installed_version or available_version
        if name == "vector" and parse_version(version) < MIN_VECTOR_VERSION:
            wanted_version = ".".join(map(str, MIN_VECTOR_VERSION))
            yield HealthProblem(
                f"pgvector {version} has defects that can damage data",
                f"install {wanted_version} or later on the server, then run ALTER EXTENSION "
                "vector UPDATE",
            )


def _check_schemas(connection: Connection) -> Iterator[HealthProblem]:
    schema_rows = connection.execute(
        "SELECT nspname, has_schema_privilege(oid, 'USAGE') AND has_schema_privilege(oid, 'CREATE')"
        " FROM pg_namespace WHERE nspname = ANY (?)",
        (list(_SCHEMAS),),
    ).fetchall()
    is_usable_by_schema = dict(map(tuple, schema_rows))
    role = _read_role(connection)
    for schema in _SCHEMAS:
        if schema not in is_usable_by_schema:
            (may_create,) = connection.execute(
                "SELECT has_database_privilege(current_database(), 'CREATE')"
            ).fetchone()
            if not may_create:
                yield HealthProblem(
                    f"it has no schema {schema}, and the role {role} may not create one (the "
                    "right CREATE on the database)",
                    f"run CREATE SCHEMA {schema} AUTHORIZATION {role} in this database as its "
                    "owner",
                )
        elif not is_usable_by_schema[schema]:
            yield HealthProblem(
                f"the role {role} lacks the rights USAGE and CREATE on the schema {schema}",
                f"run GRANT USAGE, CREATE ON SCHEMA {schema} TO {role} as its owner, or name the "
                "owner's role in the URL",
            )
    (may_make_temporary,) = connection.execute(
        "SELECT has_database_privilege(current_database(), 'TEMPORARY')"
    ).fetchone()
    if not may_make_temporary:
        yield HealthProblem(
            f"the role {role} lacks the right TEMPORARY on the database, which a large load of "
            "federal records needs",
            "run GRANT TEMPORARY ON DATABASE … TO " + role + " as the owner of the database",
        )


def _check_tables(connection: Connection) -> Iterator[HealthProblem]:
    """Tables that another role has made: whoever has all rights to them is a member of it."""
    lacking_sql = " AND ".join(f"has_table_privilege(c.oid, '{right}')" for right in _TABLE_RIGHTS)
    foreign_tables = connection.execute(
        "SELECT relname, pg_get_userbyid(relowner) FROM pg_class c JOIN pg_namespace n "
        f"ON n.oid = relnamespace WHERE relkind = 'r' AND nspname = ANY (?) AND NOT ({lacking_sql})"
        " ORDER BY relname",
        (list(_SCHEMAS),),
    ).fetchall()
    if foreign_tables:
        role, (_, owner) = _read_role(connection), foreign_tables[0]
        table_names = _name_some([table_name for table_name, _ in foreign_tables])
        yield HealthProblem(
            f"the role {role} lacks the rights {', '.join(_TABLE_RIGHTS)} on {table_names}",
            f"run GRANT {owner} TO {role} as a superuser, or name the role {owner} in the URL",
        )


def _name_some(names: Sequence[str]) -> str:
    named = ", ".join(names[:_MAX_NAMED_TABLES])
    left_out = len(names) - _MAX_NAMED_TABLES
    return f"{named} and {left_out} more tables" if left_out > 0 else named


def _read_role(connection: Connection) -> str:
    (role,) = connection.execute("SELECT quote_ident(current_user)").fetchone()
    return str(role)
