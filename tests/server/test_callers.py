"""Work for a request knows its caller, over REST and MCP, so that callers can share fairly."""

from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from readingroom.core.ids import current_caller_id
from readingroom.storage.keys import KeyRing
from tests.requirements import requirement
from tests.support.kit import LEGACY, MODERN, POST, choose_mode, make_app, make_rpc, open_app_client
from tests.support.specimen import make_specimen

pytestmark = pytest.mark.anyio


async def ask(web: httpx2.AsyncClient, wire: str) -> None:
    """Have the base list its notes."""
    if wire == "REST":
        assert (await web.get("/specimen/v1/notes")).status_code == 200
    elif wire == MODERN:
        transport = streamable_http_client("http://127.0.0.1/mcp", http_client=web)
        async with Client(transport, mode=choose_mode(wire)) as client:
            await client.list_tools()
    else:
        client_info = {"name": "test", "version": "1"}
        hello = {"protocolVersion": wire, "capabilities": {}, "clientInfo": client_info}
        opened = await web.post("/mcp", json=make_rpc("initialize", hello), headers=POST)
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        listed = await web.post("/mcp", json=make_rpc("tools/list"), headers={**POST, **session})
        assert listed.status_code == 200, listed.text


@requirement("ingest:sandbox:callers")
@pytest.mark.parametrize("wire", ["REST", LEGACY, MODERN])
async def test_work_for_a_request_knows_its_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wire: str
) -> None:
    base = make_specimen(folder=tmp_path)
    keys = {name: KeyRing(tmp_path).add_key(name) for name in ("ann", "bob")}
    seen: list[str] = []
    list_notes = base.service.all

    def note_caller() -> list[str]:
        seen.append(current_caller_id.get())
        return list(list_notes())

    monkeypatch.setattr(base.service, "all", note_caller)
    async with open_app_client(make_app(base, data=tmp_path)) as web:
        for name in ("ann", "bob"):
            web.headers["Authorization"] = f"Bearer {keys[name]}"
            await ask(web, wire)

    assert [*dict.fromkeys(seen)] == ["key:ann", "key:bob"]
