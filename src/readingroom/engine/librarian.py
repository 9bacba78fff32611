"""A shelf for callers on an event loop: every verb runs in a thread, a write once begun ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from readingroom.core.filters import Fields, Filter, Metadata
from readingroom.core.modes import Mode
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.errors import ModelUnavailable
from readingroom.engine.fusion import K
from readingroom.engine.lexical import LexicalIndex
from readingroom.engine.shelf import TEXT, Shelf
from readingroom.storage.chunks import ChunkCollection, Chunks


@dataclass(frozen=True, slots=True)
class Found:
    """A chunk that answers, and how well."""

    chunk_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """What was found, best first; `degraded` says why meaning was left out, if it was."""

    found: list[Found]
    degraded: str | None = None


class Librarian:
    """One collection of chunks with its two indexes; the words are indexed in a file of ours."""

    def __init__(
        self, chunks: ChunkCollection, fields: Fields, embedder: Embedder, words: Path
    ) -> None:
        self.chunks = chunks
        self._fields = fields
        self._embedder = embedder
        self._path = words
        self._open()

    def close(self) -> None:
        self._words.close()

    # A write is shielded: its thread goes on to the end even when nobody waits for it any more.

    async def put(self, chunks: Chunks) -> None:
        """Add chunks with their vectors, in place of those with the same ids."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._shelf.put, chunks)

    async def change(self, ids: Sequence[str], metadatas: Sequence[Metadata]) -> None:
        """Lay new values over the metadata of chunks that are there."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._shelf.change, ids, metadatas)

    async def delete(self, ids: Sequence[str]) -> None:
        if ids:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._shelf.remove, ids)

    async def get(self, ids: Sequence[str] | None = None, where: Filter | None = None) -> Chunks:
        """The chunks with these ids or that pass this filter, or all."""
        return await anyio.to_thread.run_sync(lambda: self.chunks.get(ids, where))

    async def named(self, ids: Sequence[str]) -> Chunks:
        """The chunks that a search found; those that answered lately are not asked for again."""
        return await anyio.to_thread.run_sync(self._shelf.named, ids)

    async def ranked(self, query: str, k: int, where: Filter | None, mode: Mode) -> Ranking:
        """The best chunks that pass; by words where meaning was asked for and there is no model."""
        return await anyio.to_thread.run_sync(self._ranked, query, k, where, mode)

    async def index_sizes(self) -> tuple[int, int]:
        """How many chunks the vector index and the word index hold."""
        return await anyio.to_thread.run_sync(
            lambda: (len(self._shelf.vectors()), len(self._shelf.words()))
        )

    async def rebuild(self) -> None:
        """Make both indexes anew from the chunks."""
        await anyio.to_thread.run_sync(self._rebuild)

    def _ranked(self, query: str, k: int, where: Filter | None, mode: Mode) -> Ranking:
        if mode == "lexical":
            return Ranking(self._worded(query, k, where))
        if mode == "hybrid":
            both = self._shelf.search(query, k, where)
            return Ranking(_placed(both.ids), both.degraded)
        try:
            near = self._shelf.near(query, k, where)
        except ModelUnavailable as error:
            return Ranking(self._worded(query, k, where), error.message)
        return Ranking([Found(hit.id, hit.score) for hit in near])

    def _worded(self, query: str, k: int, where: Filter | None) -> list[Found]:
        return _placed([hit.id for hit in self._shelf.worded(query, k, where)])

    def _open(self) -> None:
        self._words = LexicalIndex(self._path, {TEXT: 1.0}, self._fields)
        self._shelf = Shelf(self.chunks, self._fields, self._embedder, self._words)

    def _rebuild(self) -> None:
        """Without its file the word index has no generation, so it is filled anew on next need."""
        self._words.close()
        self._path.unlink(missing_ok=True)
        self._open()


def _placed(ids: Sequence[str]) -> list[Found]:
    """A ranking by words has no score of its own between 0 and 1, so the place stands for it."""
    return [Found(id, K / (K + place)) for place, id in enumerate(ids)]
