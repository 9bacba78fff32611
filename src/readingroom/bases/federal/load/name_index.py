"""Writes the names that records are found by."""

from collections.abc import Sequence

from readingroom.bases.federal.load.batches import RowBatch
from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.records import Record
from readingroom.bases.federal.search.full_text import get_name_index_statement
from readingroom.storage.database import Database

_MAX_TITLES = 500
"""An omnibus bill has hundreds of short titles, most of them of its parts; these are asked for."""


def list_titles(record: Record) -> list[str]:
    """Return the names of a bill: its title and its short titles, those of its parts among them."""
    short_titles: Sequence[str] = getattr(record, "short_titles", ())
    return [record.title, *short_titles[:_MAX_TITLES]]


class NameIndex:
    """The table of names and its trigram index, written in the transaction of its caller.

    Rows wait in batches, which the caller writes: half of all rows of a load are names.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._name_batch = RowBatch(
            db, "INSERT INTO names (name_row, source, folded, initials) VALUES (?, ?, ?, ?)"
        )
        self._form_batch = RowBatch(
            db,
            """INSERT INTO name_forms (name_row, record_id, form) VALUES (?, ?, ?)
               ON CONFLICT DO NOTHING""",
        )
        # Apart from the table of names, for the reason that `SearchIndex.index_new_passages` gives.
        self._index_batch = RowBatch(db, get_name_index_statement(db))
        self.batches = (self._name_batch, self._form_batch, self._index_batch)
        self._added_rows: dict[tuple[str, str], int] = {}
        """The rows of the names that this transaction has added."""
        self._newest_rows: dict[str, int] = {}

    def forget_added_rows(self) -> None:
        """Forget what an earlier transaction has added: it may be rolled back, or changed since."""
        self._added_rows.clear()
        self._newest_rows.clear()

    def put_names(self, record: Record, record_names: Sequence[str]) -> None:
        for record_name in dict.fromkeys(record_names):
            self.put_name(record.source, record.id, record_name)

    def put_name(self, source_name: str, record_id: str, record_name: str) -> None:
        if folded_words := fold.fold_name(record_name):
            name_row = self._ensure_name_row(source_name, folded_words)
            self._form_batch.rows.append((name_row, record_id, record_name))

    def _ensure_name_row(self, source_name: str, folded_words: Sequence[str]) -> int:
        """Return the row of a name, created when there is none."""
        folded_name = fold.pad_words(folded_words)
        if (source_name, folded_name) in self._added_rows:
            return self._added_rows[source_name, folded_name]
        stored_row = self._db.execute(
            "SELECT name_row FROM names WHERE source = ? AND folded = ?", (source_name, folded_name)
        ).fetchone()
        if stored_row:
            return int(stored_row["name_row"])
        name_row = self._newest_rows[source_name] = self._read_newest_row(source_name) + 1
        self._name_batch.rows.append(
            (name_row, source_name, folded_name, fold.sort_initials(folded_words))
        )
        self._index_batch.rows.append((name_row, folded_name))
        self._added_rows[source_name, folded_name] = name_row
        return name_row

    def _read_newest_row(self, source_name: str) -> int:
        """Return the newest row in the range of a source: each has its own."""
        if source_name not in self._newest_rows:
            first_row = fold.get_first_name_row(source_name)
            (self._newest_rows[source_name],) = self._db.execute(
                "SELECT coalesce(max(name_row), ?) FROM names WHERE name_row BETWEEN ? AND ?",
                (first_row, first_row, first_row + fold.MAX_ROWS_PER_SOURCE),
            ).fetchone()
        return self._newest_rows[source_name]

    def write_batches(self) -> None:
        """Write the rows that wait."""
        for batch in self.batches:
            batch.write()

    def delete_names(self, record_id: str) -> None:
        """Delete the names of a record, unless another record has them too."""
        self.write_batches()  # what is removed from the index must be in it
        name_rows = self._db.execute(
            "SELECT name_row FROM name_forms WHERE record_id = ?", (record_id,)
        ).fetchall()
        self._db.execute("DELETE FROM name_forms WHERE record_id = ?", (record_id,))
        self._db.executemany(
            """DELETE FROM names WHERE name_row = ? AND NOT EXISTS
                   (SELECT 1 FROM name_forms WHERE name_forms.name_row = names.name_row)""",
            name_rows,
        )
        self.forget_added_rows()
