"""Two servers on one database: a person, an app and a key are known to both."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from readingroom.settings import load_settings
from readingroom.storage.postgres.keys import open_keys
from tests.support.connectors import Person, call_tools, make_app
from tests.support.federal.base import write_world
from tests.support.kit import HANG_SECONDS, Served, body, http, run, serving
from tests.support.model import with_model
from tests.support.postgres import PostgresServer, new_database
from tests.support.processes import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url(postgres: PostgresServer) -> Iterator[str]:
    with new_database(postgres) as url:
        yield url


@pytest.fixture(scope="module")
def servers(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Served]]:
    folder = tmp_path_factory.mktemp("servers")
    env = {"READINGROOM_DATABASE_URL": url, "MCP_API_KEY": "sesame"}
    with (
        serving("text", data=folder / "one", env=env) as first,
        serving("text", data=folder / "two", env=env) as second,
    ):
        yield [first, second]


@pytest.fixture
def clients(servers: list[Served]) -> Iterator[list[httpx2.Client]]:
    with (
        httpx2.Client(base_url=servers[0].url, trust_env=False, timeout=HANG_SECONDS) as first,
        httpx2.Client(base_url=servers[1].url, trust_env=False, timeout=HANG_SECONDS) as second,
    ):
        yield [first, second]


def test_a_browser_signed_in_at_one_server_is_signed_in_at_the_other(
    servers: list[Served], clients: list[httpx2.Client]
) -> None:
    here, there = clients
    page = {"Accept": "text/html"}
    assert "/sign-in" in there.get("/operations", headers=page).headers["location"]
    Person(here, servers[0].url).sign_in("sesame")
    (session_id,) = [cookie.value for cookie in here.cookies.jar]
    # On loopback the name of the cookie has the port; behind a balancer both are one address.
    port = servers[1].url.rpartition(":")[2]
    there.cookies.set(f"rr-{port}", str(session_id))
    assert there.get("/operations", headers=page).status_code == 200
    here.post("/sign-out", headers={"Origin": servers[0].url})


def test_a_key_revoked_at_one_server_is_refused_by_the_other(
    servers: list[Served], clients: list[httpx2.Client], url: str, tmp_path: Path
) -> None:
    keys = open_keys(load_settings({"data": tmp_path}, {"READINGROOM_DATABASE_URL": url}))
    header = {"Authorization": f"Bearer {keys.add_key('ann')}"}

    def answers(status: int) -> bool:
        return all(
            client.get("/metrics", headers=header).status_code == status for client in clients
        )

    wait_until(lambda: answers(200))
    keys.revoke_key("ann")
    wait_until(lambda: answers(401))


def test_an_app_that_a_person_allowed_at_one_server_calls_the_other(
    servers: list[Served], clients: list[httpx2.Client]
) -> None:
    here, there = clients
    app = make_app(here)
    person = Person(here, servers[0].url)
    person.sign_in("sesame")
    code = person.allow(app.make_authorize_url())["code"]
    app.web = there  # the balancer sends the next step to the other server
    tokens = app.exchange(code).json()
    assert call_tools(here, tokens["access_token"]).status_code == 200
    assert call_tools(there, tokens["access_token"]).status_code == 200
    app.web = here
    assert app.revoke(tokens["refresh_token"]).status_code == 200
    assert call_tools(there, tokens["access_token"]).status_code == 401


@pytest.mark.anyio
async def test_federal_records_that_one_process_loads_another_one_finds(
    url: str, tmp_path: Path
) -> None:
    write_world(tmp_path / "files", bills=3, votes=1)
    env = {"READINGROOM_DATABASE_URL": url, "MCP_API_KEY": "sesame"}
    query = {"query": "airport noise near schools"}
    with serving("federal", data=with_model(tmp_path / "server"), env=env) as server:
        async with http(f"{server.url}/mcp", key="sesame") as client:
            nothing = body(await client.call_tool("lexical_search", query))
            assert nothing["results"] == []
            loaded = run(
                *("federal", "load", str(tmp_path / "files"), "--json"),
                *("--data", str(tmp_path / "shell")),
                env=env,
            )
            assert loaded.returncode == 0, loaded.stderr
            found = body(await client.call_tool("lexical_search", query))
            assert found["results"][0]["title"] == "Airport noise near schools"
            record = body(await client.call_tool("fetch", {"id": found["results"][0]["id"]}))
            assert record["id"] == found["results"][0]["id"]
    status = run("federal", "status", "--json", "--data", str(tmp_path / "third"), env=env)
    counts = {row["source"]: row["records"] for row in json.loads(status.stdout)["sources"]}
    assert counts["bills"] >= 3
    assert not list(tmp_path.rglob("federal.db"))
