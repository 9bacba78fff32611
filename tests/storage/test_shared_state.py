"""What the server itself keeps, shared by processes: sessions, connected apps, jobs, notices."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from readingroom.server.errors import RateLimited
from readingroom.server.http.limits import RateLimiter
from readingroom.storage.browser_sessions import MAX_IDLE_SECONDS, BrowserSessions
from readingroom.storage.grants import MAX_CLIENTS, GrantStore
from readingroom.storage.postgres.buckets import SharedBuckets
from readingroom.storage.postgres.database import PostgresDatabase
from readingroom.storage.postgres.state import SharedJobStore, SharedTables
from tests.support.postgres import PostgresServer, make_database
from tests.support.processes import wait_until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    with make_database(postgres) as url:
        yield url


@pytest.fixture
def databases(url: str) -> Iterator[list[PostgresDatabase]]:
    """One database as two processes see it: nothing is shared between them but that."""
    opened = [PostgresDatabase(url) for _ in range(2)]
    for database in opened:
        database.prepare()
    yield opened
    for database in opened:
        database.close()


def test_a_browser_that_one_process_signed_in_is_known_to_the_other(
    databases: list[PostgresDatabase], tmp_path: Path
) -> None:
    now = 1_000_000.0
    here, there = (
        BrowserSessions(tmp_path, lambda: now, SharedTables(database, "sessions", "The sessions"))
        for database in databases
    )
    session = here.start_session("ab" * 32)
    assert there.find_session(session.session_id) == session
    now += MAX_IDLE_SECONDS - 1
    assert there.find_session(session.session_id) == session
    now += MAX_IDLE_SECONDS - 1  # it was used meanwhile, if only there
    assert here.find_session(session.session_id) == session
    there.end_session(session.session_id)
    assert here.find_session(session.session_id) is None
    assert list(tmp_path.iterdir()) == []


def test_a_grant_of_one_process_is_used_and_ended_at_another(
    databases: list[PostgresDatabase], tmp_path: Path
) -> None:
    now = 1_000_000.0
    here, there = (
        GrantStore(tmp_path, lambda: now, SharedTables(database, "grants", "The connected apps"))
        for database in databases
    )
    here.add_client("client", '{"name": "a\\u0000b"}')
    request = there.find_request(here.add_request("client", "{}\0"))
    assert request is not None and request.client_id == "client"
    code = there.add_grant(request, "00", may_write=True, face_path="/policy")
    tokens = here.exchange_token("code", code)
    assert tokens is not None
    issued = there.find_token("access", tokens[0])
    assert issued is not None and issued.grant.may_write and issued.grant.face_path == "/policy"
    assert [grant.grant_id for grant, _ in here.list_grants()] == [issued.grant.grant_id]
    # Spent at one process, it is recognised at the other: somebody else has it.
    assert there.exchange_token("code", code) is None
    assert here.find_token("access", tokens[0]) is None


def test_a_code_is_exchanged_once_however_many_processes_try(
    databases: list[PostgresDatabase], tmp_path: Path
) -> None:
    stores = [
        GrantStore(tmp_path, state_tables=SharedTables(database, "grants", "The connected apps"))
        for database in databases
    ]
    stores[0].add_client("client", "{}")
    request = stores[0].find_request(stores[0].add_request("client", "{}"))
    assert request is not None
    code = stores[0].add_grant(request, "00", False, None)
    outcomes: list[tuple[str, str] | None] = []
    threads = [
        threading.Thread(
            target=lambda store=store: outcomes.append(store.exchange_token("code", code))
        )
        for store in stores * 4
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(outcome is not None for outcome in outcomes) == 1


def test_registering_without_end_fills_no_table(
    databases: list[PostgresDatabase], url: str, tmp_path: Path
) -> None:
    tables = SharedTables(databases[0], "grants", "The connected apps")
    store = GrantStore(tmp_path, state_tables=tables)
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO readingroom.clients SELECT 'old-' || n, '{}', n "
            "FROM generate_series(1, %s) AS n",
            (MAX_CLIENTS + 20,),
        )
    store.add_client("newest", "{}")
    assert store.find_client_metadata("newest") == "{}"
    assert store.find_client_metadata("old-1") is None
    assert store.find_client_metadata(f"old-{MAX_CLIENTS + 20}") == "{}"


def test_a_job_of_a_process_that_was_killed_is_done_by_another_with_its_files(
    databases: list[PostgresDatabase], url: str, tmp_path: Path
) -> None:
    jobs = SharedJobStore(tmp_path / "one", databases[0])
    folder = jobs.make_job_folder("toy.read")
    content = bytes(range(256)) * 10_000  # more than one piece
    (folder / "0").write_bytes(content)
    (folder / "1").write_bytes(b"")
    job = jobs.add_job("toy.read", "Read", {"folder": str(folder)}, "key:ann", folder)
    worker = subprocess.Popen(
        [sys.executable, "-m", "tests.support.job_worker", url, tmp_path / "two", "toy.read"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert worker.stdout is not None and worker.stdout.readline().strip() == job.id
        assert jobs.get_job(job.id).state == "running"
        assert jobs.claim_job(("toy.read",), "early") is None
    finally:
        worker.kill()
        worker.wait()
        assert worker.stdout is not None
        worker.stdout.close()
    with psycopg.connect(url) as connection:  # as if a minute had passed
        connection.execute("UPDATE readingroom.jobs SET heard_at = heard_at - 61")

    other = SharedJobStore(tmp_path / "three", databases[1])
    claimed = other.claim_job(("toy.read",), "other")
    assert claimed is not None and (claimed.id, claimed.attempts) == (job.id, 2)
    files = Path(claimed.question["folder"])
    assert (files / "0").read_bytes() == content and (files / "1").read_bytes() == b""
    assert not jobs.finish_job(job.id, "hanging", {})
    assert other.finish_job(job.id, "other", {"read": 2})
    assert jobs.get_job(job.id).outcome == {"read": 2}
    assert not files.exists()
    with psycopg.connect(url) as connection:
        (pieces,) = connection.execute("SELECT count(*) FROM readingroom.job_files").fetchone()  # type: ignore[misc]
    assert pieces == 0


def test_a_heartbeat_is_seen_while_the_change_of_a_base_is_open(
    databases: list[PostgresDatabase], tmp_path: Path
) -> None:
    here, there = (SharedJobStore(tmp_path, database) for database in databases)
    job = here.add_job("toy.count", "Count\0", {"text": "\0"})
    here.claim_job(("toy.count",), "ann")
    with databases[0].transaction():
        assert here.report_progress(job.id, "ann", 40, "half \0 way")
        assert (there.get_job(job.id).percent, there.get_job(job.id).question) == (
            40,
            {"text": "\0"},
        )


@pytest.mark.anyio
async def test_a_caller_has_one_limit_at_all_processes(databases: list[PostgresDatabase]) -> None:
    here, there = (RateLimiter(60, read_clock=lambda: 0.0) for _ in databases)
    buckets = [SharedBuckets(database) for database in databases]
    for limiter, bucket in zip((here, there), buckets, strict=True):
        await limiter.exchange_request_counts(bucket)
    for _ in range(50):
        here.count_request("key:ann")
    here.count_request("key:ben")
    await here.exchange_request_counts(buckets[0])
    for _ in range(40):  # it has not heard of the others yet
        there.count_request("key:ann")
    await there.exchange_request_counts(buckets[1])
    with pytest.raises(RateLimited):
        there.count_request("key:ann")
    there.count_request("key:ben")
    for _ in range(2):
        here.count_request("key:ann")
    await here.exchange_request_counts(buckets[0])
    with pytest.raises(RateLimited):
        here.count_request("key:ann")
    allowance = here.find_allowance("key:ann")
    assert allowance is not None and allowance.remaining == 0


def test_who_listens_is_woken_by_a_write_anywhere_and_again_after_a_lost_connection(
    databases: list[PostgresDatabase], url: str
) -> None:
    woken = threading.Event()
    databases[0].notices.subscribe("some_store", woken.set)
    wait_until(woken.is_set)  # once it listens: something may have been missed before
    woken.clear()

    def notify() -> bool:
        with databases[1].connection() as connection:
            connection.execute("SELECT pg_notify('readingroom', 'another')")
            connection.execute("SELECT pg_notify('readingroom', 'some_store')")
        return woken.wait(0.2)

    wait_until(notify)
    woken.clear()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        )
    wait_until(woken.is_set)  # told by nobody: it has connected again
    databases[0].notices.unsubscribe("some_store", woken.set)
    woken.clear()
    assert not notify()
