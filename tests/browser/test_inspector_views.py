"""Each view in the official MCP Inspector, in light and dark, over both wires."""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from tests.browser.test_views import CASES, QUOTATION
from tests.requirements import requirement
from tests.support.browser import RUN_AXE, SCHEMES, open_page, read_axe
from tests.support.inspector import ERAS, Inspector, run_inspector
from tests.support.kit import Served

pytestmark = [pytest.mark.anyio, requirement("room:views")]

FONTS = "https://fonts.googleapis.com/"
"""What the Inspector's own page asks for; no view does."""
VIEWS: list[tuple[str, dict[str, Any], list[str]]] = [
    *((tool, arguments, words) for tool, arguments, words, _ in CASES),
    ("verify_policy_quote", QUOTATION, [QUOTATION["quote"], "The words stand in the revision"]),
]


@pytest.fixture(scope="module", params=ERAS)
def inspector(
    request: pytest.FixtureRequest, sample_room: Served, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Inspector]:
    home: Path = tmp_path_factory.mktemp("inspector")
    with run_inspector(f"{sample_room.url}/mcp", request.param, home) as running:
        yield running


@pytest.fixture(scope="module")
async def page(browser: Browser, inspector: Inspector) -> AsyncIterator[Page]:
    async with open_page(browser, inspector.origin, width=1500) as watched:
        # It waits for its fonts, which cannot be reached here.
        await watched.page.route(FONTS + "**", lambda route: route.abort())
        yield watched.page
        local = (inspector.origin.rpartition(":")[0], FONTS)
        assert [url for url in watched.requests if not url.startswith(local)] == []


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        # One for each wire belongs to every run of the tests.
        pytest.param(*case, id=case[0], marks=[] if case[0] == "search" else [pytest.mark.full])
        for case in VIEWS
    ],
)
async def test_the_inspector_draws_it(
    inspector: Inspector,
    page: Page,
    tmp_path: Path,
    tool: str,
    arguments: dict[str, Any],
    words: list[str],
) -> None:
    await page.emulate_media(color_scheme="light")
    view = await inspector.open_view(page, tool, arguments)
    badge = re.compile(f"^{inspector.era}$", re.IGNORECASE)
    await page.get_by_text(badge).first.wait_for()
    if tool == "verify_policy_quote":
        await view.locator("canvas").wait_for()
    grounds = set()
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme)
        # The Inspector tells the view of the change, and the view follows it.
        await view.wait_for_function(
            "scheme => document.documentElement.style.colorScheme === scheme", arg=scheme
        )
        text = await view.locator("body").inner_text()
        for word in words:
            assert word in text
        await view.evaluate(read_axe())
        violations = (await view.evaluate(RUN_AXE))["violations"]
        assert [violation["id"] for violation in violations] == []
        grounds.add(await view.evaluate("getComputedStyle(document.body).backgroundColor"))
        await page.screenshot(path=tmp_path / f"{tool}-{inspector.era}-{scheme}.png")
    assert len(grounds) == len(SCHEMES)
