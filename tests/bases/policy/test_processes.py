"""Several processes on one database: what one of them writes, each of them answers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.kit import Served, connect_http, read_body, run, serve_room
from tests.support.model import link_model
from tests.support.policy.base import make_brief_pdf
from tests.support.postgres import PostgresServer, make_database

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture(scope="module")
def url(postgres: PostgresServer) -> Iterator[str]:
    with make_database(postgres) as url:
        yield url


@pytest.fixture(scope="module")
def servers(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Served]]:
    """Two servers of the policy base, each with a data directory of its own."""
    folder = tmp_path_factory.mktemp("servers")
    env = {"READINGROOM_DATABASE_URL": url}
    with (
        serve_room("policy", data=link_model(folder / "one"), env=env) as first,
        serve_room("policy", data=link_model(folder / "two"), env=env) as second,
    ):
        yield [first, second]


async def test_a_revision_that_one_process_brings_in_every_process_answers_from(
    servers: list[Served], url: str, tmp_path: Path
) -> None:
    (tmp_path / "nppf.pdf").write_bytes(make_brief_pdf("December 2024"))
    data = str(link_model(tmp_path / "shell"))
    # A third process, beside two servers: no folder has an owner.
    run_json(
        url,
        "policy",
        "add",
        "NPPF",
        "--title",
        "The NPPF",
        "--category",
        "national_policy",
        "--data",
        data,
    )
    run_json(
        url,
        "policy",
        "revise",
        "NPPF",
        str(tmp_path / "nppf.pdf"),
        "--label",
        "December 2024",
        "--from",
        "2024-12-12",
        "--data",
        data,
    )
    question = {"query": "standard of cycle parking", "effective_date": "2025-01-01"}
    answers = [await ask(server, "search_policy", question) for server in servers]
    assert answers[0]["results"][0]["citation"].startswith("NPPF (December 2024)")
    assert answers[0]["results"] == answers[1]["results"]

    removed = await ask(
        servers[0],
        "remove_policy_revision",
        {"source": "NPPF", "revision_id": answers[0]["results"][0]["revision_id"]},
    )
    assert removed["chunks_removed"] > 0
    assert (await ask(servers[1], "search_policy", question))["results"] == []


def run_json(url: str, *args: str) -> Any:
    ended = run(*args, "--json", env={"READINGROOM_DATABASE_URL": url})
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


async def ask(server: Served, tool: str, arguments: dict[str, Any]) -> Any:
    async with connect_http(f"{server.url}/mcp") as client:
        return read_body(await client.call_tool(tool, arguments))
