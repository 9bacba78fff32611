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
        compared = await watched.page.locator("section.change").evaluate_all(
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
async def test_a_map_shows_where_the_changes_lie_and_leads_to_each(
    browser: Browser, sample_room: Served, has_script: bool
) -> None:
    async with open_page(browser, sample_room.url, java_script_enabled=has_script) as watched:
        page = watched.page
        await watched.open("/policies/NPPF/compare?from=2024-03-01&to=2025-03-01")
        lead = await page.locator(".lead").first.inner_text()
        cells = page.locator("ol.map .cell")
        assert await cells.count() == int(lead.split()[0])
        # Those that are unchanged lead nowhere; every other one to its change.
        unchanged = page.locator("ol.map span.cell.unchanged")
        assert f"{await unchanged.count()} unchanged" in lead
        targets = [
            await link.get_attribute("href") for link in await page.locator("ol.map a").all()
        ]
        headings = await page.locator("section.change h2").all()
        assert targets == [f"#{await heading.get_attribute('id')}" for heading in headings]
        reworded = page.locator("ol.map a.changed").first
        await reworded.click()
        assert "#change-" in page.url
        # Of one kind only, however many the others are; its cell still leads to another.
        await page.get_by_label("Show").select_option("removed")
        await page.get_by_role("button", name="Compare").click()
        await page.wait_for_url("**only=removed*")
        tags = await page.locator("section.change h2 .tag").all_inner_texts()
        assert tags and set(tags) == {"gone"}
        assert "section=" in str(await page.locator("ol.map a.changed").first.get_attribute("href"))


@requirement("room:console")
def test_words_that_a_comparison_leaves_out_can_be_had(sample_room: Served) -> None:
    address = "/policies/NPPF/compare?from=2024-03-01&to=2025-03-01"
    page = sample_room.get(address, Accept="text/html").text
    links = re.findall(r'<a href="([^"]*whole=yes[^"]*)">With the words', page)
    assert "[…]" in page and links
    whole = sample_room.get(links[0].replace("&amp;", "&"), Accept="text/html").text
    assert "[…]" not in whole and "<ins>" in whole


@requirement("room:console")
async def test_what_is_no_longer_in_force_says_what_replaced_it(
    browser: Browser, sample_room: Served
) -> None:
    async with open_page(browser, sample_room.url) as watched:
        page = watched.page
        await watched.open("/read?id=policy:NPPF@rev_NPPF_2023_09%23Para%20111")
        assert "No longer in force" in await page.locator(".lead").inner_text()
        await page.get_by_role("link", name="December 2024, in force from").click()
        await page.wait_for_url("**/history?*")
        assert "Para 116" in await page.locator("ol.timeline > li").first.inner_text()
        # What replaces it has no successor.
        await watched.open(NPPF_116)
        assert "Replaced by" not in await page.locator(".lead").inner_text()


@requirement("room:console")
async def test_a_bill_has_its_citation_at_hand_and_a_policy_its_pages(
    browser: Browser, sample_room: Served
) -> None:
    async with open_page(browser, sample_room.url) as watched:
        page = watched.page
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await watched.open(NPPF_116)
        await page.get_by_role("button", name="Copy").first.click()
        await page.get_by_role("button", name="Copied").wait_for()
        copied = await page.evaluate("navigator.clipboard.readText()")
        assert copied == await page.locator(".citation").inner_text()
        await page.get_by_role("link", name="The whole of page").click()
        await page.wait_for_url("**/pages/*")
        assert await page.locator(".sheet img").count() == 1
        assert await page.locator(".sheet rect").count() == 0
        number = int(page.url.rpartition("/")[2])
        await page.locator("a[rel=prev]").click()
        await page.wait_for_url(f"**/pages/{number - 1}")
        assert watched.messages == [] and watched.foreign == []


@requirement("room:console")
def test_a_file_is_given_as_it_was_received_and_never_shown(sample_room: Served) -> None:
    overview = sample_room.get("/applications/view?ref=25/01178/REM&format=json").json()
    document_id = overview["types"][0]["documents"][0]["document_id"]
    for path in ("/policies/NPPF/rev_NPPF_2024_12/file", f"/documents/{document_id}/file"):
        answer = sample_room.get(path)
        assert answer.status_code == 200 and answer.content[:5] == b"%PDF-", path
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["x-content-type-options"] == "nosniff"
    for path in ("/policies/NPPF/rev_NOTHING/file", "/documents/nothing/file"):
        assert sample_room.get(path).status_code == 404, path
    too_far = sample_room.get("/policies/NPPF/rev_NPPF_2024_12/pages/999", Accept="text/html")
    assert too_far.status_code == 404 and "has no page 999" in too_far.text


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
