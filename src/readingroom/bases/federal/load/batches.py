"""Rows that are written to the federal database together, and what was written of a file."""

from dataclasses import dataclass, field
from typing import Any

from readingroom.storage.database import Database


class RowBatch:
    """Rows of a table that are inserted together, which is faster than row by row."""

    def __init__(self, db: Database, insert_sql: str | None) -> None:
        """Without a statement the rows are dropped: whatever they would be put into has them."""
        self._db = db
        self._insert_sql = insert_sql
        self.rows: list[tuple[Any, ...]] = []

    def write(self) -> None:
        if self.rows:
            if self._insert_sql:
                self._db.executemany(self._insert_sql, self.rows)
            self.rows.clear()


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
    problems: list[str] = field(default_factory=list)
    """What the file names and does not hold, or what could not be read of it."""
