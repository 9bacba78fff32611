"""How much of each source is embedded, in percent, and how an answer says so."""

import time
from collections.abc import Mapping, Sequence

from readingroom.bases.federal import store
from readingroom.bases.federal.models import Degraded
from readingroom.bases.federal.search.passages import read_records_generation
from readingroom.core.modes import Mode
from readingroom.storage.database import Database

_PAUSE_FACTOR_AFTER_COUNT = 20
"""Counting again waits for so many times as long as it took: a load changes the file often."""


class EmbeddingCoverage:
    """Counts passages with a vector, again when the file has changed."""

    def __init__(self) -> None:
        self._percent_by_source: dict[str, int] = {}
        self._generation = -1
        self._next_count_at = 0.0

    def read_percents(self, db: Database) -> dict[str, int]:
        """Return the percentage of each source that has passages; 100 only when all have one."""
        records_generation = read_records_generation(db)
        count_started_at = time.monotonic()
        if records_generation != self._generation and count_started_at >= self._next_count_at:
            self._percent_by_source = {
                status_row["source"]: status_row["embedded_percent"]
                for status_row in store.read_status(db)
                if status_row["chunks"]
            }
            self._generation = records_generation
            self._next_count_at = count_started_at + _PAUSE_FACTOR_AFTER_COUNT * (
                time.monotonic() - count_started_at
            )
        return self._percent_by_source


def build_degraded_search(
    search_mode: Mode,
    degraded_search: Degraded | None,
    source_names: Sequence[str],
    percent_by_source: Mapping[str, int],
) -> Degraded | None:
    """Return why a search is not what was asked for, with how much of each source is embedded.

    What is partly embedded is searched by both, but by meaning only in part.
    """
    partial_percent_by_source = {
        source_name: percent_by_source[source_name]
        for source_name in source_names
        if percent_by_source.get(source_name, 100) < 100
    }
    if not partial_percent_by_source:
        return degraded_search
    if degraded_search is not None:
        return degraded_search.model_copy(update={"embedded_percent": partial_percent_by_source})
    percents_text = ", ".join(
        f"{source_name} {embedded_percent} %"
        for source_name, embedded_percent in partial_percent_by_source.items()
    )
    return Degraded(
        requested_mode=search_mode,
        used_mode=search_mode,
        sources=list(partial_percent_by_source),
        reason=f"embedded so far: {percents_text}; what is not is found by its words alone",
        embedded_percent=partial_percent_by_source,
    )
