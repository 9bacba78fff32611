"""The tables of the shared database, and how those of an older version become today's."""

import re
from collections.abc import Sequence
from typing import Any

from readingroom.storage.errors import DatabaseFailed, SchemaTooNew

SCHEMA_VERSION = 5
"""Raised with every migration; a process refuses a database with a higher one."""

_MIGRATION_LOCK_NUMBER = 7_323_108_117_105_110  # any number that no other lock has
# `btree_gist` for the text beside a range in the constraint `revisions_share_no_day`.
_POSTGRES_EXTENSIONS = ("vector", "btree_gist")

_MIGRATION_STATEMENTS_BY_VERSION: dict[int, tuple[str, ...]] = {
    1: (
        # How many writes each store has seen; a cache made at another number is out of date.
        """
        CREATE TABLE generations (
            store_name text COLLATE "C" PRIMARY KEY,
            generation bigint NOT NULL DEFAULT 0
        )
        """,
        """
        CREATE TABLE collections (
            name text COLLATE "C" PRIMARY KEY,
            generation bigint NOT NULL DEFAULT 0,
            embedding text,
            chunks bigint NOT NULL DEFAULT 0,
            tokens bigint NOT NULL DEFAULT 0
        )
        """,
        # Which chunks each write touched, for those who hold a copy of the vectors.
        """
        CREATE TABLE chunk_changes (
            collection text COLLATE "C" NOT NULL REFERENCES collections,
            generation bigint NOT NULL,
            chunk_ids text[] NOT NULL,
            PRIMARY KEY (collection, generation)
        )
        """,
        # Counts change with every write: with room in its page a row's new version needs no new
        # index entry.
        """
        CREATE TABLE stems (
            collection text COLLATE "C" NOT NULL REFERENCES collections,
            stem text COLLATE "C" NOT NULL,
            chunks integer NOT NULL,
            PRIMARY KEY (collection, stem)
        ) WITH (fillfactor = 70)
        """,
        """
        CREATE TABLE policies (
            source text COLLATE "C" PRIMARY KEY,
            record json NOT NULL
        )
        """,
        # Two revisions of a policy never share a day; checked at the end of a change, which may
        # move several of them.
        """
        CREATE TABLE revisions (
            source text COLLATE "C" NOT NULL REFERENCES policies,
            revision_id text COLLATE "C" NOT NULL,
            effective_from date NOT NULL,
            days daterange,
            record json NOT NULL,
            PRIMARY KEY (source, revision_id),
            CONSTRAINT revisions_share_no_day EXCLUDE USING gist (source WITH =, days WITH &&)
                DEFERRABLE INITIALLY DEFERRED
        )
        """,
        """
        CREATE TABLE files (
            base text COLLATE "C" NOT NULL,
            path text COLLATE "C" NOT NULL,
            file_id bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
            sha256 text NOT NULL,
            size bigint NOT NULL,
            PRIMARY KEY (base, path)
        )
        """,
        """
        CREATE TABLE file_pieces (
            file_id bigint NOT NULL REFERENCES files (file_id) ON DELETE CASCADE,
            piece_number integer NOT NULL,
            content bytea NOT NULL,
            PRIMARY KEY (file_id, piece_number)
        )
        """,
        # Most files are compressed already.
        "ALTER TABLE file_pieces ALTER COLUMN content SET STORAGE EXTERNAL",
    ),
    2: (
        """
        CREATE TABLE applications (
            reference text COLLATE "C" PRIMARY KEY,
            address text,
            description text,
            validation_date text,
            status text,
            updated_at text
        )
        """,
        """
        CREATE TABLE authorities (
            application_ref text COLLATE "C" PRIMARY KEY,
            local_authority text NOT NULL
        )
        """,
        """
        CREATE TABLE unread (
            application_ref text COLLATE "C" NOT NULL,
            file_hash text COLLATE "C" NOT NULL,
            source_file text COLLATE "C" NOT NULL,
            document_type text NOT NULL,
            outcome text NOT NULL,
            reason text NOT NULL,
            message text NOT NULL,
            at text COLLATE "C" NOT NULL,
            PRIMARY KEY (application_ref, file_hash)
        )
        """,
    ),
    3: (
        """
        CREATE TABLE api_keys (
            name text COLLATE "C" PRIMARY KEY,
            hash bytea NOT NULL UNIQUE,
            created_at text NOT NULL,
            subject text COLLATE "C" UNIQUE,
            read_only boolean NOT NULL,
            operator boolean NOT NULL
        )
        """,
    ),
    4: (
        """
        CREATE TABLE browser_sessions (
            digest text COLLATE "C" PRIMARY KEY,
            key_digest text NOT NULL,
            created_at float8 NOT NULL,
            seen_at float8 NOT NULL
        )
        """,
        """
        CREATE TABLE clients (
            client_id text COLLATE "C" PRIMARY KEY,
            metadata text NOT NULL,
            created_at float8 NOT NULL
        )
        """,
        """
        CREATE TABLE consent_requests (
            digest text COLLATE "C" PRIMARY KEY,
            client_id text NOT NULL,
            parameters text NOT NULL,
            created_at float8 NOT NULL
        )
        """,
        """
        CREATE TABLE grants (
            grant_id text COLLATE "C" PRIMARY KEY,
            client_id text COLLATE "C" NOT NULL,
            key_digest text NOT NULL,
            may_write integer NOT NULL,
            face_path text,
            parameters text NOT NULL,
            created_at float8 NOT NULL
        )
        """,
        """
        CREATE TABLE tokens (
            digest text COLLATE "C" PRIMARY KEY,
            kind text NOT NULL,
            grant_id text COLLATE "C" NOT NULL REFERENCES grants ON DELETE CASCADE,
            expires_at float8 NOT NULL,
            is_spent integer NOT NULL DEFAULT 0
        )
        """,
        "CREATE INDEX tokens_by_grant ON tokens (grant_id)",
        """
        CREATE TABLE jobs (
            id text COLLATE "C" PRIMARY KEY,
            kind text COLLATE "C" NOT NULL,
            title text NOT NULL,
            question text NOT NULL,
            state text NOT NULL,
            percent float8 NOT NULL,
            phase text NOT NULL,
            outcome text NOT NULL,
            error text NOT NULL,
            worker text NOT NULL,
            attempts integer NOT NULL,
            created_at float8 NOT NULL,
            heard_at float8 NOT NULL,
            ended_at float8 NOT NULL,
            caller text COLLATE "C" NOT NULL,
            file_bytes bigint NOT NULL
        )
        """,
        "CREATE INDEX jobs_by_state ON jobs (state, created_at)",
        # With the job: there is never a file of none.
        """
        CREATE TABLE job_files (
            job_id text COLLATE "C" NOT NULL REFERENCES jobs ON DELETE CASCADE,
            file_name text COLLATE "C" NOT NULL,
            piece_number integer NOT NULL,
            content bytea NOT NULL,
            PRIMARY KEY (job_id, file_name, piece_number)
        )
        """,
        "ALTER TABLE job_files ALTER COLUMN content SET STORAGE EXTERNAL",
        # Empty after a crash of the server: nobody has sent much since then.
        """
        CREATE UNLOGGED TABLE rate_buckets (
            caller text COLLATE "C" PRIMARY KEY,
            remaining float8 NOT NULL,
            updated_at float8 NOT NULL
        )
        """,
    ),
    5: (
        """
        CREATE TABLE waiting_texts (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            model text COLLATE "C" NOT NULL,
            digest text COLLATE "C" NOT NULL,
            passage_text text NOT NULL,
            asked_at float8 NOT NULL,
            lease_id text COLLATE "C",
            lease_until float8 NOT NULL DEFAULT 0,
            vector bytea,
            worker text COLLATE "C",
            UNIQUE (model, digest)
        )
        """,
        """
        CREATE TABLE embedding_workers (
            model text COLLATE "C" PRIMARY KEY,
            seen_at float8 NOT NULL
        )
        """,
    ),
}

_SQL_IDENTIFIER_PATTERN = re.compile(r"[a-z][a-z0-9_]{0,40}")


def migrate(connection: Any) -> None:
    """Bring the tables to today's version; processes that start at once take turns.

    Raise `SchemaTooNew` when a newer Reading Room has been here, and `DatabaseFailed` when an
    extension is missing.
    """
    with connection.transaction():
        # Without turns two processes could both find nothing there, and the slower one would fail.
        connection.execute("SELECT pg_advisory_xact_lock(?)", (_MIGRATION_LOCK_NUMBER,))
        create_version_table(connection, "readingroom", "integer NOT NULL")
        version_row = connection.execute(
            "SELECT version FROM readingroom.schema_version"
        ).fetchone()
        stored_version = version_row[0] if version_row else 0
        _check_version(stored_version)
        if stored_version == SCHEMA_VERSION:
            return
        create_extensions(connection, _POSTGRES_EXTENSIONS)
        for next_version in range(stored_version + 1, SCHEMA_VERSION + 1):
            for sql_statement in _MIGRATION_STATEMENTS_BY_VERSION[next_version]:
                connection.execute(sql_statement)
        connection.execute("DELETE FROM readingroom.schema_version")
        connection.execute("INSERT INTO readingroom.schema_version VALUES (?)", (SCHEMA_VERSION,))


def check_schema_version(connection: Any) -> None:
    """Raise `SchemaTooNew` when a newer Reading Room has been here; nothing is made or waited for.

    Raise `DatabaseFailed` where the role may not look.
    """
    (has_table,) = connection.execute(
        "SELECT to_regclass('readingroom.schema_version') IS NOT NULL"
    ).fetchone()
    if has_table:
        (stored_version,) = connection.execute(
            "SELECT max(version) FROM readingroom.schema_version"
        ).fetchone()
        _check_version(stored_version or 0)


def _check_version(stored_version: int) -> None:
    if stored_version > SCHEMA_VERSION:
        raise SchemaTooNew(
            f"The database has tables of version {stored_version}, and this Reading Room knows "
            f"those up to {SCHEMA_VERSION}; install the version that wrote them, or a later one"
        )


def create_version_table(connection: Any, schema_name: str, column_type_sql: str) -> None:
    """Create a schema and its table `schema_version` where they are missing.

    With IF NOT EXISTS, the database would ask for the right to create what is there.
    """
    (has_schema, has_table) = connection.execute(
        "SELECT to_regnamespace(?) IS NOT NULL, to_regclass(?) IS NOT NULL",
        (schema_name, f"{schema_name}.schema_version"),
    ).fetchone()
    if not has_schema:
        connection.execute(f"CREATE SCHEMA {schema_name}")
    if not has_table:
        connection.execute(f"CREATE TABLE {schema_name}.schema_version (version {column_type_sql})")


def create_extensions(connection: Any, extension_names: Sequence[str]) -> None:
    """Create the extensions that are missing; raise `DatabaseFailed`, with what to do about it."""
    for extension_name in extension_names:
        # Where it is installed already, the role need not be allowed to install it.
        try:
            connection.execute(f"CREATE EXTENSION IF NOT EXISTS {extension_name} SCHEMA public")
        except DatabaseFailed as error:
            raise DatabaseFailed(
                f"The database needs the extension {extension_name}: {error}. Install it on the "
                "server, "
                f"then run CREATE EXTENSION {extension_name} in this database as its owner"
            ) from error


def list_collection_statements(
    collection_name: str, column_field_names: tuple[str, ...]
) -> list[str]:
    """Return what creates the tables of a collection of chunks that is filtered by these fields.

    Vectors are apart from texts: a search by meaning reads all those that pass a filter.
    """
    for sql_identifier in (collection_name, *column_field_names):
        if not _SQL_IDENTIFIER_PATTERN.fullmatch(sql_identifier):
            raise ValueError(f"{sql_identifier!r} cannot be the name of a table or a column")
    chunk_columns_sql = "".join(
        f"""field_{field_name} text COLLATE "C" GENERATED ALWAYS AS
            ((metadata -> '{field_name}')::text) STORED, """
        for field_name in column_field_names
    )
    vector_columns_sql = "".join(
        f'field_{field_name} text COLLATE "C", ' for field_name in column_field_names
    )
    sql_statements = [
        f"""
        CREATE TABLE IF NOT EXISTS {collection_name}_chunks (
            chunk_number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            id text COLLATE "C" NOT NULL UNIQUE,
            body text NOT NULL,
            metadata jsonb NOT NULL,
            {chunk_columns_sql}
            words tsvector NOT NULL,
            tokens integer NOT NULL
        ) WITH (toast_tuple_target = 8160)
        """,
        f"""
        CREATE TABLE IF NOT EXISTS {collection_name}_vectors (
            id text COLLATE "C" PRIMARY KEY
                REFERENCES {collection_name}_chunks (id) ON DELETE CASCADE,
            {vector_columns_sql}
            embedding vector NOT NULL
        )
        """,
        # In the row itself: a search reads every one that passes its filter.
        f"ALTER TABLE {collection_name}_vectors ALTER COLUMN embedding SET STORAGE PLAIN",
        f"CREATE INDEX IF NOT EXISTS {collection_name}_chunks_words "
        f"ON {collection_name}_chunks USING gin (words)",
    ]
    for table_name in (f"{collection_name}_chunks", f"{collection_name}_vectors"):
        sql_statements += [
            f"CREATE INDEX IF NOT EXISTS {table_name}_{field_name} "
            f"ON {table_name} (field_{field_name})"
            for field_name in column_field_names
        ]
    return sql_statements
