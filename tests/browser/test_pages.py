"""Every page of the console, as a person meets it: readable, reachable, self-contained."""

import hashlib
import html
import re
from collections.abc import AsyncIterator, Sequence
from itertools import product
from pathlib import Path

import httpx2
import pypdfium2
import pytest
from playwright.async_api import Browser
from starlette.routing import Route

from readingroom.bases import BASES, open_bases
from readingroom.federation.room import make_federated_base
from readingroom.protocol.pages import RenderedPage
from readingroom.server.app import build_app
from readingroom.server.auth.bearer import KeyAuth
from readingroom.server.auth.policies import AuthPolicies
from readingroom.server.faces import make_faces
from readingroom.server.pages.frame import PAGE_CONTENT_SECURITY_POLICY
from readingroom.settings import load_settings
from readingroom.storage.jobs.store import JobStore
from readingroom.storage.keys import KeyRing
from readingroom.storage.postgres.state import open_grant_store
from readingroom.web.assets import load_assets
from readingroom.web.templates import render_template
from tests.requirements import requirement
from tests.support.browser import (
    NODE_MODULES,
    SCHEMES,
    WIDTHS,
    Watched,
    open_page,
    read_package_version,
)
from tests.support.kit import HANG_SECONDS, Served
from tests.support.processes import wait_until

pytestmark = pytest.mark.anyio

ASSETS = Path(__file__).parents[2] / "src" / "readingroom" / "web" / "assets"
NPPF_CHAPTER = "/read?id=policy:NPPF@rev_NPPF_2024_12%23Chapter%209"
BIG_VOTE = "/records/view?id=house:117:1:9802"
REVISION = "/policies/NPPF/rev_NPPF_2024_12"
# Each page of the app by its route, as people meet it; `{document}` and `{job}` are of the sample.
PAGES_BY_ROUTE: dict[str, list[str]] = {
    "/": ["/"],
    "/search": [
        "/search",
        "/search?q=cycle+parking+for+new+homes&date=2025-04-14",
        "/search?q=zxqv+nothing+here&base=text",
    ],
    "/read": [NPPF_CHAPTER, "/read?id=text:kb", "/read?id=policy:nothing", "/there-is-nothing"],
    "/applications": ["/applications"],
    "/applications/view": ["/applications/view?ref=25/01178/REM"],
    "/applications/beside": ["/applications/beside?ref=25/01178/REM&topic=cycle+parking"],
    "/documents/{document_id}/remove": ["/documents/{document}/remove"],
    "/documents/{document_id}/pages/{page:page_number}": ["/documents/{document}/pages/1"],
    "/jobs/{job_id}": ["/jobs/{job}"],
    "/policies": ["/policies?date=2025-03-15"],
    "/policies/check": [
        "/policies/check",
        "/policies/check?source=NPPF&quote=Development+is+refused&date=2025-03-15",
    ],
    "/policies/{source}": ["/policies/NPPF", "/policies/SAMPLE_TREE_STRATEGY"],
    "/policies/{source}/compare": [
        "/policies/NPPF/compare?from=2024-03-01&to=2025-03-01&section=Chapter+9"
    ],
    "/policies/{source}/{revision_id}": [
        REVISION,
        "/policies/SAMPLE_LOCAL_PLAN_2042/rev_SAMPLE_LOCAL_PLAN_2042_2026_03",
    ],
    "/policies/{source}/{revision_id}/history": [f"{REVISION}/history?section=Para+116"],
    "/policies/{source}/{revision_id}/remove": ["/policies/NPPF/rev_NPPF_2023_09/remove"],
    "/policies/{source}/{revision_id}/pages/{page:page_number}": [
        f"{REVISION}/pages/2?quote=Transport+is+considered+from+the+first+sketch"
    ],
    "/policies/{source}/remove": ["/policies/NPPF/remove"],
    "/records": ["/records"],
    "/records/{source}": ["/records/bills?by=party"],
    "/records/{source}/series": ["/records/bills/series?interval=quarter&group_by=party"],
    "/records/view": [
        "/records/view?id=hr:119:99001",
        "/records/view?id=hr:117:95002",
        "/records/view?id=senate:119:2:9902",
        BIG_VOTE,
        "/records/view?id=E990004",
    ],
    "/records/text": [
        "/records/text?id=hr:117:95002",
        "/records/text?id=hr:117:95002&version=enr&compare_with=eh",
    ],
    "/records/links": ["/records/links?id=hr:119:99001"],
    "/guidance": ["/guidance?since=2024-01-01", "/guidance?q=annual+return"],
    "/guidance/copies": ["/guidance/copies"],
    "/operations": ["/operations"],
    "/operations/jobs": ["/operations/jobs"],
    "/operations/errors": ["/operations/errors"],
    "/operations/keys": ["/operations/keys"],
    "/connect": ["/connect"],
    "/mcp": ["/mcp"],
    "/docs": ["/docs"],
}
PAGES = [path for paths in PAGES_BY_ROUTE.values() for path in paths]
# They take a key, which the sample has not: `test_sign_in.py` and `test_consent.py` open them.
KEYED_PAGES = {"/sign-in", "/authorize/consent", "/operations/keys/revoke"}
# What browsers get at these is no page, or the page of `/mcp` for another face.
NO_PAGES = re.compile(
    r"/(assets|\.well-known)/.*|.*\.webp|.*/file|/\w+/(mcp|sse|messages/)|/server\.json|/llms\.txt"
    r"|/(authorize|token|register|revoke)|/(health|ready|metrics)"
)
SHAPES = list(product(SCHEMES, WIDTHS))
MAX_BYTES = 60_000
MAX_BYTES_WITH_PICTURE = 150_000
MAX_BYTES_AGAIN = 20_000  # of a second visit, when the style and the scripts are kept
MAX_REQUESTS = 4  # the page, its style, its two scripts; a picture is one more
ZOOMED_WIDTH = 320  # 1280 px at 400 %


def test_every_page_of_the_app_is_among_those_that_are_looked_at(tmp_path: Path) -> None:
    settings = load_settings({"data": tmp_path / "data", "connectors": True}, {})
    bases = open_bases(sorted(BASES), settings)
    faces = make_faces(bases, make_federated_base(bases, settings, "http://127.0.0.1:8000"))
    grants = open_grant_store(settings)
    policies = AuthPolicies(faces, settings, KeyAuth(None, KeyRing(settings.data), grants))
    app = build_app(faces, settings, policies)
    routes = [route for route in app.routes if isinstance(route, Route)]
    paths = {route.path for route in routes if "GET" in (route.methods or {"GET"})}
    pages = {path for path in paths if not NO_PAGES.fullmatch(path)}
    # FastAPI adds `/docs`, which is the page of all of REST.
    assert pages | {"/docs"} == set(PAGES_BY_ROUTE) | KEYED_PAGES


@pytest.fixture(scope="module")
def sample_ids(sample_room: Served) -> dict[str, str]:
    """What stands for `{document}` and `{job}` in the addresses above."""
    overview = sample_room.get("/applications/view?ref=25/01178/REM&format=json").json()
    page = sample_room.get("/operations", Accept="text/html").text
    (token,) = re.findall(r'name="form_token" value="([^"]+)"', page)[:1]
    begun = httpx2.post(
        sample_room.url + "/operations/doctor",
        data={"form_token": token},
        headers={"Origin": sample_room.url},
        timeout=HANG_SECONDS,
        trust_env=False,
    )
    job_id = begun.headers["location"].rpartition("/")[2]
    wait_until(lambda: JobStore(sample_room.data).get_job(job_id).has_ended)
    return {"document": overview["types"][0]["documents"][0]["document_id"], "job": job_id}


@pytest.fixture(scope="module")
async def window(browser: Browser, sample_room: Served) -> AsyncIterator[Watched]:
    """One window in which page after page is opened."""
    async with open_page(browser, sample_room.url) as watched:
        yield watched


async def look_at(watched: Watched, path: str, shapes: Sequence[tuple[str, int]]) -> None:
    """Open a page, and look at it in light or dark and in windows of different widths."""
    expected = 404 if path.endswith("nothing") else 200
    await watched.forget()
    assert await watched.open(path) == expected
    # Chromium itself says so of a page that is not there.
    messages = [text for text in watched.messages if expected == 200 or "404" not in text]
    assert (messages, watched.foreign) == ([], [])
    pictures = [url for url in watched.requests if url.endswith(".webp")]
    is_redirected = path.endswith("/pages/1")
    most = MAX_REQUESTS + len(pictures) + is_redirected
    assert len(watched.requests) <= most, watched.requests
    # Of the window; a long table that is painted while it arrives settles its columns.
    assert await watched.measure_shift() < 0.01
    for scheme, width in shapes:
        await watched.show_as(scheme, width)
        assert await watched.measure_overflow() <= 0, width
        assert await watched.list_violations() == [], (scheme, width)
    for width in (*WIDTHS, ZOOMED_WIDTH):
        await watched.show_as("light", width)
        assert await watched.measure_overflow() <= 0, width
    await watched.page.emulate_media(media="print")
    assert await watched.page.evaluate(LIST_PRINTED_CONTROLS) == []


LIST_PRINTED_CONTROLS = """() => [...document.querySelectorAll(
  "body > header, body > footer, nav, form, input, button"
)].filter(element => element.checkVisibility()).map(element => element.outerHTML.slice(0, 200))"""


@requirement("room:console")
@pytest.mark.parametrize("path", PAGES)
async def test_every_page_is_accessible_and_asks_nobody_else(
    window: Watched, sample_ids: dict[str, str], path: str
) -> None:
    # Each page in one shape, all shapes in turn; `make test-all` looks at every page in each.
    shape = SHAPES[PAGES.index(path) % len(SHAPES)]
    await look_at(window, path.format(**sample_ids), [shape])


@pytest.mark.full
@requirement("room:console")
@pytest.mark.parametrize("path", PAGES)
async def test_every_page_is_accessible_in_light_and_dark_wide_and_narrow(
    browser: Browser, sample_room: Served, sample_ids: dict[str, str], path: str
) -> None:
    async with open_page(browser, sample_room.url) as watched:
        await look_at(watched, path.format(**sample_ids), SHAPES)


@requirement("room:console")
def test_every_page_is_small_and_carries_the_headers_of_a_page(
    sample_room: Served, sample_ids: dict[str, str]
) -> None:
    assets = sum(len(asset.compressed_content) for asset in load_assets().values())
    for path in PAGES:
        response = httpx2.get(
            sample_room.url + path.format(**sample_ids),
            headers={"Accept": "text/html", "Accept-Encoding": "gzip"},
            timeout=HANG_SECONDS,
            follow_redirects=True,
            trust_env=False,
        )
        assert response.headers["content-security-policy"] == PAGE_CONTENT_SECURITY_POLICY, path
        assert response.headers["cache-control"] == "no-store", path
        assert response.headers["referrer-policy"] == "same-origin", path
        assert response.headers["cross-origin-opener-policy"] == "same-origin", path
        assert response.headers["x-content-type-options"] == "nosniff", path
        assert response.headers["content-encoding"] == "gzip", path
        assert "This page does not use" not in response.text, path
        page_bytes = int(response.headers["content-length"])
        assert page_bytes <= MAX_BYTES_AGAIN, (path, page_bytes)
        pictures = re.findall(r'src="([^"]+\.webp)"', response.text)
        picture_bytes = sum(len(sample_room.get(address).content) for address in pictures)
        most = MAX_BYTES_WITH_PICTURE if pictures else MAX_BYTES
        assert page_bytes + assets + picture_bytes <= most, (path, page_bytes, picture_bytes)


@requirement("room:console")
async def test_without_script_a_search_ends_the_same(browser: Browser, sample_room: Served) -> None:
    found = []
    for has_script in (True, False):
        async with open_page(browser, sample_room.url, java_script_enabled=has_script) as watched:
            await watched.open("/")
            await watched.page.get_by_label("Search everything here").fill("cycle parking")
            await watched.page.get_by_role("button", name="Search").click()
            await watched.page.wait_for_url("**/search?*")
            found.append(await watched.page.locator(".hits h2").all_inner_texts())
    assert found[0] == found[1] != []


@requirement("room:console")
async def test_the_keyboard_finds_the_skip_link_first_and_the_slash_the_search_box(
    browser: Browser, sample_room: Served
) -> None:
    async with open_page(browser, sample_room.url) as watched:
        await watched.open("/search")
        await watched.page.keyboard.press("Tab")
        assert await watched.page.evaluate("document.activeElement.className") == "skip"
        await watched.page.keyboard.press("/")
        assert await watched.page.evaluate("document.activeElement.id") == "q"


@requirement("room:console")
@pytest.mark.parametrize("path", ["/policies/NPPF", "/search?q=cycle+parking&base=policy"])
async def test_the_keyboard_reaches_everything_in_the_order_it_is_read(
    browser: Browser, sample_room: Served, path: str
) -> None:
    async with open_page(browser, sample_room.url) as watched:
        await watched.open(path)
        reachable = await watched.page.evaluate(LIST_REACHABLE)
        reached = []
        for _ in reachable:
            await watched.page.keyboard.press("Tab")
            place, has_outline, element = await watched.page.evaluate(DESCRIBE_FOCUS)
            assert has_outline, element
            reached.append(place)
        # A date has several parts, each of which is a stop of its own.
        in_order = list(dict.fromkeys(reached))
        assert in_order == reachable[: len(in_order)] and len(in_order) > 15


LIST_REACHABLE = """() => {
  window.focusable = [...document.querySelectorAll(
    "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']"
  )].filter(element => element.checkVisibility());
  return window.focusable.map((_, place) => place);
}"""
DESCRIBE_FOCUS = """() => {
  const focused = document.activeElement;
  const shape = focused.querySelector("rect");
  const look = getComputedStyle(focused), inside = shape && getComputedStyle(shape);
  const marked = look.outlineStyle !== "none" || (inside && inside.strokeWidth === "3px");
  return [window.focusable.indexOf(focused), Boolean(marked), focused.outerHTML.slice(0, 200)];
}"""


@requirement("room:console")
async def test_a_record_prints_its_citation_without_menu_or_forms(
    browser: Browser, sample_room: Served
) -> None:
    async with open_page(browser, sample_room.url) as watched:
        await watched.open(NPPF_CHAPTER)
        await watched.page.emulate_media(media="print")
        for hidden in ("body > header", "body > footer", "nav"):
            for element in await watched.page.locator(hidden).all():
                assert not await element.is_visible(), hidden
        pdf = await watched.page.pdf(format="A4")
    # Small letters are set so tight that spaces between words are lost.
    sheets = ["".join(sheet.split()) for sheet in read_sheets(pdf)]
    assert len(sheets) >= 2
    for sheet in sheets:
        assert "NPPF(December2024),Chapter9:Promotingsustainabletransport,p.2–3" in sheet
        assert "Inforcesince12December2024" in sheet
        assert "Applications" not in sheet and "Signout" not in sheet
    for start, end in (("109.Transport", "shapeaplace."), ("116.Development", "hasbeentested.")):
        (sheet,) = [sheet for sheet in sheets if start in sheet]
        assert end in sheet, "a paragraph is broken across sheets"


@requirement("room:console")
async def test_on_every_sheet_the_citation_stands_below_the_rows(browser: Browser) -> None:
    values = {"menu": [], "visitor": None, "is_sample": False, "path": "/", "json_address": None}
    values |= {"is_open": False, "unused_names": ()}
    rows = "<tr><td>x</td><td class='no-print'>Q</td></tr>" * 90
    page_html = render_template(
        "frame.html", page=RenderedPage("Z", f"<table>{rows}</table>"), **values
    )
    page = await browser.new_page()
    try:
        await page.set_content(page_html)
        await page.add_style_tag(content=(ASSETS / "site.css").read_text("utf-8"))
        sheets = pypdfium2.PdfDocument(await page.pdf(format="A4", prefer_css_page_size=True))
    finally:
        await page.close()
    try:
        assert len(sheets) > 2
        for sheet in sheets:
            letters = sheet.get_textpage()
            bottoms: dict[str, list[float]] = {"Z": [], "x": [], "Q": []}
            for index in range(letters.count_chars()):
                letter = letters.get_text_range(index, 1)
                bottoms.setdefault(letter, []).append(letters.get_charbox(index)[1])
            (citation_bottom,) = bottoms["Z"]
            assert citation_bottom < min(bottoms["x"])
            assert bottoms["Q"] == [], "what can be changed is no matter for paper"
    finally:
        sheets.close()


def read_sheets(pdf: bytes) -> list[str]:
    """The words of each page of a PDF."""
    document = pypdfium2.PdfDocument(pdf)
    try:
        return [page.get_textpage().get_text_bounded() for page in document]
    finally:
        document.close()


QUOTED_WORDS = "quote=Transport+is+considered+from+the+first+sketch"


@requirement("room:console")
@pytest.mark.parametrize(
    "path",
    [
        f"{REVISION}/pages/2?{QUOTED_WORDS}",
        NPPF_CHAPTER,
        "/records/view?id=hr:119:99001",
        "/records/view?id=senate:119:2:9902",
        "/records/text?id=hr:117:95002",
    ],
)
def test_what_is_cited_from_the_sample_says_that_it_is_the_samples(
    sample_room: Served, path: str
) -> None:
    page = sample_room.get(path, Accept="text/html").text
    (shown,) = re.findall(r'<span class="citation">([^<]+)</span>', page)
    (copied,) = re.findall(r'<span class="citation">.*data-copy="([^"]+)"', page)
    (printed,) = re.findall(r'print-citation"><span>([^<]+)', page)
    assert shown == copied
    assert shown.startswith("[sample] ") and printed.startswith("[sample] ")
    assert "[sample] [sample]" not in page


@requirement("room:console")
def test_the_table_of_a_quotation_and_passages_beside_policy_are_marked_too(
    sample_room: Served,
) -> None:
    check = f"/policies/check?source=NPPF&{QUOTED_WORDS}&date=2025-03-15"
    page = sample_room.get(check, Accept="text/html").text
    assert "<td>[sample] NPPF (December 2024), " in page
    (beside,) = PAGES_BY_ROUTE["/applications/beside"]
    page = sample_room.get(beside, Accept="text/html").text
    citations = re.findall(r'<h3><a href="[^"]+">([^<]+)</a>', page)
    assert citations and all(citation.startswith("[sample] ") for citation in citations)


@requirement("room:console")
def test_the_page_of_a_revision_gives_a_call_for_that_revision_and_no_folder(
    sample_room: Served,
) -> None:
    path = f"{REVISION}/pages/2?{QUOTED_WORDS}"
    page = sample_room.get(path, Accept="text/html").text
    call = html.unescape(page[page.index("verify_policy_quote") :])
    assert "2024-12-12" in call[: call.index("</")]
    for address in (path, f"{REVISION}?", "/policies/NPPF?"):
        answer = sample_room.get(f"{address}&format=json")
        assert "file_path" in answer.text
        assert str(sample_room.data) not in answer.text
    # The contract of REST has the whole path.
    rest = sample_room.get("/api/v1/policies/NPPF/revisions/rev_NPPF_2024_12").json()
    assert rest["file_path"].startswith(str(sample_room.data))


@requirement("room:console")
def test_a_page_says_which_parameters_it_does_not_use(sample_room: Served) -> None:
    for address, unused in (
        ("/policies?dat=2010-01-01&<b>=1", ("dat", "&lt;b&gt;")),
        ("/search?q=cycle&day=2010-01-01", ("day",)),
        ("/records/bills?sponsr=Baldwin", ("sponsr",)),
    ):
        listed = ", ".join(f"<code>{name}</code>" for name in unused)
        page = sample_room.get(address, Accept="text/html").text
        assert f"This page does not use {listed} of its address" in page, address
    empty = sample_room.get("/policies?date=2010-01-01&other=", Accept="text/html").text
    assert "This page does not use" not in empty


@requirement("room:console")
def test_a_series_that_is_refused_keeps_its_form(sample_room: Served) -> None:
    address = "/records/bills/series?interval=fortnight&group_by=chamber&since=2024-01-01"
    response = sample_room.get(address, Accept="text/html")
    assert response.status_code == 422
    assert "It was not accepted" in response.text and "one of " in response.text
    assert '<option value="chamber" selected>' in response.text
    assert 'name="since" type="date" value="2024-01-01"' in response.text
    assert sample_room.get(address, Accept="application/json").json()["error"]


@requirement("room:console")
def test_a_search_in_an_application_that_nobody_knows_says_so(sample_room: Served) -> None:
    address = "/search?q=cycle+parking&application="
    unknown = "nothing is known of an application with this reference"
    assert unknown in sample_room.get(address + "nope", Accept="text/html").text
    for known in ("", "25/01178/REM"):
        assert unknown not in sample_room.get(address + known, Accept="text/html").text


@requirement("room:console")
def test_a_day_whose_revision_could_not_be_read_is_told(sample_room: Served) -> None:
    caution = "A revision from 1 April 2008 could not be read; what it said is not known here."
    for path in (
        "/policies?date=2009-01-01",
        "/policies/SAMPLE_TREE_STRATEGY?date=2009-01-01",
        "/policies/check?source=SAMPLE_TREE_STRATEGY&quote=trees+are+kept&date=2009-01-01",
        "/search?q=trees&date=2009-01-01",
    ):
        assert caution in sample_room.get(path, Accept="text/html").text, path


@requirement("room:console")
def test_assets_are_kept_for_good_under_addresses_that_change_with_them(
    sample_room: Served,
) -> None:
    page = sample_room.get("/", Accept="text/html").text
    addresses = re.findall(r'(?:src|href)="(/assets/[^"]+)"', page)
    assert len(addresses) == 4
    for address in addresses:
        response = sample_room.get(address)
        digest = hashlib.sha256(response.content).hexdigest()
        assert address.split("/")[2] == digest[:16]
        assert "immutable" in response.headers["cache-control"]
    assert sample_room.get("/assets/0000000000000000/site.css").status_code == 404


def test_htmx_is_the_one_that_its_package_ships() -> None:
    package = NODE_MODULES / "htmx.org"
    assert read_package_version("htmx.org") == "4.0.0"
    shipped = (package / "dist" / "htmx.min.js").read_bytes()
    assert (ASSETS / "htmx.min.js").read_bytes() == shipped
    assert (ASSETS / "htmx.LICENSE").read_bytes() == (package / "LICENSE").read_bytes()
