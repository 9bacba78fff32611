"""Rows that are written to the federal database together."""

from typing import Any

from readingroom.storage.database import Database


class RowBatch:
    """Rows of a table that are inserted together, which is faster than row by row."""

    def __init__(self, db: Database, insert: str) -> None:
        self._db = db
        self._insert = insert
        self.rows: list[tuple[Any, ...]] = []

    def write(self) -> None:
        if self.rows:
            self._db.executemany(self._insert, self.rows)
            self.rows.clear()
