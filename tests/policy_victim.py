"""A process that prepares a policy base, begins one change and kills itself at a named step."""

import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import anyio

from readingroom.bases.policy.models import (
    IngestPolicyRevision,
    PolicyPatch,
    RemovePolicyRevision,
    RevisionPatch,
)
from tests.policies import PLAIN, Shelf, plain, shelf, unheard

OLD, NEW = "rev_NPPF_2023_09", "rev_NPPF_2024_12"


@dataclass(frozen=True)
class Change:
    """What is there before, what is done, and which revisions may answer for 2025 afterwards."""

    prepare: Callable[[Shelf], Awaitable[object]]
    make: Callable[[Shelf], Awaitable[object]]
    outcomes: tuple[tuple[str, ...], ...]


def _text(label: str) -> bytes:
    return plain(f"Cycle parking follows the {label} standard.", "Homes.", "Roads.", "Trees.")


async def one(library: Shelf) -> None:
    await library.add("NPPF", "National Planning Policy Framework")
    await library.revise("NPPF", "September 2023", "2023-09-05", content=_text("September 2023"))


async def two(library: Shelf) -> None:
    await one(library)
    await library.revise("NPPF", "December 2024", "2024-12-12", content=_text("December 2024"))


async def supersede(library: Shelf) -> None:
    await library.revise("NPPF", "December 2024", "2024-12-12", content=_text("December 2024"))


async def reindex(library: Shelf) -> None:
    """With a file of other, and fewer, chunks."""
    path = library.inbox("other.pdf", plain("Cycle parking is free."))
    question = IngestPolicyRevision(source="NPPF", revision_id=NEW, file_path=path, reindex=True)
    await library.service.ingest(question, unheard)


async def remove(library: Shelf) -> None:
    await library.service.remove(RemovePolicyRevision(source="NPPF", revision_id=OLD))


async def delete(library: Shelf) -> None:
    await library.registrar.delete_revision("NPPF", OLD)


async def redate(library: Shelf) -> None:
    patch = RevisionPatch.model_validate_json('{"effective_to": "2024-06-30"}')
    await library.registrar.amend_revision("NPPF", OLD, patch)


async def retitle(library: Shelf) -> None:
    await library.registrar.amend_policy("NPPF", PolicyPatch(title="The Framework"))


async def insert(library: Shelf) -> None:
    await library.revise("NPPF", "July 2021", "2021-07-20", "2023-09-04", _text("July 2021"))


_SEP, _DEC = ("September 2023",), ("December 2024",)

CHANGES = {
    "supersede": Change(one, supersede, (_SEP, _DEC)),
    "insert": Change(two, insert, (_DEC,)),
    "reindex": Change(two, reindex, (_DEC,)),
    "remove": Change(two, remove, (_DEC,)),
    "delete": Change(two, delete, (_DEC,)),
    "redate": Change(two, redate, (_DEC,)),
    "retitle": Change(two, retitle, (_DEC,)),
}

_CREATE = ("create:begin", "create:file", "create:registry", "create:end")
_INGEST = (
    *("ingest:begin", "ingest:intent", "ingest:chunks", "ingest:surplus", "ingest:file"),
    *("ingest:registry", "ingest:dates", "ingest:end"),
)
STEPS = {
    "supersede": (*_CREATE, *_INGEST),
    "insert": ("create:registry", "ingest:chunks", "ingest:registry"),
    "reindex": _INGEST,
    "remove": ("remove:begin", "remove:chunks", "remove:registry", "remove:end"),
    "delete": (
        *("delete:begin", "delete:registry", "delete:chunks", "delete:file"),
        *("delete:dates", "delete:end"),
    ),
    "redate": ("amend:begin", "amend:registry", "amend:dates", "amend:end"),
    "retitle": ("amend:begin", "amend:policy", "amend:titles", "amend:end"),
}


async def _change(folder: Path, change: str, step: str) -> None:
    armed = False

    def at(name: str) -> None:
        if armed and name == step:
            os.kill(os.getpid(), signal.SIGKILL)

    async with shelf(folder, at=at, **PLAIN) as library:
        await CHANGES[change].prepare(library)
        armed = True
        await CHANGES[change].make(library)


def main(folder: Path, change: str, step: str) -> None:
    """What the process runs; it comes back only when the step was never reached."""
    anyio.run(_change, folder, change, step)
