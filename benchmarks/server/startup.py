"""Cold start over stdio: from the start of the process to the answer of the first `tools/list`."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.server.wires import LEGACY, LIST_TOOLS, MODERN, opening
from benchmarks.table import Ratio, Table

TARGET = 1.5

_PYTHON = sys.executable
_READINGROOM = str(Path(sys.executable).with_name("readingroom"))  # as a client's settings name it
_PEER = str(Path(__file__).with_name("peer.py"))
_SETTINGS = ("READINGROOM_", "KB_", "MCP_", "OTEL_")

_NOTE = (
    "Wall time from the start of the process to the line on its standard output; the exit of the "
    "interpreter is not counted, in the floor neither. Median of {rounds} rounds in which all take "
    "turns, after one that is not counted. Ratio: to the floor of the same round, median "
    "(lowest to highest)."
)


@dataclass(frozen=True)
class Starter:
    """A process, what is written to it, and the line that says it is there."""

    name: str
    command: tuple[str, ...]
    messages: bytes
    ready: Callable[[bytes], bool]
    target: float | None = None


def measure(rounds: int) -> Table:
    """Start each of them in turn, so many times."""
    seconds: dict[str, list[float]] = {starter.name: [] for starter in _STARTERS}
    with tempfile.TemporaryDirectory() as data:
        environment = _environment(data)
        for number in range(rounds + 1):
            for starter in _turned(number):
                took = _start(starter, environment)
                if number:  # the first round fills the file cache and compiles what is new
                    seconds[starter.name].append(took)
    return Table(
        "Cold start over stdio, to the answer of the first `tools/list`",
        ("process", "median ms", "ratio", "target"),
        tuple(_row(starter, seconds) for starter in _STARTERS),
        _NOTE.format(rounds=rounds),
    )


def _imported(line: bytes) -> bool:
    return line == b"imported\n"


def _listed(line: bytes) -> bool:
    answer = json.loads(line)
    if answer.get("id") != LIST_TOOLS.id:
        return False
    if not answer["result"]["tools"]:
        raise AssertionError(f"no tools in {line!r}")
    return True


def _server(name: str, revision: str, *command: str, target: float | None = None) -> Starter:
    lines = [message.on(revision) + b"\n" for message in (*opening(revision), LIST_TOOLS)]
    return Starter(f"{name}, {revision}", command, b"".join(lines), _listed, target)


_FLOOR = Starter(
    "`import mcp.server` (the floor)",
    (_PYTHON, "-c", "import mcp.server; print('imported', flush=True)"),
    b"",
    _imported,
)
_STARTERS = (
    _FLOOR,
    _server("bare SDK server", LEGACY, _PYTHON, _PEER),
    _server("bare SDK server", MODERN, _PYTHON, _PEER),
    _server("`readingroom stdio text`", LEGACY, _READINGROOM, "stdio", "text", target=TARGET),
    _server("`readingroom stdio text`", MODERN, _READINGROOM, "stdio", "text", target=TARGET),
)


def _turned(number: int) -> tuple[Starter, ...]:
    """Everybody once, beginning elsewhere each round."""
    first = number % len(_STARTERS)
    return _STARTERS[first:] + _STARTERS[:first]


def _environment(data: str) -> dict[str, str]:
    """This process's, without any setting of ours and with an empty data directory."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_SETTINGS)}
    return {**kept, "READINGROOM_DATA": data}


def _start(starter: Starter, environment: Mapping[str, str]) -> float:
    """The seconds one start took."""
    began = time.perf_counter()
    with subprocess.Popen(
        starter.command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(starter.messages)
        process.stdin.flush()
        answered = any(starter.ready(line) for line in process.stdout)
        took = time.perf_counter() - began
        process.stdin.close()
        errors = process.stderr.read().decode()
    if not answered or process.returncode:
        raise AssertionError(f"{starter.name} ended with {process.returncode}:\n{errors}")
    return took


def _row(starter: Starter, seconds: Mapping[str, list[float]]) -> tuple[str, ...]:
    took = seconds[starter.name]
    ratio = Ratio(took, seconds[_FLOOR.name])
    verdict = ratio.against(starter.target) if starter.target else ""
    return (starter.name, f"{median(took) * 1000:.0f}", str(ratio), verdict)
