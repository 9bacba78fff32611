"""Hostile words in titles, file names, sections and quotations: shown, and never run."""

from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest
from playwright.async_api import Browser, Dialog

from tests.requirements import requirement
from tests.support.browser import Watched, open_page
from tests.support.kit import HANG_SECONDS, Served
from tests.support.papers import make_paper
from tests.support.processes import wait_until

pytestmark = pytest.mark.anyio

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
HOSTILE = f"{SCRIPT}{IMAGE}' javascript:alert(1) ‮evil{'w' * 200}🙂"
LONG_WORD = "w" * 4_000
SOURCE = "HOSTILE_PLAN"
REFERENCE = "26/00666/FUL"


@pytest.fixture(scope="module")
def hostile_room(own_room: Served) -> Served:
    """A server with a policy and a document whose every name is hostile."""
    _fill(own_room)
    return own_room


def _fill(served: Served) -> None:
    api = httpx2.Client(base_url=f"{served.url}/api/v1", timeout=HANG_SECONDS, trust_env=False)
    with api:
        policy = {
            "source": SOURCE,
            "title": HOSTILE[:290],
            "category": "local_plan",
            "description": HOSTILE,
        }
        assert api.post("/policies", json=policy).status_code == 201
        plan = make_paper(
            f"Chapter 1: {SCRIPT}", f"1. {IMAGE} must be parked under cover.", "2. Oaks."
        )
        files = {"file": ("plan.pdf", plan, "application/pdf")}
        for label, first_day, last_day in (
            (HOSTILE[:110], "2020-01-01", "2020-12-31"),
            (IMAGE, "2021-01-01", ""),
        ):
            form = {"version_label": label, "effective_from": first_day}
            form |= {"effective_to": last_day} if last_day else {}
            added = api.post(f"/policies/{SOURCE}/revisions", data=form, files=files)
            assert added.status_code in (201, 202), added.text
        wait_until(
            lambda: all(
                revision["status"] in ("active", "superseded")
                for revision in api.get(f"/policies/{SOURCE}").json()["revisions"]
            ),
        )
        name = f"{SCRIPT}{IMAGE}{LONG_WORD[:60]}🙂.pdf".replace("/", "")
        files = {"file": (name, make_paper(f"{SCRIPT} {IMAGE} bicycles."), "application/pdf")}
        sent = api.post("/documents", params={"application_ref": REFERENCE}, files=files)
        assert sent.status_code in (200, 201), sent.text
        change = {"address": HOSTILE, "description": f"{LONG_WORD[:1500]} {SCRIPT}"}
        changed = api.patch("/applications", params={"reference": REFERENCE}, json=change)
        assert changed.status_code == 200, changed.text


PAGES = (
    "/policies",
    f"/policies/{SOURCE}",
    f"/policies/{SOURCE}/rev_{SOURCE}_2021_01",
    f"/policies/{SOURCE}/remove",
    f"/policies/{SOURCE}/rev_{SOURCE}_2020_01/remove",
    f"/policies/{SOURCE}/rev_{SOURCE}_2021_01/pages/1?quote={quote(SCRIPT)}",
    f"/policies/{SOURCE}/compare?from=2020-03-01&to=2021-03-01",
    f"/policies/{SOURCE}/rev_{SOURCE}_2021_01/history?section=Chapter%201",
    f"/policies/check?source={SOURCE}&date=2021-03-01&quote={quote(IMAGE + ' must be parked')}",
    f"/policies/check?source={SOURCE}&date=2021-03-01&quote={quote(HOSTILE + LONG_WORD[:2000])}",
    f"/read?id=policy:{SOURCE}@rev_{SOURCE}_2021_01%23Chapter%201&quote={quote(SCRIPT)}",
    f"/search?q={quote(HOSTILE[:300])}",
    f"/search?q=parked+{quote(SCRIPT)}&date={quote(SCRIPT)}",
    f"/read?id={quote(HOSTILE)}",
    "/applications",
    f"/applications/view?ref={REFERENCE}",
    f"/applications/view?ref={quote(SCRIPT)}",
    f"/applications/beside?ref={REFERENCE}&topic={quote(SCRIPT)}+bicycles",
    f"/jobs/{quote(IMAGE)}",
)


@requirement("room:console")
async def test_hostile_words_are_shown_and_never_run(
    browser: Browser, hostile_room: Served
) -> None:
    async with open_page(browser, hostile_room.url, width=360) as watched:
        dialogs: list[str] = []

        async def note_dialog(dialog: Dialog) -> None:
            dialogs.append(dialog.message)
            await dialog.dismiss()

        watched.page.on("dialog", note_dialog)
        shown = 0
        for path in PAGES:
            status = await watched.open(path)
            assert status < 500, path
            shown += SCRIPT in await watched.page.locator("main").inner_text()
            await _check_page(watched, path, status)
        # In titles, revisions, sections, quotations, addresses and names of files.
        assert shown >= 8
        assert dialogs == []
        assert watched.foreign == []


async def _check_page(watched: Watched, path: str, status: int) -> None:
    page = watched.page
    scripts = await page.locator("script").evaluate_all("all => all.map(one => one.src)")
    assert len(scripts) == 2 and all("/assets/" in address for address in scripts), path
    assert await page.locator("main img:not(.sheet img)").count() == 0, path
    assert await page.locator("[onerror], [href^='javascript:']").count() == 0, path
    assert await watched.measure_overflow() <= 0, path
    # Chromium itself says so of a page that is not there, or was not understood.
    messages = [text for text in watched.messages if status < 400 or str(status) not in text]
    assert messages == [], path
    watched.messages.clear()


@requirement("room:console")
async def test_a_hostile_name_can_be_removed_and_asks_once_more(
    browser: Browser, hostile_room: Served, tmp_path: Path
) -> None:
    async with open_page(browser, hostile_room.url) as watched:
        page = watched.page
        await watched.open(f"/applications/view?ref={REFERENCE}")
        await page.get_by_role("link", name="Remove").first.click()
        await page.get_by_role("heading", name="Remove").wait_for()
        assert "1 passage" in await page.locator("main").inner_text()
        await page.get_by_role("link", name="Keep it").click()
        await page.wait_for_url("**/applications/view?*")
        assert await page.get_by_role("link", name="Remove").count() == 1
        assert watched.messages == []
