"""The searchable index of one collection of chunks: its vectors in memory, its words in a file.

`shared.index.open_chunk_index` opens it, or that of a collection in the shared database. The
collection is the source of truth. Both indexes are filled from it when they are first needed
and kept up to date by every write. The word index records the generation of the collection it was
built from and is built anew when the two differ, so a crash at any moment leaves nothing to repair.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Protocol

from readingroom.core.arrays import Vector
from readingroom.core.filters import Filter, FilterFields, Metadata
from readingroom.core.lru import LRUCache
from readingroom.core.modes import Mode
from readingroom.core.scores import ScoreParts
from readingroom.engine.context import (
    ListContexts,
    batch_missing_contexts,
    embed_in_context,
    list_embedded_texts,
    select_unchanged_chunks,
)
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.embedding.machine import return_free_memory
from readingroom.engine.errors import ModelUnavailable
from readingroom.engine.hybrid import PROPOSALS_PER_SEARCH, rank_proposals, rerank_first_passages
from readingroom.engine.lexical import LexicalDocument, LexicalIndex
from readingroom.engine.ranking import ComparedPassage, ProposedPassage, RankPassages, rank_passages
from readingroom.engine.vectors import DIMENSIONS, VectorIndex, VectorSearch
from readingroom.engine.vocabulary import preload_vocabulary
from readingroom.engine.words import LexicalHit, LexicalStatistics
from readingroom.storage.archive import dump_chunks, load_dumped_chunks
from readingroom.storage.chunks import Chunks, StoredCollection
from readingroom.storage.errors import EmbeddingMismatch

_CHUNK_TEXT_COLUMN = "text"
# As many as the store reads at once; the whole collection with its vectors would fill memory.
_CHUNKS_PER_PAGE = 5_000
_MAX_RECENT_CHUNKS = 4_096  # about 8 MB


@dataclass(frozen=True, slots=True)
class ChunkHit:
    """A chunk that matches a query; `score` is the probability that it answers it."""

    chunk_id: str
    score: float
    score_parts: ScoreParts

    @property
    def relevance_score(self) -> float:
        """The cosine of its vector with the query's; where there is none, the score."""
        return self.score if self.score_parts.semantic is None else self.score_parts.semantic


@dataclass(frozen=True, slots=True)
class Ranking:
    """The hits of a search, best first; `degraded_reason` says why meaning was left out, if so."""

    hits: list[ChunkHit]
    degraded_reason: str | None = None


class ChunkIndex(Protocol):
    """A collection of chunks that can be searched by words, by meaning and by both.

    Safe for concurrent readers and writers. Every method blocks: callers on an event loop run them
    in a thread. Bases know this class only; `open_chunk_index` chooses what is behind it.
    """

    rank_passages: RankPassages = staticmethod(rank_passages)
    """Orders what the searches by words and by meaning propose; a base may have its own."""

    @property
    def generation(self) -> int:
        """A number that rises with every write."""
        ...

    def put_chunks(self, chunks: Chunks) -> None:
        """Add chunks with their vectors, in place of those with the same ids.

        Raise `EmbeddingMismatch` when another model made the vectors of this collection.
        """
        ...

    def update_metadata(self, chunk_ids: Sequence[str], metadatas: Sequence[Metadata]) -> None:
        """Merge new values into the metadata of chunks; unknown ids are ignored."""
        ...

    def delete_chunks(self, chunk_ids: Sequence[str]) -> None:
        """Remove chunks; unknown ids are ignored."""
        ...

    def search(self, query: str, k: int, where: Filter | None, mode: Mode) -> Ranking:
        """Return the k best chunks that pass the filter."""
        ...

    def search_words(self, query: str, k: int, where: Filter | None = None) -> list[LexicalHit]:
        """Return the k chunks that match the words of the query best."""
        ...

    def fetch_chunks(self, chunk_ids: Sequence[str]) -> Chunks:
        """Return the chunks with these ids, without vectors; unknown ids are left out."""
        ...

    def read_chunks(self, where: Filter | None = None) -> Chunks:
        """Return every chunk that passes the filter, without vectors."""
        ...

    def read_vectors_by_text(self, where: Filter) -> dict[str, Vector]:
        """Return the vectors of the chunks that pass the filter, by what was embedded of each.

        Those of another model than today's are left out.
        """
        ...

    def count_chunks(self) -> int:
        """Return how many chunks there are; raise `StoreUnusable` if they cannot be read."""
        ...

    def count_chunks_of_both_indexes(self) -> tuple[int, int]:
        """Return how many chunks can be found by meaning, and how many by words."""
        ...

    def rebuild_indexes(self) -> None:
        """Build anew what is derived from the chunks, when it is next needed."""
        ...

    def list_warm_up_steps(self) -> Sequence[Callable[[], object]]:
        """Return what to call, in this order, so that the first search need not wait for it.

        There is nothing to call where there is nothing to search. A call raises
        `ModelUnavailable` without a model; searches by words are prepared by then.
        """
        ...

    def dump_chunks(self, dump_path: Path) -> int:
        """Write every chunk with its vector to a file, and return how many there are."""
        ...

    def fill_from_dump(self, dump_path: Path, validate_chunks: Callable[[Chunks], object]) -> int:
        """Add the chunks that `dump` wrote, and return how many there are.

        `validate_chunks` raises `ValueError`, `KeyError` or `TypeError` for what the base cannot
        have written. Raise `BackupUnusable` for that, and for a file that cannot be read.
        """
        ...

    def close(self) -> None:
        """Release the files that are open; nothing may be searching."""
        ...


class WordSearch(Protocol):
    """Finds chunks by words."""

    def __len__(self) -> int:
        """Return how many chunks can be found."""
        ...

    def search(self, query: str, k: int, where: Filter | None = None) -> list[LexicalHit]:
        """Return the k best chunks that pass the filter, best first, equal ones by id."""
        ...

    def read_statistics(self) -> LexicalStatistics:
        """Return how common words are in this index."""
        ...


class CollectionIndex(ChunkIndex):
    """What every index of a collection has in common: how it ranks, and what it only passes on.

    Where vectors and words are kept, and how they are kept up to date, its subclasses know.
    """

    collection: StoredCollection
    embedder: Embedder

    def get_vector_index(self) -> VectorSearch:
        """Return what finds chunks by meaning."""
        raise NotImplementedError

    def get_word_index(self) -> WordSearch:
        """Return what finds chunks by words."""
        raise NotImplementedError

    @property
    def generation(self) -> int:
        """The generation of the collection."""
        return self.collection.generation

    def search(self, query: str, k: int, where: Filter | None, mode: Mode) -> Ranking:
        """Return the k best chunks that pass the filter.

        By meaning they are ordered by the cosine; by words and by both, by their score. Where there
        is no model, words alone rank them and the ranking says that it is degraded.
        """
        query_vector, degraded_reason = self._try_embed_query(query, mode)
        used_mode: Mode = "lexical" if query_vector is None else mode
        # By one side alone the others cannot come first, so they need not be read.
        proposal_count = max(PROPOSALS_PER_SEARCH, k) if used_mode == "hybrid" else k
        semantic_ids, lexical_ids = [], []
        if query_vector is not None and used_mode != "lexical" and len(self.get_vector_index()):
            vector_hits = self.get_vector_index().search(query_vector, proposal_count, where)
            semantic_ids = [hit.id for hit in vector_hits]
        if used_mode != "semantic":
            lexical_ids = [hit.id for hit in self.search_words(query, proposal_count, where)]
        compare_passages = partial(self._compare_chunks, query, query_vector)
        passages = rank_proposals(query, semantic_ids, lexical_ids, compare_passages, used_mode, k)
        if used_mode == "hybrid":
            passages = rerank_first_passages(
                query, passages, self._fetch_texts_in_context, self.embedder.reranker
            )
        hits = [
            ChunkHit(passage.passage_id, passage.score, passage.score_parts)
            for passage in passages[:k]
        ]
        return Ranking(hits, degraded_reason)

    def search_words(self, query: str, k: int, where: Filter | None = None) -> list[LexicalHit]:
        """Return the k chunks that match the words of the query best."""
        return self.get_word_index().search(query, k, where)

    def read_chunks(self, where: Filter | None = None) -> Chunks:
        """Return every chunk that passes the filter, without vectors."""
        return self.collection.read_chunks(where=where)

    def read_vectors_by_text(self, where: Filter) -> dict[str, Vector]:
        """Return the vectors of the chunks that pass the filter, if they are today's model's."""
        if self.collection.embedding_identity != self.embedder.identity:
            return {}
        chunks = self.collection.read_chunks(where=where, with_vectors=True)
        return dict(zip(list_embedded_texts(chunks), chunks.vectors, strict=True))

    def count_chunks(self) -> int:
        """Return how many chunks there are; raise `StoreUnusable` if they cannot be read."""
        return self.collection.count_chunks()

    def list_warm_up_steps(self) -> Sequence[Callable[[], object]]:
        """Return what fills both indexes and loads the vocabulary and the model."""
        return (
            (self.get_word_index, preload_vocabulary, self.embedder.load, self.get_vector_index)
            if self.count_chunks()
            else ()
        )

    def dump_chunks(self, dump_path: Path) -> int:
        """Write every chunk with its vector to a file, and return how many there are."""
        return dump_chunks(self.collection, dump_path)

    def count_chunks_of_both_indexes(self) -> tuple[int, int]:
        """Return how many chunks the vector index and the word index hold."""
        return len(self.get_vector_index()), len(self.get_word_index())

    def _try_embed_query(self, query: str, mode: Mode) -> tuple[Vector | None, str | None]:
        """Return the vector of a query, or None and why a search by meaning is not possible."""
        try:
            return self._embed_query(query), None
        except ModelUnavailable as error:
            failure_reason = error.message
        except EmbeddingMismatch as error:
            if mode == "semantic":
                raise
            failure_reason = error.message
        return None, None if mode == "lexical" else failure_reason

    def _compare_chunks(
        self, query: str, query_vector: Vector | None, chunk_ids: Sequence[str]
    ) -> list[ComparedPassage]:
        chunks = self.fetch_chunks(chunk_ids)
        vectors = {} if query_vector is None else self.get_vector_index().get_vectors(chunks.ids)
        proposals = [
            ProposedPassage(chunk_id, chunk_text, vectors.get(chunk_id))
            for chunk_id, chunk_text in zip(chunks.ids, chunks.texts, strict=True)
        ]
        statistics = self.get_word_index().read_statistics()
        return self.rank_passages(query, query_vector, proposals, statistics)

    def _fetch_texts_in_context(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        """Return chunks by id, each below what it stands under, as it was embedded."""
        chunks = self.fetch_chunks(chunk_ids)
        return dict(zip(chunks.ids, list_embedded_texts(chunks), strict=True))

    def _embed_query(self, query: str) -> Vector:
        query_vector = self.embedder.embed(query)
        if self.collection.embedding_identity is not None:
            self.collection.claim_embedding(self.embedder.identity)
        return query_vector


class EmbeddedIndex(CollectionIndex):
    """The index of a collection in this process: its vectors in memory, its words in a file.

    `word_index_path` is that of the word index, a file that may be deleted at any time.
    """

    def __init__(
        self,
        collection: StoredCollection,
        filter_fields: FilterFields,
        embedder: Embedder,
        word_index_path: Path,
        list_contexts: ListContexts | None = None,
    ) -> None:
        self.collection = collection
        self._list_contexts = list_contexts
        self.embedder = embedder
        self._filter_fields = filter_fields
        self._word_index_path = word_index_path
        self._lexical_index = self._open_word_index()
        self._vector_index: VectorIndex | None = None
        self._recent_chunks = _make_chunk_cache()
        self._write_lock = threading.RLock()

    def close(self) -> None:
        """Close the word index; nothing may be searching."""
        self._lexical_index.close()

    # --- writing: the collection first, then what is derived from it ---

    def put_chunks(self, chunks: Chunks) -> None:
        """Add chunks with their vectors, in place of those with the same ids.

        Raise `EmbeddingMismatch` when another model made the vectors of this collection.
        """
        if not len(chunks):
            return
        with self._write_lock:
            self.collection.claim_embedding(self.embedder.identity)
            with self._enclose_write() as lexical_index:
                self.collection.upsert_chunks(chunks)
                if self._vector_index is not None and not len(self._vector_index):
                    # Nothing said yet how long vectors are; the next search fills it anew.
                    self._vector_index = None
                if self._vector_index is not None:
                    self._vector_index.upsert_rows(chunks.ids, chunks.vectors, chunks.metadatas)
                if lexical_index is not None:
                    lexical_index.upsert_documents(
                        _make_lexical_documents(chunks), self.collection.generation
                    )

    def update_metadata(self, chunk_ids: Sequence[str], metadatas: Sequence[Metadata]) -> None:
        """Merge new values into the metadata of chunks; unknown ids are ignored."""
        with self._enclose_write() as lexical_index:
            self.collection.update_metadata(chunk_ids, metadatas)
            if self._vector_index is not None:
                self._vector_index.update_metadata(chunk_ids, metadatas)
            if lexical_index is not None:
                lexical_index.update_metadata(chunk_ids, metadatas, self.collection.generation)

    def delete_chunks(self, chunk_ids: Sequence[str]) -> None:
        """Remove chunks; unknown ids are ignored."""
        if not chunk_ids:
            return
        with self._enclose_write() as lexical_index:
            self.collection.delete_chunks(chunk_ids)
            if self._vector_index is not None:
                self._vector_index.delete_rows(chunk_ids)
            if lexical_index is not None:
                lexical_index.delete_documents(chunk_ids, self.collection.generation)

    def rebuild_indexes(self) -> None:
        """Build both indexes anew from the collection, when they are next needed."""
        with self._write_lock:
            self._lexical_index.close()
            # A word index without its file has no generation, so it is filled at the next search.
            self._word_index_path.unlink(missing_ok=True)
            self._lexical_index = self._open_word_index()
            self._vector_index = None
            self._recent_chunks = _make_chunk_cache()

    # --- reading ---

    def fetch_chunks(self, chunk_ids: Sequence[str]) -> Chunks:
        """Return the chunks with these ids, without vectors; unknown ids are left out.

        The same passages answer again and again, and reading ten of them from the collection takes
        as long as finding them, so the most recent ones are kept in memory.
        """
        # The cache as it is before reading: a write that ends meanwhile puts another one in its
        # place, so what was read too early is never served.
        cache = self._recent_chunks
        contents_by_id = {id: content for id in chunk_ids if (content := cache.get(id)) is not None}
        missing_ids = [chunk_id for chunk_id in chunk_ids if chunk_id not in contents_by_id]
        if missing_ids:
            fetched_chunks = self.collection.read_chunks(missing_ids)
            texts_and_metadatas = zip(fetched_chunks.texts, fetched_chunks.metadatas, strict=True)
            read_contents_by_id = dict(zip(fetched_chunks.ids, texts_and_metadatas, strict=True))
            contents_by_id |= read_contents_by_id
            for chunk_id, text_and_metadata in read_contents_by_id.items():
                cache.put(chunk_id, text_and_metadata)
        present_ids = [chunk_id for chunk_id in chunk_ids if chunk_id in contents_by_id]
        present_contents = [contents_by_id[chunk_id] for chunk_id in present_ids]
        return Chunks(
            present_ids,
            [text for text, _ in present_contents],
            [chunk_metadata for _, chunk_metadata in present_contents],
        )

    def fill_from_dump(self, dump_path: Path, validate_chunks: Callable[[Chunks], object]) -> int:
        """Add the chunks that `dump` wrote, and return how many there are."""
        # Into the collection directly: both indexes are then built once, at the next search.
        chunk_count = load_dumped_chunks(dump_path, self.collection, validate_chunks, DIMENSIONS)
        self.rebuild_indexes()
        return chunk_count

    def get_vector_index(self) -> VectorIndex:
        """Return the vector index, filled from the collection when it is first needed."""
        if self._vector_index is None:
            with self._write_lock:
                if self._vector_index is None:
                    self._vector_index = self._build_vector_index()
        return self._vector_index

    def get_word_index(self) -> LexicalIndex:
        """Return the word index, filled anew when the collection has changed without it."""
        if not self._is_word_index_current():
            with self._write_lock:
                if not self._is_word_index_current():
                    chunk_batches = self._read_chunk_batches(with_vectors=False)
                    documents = chain.from_iterable(map(_make_lexical_documents, chunk_batches))
                    self._lexical_index.replace_documents(documents, self.collection.generation)
        return self._lexical_index

    def list_warm_up_steps(self) -> Sequence[Callable[[], object]]:
        """Return what fills both indexes, loads the model, and embeds anew what has no context."""
        warm_up_steps = super().list_warm_up_steps()
        if not warm_up_steps or self._list_contexts is None:
            return warm_up_steps
        if self.collection.embedding_identity != self.embedder.identity:
            return warm_up_steps
        context_batches = batch_missing_contexts(self.collection.read_chunks(), self._list_contexts)
        embedding_steps = (partial(self._embed_in_context, batch) for batch in context_batches)
        return (*warm_up_steps, *embedding_steps)

    def _embed_in_context(self, contexts_by_id: Mapping[str, str]) -> None:
        """Embed chunks under their contexts; those that changed meanwhile are left alone."""
        chunks = self.collection.read_chunks(list(contexts_by_id))
        if len(chunks):
            renewed_chunks = embed_in_context(chunks, contexts_by_id, self.embedder)
            with self._write_lock:
                current_chunks = self.collection.read_chunks(renewed_chunks.ids)
                self.put_chunks(select_unchanged_chunks(renewed_chunks, current_chunks))

    def _open_word_index(self) -> LexicalIndex:
        return LexicalIndex(self._word_index_path, {_CHUNK_TEXT_COLUMN: 1.0}, self._filter_fields)

    def _is_word_index_current(self) -> bool:
        return self._lexical_index.generation == self.collection.generation

    @contextlib.contextmanager
    def _enclose_write(self) -> Iterator[LexicalIndex | None]:
        """Enclose a write, and yield the word index if it is to be kept up to date.

        One that is out of date already is filled at the next search. After a write that failed
        half-way the vector index is in doubt, so it is dropped and filled again.
        """
        with self._write_lock:
            lexical_index = self._lexical_index if self._is_word_index_current() else None
            try:
                yield lexical_index
            except BaseException:
                self._vector_index = None
                raise
            finally:
                self._recent_chunks = _make_chunk_cache()

    def _build_vector_index(self) -> VectorIndex:
        vector_index: VectorIndex | None = None
        for chunk_batch in self._read_chunk_batches(with_vectors=True):
            if vector_index is None:
                dimensions = chunk_batch.vectors.shape[1]
                vector_index = VectorIndex(
                    self._filter_fields, dimensions, self.collection.count_chunks()
                )
            vector_index.upsert_rows(chunk_batch.ids, chunk_batch.vectors, chunk_batch.metadatas)
        return_free_memory()
        return vector_index or VectorIndex(self._filter_fields)

    def _read_chunk_batches(self, with_vectors: bool) -> Iterator[Chunks]:
        for page_offset in range(0, self.collection.count_chunks(), _CHUNKS_PER_PAGE):
            yield self.collection.read_chunks(
                with_vectors=with_vectors, limit=_CHUNKS_PER_PAGE, offset=page_offset
            )


def _make_chunk_cache() -> LRUCache[str, tuple[str, Metadata]]:
    return LRUCache(_MAX_RECENT_CHUNKS)


def _make_lexical_documents(chunks: Chunks) -> Iterator[LexicalDocument]:
    columns_of_each_chunk = ({_CHUNK_TEXT_COLUMN: chunk_text} for chunk_text in chunks.texts)
    return map(LexicalDocument, chunks.ids, columns_of_each_chunk, chunks.metadatas)
