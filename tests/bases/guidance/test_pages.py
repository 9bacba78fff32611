"""Every real kind of page is read without loss; HTML of any kind becomes text."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from readingroom.bases.guidance.pages.markdown import convert_to_markdown
from readingroom.bases.guidance.pages.page import GovukPage
from readingroom.bases.guidance.pages.values import WEBSITE_URL
from readingroom.demo.govuk import make_sample_content_items
from tests.conftest import SHARED
from tests.requirements import requirement
from tests.support.govuk import Upstream, connect_client, run_emulator
from tests.support.kit import read_body, run

pytestmark = pytest.mark.anyio

EXAMPLES = SHARED / "guidance" / "examples"
COMMISSION = "/government/organisations/charity-commission"
REAL = sorted(EXAMPLES.glob("*/frontend/*.json"))


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<p>One</p><p>Two</p>", "One\n\nTwo"),
        ("<h2 id='x'>Title <b>bold</b></h2>", "## Title **bold**"),
        ("<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>", "- a\n- b\n  - c"),
        ("<ol><li><p>a</p></li><li><p>b</p><p>c</p></li></ol>", "1. a\n2. b\n   c"),
        (
            "<p>a <a href='/x'>link</a>, <em>and</em> more</p>",
            f"a [link]({WEBSITE_URL}/x), *and* more",
        ),
        ("<p>see<sup><a href='#fn:1'>1</a></sup></p>", "see[^1]"),
        ("<p>a<br>b</p>", "a\nb"),
        ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b"),
        (
            "<table><tr><th>h|1</th><th>h2</th></tr><tr><td>a</td></tr></table>",
            "| h\\|1 | h2 |\n| --- | --- |\n| a |  |",
        ),
        ("<table><caption>c</caption>x<td>a</td></table>", "c\n\nx\n\n| a |\n| --- |"),
        ("<p>a &amp; b &lt;c&gt; &nbsp;d</p>", "a & b \\<c> d"),
        ("<script>evil()</script><style>p{}</style><p>a</p>", "a"),
        ("<img src='/i.png' alt='Alt'>", f"![Alt]({WEBSITE_URL}/i.png)"),
        ("<pre>a\n  b</pre>", "```\na\n  b\n```"),
        ("<div><div>a</div>b<p>c</div>d", "a\n\nb\n\nc\n\nd"),
        ("<li>a<li>b", "a\n\nb"),
        ("</p></div>text</ul>", "text"),
        ("<a href='http://[broken'>x</a>", "x"),
        ("", ""),
    ],
)
def test_html_becomes_markdown(html: str, markdown: str) -> None:
    assert convert_to_markdown(html, WEBSITE_URL) == markdown


def test_html_nested_without_end_is_no_reason_to_fall_over() -> None:
    assert convert_to_markdown("<div>" * 100_000 + "deep", WEBSITE_URL) == "deep"
    assert "deep" in convert_to_markdown("<b><ul><li>" * 20_000 + "deep", WEBSITE_URL)


class Words(HTMLParser):
    """The words of a page as another reader sees them: the standard library's, without our tree."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._hidden += tag in ("script", "style", "svg")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style", "svg")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.found += re.findall(r"\w+", data)


def split_words(html: str) -> list[str]:
    reader = Words()
    reader.feed(html)
    reader.close()
    return reader.found


def is_within(words: list[str], text: str) -> bool:
    """Whether the words come in the text, in their order."""
    left = iter(re.findall(r"\w+", text))
    whole = "".join(left)
    at = 0
    for word in words:
        at = whole.find(word, at)
        if at < 0:
            return False
        at += len(word)
    return True


TAGS = ("p", "div", "ul", "ol", "li", "b", "a", "table", "tr", "td", "h2", "blockquote", "br", "x")
MARKUP = st.lists(
    st.one_of(
        st.sampled_from([f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS]),
        st.text("abc é&;<>\n|*", max_size=8),
    ),
    max_size=30,
).map("".join)


@requirement("guidance:readonly")
@settings(deadline=None)
@given(MARKUP)
def test_no_word_is_lost_whatever_the_markup(html: str) -> None:
    # A tag that never ends is no text; the standard library's reader takes its name for a word.
    ended = re.sub(r"<[A-Za-z/][^>]*\Z", "", html)
    assert is_within(split_words(ended), convert_to_markdown(html, WEBSITE_URL))


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_at_all_can_be_read(html: str) -> None:
    convert_to_markdown(html, WEBSITE_URL)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
NAMES = ["title", "base_path", "links", "details", "withdrawn_notice", "locale", "description"]
DETAILS = ["body", "parts", "collection_groups", "documents", "attachments"]


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(NAMES), JUNK),
    st.dictionaries(st.sampled_from(DETAILS), JUNK),
)
def test_a_page_of_any_shape_is_read_without_a_fault(
    content: dict[str, Any], details: dict[str, Any]
) -> None:
    page = GovukPage({"details": details, **content})
    assert isinstance(page.text, str)
    assert page.is_in_scope is False
    assert isinstance(page.citation, str)
    assert page.translations == [] or page.identifiers


# --- the sample, in real shapes ---


def test_the_sample_has_about_thirty_pages_of_every_kind() -> None:
    items = make_sample_content_items()
    kinds = {item["schema_name"] for item in items.values()}
    assert 28 <= len(items) <= 40
    assert kinds >= {
        "detailed_guide",
        "publication",
        "html_publication",
        "guide",
        "document_collection",
        "answer",
        "news_article",
        "redirect",
        "gone",
    }
    assert any(item.get("withdrawn_notice") for item in items.values())
    assert any(item["locale"] == "cy" for item in items.values())


# --- the real pages ---


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with run_emulator({}) as running:
        yield running


@pytest.mark.data
@requirement("guidance:scope", "guidance:readonly", "guidance:fidelity")
async def test_every_real_item_is_read_or_refused_as_it_should(upstream: Upstream) -> None:
    assert len(REAL) > 200
    outcomes: dict[str, int] = {}
    async with connect_client(upstream.url) as client:
        for file in REAL:
            item = json.loads(file.read_text("utf-8"))
            upstream.emulator.items_by_path = {item["base_path"]: item}
            await client.call_tool("force_refresh", {"path": item["base_path"]})
            result = await client.call_tool("get_content_by_path", {"path": item["base_path"]})
            expected = _expected(item)
            told = read_body(result)
            assert result.is_error is (expected != "ok"), file
            if result.is_error:
                assert told["error"]["code"] == expected, file
            else:
                assert told["content"] == item
                assert told["public_updated_at"] == item["public_updated_at"]
            outcomes[expected] = outcomes.get(expected, 0) + 1
    assert outcomes["ok"] == 3
    assert outcomes["NOT_FOUND_OR_REDIRECTED"] == 3
    assert outcomes["CONTENT_OUT_OF_SCOPE"] > 200


def _expected(item: dict[str, Any]) -> str:
    if item["schema_name"] in ("redirect", "gone"):
        return "NOT_FOUND_OR_REDIRECTED"
    publishers = item.get("links", {}).get("organisations", [])
    ours = any(one["base_path"] == COMMISSION for one in [item, *publishers])
    return "ok" if ours else "CONTENT_OUT_OF_SCOPE"


@pytest.mark.data
@requirement("guidance:readonly")
async def test_every_real_item_would_be_read_whole_were_it_the_commissions(
    upstream: Upstream,
) -> None:
    """The same pages, published by the Commission: text from body, parts and collections."""
    read = 0
    async with connect_client(upstream.url) as client:
        for file in REAL:
            item = json.loads(file.read_text("utf-8"))
            if item["schema_name"] in ("redirect", "gone"):
                continue
            item.setdefault("links", {})["organisations"] = [{"base_path": COMMISSION}]
            upstream.emulator.items_by_path = {item["base_path"]: item}
            await client.call_tool("force_refresh", {"path": item["base_path"]})
            told = read_body(
                await client.call_tool("get_content_by_path", {"path": item["base_path"]})
            )
            assert told["content"] == item, file
            for html in _prose(item["details"]):
                assert is_within(split_words(html), told["text"]), file
                read += 1
    assert read > 180


def _prose(details: dict[str, Any]) -> Iterator[str]:
    """Body, parts and collection groups, found without the code that is tested."""
    bodies = [details.get("body")]
    bodies += [part.get("body") for part in details.get("parts", [])]
    bodies += [group.get("body") for group in details.get("collection_groups", [])]
    for found in bodies:
        if isinstance(found, list):
            found = next(one["content"] for one in found if one["content_type"] == "text/html")
        if found:
            yield found


@pytest.mark.data
def test_a_collection_names_its_members() -> None:
    named = 0
    for file in (EXAMPLES / "document_collection" / "frontend").glob("*.json"):
        item = json.loads(file.read_text("utf-8"))
        text = GovukPage(item).text
        members = {
            id for group in item["details"]["collection_groups"] for id in group["documents"]
        }
        for document in item["links"].get("documents", []):
            if document["content_id"] in members:
                assert document["title"] in text
                named += 1
    assert named > 50


@pytest.mark.data
def test_the_emulator_serves_the_real_items_as_a_program_of_its_own() -> None:
    program = [sys.executable, "-m", "readingroom.demo.govuk", "--port", "0", "--items", EXAMPLES]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = process.stdout.readline().strip().removeprefix("GOVUK_BASE_URL=")
        page = run("guidance", "get", COMMISSION, "--json", env={"GOVUK_BASE_URL": url}, anew=True)
        process.terminate()
    assert json.loads(page.stdout)["title"] == "The Charity Commission"


@pytest.mark.data
def test_the_sample_pages_have_the_shapes_that_govuk_gives_its_own() -> None:
    checked = 0
    for item in make_sample_content_items().values():
        schema = SHARED / "guidance" / "schemas" / f"{item['schema_name']}.frontend.schema.json"
        if not schema.exists():
            continue
        problems = Draft4Validator(json.loads(schema.read_text("utf-8"))).iter_errors(item)
        assert [problem.message[:300] for problem in problems] == [], item["base_path"]
        checked += 1
    assert checked >= 25
