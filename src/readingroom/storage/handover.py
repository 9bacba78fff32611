"""Files that one process leaves for the owner of a base's folder: bytes, not a caller's path.

A copy lies in `<data>/<base>/handover` under a name nobody else has, and goes when it was used.
"""

import shutil
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import anyio
from pydantic import Field

HANDOVER = "handover"
_KEPT = timedelta(days=1)

# The name of a file there, or of a folder.
HandedOver = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


def hand_over(base_folder: Path, file: Path) -> str:
    """Put a copy where the owner of the folder finds it; returns its name there."""
    folder = base_folder / HANDOVER
    folder.mkdir(parents=True, exist_ok=True)
    name = uuid.uuid4().hex
    shutil.copyfile(file, folder / name)
    return name


def sweep_handover(base_folder: Path, now: datetime) -> None:
    """Delete what nobody came for within a day: who left it was killed before the owner was asked.

    The inode's time counts, for the copy of a folder may keep the dates of what was copied.
    """
    for path in (base_folder / HANDOVER).glob("*"):
        with suppress(OSError):  # another may be taking it away at this moment
            if now.timestamp() - path.lstat().st_ctime < _KEPT.total_seconds():
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


@asynccontextmanager
async def handed_over(base_folder: Path, name: str) -> AsyncIterator[Path]:
    """The copy, until this is left."""
    path = base_folder / HANDOVER / name
    try:
        yield path
    finally:
        await anyio.Path(path).unlink(missing_ok=True)
