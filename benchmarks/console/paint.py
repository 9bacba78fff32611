"""When the largest thing on a page is painted, beside the barest page of the same server."""

import tempfile
from pathlib import Path
from statistics import median

import anyio
from playwright.async_api import Browser

from benchmarks.console.load import PAGES
from benchmarks.load.load import wait_for_sample
from benchmarks.table import Table
from tests.support.browser import open_browser, open_page
from tests.support.kit import Served, serve_room
from tests.support.model import link_model

_BARE_TEXT = "/health"
_BARE_PAGE = "/there-is-no-such-page"
"""The frame of every page, and a sentence."""
_MAX_RATIO = 3.0
_READ_PAINT = """() => new Promise(resolve => {
  new PerformanceObserver(list => resolve(list.getEntries().at(-1).startTime))
    .observe({type: "largest-contentful-paint", buffered: true});
})"""
_NOTE = (
    "Largest contentful paint in Chromium, milliseconds since the navigation began: {rounds} "
    "visits to each page, to the barest page (the frame and a sentence, at an address of nothing) "
    "and to a line of JSON without any style (`/health`) in turn, each by a new profile with "
    "nothing kept. The ratio is that of the medians of the page and the barest page."
)


def measure(quick: bool) -> Table:
    """Return when each page is painted, and how many times that is the barest page's time."""
    rounds = 1 if quick else 9
    with tempfile.TemporaryDirectory() as folder:
        data = link_model(Path(folder) / "data")
        with serve_room("--demo", data=data, env={"READINGROOM_RATE_LIMIT": "60000"}) as served:
            wait_for_sample(served)
            rows = anyio.run(measure_pages, served, rounds)
    header = (
        "page",
        "median ms, `/health`",
        "median ms, barest page",
        "median ms, page",
        "ratio",
        "wanted",
    )
    return Table("When a page is painted", header, tuple(rows), _NOTE.format(rounds=rounds))


async def measure_pages(served: Served, rounds: int) -> list[tuple[str, ...]]:
    """Return a row for each page, the slowest first."""
    paths = [path for path in PAGES if not path.endswith(".webp")]
    medians: dict[str, tuple[float, float, float]] = {}
    async with open_browser() as browser:
        for path in paths:
            visits = [
                [
                    await _read_paint(browser, served, visited)
                    for visited in (_BARE_TEXT, _BARE_PAGE, path)
                ]
                for _ in range(rounds + 1)
            ]
            # The first visit loads whatever the server itself has to load.
            text_ms, bare_ms, page_ms = map(median, zip(*visits[1:], strict=True))
            medians[path] = text_ms, bare_ms, page_ms
    ordered = sorted(paths, key=lambda path: medians[path][1] / medians[path][2])
    return [_render_row(path, *medians[path]) for path in ordered]


def _render_row(path: str, text_ms: float, bare_ms: float, page_ms: float) -> tuple[str, ...]:
    ratio = page_ms / bare_ms
    verdict = "met" if ratio <= _MAX_RATIO else "**missed**"
    cells = (f"{text_ms:.0f}", f"{bare_ms:.0f}", f"{page_ms:.0f}", f"{ratio:.2f}")
    return (f"`{path.partition('?')[0]}`", *cells, f"{verdict} (at most {_MAX_RATIO:g})")


async def _read_paint(browser: Browser, served: Served, path: str) -> float:
    async with open_page(browser, served.url) as watched:
        await watched.open(path)
        return float(await watched.page.evaluate(_READ_PAINT))
