"""Documents and their chunks: the collections `application_docs` and `document_registry`.

The registry has vectors of zeros, as the contract asks: nobody searches it. Chunks are found by the
engine's `ChunkIndex`. Metadata holds the contract's fields and, after them, ours.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
from pydantic import TypeAdapter

from readingroom.bases.documents.registry.records import DocumentRecord, StoredChunk
from readingroom.core.arrays import np
from readingroom.core.filters import And, Equals, Filter, FilterFields, In, Metadata
from readingroom.core.lru import LRUCache
from readingroom.core.modes import Mode
from readingroom.engine.context import CONTEXT_FIELD_NAME, make_heading_context
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.index import ChunkIndex, Ranking
from readingroom.engine.shared.index import open_chunk_index
from readingroom.engine.vectors import DIMENSIONS
from readingroom.engine.warm_up import warm_up_index
from readingroom.ingest.document import Document
from readingroom.ingest.embed import EmbeddedChunks
from readingroom.storage.archive import check_chunk_dump, dump_chunks, load_dumped_chunks
from readingroom.storage.chunks import (
    ChunkCollection,
    Chunks,
    ChunkStore,
    StoredCollection,
    format_numbers,
    parse_numbers,
)
from readingroom.storage.postgres.chunks import PostgresChunkStore, PostgresCollection
from readingroom.storage.postgres.database import PostgresDatabase

CHUNK_COLLECTION_NAME = "application_docs"
REGISTRY_COLLECTION_NAME = "document_registry"

# Indexed for filters: searches are limited to an application or to types.
CHUNK_FILTER_FIELDS = FilterFields(exact_match_fields=("application_ref", "document_type"))
_REGISTRY_FILTER_FIELDS = FilterFields(exact_match_fields=("application_ref", "file_hash"))
_MAX_RECENT_RECORDS = 4_096  # about 4 MB


class DocumentStore:
    """Both collections, in ChromaDB or in the shared database."""

    def __init__(
        self,
        chroma_directory: Path | None,
        words_file: Path,
        embedder: Embedder,
        postgres_database: PostgresDatabase | None = None,
    ) -> None:
        """Without a `chroma_directory` they are kept in memory, unless there is a database."""
        self._database = postgres_database
        self._chroma_directory = chroma_directory
        self._words_file = words_file
        self._embedder = embedder
        self._chunk_store: ChunkStore | PostgresChunkStore | None = None
        self._index: ChunkIndex
        self._registry: StoredCollection
        self._record_cache = _make_record_cache()

    async def open(self) -> None:
        await anyio.to_thread.run_sync(self._open_indexes)

    async def close(self) -> None:
        await anyio.to_thread.run_sync(self._close_indexes)

    async def warm_up(self) -> None:
        """Load the model and fill the indexes; raise `ModelUnavailable` without a model."""
        await warm_up_index(self._index)

    async def check_readable(self) -> None:
        """Raise `StoreUnusable` while chunks cannot be read."""
        await anyio.to_thread.run_sync(self._registry.count_chunks)

    # --- the registry ---

    async def find_record_by_hash(self, application_ref: str, sha256: str) -> DocumentRecord | None:
        """Return the document with these bytes under exactly this reference, or None."""
        record_filter = And(
            (Equals("application_ref", application_ref), Equals("file_hash", sha256))
        )
        return next(iter(await self._list_records_by_filter(record_filter=record_filter)), None)

    async def find_record(self, document_id: str) -> DocumentRecord | None:
        """Return a document's entry, or None if it is not registered."""
        return next(iter(await self._list_records_by_filter([document_id])), None)

    async def get_records(self, document_ids: Sequence[str]) -> dict[str, DocumentRecord]:
        """Return the entries of these documents by id, without those that are not registered.

        Every search asks for some, mostly for the same ones, and reading them from Chroma takes as
        long as finding their passages. Of a shared database others may change them.
        """
        # The cache as it is before reading: a write that ends meanwhile puts another in its place.
        record_cache = self._record_cache if self._database is None else _make_record_cache()
        records_by_id = {
            document_id: cached_record
            for document_id in document_ids
            if (cached_record := record_cache.get(document_id)) is not None
        }
        if uncached_document_ids := [
            document_id for document_id in document_ids if document_id not in records_by_id
        ]:
            for document_record in await self._list_records_by_filter(uncached_document_ids):
                records_by_id[document_record.document_id] = document_record
                record_cache.put(document_record.document_id, document_record)
        return records_by_id

    async def list_records(self, application_ref: str | None = None) -> list[DocumentRecord]:
        """The documents of an application, or all, in the order they came."""
        record_filter = (
            Equals("application_ref", application_ref) if application_ref is not None else None
        )
        document_records = await self._list_records_by_filter(record_filter=record_filter)
        return sorted(
            document_records,
            key=lambda document_record: (document_record.ingested_at, document_record.document_id),
        )

    async def register_document(self, document_record: DocumentRecord) -> None:
        registry_entry_chunks = Chunks(
            [document_record.document_id],
            [document_record.file_path],
            [_make_registry_metadata(document_record)],
            np.zeros((1, DIMENSIONS), np.float32),
        )
        await self._change_registry(partial(self._registry.upsert_chunks, registry_entry_chunks))

    async def unregister_document(self, document_id: str) -> None:
        await self._change_registry(partial(self._registry.delete_chunks, [document_id]))

    # --- the chunks ---

    async def put_chunks(self, chunks: Chunks) -> None:
        await anyio.to_thread.run_sync(self._index.put_chunks, chunks)

    async def delete_chunks(self, chunk_ids: Sequence[str]) -> None:
        await anyio.to_thread.run_sync(self._index.delete_chunks, chunk_ids)

    async def get_chunks(self, document_id: str) -> list[StoredChunk]:
        """Return a document's chunks in reading order."""
        unparsed_chunks = await self._list_unparsed_chunks(Equals("document_id", document_id))
        return sorted(_parse_stored_chunks(unparsed_chunks), key=lambda chunk: chunk.chunk_index)

    async def get_chunks_by_id(self, chunk_ids: Sequence[str]) -> dict[str, StoredChunk]:
        """Return chunks by id, without those that do not exist."""
        if not chunk_ids:
            return {}
        unparsed_chunks = await anyio.to_thread.run_sync(self._index.fetch_chunks, chunk_ids)
        return {chunk.chunk_id: chunk for chunk in _parse_stored_chunks(unparsed_chunks)}

    async def rank_chunks(
        self,
        query_text: str,
        hit_count: int,
        application_ref: str | None,
        document_types: Sequence[str] | None,
        search_mode: Mode,
    ) -> Ranking:
        """Return the best chunks among those of this application and these types."""
        chunk_filter = _build_chunk_filter(application_ref, document_types)
        return await anyio.to_thread.run_sync(
            self._index.search, query_text, hit_count, chunk_filter, search_mode
        )

    async def count_chunks_by_document(self) -> Counter[str]:
        """Return how many chunks every document has."""
        unparsed_chunks = await self._list_unparsed_chunks()
        return Counter(
            str(chunk_metadata["document_id"]) for chunk_metadata in unparsed_chunks.metadatas
        )

    async def count_indexed_chunks(self) -> tuple[int, int]:
        """Return how many chunks the vector index and the word index hold."""
        return await anyio.to_thread.run_sync(self._index.count_chunks_of_both_indexes)

    async def rebuild_indexes(self) -> None:
        """Rebuild both indexes from the chunks."""
        await anyio.to_thread.run_sync(self._index.rebuild_indexes)

    # --- backup ---

    async def write_dumps(self, chunks_file: Path, registry_file: Path) -> int:
        """Write both collections to files; returns how many chunks there are."""
        await anyio.to_thread.run_sync(dump_chunks, self._registry, registry_file)
        return await anyio.to_thread.run_sync(self._index.dump_chunks, chunks_file)

    async def check_dumps(self, chunks_file: Path, registry_file: Path) -> None:
        """Raise `BackupUnusable` unless `fill` can read both files."""
        await anyio.to_thread.run_sync(check_chunk_dump, chunks_file, _validate_chunks, DIMENSIONS)
        await anyio.to_thread.run_sync(
            check_chunk_dump, registry_file, _validate_registry_entries, DIMENSIONS
        )

    async def load_from_dumps(self, chunks_file: Path, registry_file: Path) -> int:
        """Put back what `dump` wrote; the indexes follow on next need.

        Raise `BackupUnusable` for anything that `dump` does not write.
        """
        chunk_count = await anyio.to_thread.run_sync(
            self._index.fill_from_dump, chunks_file, _validate_chunks
        )
        await self._change_registry(
            partial(
                load_dumped_chunks,
                registry_file,
                self._registry,
                _validate_registry_entries,
                DIMENSIONS,
            )
        )
        return chunk_count

    # --- parts ---

    async def _change_registry(self, write_to_registry: Callable[[], object]) -> None:
        """Run a write in a thread, and forget afterwards what was read before it."""

        def write_and_clear_cache() -> None:
            try:
                write_to_registry()
            finally:
                self._record_cache = _make_record_cache()

        await anyio.to_thread.run_sync(write_and_clear_cache)

    async def _list_records_by_filter(
        self, document_ids: Sequence[str] | None = None, record_filter: Filter | None = None
    ) -> list[DocumentRecord]:
        registry_entries = await anyio.to_thread.run_sync(
            lambda: self._registry.read_chunks(document_ids, record_filter)
        )
        return [
            _parse_document_record(document_id, registry_entry)
            for document_id, registry_entry in zip(
                registry_entries.ids, registry_entries.metadatas, strict=True
            )
        ]

    async def _list_unparsed_chunks(self, chunk_filter: Filter | None = None) -> Chunks:
        return await anyio.to_thread.run_sync(self._index.read_chunks, chunk_filter)

    def _open_indexes(self) -> None:
        chunk_collection: ChunkCollection | PostgresCollection
        if self._database is None:
            local_store = self._chunk_store = ChunkStore(self._chroma_directory)
            self._registry = local_store.open_collection(REGISTRY_COLLECTION_NAME)
            chunk_collection = local_store.open_collection(CHUNK_COLLECTION_NAME)
        else:
            shared_store = self._chunk_store = PostgresChunkStore(self._database)
            self._registry = shared_store.open_collection(
                REGISTRY_COLLECTION_NAME, _REGISTRY_FILTER_FIELDS
            )
            chunk_collection = shared_store.open_collection(
                CHUNK_COLLECTION_NAME, CHUNK_FILTER_FIELDS, ("document_id",)
            )
        self._index = open_chunk_index(
            chunk_collection,
            CHUNK_FILTER_FIELDS,
            self._embedder,
            self._words_file,
            _list_heading_contexts,
        )

    def _close_indexes(self) -> None:
        if self._chunk_store:
            self._index.close()
            self._chunk_store.close()
            self._chunk_store = None


def build_chunks(
    document_record: DocumentRecord, parsed_document: Document, embedded_chunks: EmbeddedChunks
) -> Chunks:
    """Return the chunks of a document with the metadata that is stored with them."""
    chunk_texts = [
        parsed_document.get_chunk_text(document_chunk) for document_chunk in parsed_document.chunks
    ]
    # Where the text covered so far ends; chunks overlap, so it is not the last chunk's end.
    covered_end_offsets = [0]
    for document_chunk in parsed_document.chunks:
        covered_end_offsets.append(max(covered_end_offsets[-1], document_chunk.end_offset))
    return Chunks(
        ids=[
            format_chunk_id(
                document_record.document_id, document_chunk.pages[0], document_chunk.index
            )
            for document_chunk in parsed_document.chunks
        ],
        texts=chunk_texts,
        metadatas=[
            {
                "application_ref": document_record.application_ref,
                "document_id": document_record.document_id,
                "source_file": document_record.source_file,
                "document_type": document_record.document_type,
                "page_numbers": format_numbers(document_chunk.pages),
                "chunk_index": document_chunk.index,
                "total_chunks": len(chunk_texts),
                "extraction_method": document_record.extraction_method,
                "char_count": len(chunk_text),
                "word_count": len(chunk_text.split()),
                "start": document_chunk.start_offset,
                "gap": parsed_document.text[covered_end_offset : document_chunk.start_offset],
                CONTEXT_FIELD_NAME: heading_context,
            }
            # One more end than chunks: the last one is the end of the text.
            for document_chunk, chunk_text, heading_context, covered_end_offset in zip(
                parsed_document.chunks,
                chunk_texts,
                embedded_chunks.contexts,
                covered_end_offsets,
                strict=False,
            )
        ],
        vectors=embedded_chunks.vectors,
    )


def _make_record_cache() -> LRUCache[str, DocumentRecord]:
    return LRUCache(_MAX_RECENT_RECORDS)


def make_title_from_file_name(source_file_name: str) -> str:
    """Return the name of a file as words: `Travel_Plan.pdf` is a Travel Plan."""
    return re.sub(r"[\W_]+", " ", source_file_name.rpartition(".")[0] or source_file_name).strip()


def _list_heading_contexts(unparsed_chunks: Chunks) -> list[str]:
    """Return what each stored chunk stands under, as `embed_document` would have it."""
    return [
        make_heading_context([make_title_from_file_name(str(chunk_metadata["source_file"]))])
        for chunk_metadata in unparsed_chunks.metadatas
    ]


def format_chunk_id(document_id: str, page_number: int, chunk_index: int) -> str:
    """Return `25_01178_REM_a1b2c3_014_042`: document, first page, index in the document."""
    return f"{document_id}_{page_number:03d}_{chunk_index:03d}"


def _make_registry_metadata(document_record: DocumentRecord) -> Metadata:
    return {
        "file_path": document_record.file_path,
        "file_hash": document_record.file_hash,
        "application_ref": document_record.application_ref,
        "document_type": document_record.document_type,
        "chunk_count": document_record.chunk_count,
        "ingested_at": document_record.ingested_at,
        "extraction_method": document_record.extraction_method,
        "contains_drawings": document_record.contains_drawings,
        "source_file": document_record.source_file,
        "total_chars": document_record.total_chars,
        "total_words": document_record.total_words,
        "page_starts": format_numbers(document_record.page_starts),
        "blank_pages": format_numbers(document_record.blank_pages),
        "container_id": document_record.container_id,
        "kind": document_record.kind,
    }


def _parse_document_record(document_id: str, registry_entry: Metadata) -> DocumentRecord:
    record_fields: dict[str, Any] = dict(registry_entry)
    for field_name in ("page_starts", "blank_pages"):
        record_fields[field_name] = parse_numbers(record_fields[field_name])
    return DocumentRecord(document_id=document_id, **record_fields)


def _parse_stored_chunks(unparsed_chunks: Chunks) -> list[StoredChunk]:
    return [
        StoredChunk(
            chunk_id=chunk_id,
            text=chunk_text,
            application_ref=str(chunk_metadata["application_ref"]),
            document_id=str(chunk_metadata["document_id"]),
            source_file=str(chunk_metadata["source_file"]),
            document_type=str(chunk_metadata["document_type"]),
            pages=parse_numbers(chunk_metadata["page_numbers"]),
            chunk_index=int(chunk_metadata["chunk_index"]),
            total_chunks=int(chunk_metadata["total_chunks"]),
            extraction_method=chunk_metadata["extraction_method"],  # type: ignore[arg-type]
            start_offset=int(chunk_metadata["start"]),
            preceding_space=str(chunk_metadata["gap"]),
        )
        for chunk_id, chunk_text, chunk_metadata in zip(
            unparsed_chunks.ids, unparsed_chunks.texts, unparsed_chunks.metadatas, strict=True
        )
    ]


def _validate_chunks(unparsed_chunks: Chunks) -> None:
    type_adapter = TypeAdapter(StoredChunk)
    for chunk in _parse_stored_chunks(unparsed_chunks):
        type_adapter.validate_python(asdict(chunk))


def _validate_registry_entries(registry_entries: Chunks) -> None:
    type_adapter = TypeAdapter(DocumentRecord)
    for document_id, registry_entry in zip(
        registry_entries.ids, registry_entries.metadatas, strict=True
    ):
        type_adapter.validate_python(asdict(_parse_document_record(document_id, registry_entry)))


def _build_chunk_filter(
    application_ref: str | None, document_types: Sequence[str] | None
) -> Filter | None:
    chunk_filters: list[Filter] = []
    if application_ref is not None:
        chunk_filters.append(Equals("application_ref", application_ref))
    if document_types is not None:
        chunk_filters.append(In("document_type", tuple(document_types)))
    return And(tuple(chunk_filters)) if chunk_filters else None
