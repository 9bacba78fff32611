"""What callers are told while the database is away: nothing of where it is."""

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from readingroom.storage.errors import DatabaseUnreachable, find_operator_detail
from readingroom.storage.postgres.database import open_database
from tests.support.kit import POST, Served, make_rpc, run, serve_room
from tests.support.postgres import make_template, run_server
from tests.support.processes import HANG_SECONDS, find_free_port, wait_until

PATHS = (
    "/ready",
    "/v1/bills",
    "/api/v1/policies",
    "/api/v1/applications",
    "/policies",
    "/applications",
    "/records",
    "/search?q=parking",
    "/jobs",
    "/keys",
    "/",
)
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("list_policies", {}),
    ("search_policy", {"query": "cycle parking"}),
    ("search_application_docs", {"query": "bats"}),
    ("resolve_entity", {"query": "Smith", "entity_type": "legislators"}),
    ("search", {"query": "cycle parking"}),
)


def test_no_answer_names_the_host_the_port_or_the_role(tmp_path: Path) -> None:
    port = find_free_port()
    with run_server(port=port) as server:
        make_template(server)
        server.make_room("a_certain_room")
        url = f"postgresql://postgres@127.0.0.1:{port}/a_certain_room"
        env = {"READINGROOM_DATABASE_URL": url}
        with serve_room(data=tmp_path / "data", env=env) as served:
            assert served.get("/ready").status_code == 200
            server.stop()
            wait_until(lambda: served.get("/ready").status_code == 503)
            answers = [(path, *ask(served, path)) for path in PATHS]
            answers += [(name, *call(served, name, arguments)) for name, arguments in CALLS]
            refused = [name for name, status, text in answers if '"code"' in text or status >= 500]
            assert len(refused) >= 6, refused  # the others need no database, or have a copy
            for name, _, text in answers:
                for secret in (f":{port}", f"port {port}", "a_certain_room", "postgres@"):
                    assert secret not in text, (name, text)
                assert not re.search(r"127\.0\.0\.1(?!:\d)|connection to server", text), (
                    name,
                    text,
                )
            assert f"port {port}" in served.log.read_text("utf-8")
        told = run("policy", "list", "--data", str(tmp_path / "shell"), env=env)
        assert told.returncode == 1
        assert f"port {port}" in told.stderr.splitlines()[-1]  # the shell is its operator's


def ask(served: Served, path: str) -> tuple[int, str]:
    headers = {"Accept": "text/html"} if path.count("/") == 1 and path != "/ready" else {}
    answer = served.get(path, **headers)
    return answer.status_code, answer.text


def call(served: Served, name: str, arguments: dict[str, Any]) -> tuple[int, str]:
    body = make_rpc("tools/call", {"name": name, "arguments": arguments})
    answer = httpx2.post(
        f"{served.url}/mcp",
        content=json.dumps(body),
        headers={**POST, "MCP-Protocol-Version": "2025-11-25"},
        timeout=HANG_SECONDS,
        trust_env=False,
    )
    return answer.status_code, answer.text


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://me@127.0.0.1:{port}/secret_room", "nothing listens there"),
        ("postgresql://me@no-such-host.invalid/secret_room", "the name of its host is not known"),
    ],
)
def test_why_it_cannot_be_reached_is_said_without_its_address(url: str, reason: str) -> None:
    with pytest.raises(DatabaseUnreachable, match=reason) as error:
        open_database(url.format(port=find_free_port())).prepare()
    for secret in ("127.0.0.1", "no-such-host", "secret_room", "me@"):
        assert secret not in error.value.message
    detail = find_operator_detail(error.value)
    assert "127.0.0.1" in detail or "no-such-host" in detail
