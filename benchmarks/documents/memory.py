"""Real files ingested and removed three times: what the server weighs after each."""

import tempfile
from pathlib import Path

import anyio

from benchmarks.engine.corpus import SHARED
from benchmarks.table import Table
from tests.support.documents.base import room_with_model
from tests.support.documents.real import files_in, ingest_all, remove_all
from tests.support.kit import Served, serving
from tests.support.processes import resident_mb

_REPEATS = 3
_MOST = 40
_NOTE = (
    "{files} real PDFs and images through `ingest_document` by a client, three at once, OCR "
    "off (its memory is another process's), then each removed; resident memory of the server."
)


def measure() -> Table:
    """Three repeats on one server."""
    folder = SHARED / "documents"
    with tempfile.TemporaryDirectory() as home:
        data = Path(home) / "data"
        room_with_model(data)
        env = {"DOCUMENT_ROOTS": str(folder), "ENABLE_OCR": "false", "READINGROOM_RATE_LIMIT": "0"}
        with serving("documents", data=data, env=env) as room:
            sizes = anyio.run(_repeats, room, folder)
    grown = sizes[-1] - sizes[0]
    verdict = f"{'met' if grown <= _MOST else '**missed**'} (at most {_MOST} MB)"
    return Table(
        "Memory over three repeats of every real document",
        ("repeat", "median MB", "target"),
        (
            *((str(number), str(size), "") for number, size in enumerate(sizes, 1)),
            ("growth, first to last", f"{grown:+}", verdict),
        ),
        _NOTE.format(files=len(files_in(folder))),
    )


async def _repeats(room: Served, folder: Path) -> list[int]:
    sizes = []
    for _ in range(_REPEATS):
        await ingest_all(room, folder)
        await remove_all(room)
        sizes.append(resident_mb(room.process.pid))
    return sizes
