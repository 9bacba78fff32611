"""What a search in the shared database asks first: how common words are, how many chunks pass."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from readingroom.core.filters import Filter, FilterFields
from readingroom.core.lru import LRUCache
from readingroom.engine.shared.memory_copy import MemoryCopy
from readingroom.storage.postgres.chunks import PostgresCollection
from readingroom.storage.postgres.encoding import build_clauses

SqlConditions = tuple[Sequence[str], Sequence[Any]]
"""Conditions of a filter in SQL, and the values in them."""

MAX_CHUNKS_COMPARED_IN_SQL = 4_096
"""Chunks that may pass a filter for their vectors to be compared in SQL."""
_COUNTS_CACHE_SECONDS = 1.0
# How long it is believed how many chunks pass a filter: it only chooses how to search.
_PASSING_COUNT_CACHE_SECONDS = 5.0


class WordCounts:
    """How common words are: believed for a second, since it only weighs them.

    That there is none is never believed: what was just written must be found.
    """

    def __init__(self, collection: PostgresCollection) -> None:
        self._collection = collection
        self._timed_totals = (0.0, 0, 0)
        self._timed_counts_by_stem: LRUCache[str, tuple[float, int]] = LRUCache(10_000)

    def count_chunks_and_tokens(self) -> tuple[int, int]:
        """Return how many chunks there are, and how many words all of them have."""
        read_time, total_chunk_count, total_token_count = self._timed_totals
        if not total_chunk_count or time.monotonic() - read_time > _COUNTS_CACHE_SECONDS:
            total_chunk_count, total_token_count = self._collection.count_chunks_and_tokens()
            self._timed_totals = (time.monotonic(), total_chunk_count, total_token_count)
        return total_chunk_count, total_token_count

    def count_chunks_by_stem(self, stems: Sequence[str]) -> dict[str, int]:
        """Return in how many chunks each stem occurs, without those that occur in none."""
        current_time = time.monotonic()
        timed_counts_by_stem = {
            stem: timed_count
            for stem in stems
            if (timed_count := self._timed_counts_by_stem.get(stem)) is not None
        }
        chunk_count_by_stem = {
            stem: chunk_count
            for stem, (read_time, chunk_count) in timed_counts_by_stem.items()
            if current_time - read_time <= _COUNTS_CACHE_SECONDS
        }
        missing_stems = [stem for stem in stems if stem not in chunk_count_by_stem]
        if missing_stems:
            for stem, chunk_count in self._collection.count_chunks_by_stem(missing_stems).items():
                chunk_count_by_stem[stem] = chunk_count
                self._timed_counts_by_stem.put(stem, (current_time, chunk_count))
        return chunk_count_by_stem

    def clear_cache(self) -> None:
        self._timed_totals = (0.0, 0, 0)
        self._timed_counts_by_stem = LRUCache(10_000)


class SharedFilters:
    """Filters as SQL, and how many chunks pass each, as far as that matters."""

    def __init__(
        self,
        collection: PostgresCollection,
        filter_fields: FilterFields,
        memory_copy: MemoryCopy,
    ) -> None:
        self._collection = collection
        self._filter_fields = filter_fields
        self._memory_copy = memory_copy
        self._timed_counts_by_filter: LRUCache[Filter, tuple[float, int]] = LRUCache(256)
        # A filter may name thousands of revisions, and the next question has the same one.
        self._sql_conditions_by_filter: LRUCache[Filter, SqlConditions] = LRUCache(32)

    def build_conditions(self, where: Filter | None) -> SqlConditions:
        """Return the conditions of a filter in SQL, and the values in them."""
        if where is None:
            return (), ()
        sql_conditions = self._sql_conditions_by_filter.get(where)
        if sql_conditions is None:
            sql_clauses, clause_values = build_clauses(
                self._filter_fields.parse_filter(where), self._collection.column_field_names
            )
            sql_conditions = tuple(sql_clauses), tuple(clause_values)
            self._sql_conditions_by_filter.put(where, sql_conditions)
        return sql_conditions

    def count_passing_chunks(self, where: Filter | None) -> int:
        """Return how many chunks pass; above `MAX_CHUNKS_COMPARED_IN_SQL` it may be too low."""
        if where is None:
            return self._collection.count_chunks_and_tokens()[0]
        timed_count = self._timed_counts_by_filter.get(where)
        if (
            timed_count is not None
            and time.monotonic() - timed_count[0] < _PASSING_COUNT_CACHE_SECONDS
        ):
            return timed_count[1]
        copied_vector_index = self._memory_copy.vectors
        passing_count = (
            self._count_passing_in_database(where)
            if copied_vector_index is None
            else copied_vector_index.count_rows(where)
        )
        self._timed_counts_by_filter.put(where, (time.monotonic(), passing_count))
        return passing_count

    def _count_passing_in_database(self, where: Filter) -> int:
        sql_clauses, clause_values = self.build_conditions(where)
        with self._collection.lend_search_connection() as connection:
            count_row = connection.execute(
                f"SELECT count(*) FROM (SELECT 1 FROM {self._collection.vectors_table} "
                f"WHERE {' AND '.join(sql_clauses) or 'true'} LIMIT ?) AS passing",
                (*clause_values, 4 * MAX_CHUNKS_COMPARED_IN_SQL),
                plan_anew=True,
            ).fetchone()
        return int(count_row[0])


@dataclass(eq=False)
class SharedSearchParts:
    """What searching by meaning and by words have in common: a collection and its counts."""

    _collection: PostgresCollection
    _memory_copy: MemoryCopy
    _filter_fields: FilterFields
    _filters: SharedFilters
    _word_counts: WordCounts
