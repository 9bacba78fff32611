"""What an operator sees: checks, freshness, keys, errors; and the dashboard for Grafana."""

import datetime as dt
import json
import re
from pathlib import Path

import httpx2
import pytest
from playwright.async_api import Browser

from readingroom.core import clock
from readingroom.storage.jobs.store import JobStore
from readingroom.storage.key_uses import KEY_USES_FILE_NAME, KeyUseDays
from readingroom.storage.keys import KeyRing
from tests.requirements import requirement
from tests.support.browser import open_page
from tests.support.kit import HANG_SECONDS, POST, Served, make_rpc
from tests.support.processes import wait_until

pytestmark = pytest.mark.anyio

DASHBOARD = Path(__file__).parents[2] / "deploy" / "grafana" / "reading-room.json"
METRIC = re.compile(r"\breadingroom_[a-z_]+")
SUFFIXES = re.compile(r"_(bucket|sum|count)$")


@requirement("room:console", "room:jobs")
@pytest.mark.parametrize("has_script", [True, False])
async def test_the_checks_are_begun_from_the_page_and_their_findings_shown(
    browser: Browser, room: Served, has_script: bool
) -> None:
    async with open_page(browser, room.url, java_script_enabled=has_script) as watched:
        page = watched.page
        await watched.open("/operations")
        await page.get_by_role("button", name="Check now").click()
        await page.wait_for_url("**/jobs/*")
        path = page.url.removeprefix(room.url)
        wait_until(lambda: JobStore(room.data).get_job(path.rpartition("/")[2]).has_ended)
        await watched.open(path)
        assert "Done." in await page.locator("#job").inner_text()
        assert await page.locator("tbody tr").count() >= 1
        await page.get_by_role("link", name="Operations").last.click()
        await page.wait_for_url("**/operations")
        checks = page.locator("h2:has-text('Checks') + p")
        assert "checked" in await checks.inner_text()
        await page.get_by_role("link", name="All jobs").click()
        await page.wait_for_url("**/operations/jobs")
        assert await page.locator(f"a[href='{path}']").count() == 1
        assert watched.foreign == []


@requirement("room:console")
async def test_the_page_says_how_fresh_each_source_is_and_what_it_stands_on(
    browser: Browser, sample_room: Served
) -> None:
    async with open_page(browser, sample_room.url) as watched:
        await watched.open("/guidance?q=annual+return")
        await watched.page.locator(".hits a").first.click()
        await watched.page.wait_for_url("**/read?*")
        facts = await watched.page.locator("dl.facts").inner_text()
        assert "asked of GOV.UK" in facts and "counts as fresh for" in facts
        await watched.open("/guidance/copies")
        assert await watched.page.locator("meter").count() >= 1
        assert await watched.page.get_by_text("GOV.UK is asked as usual").count() == 1
        await watched.open("/operations")
        sources = watched.page.get_by_role("group", name="Freshness").locator("tbody tr")
        assert await sources.count() == 24
        rows = await sources.all_inner_texts()
        assert any("to be asked for again" in row for row in rows), rows
        facts = await watched.page.locator("dl.facts dt").all_inner_texts()
        assert {"Python", "SQLite", "Embedding model"} <= set(facts)
    answer = sample_room.get("/operations?format=json").json()
    assert answer["model"] == "ready" and answer["used_bytes"] > 0
    bills = next(source for source in answer["freshness"] if source["title"] == "Bills")
    assert bills["newest_at"].startswith("2026-")


@requirement("room:console")
def test_an_error_is_listed_with_the_id_that_its_answer_had(room: Served) -> None:
    question = {"bill_id": "hr:119:1"}
    call = make_rpc("tools/call", {"name": "get_bill", "arguments": question})
    response = httpx2.post(
        f"{room.url}/federal/mcp", json=call, headers=POST, timeout=HANG_SECONDS, trust_env=False
    )
    request_id = response.headers["x-request-id"]
    listed = room.get("/operations?format=json").json()["errors"]
    (error,) = [entry for entry in listed if entry["request_id"] == request_id]
    assert (error["name"], error["code"]) == ("get_bill", "record_not_found")
    assert request_id in room.get("/operations", Accept="text/html").text
    # The page of errors counts them by kind as well.
    page = room.get("/operations/errors", Accept="text/html").text
    assert request_id in page and "<td>record_not_found</td>" in page
    assert request_id in str(room.get("/operations/errors?format=json").json())


def test_a_key_knows_the_day_of_its_last_use_and_its_file_is_written_once_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
    monkeypatch.setattr(clock, "now", lambda: now)
    keys = KeyRing(tmp_path)
    secret, unused = keys.add_key("ann"), keys.add_key("ben")
    assert unused and [key.last_used_on for key in keys.list_keys()] == [None, None]
    assert keys.find_holder(b"wrong") is None
    for _ in range(3):
        assert keys.find_holder(secret.encode())
    written = (tmp_path / KEY_USES_FILE_NAME).stat().st_mtime_ns
    assert keys.find_holder(secret.encode())
    assert (tmp_path / KEY_USES_FILE_NAME).stat().st_mtime_ns == written
    now += dt.timedelta(days=2)
    assert keys.find_holder(secret.encode())
    used = {key.name: key.last_used_on for key in KeyRing(tmp_path).list_keys()}
    assert used == {"ann": "2026-03-03", "ben": None}


def test_a_use_that_cannot_be_noted_lets_nobody_out(tmp_path: Path) -> None:
    keys = KeyRing(tmp_path)
    secret = keys.add_key("ann")
    (tmp_path / KEY_USES_FILE_NAME).mkdir()
    assert keys.find_holder(secret.encode())
    assert KeyUseDays(tmp_path).read_days_by_digest() == {}


@requirement("room:metrics")
def test_the_dashboard_asks_for_metrics_that_are_exported(room: Served) -> None:
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [variable["query"] for variable in dashboard["templating"]["list"]]
    names = {SUFFIXES.sub("", name) for query in asked for name in METRIC.findall(query)}
    exported = set(re.findall(r"^# TYPE (\S+)", room.get("/metrics").text, re.MULTILINE))
    assert len(names) >= 8 and names <= exported
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
