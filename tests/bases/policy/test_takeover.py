"""What a process was ingesting when it was killed is gone on with by another one, in seconds."""

import signal
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from readingroom.bases.policy.ingest import jobs
from tests.support.kit import Served, serve_room
from tests.support.model import link_model
from tests.support.postgres import PostgresServer, make_database
from tests.support.processes import HANG_SECONDS, wait_until

pytestmark = pytest.mark.slow


def test_a_killed_processes_revision_is_taken_over_within_seconds(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    # Long enough that it is not embedded before its process is stopped.
    text = "\n\n".join(
        f"## Policy H{number}\n\nHomes of plot {number} need light. " + "Cycle parking. " * 60
        for number in range(1, 600)
    )
    with make_database(postgres) as url:
        env = {"READINGROOM_DATABASE_URL": url}
        first, second = link_model(tmp_path / "first"), link_model(tmp_path / "second")
        with (
            serve_room("policy", data=second, env=env) as taker,
            serve_room("policy", data=first, env=env) as killed,
        ):
            policy = {"source": "PLAN", "title": "The plan", "category": "local_plan"}
            post(killed, "/api/v1/policies", json=policy)
            revision = post(
                killed,
                "/api/v1/policies/PLAN/revisions",
                files={"file": ("plan.md", text.encode(), "text/markdown")},
                data={"version_label": "One", "effective_from": "2024-01-01"},
            )
            path = f"/api/v1/policies/PLAN/revisions/{revision['revision_id']}/status"
            # Only from then on it has the lock.
            wait_until(lambda: killed.get(path).json()["progress"]["phase"] == "embedding")
            killed.process.send_signal(signal.SIGSTOP)
            stopped_at = time.monotonic()
            old_enough = jobs._MIN_ABANDONED_AGE.total_seconds() + jobs._TAKEOVER_SECONDS
            try:
                wait_until(lambda: time.monotonic() - stopped_at > old_enough)
                state = taker.get(path).json()
                assert not works_on(taker, path), state  # whoever has it keeps it, however slow
            finally:
                killed.process.kill()
            killed_at = time.monotonic()
            wait_until(lambda: works_on(taker, path))
            print(f"taken over after {time.monotonic() - killed_at:.1f} s")
            wait_until(lambda: taker.get(path).json()["status"] == "active")


def works_on(served: Served, path: str) -> bool:
    state = served.get(path).json()
    return state["status"] == "active" or state["progress"]["percent_complete"] > 0


def post(served: Served, path: str, **body: Any) -> dict[str, Any]:
    answer = httpx2.post(served.url + path, timeout=HANG_SECONDS, trust_env=False, **body)
    assert answer.is_success, answer.text
    answered: dict[str, Any] = answer.json()
    return answered
