"""The chunks of policies, in ChromaDB, with a vector index and a word index on them.

ChromaDB is what lasts; the engine's `ChunkIndex` keeps both indexes in step with it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import anyio.to_thread
from pydantic import TypeAdapter

from readingroom.bases.policy.registry.records import (
    Policy,
    Revision,
    SourceSlug,
    StoredRevisionId,
)
from readingroom.core.dates import encode_day
from readingroom.core.filters import And, Equals, Filter, FilterFields, In, Metadata
from readingroom.core.modes import Mode
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.index import ChunkIndex, Ranking, open_index
from readingroom.engine.warm_up import warm_up
from readingroom.ingest.document import Document
from readingroom.ingest.embed import Vectors
from readingroom.storage.chunks import Chunks, ChunkStore, format_numbers, parse_numbers

CHUNK_COLLECTION = "policy_docs"

# Indexed for filters: every search is limited to revisions.
_FILTER_FIELDS = FilterFields(exact_match=("source", "revision_id"))
_PATH_SEPARATOR = " > "


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as it is stored."""

    chunk_id: str
    text: str
    source: SourceSlug
    revision_id: StoredRevisionId
    section_ref: str
    section_path: tuple[str, ...]
    pages: tuple[int, ...]
    chunk_index: int
    start: int
    end: int
    extraction_method: str
    page_starts: tuple[int, ...]
    """Offsets in the document at which its second and later pages begin."""

    @property
    def page_number(self) -> int:
        return self.pages[0]

    def find_page(self, offset: int) -> int:
        """Return the page of an offset in the document that lies in this chunk."""
        return self.pages[sum(offset >= start for start in self.page_starts)]


class PolicyStore:
    """The collection `policy_docs` and the two indexes on it."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._folder = folder
        self._embedder = embedder
        self._chroma: ChunkStore | None = None
        self._index: ChunkIndex

    async def open(self) -> None:
        await anyio.to_thread.run_sync(self._open)

    async def close(self) -> None:
        await anyio.to_thread.run_sync(self._close)

    async def warm_up(self) -> None:
        """Load the model and fill the indexes; raise `ModelUnavailable` without a model."""
        await warm_up(self._index)

    async def check_readable(self) -> None:
        """Raise `StoreUnusable` while chunks cannot be read."""
        await anyio.to_thread.run_sync(self._index.count)

    async def put(self, chunks: Chunks) -> None:
        """Add chunks, in place of those with the same ids."""
        await anyio.to_thread.run_sync(self._index.put, chunks)

    async def delete(self, ids: Sequence[str]) -> None:
        await anyio.to_thread.run_sync(self._index.delete, ids)

    async def update_metadata(
        self, policy: Policy, revision: Revision, last_day: date | None
    ) -> int:
        """Write the registry's values to a revision's chunks; returns how many had others."""
        expected = build_registry_metadata(policy, revision, last_day)
        chunks = await self._read_chunks(
            _build_revision_filter(revision.source, revision.revision_id)
        )
        outdated_ids = [
            chunk_id
            for chunk_id, metadata in zip(chunks.ids, chunks.metadatas, strict=True)
            # Most changes concern one revision, and the chunks of the others are right already.
            if is_outdated(metadata, expected)
        ]
        if outdated_ids:
            await anyio.to_thread.run_sync(
                self._index.update_metadata, outdated_ids, [expected] * len(outdated_ids)
            )
        return len(outdated_ids)

    async def rebuild(self) -> None:
        """Rebuild both indexes from the chunks."""
        await anyio.to_thread.run_sync(self._index.rebuild)

    async def dump(self, path: Path) -> int:
        """Write every chunk to a file; returns how many."""
        return await anyio.to_thread.run_sync(self._index.dump, path)

    async def fill(self, path: Path) -> int:
        """Put back what `dump` wrote; the indexes follow on next need.

        Raise `BackupUnusable` for anything that `dump` does not write.
        """
        return await anyio.to_thread.run_sync(self._index.fill, path, _validate_chunks)

    async def get_chunk_ids(self, source: str, revision_id: str) -> list[str]:
        return (await self._read_chunks(_build_revision_filter(source, revision_id))).ids

    async def get_chunks(self, source: str, revision_id: str) -> list[StoredChunk]:
        """Return a revision's chunks in reading order."""
        chunks = await self._read_chunks(_build_revision_filter(source, revision_id))
        return sorted(_to_stored_chunks(chunks), key=lambda chunk: chunk.chunk_index)

    async def get_chunks_by_id(self, ids: Sequence[str]) -> dict[str, StoredChunk]:
        """Return chunks by id, without those that do not exist."""
        if not ids:
            return {}
        chunks = await anyio.to_thread.run_sync(self._index.fetch, ids)
        return {chunk.chunk_id: chunk for chunk in _to_stored_chunks(chunks)}

    async def group_metadata(self) -> dict[tuple[str, str], list[Metadata]]:
        """Return the metadata of every chunk, grouped by source and revision."""
        chunks = await self._read_chunks()
        metadata_by_revision: dict[tuple[str, str], list[Metadata]] = {}
        for metadata in chunks.metadatas:
            revision_key = (str(metadata["source"]), str(metadata["revision_id"]))
            metadata_by_revision.setdefault(revision_key, []).append(metadata)
        return metadata_by_revision

    async def get_index_sizes(self) -> tuple[int, int]:
        """Return how many chunks the vector index and the word index hold."""
        return await anyio.to_thread.run_sync(self._index.sizes)

    async def rank_chunks(
        self, query: str, k: int, revisions: Sequence[Revision], mode: Mode
    ) -> Ranking:
        """Return the best chunks among those of these revisions."""
        if not revisions:
            return Ranking([])
        return await anyio.to_thread.run_sync(
            self._index.search, query, k, _build_revisions_filter(revisions), mode
        )

    async def _read_chunks(self, where: Filter | None = None) -> Chunks:
        return await anyio.to_thread.run_sync(self._index.read, where)

    def _open(self) -> None:
        self._chroma = ChunkStore(self._folder / "chroma")
        collection = self._chroma.open_collection(CHUNK_COLLECTION)
        self._index = open_index(
            collection, _FILTER_FIELDS, self._embedder, self._folder / "words.db"
        )

    def _close(self) -> None:
        if self._chroma:
            self._index.close()
            self._chroma.close()
            self._chroma = None


def build_chunks(
    document: Document, vectors: Vectors, policy: Policy, revision: Revision, last_day: date | None
) -> Chunks:
    """Return the chunks of a document with the metadata that is stored with them."""
    common_metadata = build_registry_metadata(policy, revision, last_day)
    return Chunks(
        ids=[
            format_chunk_id(revision, chunk.section_ref, chunk.index) for chunk in document.chunks
        ],
        texts=[document.get_chunk_text(chunk) for chunk in document.chunks],
        metadatas=[
            {
                **common_metadata,
                "source": revision.source,
                "revision_id": revision.revision_id,
                "section_ref": chunk.section_ref or "",
                # Chroma has no list metadata, so the path travels as text.
                "section_path": _PATH_SEPARATOR.join(chunk.section_path),
                "page_number": chunk.pages[0] if chunk.pages else 1,
                "pages": format_numbers(chunk.pages),
                "page_starts": format_numbers(
                    document.pages[page - 1].start for page in chunk.pages[1:]
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


def format_chunk_id(revision: Revision, section_ref: str | None, index: int) -> str:
    """Return `NPPF__rev_NPPF_2024_12__Para_116__042`; text before any section is `doc`."""
    # Blanks and slashes would have to be escaped wherever a URL names the chunk.
    section = (section_ref or "doc").replace(" ", "_").replace("/", "_")
    return f"{revision.source}__{revision.revision_id}__{section}__{index:03d}"


def build_registry_metadata(
    policy: Policy, revision: Revision, last_day: date | None
) -> dict[str, str | int]:
    """Return the part of a chunk's metadata that repeats the registry and changes with it."""
    return {
        "source_title": policy.title,
        "version_label": revision.version_label,
        "effective_from": encode_day(revision.effective_from),
        "effective_to": encode_day(last_day),
    }


def is_outdated(metadata: Metadata, expected: Metadata) -> bool:
    """Return whether a chunk's metadata lacks one of the expected values."""
    return any(metadata.get(name) != value for name, value in expected.items())


def _build_revision_filter(source: str, revision_id: str) -> Filter:
    return And((Equals("source", source), Equals("revision_id", revision_id)))


def _build_revisions_filter(revisions: Sequence[Revision]) -> Filter:
    return And(
        (
            In("source", tuple({revision.source for revision in revisions})),
            In("revision_id", tuple(revision.revision_id for revision in revisions)),
        )
    )


def _to_stored_chunks(chunks: Chunks) -> list[StoredChunk]:
    return [
        StoredChunk(
            chunk_id=id,
            text=text,
            source=str(metadata["source"]),
            revision_id=str(metadata["revision_id"]),
            section_ref=str(metadata["section_ref"]),
            section_path=tuple(filter(None, str(metadata["section_path"]).split(_PATH_SEPARATOR))),
            pages=parse_numbers(metadata["pages"]) or (1,),
            page_starts=parse_numbers(metadata["page_starts"]),
            chunk_index=int(metadata["chunk_index"]),
            start=int(metadata["start"]),
            end=int(metadata["end"]),
            extraction_method=str(metadata["extraction_method"]),
        )
        for id, text, metadata in zip(chunks.ids, chunks.texts, chunks.metadatas, strict=True)
    ]


def _validate_chunks(chunks: Chunks) -> None:
    validator = TypeAdapter(StoredChunk)
    for chunk in _to_stored_chunks(chunks):
        validator.validate_python(asdict(chunk))
