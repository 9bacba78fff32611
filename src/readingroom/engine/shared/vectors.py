"""Searching a collection in the shared database by meaning: exactly in SQL, or in a copy."""

from collections.abc import Sequence
from dataclasses import dataclass

from readingroom.core.arrays import Vector
from readingroom.core.filters import Filter
from readingroom.engine.shared import counts
from readingroom.engine.shared.counts import SharedSearchParts
from readingroom.engine.shared.recent_reads import RecentReads
from readingroom.engine.vectors import STEPS_PER_UNIT_DISTANCE, VectorHit
from readingroom.storage.postgres.encoding import decode_vectors, format_vector


@dataclass(eq=False)
class SharedVectors(SharedSearchParts):
    """Finds chunks by meaning: in the database, or in a copy of its vectors."""

    def __post_init__(self) -> None:
        self._recent_vectors: RecentReads[Vector] = RecentReads(self._collection)

    def __len__(self) -> int:
        return self._word_counts.count_chunks_and_tokens()[0]

    def search(self, query_vector: Vector, k: int, where: Filter | None = None) -> list[VectorHit]:
        """Return the k nearest chunks that pass the filter, nearest first, equal ones by id."""
        if k < 0:
            raise ValueError(f"k must be at least 0, not {k}")
        if not k:
            return []
        # A copy that is there anyway answers sooner.
        if (
            self._memory_copy.is_usable
            or self._filters.count_passing_chunks(where) > counts.MAX_CHUNKS_COMPARED_IN_SQL
        ):
            return self._memory_copy.open_vectors().search(query_vector, k, where)
        sql_clauses, clause_values = self._filters.build_conditions(where)
        with self._collection.lend_search_connection() as connection:
            hit_rows = connection.execute(
                "SELECT id, distance FROM (SELECT id, embedding <-> ?::vector AS distance FROM "
                f"{self._collection.vectors_table} WHERE {' AND '.join(sql_clauses) or 'true'} "
                # Rounded: the last bits of distances that are equal may differ.
                "OFFSET 0) AS compared "
                f"ORDER BY round(distance * distance * {STEPS_PER_UNIT_DISTANCE}), id LIMIT ?",
                (format_vector(query_vector), *clause_values, k),
                plan_anew=True,
            ).fetchall()
        return [VectorHit(hit_row[0], hit_row[1] * hit_row[1]) for hit_row in hit_rows]

    def get_vectors(self, chunk_ids: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors of these chunks, without those that do not exist."""
        if self._memory_copy.is_usable:
            return self._memory_copy.open_vectors().get_vectors(chunk_ids)
        return self._recent_vectors.read_through_cache(chunk_ids, self._read_vectors)

    def _read_vectors(self, chunk_ids: Sequence[str]) -> dict[str, Vector]:
        with self._collection.lend_search_connection() as connection:
            vector_rows = list(
                connection.iterate_tuples(
                    f"SELECT id, embedding FROM {self._collection.vectors_table} WHERE id = ANY(?)",
                    (list(chunk_ids),),
                )
            )
        return dict(
            zip(
                (vector_row[0] for vector_row in vector_rows),
                decode_vectors([vector_row[1] for vector_row in vector_rows]),
                strict=True,
            )
        )
