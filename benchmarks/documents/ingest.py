"""A folder of documents ingested over MCP, beside extraction and embedding alone."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import anyio

from benchmarks.table import Table
from readingroom.core.progress import no_progress
from readingroom.engine.embedding.embedder import Embedder
from readingroom.ingest.document import Document
from readingroom.ingest.pipeline import Pipeline
from readingroom.ingest.private_copy import open_stored_file
from readingroom.ingest.read.sandbox import ConfinedReader
from tests.support.documents.base import REF, make_data_with_model
from tests.support.kit import Served, connect_http, read_body, serve_room
from tests.support.model import MODELS
from tests.support.papers import Paper

_TARGET = 1.3
_SUBJECTS = (
    "cycle parking",
    "trip rates",
    "flood water",
    "bat roosts",
    "noise levels",
    "old trees",
)
_NOTE = (
    "{files} text PDFs of {pages} pages each ({chunks:,} chunks), generated. Extraction alone: "
    "every file through the sandbox, as many at once as there are cores. Embedding alone: all "
    "chunks in one call, on all cores, in a process that does nothing else. Ingested: "
    "`ingest_folder` by the SDK's client over Streamable HTTP, hashing, storing and indexing "
    "included. Cores: processor seconds of the server and its children to wall seconds."
)


def measure(files: int, pages: int) -> Table:
    """Extract, embed, then do both and all the rest."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        inbox = make_data_with_model(data)
        paths = write_reports(inbox, files, pages)
        documents, extraction = anyio.run(_measure_extraction, paths)
        embedding = _measure_embedding(documents)
        with serve_room("documents", data=data) as server:
            seconds_taken, cores = anyio.run(_measure_ingestion, server, inbox)
    seconds_alone = extraction + embedding
    ratio = seconds_taken / seconds_alone
    return Table(
        "An application's documents from folder to searchable",
        ("what", "median", "ratio", "target"),
        (
            ("extraction alone", f"{extraction:.1f} s", "", ""),
            ("embedding alone", f"{embedding:.1f} s", "", ""),
            ("their sum", f"{seconds_alone:.1f} s", "1.00", ""),
            (
                "`ingest_folder`",
                f"{seconds_taken:.1f} s",
                f"{ratio:.2f}",
                f"{'met' if ratio <= _TARGET else '**missed**'} (at most {_TARGET:g})",
            ),
            ("cores it kept busy", f"{cores:.2f}", "", ""),
        ),
        _NOTE.format(
            files=files, pages=pages, chunks=sum(len(document.chunks) for document in documents)
        ),
    )


def write_reports(inbox: Path, files: int, pages: int) -> list[Path]:
    """Reports, none like another: each page has a text of its own."""
    paths = [inbox / f"Report {number}.pdf" for number in range(files)]
    for number, path in enumerate(paths):
        report = Paper(header=f"Report {number}", footer="Page #")
        for page in range(pages):
            if page:
                report.turn()
            for paragraph in range(6):
                subject = _SUBJECTS[(number + page + paragraph) % len(_SUBJECTS)]
                report.write(
                    f"Section {page}.{paragraph} of report {number} looks at {subject}. "
                    f"Measured on {paragraph + 1} days at {page + 3} places, {subject} stayed "
                    "within what the authority expects, and "
                    f"{number * page + paragraph} visits confirmed it. "
                    "Where it did not, the applicant proposes works that are secured by condition "
                    "and are complete before the first home is occupied."
                )
        path.write_bytes(report.done())
    return paths


async def _measure_extraction(paths: Sequence[Path]) -> tuple[list[Document], float]:
    pipeline = Pipeline(ConfinedReader())
    documents_by_path: dict[Path, Document] = {}

    async def read(path: Path) -> None:
        with open_stored_file(path, path.name, 2**28) as private_copy:
            document = await pipeline.read_document(private_copy, no_progress)
        assert isinstance(document, Document)
        documents_by_path[path] = document

    started = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for path in paths:
            tasks.start_soon(read, path)
    return [documents_by_path[path] for path in paths], time.perf_counter() - started


def _measure_embedding(documents: Sequence[Document]) -> float:
    embedder = Embedder(MODELS)
    embedder.embed("load the model")
    texts = [document.get_chunk_text(chunk) for document in documents for chunk in document.chunks]
    started = time.perf_counter()
    embedder.embed_batch(texts)
    return time.perf_counter() - started


async def _measure_ingestion(server: Served, inbox: Path) -> tuple[float, float]:
    async with connect_http(f"{server.url}/mcp", seconds=3600) as client:
        await client.call_tool("search_application_docs", {"query": "load the model"})
        before, started = read_processor_seconds(server), time.perf_counter()
        answer = await client.call_tool(
            "ingest_folder", {"path": str(inbox), "application_ref": REF}
        )
        seconds_taken = time.perf_counter() - started
        answer_body = read_body(answer)
        assert answer_body["ingested"] == answer_body["file_count"], answer_body
        return seconds_taken, (read_processor_seconds(server) - before) / seconds_taken


def read_processor_seconds(server: Served) -> float:
    """Seconds of the server and of its children that have ended."""
    stat = Path(f"/proc/{server.process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return sum(map(int, stat[11:15])) / 100
