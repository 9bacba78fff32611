"""Every page of the console, as a person meets it: readable, reachable, self-contained."""

import hashlib
import re
from itertools import product
from pathlib import Path

import httpx2
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
    "/policies/NPPF/compare?from=2024-03-01&to=2025-03-01&section=Chapter+9",
    "/policies/check?source=NPPF&quote=Development+is+refused&date=2025-03-15",
    "/applications",
    "/applications/view?ref=25/01178/REM",
    "/records",
    "/records/bills?by=party",
    "/records/view?id=hr:119:99001",
    "/records/view?id=senate:119:2:9902",
    "/records/view?id=E990004",
    "/records/links?id=hr:119:99001",
    "/guidance?since=2024-01-01",
    "/guidance?q=annual+return",
    "/operations",
    "/operations/keys",
    "/connect",
    "/mcp",
    "/docs",
]
MAX_BYTES = 60_000
MAX_REQUESTS = 6  # the page, its style, two scripts, the icon, a picture


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
        assert len(watched.requests) <= MAX_REQUESTS, watched.requests
        # Its eighty operations are the same in every shape, and take axe as long as all pages.
        shapes = product(SCHEMES[:1], WIDTHS[:1]) if path == "/docs" else product(SCHEMES, WIDTHS)
        for scheme, width in shapes:
            await watched.show_as(scheme, width)
            assert await watched.measure_overflow() <= 0, width
            assert await watched.list_violations() == [], (scheme, width)


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
        assert int(response.headers["content-length"]) + assets <= MAX_BYTES, path


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
async def test_a_record_prints_its_citation_without_menu_or_forms(
    browser: Browser, sample_room: Served
) -> None:
    async with open_page(browser, sample_room.url) as watched:
        await watched.open(NPPF_CHAPTER)
        await watched.page.emulate_media(media="print")
        for hidden in ("body > header", "body > footer", "nav"):
            for element in await watched.page.locator(hidden).all():
                assert not await element.is_visible(), hidden
        citation = watched.page.locator(".print-citation")
        assert await citation.is_visible()
        assert "Chapter 9" in await citation.inner_text()
        pdf = await watched.page.pdf(format="A4")
        assert pdf.startswith(b"%PDF")


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
