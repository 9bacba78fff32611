"""Rows that are written to the federal database together, and what was written of a file."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from readingroom.bases.federal.schema.columns import list_computed_columns
from readingroom.bases.federal.schema.entries import AnyRecord, find_column_values
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME
from readingroom.bases.federal.schema.tables import PARENT_COLUMN_BY_CHILD_TABLE
from readingroom.storage.database import Database, Row

T = TypeVar("T")

_RECORDS_PER_BLOCK = 1_000


class RowBatch:
    """Rows of a table that are inserted together, which is faster than row by row."""

    def __init__(self, db: Database, insert_sql: str | None) -> None:
        """Without a statement the rows are dropped: whatever they would be put into has them."""
        self._db = db
        self._insert_sql = insert_sql
        self.rows: list[tuple[Any, ...]] = []

    def write_rows(self) -> int:
        """Have the rows inserted before the next statement; return how many there are."""
        waiting_rows, self.rows = self.rows, []
        if waiting_rows and self._insert_sql:
            self._db.insert_in_background(self._insert_sql, waiting_rows)
        return len(waiting_rows)


class RecordRows:
    """The rows of records: many are looked up at once, and new ones are inserted together.

    A database on another machine is asked once for hundreds of records, and not for each.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._gives_columns = db.dialect.engine == "postgres"  # SQLite computes them in passing
        parameter_items_sql = db.dialect.parameter_items_sql
        # PostgreSQL reads an array by the index, however few rows a table had at first.
        self._in_list_sql = (
            f"= ANY (ARRAY({parameter_items_sql}))"
            if self._gives_columns
            else f"IN ({parameter_items_sql})"
        )
        self._batch_by_source: dict[tuple[str, bool], RowBatch] = {}
        """By source, and whether its rows have the values of their columns."""
        self._row_by_id: dict[tuple[str, str], Row | None] = {}
        """What was looked up and not asked for yet."""
        self._uncommitted_ids: set[str] = set()
        """Of records that this transaction has written, or may have."""

    def start_transaction(self) -> None:
        """Forget what was written: it is committed. Nobody else writes until this one ends."""
        self._uncommitted_ids.clear()

    def note_record_written(self, record_id: str) -> None:
        """Remember that the row of a record is no longer what is committed."""
        self._uncommitted_ids.add(record_id)

    def preload_rows(self, records: Iterable[AnyRecord]) -> None:
        """Look up which of these records are stored, before they are asked for one by one."""
        ids_by_source: dict[str, list[str]] = {}
        for record in records:
            # Of a series, a newer filing changes the rows of those before it.
            if SOURCES_BY_NAME[record.source].series_column_name is None:
                ids_by_source.setdefault(record.source, []).append(record.id)
        self._row_by_id.clear()
        for source_name, record_ids in ids_by_source.items():
            self._row_by_id |= dict.fromkeys((source_name, record_id) for record_id in record_ids)
            # Rows that are on their way to the database are not waited for, unless one is asked for
            are_rows_committed = self._uncommitted_ids.isdisjoint(record_ids)
            if not are_rows_committed:
                self.write_rows()
            stored_rows = (self._db.execute_beside if are_rows_committed else self._db.execute)(
                f"""SELECT id, loader, raw_sha256, status, record FROM {source_name}
                    WHERE id {self._in_list_sql}""",
                (json.dumps(record_ids),),
            )
            self._row_by_id |= {
                (source_name, stored_row["id"]): stored_row for stored_row in stored_rows
            }

    def find_row(self, record: AnyRecord) -> Row | None:
        """Return the stored row of a record, or None."""
        source_and_id = (record.source, record.id)
        if source_and_id in self._row_by_id:
            stored_row = self._row_by_id.pop(source_and_id)  # what is written next changes it
        else:
            self.write_rows()
            stored_row = self._db.execute(
                f"SELECT id, loader, raw_sha256, status, record FROM {record.source} WHERE id = ?",
                (record.id,),
            ).fetchone()
        self.note_record_written(record.id)
        return stored_row

    def add_record(
        self, record: AnyRecord, record_json: str, loader_and_revision_text: str
    ) -> None:
        """Insert a record that is not stored yet, with others that wait."""
        column_values = find_column_values(record) if self._gives_columns else None
        source_and_has_columns = (record.source, column_values is not None)
        row_batch = self._batch_by_source.get(source_and_has_columns)
        if row_batch is None:
            row_batch = self._batch_by_source[source_and_has_columns] = RowBatch(
                self._db, _format_record_insert(*source_and_has_columns)
            )
        row_batch.rows.append(
            (record.id, record_json, loader_and_revision_text, *(column_values or ()))
        )

    def write_rows(self) -> int:
        """Insert the records that wait; return how many there are."""
        return sum(row_batch.write_rows() for row_batch in self._batch_by_source.values())

    def discard_rows(self) -> None:
        """Drop what waits and what was looked up: the transaction is rolled back."""
        self._batch_by_source.clear()
        self._row_by_id.clear()


class ChildRows:
    """The rows that belong to records: those of new records wait, to be inserted together."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._batch_by_table: dict[str, RowBatch] = {}

    @property
    def waiting_row_count(self) -> int:
        """How many rows wait in memory."""
        return sum(len(row_batch.rows) for row_batch in self._batch_by_table.values())

    def add_rows(
        self, table_name: str, record_id: str, child_rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """Insert rows of a record that has none, with others that wait."""
        if not child_rows:
            return
        row_batch = self._batch_by_table.get(table_name)
        if row_batch is None:
            placeholders_sql = ", ".join("?" * (len(child_rows[0]) + 1))
            row_batch = self._batch_by_table[table_name] = RowBatch(
                self._db, f"INSERT INTO {table_name} VALUES ({placeholders_sql})"
            )
        row_batch.rows += [(record_id, *child_row) for child_row in child_rows]

    def replace_rows(
        self, table_name: str, record_id: str, child_rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """Put rows in place of those that a record has; all records are written."""
        self.write_rows()
        self._db.execute(
            f"DELETE FROM {table_name} WHERE {PARENT_COLUMN_BY_CHILD_TABLE[table_name]} = ?",
            (record_id,),
        )
        self.add_rows(table_name, record_id, child_rows)

    def write_rows(self) -> int:
        """Insert the rows that wait, after the records they refer to; return how many there are."""
        return sum(row_batch.write_rows() for row_batch in self._batch_by_table.values())

    def discard_rows(self) -> None:
        """Drop the rows that wait: the transaction is rolled back."""
        self._batch_by_table.clear()


def _format_record_insert(source_name: str, includes_column_values: bool) -> str:
    computed_columns = list_computed_columns(source_name) if includes_column_values else ()
    column_names = ("id", "record", "loader", *computed_columns)
    placeholders_sql = ", ".join("?" * len(column_names))
    return f"INSERT INTO {source_name} ({', '.join(column_names)}) VALUES ({placeholders_sql})"


def iterate_blocks(items: Iterable[T]) -> Iterator[Sequence[T]]:
    """Yield the items, some hundreds at a time."""
    remaining_items = iter(items)
    while item_block := list(islice(remaining_items, _RECORDS_PER_BLOCK)):
        yield item_block


@dataclass
class WriteResult:
    """What was written of a file, in counts and ids."""

    record_count: int = 0
    changed_count: int = 0
    ids_by_source: dict[str, set[str]] = field(default_factory=dict)
    """The ids of the complete records in the file, by source."""
    withdrawn_count: int = 0
    has_older_revision: bool = False
    """Whether a newer revision of any record was stored already."""
    problem_messages: list[str] = field(default_factory=list)
    """What the file names and does not hold, or what could not be read of it."""

    def add_record(self, record: AnyRecord) -> None:
        """Add a complete record of the file to the counts and the ids."""
        self.record_count += 1
        self.ids_by_source.setdefault(record.source, set()).add(record.id)
