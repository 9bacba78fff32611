"""The documents base's answers, on real files, real stores and a real model."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import chromadb
import numpy as np
import pytest
from chromadb.config import Settings as ChromaSettings
from hypothesis import given, settings
from hypothesis import strategies as st

from readingroom.bases.documents.backup import restore_backup, write_backup
from readingroom.bases.documents.doctor import DocumentsDoctor
from readingroom.bases.documents.errors import DocumentNotFound, PageNotFound
from readingroom.bases.documents.ids import DocumentRef, format_doc_id, parse_doc_id
from readingroom.bases.documents.ingest.ingestion import (
    _build_copy_path_segments,
    iterate_candidate_document_ids,
)
from readingroom.bases.documents.models import (
    ApplicationOverview,
    GetDocumentText,
    ListIngestedDocuments,
    RemoveDocument,
    SetApplication,
)
from readingroom.bases.documents.registry.records import format_citation
from readingroom.core.errors import InvalidDate, UnrecognizedId
from readingroom.core.progress import no_progress
from readingroom.ingest.errors import NoChunks
from readingroom.storage.errors import StorageFailed
from tests.requirements import requirement
from tests.support.documents.base import PLAIN, REF, Desk, open_documents_base
from tests.support.papers import make_paper
from tests.support.policy.base import plain

pytestmark = [pytest.mark.anyio, pytest.mark.both_engines("full")]

TRAVEL = [
    "The development provides two hundred covered cycle parking spaces beside the entrance.",
    "Trip generation was estimated from surveys at comparable sites in the county. " * 9,
    "A travel plan coordinator is appointed before the first home is occupied.",
]
BATS = ["Bats roost in the old barn and fly along the hedge at dusk."]


@pytest.fixture(scope="module")
async def library(engine: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    """Two applications, one of them with two documents. Tests that use it change nothing."""
    async with open_documents_base(tmp_path_factory.mktemp("data") / "documents") as library:
        await library.ingest("Transport_Assessment.pdf", make_paper(*TRAVEL))
        await library.ingest("Bat survey.pdf", make_paper(*BATS))
        await library.ingest("Bat survey.pdf", make_paper(*BATS), ref="26/00001/FUL")
        yield library


@pytest.fixture
async def empty(tmp_path: Path) -> AsyncIterator[Desk]:
    """A base without documents, with neither PDFs nor a model: made for changes."""
    async with open_documents_base(tmp_path / "documents", **PLAIN) as library:
        yield library


async def list_documents(library: Desk, ref: str = REF) -> list[Any]:
    return (
        await library.service.list_documents(ListIngestedDocuments(application_ref=ref))
    ).documents


async def make_transport(library: Desk) -> Any:
    (found,) = [one for one in await list_documents(library) if "Transport" in one.file_path]
    return found


async def read_text(library: Desk, document_id: str, **asked: Any) -> Any:
    return await library.service.get_text(GetDocumentText(document_id=document_id, **asked))


# --- search ---


@requirement("documents:search:shape", "documents:metadata", "documents:ids", "documents:pages")
async def test_a_hit_has_the_contracts_fields_and_a_citation(library: Desk) -> None:
    record = await make_transport(library)
    hits = await library.search("cycle parking", application_ref=REF)
    assert (hits.status, hits.query, hits.results_count) == (
        "success",
        "cycle parking",
        len(hits.results),
    )
    scores = [hit.relevance_score for hit in hits.results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    first = hits.results[0]
    assert first.chunk_id == f"{record.document_id}_001_000"
    assert first.metadata.model_dump() == {
        "application_ref": REF,
        "document_id": record.document_id,
        "source_file": "Transport_Assessment.pdf",
        "document_type": "transport_assessment",
        "page_numbers": "1,2",
        "chunk_index": 0,
        "total_chunks": 2,
        "extraction_method": "text_layer",
        "char_count": len(first.text),
        "word_count": len(first.text.split()),
    }
    assert first.citation == "Transport_Assessment.pdf, p. 1–2"
    assert parse_doc_id(first.id) == DocumentRef(record.document_id, 1)


@requirement("documents:search:filters")
@pytest.mark.parametrize("mode", ["semantic", "hybrid", "lexical"])
async def test_filters_restrict_alone_and_together(library: Desk, mode: Any) -> None:
    async def found(**asked: Any) -> set[tuple[str, str]]:
        hits = await library.search("bats and bicycles travel", mode=mode, **asked)
        return {(hit.metadata.application_ref, hit.metadata.document_type) for hit in hits.results}

    bats = "ecology_report"
    assert len(await found()) == 3
    assert await found(application_ref="26/00001/FUL") == {("26/00001/FUL", bats)}
    assert await found(document_types=[bats]) == {(REF, bats), ("26/00001/FUL", bats)}
    assert await found(application_ref=REF, document_types=[bats]) == {(REF, bats)}
    assert len((await library.search("bats", max_results=1)).results) == 1


@requirement("documents:search:filters")
async def test_an_empty_result_says_why(library: Desk) -> None:
    nowhere = await library.search("bats", application_ref="1/2/3")
    typeless = await library.search("bats", application_ref=REF, document_types=["elevation"])
    wordless = await library.search("xylophone", application_ref=REF, mode="lexical")
    assert [one.empty_because for one in (nowhere, typeless, wordless)] == [
        "no_documents",
        "no_documents_of_these_types",
        "nothing_matches",
    ]


# --- text ---


@requirement("documents:text", "documents:text:fields")
async def test_an_entry_that_changed_is_not_remembered_as_it_was(empty: Desk) -> None:
    told = await empty.ingest("Notes.txt", b"The ridge is nine metres high. " * 20)
    store = empty.service.store
    (known,) = (await store.get_records([told.document_id, "gone"])).values()
    assert await store.get_records([told.document_id]) == {told.document_id: known}
    await store.register_document(replace(known, source_file="Letter.txt"))
    (changed,) = (await store.get_records([told.document_id])).values()
    assert changed.source_file == "Letter.txt"
    await store.unregister_document(told.document_id)
    assert await store.get_records([told.document_id]) == {}


async def test_the_text_comes_whole_without_repeated_overlap(library: Desk) -> None:
    record = await make_transport(library)
    whole = await read_text(library, record.document_id)
    assert whole.model_dump(exclude={"text"}) == {
        "status": "success",
        "document_id": record.document_id,
        "file_path": str(library.inbox / "Transport_Assessment.pdf"),
        "document_type": "transport_assessment",
        "chunk_count": 2,
        "page_count": 3,
        "total_chars": len(whole.text),
        "next_offset": None,
        "citation": "Transport_Assessment.pdf",
        "id": f"doc:{record.document_id}",
    }
    assert whole.text.split() == " ".join(TRAVEL).split()


@requirement("documents:text")
async def test_pages_and_a_window_of_characters(library: Desk) -> None:
    record = await make_transport(library)
    second = await read_text(library, record.document_id, pages="2")
    apart = await read_text(library, record.document_id, pages="3, 1")
    joined = await read_text(library, record.document_id, pages="1–3")
    whole = await read_text(library, record.document_id)
    assert (second.citation, second.id) == (
        "Transport_Assessment.pdf, p. 2",
        f"doc:{record.document_id}#page=2",
    )
    assert second.text.split() == TRAVEL[1].split()
    assert apart.text.split() == f"{TRAVEL[0]} {TRAVEL[2]}".split()
    assert apart.citation == "Transport_Assessment.pdf, p. 1, 3"
    named = await read_text(library, second.id)
    assert (named.text, named.id) == (second.text, second.id)
    assert await read_text(library, f"doc:{record.document_id}") == whole
    assert joined.text == whole.text
    pieces, offset = [], 0
    while offset is not None:
        window = await read_text(library, record.document_id, max_chars=300, offset=offset)
        pieces.append(window.text)
        offset = window.next_offset
    assert "".join(pieces) == whole.text
    assert all(len(piece) <= 300 for piece in pieces)
    for pages in ("4", "0", "2-9", "3-2"):
        with pytest.raises(PageNotFound) as told:
            await read_text(library, record.document_id, pages=pages)
        assert told.value.hint["page_count"] == 3


@requirement("documents:text")
async def test_a_document_that_is_not_there_or_has_no_chunks_is_told(empty: Desk) -> None:
    with pytest.raises(DocumentNotFound) as told:
        await read_text(empty, "25_01178_REM_a1b2c3")
    assert told.value.message == "Document not found: 25_01178_REM_a1b2c3"
    made: Any = await empty.ingest("a.pdf", plain("one", "two"))
    chunks = await empty.service.store.get_chunks(made.document_id)
    await empty.service.store.delete_chunks([chunk.chunk_id for chunk in chunks])
    with pytest.raises(NoChunks):
        await read_text(empty, made.document_id)
    # Ingesting again mends it, under the same id.
    again: Any = await empty.ingest("a.pdf", plain("one", "two"))
    assert (again.status, again.document_id) == ("success", made.document_id)
    assert (await read_text(empty, made.document_id)).text == "one\n\ntwo"


# --- lists ---


@requirement("documents:list")
async def test_the_list_has_seven_fields_and_none_is_no_error(library: Desk) -> None:
    answer = await library.service.list_documents(ListIngestedDocuments(application_ref=REF))
    assert (answer.application_ref, answer.document_count) == (REF, 2)
    (first,) = [one for one in answer.documents if one.chunk_count == 2]
    assert first.model_dump(exclude={"document_id"}) == {
        "file_path": str(library.inbox / "Transport_Assessment.pdf"),
        "document_type": "transport_assessment",
        "chunk_count": 2,
        "ingested_at": "2026-02-14T10:30:00+00:00",
        "extraction_method": "text_layer",
        "contains_drawings": False,
        "document_kind": "transport_assessment",
        "page_count": 3,
        "pages_without_text": [],
        "contained_in": None,
    }
    nobody = await library.service.list_documents(ListIngestedDocuments(application_ref="1/2/3"))
    assert nobody.model_dump() == {
        "status": "success",
        "application_ref": "1/2/3",
        "document_count": 0,
        "documents": [],
    }


# --- identity ---


@requirement("documents:list")
async def test_a_document_that_0_1_registered_is_still_listed_and_read(empty: Desk) -> None:
    outcome: Any = await empty.ingest("Travel plan.pdf", plain("Buses run by day."))
    registry = empty.service.store._registry
    entry = registry.read_chunks([outcome.document_id])
    for name in ("container_id", "kind"):  # what 0.1 did not write
        del entry.metadatas[0][name]
    registry.delete_chunks([outcome.document_id])
    registry.upsert_chunks(replace(entry, vectors=np.zeros((1, 384), np.float32)))

    (document,) = await list_documents(empty)

    assert (document.document_kind, document.contained_in) == (document.document_type, None)
    assert (await read_text(empty, outcome.document_id)).text == "Buses run by day."


@requirement("documents:ingest:idempotent", "documents:ingest:hash")
async def test_the_same_file_twice_and_under_another_reference(empty: Desk) -> None:
    first: Any = await empty.ingest("a.pdf", plain("one"))
    again: Any = await empty.ingest("renamed.pdf", plain("one"))
    other: Any = await empty.ingest("a.pdf", plain("one"), ref="26/00001/FUL")
    assert again.model_dump() == {
        "status": "already_ingested",
        "document_id": first.document_id,
        "message": "Document has already been ingested with the same content",
        "same_as": "a.pdf",
        "contained_files": [],
    }
    (record,) = await empty.service.store.list_records(REF)
    assert first.document_id == f"25_01178_REM_{record.file_hash[:6]}"
    assert other.document_id == f"26_00001_FUL_{record.file_hash[:6]}"


@requirement("documents:ingest:hash")
async def test_two_files_whose_ids_would_clash_are_both_kept(
    empty: Desk,
) -> None:
    contents = find_clashing_texts()
    made: list[Any] = [await empty.ingest("a.pdf", plain(one)) for one in contents]
    again: list[Any] = [await empty.ingest("a.pdf", plain(one)) for one in contents]
    short, long = (one.document_id for one in made)
    assert long.startswith(short) and len(long) == len(short) + 1
    assert [one.document_id for one in again] == [short, long]
    for one, content in zip(made, contents, strict=True):
        assert (await read_text(empty, one.document_id)).text == content


def find_clashing_texts() -> tuple[str, str]:
    """Two texts whose files have the same first six hash digits: about one pair in 2^24."""
    import hashlib

    seen: dict[str, str] = {}
    for number in range(20_000):
        digits = hashlib.sha256(plain(str(number))).hexdigest()[:6]
        if digits in seen:
            return seen[digits], str(number)
        seen[digits] = str(number)
    raise AssertionError("no clash among 20,000")


@requirement("documents:ingest:hash")
async def test_references_that_sanitise_alike_keep_their_documents_apart(empty: Desk) -> None:
    made: list[Any] = [
        await empty.ingest("a.pdf", plain("one"), ref=ref) for ref in ("25/1", "25_1", "25 1")
    ]
    assert len({one.document_id for one in made}) == 3
    for ref, one in zip(("25/1", "25_1", "25 1"), made, strict=True):
        assert [it.document_id for it in await list_documents(empty, ref)] == [one.document_id]
    await empty.service.remove_document(RemoveDocument(document_id=made[0].document_id))
    assert (await read_text(empty, made[1].document_id)).text == "one"


@requirement("documents:ingest:idempotent")
async def test_the_same_file_offered_twice_at_once_is_ingested_once(empty: Desk) -> None:
    told: list[str] = []

    async def ingest(name: str) -> None:
        told.append((await empty.ingest(name, plain("one", "two"))).status)

    async with anyio.create_task_group() as tasks:
        for name in ("a.pdf", "b.pdf"):
            tasks.start_soon(ingest, name)
    assert sorted(told) == ["already_ingested", "success"]
    assert (await empty.service.store.count_chunks_by_document()).total() == 2


@requirement("documents:application")
async def test_what_is_left_out_of_a_record_or_null_stays_and_an_empty_text_clears_it(
    empty: Desk,
) -> None:
    async def put(**values: Any) -> Any:
        question = SetApplication(reference=REF, **values)
        return (await empty.service.set_application(question)).application

    await put(address="1 High Street", status="validated")
    after = await put(status=None, validation_date="2025-03-15")
    assert (after.address, after.status, str(after.validation_date)) == (
        "1 High Street",
        "validated",
        "2025-03-15",
    )
    cleared = await put(status="", validation_date="")
    assert (cleared.address, cleared.status, cleared.validation_date) == (
        "1 High Street",
        None,
        None,
    )
    with pytest.raises(InvalidDate):
        await put(validation_date="15/03/2025")


# --- types, removal ---


@requirement("documents:ingest:type")
async def test_an_explicit_type_wins(empty: Desk) -> None:
    await empty.ingest("Bat survey.pdf", plain("one"), document_type="elevation")
    (record,) = await list_documents(empty)
    assert record.document_type == "elevation"


@requirement("room:paths")
@pytest.mark.embedded_only("the database keeps files, not a disk that a test can fill")
async def test_a_file_that_cannot_be_kept_is_told_and_can_be_ingested_later(empty: Desk) -> None:
    content = plain("Bats roost in the old barn.")
    document_id = next(iterate_candidate_document_ids(REF, hashlib.sha256(content).hexdigest()))
    folder = empty.service.folder / "files" / document_id
    folder.mkdir(parents=True)
    (folder / "partial").symlink_to("/dev/full")
    with pytest.raises(StorageFailed, match="cannot be kept: No space left"):
        await empty.ingest("Bats.pdf", content)
    assert await empty.service.list_all_documents() == []
    assert (await empty.ingest("Bats.pdf", content)).status == "success"


@requirement("documents:delete", "documents:remove")
async def test_a_removed_document_is_gone_from_everywhere(empty: Desk) -> None:
    made: Any = await empty.ingest("a.pdf", plain("one", "two"))
    kept: Any = await empty.ingest("b.pdf", plain("three"))
    removed = await empty.service.remove_document(RemoveDocument(document_id=made.document_id))
    assert removed.chunks_removed == 2
    assert [one.document_id for one in await list_documents(empty)] == [kept.document_id]
    assert (await empty.search("one", mode="lexical")).results == []
    assert list(await empty.service.store.count_chunks_by_document()) == [kept.document_id]
    assert (empty.inbox / "a.pdf").exists()
    with pytest.raises(DocumentNotFound):
        await empty.service.remove_document(RemoveDocument(document_id=made.document_id))


@pytest.mark.embedded_only("there a document's file is rows of the database")
async def test_the_copy_of_a_removed_documents_file_is_gone(empty: Desk) -> None:
    made: Any = await empty.ingest("a.pdf", plain("one", "two"))
    kept: Any = await empty.ingest("b.pdf", plain("three"))
    await empty.service.remove_document(RemoveDocument(document_id=made.document_id))
    assert [path.name for path in (empty.inbox.parent / "files").iterdir()] == [kept.document_id]


# --- what is stored ---


@requirement("documents:store", "documents:metadata")
@pytest.mark.embedded_only("the database keeps the chunks, and Chroma nothing")
async def test_both_collections_hold_what_the_contract_says(tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    async with open_documents_base(folder) as library:
        made: Any = await library.ingest("Transport_Assessment.pdf", make_paper(*TRAVEL))
    client = chromadb.PersistentClient(
        str(folder / "chroma"), ChromaSettings(anonymized_telemetry=False)
    )
    assert {one.name for one in client.list_collections()} == {
        "application_docs",
        "document_registry",
    }
    entry: Any = client.get_collection("document_registry", embedding_function=None).get(
        include=["metadatas", "embeddings"]
    )
    chunks: Any = client.get_collection("application_docs", embedding_function=None).get(
        include=["metadatas", "embeddings", "documents"]
    )
    client.close()
    assert entry["ids"] == [made.document_id]
    assert np.array_equal(entry["embeddings"], np.zeros((1, 384)))
    (stored,) = entry["metadatas"]
    assert {name: type(stored[name]) for name in REGISTRY_FIELDS} == REGISTRY_FIELDS
    assert chunks["ids"] == [f"{made.document_id}_001_000", f"{made.document_id}_003_001"]
    assert np.allclose(np.linalg.norm(chunks["embeddings"], axis=1), 1, atol=1e-5)
    for metadata in chunks["metadatas"]:
        assert {name: type(metadata[name]) for name in CHUNK_FIELDS} == CHUNK_FIELDS


REGISTRY_FIELDS = {
    "file_path": str,
    "file_hash": str,
    "application_ref": str,
    "document_type": str,
    "chunk_count": int,
    "ingested_at": str,
    "extraction_method": str,
    "contains_drawings": bool,
}
CHUNK_FIELDS = {
    "application_ref": str,
    "document_id": str,
    "source_file": str,
    "document_type": str,
    "page_numbers": str,
    "chunk_index": int,
    "total_chunks": int,
    "extraction_method": str,
    "char_count": int,
    "word_count": int,
}


@requirement("documents:store")
async def test_in_memory_nothing_is_left(tmp_path: Path) -> None:
    async with open_documents_base(tmp_path / "documents", in_memory=True, **PLAIN) as library:
        await library.ingest("a.pdf", plain("one", "two"))
        assert (await library.search("one")).results_count == 2
    assert [path.name for path in (tmp_path / "documents").iterdir()] == ["inbox"]
    async with open_documents_base(tmp_path / "documents", in_memory=True, **PLAIN) as library:
        assert await list_documents(library) == []


# --- ids ---


@requirement("documents:ids")
@given(
    st.text(min_size=1, max_size=100),
    st.binary(min_size=32, max_size=32),
    st.none() | st.integers(1, 9999),
)
@settings(max_examples=50, deadline=None)
def test_every_document_id_can_be_fetched(ref: str, digest: bytes, page: int | None) -> None:
    ids = list(iterate_candidate_document_ids(ref, digest.hex()))
    assert len(set(ids)) == 59
    for document_id in ids:
        assert parse_doc_id(format_doc_id(document_id, page)) == DocumentRef(document_id, page)


def test_what_is_no_document_id_is_told() -> None:
    for wrong in ("25_01178_REM_a1b2c3", "doc:", "doc:x#page=0", "doc:25/1_a1b2c3", "hr:119:1"):
        with pytest.raises(UnrecognizedId):
            parse_doc_id(wrong)


def test_a_citation_joins_pages_in_a_row() -> None:
    assert format_citation("a.pdf", [14, 15]) == "a.pdf, p. 14–15"
    assert format_citation("a.pdf", [3]) == "a.pdf, p. 3"
    assert format_citation("a.pdf", [1, 2, 3, 7]) == "a.pdf, p. 1–3, 7"


# --- copies ---


@requirement("documents:doctor")
async def test_a_copy_fills_another_folder_with_the_same_documents(tmp_path: Path) -> None:
    old, new, copied = tmp_path / "old", tmp_path / "new", tmp_path / "copy"
    async with open_documents_base(old, **PLAIN) as library:
        made: Any = await library.ingest("a.pdf", plain("one", "two"))
        uploaded: Any = await library.service.ingest_upload(
            Path(library.file("b.pdf", plain("three"))), "b.pdf", REF, None, no_progress
        )
        await library.service.set_application(SetApplication(reference=REF, address="1 High St"))
        written = await write_backup(library.service, copied)
    async with open_documents_base(new, **PLAIN) as library:
        read = await restore_backup(library.service, copied, new, is_replacing=False)
        assert written.counts == read.counts == {"documents": 2, "chunks": 3}
        assert (await read_text(library, made.document_id)).text == "one\n\ntwo"
        kept = await library.service.get_record(uploaded.document_id)
        assert kept.file_path == str(
            library.service.folder.joinpath(
                *_build_copy_path_segments(kept.document_id, kept.source_file)
            )
        )
        overview = await library.service.get_overview(ApplicationOverview(application_ref=REF))
        assert overview.application is not None and overview.application.address == "1 High St"
        assert (
            await DocumentsDoctor(library.service, is_repairing=False).diagnose_documents()
        ).complaints == []
