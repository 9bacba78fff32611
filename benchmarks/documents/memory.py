"""Real files ingested and removed three times: what the server weighs after each."""

import tempfile
from pathlib import Path

import anyio

from benchmarks.engine.corpus import SHARED
from benchmarks.table import Table
from tests.support.documents.base import make_data_with_model
from tests.support.documents.real import ingest_all, list_files, remove_all
from tests.support.kit import Served, serve_room
from tests.support.processes import read_resident_mb

_REPEATS = 3
_MAX_GROWTH_MB = 40
_NOTE = (
    "{files} real PDFs and images through `ingest_document` by a client, three at once, OCR "
    "off (its memory is another process's), then each removed; resident memory of the server."
)


def measure() -> Table:
    """Three repeats on one server."""
    folder = SHARED / "documents"
    with tempfile.TemporaryDirectory() as home:
        data = Path(home) / "data"
        make_data_with_model(data)
        env = {"DOCUMENT_ROOTS": str(folder), "ENABLE_OCR": "false", "READINGROOM_RATE_LIMIT": "0"}
        with serve_room("documents", data=data, env=env) as server:
            resident_sizes = anyio.run(_ingest_repeatedly, server, folder)
    growth_mb = resident_sizes[-1] - resident_sizes[0]
    verdict = (
        f"{'met' if growth_mb <= _MAX_GROWTH_MB else '**missed**'} (at most {_MAX_GROWTH_MB} MB)"
    )
    return Table(
        "Memory over three repeats of every real document",
        ("repeat", "median MB", "target"),
        (
            *((str(number), str(size), "") for number, size in enumerate(resident_sizes, 1)),
            ("growth, first to last", f"{growth_mb:+}", verdict),
        ),
        _NOTE.format(files=len(list_files(folder))),
    )


async def _ingest_repeatedly(server: Served, folder: Path) -> list[int]:
    resident_sizes = []
    for _ in range(_REPEATS):
        await ingest_all(server, folder)
        await remove_all(server)
        resident_sizes.append(read_resident_mb(server.process.pid))
    return resident_sizes
