"""Whether each base can answer, as probes ask: `/ready`."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from readingroom.bases.federal.store import get_database_path
from readingroom.bases.federal.tools import open_federal
from tests.requirements import requirement
from tests.storage.test_keyvalue import find_server_pid
from tests.support.federal.base import HashedWords
from tests.support.kit import serve_room
from tests.support.postgres import PostgresServer, make_database, make_template, run_server
from tests.support.processes import HANG_SECONDS, list_descendants, wait_until
from tests.support.valkey import run_valkey


@requirement("room:ready", "room:paths", "policy:FR-003:unavailable")
def test_a_base_whose_registry_is_away_is_named_until_it_is_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with (
        run_valkey(tmp_path) as (url, process),
        serve_room("policy", data=data, env={"REDIS_URL": url}) as served,
    ):
        assert served.get("/ready").json() == {"status": "ready"}
        process.kill()
        process.wait()
        wait_until(lambda: served.get("/ready").status_code == 503)
        degraded = {"status": "degraded", "degraded": {"policy": "registry_unavailable"}}
        assert served.get("/ready").json() == degraded
        assert served.get("/health").status_code == 200
        refusal = served.get("/api/v1/policies")
        assert (refusal.status_code, str(tmp_path) in refusal.text) == (503, False)
        assert str(tmp_path) in served.log.read_text("utf-8")
        with run_valkey(tmp_path):
            wait_until(lambda: served.get("/ready").status_code == 200)


@requirement("policy:NFR-003")
def test_a_served_policy_base_survives_the_death_of_its_own_registry(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serve_room("policy", data=data) as served:
        policy = {"source": "NPPF", "title": "The NPPF", "category": "national_policy"}
        url = f"{served.url}/api/v1/policies"
        assert (
            httpx2.post(url, json=policy, timeout=HANG_SECONDS, trust_env=False).status_code == 201
        )
        os.kill(find_server_pid(data / "policy" / "registry"), signal.SIGKILL)
        answer = served.get("/api/v1/policies")
        assert [listed["source"] for listed in answer.json()["policies"]] == ["NPPF"]
        assert served.get("/ready").status_code == 200


def test_a_server_whose_federal_records_are_away_is_not_ready(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    with make_database(postgres) as url:
        env, name = {"READINGROOM_DATABASE_URL": url}, url.split("/")[3].split("?")[0]
        with serve_room("federal", data=tmp_path / "data", env=env) as served:
            assert served.get("/ready").json() == {"status": "ready"}
            postgres.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
            postgres.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
                f"WHERE datname = '{name}'"
            )
            wait_until(lambda: served.get("/ready").status_code == 503)
            degraded = {"status": "degraded", "degraded": {"federal": "storage_failed"}}
            assert served.get("/ready").json() == degraded
            assert served.get("/health").status_code == 200
            postgres.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")
            wait_until(lambda: served.get("/ready").status_code == 200)


def test_a_database_that_hangs_is_told_within_seconds_and_takes_no_thread_for_each_probe(
    tmp_path: Path,
) -> None:
    with run_server() as server:
        make_template(server)
        env = {"READINGROOM_DATABASE_URL": server.make_room("room")}
        with serve_room(data=tmp_path / "data", env=env) as served:
            assert served.get("/ready").json() == {"status": "ready"}
            assert server.process is not None
            frozen = [server.process.pid, *list_descendants(server.process.pid)]
            try:
                for pid in frozen:
                    os.kill(pid, signal.SIGSTOP)
                time.sleep(1.1)  # what was asked before is believed for a second
                threads_before = count_threads(served.process.pid)
                answers = probe_at_once(served.url, 100)
                waiting = {"documents": "timeout", "federal": "timeout", "policy": "timeout"}
                for status, body, seconds in answers:
                    assert (status, body["degraded"]) == (503, waiting)
                    assert seconds < 6.0  # 3, and what a busy machine adds
                # Those that come while it hangs do not even wait for that.
                assert max(seconds for _, _, seconds in probe_at_once(served.url, 20)) < 3.0
                assert count_threads(served.process.pid) - threads_before < 20
                assert served.get("/health").status_code == 200
            finally:
                for pid in frozen:
                    os.kill(pid, signal.SIGCONT)
            wait_until(lambda: served.get("/ready").status_code == 200)


def test_a_request_that_waits_for_a_database_that_hangs_keeps_no_other_waiting(
    tmp_path: Path,
) -> None:
    """Whether the room is open is no question to the database: all of the process would wait."""
    with run_server() as server:
        make_template(server)
        env = {"READINGROOM_DATABASE_URL": server.make_room("room")}
        with serve_room("federal", data=tmp_path / "data", env=env) as served:
            assert served.get("/v1/bills").status_code == 200
            assert server.process is not None
            frozen = [server.process.pid, *list_descendants(server.process.pid)]
            waiting = threading.Thread(target=lambda: served.get("/v1/bills"))
            try:
                for pid in frozen:
                    os.kill(pid, signal.SIGSTOP)
                waiting.start()
                for _ in range(20):
                    assert served.get("/health").status_code == 200
                    time.sleep(0.05)
                assert waiting.is_alive()
            finally:
                for pid in frozen:
                    os.kill(pid, signal.SIGCONT)
            waiting.join(HANG_SECONDS)
            assert not waiting.is_alive()


def test_a_key_that_nobody_has_sent_before_keeps_no_other_waiting(tmp_path: Path) -> None:
    """With `MCP_API_KEY` nobody needs the keys of the database, until somebody sends another."""
    with run_server() as server:
        make_template(server)
        env = {"READINGROOM_DATABASE_URL": server.make_room("room"), "MCP_API_KEY": "sesame" * 4}
        with serve_room("federal", data=tmp_path / "data", env=env) as served:
            assert server.process is not None
            frozen = [server.process.pid, *list_descendants(server.process.pid)]
            try:
                for pid in frozen:
                    os.kill(pid, signal.SIGSTOP)
                other_key = {"Authorization": "Bearer another one"}
                assert served.get("/v1/bills", **other_key).status_code == 401
                assert served.get("/health").status_code == 200
            finally:
                for pid in frozen:
                    os.kill(pid, signal.SIGCONT)


def probe_at_once(url: str, count: int) -> list[tuple[int, Any, float]]:
    """Return the status, the body and the seconds of many probes that are sent together."""

    def probe(_: int) -> tuple[int, Any, float]:
        begun = time.monotonic()
        answer = httpx2.get(f"{url}/ready", timeout=HANG_SECONDS, trust_env=False)
        return answer.status_code, answer.json(), time.monotonic() - begun

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(probe, range(count)))


def count_threads(process: int) -> int:
    return len(list(Path(f"/proc/{process}/task").iterdir()))


@pytest.mark.anyio
async def test_asking_the_federal_records_whether_they_are_there_is_one_statement(
    tmp_path: Path,
) -> None:
    base = open_federal(get_database_path(tmp_path), HashedWords())  # type: ignore[arg-type]
    statements: list[str] = []
    base.service.store.trace_statement = statements.append
    await base.check_ready()
    assert [sql for sql in statements if "PRAGMA" not in sql] == ["SELECT value FROM generation"]
