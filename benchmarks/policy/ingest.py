"""A policy's way from upload to `active`, beside the embedding alone, and searches meanwhile."""

import os
import time
from pathlib import Path
from statistics import median

import anyio

from benchmarks.policy.memory import (
    create_policy,
    run_policy_server,
    upload_revision,
    wait_until_active,
)
from benchmarks.table import Ratio, Table
from readingroom.engine.embedding.embedder import Embedder
from readingroom.ingest.document import Document, ReadOptions
from readingroom.ingest.read.reader import read_file
from tests.support.kit import Served, connect_http, read_body
from tests.support.model import MODELS
from tests.support.policy.base import seed_pdf

_TARGET = 1.5
_MAX_SLOWDOWN = 3.0
_NOTE = (
    "Text PDFs, generated; one of {pages} pages ({chunks} chunks) from its upload until it can be "
    "searched, on a server that does nothing else. Embedding alone: the same chunks, one call, in "
    "another process that does nothing else. Both take turns, {rounds} rounds; processor time "
    "includes the process that reads the PDF. Searches: "
    "`search_policy` with a date over HTTP, each query new, on a policy that is there already, "
    "before an upload of {larger_pages} pages and while it is ingested ({meanwhile} of them)."
)


def measure(pages: int, larger_pages: int, rounds: int) -> Table:
    """Upload and embed in turns; then search before and during a larger upload."""
    content = _make_pdf(pages)
    document = read_file(content, "p.pdf", ReadOptions(find_sections=True), lambda *step: None)
    assert isinstance(document, Document)
    embedder = Embedder(MODELS)
    embedder.embed("load the model")
    embedding_seconds, ingest_seconds = [], []
    embedding_cpu_seconds, ingest_cpu_seconds = [], []
    with run_policy_server() as server:
        create_policy(server, "NPPF", "A framework", "national_policy")
        _measure_ingestion(server, _make_pdf(2), 2000)
        for turn in range(rounds):
            before = time.process_time()
            embedding_seconds.append(_measure_embedding(embedder, document))
            embedding_cpu_seconds.append(time.process_time() - before)
            before = _read_processor_seconds(server)
            ingest_seconds.append(_measure_ingestion(server, content, 2001 + turn))
            ingest_cpu_seconds.append(_read_processor_seconds(server) - before)
        idle_seconds, busy_seconds = anyio.run(_measure_searches, server, _make_pdf(larger_pages))
    ratio, cpu = (
        Ratio(ingest_seconds, embedding_seconds),
        Ratio(ingest_cpu_seconds, embedding_cpu_seconds),
    )
    slowdown = median(busy_seconds) / median(idle_seconds)
    return Table(
        "A policy from upload to `active`",
        ("what", "median", "ratio", "target"),
        (
            ("embedding alone", f"{median(embedding_seconds):.1f} s", "1.00", ""),
            (
                "upload to `active`",
                f"{median(ingest_seconds):.1f} s",
                str(ratio),
                ratio.against(_TARGET),
            ),
            (
                "embedding alone, processor time",
                f"{median(embedding_cpu_seconds):.1f} s",
                "1.00",
                "",
            ),
            (
                "upload to `active`, processor time",
                f"{median(ingest_cpu_seconds):.1f} s",
                str(cpu),
                "",
            ),
            ("a search, idle", f"{1000 * median(idle_seconds):.1f} ms", "1.00", ""),
            (
                "a search meanwhile",
                f"{1000 * median(busy_seconds):.1f} ms",
                f"{slowdown:.2f}",
                f"{'met' if slowdown <= _MAX_SLOWDOWN else '**missed**'} "
                f"(at most {_MAX_SLOWDOWN:g})",
            ),
        ),
        _NOTE.format(
            pages=len(document.pages),
            chunks=len(document.chunks),
            rounds=rounds,
            larger_pages=larger_pages,
            meanwhile=len(busy_seconds),
        ),
    )


def _make_pdf(pages: int) -> bytes:
    return seed_pdf("NPPF", "December 2024", 12 * pages)


def _measure_embedding(embedder: Embedder, document: Document) -> float:
    started = time.perf_counter()
    embedder.embed_batch([document.get_chunk_text(chunk) for chunk in document.chunks])
    return time.perf_counter() - started


def _measure_ingestion(server: Served, content: bytes, year: int) -> float:
    """The seconds from upload to `active`."""
    started = time.perf_counter()
    status = upload_revision(server, "NPPF", str(year), f"{year}-01-01", content)
    anyio.run(wait_until_active, server, status)
    return time.perf_counter() - started


def _read_processor_seconds(server: Served) -> float:
    """What the server and the processes it waited for have used."""
    status = Path(f"/proc/{server.process.pid}/stat").read_text("utf-8")
    ticks = status.rpartition(")")[2].split()[11:15]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


async def _measure_searches(server: Served, content: bytes) -> tuple[list[float], list[float]]:
    """How long searches take when nothing else happens, and while a file is ingested."""
    async with connect_http(f"{server.url}/mcp") as client:

        async def search(number: int) -> float:
            started = time.perf_counter()
            arguments = {"query": f"question {number}", "effective_date": "2000-06-01"}
            answer = await client.call_tool("search_policy", arguments)
            seconds = time.perf_counter() - started
            assert read_body(answer)["results_count"]
            return seconds

        idle_seconds = [await search(number) for number in range(45)][5:]
        busy_seconds: list[float] = []
        status = await anyio.to_thread.run_sync(
            upload_revision, server, "NPPF", "much", "2020-01-01", content
        )
        async with anyio.create_task_group() as tasks:

            async def cancel_when_active() -> None:
                await wait_until_active(server, status)
                tasks.cancel_scope.cancel()

            tasks.start_soon(cancel_when_active)
            while True:
                busy_seconds.append(await search(1000 + len(busy_seconds)))
        return idle_seconds, busy_seconds
