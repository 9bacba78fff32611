"""The searchable index of a collection in the shared database: nothing to keep in step.

Words are ranked by BM25 in plain SQL. Vectors are compared exactly in SQL where few chunks pass a
filter; where many do, in a copy that this process keeps of all vectors. The generation of the
collection decides whether that copy is up to date, at every search.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from readingroom.core.filters import Filter, FilterFields, Metadata
from readingroom.engine import shared_words
from readingroom.engine.context import (
    CONTEXT_FIELD,
    ListContexts,
    batch_missing_contexts,
    embed_anew,
    select_unchanged_chunks,
)
from readingroom.engine.embedding.embedder import Embedder, Vector
from readingroom.engine.embedding.machine import return_memory
from readingroom.engine.index import ChunkIndex, CollectionIndex, EmbeddedIndex
from readingroom.engine.shared_words import (
    RecentReads,
    SharedFilters,
    SharedSearch,
    SharedWords,
    WordCounts,
)
from readingroom.engine.stems import shared_stemmer
from readingroom.engine.vectors import DIMENSIONS, VectorHit, VectorIndex
from readingroom.storage.archive import fill_chunks
from readingroom.storage.chunks import Chunks, StoredCollection
from readingroom.storage.postgres.chunks import PostgresCollection
from readingroom.storage.postgres.encoding import decode_vectors, format_vector

_ROWS_PER_PAGE = 20_000


def open_index(
    collection: StoredCollection,
    filter_fields: FilterFields,
    embedder: Embedder,
    words_path: Path,
    list_contexts: ListContexts | None = None,
) -> ChunkIndex:
    """Return the searchable index of a collection.

    `words_path` is where the word index of an embedded one lies; the shared database has its
    own. With `list_contexts`, chunks that an older release embedded without their
    context are embedded anew.
    """
    if isinstance(collection, PostgresCollection):
        return SharedIndex(collection, filter_fields, embedder, list_contexts)
    return EmbeddedIndex(collection, filter_fields, embedder, words_path, list_contexts)


class SharedIndex(CollectionIndex):
    """The index of a collection that several processes read and write."""

    collection: PostgresCollection

    def __init__(
        self,
        collection: PostgresCollection,
        filter_fields: FilterFields,
        embedder: Embedder,
        list_contexts: ListContexts | None = None,
    ) -> None:
        self._list_contexts = list_contexts
        collection.split_stems = shared_stemmer().split_all
        self.collection = collection
        self.embedder = embedder
        self._word_counts = WordCounts(collection)
        filters = SharedFilters(collection, filter_fields)
        self._vectors = _SharedVectors(collection, filter_fields, filters, self._word_counts)
        self._words = SharedWords(collection, filter_fields, filters, self._word_counts)
        self._recent_chunks: RecentReads[tuple[str, Metadata]] = RecentReads(collection)
        self._is_embedding_claimed = False

    def put_chunks(self, chunks: Chunks) -> None:
        """Add chunks with their vectors, in place of those with the same ids.

        Raise `EmbeddingMismatch` when another model made the vectors of this collection.
        """
        if len(chunks):
            self.collection.claim_embedding(self.embedder.identity)
            self.collection.upsert_chunks(chunks)

    def update_metadata(self, ids: Sequence[str], metadatas: Sequence[Metadata]) -> None:
        """Merge new values into the metadata of chunks; unknown ids are ignored."""
        self.collection.update_metadata(ids, metadatas)

    def delete_chunks(self, ids: Sequence[str]) -> None:
        """Remove chunks; unknown ids are ignored."""
        if ids:
            self.collection.delete_chunks(ids)

    def fetch_chunks(self, ids: Sequence[str]) -> Chunks:
        """Return the chunks with these ids, without vectors; unknown ids are left out."""
        chunks_by_id = self._recent_chunks.read(ids, self._read_chunks)
        present_ids = [chunk_id for chunk_id in ids if chunk_id in chunks_by_id]
        found_chunks = [chunks_by_id[chunk_id] for chunk_id in present_ids]
        return Chunks(
            present_ids, [text for text, _ in found_chunks], [data for _, data in found_chunks]
        )

    def _read_chunks(self, chunk_ids: Sequence[str]) -> dict[str, tuple[str, Metadata]]:
        chunks = self.collection.read_chunks(chunk_ids)
        texts_with_metadata = zip(chunks.texts, chunks.metadatas, strict=True)
        return dict(zip(chunks.ids, texts_with_metadata, strict=True))

    def get_vector_index(self) -> "_SharedVectors":
        """Return what finds chunks by meaning."""
        return self._vectors

    def get_word_index(self) -> SharedWords:
        """Return what finds chunks by words."""
        return self._words

    def rebuild(self) -> None:
        """Count the words anew, and drop this process's copy of the vectors."""
        self.collection.recount()
        self._word_counts.clear_cache()
        self._vectors.drop_copy()

    def list_warm_up_steps(self) -> Sequence[Callable[[], object]]:
        """Return what loads the model, and embeds anew what has no context."""
        if not self.count_chunks():
            return ()
        if (
            self._list_contexts is None
            or self.collection.embedding_identity != self.embedder.identity
        ):
            return (self.embedder.load,)
        context_batches = batch_missing_contexts(
            self.collection.get_without_field(CONTEXT_FIELD), self._list_contexts
        )
        return (
            self.embedder.load,
            *(partial(self._embed_anew, contexts_by_id) for contexts_by_id in context_batches),
        )

    def fill_from_dump(self, dump_path: Path, validate: Callable[[Chunks], object]) -> int:
        """Add the chunks that `dump` wrote, and return how many there are."""
        return fill_chunks(dump_path, self.collection, validate, DIMENSIONS)

    def close(self) -> None:
        """Drop the copy of the vectors."""
        self._vectors.drop_copy()

    def _embed_anew(self, contexts_by_id: Mapping[str, str]) -> None:
        """Embed chunks under their contexts, unless another process is doing so."""
        lock_key = f"embed anew {self.collection.name}"
        with self.collection.database.hold_lock(lock_key) as is_ours:
            chunks = (
                self.collection.read_chunks(list(contexts_by_id)) if is_ours else Chunks([], [], [])
            )
            if not len(chunks):
                return
            renewed_chunks = embed_anew(chunks, contexts_by_id, self.embedder)
            with self.collection.database.transaction():
                unchanged_chunks = select_unchanged_chunks(
                    renewed_chunks, self.collection.read_chunks(renewed_chunks.ids)
                )
                self.collection.replace_vectors(unchanged_chunks, (CONTEXT_FIELD,))

    def _embed_query(self, query: str) -> Vector:
        vector = self.embedder.embed(query)
        # Once claimed, a collection keeps its model; asked again only until then.
        if not self._is_embedding_claimed and self.collection.embedding_identity is not None:
            self.collection.claim_embedding(self.embedder.identity)
            self._is_embedding_claimed = True
        return vector


@dataclass(eq=False)
class _SharedVectors(SharedSearch):
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
        if has_copy or self._filters.count_chunks(where) > shared_words.EXACT_ROWS:
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
