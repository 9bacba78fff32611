"""The policy base over REST and MCP, served by a real process."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.requirements import requirement
from tests.server.test_auth import INITIALIZE
from tests.support.kit import (
    HANG_SECONDS,
    POST,
    Served,
    connect_http,
    connect_sse,
    make_rpc,
    read_body,
    serve_room,
)
from tests.support.model import link_model
from tests.support.policy.base import make_brief_pdf

pytestmark = pytest.mark.both_engines("full")

POLICY = {
    "source": "NPPF",
    "title": "National Planning Policy Framework",
    "category": "national_policy",
}
SPEC_TOOLS = {
    *("search_policy", "get_policy_section", "list_policy_documents", "list_policy_revisions"),
    *("ingest_policy_revision", "remove_policy_revision"),
}


@pytest.fixture(scope="module")
def served(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`readingroom serve policy` with two revisions of one policy."""
    data = link_model(tmp_path_factory.mktemp("data"))
    with serve_room("policy", data=data) as served:
        assert post(served, "/policies", json=POLICY).status_code == 201
        for label, start in [("September 2023", "2023-09-05"), ("December 2024", "2024-12-12")]:
            answer = upload(served, label, start)
            assert answer.status_code == 202, answer.text
            assert (
                wait_until_settled(served, answer.json()["links"]["status"])["status"] == "active"
            )
        yield served


def post(served: Served, path: str, **sent: Any) -> httpx2.Response:
    return httpx2.post(f"{served.url}/api/v1{path}", timeout=300, trust_env=False, **sent)


def get(served: Served, path: str) -> httpx2.Response:
    return served.get(f"/api/v1{path}")


def upload(
    served: Served, label: str, start: str, content: bytes = b"", name: str = "p.pdf", **more: str
) -> httpx2.Response:
    return post(
        served,
        "/policies/NPPF/revisions",
        files={"file": (name, content or make_brief_pdf(label), "application/pdf")},
        data={"version_label": label, "effective_from": start, **more},
    )


def wait_until_settled(served: Served, path: str) -> dict[str, Any]:
    deadline = time.monotonic() + HANG_SECONDS
    while time.monotonic() < deadline:
        status: dict[str, Any] = served.get(path).json()
        if status["status"] != "processing":
            return status
        time.sleep(0.1)
    raise AssertionError(f"still processing: {status}")


WRONG = (422, "validation_error")


def read_status_and_code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@requirement("policy:rest", "policy:FR-007:auto")
def test_defect_7_an_upload_is_ingested_without_another_word_and_supersedes(served: Served) -> None:
    policy = get(served, "/policies/NPPF").json()
    assert (policy["revision_count"], policy["current_revision"]["version_label"]) == (
        2,
        "December 2024",
    )
    newest, oldest = policy["revisions"]
    assert (newest["status"], oldest["status"], oldest["effective_to"]) == (
        "active",
        "superseded",
        "2024-12-11",
    )
    status = get(served, f"/policies/NPPF/revisions/{newest['revision_id']}/status").json()
    assert status["progress"]["percent_complete"] == 100
    assert get(served, "/policies?category=local_plan").json() == {"policies": [], "total": 0}
    assert get(served, "/policies?source=pp").json()["total"] == 1


@requirement("policy:rest")
def test_errors_have_the_contracts_codes(served: Served) -> None:
    revisions = "/policies/NPPF/revisions"
    assert read_status_and_code(post(served, "/policies", json=POLICY)) == (
        409,
        "policy_already_exists",
    )
    assert read_status_and_code(post(served, "/policies", json={**POLICY, "source": "x"})) == WRONG
    assert read_status_and_code(get(served, "/policies/NOBODY")) == (404, "policy_not_found")
    assert read_status_and_code(get(served, f"{revisions}/rev_x")) == (404, "revision_not_found")
    for page in ("/policies/NPPF/%2e%2e/pages/1.webp", "/policies/%2e%2e/%2e%2e/pages/1.webp"):
        assert served.get(page).status_code == 404, page
        assert (
            get(served, page.replace("/%2e%2e/pages", "/revisions/%2e%2e/pages")).status_code == 404
        )
    for day in ("2024", "2024-02-30", "", "x" * 50):
        effective = get(served, f"/policies/effective?date={day}")
        assert read_status_and_code(effective) == (400, "invalid_effective_date")
    assert read_status_and_code(get(served, "/policies/effective")) == WRONG
    for path in ("/policies?kind=local_plan", "/policies/NPPF?on=2024-01-01"):
        unknown = get(served, path)
        assert read_status_and_code(unknown) == WRONG
        assert path.partition("?")[2].partition("=")[0] in unknown.json()["error"]["message"]
    assert read_status_and_code(post(served, "/policies?draft=1", json=POLICY)) == WRONG
    assert read_status_and_code(upload(served, "December 2023", "2023-12-19")) == (
        409,
        "revision_overlap",
    )
    assert read_status_and_code(upload(served, "x", "2026-01-01", b"hello")) == (
        422,
        "unsupported_file_type",
    )
    assert read_status_and_code(upload(served, "x", "2026-01-01", name="x.txt")) == (
        422,
        "unsupported_file_type",
    )
    assert read_status_and_code(upload(served, "x", "20260101")) == WRONG
    assert (
        read_status_and_code(upload(served, "x", "2026-01-02", effective_to="2026-01-01")) == WRONG
    )
    revision = f"{served.url}/api/v1{revisions}/rev_NPPF_2023_09"
    ends_early = {"effective_to": "2020-01-01"}
    assert (
        read_status_and_code(httpx2.patch(revision, json=ends_early, timeout=300, trust_env=False))
        == WRONG
    )
    broken = post(served, "/policies", content=b"{", headers={"Content-Type": "application/json"})
    assert (read_status_and_code(broken), broken.json()["error"]["hint"]["errors"][0]["field"]) == (
        WRONG,
        "body",
    )
    large = b"%PDF-" + b"x" * (51 * 1024 * 1024)
    assert read_status_and_code(upload(served, "x", "2026-01-01", large)) == (422, "file_too_large")
    delete = httpx2.delete(
        f"{served.url}/api/v1{revisions}/rev_NPPF_2024_12", timeout=300, trust_env=False
    )
    assert read_status_and_code(delete) == (409, "cannot_delete_sole_revision")


@requirement("policy:rest")
def test_half_a_character_is_refused_where_it_stands(served: Served) -> None:
    for field in ("title", "description", "\ud800"):
        sent = json.dumps({**POLICY, "source": "HALF", field: "\ud800"})
        headers = {"Content-Type": "application/json"}
        answer = post(served, "/policies", content=sent, headers=headers)
        assert read_status_and_code(answer) == WRONG, field
        assert answer.json()["error"]["hint"]["errors"][0]["field"] in (field, "body")


@requirement("policy:rest")
def test_what_was_in_force_on_a_day(served: Served) -> None:
    answer = get(served, "/policies/effective?date=2024-01-01").json()
    (policy,) = answer["policies"]
    assert policy["effective_revision"]["revision_id"] == "rev_NPPF_2023_09"
    early = get(served, "/policies/effective?date=1999-01-01").json()
    assert early["policies_not_yet_effective"] == ["NPPF"]


@requirement("policy:rest", "policy:FR-008:delete")
def test_a_failed_upload_says_so_and_can_be_deleted_or_tried_again(served: Served) -> None:
    answer = upload(served, "Broken", "2026-08-01", b"%PDF-1.4 broken")
    links = answer.json()["links"]
    assert wait_until_settled(served, links["status"])["status"] == "failed"
    assert served.get(links["self"]).json()["error"]
    assert get(served, "/policies/NPPF").json()["revisions"][1]["status"] == "active"
    again = httpx2.post(f"{served.url}{links['self']}/reindex", timeout=300, trust_env=False)
    assert again.status_code == 202
    assert wait_until_settled(served, links["status"])["status"] == "failed"
    gone = httpx2.delete(served.url + links["self"], timeout=300, trust_env=False)
    assert gone.json()["status"] == "deleted"
    assert get(served, "/policies/NPPF").json()["current_revision"]["effective_to"] is None


@requirement("policy:formats", "policy:delete")
def test_a_text_is_uploaded_and_its_policy_deleted_once_it_is_confirmed(served: Served) -> None:
    assert post(served, "/policies", json={**POLICY, "source": "NOTES"}).status_code == 201
    accepted = post(
        served,
        "/policies/NOTES/revisions",
        files={
            "file": (
                "notes.md",
                b"# Policy H1: Homes\n\nNew homes are permitted in the towns of the district.\n",
            )
        },
        data={"version_label": "One", "effective_from": "2020-01-01"},
    )
    assert accepted.status_code == 202, accepted.text
    assert wait_until_settled(served, accepted.json()["links"]["status"])["status"] == "active"
    section = get(served, "/policies/NOTES/section?ref=Policy%20H1").json()
    assert section["text"].endswith("New homes are permitted in the towns of the district.")
    picture = get(
        served, accepted.json()["links"]["self"].removeprefix("/api/v1") + "/pages/1.webp"
    )
    assert read_status_and_code(picture) == (422, "unsupported_file_type")

    def delete(query: str) -> httpx2.Response:
        url = f"{served.url}/api/v1/policies/NOTES{query}"
        return httpx2.delete(url, timeout=300, trust_env=False)

    assert read_status_and_code(delete("")) == WRONG
    assert read_status_and_code(delete("?confirm=NPPF")) == WRONG
    assert get(served, "/policies/NOTES").status_code == 200
    gone = delete("?confirm=NOTES").json()
    assert (gone["status"], gone["revisions_removed"]) == ("deleted", 1)
    assert read_status_and_code(get(served, "/policies/NOTES")) == (404, "policy_not_found")
    assert read_status_and_code(delete("?confirm=NOTES")) == (404, "policy_not_found")


@requirement("policy:rest")
def test_the_openapi_page_names_every_route(served: Served) -> None:
    paths = served.get("/openapi.json").json()["paths"]
    assert {path: sorted(of) for path, of in paths.items() if path.startswith("/api/v1")} == {
        "/api/v1/policies": ["get", "post"],
        "/api/v1/policies/effective": ["get"],
        "/api/v1/policies/search": ["get"],
        "/api/v1/policies/{source}/compare": ["get"],
        "/api/v1/policies/{source}/section": ["get"],
        "/api/v1/policies/{source}/sections": ["get"],
        "/api/v1/policies/{source}/verify": ["get"],
        "/api/v1/policies/{source}/revisions/{revision_id}/pages/{page}.webp": ["get"],
        "/api/v1/policies/{source}/revisions/{revision_id}/pages/{page}/marks": ["get"],
        "/api/v1/policies/{source}": ["delete", "get", "patch"],
        "/api/v1/policies/{source}/revisions": ["post"],
        "/api/v1/policies/{source}/revisions/{revision_id}": ["delete", "get", "patch"],
        "/api/v1/policies/{source}/revisions/{revision_id}/reindex": ["post"],
        "/api/v1/policies/{source}/revisions/{revision_id}/status": ["get"],
    }
    assert served.get("/docs").status_code == 200


@requirement("policy:tools", "policy:FR-009:endpoints")
@pytest.mark.anyio
async def test_the_tools_answer_over_both_transports(served: Served) -> None:
    asked = {"query": "cycle parking", "effective_date": "2024-12-11"}
    async with connect_http(f"{served.url}/mcp") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        by_http = read_body(await client.call_tool("search_policy", asked))
    async with connect_sse(f"{served.url}/sse") as client:
        assert client.server_info.name == "policy-kb-mcp"
        by_sse = read_body(await client.call_tool("search_policy", asked))
    assert tools.keys() >= SPEC_TOOLS
    assert all(tool.input_schema and tool.output_schema for tool in tools.values())
    assert by_http == by_sse
    assert {hit["revision_id"] for hit in by_http["results"]} == {"rev_NPPF_2023_09"}


@requirement("room:error-shape", "policy:FR-001:invalid-date", "policy:FR-004:unknown")
@pytest.mark.anyio
async def test_defect_5_errors_say_that_they_are_errors_and_have_structure(served: Served) -> None:
    mistakes = [
        ("list_policy_revisions", {"source": "NOBODY"}, "policy_not_found"),
        ("search_policy", {"query": "x", "effective_date": "soon"}, "invalid_date"),
        ("search_policy", {"query": "x", "effective_date": "2024-02-30"}, "invalid_date"),
        ("search_policy", {"query": "x", "effective_date": "x" * 5000}, "invalid_date"),
        ("get_policy_section", {"source": "NPPF", "section_ref": "Para 99"}, "section_not_found"),
        ("search_policy", {"query": ""}, "invalid_arguments"),
        (
            "ingest_policy_revision",
            {"source": "NPPF", "revision_id": "rev_NPPF_2024_12", "file_path": "/etc/passwd"},
            "file_not_found",
        ),
    ]
    async with connect_http(f"{served.url}/mcp") as client:
        for tool, asked, error_type in mistakes:
            told = await client.call_tool(tool, asked)
            assert told.is_error
            assert (read_body(told)["status"], read_body(told)["error_type"]) == (
                "error",
                error_type,
            )


@requirement("policy:FR-009:endpoints")
def test_a_session_is_opened_listened_to_and_ended(served: Served) -> None:
    with httpx2.Client(base_url=served.url, timeout=300, trust_env=False) as web:
        answer = web.post("/mcp", json=INITIALIZE, headers=POST)
        session = {**POST, "Mcp-Session-Id": answer.headers["mcp-session-id"]}
        events = {**session, "Accept": "text/event-stream"}
        with web.stream("GET", "/mcp", headers=events) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
        assert web.post("/mcp", json=make_rpc("tools/list"), headers=session).status_code == 200
        assert web.delete("/mcp", headers=session).status_code == 200
        assert web.post("/mcp", json=make_rpc("tools/list"), headers=session).status_code == 404
        assert web.get("/health").json() == {"status": "ok"}
        assert web.post("/messages/", json=make_rpc("ping")).status_code == 400  # of no session


@requirement("policy:FR-005:shape", "policy:FR-005:reindex")
@pytest.mark.anyio
async def test_an_ingest_tells_its_progress_to_a_caller_that_asks(served: Served) -> None:
    path = served.data / "policy" / "inbox" / "again.pdf"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(make_brief_pdf("September 2023"))
    told: list[tuple[float, float | None, str | None]] = []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    asked = {
        "source": "NPPF",
        "revision_id": "rev_NPPF_2023_09",
        "file_path": str(path),
        "reindex": True,
    }
    async with connect_http(f"{served.url}/mcp") as client:
        answer = read_body(
            await client.call_tool("ingest_policy_revision", asked, progress_callback=hear)
        )
    assert (answer["status"], answer["page_count"]) == ("success", 1)
    assert any("page 1 of 1" in (message or "") for _, _, message in told)
    assert any("embedded" in (message or "") for _, _, message in told)


@requirement("policy:audit")
@pytest.mark.anyio
async def test_the_log_names_the_revisions_that_answered(served: Served) -> None:
    async with connect_http(f"{served.url}/mcp") as client:
        await client.call_tool("search_policy", {"query": "homes", "effective_date": "2024-01-01"})
    lines = [line for line in served.lines() if line["logger"] == "readingroom.policy.audit"]
    assert lines[-1]["revisions"] == ["rev_NPPF_2023_09"]


@requirement("policy:FR-009:endpoints")
def test_alone_it_is_served_on_port_3003(tmp_path: Path) -> None:
    from readingroom.bases import BASES
    from readingroom.settings import load_settings

    policy = BASES["policy"]
    assert policy.get_default_port(load_settings({"data": tmp_path}, {})) == policy.port == 3003
    assert (
        policy.get_default_port(load_settings({"data": tmp_path}, {"POLICY_KB_PORT": "4003"}))
        == 4003
    )


def test_read_only_has_no_route_that_writes(tmp_path: Path) -> None:
    with serve_room("policy", "--read-only", data=tmp_path / "data") as served:
        assert post(served, "/policies", json=POLICY).status_code == 405
        assert get(served, "/policies").json() == {"policies": [], "total": 0}


@requirement("policy:rest")
def test_what_the_tools_read_is_read_over_rest_too(served: Served) -> None:
    found = get(served, "/policies/search?query=paragraph%201&effective_date=2025-01-01").json()
    assert found["results"][0]["exact_reference"] is True
    sections = get(served, "/policies/NPPF/sections?date=2024-01-01").json()
    assert sections["version_label"] == "September 2023"
    assert sections["sections"][0]["section_title"]
    section = get(served, "/policies/NPPF/section?ref=Para%201").json()
    assert section["section_ref"] == "Para 1"
    days = "from_date=2024-01-01&to_date=2025-01-01"
    assert get(served, f"/policies/NPPF/compare?{days}").json()["summary"]["reworded"] >= 1
    words = section["text"].split(maxsplit=1)[1][:40].rsplit(maxsplit=1)[0]
    asked = httpx2.QueryParams({"quote": words, "date": "2025-01-01"})
    assert get(served, f"/policies/NPPF/verify?{asked}").json()["verdict"] == "verified"
    assert get(served, "/policies/NPPF/section?ref=Para%20999").status_code == 404
    pages = f"/policies/NPPF/revisions/{section['revision_id']}/pages"
    picture = get(served, f"{pages}/1.webp?dpi=50")
    assert (picture.status_code, picture.content[8:12]) == (200, b"WEBP")
    assert get(served, "/policies/NPPF/revisions/rev_none/pages/1.webp").status_code == 404
    asked = httpx2.QueryParams({"passage": words})
    marks = get(served, f"{pages}/{section['page_numbers'][0]}/marks?{asked}").json()["marks"]
    assert marks and all(0 <= mark["left"] < mark["right"] <= 1 for mark in marks)
    assert get(served, f"{pages}/1/marks?passage=words%20of%20no%20page").json()["marks"] == []
    assert (
        get(served, f"/policies/NPPF/revisions/rev_none/pages/1/marks?{asked}").status_code == 404
    )
    assert get(served, "/policies/NPPF/verify?quote=x&date=today").status_code == 422
