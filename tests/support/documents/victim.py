"""Processes that begin one change of a documents base and kill themselves at a named step."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from readingroom.bases.documents.models import RemoveDocument
from readingroom.bases.documents.registry.records import DocumentRecord
from tests.support.documents.base import PLAIN, Desk, open_documents_base
from tests.support.policy.base import plain
from tests.support.victim import KillAtStep, do_and_be_killed

OLD = plain("Bats roost in the barn.", "They fly at dusk.")
NEW = plain("Cycle parking is covered.", "There are two hundred spaces.", "Trips were counted.")


@dataclass(frozen=True)
class Change:
    """What is there before, what is done, and how many documents there may be afterwards."""

    prepare: Callable[[Desk], Awaitable[object]]
    make: Callable[[Desk], Awaitable[object]]
    outcomes: tuple[int, ...]
    steps: tuple[str, ...]


async def add_first_document(library: Desk) -> None:
    await library.ingest("old.pdf", OLD)


async def add_second_document(library: Desk) -> None:
    await add_first_document(library)
    await library.ingest("new.pdf", NEW)


async def ingest(library: Desk) -> None:
    await library.ingest("new.pdf", NEW)


async def break_document(library: Desk) -> None:
    """A document whose last chunk was lost, as by somebody else's hand."""
    await add_second_document(library)
    record = await _newer(library)
    chunks = await library.service.store.get_chunks(record.document_id)
    await library.service.store.delete_chunks([chunks[-1].chunk_id])


async def remove(library: Desk) -> None:
    record = await _newer(library)
    await library.service.remove_document(RemoveDocument(document_id=record.document_id))


async def _newer(library: Desk) -> DocumentRecord:
    return next(
        one for one in await library.service.store.list_records() if one.source_file == "new.pdf"
    )


_INGEST = (
    *("ingest:begin", "ingest:file", "ingest:chunks", "ingest:surplus", "ingest:registry"),
    "ingest:end",
)
_REMOVE = ("remove:begin", "remove:registry", "remove:chunks", "remove:file", "remove:end")

CHANGES = {
    "ingest": Change(add_first_document, ingest, (1, 2), _INGEST),
    "mend": Change(break_document, ingest, (2,), _INGEST),
    "remove": Change(add_second_document, remove, (1,), _REMOVE),
}


def kill_at(folder: Path, change: str, step: str) -> None:
    """Prepare the base and make the change in a process that kills itself at the step."""
    do_and_be_killed(_change, folder, change, step)


async def _change(folder: Path, change: str, step: str) -> None:
    trap = KillAtStep(step)
    async with open_documents_base(folder, on_step=trap, **PLAIN) as library:
        await CHANGES[change].prepare(library)
        trap.is_set = True
        await CHANGES[change].make(library)
