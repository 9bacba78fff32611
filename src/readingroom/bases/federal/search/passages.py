"""Which record each passage is of, and of which source: kept in memory, so that no search asks.

A passage's number is never used again and its record never changes, so only new ones are read. What
was removed stays known: no index finds it any more.
"""

import sqlite3
import threading
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from readingroom.bases.federal.schema.sources import SOURCES

_CODES = {source.name: code for code, source in enumerate(SOURCES)}

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Passages:
    """Two arrays by passage number. Any readers, one writer; readers need no lock."""

    def __init__(self) -> None:
        self._docs = np.zeros(0, np.int32)
        self._sources = np.zeros(0, np.int8)
        self._generation = -1
        self._seen = 0
        self._updating = threading.Lock()

    def refresh(self, db: sqlite3.Connection) -> None:
        """Take over what was added since the last time; usually nothing."""
        if generation(db) <= self._generation:
            return
        with self._updating:
            reached = generation(db)
            rows = self._added(db)
            if len(rows):
                self._grow(int(rows["chunk"][-1]) + 1)
                self._docs[rows["chunk"]] = rows["doc"]
                self._sources[rows["chunk"]] = rows["source"]
                self._seen = int(rows["chunk"][-1])
            self._generation = max(self._generation, reached)

    def docs(self, chunks: Numbers | Sequence[int]) -> NDArray[np.int32]:
        """The numbers of the records that these passages are of."""
        return self._docs[chunks]

    def of(self, sources: Iterable[str], chunks: Numbers) -> Mask:
        """Whether each passage is of one of these sources."""
        wanted = np.zeros(len(SOURCES), bool)
        wanted[[_CODES[source] for source in sources]] = True
        return wanted[self._sources[chunks]]

    def _added(self, db: sqlite3.Connection) -> NDArray[np.void]:
        found = db.cursor()
        found.row_factory = None
        found.execute(
            """SELECT c.chunk, c.doc, d.source FROM chunks c JOIN documents d USING (doc)
               WHERE c.chunk > ? ORDER BY c.chunk""",
            (self._seen,),
        )
        rows = ((chunk, doc, _CODES[source]) for chunk, doc, source in found)
        kind = [("chunk", np.int64), ("doc", np.int32), ("source", np.int8)]
        return np.fromiter(rows, np.dtype(kind))

    def _grow(self, needed: int) -> None:
        """Larger arrays in place of the old ones, which readers may still be looking at."""
        if needed > len(self._docs):
            more = max(needed, len(self._docs) * 3 // 2) - len(self._docs)
            self._sources = np.pad(self._sources, (0, more))
            self._docs = np.pad(self._docs, (0, more))


def generation(db: sqlite3.Connection) -> int:
    """How often the file has changed."""
    return int(db.execute("SELECT value FROM generation").fetchone()["value"])
