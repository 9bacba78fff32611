"""A collection of chunks with the indexes derived from it: filled on need, kept in step by writes.

The store is the truth. What is derived carries the generation it was made from and is made anew
when the store has moved on without it, so a crash at any moment loses nothing and repairs nothing.
"""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from readingroom.core.filters import Fields, Filter, Metadata
from readingroom.engine.embedding.embedder import Embedder, Vector
from readingroom.engine.embedding.machine import return_memory
from readingroom.engine.errors import ModelUnavailable
from readingroom.engine.hybrid import DEPTH, search_both
from readingroom.engine.lexical import Document, LexicalHit, LexicalIndex
from readingroom.engine.recent import RecentChunks
from readingroom.engine.vectors import Hit, VectorIndex
from readingroom.storage.chunks import ChunkCollection, Chunks
from readingroom.storage.errors import EmbeddingMismatch

TEXT = "text"
"""The one column of a shelf's lexical index."""
_PAGE = 5_000


@dataclass(frozen=True, slots=True)
class Fused:
    """The best chunks by words and meaning together; `degraded` says why meaning was left out."""

    ids: list[str]
    degraded: str | None = None


class Shelf:
    """Chunks that can be put, found and taken away; safe for any readers and writers."""

    def __init__(
        self, chunks: ChunkCollection, fields: Fields, embedder: Embedder, words: LexicalIndex
    ) -> None:
        self.chunks = chunks
        self.fields = fields
        self._embedder = embedder
        self._words = words
        self._vectors: VectorIndex | None = None
        self._recent = RecentChunks(chunks.get)
        self._writing = threading.RLock()

    # --- writing: the store first, then what is derived from it ---

    def put(self, chunks: Chunks) -> None:
        """Put chunks, with the vectors that this shelf's model made, in place of those with the
        same ids.
        """
        if not len(chunks):
            return
        with self._writing:
            self.chunks.claim(self._embedder.identity)
            in_step = self._words_are_in_step()
            with self._changing():
                self.chunks.upsert(chunks)
                if self._vectors is not None:
                    self._vectors.upsert(chunks.ids, chunks.vectors, chunks.metadatas)
                if in_step:
                    self._words.upsert(_documents(chunks), self.chunks.generation)

    def change(self, ids: Sequence[str], metadatas: Sequence[Metadata]) -> None:
        """Lay new values over the metadata of chunks that are there."""
        with self._writing:
            in_step = self._words_are_in_step()
            with self._changing():
                self.chunks.update_metadata(ids, metadatas)
                if self._vectors is not None:
                    self._vectors.update_metadata(ids, metadatas)
                if in_step:
                    self._words.update_metadata(ids, metadatas, self.chunks.generation)

    def remove(self, ids: Sequence[str]) -> None:
        """Take chunks away; ids that are not there are ignored."""
        with self._writing:
            in_step = self._words_are_in_step()
            with self._changing():
                self.chunks.delete(ids)
                if self._vectors is not None:
                    self._vectors.delete(ids)
                if in_step:
                    self._words.delete(ids, self.chunks.generation)

    # --- searching ---

    def near(self, question: str, k: int, where: Filter | None = None) -> list[Hit]:
        """The chunks nearest in meaning; raises `ModelUnavailable` where there is no model."""
        return self.vectors().search(self._vector(question), k, where)

    def worded(self, question: str, k: int, where: Filter | None = None) -> list[LexicalHit]:
        """The chunks that share most words with the question."""
        return self.words().search(question, k, where)

    def search(self, question: str, k: int, where: Filter | None = None) -> Fused:
        """The best by words and meaning together; by words alone where there is no model."""
        depth = max(DEPTH, k)
        worded = [hit.id for hit in self.worded(question, depth, where)]
        try:
            vector = self._vector(question)
        except (ModelUnavailable, EmbeddingMismatch) as error:
            return Fused(worded[:k], error.message)
        return Fused([id for id, _ in search_both(worded, vector, self.vectors(), k, where)])

    def named(self, ids: Sequence[str]) -> Chunks:
        """The chunks that a search found, without vectors; ids that are gone are left out."""
        return self._recent.get(ids)

    # --- what is derived ---

    def vectors(self) -> VectorIndex:
        """The vector index, filled from the store when it is first needed."""
        if self._vectors is None:
            with self._writing:
                if self._vectors is None:
                    self._vectors = self._filled()
        return self._vectors

    def words(self) -> LexicalIndex:
        """The lexical index, filled anew when the store has moved on without it."""
        if not self._words_are_in_step():
            with self._writing:
                if not self._words_are_in_step():
                    pages = self._pages(vectors=False)
                    documents = (document for page in pages for document in _documents(page))
                    self._words.fill(documents, self.chunks.generation)
        return self._words

    def _filled(self) -> VectorIndex:
        index: VectorIndex | None = None
        for page in self._pages(vectors=True):
            if index is None:
                index = VectorIndex(self.fields, page.vectors.shape[1], self.chunks.count())
            index.upsert(page.ids, page.vectors, page.metadatas)
        return_memory()
        return index or VectorIndex(self.fields)

    def _pages(self, vectors: bool) -> Iterator[Chunks]:
        for offset in range(0, self.chunks.count(), _PAGE):
            yield self.chunks.get(vectors=vectors, limit=_PAGE, offset=offset)

    def _words_are_in_step(self) -> bool:
        return self._words.generation == self.chunks.generation

    def _vector(self, question: str) -> Vector:
        vector = self._embedder.embed(question)
        if self.chunks.embedding is not None:
            self.chunks.claim(self._embedder.identity)
        return vector

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Around a write. One that fails half-way leaves the index in doubt: it is filled anew on
        next need.
        """
        try:
            yield
        except BaseException:
            self._vectors = None
            raise
        finally:
            self._recent.forget()


def _documents(chunks: Chunks) -> Iterator[Document]:
    for id, text, metadata in zip(chunks.ids, chunks.texts, chunks.metadatas, strict=True):
        yield Document(id, {TEXT: text}, metadata)
