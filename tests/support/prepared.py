"""Folders that take long to fill, filled once in a run, whichever worker needs them first."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def prepare_once(
    tmp_path_factory: pytest.TempPathFactory, name: str, fill: Callable[[Path], None]
) -> Path:
    """Return the folder of this name, filled by the first worker that asks; tests only read it."""
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent  # the workers' folders lie beside each other in it
    folder, mark = place / name, place / f"{name}.filled"
    with (place / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a worker that failed
            folder.mkdir()
            fill(folder)
            mark.touch()
    return folder
