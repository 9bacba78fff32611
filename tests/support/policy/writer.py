"""A process that adds revisions to policies on a shared database until it is killed."""

import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator
from datetime import date, timedelta
from pathlib import Path

import anyio

from readingroom.bases.policy.service import PolicyService
from readingroom.core import clock
from readingroom.core.errors import KnowledgeError
from readingroom.ingest.context import IngestContext
from readingroom.ingest.private_copy import AllowedFolders
from readingroom.storage.postgres.database import open_database
from tests.support.policy.base import PLAIN, PolicyLibrary, plain


@contextlib.asynccontextmanager
async def open_writer_library(url: str, folder: Path) -> AsyncIterator[PolicyLibrary]:
    """A policy base on the database at a URL."""
    roots = AllowedFolders("POLICY_ROOTS", (folder / "inbox",), 256 * 2**20)
    context = IngestContext(
        PLAIN["pipeline"], PLAIN["embedder"], roots, clock.now, database=open_database(url)
    )
    service = PolicyService(folder, None, context)
    async with service.run_service():
        yield PolicyLibrary(service, folder)


async def write(name: str, url: str, folder: Path) -> None:
    """Add revisions to three policies that all writers share; note each that was acknowledged."""
    acknowledged = os.open(folder / f"acknowledged-{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    async with open_writer_library(url, folder / name) as library:
        number = int(time.time() * 10) % 10_000_000
        while True:
            number += 1
            source = f"POLICY_{number % 3}"
            with contextlib.suppress(KnowledgeError):
                await library.add(source)
            # Days of its own, so that only a true conflict is refused.
            day = date(1600, 1, 1) + timedelta(days=(number * 3 + int(name)) % 140_000)
            try:
                revision_id = await library.revise(
                    source,
                    f"number {number}",
                    day.isoformat(),
                    day.isoformat(),
                    plain(f"Cycle parking {number}.", "Homes.", "Trees."),
                )
            except KnowledgeError:
                await anyio.sleep(0.1)
                continue
            os.write(acknowledged, f"{source} {revision_id}\n".encode())


if __name__ == "__main__":
    anyio.run(write, sys.argv[1], sys.argv[2], Path(sys.argv[3]))
