"""Writes the names that records are found by."""

import json
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import partial

from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.entries import AnyRecord
from readingroom.bases.federal.search.full_text import find_name_index_insert_sql
from readingroom.storage.database import Database

_MAX_SHORT_TITLES = 500
"""An omnibus bill has hundreds of short titles, most of them of its parts; these are asked for."""


def list_titles(record: AnyRecord) -> list[str]:
    """Return the names of a bill: its title and its short titles, those of its parts among them."""
    short_titles: Sequence[str] = getattr(record, "short_titles", ())
    return [record.title, *short_titles[:_MAX_SHORT_TITLES]]


@dataclass(frozen=True, slots=True)
class _WaitingName:
    """A name of a record that is not written yet."""

    source_name: str
    folded_words: Sequence[str]
    record_id: str
    spelling: str
    """The name as the record spells it."""

    @property
    def folded_name(self) -> str:
        """The name as names are compared."""
        return fold.pad_words(self.folded_words)


class NameIndex:
    """The table of names and its trigram index, written in the transaction of its caller.

    Names wait until the caller writes them: half of all rows of a load are names.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        # Apart from the table of names, for the reason that `SearchIndex.index_new_passages` gives.
        self._index_sql = find_name_index_insert_sql(db)
        self._waiting_names: list[_WaitingName] = []

    def put_names(self, record: AnyRecord, record_names: Sequence[str]) -> None:
        for record_name in dict.fromkeys(record_names):
            self.put_name(record.source, record.id, record_name)

    def put_name(self, source_name: str, record_id: str, record_name: str) -> None:
        if folded_words := fold.fold_stored_name(record_name):
            waiting_name = _WaitingName(source_name, folded_words, record_id, record_name)
            self._waiting_names.append(waiting_name)

    def write_names(self) -> int:
        """Write the names that wait, equal ones once; return how many there are."""
        waiting_names, self._waiting_names = self._waiting_names, []
        waiting_names_by_source: dict[str, list[_WaitingName]] = {}
        for waiting_name in waiting_names:
            waiting_names_by_source.setdefault(waiting_name.source_name, []).append(waiting_name)
        for source_name, names_of_source in waiting_names_by_source.items():
            self._db.run_in_background(
                partial(self._write_source_names, source_name, names_of_source)
            )
        return len(waiting_names)

    def _write_source_names(self, source_name: str, waiting_names: Sequence[_WaitingName]) -> None:
        row_number_by_name = self._read_row_numbers(
            source_name, {waiting_name.folded_name for waiting_name in waiting_names}
        )
        newest_row_number = self._read_newest_row_number(source_name)
        name_rows: list[tuple[int, str, str, str]] = []
        spelling_by_row_and_record: dict[tuple[int, str], str] = {}
        last_row_number_before = newest_row_number
        for waiting_name in waiting_names:
            folded_name = waiting_name.folded_name
            if folded_name not in row_number_by_name:
                newest_row_number += 1
                row_number_by_name[folded_name] = newest_row_number
                sorted_initials = fold.join_sorted_initials(waiting_name.folded_words)
                name_rows.append((newest_row_number, source_name, folded_name, sorted_initials))
            row_and_record = (row_number_by_name[folded_name], waiting_name.record_id)
            spelling_by_row_and_record.setdefault(row_and_record, waiting_name.spelling)
        self._db.executemany(
            "INSERT INTO names (name_row, source, folded, initials) VALUES (?, ?, ?, ?)", name_rows
        )
        insert_spelling_sql = "INSERT INTO name_forms (name_row, record_id, form) VALUES (?, ?, ?)"
        for is_new_name, conflict_sql in ((True, ""), (False, " ON CONFLICT DO NOTHING")):
            self._db.executemany(
                insert_spelling_sql + conflict_sql,
                [
                    (*row_and_record, spelling)
                    for row_and_record, spelling in spelling_by_row_and_record.items()
                    if (row_and_record[0] > last_row_number_before) is is_new_name
                ],
            )
        if self._index_sql:
            self._db.executemany(
                self._index_sql,
                [
                    (name_row_number, folded_text)
                    for name_row_number, _, folded_text, _ in name_rows
                ],
            )

    def _read_row_numbers(self, source_name: str, folded_names: Set[str]) -> dict[str, int]:
        name_rows = self._db.execute(
            f"""SELECT folded, name_row FROM names
                WHERE source = ? AND folded IN ({self._db.dialect.parameter_items_sql})""",
            (source_name, json.dumps(sorted(folded_names))),
        )
        return {name_row["folded"]: name_row["name_row"] for name_row in name_rows}

    def _read_newest_row_number(self, source_name: str) -> int:
        """Return the newest row in the range of a source: each has its own."""
        first_row_number = fold.get_first_name_id(source_name)
        (newest_row_number,) = self._db.execute(
            "SELECT coalesce(max(name_row), ?) FROM names WHERE name_row BETWEEN ? AND ?",
            (first_row_number, first_row_number, first_row_number + fold.MAX_NAMES_PER_SOURCE),
        ).fetchone()
        return int(newest_row_number)

    def delete_names(self, record_id: str) -> None:
        """Delete the names of a record, unless another record has them too."""
        self.write_names()  # what is removed from the index must be in it
        name_rows = self._db.execute(
            "SELECT name_row FROM name_forms WHERE record_id = ?", (record_id,)
        ).fetchall()
        self._db.execute("DELETE FROM name_forms WHERE record_id = ?", (record_id,))
        self._db.executemany(
            """DELETE FROM names WHERE name_row = ? AND NOT EXISTS
                   (SELECT 1 FROM name_forms WHERE name_forms.name_row = names.name_row)""",
            name_rows,
        )

    def discard_names(self) -> None:
        """Drop the names that wait: the transaction is rolled back."""
        self._waiting_names.clear()
