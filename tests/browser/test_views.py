"""Views inside a chat: each drawn from a real answer, by a host that speaks MCP Apps."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from playwright.async_api import Browser, Frame, Page

from readingroom.web.views import VIEW_MEDIA_TYPE
from tests.requirements import requirement
from tests.support.browser import RUN_AXE, SCHEMES, open_page, read_axe
from tests.support.kit import LEGACY, MODERN, Served, connect_http

pytestmark = [pytest.mark.anyio, requirement("room:views")]

MAX_VIEW_BYTES = 12 * 1024

VOTE_ID = "senate:119:2:9869"
QUOTATION = {
    "source": "NPPF",
    "date": "2024-06-01",
    "quote": "Development is refused on highway grounds only",
}

# The tool, its arguments, words that its view shows, and where "Open in Reading Room" leads.
CASES: list[tuple[str, dict[str, Any], list[str], str]] = [
    ("list_policy_revisions", {"source": "NPPF"}, ["NPPF", "revisions"], "/policies/NPPF"),
    ("policy_snapshot", {"date": "2024-06-01"}, ["In force on 2024-06-01"], "/policies?date="),
    (
        "compare_policy_revisions",
        {"source": "NPPF", "from_date": "2023-10-01", "to_date": "2024-12-31"},
        ["Sections:"],
        "/policies/NPPF/compare?from=",
    ),
    (
        "verify_policy_quote",
        {"source": "SAMPLE_TREE_STRATEGY", "date": "2009-01-01", "quote": "trees are kept"},
        ["A revision from 2008-04-01 could not be read."],
        "/policies/check?source=SAMPLE_TREE_STRATEGY",
    ),
    ("application_overview", {"application_ref": "25/01178/REM"}, ["Application"], "/applications"),
    ("search", {"query": "what must a transport assessment cover?"}, ["Confidence"], "/search?q="),
    ("count", {"resource": "bills", "group_by": "congress"}, ["bills by congress"], "/records/"),
    (
        "time_series",
        {"resource": "bills", "time_field": "introduced_at", "interval": "year"},
        ["bills by year"],
        "/records/",
    ),
    (
        "list_records",
        {"source": "roll-call-votes", "id": VOTE_ID, "part": "members"},
        ["50 needed", "All\t66\t32\t0\t2", "R\t18\t23\t0\t2", "20 of 100 members"],
        "/read?id=senate",
    ),
    (
        "list_records",
        {"source": "roll-call-votes", "limit": 3},
        ["roll call votes", "There are more."],
        "/records/roll-call-votes",
    ),
]

HOST = (Path(__file__).parent / "views_host.js").read_text("utf-8")


@pytest.fixture(scope="module")
async def client(sample_room: Served, anyio_backend: str) -> AsyncIterator[Client]:
    async with connect_http(f"{sample_room.url}/mcp") as opened:
        yield opened


async def read_view(client: Client, tool_name: str) -> str:
    (tool,) = [tool for tool in (await client.list_tools()).tools if tool.name == tool_name]
    assert tool.meta
    assert tool.meta["ui"]["resourceUri"] == tool.meta["ui/resourceUri"]
    (content,) = (await client.read_resource(tool.meta["ui"]["resourceUri"])).contents
    assert content.mime_type == VIEW_MEDIA_TYPE
    text: str = content.text  # type: ignore[union-attr]
    assert len(text.encode()) <= MAX_VIEW_BYTES
    return text


async def draw(
    page: Page, html: str, answer: dict[str, Any], sent: dict[str, Any], theme: str
) -> Frame:
    await page.goto("about:blank")
    await page.evaluate(HOST, {"html": html, "answer": answer, "sent": sent, "theme": theme})
    frame = page.frames[-1]
    await frame.get_by_role("button", name="Ask about this").wait_for()
    return frame


def to_result(answer: Any) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(answer.model_dump_json(by_alias=True, exclude_none=True))
    return result


@pytest.mark.parametrize(("tool", "sent", "words", "path"), CASES, ids=[case[0] for case in CASES])
async def test_an_answer_is_drawn(
    browser: Browser,
    client: Client,
    sample_room: Served,
    tool: str,
    sent: dict[str, Any],
    words: list[str],
    path: str,
) -> None:
    html = await read_view(client, tool)
    answer = await client.call_tool(tool, sent)
    assert not answer.is_error, answer
    async with open_page(browser, sample_room.url) as watched:
        for theme in SCHEMES:
            frame = await draw(watched.page, html, to_result(answer), sent, theme)
            text = await frame.locator("body").inner_text()
            for word in words:
                assert word in text
            await frame.evaluate(read_axe())
            violations = (await frame.evaluate(RUN_AXE))["violations"]
            assert [violation["id"] for violation in violations] == []
        await frame.get_by_role("button", name="Open in Reading Room").click()
        await frame.get_by_role("button", name="Ask about this").click()
        received = await watched.page.evaluate("window.received")
        (opened,) = [message for message in received if message.get("method") == "ui/open-link"]
        assert opened["params"]["url"].startswith(sample_room.url + path)
        (asked,) = [message for message in received if message.get("method") == "ui/message"]
        assert asked["params"]["content"][0]["text"]
        sizes = [m for m in received if m.get("method") == "ui/notifications/size-changed"]
        assert sizes[-1]["params"]["height"] > 50
        assert [url for url in watched.foreign if url.startswith("http")] == []
        status = await watched.page.request.get(opened["params"]["url"])
        assert status.status == 200


async def test_hostile_text_is_shown_and_never_run(
    browser: Browser, client: Client, sample_room: Served
) -> None:
    hostile = "<img src=x onerror=\"parent.postMessage(1,'*')\"></script><script>alert(1)</script>"
    revision = {
        "revision_id": hostile,
        "version_label": hostile,
        "effective_from": "2024-01-01",
        "status": "active",
    }
    body = {"source": hostile, "revision_count": 1, "revisions": [revision]}
    html = await read_view(client, "list_policy_revisions")
    async with open_page(browser, sample_room.url) as watched:
        answer = {"structuredContent": body, "content": []}
        frame = await draw(watched.page, html, answer, {}, "light")
        assert await frame.locator("img, main script").count() == 0
        assert "<img src=x" in await frame.locator("body").inner_text()
        assert 1 not in await watched.page.evaluate("window.received")


async def test_a_quotation_is_marked_on_its_page(
    browser: Browser, client: Client, sample_room: Served
) -> None:
    section = await client.call_tool(
        "search_policy", {"query": "highway safety", "effective_date": "2024-06-01"}
    )
    hit = section.structured_content["results"][0]  # type: ignore[index]
    quote = " ".join(hit["text"].split()[-12:])
    sent = {"source": hit["source"], "quote": quote, "date": "2024-06-01"}
    answer = await client.call_tool("verify_policy_quote", sent)
    assert answer.structured_content["verdict"] == "verified"  # type: ignore[index]
    html = await read_view(client, "verify_policy_quote")
    marks: list[Any] = []

    async def read_resource(uri: str) -> dict[str, Any]:
        result = to_result(await client.read_resource(uri))
        marks.extend(result["contents"][0]["_meta"]["marks"])
        return result

    async with open_page(browser, sample_room.url) as watched:
        await watched.page.expose_function("readResource", read_resource)
        frame = await draw(watched.page, html, to_result(answer), sent, "light")
        await frame.locator("canvas").wait_for()
        assert marks
        yellow = await frame.evaluate(
            """() => {
            const canvas = document.querySelector("canvas");
            const { width, height } = canvas;
            const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
            let count = 0;
            for (let i = 0; i < data.length; i += 4) count += data[i] > 200 && data[i + 2] < 120;
            return count; }"""
        )
        assert yellow > 100


@pytest.mark.parametrize("wire", [LEGACY, MODERN])
async def test_views_are_offered_on_both_wires_and_by_the_face_of_one_base(
    sample_room: Served, wire: str
) -> None:
    for face, tool in (("/policy", "policy_snapshot"), ("/federal", "count"), ("", "search")):
        async with connect_http(f"{sample_room.url}{face}/mcp", wire) as client:
            assert "Reading Room" in await read_view(client, tool)


async def test_answers_carry_no_view_and_listings_grow_little(client: Client) -> None:
    answer = await client.call_tool("policy_snapshot", {"date": "2024-06-01"})
    assert "ui" not in (answer.meta or {})
    tools = (await client.list_tools()).tools
    whole = sum(len(tool.model_dump_json(exclude_none=True, by_alias=True)) for tool in tools)
    views = sum(
        len(json.dumps({key: value for key, value in tool.meta.items() if key.startswith("ui")}))
        for tool in tools
        if tool.meta
    )
    assert views <= 0.02 * whole
