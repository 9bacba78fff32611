"""What the server holds in memory with the seed policies loaded."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx2

from benchmarks.table import Table
from tests.support.kit import Served, body, http, serving
from tests.support.model import with_model
from tests.support.policy.base import SEEDS, seed_pdf
from tests.support.processes import resident_mb

API = "/api/v1/policies"
_MOST = 500
_NOTE = (
    "The {policies} seed policies with their {revisions} revisions, {chunks} chunks, generated in "
    "their shape, uploaded one after another to a server that then answers {searches} searches in "
    "every mode. Resident memory of its process; the registry's own, a Valkey server, is {valkey} "
    "MB. The contract allows 2,048 MB."
)


def measure(paragraphs: int, searches: int) -> Table:
    """Load them as an operator would, over REST."""
    with policy_server() as room:
        started = resident_mb(room.process.pid)
        chunks = sum(_load(room, *seed, paragraphs=paragraphs) for seed in SEEDS)
        loaded = resident_mb(room.process.pid)
        anyio.run(_search, room, searches)
        serving_mb, peak = resident_mb(room.process.pid), resident_mb(room.process.pid, "VmHWM")
        valkey = _valkey_mb(room)
    return Table(
        "Memory with the seed policies",
        ("when", "resident MB", "target"),
        (
            ("started, no model loaded", str(started), ""),
            ("everything ingested", str(loaded), _verdict(loaded)),
            ("after the searches", str(serving_mb), _verdict(serving_mb)),
            ("at its peak, while ingesting", str(peak), ""),
        ),
        _NOTE.format(
            policies=len(SEEDS),
            revisions=sum(len(seed[3]) for seed in SEEDS),
            chunks=f"{chunks:,}",
            searches=searches,
            valkey=valkey,
        ),
    )


@contextmanager
def policy_server() -> Iterator[Served]:
    """`readingroom serve policy`, empty, with the model that the tests have built."""
    with tempfile.TemporaryDirectory() as folder:
        data = with_model(Path(folder) / "data")
        with serving("policy", data=data, env={"READINGROOM_RATE_LIMIT": "0"}) as room:
            yield room


def upload(room: Served, source: str, label: str, start: str, content: bytes) -> str:
    """Hand a revision in; returns where its status is."""
    answer = httpx2.post(
        f"{room.url}{API}/{source}/revisions",
        files={"file": ("p.pdf", content, "application/pdf")},
        data={"version_label": label, "effective_from": start},
        timeout=60,
        trust_env=False,
    )
    answer.raise_for_status()
    return str(answer.json()["links"]["status"])


async def until_active(room: Served, status: str) -> None:
    """Wait until a revision can be searched."""
    async with httpx2.AsyncClient(base_url=room.url, timeout=60, trust_env=False) as web:
        while (upload := (await web.get(status)).json())["status"] != "active":
            assert upload["status"] == "processing", upload
            await anyio.sleep(0.1)


def create(room: Served, source: str, title: str, category: str) -> None:
    new = {"source": source, "title": title, "category": category}
    httpx2.post(room.url + API, json=new, timeout=60, trust_env=False).raise_for_status()


def _load(
    room: Served,
    source: str,
    title: str,
    category: str,
    revisions: tuple[tuple[str, str], ...],
    paragraphs: int,
) -> int:
    """How many chunks a policy came to."""
    create(room, source, title, category)
    for label, start in revisions:
        content = seed_pdf(source, label, paragraphs)
        anyio.run(until_active, room, upload(room, source, label, start, content))
    revisions = room.get(f"{API}/{source}").json()["revisions"]
    return sum(revision["chunk_count"] for revision in revisions)


async def _search(room: Served, count: int) -> None:
    async with http(f"{room.url}/mcp") as client:
        for number in range(count):
            asked = {
                "query": f"question {number} about cycle parking",
                "effective_date": "2024-01-01",
                "mode": ("semantic", "hybrid", "lexical")[number % 3],
            }
            assert body(await client.call_tool("search_policy", asked))["results_count"]


def _valkey_mb(room: Served) -> int:
    """The memory of the registry's server, the grandchild of ours."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        fields = status.read_text("utf-8").rpartition(")")[2].split()
        parents[int(status.parent.name)] = int(fields[1])
    shells = [process for process, parent in parents.items() if parent == room.process.pid]
    servers = [process for process, parent in parents.items() if parent in shells]
    return sum(resident_mb(process) for process in servers)


def _verdict(megabytes: int) -> str:
    return f"{'met' if megabytes <= _MOST else '**missed**'} (at most {_MOST} MB)"
