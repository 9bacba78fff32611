"""Files that a command hands over to the process that owns a base's folder.

The owner gets a copy of the bytes, and never opens a path that a caller names. The copy is in
`<data>/<base>/handover` under a random name, and is deleted after its use.
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

HANDOVER_FOLDER_NAME = "handover"
_MAX_HANDOVER_AGE = timedelta(days=1)

# The name of a file or folder there. No other character is allowed, so none can be a path.
HandoverName = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


def hand_over_file(base_folder: Path, file_path: Path) -> str:
    """Copy a file to where the owner of the folder finds it, and return its name there."""
    handover_folder = base_folder / HANDOVER_FOLDER_NAME
    handover_folder.mkdir(parents=True, exist_ok=True)
    copy_name = uuid.uuid4().hex
    shutil.copyfile(file_path, handover_folder / copy_name)
    return copy_name


def delete_old_handovers(base_folder: Path, current_time: datetime) -> None:
    """Delete copies older than a day: the command that made them was killed before it used them.

    The change time of the inode decides, because a copied folder may keep its modification dates.
    """
    for copy_path in (base_folder / HANDOVER_FOLDER_NAME).glob("*"):
        with suppress(OSError):  # another process may be deleting it at this moment
            if (
                current_time.timestamp() - copy_path.lstat().st_ctime
                < _MAX_HANDOVER_AGE.total_seconds()
            ):
                continue
            if copy_path.is_dir():
                shutil.rmtree(copy_path)
            else:
                copy_path.unlink()


@asynccontextmanager
async def open_handed_over_file(base_folder: Path, copy_name: str) -> AsyncIterator[Path]:
    """Yield the path of a copy, and delete it at the end."""
    copy_path = base_folder / HANDOVER_FOLDER_NAME / copy_name
    try:
        yield copy_path
    finally:
        await anyio.Path(copy_path).unlink(missing_ok=True)
