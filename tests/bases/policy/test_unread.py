"""A revision that could not be read is in force on no day; what answers instead of it says so."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from readingroom.bases.policy.errors import RevisionNotFound
from readingroom.bases.policy.models import (
    ComparePolicyRevisions,
    IngestPolicyRevision,
    PolicySnapshot,
    SearchPolicy,
    VerifyPolicyQuote,
)
from readingroom.bases.policy.pages.policies import make_pages
from readingroom.core.progress import no_progress
from readingroom.federation.models import DeskAnswer
from readingroom.federation.pages import DeskPages
from readingroom.ingest.errors import NoContent
from readingroom.protocol.pages import PageRequest, RenderedPage, Visitor
from readingroom.protocol.tool import ToolCall
from readingroom.storage.jobs.store import JobStore
from tests.support.policy.base import PolicyLibrary, make_policy_pdf, open_library

pytestmark = pytest.mark.anyio

UNREAD, UNREAD_EARLIER = "rev_ORCHARD_2026_01", "rev_TREES_2008_04"
QUOTE = "Cycle parking follows the May 2025 standard."
CAUTION = "A revision from 1 January 2026 could not be read; this answer is from the one before it."
EARLIER_CAUTION = "A revision from 1 April 2008 could not be read; what it said is not known here."


@pytest.fixture(scope="module")
async def library(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PolicyLibrary]:
    """One policy whose newest revision failed, and one whose first did."""
    folder = tmp_path_factory.mktemp("unread") / "policy"
    async with open_library(folder, now=lambda: datetime(2026, 6, 1, 12, tzinfo=UTC)) as library:
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
    call = ToolCall("1", "test", no_progress)
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
    async def search(*_: object) -> DeskAnswer:
        return DeskAnswer(
            results=[],
            total=0,
            took_ms=1,
            searched=["policy"],
            notes=[],
            confidence="none",
            confidence_reason="",
        )

    desk: Any = SimpleNamespace(adapters=[SimpleNamespace(base="policy")], search=search)
    pages = make_pages(library.service, JobStore(library.folder))
    request = make_request({"q": "cycle parking", "date": day})
    shown = await DeskPages(desk, {"policy": pages}).show_search(request)
    assert expected in shown.body
