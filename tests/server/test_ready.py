"""Whether each base can answer, as probes ask: `/ready`."""

import os
import signal
from pathlib import Path

import httpx2

from tests.requirements import requirement
from tests.storage.test_keyvalue import find_server_pid
from tests.support.kit import serve_room
from tests.support.processes import HANG_SECONDS, wait_until
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
