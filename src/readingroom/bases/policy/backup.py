"""The whole policy base as files that another folder can be filled with, and back.

Registry and chunks are written as what they say, so a backup outlives the version of either store
and can move from our own registry to one at REDIS_URL.
"""

import shutil
from pathlib import Path

import anyio
import anyio.to_thread
from pydantic import BaseModel

from readingroom.bases.policy.registry.records import Policy, Revision
from readingroom.bases.policy.service import PolicyService
from readingroom.protocol.backup import BackupCounts
from readingroom.storage.errors import BackupUnusable, DataNotEmpty
from readingroom.storage.files import link_or_copy

_REGISTRY = "registry.json"
_CHUNKS = "chunks.db"
_FILES = "files"


async def write_copy(service: PolicyService, folder: Path) -> BackupCounts:
    """Everything at one moment: changes wait until it is written, searches do not."""
    async with service.ingestion.paused():
        catalogue = await service.registry.catalogue()
        await anyio.Path(folder).mkdir(parents=True)
        chunks = await service.store.dump(folder / _CHUNKS)
        revisions = [one for of in catalogue.timelines.values() for one in of]
        files = {
            f"{one.source}/{one.revision_id}.pdf": service.ingestion.file_of(
                one.source, one.revision_id
            )
            for one in revisions
        }
        await anyio.to_thread.run_sync(_link_all, files, folder / _FILES)
    book = _Book(policies=list(catalogue.policies.values()), revisions=revisions)
    await anyio.Path(folder / _REGISTRY).write_text(book.model_dump_json(), "utf-8")
    return _counted(book, chunks)


async def read_copy(
    service: PolicyService, folder: Path, home: Path, replace: bool
) -> BackupCounts:
    """Fill an empty base; `home` is where its folder will lie in the end."""
    try:
        book = _Book.model_validate_json(await anyio.Path(folder / _REGISTRY).read_bytes())
    except (OSError, ValueError) as error:
        raise BackupUnusable(f"The policies of the backup cannot be read: {error}") from error
    if (await service.registry.catalogue()).policies:
        if not replace:
            raise DataNotEmpty(
                "The registry at REDIS_URL holds policies already; choose another database there, "
                "or replace them with --force"
            )
        await service.registry.clear()
    chunks = await service.store.fill(folder / _CHUNKS)
    await anyio.to_thread.run_sync(_move_all, service, book, folder / _FILES)
    revisions = [_at_home(one, service, home) for one in book.revisions]
    await service.registry.fill(book.policies, revisions)
    return _counted(book, chunks)


def _counted(book: "_Book", chunks: int) -> BackupCounts:
    counts = {"policies": len(book.policies), "revisions": len(book.revisions), "chunks": chunks}
    return BackupCounts(counts=counts)


class _Book(BaseModel):
    """The registry, as a backup keeps it."""

    policies: list[Policy]
    revisions: list[Revision]


def _link_all(files: dict[str, Path], folder: Path) -> None:
    for name, file in files.items():
        if file.exists():
            link_or_copy(file, folder / name)


def _move_all(service: PolicyService, book: _Book, folder: Path) -> None:
    for one in book.revisions:
        kept = folder / one.source / f"{one.revision_id}.pdf"
        if kept.exists():
            target = service.ingestion.file_of(one.source, one.revision_id)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(kept, target)


def _at_home(revision: Revision, service: PolicyService, home: Path) -> Revision:
    file = service.ingestion.file_of(revision.source, revision.revision_id)
    return revision.model_copy(update={"file_path": str(home / file.relative_to(service.folder))})
