"""Rows that are written to the federal database together, and what was written of a file."""

from dataclasses import dataclass, field
from typing import Any

from readingroom.storage.database import Database


class RowBatch:
    """Rows of a table that are inserted together, which is faster than row by row."""

    def __init__(self, db: Database, insert: str | None) -> None:
        """Without a statement the rows are dropped: whatever they would be put into has them."""
        self._db = db
        self._insert = insert
        self.rows: list[tuple[Any, ...]] = []

    def write(self) -> None:
        if self.rows:
            if self._insert:
                self._db.executemany(self._insert, self.rows)
            self.rows.clear()


@dataclass
class Written:
    """What was written of a file, in counts and ids."""

    records: int = 0
    changed: int = 0
    ids: dict[str, set[str]] = field(default_factory=dict)
    """The ids of the complete records in the file, by source."""
    withdrawn: int = 0
    older: bool = False
    """Whether a newer revision of any record was stored already."""
    problems: list[str] = field(default_factory=list)
    """What the file names and does not hold, or what could not be read of it."""
