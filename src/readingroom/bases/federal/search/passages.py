"""The record and the source of each passage, in memory, so that searches need not look them up.

The number of a passage is never used again and its record never changes, so only new ones are read.
Removed ones may stay: no index returns them any more.
"""

import threading
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from readingroom.bases.federal.schema.sources import SOURCES
from readingroom.storage.database import Database, Row

_CODES = {source.name: code for code, source in enumerate(SOURCES)}

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]

PASSAGE_COLUMNS = """c.chunk, p.title, p.abstract, p.action, p.body,
    (SELECT h.title FROM chunks k JOIN passages h USING (chunk)
     WHERE k.doc = c.doc AND k.part = 'head' AND k.ordinal = 0) AS heading"""
"""What `build_passage_text` reads, of chunks `c` and passages `p`."""
_MAX_HEADING = 150  # characters of a record's title before each of its passages


class Passages:
    """Two arrays by passage number. There is one writer at a time; readers need no lock."""

    def __init__(self) -> None:
        self._docs = np.zeros(0, np.int32)
        self._sources = np.zeros(0, np.int8)
        self._generation = -1
        self._seen = 0
        self._updating = threading.Lock()

    def refresh(self, db: Database) -> None:
        """Add the passages that are new since the last time; usually there are none."""
        if read_generation(db) <= self._generation:
            return
        with self._updating:
            current_generation = read_generation(db)
            new_rows = self._read_new_rows(db)
            if len(new_rows):
                self._grow(int(new_rows["chunk"][-1]) + 1)
                self._docs[new_rows["chunk"]] = new_rows["doc"]
                self._sources[new_rows["chunk"]] = new_rows["source"]
                self._seen = int(new_rows["chunk"][-1])
            self._generation = max(self._generation, current_generation)

    def __len__(self) -> int:
        """How many passages there have been; removed ones count until the process ends."""
        return self._seen

    def docs(self, chunks: Numbers | Sequence[int]) -> NDArray[np.int32]:
        """Return the numbers of the records of these passages."""
        return self._docs[chunks]

    def is_of_sources(self, source_names: Iterable[str], chunks: Numbers) -> Mask:
        """Return, for each passage, whether it belongs to one of these sources."""
        requested = np.zeros(len(SOURCES), bool)
        requested[[_CODES[record_source] for record_source in source_names]] = True
        return requested[self._sources[chunks]]

    def _read_new_rows(self, db: Database) -> NDArray[np.void]:
        passage_rows = db.iterate_tuples(
            """SELECT c.chunk, c.doc, d.source FROM chunks c JOIN documents d USING (doc)
               WHERE c.chunk > ? ORDER BY c.chunk""",
            (self._seen,),
        )
        coded_rows = (
            (chunk, document_number, _CODES[source_name])
            for chunk, document_number, source_name in passage_rows
        )
        dtype = [("chunk", np.int64), ("doc", np.int32), ("source", np.int8)]
        return np.fromiter(coded_rows, np.dtype(dtype))

    def _grow(self, needed: int) -> None:
        """Replace the arrays by larger ones; readers may still use the old ones."""
        if needed > len(self._docs):
            more = max(needed, len(self._docs) * 3 // 2) - len(self._docs)
            self._sources = np.pad(self._sources, (0, more))
            self._docs = np.pad(self._docs, (0, more))


def read_generation(db: Database) -> int:
    """Return how often the file has changed."""
    return int(db.execute("SELECT value FROM generation").fetchone()["value"])


def build_passage_text(passage_row: Row) -> str:
    """Return a passage under its record's title: alone it may not say what it is about."""
    first_heading = (passage_row["heading"] or "").partition("\n")[0][:_MAX_HEADING]
    text_parts = [
        passage_row["title"] or first_heading,
        passage_row["abstract"],
        passage_row["action"],
        passage_row["body"],
    ]
    return "\n".join(text_part for text_part in text_parts if text_part) or "untitled"
