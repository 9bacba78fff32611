"""The chunks of policies, in ChromaDB or the shared database, with an index on them.

The store is what lasts; the engine's `ChunkIndex` keeps its indexes in step with it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import anyio.to_thread
from pydantic import TypeAdapter

from readingroom.bases.policy.chunks.ranking import PlanRanker
from readingroom.bases.policy.chunks.references import fold_ref, index_by_folded_ref
from readingroom.bases.policy.registry.records import (
    Policy,
    PolicyCategory,
    Revision,
    SourceSlug,
    StoredRevisionId,
)
from readingroom.core.arrays import Vector
from readingroom.core.dates import encode_day
from readingroom.core.filters import And, Equals, Filter, FilterFields, In, Metadata
from readingroom.core.lru import LRUCache
from readingroom.core.modes import Mode
from readingroom.engine.context import CONTEXT_FIELD_NAME, make_heading_context
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.index import ChunkIndex, Ranking
from readingroom.engine.shared.index import open_chunk_index
from readingroom.engine.warm_up import warm_up_index
from readingroom.ingest.document import Chunk, Document, PassageKind
from readingroom.ingest.embed import EmbeddedChunks
from readingroom.ingest.structure.starts import SUPPORTING_REF_PREFIX
from readingroom.storage.chunks import (
    ChunkCollection,
    Chunks,
    ChunkStore,
    format_numbers,
    parse_numbers,
)
from readingroom.storage.postgres.chunks import PostgresChunkStore, PostgresCollection
from readingroom.storage.postgres.database import PostgresDatabase

CHUNK_COLLECTION_NAME = "policy_docs"

SectionIndex = dict[str, list[str]]
"""The ids of the chunks in each section of a revision, in reading order, by folded reference."""
_MAX_SECTION_INDEXES = 64  # of a plan of 200 pages, about 100 KB each

# Indexed for filters: every search is limited to revisions.
_FILTER_FIELDS = FilterFields(exact_match_fields=("source", "revision_id"))
_SECTION_PATH_SEPARATOR = " > "
_PAGE_LABEL_SEPARATOR = "|"
_PASSAGE_KIND_ADAPTER: TypeAdapter[PassageKind] = TypeAdapter(PassageKind)
_KIND_NOTE_BY_PASSAGE_KIND = {
    "supporting": "supporting text",
    "table": "table",
    "appendix": "appendix",
}
_SELF_EXPLAINING_REF_PREFIXES = (SUPPORTING_REF_PREFIX, "Table", "Figure", "Appendix", "Annex")


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
    start_offset: int
    end_offset: int
    extraction_method: str
    page_start_offsets: tuple[int, ...]
    """Offsets in the document at which its second and later pages begin."""
    own_start_offset: int
    """Where the text of its section begins, after headings that only stand above it."""
    section_title: str = ""
    passage_kind: PassageKind = "supporting"
    has_policies: bool = False
    """Whether its document has policies, beside which the rest weighs less."""
    printed_pages: tuple[str, ...] = ()
    """The numbers printed on its pages, where they are known."""

    @property
    def page_number(self) -> int:
        return self.pages[0]

    @property
    def text_without_headings(self) -> str:
        return self.text[self.own_start_offset - self.start_offset :]

    @property
    def kind_note(self) -> str:
        """What a citation adds, lest an explanation be taken for a policy; empty for a policy."""
        if not self.has_policies or self.section_ref.startswith(_SELF_EXPLAINING_REF_PREFIXES):
            return ""
        return _KIND_NOTE_BY_PASSAGE_KIND.get(self.passage_kind, "")

    def get_page_number(self, text_offset: int) -> int:
        """Return the page of an offset in the document that lies in this chunk."""
        return self.pages[
            sum(text_offset >= page_start_offset for page_start_offset in self.page_start_offsets)
        ]


class PolicyStore:
    """The collection `policy_docs` and the two indexes on it."""

    def __init__(
        self,
        chunks_folder: Path,
        embedder: Embedder,
        postgres_database: PostgresDatabase | None = None,
    ) -> None:
        self._chunks_folder = chunks_folder
        self._embedder = embedder
        self._database = postgres_database
        self._chunk_store: ChunkStore | PostgresChunkStore | None = None
        self._index: ChunkIndex
        self._section_indexes: LRUCache[tuple[str, str, int], SectionIndex] = LRUCache(
            _MAX_SECTION_INDEXES
        )

    async def open(self) -> None:
        await anyio.to_thread.run_sync(self._open_index)

    async def close(self) -> None:
        await anyio.to_thread.run_sync(self._close_index)

    async def warm_up(self) -> None:
        """Load the model and fill the indexes; raise `ModelUnavailable` without a model."""
        await warm_up_index(self._index)

    async def check_readable(self) -> None:
        """Raise `StoreUnusable` while chunks cannot be read."""
        await anyio.to_thread.run_sync(self._index.count_chunks)

    async def put_chunks(self, chunks: Chunks) -> None:
        """Add chunks, in place of those with the same ids."""
        await anyio.to_thread.run_sync(self._index.put_chunks, chunks)

    async def delete_chunks(self, chunk_ids: Sequence[str]) -> None:
        await anyio.to_thread.run_sync(self._index.delete_chunks, chunk_ids)

    async def delete_chunks_of_revision(self, policy_slug: str, revision_id: str) -> None:
        await self.delete_chunks(await self.get_chunk_ids(policy_slug, revision_id))

    async def update_metadata(
        self, policy: Policy, revision: Revision, last_day: date | None
    ) -> int:
        """Write the registry's values to a revision's chunks; returns how many had others."""
        registry_metadata = build_registry_metadata(policy, revision, last_day)
        raw_chunks = await self._read_chunks(
            _build_revision_filter(revision.source, revision.revision_id)
        )
        outdated_chunk_ids = [
            chunk_id
            for chunk_id, chunk_metadata in zip(raw_chunks.ids, raw_chunks.metadatas, strict=True)
            # Most changes concern one revision, and the chunks of the others are right already.
            if is_metadata_outdated(chunk_metadata, registry_metadata)
        ]
        if outdated_chunk_ids:
            await anyio.to_thread.run_sync(
                self._index.update_metadata,
                outdated_chunk_ids,
                [registry_metadata] * len(outdated_chunk_ids),
            )
        return len(outdated_chunk_ids)

    async def delete_all(self) -> None:
        """Delete every chunk."""
        await self.delete_chunks((await self._read_chunks()).ids)

    async def rebuild_index(self) -> None:
        """Rebuild both indexes from the chunks."""
        await anyio.to_thread.run_sync(self._index.rebuild_indexes)

    async def write_dump(self, dump_path: Path) -> int:
        """Write every chunk to a file; returns how many."""
        return await anyio.to_thread.run_sync(self._index.dump_chunks, dump_path)

    async def load_from_dump(self, dump_path: Path) -> int:
        """Put back what `dump` wrote; the indexes follow on next need.

        Raise `BackupUnusable` for anything that `dump` does not write.
        """
        return await anyio.to_thread.run_sync(
            self._index.fill_from_dump, dump_path, _validate_chunks
        )

    async def get_chunk_ids(self, policy_slug: str, revision_id: str) -> list[str]:
        return (await self._read_chunks(_build_revision_filter(policy_slug, revision_id))).ids

    async def get_chunks(self, policy_slug: str, revision_id: str) -> list[StoredChunk]:
        """Return a revision's chunks in reading order."""
        raw_chunks = await self._read_chunks(_build_revision_filter(policy_slug, revision_id))
        return sorted(_parse_stored_chunks(raw_chunks), key=lambda chunk: chunk.chunk_index)

    async def read_vectors_by_text(self, revisions: Sequence[Revision]) -> dict[str, Vector]:
        """Return, by what was embedded, the vectors of the chunks of these revisions."""
        if not revisions:
            return {}
        revisions_filter = _build_revisions_filter(revisions)
        return await anyio.to_thread.run_sync(self._index.read_vectors_by_text, revisions_filter)

    async def get_chunks_by_id(self, chunk_ids: Sequence[str]) -> dict[str, StoredChunk]:
        """Return chunks by id, without those that do not exist."""
        if not chunk_ids:
            return {}
        raw_chunks = await anyio.to_thread.run_sync(self._index.fetch_chunks, chunk_ids)
        return {chunk.chunk_id: chunk for chunk in _parse_stored_chunks(raw_chunks)}

    async def group_metadata_by_revision(self) -> dict[tuple[str, str], list[Metadata]]:
        """Return the metadata of every chunk, grouped by source and revision."""
        raw_chunks = await self._read_chunks()
        metadata_by_revision: dict[tuple[str, str], list[Metadata]] = {}
        for chunk_metadata in raw_chunks.metadatas:
            revision_key = (str(chunk_metadata["source"]), str(chunk_metadata["revision_id"]))
            metadata_by_revision.setdefault(revision_key, []).append(chunk_metadata)
        return metadata_by_revision

    async def count_indexed_chunks(self) -> tuple[int, int]:
        """Return how many chunks the vector index and the word index hold."""
        return await anyio.to_thread.run_sync(self._index.count_chunks_of_both_indexes)

    async def get_section_index(self, policy_slug: str, revision_id: str) -> SectionIndex:
        """Return folded reference → the ids of its chunks; read again only after a write."""
        cache_key = (policy_slug, revision_id, self._index.generation)
        chunk_ids_by_folded_ref = self._section_indexes.get(cache_key)
        if chunk_ids_by_folded_ref is None:
            chunk_ids_by_folded_ref = _index_chunks_by_section(
                await self.get_chunks(policy_slug, revision_id)
            )
            self._section_indexes.put(cache_key, chunk_ids_by_folded_ref)
        return chunk_ids_by_folded_ref

    async def rank_chunks(
        self, query_text: str, hit_count: int, revisions: Sequence[Revision], search_mode: Mode
    ) -> Ranking:
        """Return the best chunks among those of these revisions."""
        if not revisions:
            return Ranking([])
        return await anyio.to_thread.run_sync(
            self._index.search,
            query_text,
            hit_count,
            _build_revisions_filter(revisions),
            search_mode,
        )

    async def _read_chunks(self, chunk_filter: Filter | None = None) -> Chunks:
        return await anyio.to_thread.run_sync(self._index.read_chunks, chunk_filter)

    def _open_index(self) -> None:
        chunk_collection: ChunkCollection | PostgresCollection
        if self._database is None:
            local_store = self._chunk_store = ChunkStore(self._chunks_folder / "chroma")
            chunk_collection = local_store.open_collection(CHUNK_COLLECTION_NAME)
        else:
            shared_store = self._chunk_store = PostgresChunkStore(self._database)
            chunk_collection = shared_store.open_collection(CHUNK_COLLECTION_NAME, _FILTER_FIELDS)
        self._index = open_chunk_index(
            chunk_collection,
            _FILTER_FIELDS,
            self._embedder,
            self._chunks_folder / "words.db",
            _list_heading_contexts,
        )
        self._index.rank_passages = PlanRanker(self._index.fetch_chunks)

    def _close_index(self) -> None:
        if self._chunk_store:
            self._index.close()
            self._chunk_store.close()
            self._chunk_store = None


def _index_chunks_by_section(chunks: Sequence[StoredChunk]) -> SectionIndex:
    """Return folded reference → the ids of its chunks, last by references without their kinds."""
    chunk_ids_by_folded_ref: SectionIndex = {}
    for chunk in chunks:
        for folded_ref in {
            fold_ref(section_ref) for section_ref in (*chunk.section_path, chunk.section_ref)
        }:
            chunk_ids_by_folded_ref.setdefault(folded_ref, []).append(chunk.chunk_id)
    section_refs = (
        section_ref for chunk in chunks for section_ref in (*chunk.section_path, chunk.section_ref)
    )
    for folded_ref, section_ref in index_by_folded_ref(section_refs).items():
        chunk_ids_by_folded_ref.setdefault(
            folded_ref, chunk_ids_by_folded_ref[fold_ref(section_ref)]
        )
    return chunk_ids_by_folded_ref


def build_chunks(
    parsed_document: Document,
    embedded_chunks: EmbeddedChunks,
    policy: Policy,
    revision: Revision,
    last_day: date | None,
) -> Chunks:
    """Return the chunks of a document with the metadata that is stored with them."""
    common_metadata = build_registry_metadata(policy, revision, last_day)
    has_policies = any(
        document_section.kind == "policy" for document_section in parsed_document.sections
    )
    return Chunks(
        ids=[
            format_chunk_id(revision, chunk.section_ref, chunk.index)
            for chunk in parsed_document.chunks
        ],
        texts=[parsed_document.get_chunk_text(chunk) for chunk in parsed_document.chunks],
        metadatas=[
            {
                **common_metadata,
                "source": revision.source,
                "revision_id": revision.revision_id,
                "section_ref": chunk.section_ref or "",
                # Chroma has no list metadata, so the path travels as text.
                "section_path": _SECTION_PATH_SEPARATOR.join(chunk.section_path),
                "page_number": chunk.pages[0] if chunk.pages else 1,
                "pages": format_numbers(chunk.pages),
                "page_starts": format_numbers(
                    parsed_document.pages[page_number - 1].start_offset
                    for page_number in chunk.pages[1:]
                ),
                "chunk_index": chunk.index,
                "extraction_method": parsed_document.method,
                "start": chunk.start_offset,
                "end": chunk.end_offset,
                "own_start": chunk.own_start_offset,
                "section_title": chunk.section_title,
                "passage_kind": _choose_passage_kind(chunk, policy, has_policies),
                "has_policies": int(has_policies),
                "printed_pages": _PAGE_LABEL_SEPARATOR.join(
                    parsed_document.pages[page_number - 1].label for page_number in chunk.pages
                ),
                CONTEXT_FIELD_NAME: heading_context,
            }
            for chunk, heading_context in zip(
                parsed_document.chunks, embedded_chunks.contexts, strict=True
            )
        ],
        vectors=embedded_chunks.vectors,
    )


def _list_heading_contexts(raw_chunks: Chunks) -> list[str]:
    """Return what each stored chunk stands under, as `embed_document` would have it."""
    titles_by_section = {
        (chunk_metadata["revision_id"], chunk_metadata["section_ref"]): str(
            chunk_metadata["section_title"]
        )
        for chunk_metadata in raw_chunks.metadatas
        if chunk_metadata.get("section_title")
    }
    return [
        make_heading_context(
            [
                str(chunk_metadata.get("source_title", "")),
                *(
                    titles_by_section.get((chunk_metadata["revision_id"], section_ref), "")
                    for section_ref in str(chunk_metadata["section_path"]).split(
                        _SECTION_PATH_SEPARATOR
                    )
                ),
            ]
        )
        for chunk_metadata in raw_chunks.metadatas
    ]


def _choose_passage_kind(chunk: Chunk, policy: Policy, has_policies: bool) -> PassageKind:
    """Return what a chunk is; the numbered paragraphs of national policy are the policy."""
    is_national = policy.category == PolicyCategory.NATIONAL_POLICY
    if is_national and not has_policies and chunk.kind == "supporting" and chunk.section_ref:
        return "policy"
    return chunk.kind


def format_chunk_id(revision: Revision, section_ref: str | None, chunk_index: int) -> str:
    """Return `NPPF__rev_NPPF_2024_12__Para_116__042`; text before any section is `doc`."""
    # Blanks and slashes would have to be escaped wherever a URL names the chunk.
    section_slug = (section_ref or "doc").replace(" ", "_").replace("/", "_")
    return f"{revision.source}__{revision.revision_id}__{section_slug}__{chunk_index:03d}"


def build_registry_metadata(
    policy: Policy, revision: Revision, last_day: date | None
) -> dict[str, str | int]:
    """Return the part of a chunk's metadata that repeats the registry and changes with it."""
    # A plan that is not adopted begins on no day, also for those who read the chunks themselves.
    first_day = None if revision.stage else revision.effective_from
    return {
        "source_title": policy.title,
        "version_label": revision.version_label,
        "effective_from": encode_day(first_day),
        "effective_to": 0 if revision.stage else encode_day(last_day),
    }


def is_metadata_outdated(chunk_metadata: Metadata, expected_metadata: Metadata) -> bool:
    """Return whether a chunk's metadata lacks one of the expected values."""
    return any(
        chunk_metadata.get(field_name) != expected_value
        for field_name, expected_value in expected_metadata.items()
    )


def _build_revision_filter(policy_slug: str, revision_id: str) -> Filter:
    return And((Equals("source", policy_slug), Equals("revision_id", revision_id)))


def _build_revisions_filter(revisions: Sequence[Revision]) -> Filter:
    return And(
        (
            In("source", tuple({revision.source for revision in revisions})),
            In("revision_id", tuple(revision.revision_id for revision in revisions)),
        )
    )


def _parse_stored_chunks(raw_chunks: Chunks) -> list[StoredChunk]:
    return [
        _parse_stored_chunk(chunk_id, chunk_text, chunk_metadata)
        for chunk_id, chunk_text, chunk_metadata in zip(
            raw_chunks.ids, raw_chunks.texts, raw_chunks.metadatas, strict=True
        )
    ]


def _parse_stored_chunk(chunk_id: str, chunk_text: str, chunk_metadata: Metadata) -> StoredChunk:
    """Return a chunk; what releases before 0.2 did not store has the value it had then."""
    section_ref = str(chunk_metadata["section_ref"])
    printed_pages_text = str(chunk_metadata.get("printed_pages", ""))
    return StoredChunk(
        chunk_id=chunk_id,
        text=chunk_text,
        source=str(chunk_metadata["source"]),
        revision_id=str(chunk_metadata["revision_id"]),
        section_ref=section_ref,
        section_path=tuple(
            filter(None, str(chunk_metadata["section_path"]).split(_SECTION_PATH_SEPARATOR))
        ),
        pages=parse_numbers(chunk_metadata["pages"]) or (1,),
        page_start_offsets=parse_numbers(chunk_metadata["page_starts"]),
        chunk_index=int(chunk_metadata["chunk_index"]),
        start_offset=int(chunk_metadata["start"]),
        end_offset=int(chunk_metadata["end"]),
        extraction_method=str(chunk_metadata["extraction_method"]),
        own_start_offset=int(chunk_metadata.get("own_start", chunk_metadata["start"])),
        section_title=str(chunk_metadata.get("section_title", "")),
        passage_kind=_PASSAGE_KIND_ADAPTER.validate_python(
            chunk_metadata.get("passage_kind", _guess_passage_kind(section_ref))
        ),
        has_policies=bool(chunk_metadata.get("has_policies", 0)),
        printed_pages=tuple(printed_pages_text.split(_PAGE_LABEL_SEPARATOR))
        if printed_pages_text
        else (),
    )


def _guess_passage_kind(section_ref: str) -> PassageKind:
    """Return what a chunk is by its reference alone, which is all that 0.1 stored of it."""
    if section_ref.startswith("Policy"):
        return "policy"
    if section_ref.startswith(("Appendix", "Annex")):
        return "appendix"
    return "table" if section_ref.startswith("Table") else "supporting"


def _validate_chunks(raw_chunks: Chunks) -> None:
    chunk_type_adapter = TypeAdapter(StoredChunk)
    for chunk in _parse_stored_chunks(raw_chunks):
        chunk_type_adapter.validate_python(asdict(chunk))
