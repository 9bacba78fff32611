"""Rows that are written to the federal database together."""

import sqlite3
from typing import Any


class RowBatch:
    """Rows of a table that are inserted together, which is faster than row by row."""

    def __init__(self, db: sqlite3.Connection, insert: str) -> None:
        self._db = db
        self._insert = insert
        self.rows: list[tuple[Any, ...]] = []

    def write(self) -> None:
        if self.rows:
            self._db.executemany(self._insert, self.rows)
            self.rows.clear()
