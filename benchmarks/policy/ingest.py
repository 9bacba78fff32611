"""A policy's way from upload to `active`, beside the embedding alone, and searches meanwhile."""

import os
import time
from pathlib import Path
from statistics import median

import anyio

from benchmarks.policy.memory import create, policy_server, until_active, upload
from benchmarks.table import Ratio, Table
from readingroom.engine.embedding.embedder import Embedder
from readingroom.ingest.document import Document, ReadOptions
from readingroom.ingest.read.reader import read_file
from tests.support.kit import Served, body, http
from tests.support.model import MODELS
from tests.support.policy.base import seed_pdf

_TARGET = 1.5
_MEANWHILE = 3.0
_NOTE = (
    "Text PDFs, generated; one of {pages} pages ({chunks} chunks) from its upload until it can be "
    "searched, on a server that does nothing else. Embedding alone: the same chunks, one call, in "
    "another process that does nothing else. Both take turns, {rounds} rounds; processor time "
    "includes the process that reads the PDF. Searches: "
    "`search_policy` with a date over HTTP, each query new, on a policy that is there already, "
    "before an upload of {more} pages and while it is ingested ({meanwhile} of them)."
)


def measure(pages: int, more: int, rounds: int) -> Table:
    """Upload and embed in turns; then search before and during a larger upload."""
    content = _pdf(pages)
    document = read_file(content, "p.pdf", ReadOptions(find_sections=True), lambda *step: None)
    assert isinstance(document, Document)
    embedder = Embedder(MODELS)
    embedder.embed("load the model")
    alone, whole = [], []
    alone_cpu, whole_cpu = [], []
    with policy_server() as room:
        create(room, "NPPF", "A framework", "national_policy")
        _ingested(room, _pdf(2), 2000)
        for turn in range(rounds):
            before = time.process_time()
            alone.append(_embedding_alone(embedder, document))
            alone_cpu.append(time.process_time() - before)
            before = _processor_seconds(room)
            whole.append(_ingested(room, content, 2001 + turn))
            whole_cpu.append(_processor_seconds(room) - before)
        idle, busy = anyio.run(_searches, room, _pdf(more))
    ratio, cpu = Ratio(whole, alone), Ratio(whole_cpu, alone_cpu)
    slowed = median(busy) / median(idle)
    return Table(
        "A policy from upload to `active`",
        ("what", "median", "ratio", "target"),
        (
            ("embedding alone", f"{median(alone):.1f} s", "1.00", ""),
            (
                "upload to `active`",
                f"{median(whole):.1f} s",
                str(ratio),
                ratio.against(_TARGET),
            ),
            ("embedding alone, processor time", f"{median(alone_cpu):.1f} s", "1.00", ""),
            ("upload to `active`, processor time", f"{median(whole_cpu):.1f} s", str(cpu), ""),
            ("a search, idle", f"{1000 * median(idle):.1f} ms", "1.00", ""),
            (
                "a search meanwhile",
                f"{1000 * median(busy):.1f} ms",
                f"{slowed:.2f}",
                f"{'met' if slowed <= _MEANWHILE else '**missed**'} (at most {_MEANWHILE:g})",
            ),
        ),
        _NOTE.format(
            pages=len(document.pages),
            chunks=len(document.chunks),
            rounds=rounds,
            more=more,
            meanwhile=len(busy),
        ),
    )


def _pdf(pages: int) -> bytes:
    return seed_pdf("NPPF", "December 2024", 12 * pages)


def _embedding_alone(embedder: Embedder, document: Document) -> float:
    started = time.perf_counter()
    embedder.embed_batch([document.get_chunk_text(chunk) for chunk in document.chunks])
    return time.perf_counter() - started


def _ingested(room: Served, content: bytes, year: int) -> float:
    """The seconds from upload to `active`."""
    started = time.perf_counter()
    status = upload(room, "NPPF", str(year), f"{year}-01-01", content)
    anyio.run(until_active, room, status)
    return time.perf_counter() - started


def _processor_seconds(room: Served) -> float:
    """What the server and the processes it waited for have used."""
    status = Path(f"/proc/{room.process.pid}/stat").read_text("utf-8")
    ticks = status.rpartition(")")[2].split()[11:15]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


async def _searches(room: Served, content: bytes) -> tuple[list[float], list[float]]:
    """How long searches take when nothing else happens, and while a file is ingested."""
    async with http(f"{room.url}/mcp") as client:

        async def search(number: int) -> float:
            started = time.perf_counter()
            asked = {"query": f"question {number}", "effective_date": "2000-06-01"}
            answer = await client.call_tool("search_policy", asked)
            took = time.perf_counter() - started
            assert body(answer)["results_count"]
            return took

        idle = [await search(number) for number in range(45)][5:]
        busy: list[float] = []
        status = await anyio.to_thread.run_sync(upload, room, "NPPF", "much", "2020-01-01", content)
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                await until_active(room, status)
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            while True:
                busy.append(await search(1000 + len(busy)))
        return idle, busy
