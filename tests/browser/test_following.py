"""What people follow: a section through its numbers, a bill through its versions, bars to rows."""

import re

import pytest
from playwright.async_api import Browser

from tests.requirements import requirement
from tests.support.browser import open_page
from tests.support.kit import Served

pytestmark = pytest.mark.anyio

NPPF_116 = "/read?id=policy:NPPF@rev_NPPF_2024_12%23Para%20116"
BILL = "hr:117:95002"
"""A made-up bill of the sample that became a law."""


@requirement("room:console")
@pytest.mark.parametrize("has_script", [True, False])
async def test_a_paragraph_is_followed_through_its_renumbering(
    browser: Browser, sample_room: Served, has_script: bool
) -> None:
    async with open_page(browser, sample_room.url, java_script_enabled=has_script) as watched:
        page = watched.page
        await watched.open(NPPF_116)
        await page.get_by_role("link", name="This section in every revision").click()
        await page.wait_for_url("**/history?*")
        stands = page.locator("ol.timeline > li")
        texts = await stands.all_inner_texts()
        assert len(texts) == 2
        assert "December 2024" in texts[0] and "Para 116" in texts[0]
        assert "September 2023" in texts[1] and "Para 111" in texts[1]
        assert await stands.first.locator("ins").count() > 0
        # The other way: from the old number to the new one.
        await stands.last.get_by_role("link").click()
        await page.wait_for_url("**/read?*")
        await page.get_by_role("link", name="This section in every revision").click()
        await page.wait_for_url("**/history?*")
        assert "Para 116" in await page.locator("ol.timeline > li").first.inner_text()


@requirement("room:console")
async def test_no_paragraph_with_the_same_words_is_shown_as_changed(
    browser: Browser, sample_room: Served
) -> None:
    async with open_page(browser, sample_room.url) as watched:
        address = "/policies/NPPF/compare?from=2024-03-01&to=2025-03-01"
        await watched.open(address)
        compared = await watched.page.locator("main section").evaluate_all(
            """sections => sections.map(section => ({
                kind: section.querySelector("h2 .tag").textContent,
                sides: [...section.querySelectorAll(".passage")].map(side => side.textContent)
            }))"""
        )
        assert {change["kind"] for change in compared} >= {"reworded", "another number", "new"}
        for change in compared:
            if change["kind"] == "reworded":
                # Without its number, which is not what a paragraph says.
                old, new = (re.sub(r"^\W*\d+\.|\s+", " ", side).strip() for side in change["sides"])
                assert old != new


@requirement("room:console")
@pytest.mark.parametrize("has_script", [True, False])
async def test_a_bill_shows_when_it_moved_and_what_each_version_changed(
    browser: Browser, sample_room: Served, has_script: bool
) -> None:
    async with open_page(browser, sample_room.url, java_script_enabled=has_script) as watched:
        page = watched.page
        await watched.open(f"/records/view?id={BILL}")
        assert await page.locator("rect.span").count() >= 3
        assert "Law after" in await page.locator("figcaption").first.inner_text()
        versions = page.get_by_role("group", name="Versions").locator("tbody tr")
        assert await versions.count() == 3
        await versions.first.get_by_role("link", name="compare").click()
        await page.wait_for_url("**/records/text?*")
        removed = await page.locator("del").all_inner_texts()
        added = await page.locator("ins").all_inner_texts()
        assert removed and added and removed != added
        await page.get_by_role("link", name="Introduced in House", exact=True).click()
        await page.wait_for_url("**version=ih")
        text = await page.locator(".passage").inner_text()
        assert removed[0] not in added and "million dollars" in text
        await page.locator("ul.tree a").nth(1).click()
        await page.wait_for_url("**section=2")
        assert "million dollars" not in await page.locator(".passage").inner_text()


@requirement("room:console")
async def test_a_series_is_drawn_with_its_query_and_each_bar_leads_to_what_it_counts(
    browser: Browser, sample_room: Served
) -> None:
    async with open_page(browser, sample_room.url) as watched:
        page = watched.page
        await watched.open("/records/bills")
        await page.get_by_role("link", name="Over time").click()
        await page.get_by_label("By", exact=True).select_option("quarter")
        await page.get_by_label("A chart for each").select_option("chamber")
        await page.get_by_role("button", name="Draw").click()
        await page.wait_for_url("**interval=quarter*")
        assert await page.locator("figure").count() == 2
        assert '"interval": "quarter"' in await page.locator("main pre").inner_text()
        bar = page.locator("figure").first.locator("svg a").first
        name = await bar.get_attribute("aria-label")
        assert name is not None
        await bar.click()
        await page.wait_for_url("**since=*")
        rows = page.locator("h2:has-text('Records') + div tbody tr")
        assert await rows.count() == int(name.rpartition(": ")[2])
        assert watched.messages == [] and watched.foreign == []


@requirement("room:console")
def test_a_series_that_cannot_be_drawn_says_what_can(sample_room: Served) -> None:
    for path, words in (
        ("/records/bills/series?interval=fortnight", "quarter"),
        ("/records/bills/series?group_by=colour", "party"),
        ("/records/text?id=hr:117:95002&version=xx", "loaded are"),
        ("/policies/NPPF/rev_NPPF_2024_12/history?section=Para+9999", "has no"),
    ):
        response = sample_room.get(path, Accept="text/html")
        assert response.status_code in (404, 422), path
        assert words in response.text, path
