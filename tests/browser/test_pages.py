"""Every page of the console, as a person meets it: readable, reachable, self-contained."""

import hashlib
import re
from itertools import product
from pathlib import Path

import httpx2
import pypdfium2
import pytest
from playwright.async_api import Browser

from readingroom.server.pages.frame import PAGE_POLICY
from readingroom.web.assets import load_assets
from tests.requirements import requirement
from tests.support.browser import NODE_MODULES, SCHEMES, WIDTHS, open_page, read_package_version
from tests.support.kit import HANG_SECONDS, Served

pytestmark = pytest.mark.anyio

ASSETS = Path(__file__).parents[2] / "src" / "readingroom" / "web" / "assets"
NPPF_CHAPTER = "/read?id=policy:NPPF@rev_NPPF_2024_12%23Chapter%209"
BIG_VOTE = "/records/view?id=house:117:1:9802"
PAGES = [
    "/",
    "/search",
    "/search?q=cycle+parking+for+new+homes&date=2025-04-14",
    "/search?q=zxqv+nothing+here&base=text",
    NPPF_CHAPTER,
    "/read?id=text:kb",
    "/read?id=policy:nothing",
    "/applications/beside?ref=25/01178/REM&topic=cycle+parking",
    "/policies?date=2025-03-15",
    "/policies/NPPF",
    "/policies/NPPF/rev_NPPF_2024_12",
    "/policies/NPPF/rev_NPPF_2024_12/history?section=Para+116",
    "/policies/NPPF/rev_NPPF_2023_09/remove",
    "/policies/SAMPLE_TREE_STRATEGY",
    "/policies/SAMPLE_LOCAL_PLAN_2042/rev_SAMPLE_LOCAL_PLAN_2042_2026_03",
    "/policies/NPPF/compare?from=2024-03-01&to=2025-03-01&section=Chapter+9",
    "/policies/check?source=NPPF&quote=Development+is+refused&date=2025-03-15",
    "/applications",
    "/applications/view?ref=25/01178/REM",
    "/records",
    "/records/bills?by=party",
    "/records/bills/series?interval=quarter&group_by=party",
    "/records/view?id=hr:119:99001",
    "/records/view?id=hr:117:95002",
    "/records/text?id=hr:117:95002",
    "/records/text?id=hr:117:95002&version=enr&compare_with=eh",
    "/records/view?id=senate:119:2:9902",
    BIG_VOTE,
    "/records/view?id=E990004",
    "/records/links?id=hr:119:99001",
    "/guidance?since=2024-01-01",
    "/guidance?q=annual+return",
    "/guidance/copies",
    "/operations",
    "/operations/keys",
    "/connect",
    "/mcp",
    "/docs",
]
MAX_BYTES = 60_000
MAX_BYTES_WITH_PICTURE = 150_000
MAX_BYTES_AGAIN = 20_000  # of a second visit, when the style and the scripts are kept
MAX_REQUESTS = 4  # the page, its style, its two scripts; a picture is one more
ZOOMED_WIDTH = 320  # 1280 px at 400 %


@requirement("room:console")
@pytest.mark.parametrize("path", PAGES)
async def test_every_page_is_accessible_and_asks_nobody_else(
    browser: Browser, sample_room: Served, path: str
) -> None:
    async with open_page(browser, sample_room.url) as watched:
        expected = 404 if path.endswith("nothing") else 200
        assert await watched.open(path) == expected
        # Chromium itself says so of a page that is not there.
        messages = [text for text in watched.messages if expected == 200 or "404" not in text]
        assert (messages, watched.foreign) == ([], [])
        pictures = [url for url in watched.requests if url.endswith(".webp")]
        assert len(watched.requests) <= MAX_REQUESTS + len(pictures), watched.requests
        assert await watched.measure_shift() < 0.001  # of the window: nothing that an eye sees
        # Its eighty operations are the same in every shape, and take axe as long as all pages.
        shapes = product(SCHEMES[:1], WIDTHS[:1]) if path == "/docs" else product(SCHEMES, WIDTHS)
        for scheme, width in shapes:
            await watched.show_as(scheme, width)
            assert await watched.measure_overflow() <= 0, width
            assert await watched.list_violations() == [], (scheme, width)
        await watched.show_as("light", ZOOMED_WIDTH)
        assert await watched.measure_overflow() <= 0


@requirement("room:console")
def test_every_page_is_small_and_carries_the_headers_of_a_page(sample_room: Served) -> None:
    assets = sum(len(asset.compressed) for asset in load_assets().values())
    for path in PAGES:
        response = httpx2.get(
            sample_room.url + path,
            headers={"Accept": "text/html", "Accept-Encoding": "gzip"},
            timeout=HANG_SECONDS,
            trust_env=False,
        )
        assert response.headers["content-security-policy"] == PAGE_POLICY, path
        assert response.headers["cache-control"] == "no-store", path
        assert response.headers["referrer-policy"] == "same-origin", path
        assert response.headers["cross-origin-opener-policy"] == "same-origin", path
        assert response.headers["x-content-type-options"] == "nosniff", path
        assert response.headers["content-encoding"] == "gzip", path
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


def read_sheets(pdf: bytes) -> list[str]:
    """The words of each page of a PDF."""
    document = pypdfium2.PdfDocument(pdf)
    try:
        return [page.get_textpage().get_text_bounded() for page in document]
    finally:
        document.close()


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
