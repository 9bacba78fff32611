"""A page by its number, a section by heading or anchor, a search within it, and a quotation."""

from collections.abc import Iterator
from typing import Any

import pytest

from readingroom.bases.guidance.pages.page import GovukPage
from readingroom.bases.guidance.pages.sections import (
    find_quotation,
    find_section,
    list_sections,
    search_blocks,
    to_plain_text,
)
from readingroom.demo.govuk_search import ContentItem
from tests.support.govuk import Upstream, connect_client, run_emulator
from tests.support.kit import read_body

pytestmark = pytest.mark.anyio

CC3 = "/government/publications/the-essential-trustee-cc3"
COMMISSION = {
    "base_path": "/government/organisations/charity-commission",
    "title": "The Charity Commission",
}
BODY = """
<h2 id="duties">Your main duties</h2><p>Trustees must act in the charity’s best interests.</p>
<h3 id="reserves">Reserves</h3><p>Keep <strong>£5,000</strong><sup><a href="#fn:1">1</a></sup> or
more in <a href="/reserves">reserve</a>.</p><ul><li>review it – yearly</li></ul>
<h2 id="more">Reserves and more</h2><p>Other matters.</p>
<h2 id="duties-2">Your main duties</h2><p>The same heading again.</p>
"""


def make_page(path: str, title: str, html: str = BODY) -> ContentItem:
    return {
        "base_path": path,
        "title": title,
        "schema_name": "publication",
        "document_type": "guidance",
        "locale": "en",
        "description": "",
        "public_updated_at": "2026-01-01T00:00:00Z",
        "content_id": "11111111-1111-4111-8111-111111111111",
        "links": {"organisations": [COMMISSION]},
        "details": {"body": html},
    }


ITEMS = {
    CC3: make_page(CC3, "The essential trustee (CC3)"),
    f"{CC3}/html": make_page(f"{CC3}/html", "The essential trustee (CC3)"),
    "/guidance/cc30": make_page("/guidance/cc30", "Finding new trustees (CC30)"),
}


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with run_emulator(ITEMS) as running:
        yield running


async def call(upstream: Upstream, tool: str, **arguments: Any) -> Any:
    async with connect_client(upstream.url) as client:
        return read_body(await client.call_tool(tool, arguments))


@pytest.mark.parametrize("number", ["CC3", "cc3", " CC 3 ", "cc-3"])
@pytest.mark.parametrize("tool", ["get_content_by_path", "get_source_metadata", "force_refresh"])
async def test_a_publication_is_found_by_its_number(
    upstream: Upstream, tool: str, number: str
) -> None:
    assert (await call(upstream, tool, path=number))["url"] == f"https://www.gov.uk{CC3}"


async def test_a_number_that_nobody_has_is_told(upstream: Upstream) -> None:
    error = (await call(upstream, "get_content_by_path", path="CC99"))["error"]
    assert error["code"] == "NOT_FOUND_OR_REDIRECTED"
    assert "CC99" in error["message"]


@pytest.mark.parametrize("section", ["reserves", "#reserves", "Reserves", " reserves "])
async def test_a_section_is_read_by_heading_or_anchor(upstream: Upstream, section: str) -> None:
    page = await call(upstream, "get_content_by_path", path=CC3, text_only=True, section=section)
    assert page["section"] == {"heading": "Reserves", "anchor": "reserves"}
    assert page["text"].startswith("### Reserves")
    assert page["text"].endswith("- review it – yearly")
    assert page["text_chars"] == len(page["text"])


async def test_the_anchor_of_an_address_is_a_section_and_one_that_leads_nowhere_the_page(
    upstream: Upstream,
) -> None:
    address = f"https://www.gov.uk{CC3}"
    page = await call(upstream, "get_content_by_path", path=f"{address}#duties", text_only=True)
    assert page["text"].startswith("## Your main duties")
    assert "Other matters" not in page["text"]
    page = await call(upstream, "get_content_by_path", path=f"{address}#nowhere", text_only=True)
    assert page["section"] is None
    assert "Other matters" in page["text"]


async def test_a_section_that_is_not_there_is_told_with_those_that_are(upstream: Upstream) -> None:
    error = (await call(upstream, "get_content_by_path", path=CC3, section="fees"))["error"]
    assert error["code"] == "NOT_FOUND_OR_REDIRECTED"
    assert "reserves" in error["hint"]["sections"]


async def test_a_page_is_searched_and_its_best_passage_comes_first(upstream: Upstream) -> None:
    found = await call(upstream, "search_in_page", path="CC3", query="how much in reserve")
    best = found["passages"][0]
    assert "£5,000" in best["text"]
    assert best["section"]["anchor"] == "reserves"
    assert best["url"] == f"https://www.gov.uk{CC3}#reserves"
    page = await call(upstream, "get_content_by_path", path=CC3)
    assert page["text"][best["offset"] :].startswith(best["text"])


def test_the_words_of_a_heading_lead_to_the_first_block_below_it() -> None:
    text = "## Deadlines\n\nWithin ten months.\n\nNot later.\n\n## Fees\n\nThere are none."
    found = search_blocks(text, list_sections(text, ()), "deadline")
    assert [block.text for block in found] == ["Within ten months."]


@pytest.mark.parametrize(
    "quote",
    [
        "Keep £5,000 or more in reserve.",
        "trustees must act in the charity's  best interests",
        "review it - yearly",
    ],
)
async def test_a_quotation_that_stands_in_the_page_is_verified(
    upstream: Upstream, quote: str
) -> None:
    check = await call(upstream, "verify_guidance_quote", path=CC3, quote=quote)
    assert check["verdict"] == "verified"
    assert check["passage"]["section"]["anchor"] in ("duties", "reserves")
    assert check["nearest"] is None


@pytest.mark.parametrize(
    "quote", ["Keep £5,0001 or more", "000 or more in reserve", "must not act"]
)
async def test_a_quotation_that_does_not_is_told_with_the_nearest(
    upstream: Upstream, quote: str
) -> None:
    check = await call(upstream, "verify_guidance_quote", path=CC3, quote=quote)
    assert check["verdict"] == "not_found"
    assert check["passage"] is None
    assert 0 < check["similarity"] < 1


@pytest.mark.parametrize("query", ["", "   ", "\n\t"])
@pytest.mark.parametrize("tool", ["search_guidance", "search_in_page"])
async def test_a_blank_query_is_refused_like_an_empty_one(
    upstream: Upstream, tool: str, query: str
) -> None:
    path = {"path": CC3} if tool == "search_in_page" else {}
    upstream.emulator.seen_requests.clear()
    error = (await call(upstream, tool, query=query, **path))["error"]
    assert error["code"] == "INVALID_ARGUMENTS"
    assert upstream.emulator.seen_requests == []


@pytest.mark.parametrize("quote", ["   ", "..."])
async def test_a_quotation_without_a_word_is_refused(upstream: Upstream, quote: str) -> None:
    error = (await call(upstream, "verify_guidance_quote", path=CC3, quote=quote))["error"]
    assert error["code"] == "INVALID_ARGUMENTS"


def test_headings_alike_have_each_their_own_anchor_and_text() -> None:
    page = GovukPage(make_page(CC3, "Title"))
    sections = list_sections(page.text, page.anchors)
    first, second = (find_section(sections, name) for name in ("duties", "duties-2"))
    assert first
    assert second
    assert "best interests" in page.text[first.start_offset : first.end_offset]
    assert "heading again" in page.text[second.start_offset : second.end_offset]


def test_marks_of_markdown_are_no_words() -> None:
    text = "Over **£500,000**[^1] of [a link](https://x.example/y) and 20m^2^ \\[x]"
    assert to_plain_text(text) == "Over £500,000 of a link and 20m2 x"
    assert find_quotation(text, "500,000 of a link") is None
    assert find_quotation(text, "£500,000 of a link") == 5
