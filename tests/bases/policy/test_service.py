"""The policy base's answers, on real PDFs, a real registry and a real model."""

import os
import re
import shutil
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from readingroom.bases.policy.admin_models import PolicyPatch, RevisionPatch
from readingroom.bases.policy.compare import passages
from readingroom.bases.policy.doctor import PolicyDoctor
from readingroom.bases.policy.errors import PolicyNotFound, RevisionNotFound, SectionNotFound
from readingroom.bases.policy.models import (
    ComparePolicyRevisions,
    GetPolicySection,
    IngestPolicyRevision,
    ListPolicyRevisions,
    PolicySnapshot,
    RemovePolicyRevision,
    SearchPolicy,
    SearchPolicyBatch,
    VerifyPolicyQuote,
)
from readingroom.bases.policy.tools import _make_tools
from readingroom.core.errors import InvalidCursor, InvalidDate, NotConfirmed
from readingroom.core.progress import no_progress
from readingroom.engine.embedding.processor import ProcessorModel
from readingroom.engine.embedding.shared import get_shared_embedder
from readingroom.engine.embedding.weights import get_weights_folder
from readingroom.ingest.document import Document, ReadOptions
from readingroom.ingest.errors import FileNotFound, NoContent
from readingroom.ingest.read.reader import read_file
from readingroom.protocol.tool import ToolContext
from readingroom.settings import load_settings
from readingroom.storage.errors import EmbeddingMismatch
from tests.ingest.test_ocr import make_scan, make_scanned_pdf
from tests.requirements import requirement
from tests.support.model import MODELS, WordEmbedder
from tests.support.policy.base import (
    FILLER,
    PolicyLibrary,
    make_brief_pdf,
    make_policy_pdf,
    open_library,
)

pytestmark = [pytest.mark.anyio, pytest.mark.both_engines("full")]

OLD, NEW = "rev_NPPF_2023_09", "rev_NPPF_2024_12"


@pytest.fixture(scope="module")
async def library(
    engine: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PolicyLibrary]:
    """Two policies, one of them with two revisions. Tests that use it change nothing."""
    async with open_library(tmp_path_factory.mktemp("data") / "policy") as library:
        await library.add("NPPF", "National Planning Policy Framework")
        await library.revise("NPPF", "September 2023", "2023-09-05")
        await library.revise("NPPF", "December 2024", "2024-12-12")
        await library.add("LTN_1_20", "Cycle Infrastructure Design")
        await library.revise(
            "LTN_1_20", "July 2020", "2020-07-27", content=make_brief_pdf("July 2020")
        )
        yield library


@pytest.fixture
async def empty(tmp_path: Path) -> AsyncIterator[PolicyLibrary]:
    async with open_library(tmp_path / "policy") as library:
        await library.add("NPPF", "National Planning Policy Framework")
        yield library


async def search(library: PolicyLibrary, query: str = "cycle parking", **asked: Any) -> Any:
    return await library.service.search(SearchPolicy(query=query, **asked))


# --- search ---


@requirement("policy:FR-001:shape", "policy:FR-001:rank", "policy:audit")
async def test_a_hit_has_all_that_is_needed_to_cite_it(library: PolicyLibrary) -> None:
    hits = await search(library, effective_date="2025-01-01", sources=["NPPF"], n_results=3)
    assert (hits.status, hits.query, hits.results_count) == ("success", "cycle parking", 3)
    scores = [hit.relevance_score for hit in hits.results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    first = hits.results[0]
    assert first.parts.semantic == first.relevance_score
    assert (first.parts.rank_semantic, first.parts.matched_terms) == (1, ("cycle", "parking"))
    unlisted = {"relevance_score", "text", "effective_from", "score", "parts"}
    assert first.model_dump(exclude=unlisted) == {
        "chunk_id": f"NPPF__{NEW}__Para_1__001",
        "source": "NPPF",
        "revision_id": NEW,
        "version_label": "December 2024",
        "section_ref": "Para 1",
        "page_number": 1,
        "effective_to": None,
        "in_force_today": True,
        "superseded_by": None,
        "citation": "NPPF (December 2024), Para 1, p. 1",
        "id": f"policy:NPPF__{NEW}__Para_1__001",
        "section_title": "",
        "passage_kind": "policy",
        "printed_page": "1",
        "exact_reference": False,
        "stage": None,
        "joined_chunk_ids": [],
    }
    assert "December 2024 standard" in first.text


@requirement("policy:FR-001:date", "policy:FR-007:chunks", "policy:NFR-001")
@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2023-09-05", {OLD}),
        ("2024-12-11", {OLD}),
        ("2024-12-12", {NEW}),
        ("2099-01-01", {NEW}),
    ],
)
@pytest.mark.parametrize("mode", ["semantic", "hybrid", "lexical"])
async def test_a_date_keeps_the_revision_in_force_that_day(
    library: PolicyLibrary, day: str, expected: set[str], mode: Any
) -> None:
    hits = await search(library, effective_date=day, sources=["NPPF"], mode=mode)
    assert {hit.revision_id for hit in hits.results} == expected


@requirement("policy:FR-001:all", "policy:FR-001:sources")
async def test_without_a_date_every_revision_is_searched_and_marked(library: PolicyLibrary) -> None:
    everywhere = await search(library, n_results=100)
    assert {hit.source for hit in everywhere.results} == {"NPPF", "LTN_1_20"}
    hits = await search(library, sources=["NPPF"], n_results=100)
    marks = {(hit.revision_id, hit.in_force_today, hit.superseded_by) for hit in hits.results}
    assert marks == {(OLD, False, NEW), (NEW, True, None)}


@requirement("policy:FR-001:before", "policy:FR-001:unknown-source")
async def test_a_policy_that_cannot_answer_says_why(library: PolicyLibrary) -> None:
    hits = await search(
        library, effective_date="2020-01-01", sources=["NPPF", "LTN_1_20", "NOBODY"]
    )
    assert (hits.results_count, hits.results) == (0, [])
    reasons = {one.source: (one.reason, one.nearest) for one in hits.excluded}
    assert reasons["NOBODY"] == ("unknown_source", None)
    assert reasons["NPPF"][0] == "date_before_first_revision"
    assert reasons["NPPF"][1].revision_id == OLD
    assert (await search(library, effective_date="2020-07-27")).results_count > 0
    with pytest.raises(ValidationError, match="at least 1 item"):
        await search(library, sources=[])


@requirement("policy:FR-001:invalid-date")
@pytest.mark.parametrize("day", ["20240315", "2024-W11-5", "2024-3-5", "yesterday", "2024-02-30"])
async def test_a_malformed_date_is_told(library: PolicyLibrary, day: str) -> None:
    with pytest.raises(InvalidDate) as told:
        await search(library, effective_date=day)
    assert told.value.message == f"Invalid date format: {day}. Use YYYY-MM-DD."


@requirement("policy:nice:stream")
async def test_pages_of_results_make_up_the_whole(library: PolicyLibrary) -> None:
    whole = [hit.chunk_id for hit in (await search(library, n_results=100)).results]
    paged: list[str] = []
    cursor = None
    while True:
        page = await search(library, n_results=5, cursor=cursor)
        paged += [hit.chunk_id for hit in page.results]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert paged == whole
    first = await search(library, n_results=5)
    with pytest.raises(InvalidCursor):
        await search(library, "another query", cursor=first.next_cursor)


@requirement("policy:nice:batch")
async def test_a_batch_answers_each_query_as_a_search_would(
    library: PolicyLibrary, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # New to the model, which remembers what it was asked on the other engine.
    queries = [f"parking for cycles, {engine}", f"homes for people, {engine}"]
    runs: list[list[str]] = []
    compute = ProcessorModel.compute_vectors
    monkeypatch.setattr(
        ProcessorModel,
        "compute_vectors",
        lambda model, texts: runs.append(texts) or compute(model, texts),
    )
    batch = await library.service.search_batch(
        SearchPolicyBatch(queries=queries, effective_date="2025-01-01")
    )
    singles = [await search(library, query, effective_date="2025-01-01") for query in queries]
    assert batch.searches == singles
    assert runs == [queries]  # one call of the model for all


# --- sections ---


@requirement("policy:FR-002:shape", "policy:FR-002:default", "policy:FR-002:named")
async def test_a_section_comes_from_the_revision_in_force_today_or_the_one_named(
    library: PolicyLibrary,
) -> None:
    today = await library.service.get_section(GetPolicySection(source="NPPF", section_ref="para 1"))
    named = await library.service.get_section(
        GetPolicySection(source="NPPF", section_ref="Paragraph 1", revision_id=OLD)
    )
    assert (today.revision_id, today.section_ref, today.page_numbers) == (NEW, "Para 1", [1])
    assert "December 2024 standard" in today.text
    assert (named.revision_id, named.version_label) == (OLD, "September 2023")
    assert "September 2023 standard" in named.text
    assert today.id == f"policy:NPPF@{NEW}#Para 1"


@requirement("policy:FR-002:asked")
@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("3", "Para 3"),
        ("paras. 3", "Para 3"),
        ("chapter\xa01", "Chapter 1"),
        ("CHAPTER 2", "Chapter 2"),
    ],
)
async def test_a_section_may_be_asked_for_as_people_write_it(
    library: PolicyLibrary, asked: str, meant: str
) -> None:
    assert (await read_section(library, asked)).section_ref == meant


@requirement("policy:FR-002:missing")
async def test_a_section_that_is_not_there_names_those_like_it(library: PolicyLibrary) -> None:
    with pytest.raises(SectionNotFound) as told:
        await library.service.get_section(GetPolicySection(source="NPPF", section_ref="Para 99"))
    assert told.value.message == (
        "Section 'Para 99' not found in policy 'NPPF'; "
        "the nearest are Para 6, Para 5, Para 4, Para 3, Para 2"
    )
    assert told.value.hint["nearest"] == ["Para 6", "Para 5", "Para 4", "Para 3", "Para 2"]
    with pytest.raises(PolicyNotFound) as unknown:
        await library.service.get_section(GetPolicySection(source="NOBODY", section_ref="Para 1"))
    assert unknown.value.hint["valid_sources"] == ["LTN_1_20", "NPPF"]
    with pytest.raises(RevisionNotFound):
        await library.service.get_section(
            GetPolicySection(source="NPPF", section_ref="Para 1", revision_id="rev_NPPF_1999_01")
        )


@requirement("policy:FR-002:whole")
async def test_defect_3_a_long_section_is_whole_in_order_and_of_one_revision(
    empty: PolicyLibrary,
) -> None:
    """And a parent holds its children."""
    words = [f"word{number:05d}" for number in range(3000)]
    long = " ".join(words)
    content = make_policy_pdf(
        [("Walking", ["See Chapter 2 for homes.", long]), ("Homes", list(FILLER))]
    )
    other = make_policy_pdf([("Walking", ["See this.", long.upper()])])
    await empty.revise("NPPF", "September 2023", "2023-09-05", content=other)
    await empty.revise("NPPF", "December 2024", "2024-12-12", content=content)
    chunks = await empty.service.store.get_chunks("NPPF", NEW)
    section = await empty.service.get_section(GetPolicySection(source="NPPF", section_ref="Para 2"))
    parent = await empty.service.get_section(
        GetPolicySection(source="NPPF", section_ref="Chapter 1")
    )
    assert sum(chunk.section_ref == "Para 2" for chunk in chunks) > 20
    assert re.findall(r"(?i)word\d{5}", section.text) == words
    assert re.findall(r"(?i)word\d{5}", parent.text) == words
    assert "See Chapter 2 for homes." in parent.text
    assert "highway safety" not in parent.text
    assert section.page_numbers == sorted(set(section.page_numbers))
    assert len(section.page_numbers) > 1


@requirement("policy:FR-002:whole")
async def test_paragraphs_are_parted_by_a_blank_line_and_an_overlap_stands_once(
    empty: PolicyLibrary,
) -> None:
    sentences = [f"Sentence {number} says something of its own." for number in range(60)]
    content = make_policy_pdf([("Walking", ["Short.", " ".join(sentences), "Last."])])
    await empty.revise("NPPF", "December 2024", "2024-12-12", content=content)
    chunks = await empty.service.store.get_chunks("NPPF", NEW)
    long = [chunk for chunk in chunks if chunk.section_ref == "Para 2"]
    assert any(one.end_offset > next_one.start_offset for one, next_one in pairwise(long))
    chapter = await empty.service.get_section(
        GetPolicySection(source="NPPF", section_ref="Chapter 1")
    )
    parts = chapter.text.split("\n\n")
    assert [part.split()[0] for part in parts[-3:]] == ["1.", "2.", "3."]
    assert re.findall(r"Sentence \d+", parts[-2]) == [f"Sentence {n}" for n in range(60)]


# --- lists ---


@requirement("policy:FR-003", "policy:FR-004", "policy:FR-004:unknown")
async def test_policies_and_revisions_are_listed(library: PolicyLibrary) -> None:
    policies = await library.service.list_policies()
    assert policies.policy_count == 2
    assert policies.policies[1].model_dump(mode="json") == {
        "source": "NPPF",
        "title": "National Planning Policy Framework",
        "category": "national_policy",
    }
    revisions = await library.service.list_revisions(ListPolicyRevisions(source="NPPF"))
    assert revisions.revision_count == 2
    rows = [one.model_dump(mode="json", exclude={"chunk_count"}) for one in revisions.revisions]
    assert rows == [
        {
            "revision_id": NEW,
            "version_label": "December 2024",
            "effective_from": "2024-12-12",
            "effective_to": None,
            "status": "active",
        },
        {
            "revision_id": OLD,
            "version_label": "September 2023",
            "effective_from": "2023-09-05",
            "effective_to": "2024-12-11",
            "status": "superseded",
        },
    ]
    assert all(one.chunk_count > 0 for one in revisions.revisions)
    with pytest.raises(PolicyNotFound, match="NOBODY"):
        await library.service.list_revisions(ListPolicyRevisions(source="NOBODY"))


@requirement("policy:snapshot")
async def test_a_snapshot_tells_every_policy_on_a_day(library: PolicyLibrary) -> None:
    snapshot = await library.service.get_snapshot(PolicySnapshot(date="2021-01-01"))
    assert (snapshot.policy_count, snapshot.in_force_count) == (2, 1)
    by_source = {one.source: one for one in snapshot.policies}
    assert by_source["NPPF"].reason == "date_before_first_revision"
    assert by_source["LTN_1_20"].revision is not None


# --- ingest and removal ---


@requirement("policy:rest")
async def test_a_revision_that_is_active_is_complete(tmp_path: Path) -> None:
    """Also while the dates of its neighbours are still being written."""
    seen: dict[str, int] = {}

    def at(step: str) -> None:
        if progress := library.service.ingestion.find_progress(NEW):
            seen[step] = progress.percent_complete

    async with open_library(tmp_path, on_step=at, embedder=WordEmbedder()) as library:
        await library.add("NPPF")
        await library.register("NPPF", "December 2024", "2024-12-12")
        path = library.inbox("nppf.pdf", make_brief_pdf("December 2024"))
        question = IngestPolicyRevision(source="NPPF", revision_id=NEW, file_path=path)
        await library.service.ingest_revision(question, no_progress)
    assert (seen["ingest:file"], seen["ingest:registry"]) == (95, 100)


@requirement("policy:FR-005:shape", "policy:FR-005:metadata", "policy:FR-005:ids")
async def test_an_ingest_stores_chunks_with_the_contracts_ids_and_metadata(
    empty: PolicyLibrary,
) -> None:
    await empty.register("NPPF", "December 2024", "2024-12-12")
    steps: list[str | None] = []

    async def report(done: float, total: float | None, message: str | None) -> None:
        steps.append(message)

    path = empty.inbox("nppf.pdf", make_brief_pdf("December 2024"))
    question = IngestPolicyRevision(source="NPPF", revision_id=NEW, file_path=path)
    answer = await empty.service.ingest_revision(question, report)
    (metadatas,) = (await empty.service.store.group_metadata_by_revision()).values()
    ids = await empty.service.store.get_chunk_ids("NPPF", NEW)
    assert answer.model_dump() == {
        "status": "success",
        "source": "NPPF",
        "revision_id": NEW,
        "chunks_created": len(ids),
        "page_count": 1,
        "extraction_method": "text_layer",
        "already_ingested": False,
    }
    assert all(re.fullmatch(rf"NPPF__{NEW}__[A-Za-z0-9_-]+__\d{{3}}", id) for id in ids)
    wanted = {
        "source": "NPPF",
        "source_title": "National Planning Policy Framework",
        "revision_id": NEW,
        "version_label": "December 2024",
        "effective_from": 20241212,
        "effective_to": 99991231,
    }
    for metadata in metadatas:
        assert wanted.items() <= dict(metadata).items()
        assert {"section_ref", "page_number", "chunk_index", "section_path"} <= metadata.keys()
    assert sorted(one["chunk_index"] for one in metadatas) == list(range(len(ids)))
    assert any("page 1 of 1" in (step or "") for step in steps)
    registered = await empty.admin.get_revision("NPPF", NEW)
    assert (registered.status, registered.chunk_count, registered.page_count) == (
        "active",
        len(ids),
        1,
    )
    assert registered.ingested_at is not None


@requirement("policy:FR-005:again", "policy:FR-005:reindex")
async def test_ingesting_again_changes_nothing_and_a_reindex_leaves_exactly_the_new(
    empty: PolicyLibrary,
) -> None:
    await empty.revise("NPPF", "December 2024", "2024-12-12")
    before = await empty.service.store.get_chunk_ids("NPPF", NEW)
    other = empty.inbox("other.pdf", make_policy_pdf([("One", ["Only this stands here now."])]))
    question = IngestPolicyRevision(source="NPPF", revision_id=NEW, file_path=other)
    again = await empty.service.ingest_revision(question, no_progress)
    assert (again.already_ingested, again.chunks_created) == (True, len(before))
    assert await empty.service.store.get_chunk_ids("NPPF", NEW) == before
    reindexed = await empty.service.ingest_revision(
        question.model_copy(update={"reindex": True}), no_progress
    )
    chunks = await empty.service.store.get_chunks("NPPF", NEW)
    assert len(chunks) == reindexed.chunks_created < len(before)
    assert "Only this stands here now." in " ".join(chunk.text for chunk in chunks)
    assert not (
        await PolicyDoctor(empty.service, is_repairing=False).diagnose_policies()
    ).complaints


@requirement("policy:FR-005:checks")
async def test_what_cannot_be_ingested_is_told_and_recorded(empty: PolicyLibrary) -> None:
    await empty.register("NPPF", "December 2024", "2024-12-12")
    blank = empty.inbox("blank.pdf", make_policy_pdf([("", [])], headed=False))
    outside = IngestPolicyRevision(source="NPPF", revision_id=NEW, file_path="/etc/passwd")
    with pytest.raises(FileNotFound, match="outside POLICY_ROOTS"):
        await empty.service.ingest_revision(outside, no_progress)
    with pytest.raises(RevisionNotFound):
        await empty.service.ingest_revision(
            outside.model_copy(update={"revision_id": "rev_NPPF_1999_01"}), no_progress
        )
    assert (await empty.admin.get_revision("NPPF", NEW)).status == "processing"
    with pytest.raises(NoContent):
        await empty.service.ingest_revision(
            outside.model_copy(update={"file_path": blank}), no_progress
        )
    failed = await empty.admin.get_revision("NPPF", NEW)
    assert failed.status == "failed"
    assert failed.error


@requirement("policy:FR-005:ocr", "policy:FR-005:shape")
async def test_scanned_pages_are_read_by_ocr_and_can_be_searched(empty: PolicyLibrary) -> None:
    await empty.register("NPPF", "December 2024", "2024-12-12")
    pages = make_scan("Cycle parking stands within sight of the entrance.")
    path = empty.inbox("scan.pdf", make_scanned_pdf(pages, words="Homes are built here."))
    question = IngestPolicyRevision(source="NPPF", revision_id=NEW, file_path=path)
    answer = await empty.service.ingest_revision(question, no_progress)
    assert (answer.extraction_method, answer.page_count) == ("mixed", 2)
    hits = await search(empty, effective_date="2025-01-01", n_results=1)
    assert "within sight of the entrance" in hits.results[0].text
    quote = VerifyPolicyQuote(source="NPPF", quote="within sight of", date="2025-01-01")
    assert [one.page_number for one in (await empty.service.verify_quote(quote)).found] == [2]


@requirement("policy:FR-001:model")
async def test_the_model_is_a_setting_and_all_minilm_by_default(tmp_path: Path) -> None:
    own = tmp_path / "our-model"
    package = get_weights_folder(MODELS).folder
    shutil.copytree(package, own)
    with (own / "model.safetensors").open("r+b") as weights:
        weights.seek(-4, os.SEEK_END)
        weights.write(b"\0\0\0\0")
    settings = {"data": tmp_path / "data"}
    default = get_shared_embedder(load_settings(settings, {}))
    chosen = get_shared_embedder(load_settings(settings, {"EMBEDDING_MODEL_DIR": str(own)}))
    assert default.identity.startswith("all-MiniLM-L6-v2@")
    async with open_library(tmp_path / "policy", embedder=chosen) as library:
        await library.add("NPPF")
        await library.revise("NPPF", "December 2024", "2024-12-12")
        assert (await search(library)).results_count > 0
    # What one model made is never compared with what another made.
    async with open_library(tmp_path / "policy", embedder=default) as library:
        with pytest.raises(EmbeddingMismatch, match="our-model"):
            await search(library)


@requirement("room:consent")
async def test_a_removal_that_the_person_declines_takes_nothing(empty: PolicyLibrary) -> None:
    await empty.revise("NPPF", "December 2024", "2024-12-12")
    before = await empty.admin.get_revision("NPPF", NEW)
    questions: list[str] = []

    async def decline(message: str) -> bool:
        questions.append(message)
        return False

    tools = _make_tools(empty.service)
    (remove,) = [tool for tool in tools if tool.name == "remove_policy_revision"]
    question = RemovePolicyRevision(source="NPPF", revision_id=NEW)
    with pytest.raises(NotConfirmed, match="Nothing was removed"):
        await remove.run(question, ToolContext("1", "test", no_progress, ask_person=decline))
    (message,) = questions
    assert f"{before.chunk_count} passages" in message
    assert NEW in message
    assert await empty.admin.get_revision("NPPF", NEW) == before


@requirement("policy:FR-006", "policy:FR-006:shape", "policy:NFR-003")
async def test_a_removal_takes_the_chunks_and_leaves_the_registry(empty: PolicyLibrary) -> None:
    await empty.revise("NPPF", "December 2024", "2024-12-12")
    before = await empty.admin.get_revision("NPPF", NEW)
    question = RemovePolicyRevision(source="NPPF", revision_id=NEW)
    removed = await empty.service.remove_revision_chunks(question)
    again = await empty.service.remove_revision_chunks(question)
    after = await empty.admin.get_revision("NPPF", NEW)
    assert removed.model_dump() == {
        "status": "success",
        "source": "NPPF",
        "revision_id": NEW,
        "chunks_removed": before.chunk_count,
    }
    assert again.chunks_removed == 0
    unknown = await empty.service.remove_revision_chunks(
        question.model_copy(update={"revision_id": "rev_X"})
    )
    assert unknown.chunks_removed == 0
    with pytest.raises(PolicyNotFound) as told:
        await empty.service.remove_revision_chunks(question.model_copy(update={"source": "NOBODY"}))
    assert told.value.hint["valid_sources"] == ["NPPF"]
    assert after == before.model_copy(update={"chunk_count": 0})
    hits = await search(empty, effective_date="2025-01-01")
    assert [(one.source, one.reason) for one in hits.excluded] == [("NPPF", "no_chunks")]


# --- what went wrong in the first implementation ---


@requirement("policy:FR-007:chunks")
async def test_defect_1_superseding_and_changing_dates_reach_the_chunks(
    empty: PolicyLibrary,
) -> None:
    await empty.revise("NPPF", "September 2023", "2023-09-05")
    await empty.revise("NPPF", "December 2024", "2024-12-12")

    async def ends(revision_id: str) -> set[Any]:
        census = await empty.service.store.group_metadata_by_revision()
        return {one["effective_to"] for one in census["NPPF", revision_id]}

    assert await ends(OLD) == {20241211}
    hits = await search(empty, effective_date="2025-01-01")
    assert {hit.revision_id for hit in hits.results} == {NEW}
    patch = RevisionPatch.model_validate_json('{"effective_to": "2024-06-30"}')
    await empty.admin.amend_revision("NPPF", OLD, patch)
    assert await ends(OLD) == {20240630}
    assert (await search(empty, effective_date="2024-07-01")).results_count == 0


@requirement("policy:FR-007:no-void", "policy:FR-007:chunks")
async def test_while_a_successor_is_processing_the_chunks_of_the_old_one_stay_open(
    empty: PolicyLibrary,
) -> None:
    await empty.revise("NPPF", "September 2023", "2023-09-05")
    await empty.register("NPPF", "December 2024", "2024-12-12")
    hits = await search(empty, effective_date="2025-01-01")
    assert {hit.revision_id for hit in hits.results} == {OLD}
    assert {hit.effective_to for hit in hits.results} == {None}
    diagnosis = await PolicyDoctor(empty.service, is_repairing=False).diagnose_policies()
    assert [(one.subject, one.problem) for one in diagnosis.complaints] == [
        (NEW, "it is processing, but no process is reading its file")
    ]


@requirement("policy:FR-007:auto")
async def test_defect_2_a_revision_that_has_a_successor_says_superseded(
    empty: PolicyLibrary,
) -> None:
    await empty.revise("NPPF", "September 2023", "2023-09-05")
    await empty.revise("NPPF", "December 2024", "2024-12-12")
    listed = await empty.service.list_revisions(ListPolicyRevisions(source="NPPF"))
    assert [str(one.status) for one in listed.revisions] == ["active", "superseded"]


@requirement("policy:FR-005:metadata")
async def test_defect_6_the_title_on_the_chunks_is_the_title(empty: PolicyLibrary) -> None:
    await empty.revise("NPPF", "December 2024", "2024-12-12")

    async def titles() -> set[Any]:
        census = await empty.service.store.group_metadata_by_revision()
        return {one["source_title"] for one in census["NPPF", NEW]}

    assert await titles() == {"National Planning Policy Framework"}
    await empty.admin.update_policy_details("NPPF", PolicyPatch(title="The Framework"))
    assert await titles() == {"The Framework"}


@requirement("policy:FR-005:metadata")
async def test_defect_4_a_cross_reference_starts_no_section(empty: PolicyLibrary) -> None:
    content = make_policy_pdf([("One", ["As Chapter 7 says, walking comes first.", *FILLER])])
    await empty.revise("NPPF", "December 2024", "2024-12-12", content=content)
    chunks = await empty.service.store.get_chunks("NPPF", NEW)
    assert "Chapter 7" not in {chunk.section_ref for chunk in chunks}


# --- comparing and checking ---


@requirement("policy:compare")
async def test_a_comparison_shows_what_changed_word_by_word(empty: PolicyLibrary) -> None:
    old = make_policy_pdf(
        [("Walking", ["Paths are two metres wide.", *FILLER]), ("Gone", ["Old matter."])]
    )
    new = make_policy_pdf([("Walking", ["Paths are three metres wide.", *FILLER])])
    await empty.revise("NPPF", "September 2023", "2023-09-05", content=old)
    await empty.revise("NPPF", "December 2024", "2024-12-12", content=new)
    question = ComparePolicyRevisions(source="NPPF", from_date="2024-01-01", to_date="2025-01-01")
    found = await empty.service.compare_revisions(question)
    changes = {one.section_ref: one for one in found.changes}
    assert (found.from_revision.revision_id, found.to_revision.revision_id) == (OLD, NEW)
    assert changes["Chapter 2"].change == "removed"
    assert [(part.op, part.text) for part in changes["Para 1"].diff][1:3] == [
        ("delete", "two"),
        ("insert", "three"),
    ]
    assert found.sections_unchanged == found.sections_compared - len(changes)
    only = await empty.service.compare_revisions(
        question.model_copy(update={"section_ref": "Para 1"})
    )
    assert [one.section_ref for one in only.changes] == ["Para 1"]
    with pytest.raises(RevisionNotFound) as told:
        await empty.service.compare_revisions(
            question.model_copy(update={"from_date": "1999-01-01"})
        )
    assert told.value.hint["reason"] == "date_before_first_revision"


@requirement("policy:verify")
async def test_a_quotation_is_verified_or_placed_or_told_to_be_missing(
    library: PolicyLibrary,
) -> None:
    async def verify(quote: str, day: str = "2025-01-01") -> Any:
        return await library.service.verify_quote(
            VerifyPolicyQuote(source="NPPF", quote=quote, date=day)
        )

    right = await verify("CYCLE  parking follows the December 2024\nstandard.")
    assert (right.verdict, right.found[0].section_ref) == ("verified", "Para 1")
    assert right.found[0].citation == "NPPF (December 2024), Para 1, p. 1"
    wrong = await verify("Cycle parking follows the September 2023 standard.")
    assert (wrong.verdict, wrong.revision_in_force) == ("wrong_revision", NEW)
    assert [one.revision_id for one in wrong.found] == [OLD]
    missing = await verify("Cycle parking follows the December 2025 standard.")
    assert (missing.verdict, missing.found) == ("not_found", [])
    assert missing.nearest.similarity > 0.7
    early = await verify("Cycle parking follows the September 2023 standard.", "1999-01-01")
    assert (early.verdict, early.reason) == ("wrong_revision", "date_before_first_revision")


WHOLE_WORDS = [
    ("unsafe to an unacceptable degree", "verified"),
    ("safe to an unacceptable degree", "not_found"),
    ("unsafe to an unacceptable deg", "not_found"),
    ("designated assets, 300,000 homes", "not_found"),
    ("non-designated assets, 300,000 homes", "verified"),
    ("000 homes and a plan", "not_found"),
    ("300,000 homes and a plan", "not_found"),
    ("300,000 homes and a", "verified"),
    ("led approach", "not_found"),
    ("approach.", "verified"),
    ("adopted plans", "verified"),  # a footnote's number is glued to it
    ("see Policy H", "not_found"),
]


@requirement("policy:verify")
async def test_a_quotation_begins_and_ends_where_words_do(empty: PolicyLibrary) -> None:
    text = (
        "Roads that are unsafe to an unacceptable degree are refused. Non-designated assets, "
        "300,000 homes and a plan-led approach. Look at adopted plans12 and see Policy H1."
    )
    await empty.revise(
        "NPPF", "December 2024", "2024-12-12", content=make_policy_pdf([("One", [text, *FILLER])])
    )
    for quote, verdict in WHOLE_WORDS:
        question = VerifyPolicyQuote(source="NPPF", quote=quote, date="2025-01-01")
        assert (await empty.service.verify_quote(question)).verdict == verdict, quote


@requirement("policy:verify")
async def test_a_quotation_across_chunks_and_pages_is_found_on_its_page(
    empty: PolicyLibrary,
) -> None:
    words = [f"word{number:05d}" for number in range(3000)]
    await empty.revise(
        "NPPF",
        "December 2024",
        "2024-12-12",
        content=make_policy_pdf([("One", [" ".join(words), *FILLER])]),
    )
    for start in (0, 700, 1500, 2900):
        quote = " ".join(words[start : start + 90])
        question = VerifyPolicyQuote(source="NPPF", quote=quote, date="2025-01-01")
        check = await empty.service.verify_quote(question)
        section = await empty.service.store.get_chunks("NPPF", NEW)
        pages = {page for chunk in section if words[start] in chunk.text for page in chunk.pages}
        assert check.verdict == "verified"
        assert check.found[0].page_number in pages
    spanning = next(chunk for chunk in section if len(chunk.pages) > 1)
    hit = await empty.service.get_passage(spanning.chunk_id)
    assert hit.page_number == spanning.pages[0]
    assert hit.citation.endswith(f", p. {spanning.pages[0]}–{spanning.pages[-1]}")


# --- the real thing ---


@pytest.mark.data
@requirement("policy:FR-002:whole", "policy:verify", "policy:FR-005:shape")
async def test_the_draft_framework_is_read_whole_and_quoted_from_its_pages(
    tmp_path: Path, shared_data: Path
) -> None:
    """127 pages. The embedder is a stand-in: what is asked here is the text."""
    content = (shared_data / "policy" / "NPPF_Draft_December_2025.pdf").read_bytes()
    document = read_file(content, "p.pdf", ReadOptions(find_sections=True), lambda *step: None)
    assert isinstance(document, Document)
    async with open_library(tmp_path / "policy", embedder=WordEmbedder()) as library:
        await library.add("NPPF")
        revision = await library.revise("NPPF", "Draft", "2025-01-01", content=content)
        chunks = await library.service.store.get_chunks("NPPF", revision)
        assert passages.join_chunk_texts(chunks).split() == document.text.split()
        assert (await read_section(library, "TR4")).section_ref == "Policy TR4"
        for ref, child in [("Chapter 15", "Policy TR4"), ("Chapter 3", "Policy DM5")]:
            inner = await read_section(library, child)
            outer = await read_section(library, ref)
            assert " ".join(inner.text.split()) in " ".join(outer.text.split())
            quote = " ".join(inner.text.split()[10:60])
            asked = VerifyPolicyQuote(source="NPPF", quote=quote, date="2025-06-01")
            check = await library.service.verify_quote(asked)
            assert (check.verdict, check.found[0].section_ref) == ("verified", child)
            assert check.found[0].page_number in inner.page_numbers


async def read_section(library: PolicyLibrary, ref: str) -> Any:
    return await library.service.get_section(GetPolicySection(source="NPPF", section_ref=ref))


class RecordingEmbedder(WordEmbedder):
    """Remembers what it was given to embed."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_batch(self, texts: Any, **options: Any) -> Any:
        self.texts += texts
        return super().embed_batch(texts, **options)


@requirement("policy:vectors:reused")
async def test_a_revision_embeds_only_what_its_neighbours_do_not_say(tmp_path: Path) -> None:
    paragraphs = [f"Paragraph {number} says this of matter {number}. " * 6 for number in range(40)]
    changed = [*paragraphs[:20], "Paragraph 20 was written anew. " * 9, *paragraphs[21:]]
    embedder = RecordingEmbedder()
    async with open_library(tmp_path / "policy", embedder=embedder) as library:
        await library.add("NPPF")
        await library.revise(
            "NPPF", "One", "2023-01-01", content=make_policy_pdf([("All", paragraphs)])
        )
        first_texts = set(embedder.texts)
        embedder.texts.clear()
        second = await library.revise(
            "NPPF", "Two", "2024-01-01", content=make_policy_pdf([("All", changed)])
        )
        chunks = await library.service.store.get_chunks("NPPF", second)
        revisions = await library.service.registry.get_revisions("NPPF")
        stored = await library.service.store.read_vectors_by_text(revisions)
    assert not first_texts & set(embedder.texts)
    assert 0 < len(embedder.texts) < len(chunks) / 4
    # Each is embedded under the policy's title, which is one line.
    bare_texts = {text.partition("\n")[2] for text in (*first_texts, *embedder.texts)}
    assert {chunk.text for chunk in chunks} <= bare_texts
    for text, vector in stored.items():
        assert vector == pytest.approx(embedder.embed(text), abs=1e-6)


# --- the checkup ---


@requirement("policy:doctor")
async def test_the_checkup_names_every_disagreement_and_mends_it(empty: PolicyLibrary) -> None:
    await empty.revise("NPPF", "December 2024", "2024-12-12")
    await empty.add("OTHER")
    service = empty.service
    revision = (await service.registry.get_revisions("NPPF"))[0]
    policy = await service.registry.get_policy("NPPF")
    assert not (await PolicyDoctor(service, is_repairing=False).diagnose_policies()).complaints
    await service.ingestion.set_chunk_count("NPPF", NEW, 999)
    await service.store.update_metadata(policy, revision, revision.effective_from)
    await service.registry.change_revisions(
        "OTHER", lambda at: [revision.model_copy(update={"source": "OTHER"})]
    )
    found = await PolicyDoctor(service, is_repairing=False).diagnose_policies()
    assert {one.subject for one in found.complaints} == {NEW}
    assert len(found.complaints) == 3
    mended = await PolicyDoctor(service, is_repairing=True).diagnose_policies()
    assert all(one.repaired for one in mended.complaints)
    assert not (await PolicyDoctor(service, is_repairing=False).diagnose_policies()).complaints
