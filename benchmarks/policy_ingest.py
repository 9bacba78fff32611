"""A policy's way from upload to `active`, beside the embedding alone, and a search meanwhile."""

import tempfile
import time
from pathlib import Path
from statistics import median

import anyio
import httpx2

from benchmarks.table import Table
from readingroom.engine.embedding import Embedder
from readingroom.ingest.document import Document, Options
from readingroom.ingest.reading import read
from tests.kit import Served, body, http, serving
from tests.policies import MODELS, seed_pdf

_API = "/api/v1/policies"
_NEW = {"source": "NPPF", "title": "A framework", "category": "national_policy"}
_TARGET = 1.5
_MEANWHILE = 3.0
_NOTE = (
    "A text PDF of {pages} pages ({chunks} chunks), generated. Embedding alone: the same chunks, "
    "one call, in a process that does nothing else. Searches: `search_policy` with a date over "
    "HTTP on a policy that is there already, before the upload and while it runs."
)


def measure(paragraphs: int) -> Table:
    """Upload once, and search before and meanwhile."""
    content = seed_pdf("NPPF", "December 2024", paragraphs)
    document = read(content, "p.pdf", Options(find_sections=True), lambda *step: None)
    assert isinstance(document, Document)
    embedding = _embedding_alone(document)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        (data / "models").symlink_to(MODELS)
        # Searches go on while it runs: more than a minute's worth of them.
        with serving("policy", data=data, env={"READINGROOM_RATE_LIMIT": "0"}) as room:
            _upload(room, seed_pdf("NPPF", "before", 20), "2020-01-01")
            _active(room)
            idle, busy, took = anyio.run(_searches, room, content)
    ratio, slowed = took / embedding, median(busy) / median(idle)
    return Table(
        "A policy from upload to `active`",
        ("what", "median", "ratio", "target"),
        (
            ("embedding alone", f"{embedding:.1f} s", "1.00", ""),
            ("upload to `active`", f"{took:.1f} s", f"{ratio:.2f}", _verdict(ratio, _TARGET)),
            ("a search, idle", f"{1000 * median(idle):.1f} ms", "1.00", ""),
            (
                "a search meanwhile",
                f"{1000 * median(busy):.1f} ms",
                f"{slowed:.2f}",
                _verdict(slowed, _MEANWHILE),
            ),
        ),
        _NOTE.format(pages=len(document.pages), chunks=len(document.chunks)),
    )


def _embedding_alone(document: Document) -> float:
    embedder = Embedder(MODELS)
    embedder.embed("load the model")
    started = time.perf_counter()
    embedder.embed_batch([document.text_of(chunk) for chunk in document.chunks])
    return time.perf_counter() - started


async def _searches(room: Served, content: bytes) -> tuple[list[float], list[float], float]:
    async with http(f"{room.url}/mcp") as client:

        async def search(number: int) -> float:
            started = time.perf_counter()
            asked = {"query": f"question {number}", "effective_date": "2020-06-01"}
            answer = await client.call_tool("search_policy", asked)
            assert body(answer)["results_count"]
            return time.perf_counter() - started

        idle = [await search(number) for number in range(30)][5:]
        started = time.perf_counter()
        await anyio.to_thread.run_sync(_upload, room, content, "2024-12-12")
        busy: list[float] = []
        while True:
            busy.append(await search(1000 + len(busy)))
            if len(busy) % 10 == 0 and await anyio.to_thread.run_sync(_is_active, room):
                return idle, busy, time.perf_counter() - started


def _upload(room: Served, content: bytes, start: str) -> None:
    with httpx2.Client(base_url=room.url, timeout=60, trust_env=False) as web:
        web.post(_API, json=_NEW)
        answer = web.post(
            f"{_API}/NPPF/revisions",
            files={"file": ("p.pdf", content, "application/pdf")},
            data={"version_label": start, "effective_from": start},
        )
        answer.raise_for_status()


def _is_active(room: Served) -> bool:
    revisions = room.get(f"{_API}/NPPF").json()["revisions"]
    assert revisions[0]["status"] != "failed", revisions[0]
    return bool(revisions[0]["status"] == "active")


def _active(room: Served) -> None:
    while not _is_active(room):
        time.sleep(0.1)


def _verdict(ratio: float, target: float) -> str:
    return f"{'met' if ratio <= target else '**missed**'} (at most {target:g})"
