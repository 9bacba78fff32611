"""The chunks of policies: kept in ChromaDB, found in memory and by words, always in step.

ChromaDB is what lasts; the engine's shelf keeps both indexes in step with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import anyio
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from readingroom.bases.policy.records import Policy, Revision
from readingroom.core.dates import number
from readingroom.core.filters import And, Equals, Fields, Filter, In, Metadata
from readingroom.engine.embedding import Embedder
from readingroom.engine.fusion import K
from readingroom.engine.lexical import LexicalIndex
from readingroom.engine.shelf import TEXT, Shelf
from readingroom.ingest.document import Document
from readingroom.storage.archive import dump_chunks, fill_chunks
from readingroom.storage.chunks import Chunks, ChunkStore

COLLECTION = "policy_docs"

_FIELDS = Fields(equality=("source", "revision_id"))
_PATH = " > "

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as it is kept, its metadata by name."""

    chunk_id: str
    text: str
    source: str
    revision_id: str
    section_ref: str
    section_path: tuple[str, ...]
    pages: tuple[int, ...]
    chunk_index: int
    start: int
    end: int
    extraction_method: str
    page_starts: tuple[int, ...]
    """Where in the document its second and later pages begin."""

    @property
    def page_number(self) -> int:
        return self.pages[0]

    def page_at(self, offset: int) -> int:
        """The page of one of its characters, counted from the document's first."""
        return self.pages[sum(offset >= start for start in self.page_starts)]


@dataclass(frozen=True, slots=True)
class Found:
    """A chunk that answers, and how well."""

    chunk_id: str
    score: float


class PolicyStore:
    """The collection `policy_docs` and the two indexes made from it."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._folder = folder
        self._embedder = embedder
        self._chroma: ChunkStore | None = None
        self._words: LexicalIndex
        self._shelf: Shelf

    async def open(self) -> None:
        await anyio.to_thread.run_sync(self._open)

    async def close(self) -> None:
        await anyio.to_thread.run_sync(self._close)

    # A write is shielded: its thread goes on to the end even when nobody waits for it any more.

    async def put(self, chunks: Chunks) -> None:
        """Add chunks, in place of those with the same ids."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._shelf.put_embedded, chunks)

    async def delete(self, ids: Sequence[str]) -> None:
        if ids:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._shelf.remove, ids)

    async def describe(self, policy: Policy, revision: Revision, end: date | None) -> int:
        """Make the metadata of a revision's chunks say what the registry says; returns how many
        chunks had said something else.
        """
        wanted = of_registry(policy, revision, end)
        held = await self._get(_of(revision.source, revision.revision_id))
        wrong = [
            id
            for id, metadata in zip(held.ids, held.metadatas, strict=True)
            if differs(metadata, wanted)
        ]
        if wrong:
            laid = [wanted] * len(wrong)
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._shelf.change, wrong, laid)
        return len(wrong)

    async def rebuild(self) -> None:
        """Make both indexes anew from the chunks."""
        await anyio.to_thread.run_sync(self._rebuild)

    async def dump(self, path: Path) -> int:
        """Write every chunk to a file; returns how many."""
        return await anyio.to_thread.run_sync(dump_chunks, self._shelf.chunks, path)

    async def fill(self, path: Path) -> int:
        """Put back what `dump` wrote; the indexes follow on next need."""
        held = await anyio.to_thread.run_sync(fill_chunks, path, self._shelf.chunks)
        await self.rebuild()
        return held

    async def ids_of(self, source: str, revision_id: str) -> list[str]:
        return (await self._get(_of(source, revision_id))).ids

    async def chunks_of(self, source: str, revision_id: str) -> list[StoredChunk]:
        """A revision's chunks in reading order."""
        held = await self._get(_of(source, revision_id))
        return sorted(_stored(held), key=lambda chunk: chunk.chunk_index)

    async def named(self, ids: Sequence[str]) -> dict[str, StoredChunk]:
        """Chunks by id; those that are not there are left out."""
        if not ids:
            return {}
        held = await anyio.to_thread.run_sync(self._shelf.chunks.get, list(ids))
        return {chunk.chunk_id: chunk for chunk in _stored(held)}

    async def census(self) -> dict[tuple[str, str], list[Metadata]]:
        """The metadata of every chunk, by source and revision: what a check compares."""
        held = await self._get(None)
        found: dict[tuple[str, str], list[Metadata]] = {}
        for metadata in held.metadatas:
            key = (str(metadata["source"]), str(metadata["revision_id"]))
            found.setdefault(key, []).append(metadata)
        return found

    async def index_sizes(self) -> tuple[int, int]:
        """How many chunks the vector index and the word index hold."""
        return await anyio.to_thread.run_sync(
            lambda: (len(self._shelf.vectors()), len(self._shelf.words()))
        )

    async def nearest(self, query: str, k: int, revisions: Sequence[Revision]) -> list[Found]:
        """The chunks nearest in meaning, among those of these revisions."""
        hits = await anyio.to_thread.run_sync(self._shelf.near, query, k, _within(revisions))
        return [Found(hit.id, hit.score) for hit in hits]

    async def worded(self, query: str, k: int, revisions: Sequence[Revision]) -> list[Found]:
        """The chunks that best hold the words, among those of these revisions."""
        hits = await anyio.to_thread.run_sync(self._shelf.worded, query, k, _within(revisions))
        return _placed([hit.id for hit in hits])

    async def either(
        self, query: str, k: int, revisions: Sequence[Revision]
    ) -> tuple[list[Found], str | None]:
        """The best by meaning and words together, and why meaning was left out, if it was."""
        found = await anyio.to_thread.run_sync(self._shelf.search, query, k, _within(revisions))
        return _placed(found.ids), found.degraded

    async def _get(self, where: Filter | None) -> Chunks:
        return await anyio.to_thread.run_sync(lambda: self._shelf.chunks.get(where=where))

    def _open(self) -> None:
        self._chroma = ChunkStore(self._folder / "chroma")
        collection = self._chroma.collection(COLLECTION)
        self._words = LexicalIndex(self._folder / "words.db", {TEXT: 1.0}, _FIELDS)
        self._shelf = Shelf(collection, _FIELDS, self._embedder, self._words)

    def _close(self) -> None:
        if self._chroma:
            self._words.close()
            self._chroma.close()
            self._chroma = None

    def _rebuild(self) -> None:
        """Without its file the word index has no generation, so it is filled anew on next need."""
        self._words.close()
        (self._folder / "words.db").unlink(missing_ok=True)
        assert self._chroma is not None
        collection = self._chroma.collection(COLLECTION)
        self._words = LexicalIndex(self._folder / "words.db", {TEXT: 1.0}, _FIELDS)
        self._shelf = Shelf(collection, _FIELDS, self._embedder, self._words)


def chunks_from(
    document: Document, vectors: Vectors, policy: Policy, revision: Revision, end: date | None
) -> Chunks:
    """What is stored of a document that was read."""
    ours = of_registry(policy, revision, end)
    return Chunks(
        ids=[chunk_id(revision, chunk.section_ref, chunk.index) for chunk in document.chunks],
        texts=[document.text_of(chunk) for chunk in document.chunks],
        metadatas=[
            {
                **ours,
                "source": revision.source,
                "revision_id": revision.revision_id,
                "section_ref": chunk.section_ref or "",
                # Chroma has no list metadata, so paths and pages travel as text.
                "section_path": _PATH.join(chunk.section_path),
                "page_number": chunk.pages[0] if chunk.pages else 1,
                "pages": ",".join(map(str, chunk.pages)),
                "page_starts": ",".join(
                    str(document.pages[page - 1].start) for page in chunk.pages[1:]
                ),
                "chunk_index": chunk.index,
                "extraction_method": document.method,
                "start": chunk.start,
                "end": chunk.end,
            }
            for chunk in document.chunks
        ],
        vectors=vectors,
    )


def chunk_id(revision: Revision, section_ref: str | None, index: int) -> str:
    """`NPPF__rev_NPPF_2024_12__Para_116__042`; text before the first section is `doc`."""
    section = (section_ref or "doc").replace(" ", "_").replace("/", "_")
    return f"{revision.source}__{revision.revision_id}__{section}__{index:03d}"


def of_registry(policy: Policy, revision: Revision, end: date | None) -> dict[str, str | int]:
    """The part of a chunk's metadata that repeats the registry, and changes with it."""
    return {
        "source_title": policy.title,
        "version_label": revision.version_label,
        "effective_from": number(revision.effective_from),
        "effective_to": number(end),
    }


def differs(metadata: Metadata, wanted: Metadata) -> bool:
    return any(metadata.get(name) != value for name, value in wanted.items())


def _of(source: str, revision_id: str) -> Filter:
    return And((Equals("source", source), Equals("revision_id", revision_id)))


def _within(revisions: Sequence[Revision]) -> Filter:
    return And(
        (
            In("source", tuple({one.source for one in revisions})),
            In("revision_id", tuple(one.revision_id for one in revisions)),
        )
    )


def _placed(ids: Sequence[str]) -> list[Found]:
    """A ranking by words has no score of its own between 0 and 1, so the place stands for it."""
    return [Found(id, K / (K + place)) for place, id in enumerate(ids)]


def _numbers(written: object) -> tuple[int, ...]:
    return tuple(int(number) for number in str(written).split(",") if number)


def _stored(chunks: Chunks) -> list[StoredChunk]:
    return [
        StoredChunk(
            chunk_id=id,
            text=text,
            source=str(metadata["source"]),
            revision_id=str(metadata["revision_id"]),
            section_ref=str(metadata["section_ref"]),
            section_path=tuple(filter(None, str(metadata["section_path"]).split(_PATH))),
            pages=_numbers(metadata["pages"]) or (1,),
            page_starts=_numbers(metadata["page_starts"]),
            chunk_index=int(metadata["chunk_index"]),
            start=int(metadata["start"]),
            end=int(metadata["end"]),
            extraction_method=str(metadata["extraction_method"]),
        )
        for id, text, metadata in zip(chunks.ids, chunks.texts, chunks.metadatas, strict=True)
    ]
