"""The chunks of policies: kept in ChromaDB, found in memory and by words, always in step.

ChromaDB is what lasts. The vector index and the word index are made from it: at the start when they
are out of date, and then with every write.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from readingroom.bases.policy.records import Policy, Revision
from readingroom.core.dates import number
from readingroom.core.filters import And, Equals, Fields, Filter, In, Metadata
from readingroom.engine.lexical import Document as Words
from readingroom.engine.lexical import LexicalIndex
from readingroom.engine.vectors import VectorIndex
from readingroom.ingest.document import Document
from readingroom.storage.chunks import ChunkCollection, Chunks, ChunkStore

COLLECTION = "policy_docs"

_FIELDS = Fields(equality=("source", "revision_id"))
_COLUMNS = {"section": 2.0, "text": 1.0}
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

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._chroma: ChunkStore | None = None
        self._collection: ChunkCollection
        self._words: LexicalIndex
        self._vectors = VectorIndex(_FIELDS)
        self._writing = anyio.Lock()

    async def open(self) -> None:
        await anyio.to_thread.run_sync(self._open)

    async def close(self) -> None:
        await anyio.to_thread.run_sync(self._close)

    async def put(self, chunks: Chunks, embedding: str) -> None:
        """Add chunks, in place of those with the same ids."""

        def put() -> None:
            self._collection.claim(embedding)
            self._collection.upsert(chunks)
            self._vectors.upsert(chunks.ids, chunks.vectors, chunks.metadatas)
            self._words.upsert(_words(chunks), self._collection.generation)

        await self._write(put)

    async def delete(self, ids: Sequence[str]) -> None:
        def delete() -> None:
            self._collection.delete(ids)
            self._vectors.delete(ids)
            self._words.delete(ids, self._collection.generation)

        if ids:
            await self._write(delete)

    async def describe(self, policy: Policy, revision: Revision, end: date | None) -> int:
        """Make the metadata of a revision's chunks say what the registry says; returns how many
        chunks had said something else.
        """
        wanted = _of_registry(policy, revision, end)
        held = await self._read(self._of(revision.source, revision.revision_id))
        wrong = [
            id
            for id, metadata in zip(held.ids, held.metadatas, strict=True)
            if any(metadata.get(name) != value for name, value in wanted.items())
        ]

        def describe() -> None:
            laid = [wanted] * len(wrong)
            self._collection.update_metadata(wrong, laid)
            self._vectors.update_metadata(wrong, laid)
            self._words.update_metadata(wrong, laid, self._collection.generation)

        if wrong:
            await self._write(describe)
        return len(wrong)

    async def ids_of(self, source: str, revision_id: str) -> list[str]:
        return (await self._read(self._of(source, revision_id))).ids

    async def chunks_of(self, source: str, revision_id: str) -> list[StoredChunk]:
        """A revision's chunks in reading order."""
        held = await self._read(self._of(source, revision_id))
        return sorted(_stored(held), key=lambda chunk: chunk.chunk_index)

    async def named(self, ids: Sequence[str]) -> dict[str, StoredChunk]:
        """Chunks by id; those that are not there are left out."""
        held = await anyio.to_thread.run_sync(lambda: self._collection.get(ids=list(ids)))
        return {chunk.chunk_id: chunk for chunk in _stored(held)}

    async def census(self) -> dict[tuple[str, str], list[Metadata]]:
        """The metadata of every chunk, by source and revision: what a check compares."""
        held = await self._read(None)
        found: dict[tuple[str, str], list[Metadata]] = {}
        for metadata in held.metadatas:
            key = (str(metadata["source"]), str(metadata["revision_id"]))
            found.setdefault(key, []).append(metadata)
        return found

    def chunk_count(self) -> int:
        return self._collection.count()

    def index_sizes(self) -> tuple[int, int]:
        """How many chunks the vector index and the word index hold."""
        return len(self._vectors), len(self._words)

    async def rebuild(self) -> None:
        """Make both indexes anew from the chunks."""

        def rebuild() -> None:
            held = self._fill_vectors()
            self._words.fill(_words(held), self._collection.generation)

        await self._write(rebuild)

    async def nearest(self, vector: Vectors, k: int, revisions: Sequence[Revision]) -> list[Found]:
        """The chunks nearest in meaning, among those of these revisions."""
        where = _within(revisions)
        hits = await anyio.to_thread.run_sync(lambda: self._vectors.search(vector, k, where))
        return [Found(hit.id, hit.score) for hit in hits]

    async def worded(self, query: str, k: int, revisions: Sequence[Revision]) -> list[Found]:
        """The chunks that best hold the words, among those of these revisions."""
        where = _within(revisions)
        hits = await anyio.to_thread.run_sync(lambda: self._words.search(query, k, where))
        return [Found(hit.id, hit.score) for hit in hits]

    async def _read(self, where: Filter | None) -> Chunks:
        return await anyio.to_thread.run_sync(lambda: self._collection.get(where=where))

    async def _write(self, write: Callable[[], None]) -> None:
        """One write at a time, and never half of one: it is finished even when nobody waits."""
        async with self._writing:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(write)

    @staticmethod
    def _of(source: str, revision_id: str) -> Filter:
        return And((Equals("source", source), Equals("revision_id", revision_id)))

    def _open(self) -> None:
        self._chroma = ChunkStore(self._folder / "chroma")
        self._collection = self._chroma.collection(COLLECTION)
        self._words = LexicalIndex(self._folder / "words.db", _COLUMNS, _FIELDS)
        held = self._fill_vectors()
        if self._words.generation != self._collection.generation:
            self._words.fill(_words(held), self._collection.generation)

    def _fill_vectors(self) -> Chunks:
        held = self._collection.get(vectors=True)
        vectors = VectorIndex(_FIELDS, reserve=len(held))
        if held.ids:
            vectors.upsert(held.ids, held.vectors, held.metadatas)
        self._vectors = vectors
        return held

    def _close(self) -> None:
        if self._chroma:
            self._words.close()
            self._chroma.close()
            self._chroma = None


def chunks_from(
    document: Document, vectors: Vectors, policy: Policy, revision: Revision, end: date | None
) -> Chunks:
    """What is stored of a document that was read."""
    ours = _of_registry(policy, revision, end)
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


def _of_registry(policy: Policy, revision: Revision, end: date | None) -> dict[str, str | int]:
    """The part of a chunk's metadata that repeats the registry, and changes with it."""
    return {
        "source_title": policy.title,
        "version_label": revision.version_label,
        "effective_from": number(revision.effective_from),
        "effective_to": number(end),
    }


def _within(revisions: Iterable[Revision]) -> Filter:
    chosen = list(revisions)
    return And(
        (
            In("source", tuple({one.source for one in chosen})),
            In("revision_id", tuple(one.revision_id for one in chosen)),
        )
    )


def _words(chunks: Chunks) -> list[Words]:
    return [
        Words(id, {"section": str(metadata.get("section_path", "")), "text": text}, metadata)
        for id, text, metadata in zip(chunks.ids, chunks.texts, chunks.metadatas, strict=True)
    ]


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
