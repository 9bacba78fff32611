"""What pages say of a revision goes by today: in force, to come, no longer, or not adopted."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.policy.adapter import PolicyAdapter
from readingroom.bases.policy.admin_models import NewRevision
from readingroom.bases.policy.models import GetPolicySection, VerifyPolicyQuote
from readingroom.bases.policy.pages.policies import make_pages
from readingroom.core.progress import no_progress
from readingroom.federation.fan_out import FanOut
from readingroom.federation.pages import FederationPages
from readingroom.federation.service import FederationService
from readingroom.ingest.document import Document
from readingroom.ingest.errors import NoContent
from readingroom.protocol.pages import PageRequest, RenderedPage, Visitor
from readingroom.protocol.search import (
    DeskHit,
    DeskRecord,
    PageLinks,
    SearchAdapter,
    SearchRequest,
)
from readingroom.protocol.tool import ToolContext
from readingroom.storage.jobs.store import JobStore
from tests.support.model import WordEmbedder
from tests.support.policy.base import PLAIN, PlainPipeline, PolicyLibrary, open_library, plain

pytestmark = pytest.mark.anyio

NOW, NEXT = "rev_FUT_2020_01", "rev_FUT_2027_01"
PLANNED = "rev_PLAN_2026_03"
WORDS = "New homes are heated without fire."


class PagelessPipeline(PlainPipeline):
    """Reads plain texts, on whose pages no word can be found."""

    async def find_page_words(self, *_: object) -> Any:
        raise NoContent("A plain text has no pages")


OPTIONS = {**PLAIN, "pipeline": PagelessPipeline()}


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[PolicyLibrary]:
    """A policy with a revision to come, and a plan that is not adopted, in June 2026."""
    today = datetime(2026, 6, 1, 12, tzinfo=UTC)
    async with open_library(tmp_path / "policy", get_now=lambda: today, **OPTIONS) as library:
        await library.add("FUT")
        for label, start in (("Now", "2020-01-01"), ("Next", "2027-01-01")):
            text = f"Walls are of local stone, says {label}."
            await library.revise("FUT", label, start, content=plain(text))
        await library.add("PLAN")
        new_revision = NewRevision(
            version_label="Submission", effective_from=date(2026, 3, 2), stage="submitted"
        )
        file = library.spool(plain(WORDS))
        await library.admin.revise_policy("PLAN", new_revision, file, no_progress)
        yield library


async def show(library: PolicyLibrary, path: str, **parameters: str) -> str:
    pages = make_pages(library.service, JobStore(library.folder))
    (page,) = (page for page in pages.pages if (page.path, page.method) == (path, "GET"))
    shown = await page.render(make_request(parameters))
    assert isinstance(shown, RenderedPage)
    return " ".join(shown.body.split())


def make_request(parameters: dict[str, str]) -> PageRequest:
    call = ToolContext("1", "test", no_progress)
    return PageRequest(parameters, Visitor("reader", "reader"), call)


async def test_a_policy_names_what_each_revision_is_today(library: PolicyLibrary) -> None:
    body = await show(library, "/policies/{source}", source="FUT")
    assert '<span class="tag good">in force</span>' in body
    assert '<span class="tag ">to come</span>' in body
    assert 'class="span active"' in body and 'class="span coming"' in body
    assert "<td>no longer in force" not in body and "still in force" not in body
    assert "2027-01-01</td><td>until further notice</td><td>to come" in body


async def test_a_revision_to_come_says_so(library: PolicyLibrary) -> None:
    path = "/policies/{source}/{revision_id}"
    coming = await show(library, path, source="FUT", revision_id=NEXT)
    assert "Not in force yet. In force from 1 January 2027 until further notice." in coming
    assert '<span class="tag ">to come</span>' in coming
    current = await show(library, path, source="FUT", revision_id=NOW)
    assert '<span class="tag good">in force</span>' in current
    check = await show(library, "/policies/check", source="FUT", quote="local stone, says Next.")
    assert "<td>from 1 January 2027</td>" in check


@pytest.mark.parametrize("path", ["/policies", "/policies/{source}"])
async def test_a_plan_that_is_not_adopted_has_no_days(library: PolicyLibrary, path: str) -> None:
    body = await show(library, path, source="PLAN")
    assert "2026-03-02</td><td>in force on no day</td><td>not adopted" in body


async def test_its_text_is_shown_as_not_adopted(library: PolicyLibrary) -> None:
    section = GetPolicySection(source="PLAN", section_ref="Para 1", revision_id=PLANNED)
    assert (await library.service.get_section(section)).stage == "submitted"
    adapters: Any = {"policy": PolicyAdapter(library.service, PageLinks(""))}
    embedder: Any = WordEmbedder()
    desk = FederationService(adapters, {"policy": "policy"}, embedder, FanOut())
    pages = FederationPages(desk, {"policy": make_pages(library.service, JobStore(library.folder))})
    record = await pages.show_record(make_request({"id": f"policy:PLAN@{PLANNED}#Para 1"}))
    sheet = await show(
        library,
        "/policies/{source}/{revision_id}/pages/{page:page_number}",
        source="PLAN",
        revision_id=PLANNED,
        page="1",
    )
    for body in (record.body, sheet):
        assert "Not adopted yet (submitted): it is in force on no day." in body
        assert "PLAN (Submission, emerging: submitted)" in body
        assert "In force" not in body


async def test_its_words_are_found_and_said_to_be_in_force_on_no_day(
    library: PolicyLibrary,
) -> None:
    question = VerifyPolicyQuote(source="PLAN", quote=WORDS, date="2026-06-01")
    check = await library.service.verify_quote(question)
    (place,) = check.found
    assert (check.verdict, place.revision_id, place.stage) == (
        "wrong_revision",
        PLANNED,
        "submitted",
    )
    body = await show(library, "/policies/check", source="PLAN", quote=WORDS)
    assert "stand in a plan that is not adopted, so they are in force on no day." in body
    assert "<td>on no day: it is not adopted</td>" in body
    assert "it has no revision that is adopted and was read" in body
    assert "The words stand in 1 of 1 revision" in body


class FrontMatter(PlainPipeline):
    """Reads a text that has no section."""

    async def read_document(self, *arguments: Any, **options: Any) -> Document:
        document = await super().read_document(*arguments, **options)
        chunks = [replace(chunk, section_ref="", section_path=()) for chunk in document.chunks]
        return replace(document, chunks=tuple(chunks))


async def test_what_stands_before_the_first_section_is_linked_by_its_page(tmp_path: Path) -> None:
    options = {**PLAIN, "pipeline": FrontMatter()}
    async with open_library(tmp_path / "policy", **options) as library:
        await library.add("FRONT")
        for label, start in (("One", "2020-01-01"), ("Two", "2022-01-01")):
            await library.revise("FRONT", label, start, content=plain(f"So it was in {label}."))
        days = {"from": "2021-01-01", "to": "2023-01-01"}
        body = await show(library, "/policies/{source}/compare", source="FRONT", **days)
    for revision_id in ("rev_FRONT_2020_01", "rev_FRONT_2022_01"):
        assert f'href="/policies/FRONT/{revision_id}/pages/1">p. 1<' in body
    assert "/read?" not in body


async def test_an_application_beside_policy_names_what_was_not_asked_and_what_is_far(
    library: PolicyLibrary,
) -> None:
    class OneApplication(SearchAdapter):
        base_name = "documents"
        role = "application"

        async def search(self, request: SearchRequest, call: ToolContext) -> list[DeskHit]:
            return []

        async def fetch(self, id: str, offset: int, call: ToolContext) -> DeskRecord:
            raise NotImplementedError

    policies = PolicyAdapter(library.service, PageLinks(""))
    adapters: Any = {"policy": policies, "documents": OneApplication()}
    embedder: Any = WordEmbedder()
    desk = FederationService(adapters, {}, embedder, FanOut(deadline_seconds=120))
    asked = {"ref": "26/1", "topic": "qqqq", "date": "2026-06-01"}
    async with desk.run_inside():
        beside = (await FederationPages(desk, {}).show_assessment(make_request(asked))).body
    assert "PLAN</a>: it has no revision that is adopted and was read" in beside
    assert "Nothing here is close to the topic" in beside


async def test_the_data_of_a_search_have_what_was_not_asked(library: PolicyLibrary) -> None:
    adapters: Any = {"policy": PolicyAdapter(library.service, PageLinks(""))}
    embedder: Any = WordEmbedder()
    desk = FederationService(adapters, {}, embedder, FanOut(deadline_seconds=120))
    pages = {"policy": make_pages(library.service, JobStore(library.folder))}
    async with desk.run_inside():
        request = make_request({"q": "local stone", "date": "2026-06-01"})
        data = (await FederationPages(desk, pages).show_search(request)).data
    assert [unasked.title for unasked in data["not_asked"]] == ["PLAN"]
    assert data["total"] >= 1
