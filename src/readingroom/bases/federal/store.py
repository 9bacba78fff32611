"""Reads the federal file: records, lists, texts, and up to which date each source is loaded."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import anyio.to_thread
from pydantic_core import from_json, to_json

from readingroom.bases.federal.errors import RecordGone
from readingroom.bases.federal.filters import SqlFilter
from readingroom.bases.federal.schema.shared_tables import FederalPlace as FederalPlace
from readingroom.bases.federal.schema.shared_tables import SharedRecords as SharedRecords
from readingroom.bases.federal.schema.shared_tables import ensure_shared_schema
from readingroom.bases.federal.schema.sources import MEMBER_VOTES, SOURCES, RecordTable, Source
from readingroom.bases.federal.schema.tables import ensure_schema
from readingroom.core.errors import RecordNotFound
from readingroom.core.settings import RoomSettings, reveal_secret
from readingroom.storage import database
from readingroom.storage.database import Database, DatabaseError, Row
from readingroom.storage.errors import DatabaseFailed, StorageFailed, describe_cause

logger = logging.getLogger(__name__)

T = TypeVar("T")

DATABASE_FILE_NAME = "federal.db"

_SQLITE_CACHE_KIB = 64 * 1024
_PAGES_PER_CHECKPOINT = 16 * 1024

_MAX_COUNTED_RECORDS = 2_000
"""Up to how many rows are counted to choose an index: it takes a fraction of reading a page."""
_TIME_BOUND_COLUMNS = ("congress", "year")
"""Columns whose values each belong to a few years."""

NEWEST_FIRST_ORDER_SQL = "published_at DESC NULLS LAST, id"
"""The order of every list: those without a date come last."""

# An enrolled bill is the last version, though its text has no date.
NEWEST_TEXT_FIRST_ORDER_SQL = "part = 'enr' DESC, dated DESC NULLS LAST, length(body) DESC, part"


def locate_records(settings: RoomSettings) -> FederalPlace:
    """Return where the federal records are: in the database that the settings name, or a file."""
    database_url = reveal_secret(settings.database_url)
    return SharedRecords(database_url) if database_url else get_database_path(settings.data)


def get_database_path(data_folder: Path) -> Path:
    """Return the path of the federal file in a data directory."""
    return data_folder / "federal" / DATABASE_FILE_NAME


def connect(federal_place: FederalPlace, *, writing: bool = False) -> Database:
    """Return a connection on the records; only with `writing` can it write."""
    if not isinstance(federal_place, Path):
        shared_db: Database = federal_place.connect(writing=writing)
        return shared_db
    pragma_values: dict[str, str | int] = {
        "foreign_keys": "ON",
        "cache_size": -_SQLITE_CACHE_KIB,
        "temp_store": "MEMORY",
    }
    if writing:
        # Pages that a load changes again and again are copied from the log to the file only once.
        pragma_values |= {"synchronous": "NORMAL", "wal_autocheckpoint": _PAGES_PER_CHECKPOINT}
    else:
        # Whatever a query says, the server cannot change the file.
        pragma_values |= {"query_only": "ON"}
    return database.connect(
        federal_place, timeout=30, from_any_thread=True, with_named_rows=True, pragmas=pragma_values
    )


def prepare_records(place: FederalPlace) -> None:
    """Create the file if there is none, in WAL mode so that readers never wait for a writer.

    Raise StorageFailed when it cannot be used, or another version of Reading Room wrote it.
    """
    if not isinstance(place, Path):
        with translate_errors(place), closing(place.connect(writing=True)) as shared_db:
            ensure_shared_schema(shared_db)
        return
    with translate_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        db = connect(place, writing=True)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            ensure_schema(db, place)
        finally:
            db.close()


@contextmanager
def translate_errors(federal_place: FederalPlace) -> Iterator[None]:
    """Raise StorageFailed in place of the errors of SQLite and of the file system."""
    try:
        yield
    except DatabaseFailed as error:
        raise StorageFailed(f"The federal records cannot be used: {error.message}") from error
    except (OSError, DatabaseError) as error:
        logger.error("the federal records in %s cannot be used: %s", federal_place, error)
        raise StorageFailed(
            f"The federal records in {federal_place.name} cannot be used: {describe_cause(error)}"
        ) from error


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """How many records of a source are loaded, and up to which date it is known to be complete."""

    source: str
    records: int
    loaded_up_to: str | None
    complete_from: str | None = None
    """The first day of the time that is complete; None if everything before is here too."""
    newest_record_at: str | None = None
    """The date of the newest record, which says nothing about others."""

    @property
    def is_loaded(self) -> bool:
        """Whether there is anything of the source: if not, an empty list means nothing."""
        return self.records > 0


@dataclass(frozen=True, slots=True)
class StoredText:
    """The text of a record, or one version of it."""

    part: str
    stage: str | None
    dated: str | None
    title: str
    url: str
    body: str


@dataclass(frozen=True, slots=True)
class RowPage:
    """Some rows of a longer list."""

    rows: list[Any]
    after_key: tuple[Any, ...] | None
    """The sort key of the last row, after which the next page begins; None on the last page."""


class FederalStore:
    """Runs queries on the file, each statement in a snapshot of its own."""

    def __init__(self, federal_place: FederalPlace) -> None:
        self.place = federal_place
        self._connections = database.ConnectionPool(self._open_connection)
        self.trace_statement: Callable[[str], None] | None = None
        """Called with every statement, for tests that check which tables a lookup reads."""

    async def query(self, read_rows: Callable[[Database], T]) -> T:
        """Run a query on a worker thread: even the quickest may have to wait for the disk."""
        return await anyio.to_thread.run_sync(self.query_now, read_rows)

    def query_now(self, read_rows: Callable[[Database], T]) -> T:
        """Run a query on this thread."""
        with translate_errors(self.place), self._connections.connection() as db:
            return read_rows(db)

    def close(self) -> None:
        self._connections.close()

    def _open_connection(self) -> Database:
        db = connect(self.place)
        if self.trace_statement:
            db.set_trace_callback(self.trace_statement)
        return db


# --- queries ---


def read_record(db: Database, record_source: Source, record_id: str) -> dict[str, Any]:
    """Return a record by its id, with the date its source is loaded up to."""
    record_fields: dict[str, Any] = from_json(read_record_json(db, record_source, record_id))
    return record_fields


def read_record_json(db: Database, record_source: Source, record_id: str) -> str:
    """Return a record as JSON. It is stored as JSON, so it need not be parsed to be answered.

    Raise RecordNotFound if it is not loaded, and RecordGone if it was withdrawn.
    """
    record_row = db.execute(
        f"""SELECT r.record, r.status, r.tombstone_at, r.tombstone_reason, r.successor_id,
                   p.loaded_up_to
            FROM {record_source.name} r LEFT JOIN progress p ON p.source = ?
            WHERE r.id = ?""",
        (record_source.name, record_id),
    ).fetchone()
    if record_row is None:
        raise RecordNotFound(f"No record {record_id} has been loaded", source=record_source.name)
    if record_row["status"] != "active":
        successor_hint = (
            {"successor_id": record_row["successor_id"]} if record_row["successor_id"] else {}
        )
        raise RecordGone(
            f"{record_id} was withdrawn on {record_row['tombstone_at']}: "
            f"{record_row['tombstone_reason']}",
            **successor_hint,
        )
    record_json: str = record_row["record"]
    loaded_up_to = to_json(record_row["loaded_up_to"]).decode()
    # Put before the last brace, which is cheaper than parsing a long record and writing it again.
    return f'{record_json[:-1]},"loaded_up_to":{loaded_up_to}}}'


def list_records(
    db: Database,
    record_source: Source,
    sql_filter: SqlFilter,
    max_results: int,
    after_key: Sequence[Any] | None,
) -> RowPage:
    """Return a page of a source's active records, newest first, those without a date last."""
    record_rows: list[Row] = []
    index_hint_sql = _choose_index(db, record_source, sql_filter)
    for sql_condition, sql_values in _list_conditions_after(after_key):
        record_rows += db.execute(
            f"""SELECT id, published_at, record FROM {record_source.name} {index_hint_sql}
                WHERE {sql_filter.sql}{sql_condition}
                ORDER BY {NEWEST_FIRST_ORDER_SQL} LIMIT ?""",
            (*sql_filter.values, *sql_values, max_results + 1 - len(record_rows)),
        )
        if len(record_rows) > max_results:
            break
    loaded_up_to = read_progress(db, record_source).loaded_up_to
    listed_records = [
        from_json(record_row["record"]) | {"loaded_up_to": loaded_up_to}
        for record_row in record_rows[:max_results]
    ]
    last_row = record_rows[max_results - 1] if len(record_rows) > max_results else None
    return RowPage(listed_records, (last_row["published_at"], last_row["id"]) if last_row else None)


def _choose_index(db: Database, record_source: Source, sql_filter: SqlFilter) -> str:
    """Return the clause that names the index to read: the one of the rarest value.

    Every column's index ends in the order of lists, so to SQLite all of them look alike. It might
    read all Senate amendments, newest first, until it comes to those of a Congress long ago.
    """
    indexed_filter_columns = [
        column_name
        for column_name in record_source.record_table.indexed_column_names
        if column_name in sql_filter.filters
    ]
    if len(indexed_filter_columns) < 2 or not db.dialect.index_hint_sql:
        return ""
    matching_count_by_column = {
        column_name: count_rows_up_to(
            db,
            record_source.name,
            column_name,
            sql_filter.filters[column_name],
            _MAX_COUNTED_RECORDS,
        )
        for column_name in indexed_filter_columns
    }
    # Of two frequent values, the one whose records are of the same years: the others are spread.
    rarest_column = min(
        indexed_filter_columns,
        key=lambda column_name: (
            matching_count_by_column[column_name],
            column_name not in _TIME_BOUND_COLUMNS,
        ),
    )
    return db.dialect.build_index_hint_sql(f"{record_source.name}_{rarest_column}")


def count_rows_up_to(
    db: Database, table_name: str, column_name: str, column_value: Any, max_count: int
) -> int:
    """Return how many rows have this value in an indexed column, counted up to a limit.

    A tuple is any of its values.
    """
    allowed_values = column_value if isinstance(column_value, tuple) else (column_value,)
    placeholders_sql = ", ".join("?" * len(allowed_values))
    (matching_count,) = db.execute(
        f"""SELECT count(*) FROM
                (SELECT 1 FROM {table_name} WHERE {column_name} IN ({placeholders_sql}) LIMIT ?)""",
        (*allowed_values, max_count),
    ).fetchone()
    return int(matching_count)


def _list_conditions_after(after_key: Sequence[Any] | None) -> list[tuple[str, tuple[Any, ...]]]:
    """Return conditions, each with its values, that select in turn what follows a sort key.

    Each is one range of an index. All in one condition would be an OR, for which SQLite reads and
    sorts everything that follows.
    """
    if after_key is None:
        return [("", ())]
    last_day, last_id = after_key
    if last_day is None:
        return [(" AND published_at IS NULL AND id > ?", (last_id,))]
    return [
        (" AND published_at <= ? AND (published_at < ? OR id > ?)", (last_day, last_day, last_id)),
        (" AND published_at IS NULL", ()),
    ]


def count_records(db: Database, record_source: Source, sql_filter: SqlFilter) -> int:
    """Return how many records of a source pass a filter."""
    count_row = db.execute(
        f"SELECT count(*) FROM {record_source.name} WHERE {sql_filter.sql}", sql_filter.values
    ).fetchone()
    return int(count_row[0])


def list_children(
    db: Database,
    table_name: str,
    parent_column: str,
    parent_id: str,
    max_results: int,
    after_key: int,
) -> tuple[RowPage, int]:
    """Return a page of what belongs to a record, in its own order, and how many rows there are."""
    (total_count,) = db.execute(
        f"SELECT count(*) FROM {table_name} WHERE {parent_column} = ?", (parent_id,)
    ).fetchone()
    child_rows = db.execute(
        f"""SELECT * FROM {table_name} WHERE {parent_column} = ? AND ordinal > ?
            ORDER BY ordinal LIMIT ?""",
        (parent_id, after_key, max_results + 1),
    ).fetchall()
    next_key = (child_rows[max_results - 1]["ordinal"],) if len(child_rows) > max_results else None
    return RowPage(child_rows[:max_results], next_key), total_count


def list_member_votes(
    db: Database,
    bioguide_id: str,
    congress: int | None,
    max_results: int,
    after_key: Sequence[Any] | None,
) -> tuple[RowPage, int]:
    """Return a page of a member's votes with their roll calls, newest first, and the total."""
    sql_values: list[Any] = [bioguide_id]
    where_sql = f"bioguide_id = ? AND {MEMBER_VOTES.active_rows_condition}"
    if congress is not None:
        where_sql += " AND m.congress = ?"
        sql_values.append(congress)
    (total_count,) = db.execute(
        f"SELECT count(*) FROM member_votes m WHERE {where_sql}", sql_values
    ).fetchone()
    if after_key:
        where_sql += " AND (m.sorted_at, m.vote_id) < (?, ?)"
        sql_values += list(after_key)
    vote_rows = db.execute(
        f"""SELECT m.*, v.record FROM member_votes m JOIN roll_call_votes v ON v.id = m.vote_id
            WHERE {where_sql} ORDER BY m.sorted_at DESC, m.vote_id DESC LIMIT ?""",
        (*sql_values, max_results + 1),
    ).fetchall()
    last_row = vote_rows[max_results - 1] if len(vote_rows) > max_results else None
    last_key = (last_row["sorted_at"], last_row["vote_id"]) if last_row else None
    return RowPage(vote_rows[:max_results], last_key), total_count


KEY_BEFORE_FIRST_MEMBER = ("", -1, "")
"""The sort key before the first member of a committee."""


def list_members(
    db: Database,
    committee_id: str,
    congress: int | None,
    max_results: int,
    after_key: Sequence[Any],
) -> tuple[RowPage, int, int | None]:
    """Return a page of a committee's members, the majority first, the total and the Congress.

    Without a Congress, it is the newest one that has members.
    """
    if congress is None:
        (congress,) = db.execute(
            """SELECT max(congress) FROM committee_memberships
               WHERE committee_id = ? AND status = 'active'""",
            (committee_id,),
        ).fetchone()
    where_sql = "committee_id = ? AND congress = ? AND status = 'active'"
    sql_values = (committee_id, congress)
    (total_count,) = db.execute(
        f"SELECT count(*) FROM committee_memberships WHERE {where_sql}", sql_values
    ).fetchone()
    sort_columns_sql = "record ->> 'side', rank, id"
    member_rows = db.execute(
        f"""SELECT record ->> 'side' AS side, rank, id, record
            FROM committee_memberships WHERE {where_sql} AND ({sort_columns_sql}) > (?, ?, ?)
            ORDER BY {sort_columns_sql} LIMIT ?""",
        (*sql_values, *after_key, max_results + 1),
    ).fetchall()
    last_row = member_rows[max_results - 1] if len(member_rows) > max_results else None
    next_key = (last_row["side"], last_row["rank"], last_row["id"]) if last_row else None
    return (
        RowPage(
            [from_json(member_row["record"]) for member_row in member_rows[:max_results]], next_key
        ),
        total_count,
        congress,
    )


def list_text_parts(db: Database, record_id: str) -> list[str]:
    """Return the parts of a record's text that are loaded, newest first."""
    text_rows = db.execute(
        f"SELECT part FROM texts WHERE record_id = ? ORDER BY {NEWEST_TEXT_FIRST_ORDER_SQL}",
        (record_id,),
    )
    return [text_row["part"] for text_row in text_rows]


def read_text(db: Database, record_id: str, part_name: str) -> StoredText | None:
    text_row = db.execute(
        """SELECT part, stage, dated, title, url, body FROM texts
           WHERE record_id = ? AND part = ?""",
        (record_id, part_name),
    ).fetchone()
    return StoredText(*text_row) if text_row else None


def read_progress(db: Database, record_source: Source) -> SourceProgress:
    coverage_row = db.execute(
        """SELECT p.source, p.records, p.loaded_up_to, c.complete_from, c.newest_record_at
           FROM progress p LEFT JOIN coverage c ON c.source = p.source WHERE p.source = ?""",
        (record_source.name,),
    ).fetchone()
    return (
        SourceProgress(*coverage_row)
        if coverage_row
        else SourceProgress(record_source.name, 0, None)
    )


def list_progress(db: Database) -> list[SourceProgress]:
    return [read_progress(db, record_source) for record_source in SOURCES]


def list_stored_sources(db: Database) -> tuple[Source, ...]:
    """Return the sources that this file has a table for."""
    table_names = {table_row["name"] for table_row in db.execute(db.dialect.table_names_sql)}
    return tuple(record_source for record_source in SOURCES if record_source.name in table_names)


def list_stored_record_tables(db: Database) -> tuple[RecordTable, ...]:
    """Return what can be aggregated in this file."""
    return (*(source.record_table for source in list_stored_sources(db)), MEMBER_VOTES)


def read_status(db: Database) -> list[dict[str, Any]]:
    """Return, for each source, its records, chunks and vectors, and the date it is loaded up to.

    A percentage is rounded down: 100 only when every chunk has its vector.
    """
    count_rows = db.execute(
        """SELECT d.source, count(*) AS chunks, count(v.chunk) AS embedded
           FROM chunks c JOIN documents d USING (doc) LEFT JOIN vectors v USING (chunk)
           GROUP BY d.source"""
    ).fetchall()
    chunk_counts_by_source = {
        count_row["source"]: {
            "chunks": count_row["chunks"],
            "embedded": count_row["embedded"],
            "embedded_percent": count_row["embedded"] * 100 // count_row["chunks"],
        }
        for count_row in count_rows
    }
    no_chunk_counts = {"chunks": 0, "embedded": 0, "embedded_percent": None}
    return [
        {
            "source": source_progress.source,
            "records": source_progress.records,
            "loaded_up_to": source_progress.loaded_up_to,
            "complete_from": source_progress.complete_from,
            "newest_record_at": source_progress.newest_record_at,
            **chunk_counts_by_source.get(source_progress.source, no_chunk_counts),
        }
        for source_progress in list_progress(db)
    ]


def list_ids(db: Database, id_prefix: str, max_results: int) -> list[str]:
    """Return ids of searchable records that begin with a prefix, in order."""
    id_rows = db.execute(
        "SELECT id FROM documents WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
        # A range, and not LIKE: it uses the index, and a % in the prefix means nothing.
        (id_prefix, id_prefix + "\U0010ffff", max_results),
    )
    return [id_row["id"] for id_row in id_rows]
