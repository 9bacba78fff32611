"""Forms of policies that were opened at once undo nothing of each other; links lead somewhere."""

from pathlib import Path

import pytest

from readingroom.bases.policy.admin_models import NewPolicy
from readingroom.bases.policy.pages.policies import make_pages
from readingroom.core.errors import InvalidArguments, RecordChanged
from readingroom.core.ids import make_request_id
from readingroom.core.progress import no_progress
from readingroom.protocol.pages import PageRequest, RenderedPage, Visitor
from readingroom.protocol.tool import ToolContext
from readingroom.storage.jobs.store import JobStore
from tests.requirements import requirement
from tests.support.forms import read_form
from tests.support.model import EMBEDDER
from tests.support.papers import make_paper
from tests.support.policy.base import PLAIN, open_library

pytestmark = [pytest.mark.anyio, requirement("room:console")]

CALL = ToolContext(make_request_id(), "test", no_progress)


def make_request(**parameters: str) -> PageRequest:
    return PageRequest({"source": "TOWN_PLAN", **parameters}, Visitor("emil", "editor"), CALL)


async def test_a_policy_keeps_what_others_saved_in_another_field(tmp_path: Path) -> None:
    async with open_library(tmp_path, **PLAIN) as library:
        await library.admin.create_policy(
            NewPolicy(source="TOWN_PLAN", title="Town Plan", category="local_plan")  # type: ignore[arg-type]
        )
        pages = make_pages(library.service, JobStore(tmp_path)).pages
        renders = {(page.method, page.path): page.render for page in pages}
        change = renders["POST", "/policies/{source}/change"]
        forms = []
        for _ in range(2):
            shown = await renders["GET", "/policies/{source}"](make_request())
            assert isinstance(shown, RenderedPage)
            forms.append(read_form(shown.body, "/policies/TOWN_PLAN/change"))
        first, second = forms

        await change(make_request(**{**first, "area": "the town", "title": "The Town Plan"}))
        await change(make_request(**{**second, "description": "Where homes go."}))
        with pytest.raises(RecordChanged, match="The Town Plan"):
            await change(make_request(**{**second, "title": "Plan of the Town"}))
        with pytest.raises(InvalidArguments, match="needs a title"):
            await change(make_request(**{**second, "shown_title": "The Town Plan", "title": ""}))

        policy = await library.admin.get_policy("TOWN_PLAN")
        assert (policy.area, policy.title) == ("the town", "The Town Plan")
        assert (policy.description, policy.category) == ("Where homes go.", "local_plan")


async def test_a_comparison_links_words_before_the_first_section_to_their_page(
    tmp_path: Path,
) -> None:
    async with open_library(tmp_path, embedder=EMBEDDER) as library:
        await library.add("TOWN_PLAN")
        for label, start in (("Spring", "2024-03-01"), ("Winter", "2024-12-12")):
            file = make_paper(f"{label} edition of the plan.\n1. Homes are built near stations.")
            await library.revise("TOWN_PLAN", label, start, content=file)
        pages = make_pages(library.service, JobStore(tmp_path)).pages
        (compare,) = (page for page in pages if page.path == "/policies/{source}/compare")
        days = {"from": "2024-04-01", "to": "2025-01-01"}
        shown = await compare.render(make_request(**days))

    assert isinstance(shown, RenderedPage) and "Before the first section" in shown.body
    for revision_id in ("rev_TOWN_PLAN_2024_03", "rev_TOWN_PLAN_2024_12"):
        assert f'href="/policies/TOWN_PLAN/{revision_id}/pages/1"' in shown.body
