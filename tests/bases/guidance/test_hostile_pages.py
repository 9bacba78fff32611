"""What a hostile or broken upstream can put into a page: it costs little and leads nowhere else."""

import gc
import html
import itertools
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

import readingroom
from readingroom.bases.guidance.models import GetContentByPath, SearchGuidance
from readingroom.bases.guidance.pages.markdown import (
    CUT_NOTE,
    MAX_HTML_CHARS,
    MAX_MARKDOWN_CHARS,
    convert_to_markdown,
)
from readingroom.bases.guidance.pages.page import GovukPage
from readingroom.bases.guidance.pages.tables import MAX_EMPTY_CELLS
from readingroom.bases.guidance.pages.values import WEBSITE_URL
from tests.requirements import requirement
from tests.support.govuk import RETURN, Upstream, rigged

pytestmark = pytest.mark.anyio


def make_repeater(piece: str, before: str = "") -> Callable[[int], str]:
    return lambda chars: before + piece * (chars // len(piece))


HOSTILE = {
    "tags that never end": make_repeater("<a "),
    "comments that never end": make_repeater("<!--"),
    "end tags alone": make_repeater("</a "),
    "open quotes": make_repeater("x='y", "<a b='"),
    "attributes": lambda chars: "<a " + " ".join(f"a{n}=1" for n in range(chars // 9)) + ">",
    "nesting": make_repeater("<div>"),
    "formatting to repair": lambda chars: "".join(f"<p><b a={n}>" for n in range(chars // 15)),
    "lists in lists": make_repeater("<ul><li>a"),
    "quotations in quotations": make_repeater("<blockquote>a<br>"),
    "tables in cells": make_repeater("<table><tr><td>a"),
    "one wide row": lambda chars: (
        f"<table><tr>{'<td>' * (chars // 9)}</tr>{'<tr></tr>' * (chars // 18)}</table>"
    ),
    "many sparse tables": make_repeater(f"<table><tr>{'<td>' * 140}{'<tr>' * 140}</table>"),
}


@requirement("guidance:hostile")
@pytest.mark.parametrize("shape", HOSTILE)
def test_the_cost_of_a_hostile_page_grows_with_its_length_alone(shape: str) -> None:
    def measure(chars: int) -> float:
        html = HOSTILE[shape](chars)
        # The collector would also go through all objects of the other tests.
        gc.disable()
        try:
            started = time.thread_time()
            convert_to_markdown(html, WEBSITE_URL)
            return time.thread_time() - started
        finally:
            gc.enable()

    short = min(measure(50_000) for _ in range(3))
    # Eight times as long; quadratic cost would be 64 times as much.
    assert measure(400_000) < 30 * max(short, 0.01)


@requirement("guidance:hostile")
def test_a_short_page_does_not_become_a_table_of_a_gigabyte() -> None:
    html = f"<table><tr>{'<td>x</td>' * 9_000}</tr>{'<tr><td>y</td></tr>' * 9_000}</table>"
    tracemalloc.start()
    try:
        text = convert_to_markdown(html, WEBSITE_URL)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert text.count("x") == text.count("y") == 9_000
    assert len(text) < len(html)
    assert peak < 100_000_000


@requirement("guidance:hostile")
def test_a_ragged_table_stays_a_table_up_to_its_limit() -> None:
    head = "<tr><td>a</td><td>b</td></tr>"
    rows = "<tr><td>c</td></tr>"
    fits = convert_to_markdown(f"<table>{head}{rows * MAX_EMPTY_CELLS}</table>", WEBSITE_URL)
    over = convert_to_markdown(f"<table>{head}{rows * (MAX_EMPTY_CELLS + 1)}</table>", WEBSITE_URL)

    assert fits.startswith("| a | b |\n| --- | --- |\n| c |  |\n")
    assert over.startswith("a | b\n\nc\n\nc\n\n")


@requirement("guidance:hostile")
@pytest.mark.parametrize(
    ("html", "chars"),
    [
        ("<p>word</p>" * (MAX_HTML_CHARS // 10), MAX_HTML_CHARS),
        ("<blockquote>" * 30 + "a<br>" * (MAX_HTML_CHARS // 6), MAX_MARKDOWN_CHARS),
    ],
)
def test_a_page_that_is_too_long_is_cut_and_says_so_once(html: str, chars: int) -> None:
    parts = [{"title": "First", "body": html}, {"title": "Second", "body": html}]

    text = GovukPage({"title": "Long", "details": {"parts": parts}}).text

    assert text.startswith("# Long\n\n## First\n\n")
    assert text.count(CUT_NOTE) == 1
    assert len(text) < chars + 1000


@requirement("guidance:hostile")
async def test_parsed_pages_are_kept_by_what_they_weigh(upstream: Upstream) -> None:
    item = upstream.emulator.items_by_path[RETURN]
    paths = [f"/guidance/heavy-{number}" for number in range(30)]
    for path in paths:
        heavy = {"base_path": path, "description": path * (1_000_000 // len(path))}
        upstream.emulator.items_by_path[path] = {**item, **heavy}
    async with rigged(upstream.url) as rig:
        for path in paths:
            question = GetContentByPath(path=path, text_only=True, offset=0, max_chars=1)
            await rig.service.read_page(question, rig.context())
        gc.collect()
        alive = [page for page in gc.get_objects() if isinstance(page, GovukPage)]

        assert 0 < sum(page.path in paths for page in alive) < 12


@requirement("guidance:hostile")
def test_no_page_is_read_with_the_parser_of_the_standard_library() -> None:
    """Its cost is quadratic before Python 3.13.6 and its siblings (CVE-2025-6069)."""
    sources = Path(readingroom.__file__).parent.rglob("*.py")
    assert [path for path in sources if "html.parser" in _import_lines(path)] == []


def _import_lines(path: Path) -> str:
    lines = path.read_text("utf-8").splitlines()
    return "\n".join(line for line in lines if line.lstrip().startswith(("import ", "from ")))


NO_PATHS = ["@evil.example/x", ".evil.example", ":80@evil.example", "javascript:alert(1)", "evil"]


@requirement("guidance:hostile")
@pytest.mark.parametrize(
    "base_path", [*NO_PATHS, "//evil.example/x", "/a?b", "https://evil.example"]
)
async def test_a_page_is_cited_by_the_path_asked_for_when_its_own_is_none(
    upstream: Upstream, base_path: str
) -> None:
    item = upstream.emulator.items_by_path[RETURN]
    upstream.emulator.items_by_path[RETURN] = {**item, "base_path": base_path}
    async with rigged(upstream.url) as rig:
        question = GetContentByPath(path=RETURN, text_only=True, offset=0, max_chars=None)
        page = await rig.service.read_page(question, rig.context())

    assert (page.id, page.url) == (f"guidance:{RETURN}", WEBSITE_URL + RETURN)
    assert page.citation.endswith(f" {WEBSITE_URL}{RETURN}")


async def test_pages_of_one_body_are_each_cited_by_their_own_path(upstream: Upstream) -> None:
    other = "/guidance/another-page"
    twin = {**upstream.emulator.items_by_path[RETURN], "base_path": "no path"}
    upstream.emulator.items_by_path |= {RETURN: twin, other: twin}
    async with rigged(upstream.url) as rig:
        for path in (RETURN, other, RETURN):
            question = GetContentByPath(path=path, text_only=True, offset=0, max_chars=None)
            page = await rig.service.read_page(question, rig.context())
            assert (page.id, page.url) == (f"guidance:{path}", WEBSITE_URL + path)


@requirement("guidance:hostile")
@pytest.mark.parametrize("target", NO_PATHS)
async def test_what_leads_to_no_page_is_named_and_not_linked(
    upstream: Upstream, target: str
) -> None:
    linked = {"title": "A document", "base_path": target, "locale": "cy", "content_id": "1"}
    page = GovukPage(
        {
            "details": {
                "attachments": [{"title": "A file", "url": target}],
                "collection_groups": [{"title": "Group", "documents": ["1"]}],
            },
            "links": {"documents": [linked], "available_translations": [linked]},
        }
    )
    assert page.text == "## Group\n\n- A document\n\n## Attachments\n\n- A file"
    assert page.translations == []

    async def answer_with_target(request: Request, response: Response) -> Response:
        return JSONResponse({"total": 1, "results": [{"title": "A hit", "link": target}]})

    upstream.emulator.apply_fault = answer_with_target
    async with rigged(upstream.url) as rig:
        question = SearchGuidance(query="x", filters={}, page=1, page_size=10, order="relevance")
        assert (await rig.service.search(question, rig.context())).results == []


@requirement("guidance:hostile")
@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<a href='https://a.example/b'>x</a>", "[x](https://a.example/b)"),
        ("<a href='MAILTO:a@b.example'>x</a>", "[x](MAILTO:a@b.example)"),
        ("<a href='/b'>x</a>", f"[x]({WEBSITE_URL}/b)"),
        ("<a href='javascript:alert(1)'>x</a>", "x"),
        ("<a href=' java\nscript:alert(1)'>x</a>", "x"),
        ("<a href='data:text/html,x'>x</a>", "x"),
        ("<a href='file:///etc/passwd'>x</a>", "x"),
        ("<a href='vbscript:x'>x <b>y</b></a>", "x **y**"),
        ("<img src='javascript:alert(1)' alt='a plan'>", "a plan"),
        ("<img src='data:image/png;base64,AA==' alt='a plan'>", "a plan"),
    ],
)
def test_only_web_and_mail_links_become_links(html: str, markdown: str) -> None:
    assert convert_to_markdown(html, WEBSITE_URL) == markdown


SCRIPT = "javascript:alert(1)"
MARKDOWN_IN_TEXT = [
    f"[x]({SCRIPT})",
    f"![x]({SCRIPT})",
    f"[x][y] [y]: {SCRIPT}",
    f"<{SCRIPT}>",
    f"\\]({SCRIPT})",
    f"```\n[x]({SCRIPT})",
    f"`` [x]({SCRIPT}) ``",
    "<script>x</script>",
    "[",
    "\\",
]
PLACES = [
    "<p>{}</p>",
    "<pre>{}</pre>",
    "<code>{}</code>",
    "`<code>{}</code>`",
    "<a href='https://www.gov.uk/'>{}</a>",
    "<h2>{}</h2>",
    "<ul><li>{}</li></ul>",
    "<table><tr><td>{}</td></tr></table>",
    "<sup><a href='#note'>{}</a></sup>",
    "<a href='#note' class='footnote'>{}</a>",
    "<img src='https://www.gov.uk/a.png' alt='{}'>",
    "<a href='{}'>text</a>",
    "<p>[<b>x</b>{}</p>",
]


@requirement("guidance:hostile")
@pytest.mark.parametrize("place", PLACES)
def test_markdown_in_a_page_s_words_leads_nowhere(place: str) -> None:
    """Words of a page that look like Markdown must stay words once the page is Markdown."""
    parser = MarkdownIt("commonmark", {"html": True})
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    for first, second in itertools.product(MARKDOWN_IN_TEXT, ["", *MARKDOWN_IN_TEXT]):
        page = place.format(html.escape(first + second))
        for target in _list_targets(parser.parse(convert_to_markdown(page, WEBSITE_URL))):
            assert target.startswith(("http://", "https://", "mailto:", "tel:")), page


def _list_targets(tokens: list[Token]) -> Iterator[str]:
    """Where the links and images lead, and any HTML, which no page's words may become."""
    for token in tokens:
        if token.type in ("link_open", "image"):
            yield str(token.attrs.get("href") or token.attrs.get("src"))
        elif token.type in ("html_block", "html_inline"):
            yield token.content
        yield from _list_targets(token.children or [])
