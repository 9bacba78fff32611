"""How much of each source is embedded, in percent."""

import time

from readingroom.bases.federal import store
from readingroom.bases.federal.search.passages import read_generation
from readingroom.storage.database import Database

_COST_SHARE = 20
"""Counting again waits for so many times as long as it took: a load changes the file often."""


class EmbeddingCoverage:
    """Counts passages with a vector, again when the file has changed."""

    def __init__(self) -> None:
        self._percents: dict[str, int] = {}
        self._generation = -1
        self._count_again_at = 0.0

    def read(self, db: Database) -> dict[str, int]:
        """Return the percentage of each source that has passages; 100 only when all have one."""
        generation = read_generation(db)
        started = time.monotonic()
        if generation != self._generation and started >= self._count_again_at:
            self._percents = {
                row["source"]: row["embedded_percent"]
                for row in store.read_status(db)
                if row["chunks"]
            }
            self._generation = generation
            self._count_again_at = started + _COST_SHARE * (time.monotonic() - started)
        return self._percents
