"""A browser for tests: the machine's Chromium, and what a page did while it was open."""

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, Page, async_playwright

NODE_MODULES = Path(__file__).parents[1] / "node" / "node_modules"
SCHEMES = ("light", "dark")
WIDTHS = (1280, 360)
RUN_AXE = "axe.run({resultTypes: ['violations']})"
"""Every rule is tried; what passes is not described, which takes long on a long page."""
WAIT_MS = 120_000.0
"""How long a page may take: many times what a busy machine needs."""


def find_chromium() -> str:
    """The path of the machine's Chromium, which `make setup` installs."""
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if path := shutil.which(name):
            return path
    raise AssertionError("The browser tests need Chromium: `make setup`, as root, installs it")


@asynccontextmanager
async def open_browser() -> AsyncIterator[Browser]:
    """Chromium without a window; it downloads nothing."""
    async with async_playwright() as playwright:
        # Inside a container, and as root, its own sandbox cannot be set up.
        flags = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        browser = await playwright.chromium.launch(executable_path=find_chromium(), args=flags)
        try:
            yield browser
        finally:
            await browser.close()


@dataclass
class Watched:
    """A page, and everything about it that should not happen."""

    page: Page
    origin: str
    messages: list[str] = field(default_factory=list)
    """What it wrote to the console, and errors that nothing caught."""
    foreign: list[str] = field(default_factory=list)
    """Addresses of other servers that it asked."""
    requests: list[str] = field(default_factory=list)

    async def forget(self) -> None:
        """Leave the page, and what it did, for the next one in the same window."""
        await self.page.goto("about:blank")
        await self.page.emulate_media(media="screen")
        await self.show_as("light", WIDTHS[0])
        for noted in (self.messages, self.foreign, self.requests):
            noted.clear()

    async def open(self, path: str) -> int:
        """Open a page of the server; return its status."""
        self.requests.clear()
        response = await self.page.goto(self.origin + path, wait_until="load")
        assert response is not None
        return response.status

    async def show_as(self, scheme: str, width: int) -> None:
        """Show the same page in light or dark, and in a window of this width."""
        await self.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        await self.page.set_viewport_size({"width": width, "height": 900})

    async def list_violations(self) -> list[str]:
        """What axe finds wrong with the page as it stands, best practice included."""
        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(read_axe())
        result = await self.page.evaluate(RUN_AXE)
        return [
            f"{violation['id']}: {node['html'][:200]}"
            for violation in result["violations"]
            for node in violation["nodes"]
        ]

    async def measure_shift(self) -> float:
        """How much of the page moved while it was loading."""
        return float(await self.page.evaluate(_READ_SHIFT))

    async def measure_overflow(self) -> int:
        """By how many pixels the body is wider than the window."""
        return int(
            await self.page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
        )


_READ_SHIFT = """() => new Promise(resolve => {
  let moved = 0;
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) moved += entry.value;
  }).observe({type: "layout-shift", buffered: true});
  requestAnimationFrame(() => setTimeout(() => resolve(moved), 0));
})"""


@asynccontextmanager
async def open_page(
    browser: Browser, origin: str, scheme: str = "light", width: int = 1280, **options: Any
) -> AsyncIterator[Watched]:
    """A page in a browser profile of its own, watched."""
    context: BrowserContext = await browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 900}, **options
    )
    context.set_default_timeout(WAIT_MS)
    page = await context.new_page()
    watched = Watched(page, origin)
    page.on("console", lambda message: watched.messages.append(message.text))
    page.on("pageerror", lambda error: watched.messages.append(str(error)))
    page.on("request", lambda request: _note_request(watched, request.url))
    try:
        yield watched
    finally:
        await context.close()


def _note_request(watched: Watched, url: str) -> None:
    watched.requests.append(url)
    parts = urlsplit(url)
    if f"{parts.scheme}://{parts.netloc}" != watched.origin:
        watched.foreign.append(url)


@cache
def read_axe() -> str:
    return (NODE_MODULES / "axe-core" / "axe.min.js").read_text("utf-8")


def read_package_version(package: str) -> str:
    manifest = json.loads((NODE_MODULES / package / "package.json").read_text("utf-8"))
    return str(manifest["version"])
