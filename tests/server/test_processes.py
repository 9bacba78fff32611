"""Two servers on one database: a person, an app and a key are known to both."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import psycopg
import pytest

from readingroom.settings import load_settings
from readingroom.storage.postgres.database import open_database
from readingroom.storage.postgres.keys import open_keys
from readingroom.storage.postgres.state import SharedJobStore
from tests.support.connectors import Person, call_tools, make_app
from tests.support.documents.base import REF
from tests.support.federal.base import write_world
from tests.support.kit import HANG_SECONDS, Served, connect_http, read_body, run, serve_room
from tests.support.model import link_model
from tests.support.papers import make_paper
from tests.support.postgres import PostgresServer, make_database
from tests.support.processes import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url(postgres: PostgresServer) -> Iterator[str]:
    with make_database(postgres) as url:
        yield url


@pytest.fixture(scope="module")
def servers(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Served]]:
    folder = tmp_path_factory.mktemp("servers")
    env = {"READINGROOM_DATABASE_URL": url, "MCP_API_KEY": "sesame"}
    with (
        serve_room("text", data=folder / "one", env=env) as first,
        serve_room("text", data=folder / "two", env=env) as second,
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
    with serve_room("federal", data=link_model(tmp_path / "server"), env=env) as server:
        async with connect_http(f"{server.url}/mcp", key="sesame") as client:
            nothing = read_body(await client.call_tool("lexical_search", query))
            assert nothing["results"] == []
            loaded = run(
                *("federal", "load", str(tmp_path / "files"), "--json"),
                *("--data", str(tmp_path / "shell")),
                env=env,
            )
            assert loaded.returncode == 0, loaded.stderr
            found = read_body(await client.call_tool("lexical_search", query))
            assert found["results"][0]["title"] == "Airport noise near schools"
            record = read_body(await client.call_tool("fetch", {"id": found["results"][0]["id"]}))
            assert record["id"] == found["results"][0]["id"]
    status = run("federal", "status", "--json", "--data", str(tmp_path / "third"), env=env)
    counts = {row["source"]: row["records"] for row in json.loads(status.stdout)["sources"]}
    assert counts["bills"] >= 3
    assert not list(tmp_path.rglob("federal.db"))


@pytest.mark.full
def test_files_that_a_killed_server_had_taken_are_read_by_the_other(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    folders = [link_model(tmp_path / name) for name in ("one", "two")]
    with ExitStack() as running:
        # A database of its own: a room that had a key once, as the other tests', stays closed.
        url = running.enter_context(make_database(postgres))
        env = {"READINGROOM_DATABASE_URL": url}
        servers = [
            running.enter_context(serve_room("documents", data=folder, env=env))
            for folder in folders
        ]
        jobs = SharedJobStore(tmp_path / "watching", open_database(url))
        with psycopg.connect(url) as blocking:
            # Whoever takes the job gets no further than this, however fast the machine is.
            blocking.execute("LOCK TABLE readingroom.document_registry_chunks IN EXCLUSIVE MODE")
            page = servers[0].get("/applications", Accept="text/html").text
            (token,) = set(re.findall(r'name="form_token" value="([^"]*)"', page))
            sent = httpx2.post(
                f"{servers[0].url}/applications/add",
                data={"ref": REF, "form_token": token},
                files={"files": ("bats.pdf", make_paper("Bats roost in the old barn."))},
                headers={"Origin": servers[0].url},
                timeout=HANG_SECONDS,
                trust_env=False,
            )
            assert sent.status_code == 303, sent.text
            job_id = sent.headers["location"].rpartition("/")[2]
            wait_until(lambda: any(_holds_files(folder, job_id) for folder in folders))
            taker = next(n for n, folder in enumerate(folders) if _holds_files(folder, job_id))
            servers[taker].process.kill()
            servers[taker].process.wait()
        with psycopg.connect(url) as connection:  # as if a minute had passed
            connection.execute("UPDATE readingroom.jobs SET heard_at = heard_at - 61")
        wait_until(lambda: jobs.get_job(job_id).has_ended)
        done = jobs.get_job(job_id)
        assert (done.state, done.attempts) == ("done", 2), done
        assert done.outcome["rows"][0][:2] == ["bats.pdf", "read"]
        other = servers[1 - taker]
        (application,) = other.get("/api/v1/applications").json()["applications"]
        assert application["document_count"] == 1
        assert not _holds_files(folders[1 - taker], job_id)


def _holds_files(data: Path, job_id: str) -> bool:
    """Whether the server of this directory has fetched the files of a job that it took."""
    return any(data.rglob(f"{job_id}-*"))
