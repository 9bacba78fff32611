"""A revision that could not be read is in force on no day; what answers instead of it says so."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from typing import Any

import pytest

from readingroom.bases.policy.adapter import PolicyAdapter
from readingroom.bases.policy.errors import RevisionNotFound
from readingroom.bases.policy.models import (
    ComparePolicyRevisions,
    GetPolicySection,
    IngestPolicyRevision,
    PolicySnapshot,
    SearchPolicy,
    VerifyPolicyQuote,
)
from readingroom.bases.policy.pages.policies import make_pages
from readingroom.core.progress import no_progress
from readingroom.federation.fan_out import FanOut
from readingroom.federation.models import AssessAgainstPolicy, DeskFetch, DeskSearch
from readingroom.federation.pages import FederationPages
from readingroom.federation.service import FederationService
from readingroom.ingest.errors import NoContent
from readingroom.protocol.pages import PageRequest, RenderedPage, Visitor
from readingroom.protocol.search import (
    DeskHit,
    KnownApplication,
    PageLinks,
    SearchAdapter,
    SearchRequest,
)
from readingroom.protocol.tool import Answer, ToolContext
from readingroom.storage.jobs.store import JobStore
from tests.support.kit import invoke
from tests.support.model import EMBEDDER
from tests.support.policy.base import PolicyLibrary, make_policy_pdf, open_library

pytestmark = [pytest.mark.anyio, pytest.mark.both_engines("full")]

UNREAD, UNREAD_EARLIER = "rev_ORCHARD_2026_01", "rev_TREES_2008_04"
OLDER = "rev_ORCHARD_2025_05"
QUOTE = "Cycle parking follows the May 2025 standard."
CAUTION = "A revision from 1 January 2026 could not be read; this answer is from the one before it."
EARLIER_CAUTION = "A revision from 1 April 2008 could not be read; what it said is not known here."


@pytest.fixture(scope="module")
async def library(
    engine: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PolicyLibrary]:
    """One policy whose newest revision failed, and one whose first did."""
    folder = tmp_path_factory.mktemp("unread") / "policy"
    async with open_library(
        folder, get_now=lambda: datetime(2026, 6, 1, 12, tzinfo=UTC)
    ) as library:
        await library.add("ORCHARD", "Orchard Guide")
        await library.revise("ORCHARD", "May 2025", "2025-05-01")
        await fail(library, "ORCHARD", "January 2026", "2026-01-01")
        await library.add("TREES", "Tree Strategy")
        await fail(library, "TREES", "April 2008", "2008-04-01")
        await library.revise("TREES", "May 2012", "2012-05-01")
        yield library


async def fail(library: PolicyLibrary, source: str, label: str, start: str) -> None:
    revision_id = await library.register(source, label, start)
    blank = library.inbox(f"{source}.pdf", make_policy_pdf([("", [])], headed=False))
    question = IngestPolicyRevision(source=source, revision_id=revision_id, file_path=blank)
    with pytest.raises(NoContent):
        await library.service.ingest_revision(question, no_progress)


def list_ids(answer: Any) -> list[str]:
    return [revision.revision_id for revision in answer.unread_revisions]


@pytest.mark.parametrize(
    ("source", "day", "expected"),
    [
        ("ORCHARD", "2025-12-31", []),
        ("ORCHARD", "2026-01-01", [UNREAD]),
        ("ORCHARD", "2026-06-01", [UNREAD]),
        ("TREES", "2008-03-31", []),
        ("TREES", "2009-01-01", [UNREAD_EARLIER]),
        ("TREES", "2012-05-01", []),
    ],
)
async def test_answers_name_the_revisions_of_the_day_that_could_not_be_read(
    library: PolicyLibrary, source: str, day: str, expected: list[str]
) -> None:
    service = library.service
    check = await service.verify_quote(VerifyPolicyQuote(source=source, quote=QUOTE, date=day))
    assert list_ids(check) == expected
    hits = await service.search(SearchPolicy(query="cycle", sources=[source], effective_date=day))
    assert list_ids(hits) == expected
    snapshot = await service.get_snapshot(PolicySnapshot(date=day))
    assert [list_ids(entry) for entry in snapshot.policies if entry.source == source] == [expected]


async def test_a_search_without_a_day_names_those_of_today(library: PolicyLibrary) -> None:
    hits = await library.service.search(SearchPolicy(query="cycle parking"))
    assert [(one.source, one.revision_id) for one in hits.unread_revisions] == [("ORCHARD", UNREAD)]


async def test_a_comparison_names_those_of_either_day(library: PolicyLibrary) -> None:
    days = {"from_date": "2025-06-01", "to_date": "2026-06-01"}
    question = ComparePolicyRevisions(source="ORCHARD", **days)
    diff = await library.service.compare_revisions(question)
    assert diff.from_revision == diff.to_revision
    assert list_ids(diff) == [UNREAD]
    before = question.model_copy(update={"to_date": "2025-07-01"})
    assert list_ids(await library.service.compare_revisions(before)) == []
    too_early = ComparePolicyRevisions(source="TREES", from_date="2009-01-01", to_date="2013-01-01")
    with pytest.raises(RevisionNotFound, match=f"could not be read: {UNREAD_EARLIER}"):
        await library.service.compare_revisions(too_early)


# --- pages ---


async def show(library: PolicyLibrary, path: str, **parameters: str) -> RenderedPage:
    pages = make_pages(library.service, JobStore(library.folder))
    (page,) = (page for page in pages.pages if (page.path, page.method) == (path, "GET"))
    shown = await page.render(make_request(parameters))
    assert isinstance(shown, RenderedPage)
    return shown


def make_request(parameters: dict[str, str], is_sample: bool = False) -> PageRequest:
    call = ToolContext("1", "test", no_progress)
    return PageRequest(parameters, Visitor("reader", "reader"), call, is_sample)


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("/policies/check", {"source": "ORCHARD", "quote": QUOTE, "date": "{day}"}),
        ("/policies/{source}/compare", {"source": "ORCHARD", "from": "2025-06-01", "to": "{day}"}),
        ("/policies/{source}", {"source": "ORCHARD", "date": "{day}"}),
        ("/policies", {"date": "{day}"}),
    ],
)
async def test_a_page_cautions_where_an_older_revision_answers(
    library: PolicyLibrary, path: str, parameters: dict[str, str]
) -> None:
    for day, is_cautioned in (("2026-06-01", True), ("2025-12-31", False)):
        asked = {name: value.format(day=day) for name, value in parameters.items()}
        assert (CAUTION in (await show(library, path, **asked)).body) is is_cautioned


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("/policies/check", {"source": "TREES", "quote": QUOTE, "date": "2009-01-01"}),
        ("/policies/{source}", {"source": "TREES", "date": "2009-01-01"}),
        ("/policies", {"date": "2009-01-01"}),
    ],
)
async def test_a_page_cautions_where_no_revision_answers(
    library: PolicyLibrary, path: str, parameters: dict[str, str]
) -> None:
    assert EARLIER_CAUTION in (await show(library, path, **parameters)).body


@pytest.mark.parametrize(
    ("day", "expected"),
    [("2026-06-01", f"ORCHARD</a>: {CAUTION}"), ("2009-01-01", EARLIER_CAUTION)],
)
async def test_the_search_page_cautions(library: PolicyLibrary, day: str, expected: str) -> None:
    async with open_desk(library) as desk:
        pages = make_desk_pages(library, desk)
        shown = await pages.show_search(make_request({"q": "cycle parking", "date": day}))
    assert expected in shown.body


# --- the desk, sections and the shell ---


class OneApplication(SearchAdapter):
    """Documents that know one application and have no passage."""

    base_name = "documents"
    role = "application"

    async def search(self, request: SearchRequest, call: ToolContext) -> list[DeskHit]:
        return []

    async def find_application(self, application_ref: str) -> KnownApplication:
        return KnownApplication(validation_date="2026-02-01")


@asynccontextmanager
async def open_desk(library: PolicyLibrary) -> AsyncIterator[FederationService]:
    adapters: Any = {
        "policy": PolicyAdapter(library.service, PageLinks("")),
        "documents": OneApplication(),
    }
    # Long enough for a machine that does much else: a late base would be a note.
    service = FederationService(
        adapters, {"policy": "policy"}, EMBEDDER, FanOut(deadline_seconds=120)
    )
    async with service.run_inside():
        yield service


def make_desk_pages(library: PolicyLibrary, desk: FederationService) -> FederationPages:
    return FederationPages(desk, {"policy": make_pages(library.service, JobStore(library.folder))})


CALL = ToolContext("1", "test", no_progress)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ({"date": "2025-12-31"}, []),
        ({"date": "2026-06-01"}, [(UNREAD, OLDER)]),
        ({}, [(UNREAD, OLDER)]),
        ({"source": "TREES"}, []),
        ({"date": "2009-01-01"}, [(UNREAD_EARLIER, None)]),
        # Today, and the day that the query names.
        ({"query": "cycle parking in 2009"}, [(UNREAD_EARLIER, None), (UNREAD, OLDER)]),
    ],
)
async def test_a_search_at_the_desk_names_them_and_what_answers_instead(
    library: PolicyLibrary, question: dict[str, str], expected: list[tuple[str, str | None]]
) -> None:
    async with open_desk(library) as desk:
        answer = await desk.search(DeskSearch(**{"query": "cycle parking", **question}), CALL)
    found = [(one.revision_id, one.answered_by) for one in answer.unread_revisions]
    assert found == expected


async def test_an_application_is_set_beside_policy_with_the_caution(
    library: PolicyLibrary,
) -> None:
    question = AssessAgainstPolicy(application_ref="26/1", topic="cycle parking")
    async with open_desk(library) as desk:
        assert list_ids(await desk.assess_against_policy(question, CALL)) == [UNREAD]
        earlier = question.model_copy(update={"date": "2025-12-31"})
        assert list_ids(await desk.assess_against_policy(earlier, CALL)) == []
        request = make_request({"ref": "26/1", "topic": "cycle parking"})
        shown = await make_desk_pages(library, desk).show_assessment(request)
    assert f"ORCHARD</a>: {CAUTION}" in shown.body


@pytest.mark.parametrize(
    ("source", "chosen", "expected"),
    [
        ("ORCHARD", {}, [UNREAD]),
        ("ORCHARD", {"date": "2025-12-31"}, []),
        ("ORCHARD", {"date": "2026-01-01"}, [UNREAD]),
        ("ORCHARD", {"revision_id": OLDER}, [UNREAD]),
        ("TREES", {}, []),
    ],
)
async def test_a_section_names_what_would_have_replaced_it(
    library: PolicyLibrary, source: str, chosen: dict[str, str], expected: list[str]
) -> None:
    question = GetPolicySection(source=source, section_ref="Para 1", **chosen)
    section = await library.service.get_section(question)
    assert list_ids(section) == expected


async def test_a_passage_that_is_read_has_the_caution(library: PolicyLibrary) -> None:
    hits = await library.service.search(SearchPolicy(query="cycle parking", sources=["ORCHARD"]))
    section_id = f"policy:ORCHARD@{OLDER}#Para 1"
    async with open_desk(library) as desk:
        for record_id in (section_id, hits.results[0].id):
            record = await desk.fetch(DeskFetch(id=record_id), CALL)
            (unread,) = record.record["unread_revisions"]
            assert (unread["revision_id"], unread["answered_by"]) == (UNREAD, OLDER)
            pages = make_desk_pages(library, desk)
            assert CAUTION in (await pages.show_record(make_request({"id": record_id}))).body
        trees = await pages.show_record(
            make_request({"id": "policy:TREES@rev_TREES_2012_05#Para 1"})
        )
    assert "could not be read" not in trees.body


async def test_the_shell_prints_the_caution(
    library: PolicyLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, day = library.service, "2026-06-01"
    section = GetPolicySection(source="ORCHARD", section_ref="Para 1")
    days = {"from_date": "2025-06-01", "to_date": day}
    async with open_desk(library) as desk:
        desk_answer = await desk.search(DeskSearch(query="cycle"), CALL)
    answers: dict[tuple[str, ...], Answer] = {
        ("policy", "search", "cycle"): await service.search(SearchPolicy(query="cycle")),
        ("policy", "section", "ORCHARD", "Para 1"): await service.get_section(section),
        ("policy", "compare", "ORCHARD", "2025-06-01", day): await service.compare_revisions(
            ComparePolicyRevisions(source="ORCHARD", **days)
        ),
        ("policy", "verify", "ORCHARD", QUOTE, "--on", day): await service.verify_quote(
            VerifyPolicyQuote(source="ORCHARD", quote=QUOTE, date=day)
        ),
        ("policy", "snapshot", day): await service.get_snapshot(PolicySnapshot(date=day)),
        ("policy", "effective", day): await library.admin.list_effective(date(2026, 6, 1)),
        ("ask", "cycle"): desk_answer,
    }
    for arguments, answer in answers.items():
        for module in ("readingroom.bases.policy.cli", "readingroom.commands.ask"):
            monkeypatch.setattr(
                f"{module}.run_command", lambda *_, shown=answer: shown.model_dump(mode="json")
            )
        printed = invoke(*arguments, "--data", str(library.folder)).stdout
        assert f"(ORCHARD: {CAUTION})" in " ".join(printed.split()), arguments
