"""Reads the federal file: records, lists, texts, and how far each source has come."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import anyio.to_thread
from pydantic_core import from_json, to_json

from readingroom.bases.federal.errors import RecordGone
from readingroom.bases.federal.filters import RowFilter
from readingroom.bases.federal.schema.sources import MEMBER_VOTES, SOURCES, Resource, Source
from readingroom.bases.federal.schema.tables import ensure_schema
from readingroom.core.errors import RecordNotFound
from readingroom.storage import database
from readingroom.storage.errors import StorageFailed

T = TypeVar("T")

FILE = "federal.db"

_CACHE_KIB = 64 * 1024
_LOG_PAGES = 16 * 1024

# What was enrolled comes last in the life of a bill, though its text bears no date.
NEWEST_TEXT = "part = 'enr' DESC, dated DESC, length(body) DESC, part"


def file_in(data: Path) -> Path:
    """The federal file of a data directory."""
    return data / "federal" / FILE


def connect(path: Path, *, writing: bool = False) -> sqlite3.Connection:
    """A connection on the file; readers cannot write, and nobody waits for ever."""
    pragmas: dict[str, str | int] = {
        "foreign_keys": "ON",
        "cache_size": -_CACHE_KIB,
        "temp_store": "MEMORY",
    }
    if writing:
        # Pages that a load touches again and again go from the log into the file once.
        pragmas |= {"synchronous": "NORMAL", "wal_autocheckpoint": _LOG_PAGES}
    else:
        pragmas |= {"query_only": "ON"}
    db = database.connect(path, timeout=30, any_thread=True, pragmas=pragmas)
    db.row_factory = sqlite3.Row
    return db


def prepare(path: Path) -> None:
    """Create the file if there is none, in WAL mode so that readers never wait for a writer.

    Raise StorageFailed when it cannot be used, or another version of Reading Room wrote it.
    """
    with storage(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        db = connect(path, writing=True)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            ensure_schema(db, path)
        finally:
            db.close()


@contextmanager
def storage(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise StorageFailed(f"The federal records in {path} cannot be used: {error}") from error


@contextmanager
def snapshot(db: sqlite3.Connection) -> Iterator[None]:
    """Every read inside sees the file as it was at the first of them."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("COMMIT")


@dataclass(frozen=True, slots=True)
class Progress:
    """How much of a source is here, and up to which date."""

    source: str
    records: int
    loaded_up_to: str | None


@dataclass(frozen=True, slots=True)
class StoredText:
    part: str
    stage: str | None
    dated: str | None
    title: str
    url: str
    body: str


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a longer list, and where the next ones begin."""

    rows: list[Any]
    after: tuple[Any, ...] | None


class FederalStore:
    """The file as readers see it, each statement its own snapshot."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connections = database.ConnectionPool(self._opened)
        self.trace: Callable[[str], None] | None = None
        """Told every statement: for tests that ask which tables a lookup touches."""

    async def ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """Run reads on a thread of their own, the quickest too: a disk may be slow at any time."""
        return await anyio.to_thread.run_sync(self.now, question)

    def now(self, question: Callable[[sqlite3.Connection], T]) -> T:
        with storage(self.path), self._connections.connection() as db:
            return question(db)

    def close(self) -> None:
        self._connections.close()

    def _opened(self) -> sqlite3.Connection:
        db = connect(self.path)
        if self.trace:
            db.set_trace_callback(self.trace)
        return db


# --- the reads ---


def record(db: sqlite3.Connection, source: Source, id: str) -> dict[str, Any]:
    """A record by its id, with the date its source is loaded up to."""
    found: dict[str, Any] = from_json(record_json(db, source, id))
    return found


def record_json(db: sqlite3.Connection, source: Source, id: str) -> str:
    """The same as JSON: stored that way, it need not be read to be answered."""
    row = db.execute(
        f"""SELECT r.record, r.status, r.tombstone_at, r.tombstone_reason, r.successor_id,
                   p.loaded_up_to
            FROM {source.name} r LEFT JOIN progress p ON p.source = ?
            WHERE r.id = ?""",
        (source.name, id),
    ).fetchone()
    if row is None:
        raise RecordNotFound(f"No record {id} has been loaded", source=source.name)
    if row["status"] != "active":
        successor = {"successor_id": row["successor_id"]} if row["successor_id"] else {}
        raise RecordGone(
            f"{id} was withdrawn on {row['tombstone_at']}: {row['tombstone_reason']}", **successor
        )
    stored: str = row["record"]
    up_to = to_json(row["loaded_up_to"]).decode()
    return f'{stored[:-1]},"loaded_up_to":{up_to}}}'


def records(
    db: sqlite3.Connection,
    source: Source,
    row_filter: RowFilter,
    limit: int,
    after: Sequence[Any] | None,
) -> Page:
    """A page of a source's active records, newest first; those without a date come last."""
    where, values = [row_filter.sql], [*row_filter.values]
    if after:
        day, id = after
        where.append(
            "(published_at < ? OR (published_at = ? AND id > ?) OR published_at IS NULL)"
            if day is not None
            else "(? IS NULL AND ? IS NULL AND published_at IS NULL AND id > ?)"
        )
        values += [day, day, id]
    found = db.execute(
        f"""SELECT id, published_at, record FROM {source.name} WHERE {" AND ".join(where)}
            ORDER BY published_at DESC, id LIMIT ?""",
        (*values, limit + 1),
    ).fetchall()
    up_to = progress_of(db, source).loaded_up_to
    rows = [_told(row["record"], up_to) for row in found[:limit]]
    last = found[limit - 1] if len(found) > limit else None
    return Page(rows, (last["published_at"], last["id"]) if last else None)


def count(db: sqlite3.Connection, source: Source, row_filter: RowFilter) -> int:
    """How many records a list has in all."""
    row = db.execute(
        f"SELECT count(*) FROM {source.name} WHERE {row_filter.sql}", row_filter.values
    ).fetchone()
    return int(row[0])


def children(
    db: sqlite3.Connection, table: str, parent: str, id: str, limit: int, after: int
) -> tuple[Page, int]:
    """A page of what belongs to a record, in its own order, and how many there are."""
    (total,) = db.execute(f"SELECT count(*) FROM {table} WHERE {parent} = ?", (id,)).fetchone()
    found = db.execute(
        f"SELECT * FROM {table} WHERE {parent} = ? AND ordinal > ? ORDER BY ordinal LIMIT ?",
        (id, after, limit + 1),
    ).fetchall()
    more = (found[limit - 1]["ordinal"],) if len(found) > limit else None
    return Page(found[:limit], more), total


def member_votes(
    db: sqlite3.Connection,
    bioguide: str,
    congress: int | None,
    limit: int,
    after: Sequence[Any] | None,
) -> tuple[Page, int]:
    """How a member voted, newest first, beside what was voted on."""
    where, values = f"bioguide_id = ? AND {MEMBER_VOTES.where}", [bioguide]
    if congress is not None:
        where += " AND m.congress = ?"
        values.append(str(congress))
    (total,) = db.execute(f"SELECT count(*) FROM member_votes m WHERE {where}", values).fetchone()
    if after:
        where += " AND (m.sorted_at, m.vote_id) < (?, ?)"
        values += list(after)
    found = db.execute(
        f"""SELECT m.*, v.record FROM member_votes m JOIN roll_call_votes v ON v.id = m.vote_id
            WHERE {where} ORDER BY m.sorted_at DESC, m.vote_id DESC LIMIT ?""",
        (*values, limit + 1),
    ).fetchall()
    last = found[limit - 1] if len(found) > limit else None
    return Page(found[:limit], (last["sorted_at"], last["vote_id"]) if last else None), total


FIRST_MEMBER = ("", -1, "")
"""Where a roster begins."""


def members(
    db: sqlite3.Connection, committee: str, congress: int | None, limit: int, after: Sequence[Any]
) -> tuple[Page, int, int | None]:
    """Who sits on a committee: the majority first, each side by rank."""
    if congress is None:
        (congress,) = db.execute(
            """SELECT max(congress) FROM committee_memberships
               WHERE committee_id = ? AND status = 'active'""",
            (committee,),
        ).fetchone()
    where = "committee_id = ? AND congress = ? AND status = 'active'"
    values = (committee, congress)
    (total,) = db.execute(
        f"SELECT count(*) FROM committee_memberships WHERE {where}", values
    ).fetchone()
    key = "json_extract(record, '$.side'), rank, id"
    found = db.execute(
        f"""SELECT json_extract(record, '$.side') AS side, rank, id, record
            FROM committee_memberships WHERE {where} AND ({key}) > (?, ?, ?)
            ORDER BY {key} LIMIT ?""",
        (*values, *after, limit + 1),
    ).fetchall()
    last = found[limit - 1] if len(found) > limit else None
    more = (last["side"], last["rank"], last["id"]) if last else None
    return Page([from_json(row["record"]) for row in found[:limit]], more), total, congress


def texts(db: sqlite3.Connection, id: str) -> list[str]:
    """The parts of a record's text that are here, newest first."""
    rows = db.execute(
        f"SELECT part FROM texts WHERE record_id = ? ORDER BY {NEWEST_TEXT}",
        (id,),
    )
    return [row["part"] for row in rows]


def text(db: sqlite3.Connection, id: str, part: str) -> StoredText | None:
    row = db.execute(
        """SELECT part, stage, dated, title, url, body FROM texts
           WHERE record_id = ? AND part = ?""",
        (id, part),
    ).fetchone()
    return StoredText(*row) if row else None


def progress_of(db: sqlite3.Connection, source: Source) -> Progress:
    row = db.execute("SELECT * FROM progress WHERE source = ?", (source.name,)).fetchone()
    return Progress(*row) if row else Progress(source.name, 0, None)


def progress(db: sqlite3.Connection) -> list[Progress]:
    return [progress_of(db, source) for source in SOURCES]


def live_sources(db: sqlite3.Connection) -> tuple[Source, ...]:
    """The sources that this file has a table for."""
    tables = {row["name"] for row in db.execute("SELECT name FROM sqlite_master")}
    return tuple(source for source in SOURCES if source.name in tables)


def live_resources(db: sqlite3.Connection) -> tuple[Resource, ...]:
    """What of this file can be aggregated."""
    return (*(source.resource for source in live_sources(db)), MEMBER_VOTES)


def status(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """How much of each source is here: records, chunks, vectors, up to which date."""
    counted = db.execute(
        """SELECT d.source, count(*) AS chunks, count(v.chunk) AS embedded
           FROM chunks c JOIN documents d USING (doc) LEFT JOIN vectors v USING (chunk)
           GROUP BY d.source"""
    ).fetchall()
    chunks = {row["source"]: dict(row) for row in counted}
    nothing = {"chunks": 0, "embedded": 0}
    return [
        {"source": one.source, "records": one.records, "loaded_up_to": one.loaded_up_to}
        | {name: chunks.get(one.source, nothing)[name] for name in nothing}
        for one in progress(db)
    ]


def _told(stored: str, up_to: str | None) -> dict[str, Any]:
    told: dict[str, Any] = from_json(stored)
    told["loaded_up_to"] = up_to
    return told


def ids(db: sqlite3.Connection, begun: str, most: int) -> list[str]:
    """Ids of searchable records that begin so, in order."""
    rows = db.execute(
        "SELECT id FROM documents WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
        (begun, begun + "\U0010ffff", most),
    )
    return [row["id"] for row in rows]
