"""A person lets an app connect, in the browser; the app is the official TypeScript client."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio.to_thread
import pytest
from playwright.async_api import Browser

from readingroom.storage.keys import KeyRing
from tests import node
from tests.requirements import requirement
from tests.support.browser import SCHEMES, WIDTHS, open_page
from tests.support.kit import Served

pytestmark = [pytest.mark.anyio, requirement("room:connectors", "room:console")]

_PROGRAM = Path(node.__file__).parent / "connector.mjs"


@contextmanager
def run_client(url: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [str(node.find_node()), str(_PROGRAM), url], stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def test_a_person_allows_an_app_and_it_can_call(browser: Browser, keyed_room: Served) -> None:
    secret = KeyRing(keyed_room.data).add_key("ada")
    with run_client(f"{keyed_room.url}/mcp") as app:
        assert app.stdout
        asked = json.loads(await anyio.to_thread.run_sync(app.stdout.readline))
        async with open_page(browser, keyed_room.url) as watched:
            page = watched.page
            await page.goto(asked["open"])
            await page.get_by_label("Your key").fill(secret)
            await page.get_by_role("button", name="Sign in").click()
            await page.get_by_role("heading", name="Connect an app").wait_for()
            text = await page.locator("main").inner_text()
            assert "TypeScript app" in text
            assert "ada" in text
            for scheme in SCHEMES:
                for width in WIDTHS:
                    await watched.show_as(scheme, width)
                    assert await watched.list_violations() == []
                    assert await watched.measure_overflow() <= 0
            assert watched.foreign == []
            assert watched.messages == []
            await page.get_by_role("button", name="Allow", exact=True).click()
            await page.get_by_text("You can close this page").wait_for()
        outcome = json.loads(await anyio.to_thread.run_sync(app.stdout.readline))
    assert outcome["scope"] == "read"
    assert "get_kb_content" in outcome["tools"]
