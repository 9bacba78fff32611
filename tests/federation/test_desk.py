"""The desk: one search and one fetch over every base, asked through a real server of them all."""

import base64
import json
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from readingroom.bases.documents.registry.applications import ApplicationStore
from readingroom.bases.policy.ids import parse_section_id
from readingroom.bases.text.adapter import find_passages
from readingroom.core.errors import RecordNotFound
from readingroom.federation.fan_out import FanOut
from readingroom.federation.room import make_federated_base
from readingroom.protocol.search import is_heading_only
from readingroom.settings import load_settings
from readingroom.web import assets
from readingroom.web.templates import format_day
from tests.requirements import requirement
from tests.support.faults import failing
from tests.support.federal.base import load_files, write_world
from tests.support.forms import read_form
from tests.support.govuk import RETURN, Upstream
from tests.support.kit import (
    HANG_SECONDS,
    LEGACY,
    MODERN,
    Served,
    connect_http,
    make_rpc,
    read_body,
    run,
    serve_room,
)
from tests.support.model import link_model
from tests.support.policy.base import make_policy_pdf

pytestmark = pytest.mark.anyio

REFERENCE = "25/01178/REM"
SPRING = ["Development should provide one covered cycle parking space for each home."]
WINTER = ["Development should provide two covered cycle parking spaces for each home."]
STATEMENT = ["The scheme provides 200 covered cycle parking spaces beside the square."]


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, emulated: Upstream, policies: Path
) -> Iterator[Served]:
    """All bases in one process, each with something to find."""
    data = link_model(tmp_path_factory.mktemp("room") / "data")
    shutil.copytree(policies, data / "policy")
    load_files(data, _write_world(data.parent / "world"), embed=False)
    applications = ApplicationStore(data / "documents" / "applications.db")
    applications.update_application(
        REFERENCE, {"validation_date": date(2024, 5, 1)}, datetime.now(UTC)
    )
    with serve_room(data=data, env={"GOVUK_BASE_URL": emulated.url}) as server:
        anyio.run(_add_application, server)
        yield server


def _write_world(folder: Path) -> Path:
    write_world(folder, bills=5)
    return folder


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a policy base with one policy in two revisions, to be copied."""
    data = link_model(tmp_path_factory.mktemp("policies") / "data")
    run_command(
        "policy",
        "add",
        "NPPF",
        "--title",
        "National Policy",
        "--category",
        "national_policy",
        data=data,
    )
    for label, start, words in (("Spring", "2024-03-01", SPRING), ("Winter", "2024-12-12", WINTER)):
        file = data.parent / f"{label}.pdf"
        file.write_bytes(make_policy_pdf([("Promoting sustainable transport", words)]))
        run_command(
            "policy", "revise", "NPPF", str(file), "--label", label, "--from", start, data=data
        )
    return data / "policy"


async def _add_application(served: Served) -> None:
    """One document of an application."""
    papers = served.data / "documents" / "inbox"
    papers.mkdir(parents=True, exist_ok=True)
    paper = papers / "Transport_Statement.pdf"
    paper.write_bytes(make_policy_pdf([("Cycling", STATEMENT)]))
    async with connect_http(served.url + "/mcp") as client:
        asked = {"file_path": str(paper), "application_ref": REFERENCE}
        assert read_body(await client.call_tool("ingest_document", asked))["status"] == "success"


def run_command(*args: str, data: Path) -> None:
    ended = run(*args, "--data", str(data))
    assert ended.returncode == 0, ended.stderr


async def ask_tool(served: Served, name: str, wire: str = MODERN, **arguments: Any) -> Any:
    async with connect_http(served.url + "/mcp", wire) as client:
        return await client.call_tool(name, arguments)


# --- search and fetch ---


@requirement("room:desk")
@pytest.mark.parametrize("wire", [LEGACY, MODERN])
async def test_one_search_covers_every_base_and_every_result_can_be_fetched(
    served: Served, wire: str
) -> None:
    async with connect_http(served.url + "/mcp", wire) as client:
        for query, base in (
            ("covered cycle parking for each home", "policy"),
            ("spaces beside the square", "documents"),
            ("prepare a charity annual return", "guidance"),
            ("Grafana data sources", "text"),
            ("airport noise near schools", "federal"),
        ):
            # The packaged text is searched only by name: the other records are somebody's own.
            named = {"source": "text"} if base == "text" else {}
            found = read_body(await client.call_tool("search", {"query": query, **named}))
            whole = ["documents", "federal", "guidance", "policy"]
            assert found["searched"] == (["text"] if named else whole)
            assert found["notes"] == []
            assert found["results"][0]["base"] == base, (query, found["results"][:2])
            for hit in found["results"]:
                assert hit["url"] and hit["citation"]["citation_string"]
                record = read_body(await client.call_tool("fetch", {"id": hit["id"]}))
                assert record["id"] == hit["id"]
                assert record["base"] == hit["base"]
                assert record["text"]


@requirement("room:desk")
async def test_the_packaged_text_stays_out_of_what_is_not_the_sample(served: Served) -> None:
    query = "monitoring dashboards and alerts in Grafana"
    found = read_body(await ask_tool(served, "search", query=query))
    assert "text" not in {hit["base"] for hit in found["results"]}
    named = read_body(await ask_tool(served, "search", query=query, source="text"))
    assert [hit["base"] for hit in named["results"]] == ["text"]
    content = read_body(await ask_tool(served, "get_kb_content"))
    assert "Grafana" in content["content"]


@requirement("room:desk")
async def test_a_source_narrows_the_search(served: Served) -> None:
    whole = read_body(await ask_tool(served, "search", query="cycle parking", source="policy"))
    assert {hit["base"] for hit in whole["results"]} == {"policy"}
    assert [excluded["base"] for excluded in whole["excluded"]] == [
        "documents",
        "federal",
        "guidance",
        "text",
    ]
    rules = read_body(
        await ask_tool(served, "search", query="airport noise", source=["rules", "text"])
    )
    assert {hit["source"] for hit in rules["results"]} == {"federal_register"}
    refused = await ask_tool(served, "search", query="x", source="nowhere")
    assert refused.is_error
    assert "policy" in refused.meta["hint"]["valid_sources"]
    assert "bills" in refused.meta["hint"]["valid_sources"]


@requirement("room:desk")
async def test_the_date_decides_which_revision_answers(served: Served) -> None:
    for day, said in (("2024-05-01", "one covered"), ("2025-01-01", "two covered")):
        found = read_body(
            await ask_tool(served, "search", query="cycle parking", source="policy", date=day)
        )
        assert all(said in hit["snippet"] for hit in found["results"] if "cycle" in hit["snippet"])
        days = found["results"][0]["in_force"]
        assert days["effective_from"] <= day
        assert days["effective_to"] is None or day <= days["effective_to"]


@requirement("room:desk")
async def test_a_past_month_in_the_question_brings_the_revision_of_that_day(served: Served) -> None:
    query = "covered cycle parking for each home in the NPPF of May 2024"
    found = read_body(await ask_tool(served, "search", query=query, source="policy"))
    snippets = " ".join(hit["snippet"] for hit in found["results"])
    assert "one covered" in snippets and "two covered" in snippets
    today = read_body(
        await ask_tool(served, "search", query="covered cycle parking", source="policy")
    )
    assert not any("one covered" in hit["snippet"] for hit in today["results"])


async def test_pages_of_a_search_follow_each_other_to_the_end(served: Served) -> None:
    ids: list[str] = []
    totals = set()
    offset: int | None = 0
    async with connect_http(served.url + "/mcp") as client:
        while offset is not None:
            asked = {"query": "cycle parking policy", "limit": 3, "offset": offset}
            page = read_body(await client.call_tool("search", asked))
            assert page["notes"] == []
            ids += [hit["id"] for hit in page["results"]]
            totals.add(page["total"])
            offset = page["next_offset"]
    assert len(set(ids)) == len(ids) > 6
    assert totals == {len(ids)}


async def test_blanks_are_no_question(served: Served) -> None:
    async with connect_http(served.url + "/mcp") as client:
        with pytest.raises(MCPError, match="query"):
            await client.call_tool("search", {"query": "   "})
        with pytest.raises(MCPError, match="topic"):
            blank = {"application_ref": REFERENCE, "topic": " "}
            await client.call_tool("assess_against_policy", blank)


async def test_an_id_that_names_nothing_is_told_apart_from_one_that_is_none(
    served: Served,
) -> None:
    unknown = await ask_tool(served, "fetch", id="policy:NPPF__nowhere__000")
    assert unknown.meta["error_code"] == "record_not_found"
    malformed = await ask_tool(served, "fetch", id="policy:a b@c d#e")
    assert malformed.meta["error_code"] in ("record_not_found", "unrecognized_id_format")
    none = await ask_tool(served, "fetch", id="what is this?")
    assert none.meta["error_code"] == "unrecognized_id_format"
    assert any(one.startswith("policy:") for one in none.meta["hint"]["valid_prefixes"])
    assert (await ask_tool(served, "fetch", id="text:other")).meta[
        "error_code"
    ] == "record_not_found"


@requirement("room:desk")
async def test_a_heading_is_no_answer_and_is_still_a_section(served: Served) -> None:
    title = "Promoting sustainable transport"
    for day, said in (("2024-05-01", "one covered"), ("2025-01-01", "two covered")):
        found = read_body(await ask_tool(served, "search", query=title, source="policy", date=day))
        assert said in found["results"][0]["snippet"]
        assert not any(hit["snippet"].endswith(title) for hit in found["results"])
    question = {"source": "NPPF", "section_ref": "Chapter 1"}
    section = read_body(await ask_tool(served, "get_policy_section", **question))
    assert title in section["text"] and "two covered" in section["text"]
    hits = read_body(await ask_tool(served, "search_policy", query=title, mode="lexical"))[
        "results"
    ]
    assert any(hit["text"].endswith(title) for hit in hits)


def test_a_title_is_told_from_a_sentence() -> None:
    assert is_heading_only("Chapter 9: Promoting sustainable transport")
    assert is_heading_only("9. Promoting\nsustainable transport")
    assert not is_heading_only("9. Transport is considered from the first sketch.")
    assert not is_heading_only("He said “no.”")
    assert not is_heading_only("Lane\nwidth\n2.0 m")
    assert not is_heading_only("a part of a long paragraph that was cut in the middle " * 5)


@requirement("room:desk")
async def test_a_base_that_is_down_is_a_note(served: Served, emulated: Upstream) -> None:
    emulated.emulator.apply_fault = failing(500)
    try:
        found = read_body(await ask_tool(served, "search", query="a question never asked before"))
    finally:
        emulated.reset()
    assert "guidance" not in found["searched"]
    assert [note["base"] for note in found["notes"]] == ["guidance"]
    assert "policy" in found["searched"]


async def test_the_bases_own_faces_keep_their_own_search(served: Served) -> None:
    async with connect_http(served.url + "/federal/mcp") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert "date" not in tools["search"].input_schema["properties"]
    async with connect_http(served.url + "/mcp") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
    assert len(names) == len(set(names))
    assert {"search", "fetch", "assess_against_policy", "lexical_search"} <= set(names)


# --- an application beside its policy ---


@requirement("room:desk")
async def test_an_application_stands_beside_the_policy_of_its_day(served: Served) -> None:
    answer = read_body(
        await ask_tool(
            served, "assess_against_policy", application_ref=REFERENCE, topic="cycle parking"
        )
    )
    assert (answer["date"], answer["date_from"]) == ("2024-05-01", "validation_date")
    assert "200 covered cycle parking" in answer["application"][0]["snippet"]
    assert any("one covered cycle" in hit["snippet"] for hit in answer["policy"])
    assert not any("two covered cycle" in hit["snippet"] for hit in answer["policy"])
    later = read_body(
        await ask_tool(
            served,
            "assess_against_policy",
            application_ref=REFERENCE,
            topic="cycle parking",
            date="2025-01-01",
        )
    )
    assert any("two covered cycle" in hit["snippet"] for hit in later["policy"])


@requirement("room:desk")
async def test_without_a_day_nothing_is_assessed(served: Served) -> None:
    told = await ask_tool(served, "assess_against_policy", application_ref="99/1/X", topic="cycles")
    assert told.meta["error_code"] == "validation_date_unknown"
    assert told.meta["hint"]["use_tool"] == "set_application"
    address = "/applications/beside?ref=99/1/X&topic=cycles"
    refused = served.get(address, Accept="text/html")
    assert refused.status_code == 422
    assert read_form(refused.text, "/applications/beside") == {
        "ref": "99/1/X", "topic": "cycles", "date": ""
    }  # fmt: skip
    assert 'href="/applications/view?ref=99%2F1%2FX"' in refused.text
    shown = served.get(f"{address}&date=2024-05-01", Accept="text/html")
    assert shown.status_code == 200
    assert f"Policy as in force on {format_day('2024-05-01')}" in shown.text
    told_program = served.get(f"{address}&format=json")
    assert told_program.status_code == 422
    assert told_program.json()["error"]["code"] == "validation_date_unknown"


@requirement("room:console")
def test_what_two_people_write_to_one_field_is_shown_and_not_lost(served: Served) -> None:
    reference = "26/2/FUL"
    stored = {"address": "1 High Street"}
    applications = ApplicationStore(served.data / "documents" / "applications.db")
    applications.update_application(reference, stored, datetime.now(UTC))
    page = f"/applications/view?ref={reference}"
    first, second = (
        read_form(served.get(page, Accept="text/html").text, "/applications/change")
        for _ in range(2)
    )
    with httpx2.Client(
        base_url=served.url,
        headers={"Accept": "text/html", "Origin": served.url},
        timeout=HANG_SECONDS,
        trust_env=False,
    ) as client:
        accepted = client.post("/applications/change", data={**first, "address": "2 High Street"})
        refused = client.post("/applications/change", data={**second, "address": "3 High Street"})
        assert (accepted.status_code, refused.status_code) == (303, 409)
        assert "is now “2 High Street”" in refused.text
        again = read_form(refused.text, "/applications/change")
        assert again["address"] == "3 High Street"
        assert client.post("/applications/change", data=again).status_code == 303
    application = applications.find_application(reference)
    assert application is not None
    assert application.address == "3 High Street"


# --- prompts and resources ---


@requirement("room:prompts")
async def test_prompts_name_tools_that_are_there(served: Served) -> None:
    filled = {"application_ref": REFERENCE, "source": "NPPF", "from_date": "2024-05-01",
              "to_date": "2025-01-01", "bill_id": "hr:119:1", "question": "Reserves?"}  # fmt: skip
    async with connect_http(served.url + "/mcp") as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        prompts = (await client.list_prompts()).prompts
        assert len(prompts) == 4
        for prompt in prompts:
            given = {blank.name: filled[blank.name] for blank in prompt.arguments if blank.required}
            (message,) = (await client.get_prompt(prompt.name, given)).messages
            words = {word.strip(".,:;()`") for word in message.content.text.split()}
            assert {word for word in words if "_" in word} - {"next_offset", "more_url"} <= tools
            assert all(value in message.content.text for value in given.values())
        with pytest.raises(MCPError, match="needs"):
            await client.get_prompt("brief_on_bill", {})


@requirement("room:desk")
async def test_a_search_in_an_application_that_nobody_knows_says_so(served: Served) -> None:
    asked_for = {"query": "cycle parking", "application_ref": "99/1/X"}
    unknown = (await ask_tool(served, "search", **asked_for)).structured_content
    known = await ask_tool(served, "search", **{**asked_for, "application_ref": REFERENCE})
    (note,) = unknown["notes"]
    assert (note["base"], note["code"]) == ("documents", "record_not_found")
    assert "nothing is known of an application with this reference (99/1/X)" in note["message"]
    assert known.structured_content["notes"] == []


@requirement("room:desk", "room:bounds")
@pytest.mark.parametrize("reference", [" ", "\x00", "a\r\nb", "x" * 101])
async def test_a_reference_that_can_be_none_is_refused_by_the_desk_itself(
    served: Served, reference: str
) -> None:
    asked_for = {"query": "cycle parking", "application_ref": reference}
    async with connect_http(served.url + "/mcp") as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("search", asked_for)
    assert refused.value.error.code == -32602


@requirement("room:resources")
@pytest.mark.parametrize("cursor", ["abc", "9" * 5000, "-1", "٣", "1.5", "0", "", "1", "0100"])
async def test_a_cursor_that_no_list_gave_out_is_invalid(served: Served, cursor: str) -> None:
    errors = len([line for line in served.lines() if line["level"] == "ERROR"])
    async with connect_http(served.url + "/mcp") as client:
        with pytest.raises(MCPError) as refused:
            await client.list_resources(cursor=cursor)
        assert (await client.list_resources()).resources
    assert refused.value.error.code == -32602
    assert len([line for line in served.lines() if line["level"] == "ERROR"]) == errors


@requirement("room:resources")
async def test_resources_are_listed_read_and_completed(served: Served) -> None:
    async with connect_http(served.url + "/mcp") as client:
        listed = (await client.list_resources()).resources
        assert any(one.title == "Transport_Statement.pdf" for one in listed)
        for one in listed:
            (said,) = (await client.read_resource(one.uri)).contents
            assert said.text
        section = "readingroom://policy/NPPF/rev_NPPF_2024_03/Para%201"
        (said,) = (await client.read_resource(section)).contents
        assert "one covered cycle" in said.text
        (page,) = (await client.read_resource(f"readingroom://guidance{RETURN}")).contents
        assert "gov.uk" in page.text
        with pytest.raises(MCPError):
            await client.read_resource("readingroom://policy/NPPF/rev_NPPF_1999_01/Para%201")
        with pytest.raises(MCPError):
            await client.read_resource("file:///etc/passwd")


@requirement("room:host-extras")
@pytest.mark.parametrize("wire", [LEGACY, MODERN])
async def test_answers_link_to_resources_that_can_be_read(served: Served, wire: str) -> None:
    asked = {"source": "NPPF", "section_ref": "Para 1", "date": "2024-06-01"}
    async with connect_http(served.url + "/mcp", wire) as client:
        for tool, arguments in (
            ("get_policy_section", asked),
            ("list_policy_revisions", {"source": "NPPF"}),
            ("application_overview", {"application_ref": REFERENCE}),
        ):
            answer = await client.call_tool(tool, arguments)
            text, *links = answer.content
            assert json.loads(text.text) == answer.structured_content
            assert links
            for link in links:
                assert link.type == "resource_link"
                assert link.title
                (content,) = (await client.read_resource(link.uri)).contents
                assert content.text
        searched = await client.call_tool("search", {"query": "cycle parking"})
        assert len(searched.content) == 1
    # A face without resources has nothing to link to.
    async with connect_http(served.url + "/policy/mcp", wire) as client:
        assert len((await client.call_tool("get_policy_section", asked)).content) == 1


@requirement("room:host-extras")
async def test_a_client_older_than_links_gets_none(served: Served) -> None:
    headers = {"Accept": "application/json, text/event-stream"}
    opening = {
        "protocolVersion": "2025-03-26",
        "capabilities": {},
        "clientInfo": {"name": "old", "version": "0"},
    }
    call = {"name": "list_policy_revisions", "arguments": {"source": "NPPF"}}
    async with httpx2.AsyncClient(
        base_url=served.url, headers=headers, timeout=HANG_SECONDS, trust_env=False
    ) as web:
        started = await web.post("/mcp", json=make_rpc("initialize", opening))
        web.headers["Mcp-Session-Id"] = started.headers["mcp-session-id"]
        await web.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        answered = await web.post("/mcp", json=make_rpc("tools/call", call, 2))
    assert "rev_NPPF_2024_03" in answered.text
    assert "resource_link" not in answered.text


@requirement("room:host-extras")
@pytest.mark.parametrize("wire", [LEGACY, MODERN])
async def test_hosts_are_given_an_icon_of_ours(served: Served, wire: str) -> None:
    async with connect_http(served.url + "/mcp", wire) as client:
        (icon,) = client.server_info.icons or []
    assert icon.mime_type == "image/svg+xml"
    data = base64.b64decode(icon.src.removeprefix("data:image/svg+xml;base64,"), validate=True)
    assert data == (Path(assets.__file__).parent / "assets" / "icon.svg").read_bytes()


@requirement("room:prompts", "room:resources")
async def test_blanks_are_completed_from_what_is_there(served: Served) -> None:
    async with connect_http(served.url + "/mcp") as client:
        templates = (await client.list_resource_templates()).resource_templates
        section = next(one for one in templates if one.name == "policy_section")

        async def ends(name: str, begun: str, **filled: str) -> list[str]:
            found = await client.complete(
                {"type": "ref/resource", "uri": section.uri_template},
                {"name": name, "value": begun},
                context_arguments=filled,
            )
            return found.completion.values

        assert await ends("source", "np") == ["NPPF"]
        assert await ends("revision_id", "rev_", source="NPPF") == [
            "rev_NPPF_2024_12",
            "rev_NPPF_2024_03",
        ]
        prompt = {"type": "ref/prompt", "name": "review_application"}
        begun = {"name": "application_ref", "value": "25/"}
        assert (await client.complete(prompt, begun)).completion.values == [REFERENCE]
        assert "Para 1" in await ends(
            "section_ref", "para", source="NPPF", revision_id="rev_NPPF_2024_12"
        )
        assert await ends("revision_id", "rev_", source="NOWHERE") == []
        assert all(one.startswith("hr:") for one in await ends("id", "hr:"))


# --- pages for people, and the shell ---


async def test_a_citation_leads_to_a_page(served: Served) -> None:
    found = read_body(await ask_tool(served, "search", query="cycle parking", source="policy"))
    page = served.get(found["results"][0]["url"].removeprefix(served.url))
    assert page.status_code == 200
    assert "cycle parking" in page.text
    (hit,) = found["results"][:1]
    assert f'<span class="citation">{hit["citation"]["citation_string"]}</span>' in page.text
    assert f"In force since {format_day(hit['in_force']['effective_from'])}." in page.text
    assert f"<code>{hit['id']}</code>" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert served.get("/read?id=policy:nothing").status_code == 404
    assert served.get("/read").status_code == 422
    assert served.get("/read?id=text:kb&offset=x").status_code == 422


@requirement("room:pages")
@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("/read?id=policy:nothing", 404, "search for it again"),
        ("/read?id=policy:NPPF@rev_NPPF_2024_12%23Para%2099", 404, "Nearest to it: <code>Para"),
        ("/read?id=what%20is%20this", 422, "Ids look like <code>doc:"),
        ("/read", 422, "An address here is"),
        ("/read?id=%3Cscript%3E", 422, "&lt;script&gt;"),
    ],
)
async def test_a_person_who_cannot_be_shown_a_page_is_told_what_to_do(
    served: Served, address: str, status: int, said: str
) -> None:
    browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    page = served.get(address, Accept=browser)
    assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert said in page.text and "<script>" not in page.text
    assert page.headers["x-request-id"] in page.text
    told = served.get(address, Accept="application/json")
    assert told.status_code == status
    assert told.json()["error"]["code"] in page.text


@requirement("room:pages")
async def test_the_page_of_rest_has_every_operation_and_needs_no_other_host(
    served: Served,
) -> None:
    page = served.get("/docs")
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert not re.search(r"""<script>|https?://|@import|(src|href)="(?!/|#main)""", page.text)
    described = served.get("/openapi.json").json()["paths"]
    operations = [f"{name.upper()} {path}" for path, of in described.items() for name in of]
    assert len(operations) > 80
    assert all(f"<code>{operation}</code>" in page.text for operation in operations)
    assert (
        "<code>GET /v1/bills/{id}/cosponsors</code> Who cosponsored a bill</summary>" in page.text
    )
    assert "<td>house | senate | joint</td>" in page.text
    assert served.get("/redoc").status_code == 404
    assert "/docs" in served.get("/", Accept="text/html").text


async def test_ask_goes_to_the_server_that_has_the_bases(served: Served) -> None:
    ended = run("ask", "how much cycle parking for each home?", "--on", "2024-05-01",
                "--data", str(served.data), anew=True)  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "NPPF (Spring), Para 1, p. 1" in ended.stdout
    assert "in force from 2024-03-01 to 2024-12-11" in ended.stdout
    wrong = run("ask", "x", "--on", "yesterday", "--data", str(served.data))
    assert wrong.returncode == 2
    assert "--on" in wrong.stderr


async def test_ask_opens_the_bases_itself_when_nobody_serves_them(
    tmp_path: Path, emulated: Upstream, policies: Path
) -> None:
    shutil.copytree(policies, link_model(tmp_path / "data") / "policy")
    ended = run("ask", "cycle parking", "--json", "--data", str(tmp_path / "data"),
                env={"GOVUK_BASE_URL": emulated.url})  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout)
    assert answer["results"][0]["base"] == "policy"
    assert answer["notes"] == []
    refused = run("ask", "x", "--source", "nowhere", "--data", str(tmp_path / "data"))
    assert (refused.returncode, refused.stderr) == (
        2,
        "Error: --source: There is no base or source 'nowhere'\n",
    )
    assert {path.name for path in (tmp_path / "data").iterdir()} == {"models", "policy"}


# --- parts ---


async def test_a_late_base_does_not_hold_the_others_up() -> None:
    release = anyio.Event()

    async def slow() -> int:
        await release.wait()
        return 1

    async def quick() -> int:
        return 2

    async def broken() -> int:
        raise RuntimeError("a secret")

    async def refusing() -> int:
        raise RecordNotFound("not here")

    board = FanOut(deadline_seconds=0.05)
    async with board.run_calls_inside():
        heard = await board.call_all_bases(
            {"slow": slow, "quick": quick, "broken": broken, "refusing": refusing}
        )
        assert heard.answers_by_base == {"quick": 2}
        codes = {note.base: note.code for note in heard.notes}
        assert codes == {
            "slow": "base_silent",
            "broken": "internal",
            "refusing": "record_not_found",
        }
        assert "secret" not in str(heard.notes)
        for _ in range(10):
            await board.call_all_bases({"slow": slow})
        refused = await board.call_all_bases({"slow": slow, "quick": quick})
        assert "last calls" in refused.notes[0].message
        release.set()
        await anyio.wait_all_tasks_blocked()
        assert (await board.call_all_bases({"slow": slow})).answers_by_base == {"slow": 1}


def test_ids_say_which_base_they_belong_to(tmp_path: Path) -> None:
    base_of = make_federated_base(
        (), load_settings({"data": tmp_path}, {})
    ).service.get_base_name_of_id
    assert base_of("policy:NPPF@rev#Para 1") == "policy"
    assert base_of("doc:25_01178_REM_a1b2c3#page=4") == "documents"
    assert base_of("guidance:/x") == "guidance"
    assert base_of("text:kb") == "text"
    assert base_of("hr:119:1") == base_of("S000033") == "federal"
    assert parse_section_id("policy:NPPF@rev_1#Para 116") == ("NPPF", "rev_1", "Para 116")
    assert parse_section_id("policy:NPPF__rev__Para_1__001") is None


def test_of_a_short_text_all_passages_are_compared_of_a_long_one_those_with_the_words() -> None:
    text = "Alerts are sent by mail.\n\n" + "Filler. " * 200 + "\n\nRoles: viewer, editor, admin."
    passages = find_passages("viewer and editor roles", text)
    assert "Roles" in passages[0][0]
    assert passages[0][1] == 1
    assert any("mail" in passage for passage, _ in passages)
    long_text = f"{'Filler. ' * 2000}\n\nRoles: viewer, editor, admin."
    assert len(find_passages("viewer and editor roles", long_text)) == 1
    assert find_passages("cycle parking standards", long_text) == []
    assert find_passages("?", "") == []
    # A passage may have more words than a question: its last ones count too.
    dense_text = " ".join(f"w{number}" for number in range(120)) + " editor"
    assert find_passages("editor", dense_text)[0][1] == 1
