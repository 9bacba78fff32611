"""The tables of the federal base, all in one SQLite file.

A record is stored once, as the JSON it is answered with. The columns that lists filter and sort by
are generated from that JSON, so no column can disagree with its record.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from readingroom.bases.federal.schema.sources import SOURCES, Column, Source
from readingroom.engine.words import make_fts5_tokenizer_option
from readingroom.storage.database import Database
from readingroom.storage.errors import StorageFailed

# Reading Room 0.1.0 wrote this number, after nine migrations that no release had needed: they
# became the one script below, and the number stayed so that files of 0.1.0 open unchanged.
SCHEMA_VERSION = 9

CITATION_FIELDS = (
    "source_url",
    "source_org",
    "published_at",
    "retrieved_at",
    "raw_sha256",
    "citation_string",
)

RECORD_COLUMNS = (
    *("id", "record", "loader"),
    *("status", "tombstone_at", "tombstone_reason", "successor_id"),
)
"""The columns of a table of records that are written; the others are computed from `record`."""

PARENT_COLUMN_BY_CHILD_TABLE = {
    "bill_cosponsors": "bill_id",
    "bill_actions": "bill_id",
    "bill_committees": "bill_id",
    "bill_summaries": "bill_id",
    "member_votes": "vote_id",
    "hearing_witnesses": "hearing_id",
}
"""Child tables, each with the column that holds the id of the record a row belongs to."""


def ensure_schema(db: Database, database_path: Path) -> None:
    """Create the tables in a new file; check that those of an existing one can be used.

    Tables and columns of sources that were added to `SOURCES` later are added to the file.
    Raise StorageFailed when another version of Reading Room wrote the file.
    """
    if _read_schema_version(db) == 0:
        with db.transaction():
            # Another process may have created them while this one waited for the lock.
            if _read_schema_version(db) == 0:
                for sql_statement in list_statements():
                    db.execute(sql_statement)
                db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    _check_schema_version(_read_schema_version(db), database_path)
    if any(_list_missing_statements(db)):
        with db.transaction():
            for sql_statement in list(_list_missing_statements(db)):
                db.execute(sql_statement)


def lacks_agencies(db: Database) -> bool:
    """Return whether records name agencies, but were loaded before there was a registry of them."""
    is_registry_empty = db.execute("SELECT 1 FROM agencies LIMIT 1").fetchone() is None
    agency_facet_row = db.execute("SELECT 1 FROM facets WHERE field = 'agency' LIMIT 1").fetchone()
    return is_registry_empty and agency_facet_row is not None


def _read_schema_version(db: Database) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _check_schema_version(stored_version: int, database_path: Path) -> None:
    if stored_version > SCHEMA_VERSION:
        raise StorageFailed(
            f"{database_path.name} was written by a newer Reading Room (schema {stored_version}, "
            "this one reads "
            f"{SCHEMA_VERSION}): install that version, or restore an older backup"
        )
    if stored_version < SCHEMA_VERSION:
        raise StorageFailed(
            f"{database_path.name} was written by a Reading Room older than 0.1.0 "
            f"(schema {stored_version}, this "
            f"one reads {SCHEMA_VERSION}): move the file away and load the official files again "
            "with `readingroom federal load`"
        )


def _list_missing_statements(db: Database) -> Iterator[str]:
    """Yield the SQL of tables, columns and indexes that the file lacks, being older than them."""
    for source_definition in SOURCES:
        existing_column_names = {
            info_row[1] for info_row in db.execute(f"PRAGMA table_xinfo({source_definition.name})")
        }
        if not existing_column_names:
            yield from _list_table_statements(source_definition)
            continue
        for table_column in source_definition.columns:
            if table_column.name not in existing_column_names:
                # SQLite cannot add a column that it would have to store in every row.
                column_sql = _build_generated_column_sql(table_column).replace("STORED", "VIRTUAL")
                yield f"ALTER TABLE {source_definition.name} ADD COLUMN {column_sql}"
        for index_name, index_columns in build_source_indexes(source_definition).items():
            indexed_column_names = [
                info_row[2] for info_row in db.execute(f"PRAGMA index_info({index_name})")
            ]
            if indexed_column_names != [
                index_column.removesuffix(" DESC") for index_column in index_columns
            ]:
                # Those of 0.1.0 end in the column they are named after, so its lists were sorted.
                yield f"DROP INDEX IF EXISTS {index_name}"
                yield _build_create_index_sql(source_definition, index_name, index_columns)
    vote_column_names = {info_row[1] for info_row in db.execute("PRAGMA table_xinfo(member_votes)")}
    if vote_column_names and "standard_position" not in vote_column_names:
        yield f"ALTER TABLE member_votes ADD COLUMN {_STANDARD_POSITION_COLUMN_SQL}"
    for added_table_name, added_table_statements in _STATEMENTS_BY_ADDED_TABLE.items():
        if not db.execute(f"PRAGMA table_info({added_table_name})").fetchall():
            yield from added_table_statements


def list_statements() -> Iterator[str]:
    """Yield every statement that makes a new file."""
    for source_definition in SOURCES:
        yield from _list_table_statements(source_definition)
    for sql_statement in list_fixed_statements():
        yield sql_statement.replace("{tokenizer}", make_fts5_tokenizer_option())


def list_fixed_statements() -> tuple[str, ...]:
    """Return what makes the tables that belong to no source alone."""
    return _FIXED_TABLE_STATEMENTS


def _list_table_statements(source_definition: Source) -> Iterator[str]:
    generated_columns_sql = "".join(
        f",\n    {_build_generated_column_sql(table_column)}"
        for table_column in source_definition.columns
    )
    citation_columns_sql = "".join(
        f",\n    {citation_field} TEXT "
        f"GENERATED ALWAYS AS (json_extract(record, '$.{citation_field}')) VIRTUAL"
        for citation_field in CITATION_FIELDS
        if citation_field != "published_at"
    )
    yield f"""
CREATE TABLE {source_definition.name} (
    id TEXT PRIMARY KEY,
    record TEXT NOT NULL CHECK (json_valid(record)),
    loader TEXT NOT NULL,
    published_at TEXT GENERATED ALWAYS AS (json_extract(record, '$.published_at')) STORED,
    status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'withdrawn')),
    tombstone_at TEXT,
    tombstone_reason TEXT,
    successor_id TEXT{generated_columns_sql}{citation_columns_sql}
)"""
    for index_name, index_columns in build_source_indexes(source_definition).items():
        yield _build_create_index_sql(source_definition, index_name, index_columns)


def _build_create_index_sql(
    source_definition: Source, index_name: str, index_columns: Sequence[str]
) -> str:
    return f"CREATE INDEX {index_name} ON {source_definition.name} ({', '.join(index_columns)})"


_LIST_ORDER_COLUMNS = ("published_at DESC", "id")


def build_source_indexes(source_definition: Source) -> dict[str, tuple[str, ...]]:
    """Return the indexes of a source's table by name, each with the columns of its key.

    All but the last end in the order of lists, so that a page of a filtered list is read without
    sorting everything that passes the filter. The last has every column that aggregates use: they
    read it instead of the table, whose rows hold long records.
    """
    return {
        f"{source_definition.name}_newest": _LIST_ORDER_COLUMNS,
        **{
            f"{source_definition.name}_{table_column.name}": (
                table_column.name,
                *_LIST_ORDER_COLUMNS,
            )
            for table_column in source_definition.record_table.filter_columns
        },
        f"{source_definition.name}_facts": (
            "published_at",
            "status",
            *(table_column.name for table_column in source_definition.columns),
            "id",
        ),
    }


def list_path_steps(table_column: Column) -> list[str]:
    """Return the fields, and indexes of lists, that lead to a column's value in its record."""
    return re.findall(r"[^.\[\]$]+", table_column.json_path or table_column.name)


def _build_generated_column_sql(table_column: Column) -> str:
    json_path = table_column.json_path or f"$.{table_column.name}"
    generation_sql = f"GENERATED ALWAYS AS (json_extract(record, '{json_path}')) STORED"
    return f"{table_column.name} {table_column.sql_type} {generation_sql}"


# 0.1.0 wrote the date of the newest record where now the date stands up to which all are here.
_MOVE_NEWEST_DATES_STATEMENTS = (
    "INSERT INTO coverage (source, newest_record_at) SELECT source, loaded_up_to FROM progress",
    "UPDATE progress SET loaded_up_to = NULL",
)

_BILL_SUMMARIES_SQL = """
CREATE TABLE bill_summaries (
    bill_id TEXT NOT NULL REFERENCES bills ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (bill_id, ordinal)
) WITHOUT ROWID"""

# Up to which day a source is known to be complete: its files say so, or a sync did.
_COVERAGE_SQL = """
CREATE TABLE coverage (
    source TEXT PRIMARY KEY,
    newest_record_at TEXT,
    complete_from TEXT,
    complete_up_to TEXT,
    known_by TEXT
)"""

# What the chambers print in their own words; the word in `position` stays as it is.
_STANDARD_POSITION_COLUMN_SQL = """standard_position TEXT GENERATED ALWAYS AS (
        CASE lower(position)
            WHEN 'yea' THEN 'yea' WHEN 'aye' THEN 'yea' WHEN 'guilty' THEN 'yea'
            WHEN 'nay' THEN 'nay' WHEN 'no' THEN 'nay' WHEN 'not guilty' THEN 'nay'
            WHEN 'not voting' THEN 'not_voting'
            ELSE CASE WHEN lower(position) LIKE 'present%' THEN 'present' END
        END) VIRTUAL"""

# Who is embedding a passage, and until when nobody else should.
_EMBEDDING_LEASES_SQL = """
CREATE TABLE embedding_leases (
    chunk INTEGER PRIMARY KEY REFERENCES chunks ON DELETE CASCADE,
    lease_id TEXT NOT NULL,
    expires_at REAL NOT NULL
)"""
# Which worker's key a vector came with, so that all of them can be taken back.
_EMBEDDED_ELSEWHERE_SQL = """
CREATE TABLE embedded_elsewhere (
    chunk INTEGER PRIMARY KEY REFERENCES chunks ON DELETE CASCADE,
    worker TEXT NOT NULL
)"""

_STATEMENTS_BY_ADDED_TABLE = {
    "bill_summaries": (_BILL_SUMMARIES_SQL,),
    "coverage": (_COVERAGE_SQL, *_MOVE_NEWEST_DATES_STATEMENTS),
    "embedding_leases": (_EMBEDDING_LEASES_SQL,),
    "embedded_elsewhere": (_EMBEDDED_ELSEWHERE_SQL,),
}
"""Tables that files of 0.1.0 lack, beside those of sources, with the statements that add them."""

_CHILD_TABLE_STATEMENTS = (
    """
CREATE TABLE bill_cosponsors (
    bill_id TEXT NOT NULL REFERENCES bills ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    bioguide_id TEXT REFERENCES legislators,
    record TEXT NOT NULL,
    PRIMARY KEY (bill_id, ordinal)
) WITHOUT ROWID""",
    "CREATE INDEX bill_cosponsors_person ON bill_cosponsors (bioguide_id)",
    """
CREATE TABLE bill_actions (
    bill_id TEXT NOT NULL REFERENCES bills ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    date TEXT NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (bill_id, ordinal)
) WITHOUT ROWID""",
    """
CREATE TABLE bill_committees (
    bill_id TEXT NOT NULL REFERENCES bills ON DELETE CASCADE,
    committee_id TEXT NOT NULL REFERENCES committees,
    PRIMARY KEY (bill_id, committee_id)
) WITHOUT ROWID""",
    "CREATE INDEX bill_committees_committee ON bill_committees (committee_id)",
    _BILL_SUMMARIES_SQL,
    """
CREATE TABLE member_votes (
    vote_id TEXT NOT NULL REFERENCES roll_call_votes ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    bioguide_id TEXT REFERENCES legislators,
    lis TEXT,
    congress INTEGER NOT NULL,
    sorted_at TEXT NOT NULL,
    name TEXT NOT NULL,
    party TEXT,
    state TEXT,
    position TEXT NOT NULL,
    {standard_position},
    PRIMARY KEY (vote_id, ordinal)
) WITHOUT ROWID""".replace("{standard_position}", _STANDARD_POSITION_COLUMN_SQL),
    """
CREATE INDEX member_votes_person
    ON member_votes (bioguide_id, congress, sorted_at DESC, vote_id)""",
    "CREATE INDEX member_votes_unknown ON member_votes (lis) WHERE bioguide_id IS NULL",
    """
CREATE TABLE hearing_witnesses (
    hearing_id TEXT NOT NULL REFERENCES hearings ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (hearing_id, ordinal)
) WITHOUT ROWID""",
    # The text of a record, or one version of a bill's text. Stored in one piece beside its chunks,
    # which overlap and could not be put together again.
    """
CREATE TABLE texts (
    record_id TEXT NOT NULL,
    part TEXT NOT NULL,
    stage TEXT,
    dated TEXT,
    title TEXT NOT NULL,
    url TEXT NOT NULL,
    raw_sha256 TEXT NOT NULL,
    loader TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (record_id, part)
)""",
)

_SEARCH_STATEMENTS = (
    """
CREATE TABLE documents (
    doc INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    source TEXT NOT NULL,
    published_at TEXT
)""",
    "CREATE INDEX documents_source ON documents (source, published_at)",
    """
CREATE TABLE facets (
    field TEXT NOT NULL,
    value TEXT NOT NULL COLLATE NOCASE,
    doc INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    PRIMARY KEY (field, value, doc)
) WITHOUT ROWID""",
    "CREATE INDEX facets_doc ON facets (doc)",
    # `part` names what a loader replaces as a whole: the head of a record, or its text. The table
    # is narrow so that a search can look up the record of a passage without reading passages.
    # Numbers are never used again: an index in memory may still refer to them.
    """
CREATE TABLE chunks (
    chunk INTEGER PRIMARY KEY AUTOINCREMENT,
    doc INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    part TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    UNIQUE (doc, part, ordinal)
)""",
    """
CREATE TABLE passages (
    chunk INTEGER PRIMARY KEY REFERENCES chunks ON DELETE CASCADE,
    start INTEGER NOT NULL,
    title TEXT NOT NULL DEFAULT '',
    abstract TEXT NOT NULL DEFAULT '',
    action TEXT NOT NULL DEFAULT '',
    body TEXT NOT NULL DEFAULT ''
)""",
    # `seq` rises with every change, so that an index in memory can ask for what is new.
    """
CREATE TABLE vectors (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    chunk INTEGER NOT NULL UNIQUE REFERENCES chunks ON DELETE CASCADE,
    model TEXT NOT NULL,
    embedding BLOB NOT NULL
)""",
    _EMBEDDING_LEASES_SQL,
    _EMBEDDED_ELSEWHERE_SQL,
    # Cut into words as the engine cuts them. Whoever adds passages adds them to this index too,
    # many at once: a trigger for each row would be slower.
    """
CREATE VIRTUAL TABLE passages_fts USING fts5 (
    title, abstract, action, body,
    content='passages', content_rowid='chunk', tokenize="{tokenizer}"
)""",
    """
CREATE TRIGGER passages_removed AFTER DELETE ON passages BEGIN
    INSERT INTO passages_fts (passages_fts, rowid, title, abstract, action, body)
    VALUES ('delete', old.chunk, old.title, old.abstract, old.action, old.body);
END""",
    """
CREATE TRIGGER passages_changed AFTER UPDATE ON passages BEGIN
    INSERT INTO passages_fts (passages_fts, rowid, title, abstract, action, body)
    VALUES ('delete', old.chunk, old.title, old.abstract, old.action, old.body);
    INSERT INTO passages_fts (rowid, title, abstract, action, body)
    VALUES (new.chunk, new.title, new.abstract, new.action, new.body);
END""",
)

# A link goes out from the record whose file states it. Neither end is a foreign key, because a file
# may mention what is not loaded yet. A link without evidence cannot be stored.
_LINKS_STATEMENTS = (
    """
CREATE TABLE links (
    from_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    to_id TEXT NOT NULL,
    loader TEXT NOT NULL,
    evidence TEXT NOT NULL CHECK (trim(evidence) <> ''),
    PRIMARY KEY (from_id, kind, to_id, loader)
) WITHOUT ROWID""",
    "CREATE INDEX links_back ON links (to_id, kind, from_id)",
)

_LOADING_STATEMENTS = (
    """
CREATE TABLE ingestion_logs (
    log INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    file TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    loader TEXT,
    outcome TEXT NOT NULL CHECK (outcome IN ('loaded', 'unchanged', 'failed', 'ignored')),
    records INTEGER NOT NULL DEFAULT 0,
    changed INTEGER NOT NULL DEFAULT 0,
    error TEXT
)""",
    "CREATE INDEX ingestion_logs_seen ON ingestion_logs (sha256, loader)",
    # Rises with every change, so that an index in memory knows when to look.
    "CREATE TABLE generation (value INTEGER NOT NULL)",
    "INSERT INTO generation VALUES (0)",
    # How many records of each source are here and up to which date: read with every answer, so it
    # is stored rather than counted.
    """
CREATE TABLE progress (
    source TEXT PRIMARY KEY,
    records INTEGER NOT NULL,
    loaded_up_to TEXT
)""",
    _COVERAGE_SQL,
)

# Equal names are stored once: a lobbyist's occurs in a thousand filings. What is compared is folded
# and padded; `name_forms` has the spelling of each record. Whoever adds names adds them to the
# index, as with passages.
_NAMES_STATEMENTS = (
    """
CREATE TABLE names (
    name_row INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    folded TEXT NOT NULL,
    initials TEXT NOT NULL,
    UNIQUE (source, folded)
)""",
    "CREATE INDEX names_initials ON names (source, initials)",
    """
CREATE TABLE name_forms (
    name_row INTEGER NOT NULL REFERENCES names ON DELETE CASCADE,
    record_id TEXT NOT NULL,
    form TEXT NOT NULL,
    PRIMARY KEY (name_row, record_id)
) WITHOUT ROWID""",
    "CREATE INDEX name_forms_record ON name_forms (record_id)",
    """
CREATE VIRTUAL TABLE names_fts USING fts5 (
    folded, content='names', content_rowid='name_row', tokenize='trigram'
)""",
    """
CREATE TRIGGER names_removed AFTER DELETE ON names BEGIN
    INSERT INTO names_fts (names_fts, rowid, folded)
    VALUES ('delete', old.name_row, old.folded);
END""",
)

# One row per record, at its last change. `seq` rises with every change and is where a reader
# continues; `new_at` and `new_seq` say when the record was first loaded.
_CHANGES_STATEMENTS = (
    """
CREATE TABLE changes (
    record_id TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('new', 'changed', 'withdrawn')),
    at TEXT NOT NULL,
    new_at TEXT NOT NULL,
    seq INTEGER NOT NULL,
    new_seq INTEGER NOT NULL
)""",
    "CREATE UNIQUE INDEX changes_seq ON changes (seq)",
    "CREATE INDEX changes_at ON changes (at, seq)",
)

_FIXED_TABLE_STATEMENTS = (
    *_CHILD_TABLE_STATEMENTS,
    *_SEARCH_STATEMENTS,
    *_NAMES_STATEMENTS,
    *_LINKS_STATEMENTS,
    *_LOADING_STATEMENTS,
    *_CHANGES_STATEMENTS,
)
