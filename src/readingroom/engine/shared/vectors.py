"""Searching a collection in the shared database by meaning: exactly in SQL, or in a copy."""

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from readingroom.core.filters import Filter, Metadata
from readingroom.engine.embedding.embedder import Vector
from readingroom.engine.embedding.machine import return_memory
from readingroom.engine.shared import counts
from readingroom.engine.shared.counts import SharedSearch
from readingroom.engine.shared.recent_reads import RecentReads
from readingroom.engine.vectors import VectorHit, VectorIndex
from readingroom.storage.postgres.encoding import decode_vectors, format_vector

_ROWS_PER_PAGE = 20_000


@dataclass(eq=False)
class SharedVectors(SharedSearch):
    """Finds chunks by meaning: in the database, or in a copy of its vectors."""

    _copy: VectorIndex | None = None
    _copy_generation: int = -1
    _copy_lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._recent_vectors: RecentReads[Vector] = RecentReads(self._collection)

    def __len__(self) -> int:
        return self._word_counts.read_totals()[0]

    def search(self, vector: Vector, k: int, where: Filter | None = None) -> list[VectorHit]:
        """Return the k nearest chunks that pass the filter, nearest first, equal ones by id."""
        if k < 0:
            raise ValueError(f"k must be at least 0, not {k}")
        if not k:
            return []
        # A copy that is there anyway answers sooner, but knows nothing that is not committed.
        has_copy = self._copy is not None and not self._collection.database.is_in_transaction
        if has_copy or self._filters.count_chunks(where) > counts.EXACT_ROWS:
            return self._open_copy().search(vector, k, where)
        clauses, clause_values = self._filters.build_conditions(where)
        with self._collection.read() as connection:
            hit_rows = connection.execute(
                "SELECT id, distance FROM (SELECT id, embedding <-> ?::vector AS distance FROM "
                f"{self._collection.vectors_table} WHERE {' AND '.join(clauses) or 'true'} "
                # Rounded: the last bits of distances that are equal may differ.
                "OFFSET 0) AS compared ORDER BY round(distance * 1000000), id LIMIT ?",
                (format_vector(vector), *clause_values, k),
                plan_anew=True,
            ).fetchall()
        return [VectorHit(hit_row[0], hit_row[1] * hit_row[1]) for hit_row in hit_rows]

    def get_vectors(self, ids: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors of these chunks, without those that do not exist."""
        return self._recent_vectors.read(ids, self._read_vectors)

    def _read_vectors(self, ids: Sequence[str]) -> dict[str, Vector]:
        with self._collection.read() as connection:
            vector_rows = list(
                connection.iterate_tuples(
                    f"SELECT id, embedding FROM {self._collection.vectors_table} WHERE id = ANY(?)",
                    (list(ids),),
                )
            )
        return dict(
            zip(
                (vector_row[0] for vector_row in vector_rows),
                decode_vectors([vector_row[1] for vector_row in vector_rows]),
                strict=True,
            )
        )

    def drop_copy(self) -> None:
        """Drop the copy; it is read again when it is needed."""
        self._collection.database.notices.unsubscribe(self._collection.name, self.follow_changes)
        with self._copy_lock:
            self._copy = self._filters.vector_copy = None
            self._copy_generation = -1

    def follow_changes(self) -> None:
        """Apply what other processes have written to the copy, so that no search has to."""
        if self._copy is not None:
            self._open_copy()

    def _open_copy(self) -> VectorIndex:
        """Return the copy with everything that was committed before this call."""
        vector_copy = self._copy
        if vector_copy is not None and self._collection.generation == self._copy_generation:
            return vector_copy
        with self._copy_lock:
            if self._copy is not None:
                generation, touched_ids = self._collection.list_changes(self._copy_generation)
                if touched_ids is not None:
                    self._apply_changes(self._copy, touched_ids)
                    self._copy_generation = generation
                    return self._copy
            # Read first: what is written while the copy is made is then applied afterwards.
            self._copy_generation = self._collection.generation
            self._copy = self._filters.vector_copy = self._make_copy()
        self._collection.database.notices.subscribe(self._collection.name, self.follow_changes)
        return self._copy

    def _make_copy(self) -> VectorIndex:
        vector_copy: VectorIndex | None = None
        for chunk_ids, vectors, metadatas in self._read_vector_pages():
            if vector_copy is None:
                vector_copy = VectorIndex(
                    self._filter_fields, vectors.shape[1], self._collection.read_totals()[0]
                )
            vector_copy.upsert_rows(chunk_ids, vectors, metadatas)
        return_memory()
        return vector_copy or VectorIndex(self._filter_fields)

    def _apply_changes(self, vector_copy: VectorIndex, touched_ids: Sequence[str]) -> None:
        present_ids = set()
        for chunk_ids, vectors, metadatas in self._read_vector_pages(touched_ids):
            vector_copy.upsert_rows(chunk_ids, vectors, metadatas)
            present_ids.update(chunk_ids)
        vector_copy.delete_rows(
            [chunk_id for chunk_id in touched_ids if chunk_id not in present_ids]
        )

    def _read_vector_pages(
        self, ids: Sequence[str] | None = None
    ) -> Iterator[tuple[list[str], Any, list[Metadata]]]:
        field_names = self._collection.field_names
        field_columns_sql = "".join(f", field_{field_name}" for field_name in field_names)
        last_id = ""
        while True:
            with self._collection.read() as connection:
                vector_rows = list(
                    connection.iterate_tuples(
                        f"SELECT id, embedding{field_columns_sql} "
                        f"FROM {self._collection.vectors_table} "
                        f"WHERE id > ? {'AND id = ANY(?)' if ids is not None else ''} "
                        "ORDER BY id LIMIT ?",
                        (last_id, *([list(ids)] if ids is not None else []), _ROWS_PER_PAGE),
                    )
                )
            if vector_rows:
                metadatas: list[Metadata] = [
                    {
                        field_name: json.loads(field_value)
                        for field_name, field_value in zip(field_names, vector_row[2:], strict=True)
                        if field_value is not None
                    }
                    for vector_row in vector_rows
                ]
                yield (
                    [vector_row[0] for vector_row in vector_rows],
                    decode_vectors([vector_row[1] for vector_row in vector_rows]),
                    metadatas,
                )
            if len(vector_rows) < _ROWS_PER_PAGE:
                return
            last_id = vector_rows[-1][0]
