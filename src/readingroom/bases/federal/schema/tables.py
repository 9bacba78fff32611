"""The tables of the federal base, in one SQLite file, and how an older file becomes a newer one.

A record is stored once, as the JSON it is answered with; what lists filter and sort by are columns
generated from it, so no column can disagree with its record.
"""

import sqlite3
from collections.abc import Iterator

from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.sources import SOURCES, Column, Source
from readingroom.engine.words import tokenizer
from readingroom.storage.database import transaction

CITATION = (
    "source_url",
    "source_org",
    "published_at",
    "retrieved_at",
    "raw_sha256",
    "citation_string",
)

# What belongs to a record, by table: the column that says to which.
PARENTS = {
    "bill_cosponsors": "bill_id",
    "bill_actions": "bill_id",
    "bill_committees": "bill_id",
    "member_votes": "vote_id",
    "hearing_witnesses": "hearing_id",
}


def migrate(db: sqlite3.Connection) -> None:
    """Bring a file to the newest version; a new file gets everything at once."""
    _know_names(db)
    (version,) = db.execute("PRAGMA user_version").fetchone()
    for number, statements in enumerate(MIGRATIONS[version:], start=version + 1):
        with transaction(db):
            # Another process may have been here while this one waited for the lock.
            if db.execute("PRAGMA user_version").fetchone()[0] < number:
                for statement in statements:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {number}")
    if any(_gained(db)):
        with transaction(db):
            for statement in list(_gained(db)):
                db.execute(statement)


def _gained(db: sqlite3.Connection) -> Iterator[str]:
    """What makes the tables of sources, and columns of theirs, that came after this file."""
    for source in SOURCES:
        there = {row[1] for row in db.execute(f"PRAGMA table_xinfo({source.name})")}
        if not there:
            yield from _source_table(source)
            continue
        for column in source.columns:
            if column.name not in there:
                # SQLite adds no column that it would have to store in every row.
                added = _generated(column).replace("STORED", "VIRTUAL")
                yield f"ALTER TABLE {source.name} ADD COLUMN {added}"
                if not column.measure:
                    yield _column_index(source, column)
        indexed = [row[2] for row in db.execute(f"PRAGMA index_info({source.resource.facts})")]
        if indexed != _facts(source):
            yield f"DROP INDEX IF EXISTS {source.resource.facts}"
            yield _facts_index(source)


def _know_names(db: sqlite3.Connection) -> None:
    """What a migration needs to know of names that SQL does not."""
    db.create_function("name_row_of", 1, fold.first_row)
    db.create_function("folded_name", 1, lambda name: fold.padded(fold.words(name)))
    db.create_function("initials_of", 1, lambda name: fold.initials(fold.words(name)))


def _source_table(source: Source) -> Iterator[str]:
    generated = "".join(f",\n    {_generated(column)}" for column in source.columns)
    citation = "".join(
        f",\n    {name} TEXT GENERATED ALWAYS AS (json_extract(record, '$.{name}')) VIRTUAL"
        for name in CITATION
        if name != "published_at"
    )
    yield f"""
CREATE TABLE {source.name} (
    id TEXT PRIMARY KEY,
    record TEXT NOT NULL CHECK (json_valid(record)),
    loader TEXT NOT NULL,
    published_at TEXT GENERATED ALWAYS AS (json_extract(record, '$.published_at')) STORED,
    status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'withdrawn')),
    tombstone_at TEXT,
    tombstone_reason TEXT,
    successor_id TEXT{generated}{citation}
)"""
    yield f"CREATE INDEX {source.name}_newest ON {source.name} (published_at DESC, id)"
    for column in source.resource.filters:
        yield _column_index(source, column)
    yield _facts_index(source)


def _column_index(source: Source, column: Column) -> str:
    return f"CREATE INDEX {source.name}_{column.name} ON {source.name} ({column.name})"


def _facts_index(source: Source) -> str:
    """Everything an aggregate asks of a source, in rows that are short: records are long."""
    return f"CREATE INDEX {source.resource.facts} ON {source.name} ({', '.join(_facts(source))})"


def _facts(source: Source) -> list[str]:
    return ["published_at", "status", *(column.name for column in source.columns), "id"]


def _generated(column: Column) -> str:
    path = column.path or f"$.{column.name}"
    return (
        f"{column.name} {column.kind} GENERATED ALWAYS AS (json_extract(record, '{path}')) STORED"
    )


_CHILDREN = (
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
CREATE TABLE bill_topics (
    bill_id TEXT NOT NULL REFERENCES bills ON DELETE CASCADE,
    topic_id TEXT NOT NULL REFERENCES topic_taxonomy,
    PRIMARY KEY (bill_id, topic_id)
) WITHOUT ROWID""",
    "CREATE INDEX bill_topics_topic ON bill_topics (topic_id)",
    """
CREATE TABLE bill_committees (
    bill_id TEXT NOT NULL REFERENCES bills ON DELETE CASCADE,
    committee_id TEXT NOT NULL REFERENCES committees,
    PRIMARY KEY (bill_id, committee_id)
) WITHOUT ROWID""",
    "CREATE INDEX bill_committees_committee ON bill_committees (committee_id)",
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
    PRIMARY KEY (vote_id, ordinal)
) WITHOUT ROWID""",
    """
CREATE INDEX member_votes_person
    ON member_votes (bioguide_id, congress, sorted_at DESC, vote_id)""",
    "CREATE INDEX member_votes_unknown ON member_votes (lis) WHERE bioguide_id IS NULL",
    # The text of a record, or one of the versions of a bill's text. Kept whole: chunks overlap.
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

_SEARCH = (
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
    # `part` names what a loader replaces as a whole: the head of a record, or its text. Narrow, so
    # that a search can look up which record a passage is of without reading passages. Numbers are
    # never used again: an index elsewhere may still know them.
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
    """
CREATE VIRTUAL TABLE passages_fts USING fts5 (
    title, abstract, action, body,
    content='passages', content_rowid='chunk', tokenize='porter unicode61'
)""",
    """
CREATE TRIGGER passages_added AFTER INSERT ON passages BEGIN
    INSERT INTO passages_fts (rowid, title, abstract, action, body)
    VALUES (new.chunk, new.title, new.abstract, new.action, new.body);
END""",
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
    # The names a registry's record goes by, found by the three-letter pieces they share.
    """
CREATE TABLE names (
    name_row INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    record_id TEXT NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (record_id, name)
)""",
    """
CREATE VIRTUAL TABLE names_fts USING fts5 (
    name, content='names', content_rowid='name_row', tokenize='trigram'
)""",
    """
CREATE TRIGGER names_added AFTER INSERT ON names BEGIN
    INSERT INTO names_fts (rowid, name) VALUES (new.name_row, new.name);
END""",
    """
CREATE TRIGGER names_removed AFTER DELETE ON names BEGIN
    INSERT INTO names_fts (names_fts, rowid, name) VALUES ('delete', old.name_row, old.name);
END""",
)

# From the record whose file says so. Neither end is a foreign key: a file may speak of what is not
# loaded yet. A link without the words it stands on cannot be stored.
_LINKS = (
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

_HEARINGS = (
    """
CREATE TABLE hearing_witnesses (
    hearing_id TEXT NOT NULL REFERENCES hearings ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (hearing_id, ordinal)
) WITHOUT ROWID""",
)

_LOADING = (
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
    # How much of each source is here and up to which date: read with every answer, so kept ready.
    """
CREATE TABLE progress (
    source TEXT PRIMARY KEY,
    records INTEGER NOT NULL,
    loaded_up_to TEXT
)""",
)

# Names that are alike are one name: a lobbyist's stands in a thousand filings. What is compared is
# folded and padded; `name_forms` keeps how each record writes it.
_NAMES_FOLDED = (
    "ALTER TABLE names RENAME TO names_before",
    "DROP TRIGGER names_added",
    "DROP TRIGGER names_removed",
    "DROP TABLE names_fts",
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
CREATE TRIGGER names_added AFTER INSERT ON names BEGIN
    INSERT INTO names_fts (rowid, folded) VALUES (new.name_row, new.folded);
END""",
    """
CREATE TRIGGER names_removed AFTER DELETE ON names BEGIN
    INSERT INTO names_fts (names_fts, rowid, folded)
    VALUES ('delete', old.name_row, old.folded);
END""",
    """
INSERT INTO names (name_row, source, folded, initials)
SELECT name_row_of(source) + row_number() OVER (PARTITION BY source ORDER BY folded), source,
       folded, initials_of(any_name)
FROM (SELECT source, folded_name(name) AS folded, min(name) AS any_name
      FROM names_before GROUP BY source, folded)""",
    """
INSERT OR IGNORE INTO name_forms (name_row, record_id, form)
SELECT n.name_row, b.record_id, b.name
FROM names_before b JOIN names n ON n.source = b.source AND n.folded = folded_name(b.name)""",
    "DROP TABLE names_before",
)

# One row a record, at its last change. `seq` rises with every change and is where a reader goes on;
# `new_at` and `new_seq` are when the record came.
_CHANGES = (
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

# Cut into words as the engine cuts them.
_WORDS = (
    "DROP TABLE passages_fts",
    f"""
CREATE VIRTUAL TABLE passages_fts USING fts5 (
    title, abstract, action, body,
    content='passages', content_rowid='chunk', tokenize="{tokenizer()}"
)""",
    "INSERT INTO passages_fts (passages_fts) VALUES ('rebuild')",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        *(statement for source in SOURCES for statement in _source_table(source)),
        *_CHILDREN,
        *_SEARCH,
        *_LOADING,
    ),
    _LINKS,
    _NAMES_FOLDED,
    _CHANGES,
    _HEARINGS,
    # Whoever adds passages brings them into the index, many at once.
    ("DROP TRIGGER passages_added",),
    # The topics of bills are links, as those of everything else.
    ("DROP TABLE bill_topics",),
    # Names come into their index as passages do.
    ("DROP TRIGGER names_added",),
    _WORDS,
)
