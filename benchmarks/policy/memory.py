"""What the server holds in memory with the seed policies loaded."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx2

from benchmarks.table import Table
from tests.support.kit import Served, connect_http, read_body, serve_room
from tests.support.model import link_model
from tests.support.policy.base import SEEDS, seed_pdf
from tests.support.processes import read_resident_mb

API = "/api/v1/policies"
_MAX_MB = 500
_NOTE = (
    "The {policies} seed policies with their {revisions} revisions, {chunks} chunks, generated in "
    "their shape, uploaded one after another to a server that then answers {searches} searches in "
    "every mode. Resident memory of its process; the registry's own, a Valkey server, is "
    "{valkey_mb} MB. The contract allows 2,048 MB."
)


def measure(paragraphs: int, searches: int) -> Table:
    """Load them as an operator would, over REST."""
    with run_policy_server() as server:
        started_mb = read_resident_mb(server.process.pid)
        chunks = sum(_load_policy(server, *seed, paragraphs=paragraphs) for seed in SEEDS)
        loaded_mb = read_resident_mb(server.process.pid)
        anyio.run(_search_repeatedly, server, searches)
        serving_mb, peak_mb = (
            read_resident_mb(server.process.pid),
            read_resident_mb(server.process.pid, "VmHWM"),
        )
        valkey_mb = _read_valkey_mb(server)
    return Table(
        "Memory with the seed policies",
        ("when", "resident MB", "target"),
        (
            ("started, no model loaded", str(started_mb), ""),
            ("everything ingested", str(loaded_mb), _render_verdict(loaded_mb)),
            ("after the searches", str(serving_mb), _render_verdict(serving_mb)),
            ("at its peak, while ingesting", str(peak_mb), ""),
        ),
        _NOTE.format(
            policies=len(SEEDS),
            revisions=sum(len(seed[3]) for seed in SEEDS),
            chunks=f"{chunks:,}",
            searches=searches,
            valkey_mb=valkey_mb,
        ),
    )


@contextmanager
def run_policy_server() -> Iterator[Served]:
    """`readingroom serve policy`, empty, with the model that the tests have built."""
    with tempfile.TemporaryDirectory() as folder:
        data = link_model(Path(folder) / "data")
        with serve_room("policy", data=data, env={"READINGROOM_RATE_LIMIT": "0"}) as server:
            yield server


def upload_revision(
    server: Served, source: str, version_label: str, effective_from: str, content: bytes
) -> str:
    """Hand a revision in; returns where its status is."""
    answer = httpx2.post(
        f"{server.url}{API}/{source}/revisions",
        files={"file": ("p.pdf", content, "application/pdf")},
        data={"version_label": version_label, "effective_from": effective_from},
        timeout=60,
        trust_env=False,
    )
    answer.raise_for_status()
    return str(answer.json()["links"]["status"])


async def wait_until_active(server: Served, status: str) -> None:
    """Wait until a revision can be searched."""
    async with httpx2.AsyncClient(base_url=server.url, timeout=60, trust_env=False) as http_client:
        while (upload_revision := (await http_client.get(status)).json())["status"] != "active":
            assert upload_revision["status"] == "processing", upload_revision
            await anyio.sleep(0.1)


def create_policy(server: Served, source: str, title: str, category: str) -> None:
    new_policy = {"source": source, "title": title, "category": category}
    httpx2.post(server.url + API, json=new_policy, timeout=60, trust_env=False).raise_for_status()


def _load_policy(
    server: Served,
    source: str,
    title: str,
    category: str,
    revisions: tuple[tuple[str, str], ...],
    paragraphs: int,
) -> int:
    """How many chunks a policy came to."""
    create_policy(server, source, title, category)
    for version_label, effective_from in revisions:
        content = seed_pdf(source, version_label, paragraphs)
        anyio.run(
            wait_until_active,
            server,
            upload_revision(server, source, version_label, effective_from, content),
        )
    revisions = server.get(f"{API}/{source}").json()["revisions"]
    return sum(revision["chunk_count"] for revision in revisions)


async def _search_repeatedly(server: Served, count: int) -> None:
    async with connect_http(f"{server.url}/mcp") as client:
        for number in range(count):
            arguments = {
                "query": f"question {number} about cycle parking",
                "effective_date": "2024-01-01",
                "mode": ("semantic", "hybrid", "lexical")[number % 3],
            }
            assert read_body(await client.call_tool("search_policy", arguments))["results_count"]


def _read_valkey_mb(server: Served) -> int:
    """The memory of the registry's server, the grandchild of ours."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        fields = status.read_text("utf-8").rpartition(")")[2].split()
        parents[int(status.parent.name)] = int(fields[1])
    child_ids = [process for process, parent in parents.items() if parent == server.process.pid]
    grandchild_ids = [process for process, parent in parents.items() if parent in child_ids]
    return sum(read_resident_mb(process) for process in grandchild_ids)


def _render_verdict(megabytes: int) -> str:
    return f"{'met' if megabytes <= _MAX_MB else '**missed**'} (at most {_MAX_MB} MB)"
