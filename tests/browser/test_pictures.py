"""The pictures of the console in `docs/pictures`: taken here, anew with `--pictures`."""

import re
from pathlib import Path

import pytest
from PIL import Image
from playwright.async_api import Browser

from tests.requirements import requirement
from tests.support.browser import open_page
from tests.support.kit import Served

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
PICTURES = {
    "home": "/",
    "search": "/search?q=cycle+parking+for+new+homes&date=2025-04-14",
    "page": "/read?id=policy:NPPF@rev_NPPF_2024_12%23Chapter%209",
    "policies": "/policies?date=2025-04-14",
    "compare": "/policies/NPPF/compare?from=2024-03-01&to=2025-03-01",
    "check": "/policies/check?source=NPPF&date=2025-03-15&quote=Development+is+refused",
    "application": "/applications/view?ref=25/01178/REM",
    "beside": "/applications/beside?ref=25/01178/REM&topic=cycle+parking",
    "records": "/records/bills?by=party",
    "bill": "/records/view?id=hr:119:99001",
    "vote": "/records/view?id=house:117:1:9802",
    "links": "/records/links?id=hr:119:99001",
    "guidance": "/guidance?since=2024-01-01",
    "operations": "/operations",
}


@requirement("room:console")
async def test_every_main_page_has_its_picture_in_the_documentation(
    browser: Browser, sample_room: Served, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    is_renewed = request.config.getoption("--pictures")
    folder = ROOT / "docs" / "pictures" if is_renewed else tmp_path
    folder.mkdir(exist_ok=True)
    async with open_page(browser, sample_room.url, width=1100) as watched:
        for name, path in PICTURES.items():
            assert await watched.open(path) == 200, path
            await watched.page.screenshot(path=folder / f"{name}.png")
            assert (folder / f"{name}.png").stat().st_size > 5_000
            if is_renewed:
                _reduce_colours(folder / f"{name}.png")
    shown = re.findall(r"pictures/(\w+)\.png", (ROOT / "docs" / "console.md").read_text("utf-8"))
    assert sorted(shown) == sorted(PICTURES)
    assert len(re.findall(r"docs/pictures/\w+\.png", (ROOT / "README.md").read_text("utf-8"))) == 2


def _reduce_colours(picture: Path) -> None:
    """Keep what the eye sees of a picture, in a third of its bytes."""
    with Image.open(picture) as opened:
        opened.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(picture, optimize=True)
