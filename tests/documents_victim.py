"""A process that prepares a documents base, begins one change and kills itself at a named step."""

import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import anyio

from readingroom.bases.documents.models import RemoveDocument
from tests.documents import PLAIN, Desk, desk, plain

OLD = plain("Bats roost in the barn.", "They fly at dusk.")
NEW = plain("Cycle parking is covered.", "There are two hundred spaces.", "Trips were counted.")


@dataclass(frozen=True)
class Change:
    """What is there before, what is done, and how many documents there may be afterwards."""

    prepare: Callable[[Desk], Awaitable[object]]
    make: Callable[[Desk], Awaitable[object]]
    outcomes: tuple[int, ...]
    steps: tuple[str, ...]


async def one(library: Desk) -> None:
    await library.ingest("old.pdf", OLD)


async def two(library: Desk) -> None:
    await one(library)
    await library.ingest("new.pdf", NEW)


async def ingest(library: Desk) -> None:
    await library.ingest("new.pdf", NEW)


async def broken(library: Desk) -> None:
    """A document whose last chunk was lost, as by somebody else's hand."""
    await two(library)
    (record,) = [
        one for one in await library.service.store.documents() if one.source_file == "new.pdf"
    ]
    chunks = await library.service.store.chunks_of(record.document_id)
    await library.service.store.delete([chunks[-1].chunk_id])


async def remove(library: Desk) -> None:
    (record,) = [
        one for one in await library.service.store.documents() if one.source_file == "new.pdf"
    ]
    await library.service.remove(RemoveDocument(document_id=record.document_id))


_INGEST = (
    *("ingest:begin", "ingest:file", "ingest:chunks", "ingest:surplus", "ingest:registry"),
    "ingest:end",
)
_REMOVE = ("remove:begin", "remove:registry", "remove:chunks", "remove:file", "remove:end")

CHANGES = {
    "ingest": Change(one, ingest, (1, 2), _INGEST),
    "mend": Change(broken, ingest, (2,), _INGEST),
    "remove": Change(two, remove, (1,), _REMOVE),
}


async def _change(folder: Path, change: str, step: str) -> None:
    armed = False

    def at(name: str) -> None:
        if armed and name == step:
            os.kill(os.getpid(), signal.SIGKILL)

    async with desk(folder, at=at, **PLAIN) as library:
        await CHANGES[change].prepare(library)
        armed = True
        await CHANGES[change].make(library)


def main(folder: Path, change: str, step: str) -> None:
    """What the process runs; it comes back only when the step was never reached."""
    anyio.run(_change, folder, change, step)
