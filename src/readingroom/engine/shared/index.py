"""The searchable index of a collection in the shared database: nothing to keep in step.

Where few chunks pass a filter, vectors are compared exactly in SQL, and words are ranked by BM25 in
plain SQL. Where many do, a copy is asked that this process keeps: of all vectors, and of the words
that questions have. The generation of the collection decides at every search whether it is up to
date.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from readingroom.core.arrays import Vector
from readingroom.core.filters import FilterFields, Metadata
from readingroom.engine.context import (
    CONTEXT_FIELD_NAME,
    ListContexts,
    batch_missing_contexts,
    embed_in_context,
    select_unchanged_chunks,
)
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.index import ChunkIndex, CollectionIndex, EmbeddedIndex
from readingroom.engine.shared import counts
from readingroom.engine.shared.counts import SharedFilters, WordCounts
from readingroom.engine.shared.memory_copy import MemoryCopy
from readingroom.engine.shared.recent_reads import RecentReads
from readingroom.engine.shared.vectors import SharedVectors
from readingroom.engine.shared.words import SharedWords
from readingroom.engine.stems import get_shared_stemmer
from readingroom.engine.vectors import DIMENSIONS
from readingroom.engine.vocabulary import preload_vocabulary
from readingroom.storage.archive import load_dumped_chunks
from readingroom.storage.chunks import Chunks, StoredCollection
from readingroom.storage.postgres.chunks import PostgresCollection


def open_chunk_index(
    collection: StoredCollection,
    filter_fields: FilterFields,
    embedder: Embedder,
    word_index_path: Path,
    list_contexts: ListContexts | None = None,
) -> ChunkIndex:
    """Return the searchable index of a collection.

    `word_index_path` is where the word index of an embedded one lies; the shared database has its
    own. With `list_contexts`, chunks that an older release embedded without their
    context are embedded anew.
    """
    if isinstance(collection, PostgresCollection):
        return SharedIndex(collection, filter_fields, embedder, list_contexts)
    return EmbeddedIndex(collection, filter_fields, embedder, word_index_path, list_contexts)


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
        collection.split_stems = get_shared_stemmer().stem_all_words
        self.collection = collection
        self.embedder = embedder
        self._word_counts = WordCounts(collection)
        self._memory_copy = MemoryCopy(collection, filter_fields)
        filters = SharedFilters(collection, filter_fields, self._memory_copy)
        search_parts = (collection, self._memory_copy, filter_fields, filters, self._word_counts)
        self._vector_index = SharedVectors(*search_parts)
        self._word_index = SharedWords(*search_parts)
        self._recent_chunks: RecentReads[tuple[str, Metadata]] = RecentReads(collection)
        self._is_embedding_claimed = False

    def put_chunks(self, chunks: Chunks) -> None:
        """Add chunks with their vectors, in place of those with the same ids.

        Raise `EmbeddingMismatch` when another model made the vectors of this collection.
        """
        if len(chunks):
            self.collection.claim_embedding(self.embedder.identity)
            self.collection.upsert_chunks(chunks)

    def update_metadata(self, chunk_ids: Sequence[str], metadatas: Sequence[Metadata]) -> None:
        """Merge new values into the metadata of chunks; unknown ids are ignored."""
        self.collection.update_metadata(chunk_ids, metadatas)

    def delete_chunks(self, chunk_ids: Sequence[str]) -> None:
        """Remove chunks; unknown ids are ignored."""
        if chunk_ids:
            self.collection.delete_chunks(chunk_ids)

    def fetch_chunks(self, chunk_ids: Sequence[str]) -> Chunks:
        """Return the chunks with these ids, without vectors; unknown ids are left out."""
        contents_by_id = self._recent_chunks.read_through_cache(chunk_ids, self._read_chunks)
        present_ids = [chunk_id for chunk_id in chunk_ids if chunk_id in contents_by_id]
        present_contents = [contents_by_id[chunk_id] for chunk_id in present_ids]
        return Chunks(
            present_ids,
            [text for text, _ in present_contents],
            [chunk_metadata for _, chunk_metadata in present_contents],
        )

    def _read_chunks(self, chunk_ids: Sequence[str]) -> dict[str, tuple[str, Metadata]]:
        chunks = self.collection.read_chunks(chunk_ids)
        texts_and_metadatas = zip(chunks.texts, chunks.metadatas, strict=True)
        return dict(zip(chunks.ids, texts_and_metadatas, strict=True))

    def get_vector_index(self) -> SharedVectors:
        """Return what finds chunks by meaning."""
        return self._vector_index

    def get_word_index(self) -> SharedWords:
        """Return what finds chunks by words."""
        return self._word_index

    def rebuild_indexes(self) -> None:
        """Count the words anew, and drop this process's copy."""
        self.collection.recount()
        self._word_counts.clear_cache()
        self._memory_copy.drop_copy()

    def list_warm_up_steps(self) -> Sequence[Callable[[], object]]:
        """Return what loads vocabulary, copy and model, and embeds anew what has no context."""
        if not self.count_chunks():
            return (self._keep_copy_ready,)
        if (
            self._list_contexts is None
            or self.collection.embedding_identity != self.embedder.identity
        ):
            return (preload_vocabulary, self._keep_copy_ready, self.embedder.load)
        context_batches = batch_missing_contexts(
            self.collection.get_chunks_without_field(CONTEXT_FIELD_NAME), self._list_contexts
        )
        return (
            preload_vocabulary,
            self._keep_copy_ready,
            self.embedder.load,
            *(
                partial(self._embed_chunks_in_context, contexts_by_id)
                for contexts_by_id in context_batches
            ),
        )

    def fill_from_dump(self, dump_path: Path, validate_chunks: Callable[[Chunks], object]) -> int:
        """Add the chunks that `dump` wrote, and return how many there are."""
        return load_dumped_chunks(dump_path, self.collection, validate_chunks, DIMENSIONS)

    def close(self) -> None:
        """Drop the copy that this process keeps."""
        self._memory_copy.close()

    def _keep_copy_ready(self) -> None:
        # Few chunks are compared in SQL, until there is a copy.
        self._memory_copy.keep_ready(
            with_vectors=len(self._word_index) > counts.MAX_CHUNKS_COMPARED_IN_SQL
        )

    def _embed_chunks_in_context(self, contexts_by_id: Mapping[str, str]) -> None:
        """Embed chunks under their contexts, unless another process is doing so."""
        lock_name = f"embed anew {self.collection.name}"
        with self.collection.database.hold_lock(lock_name) as is_lock_held:
            chunks = (
                self.collection.read_chunks(list(contexts_by_id))
                if is_lock_held
                else Chunks([], [], [])
            )
            if not len(chunks):
                return
            renewed_chunks = embed_in_context(chunks, contexts_by_id, self.embedder)
            with self.collection.database.transaction():
                unchanged_chunks = select_unchanged_chunks(
                    renewed_chunks, self.collection.read_chunks(renewed_chunks.ids)
                )
                self.collection.replace_vectors(unchanged_chunks, (CONTEXT_FIELD_NAME,))

    def _embed_query(self, query: str) -> Vector:
        query_vector = self.embedder.embed(query)
        # Once claimed, a collection keeps its model; asked again only until then.
        if not self._is_embedding_claimed and self.collection.embedding_identity is not None:
            self.collection.claim_embedding(self.embedder.identity)
            self._is_embedding_claimed = True
        return query_vector
