"""Writes the names that records are found by."""

from collections.abc import Sequence

from readingroom.bases.federal.load.batches import RowBatch
from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.records import Record
from readingroom.storage.database import Database

_MAX_TITLES = 500
"""An omnibus bill has hundreds of short titles, most of them of its parts; these are asked for."""


def list_titles(record: Record) -> list[str]:
    """Return the names of a bill: its title and its short titles, those of its parts among them."""
    short_titles: Sequence[str] = getattr(record, "short_titles", ())
    return [record.title, *short_titles[:_MAX_TITLES]]


class NameIndex:
    """The table of names and its trigram index, written in the transaction of its caller."""

    def __init__(self, db: Database) -> None:
        self._db = db
        # Not written with the table of names, for the reason that `SearchIndex.index` gives.
        self.batch = RowBatch(db, "INSERT INTO names_fts (rowid, folded) VALUES (?, ?)")

    def put_all(self, record: Record, record_names: Sequence[str]) -> None:
        for record_name in dict.fromkeys(record_names):
            self.put(record.source, record.id, record_name)

    def put(self, source_name: str, record_id: str, record_name: str) -> None:
        if folded := fold.words(record_name):
            self._db.execute(
                """INSERT INTO name_forms (name_row, record_id, form) VALUES (?, ?, ?)
                   ON CONFLICT DO NOTHING""",
                (self._ensure_name_row(source_name, folded), record_id, record_name),
            )

    def _ensure_name_row(self, source_name: str, folded: Sequence[str]) -> int:
        """Return the row of a name, created when there is none; a source has its own range."""
        stored_row = self._db.execute(
            "SELECT name_row FROM names WHERE source = ? AND folded = ?",
            (source_name, fold.pad(folded)),
        ).fetchone()
        if stored_row:
            return int(stored_row["name_row"])
        first_name_row = fold.first_row(source_name)
        # The next number in the range of the source: the database would choose one outside it.
        (name_row,) = self._db.execute(
            """INSERT INTO names (name_row, source, folded, initials)
               SELECT coalesce(max(name_row), ?) + 1, ?, ?, ? FROM names
               WHERE name_row BETWEEN ? AND ? RETURNING name_row""",
            (first_name_row, source_name, fold.pad(folded), fold.initials(folded), first_name_row,
             first_name_row + fold.ROWS),
        ).fetchone()  # fmt: skip
        self.batch.rows.append((name_row, fold.pad(folded)))
        return int(name_row)

    def forget(self, record_id: str) -> None:
        """Delete the names of a record, unless another record has them too."""
        self.batch.write()  # what is removed from the index must be in it
        name_rows = self._db.execute(
            "SELECT name_row FROM name_forms WHERE record_id = ?", (record_id,)
        ).fetchall()
        self._db.execute("DELETE FROM name_forms WHERE record_id = ?", (record_id,))
        self._db.executemany(
            """DELETE FROM names WHERE name_row = ? AND NOT EXISTS
                   (SELECT 1 FROM name_forms WHERE name_forms.name_row = names.name_row)""",
            name_rows,
        )
