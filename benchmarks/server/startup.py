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

from benchmarks.server.wires import LEGACY, LIST_TOOLS, MODERN, handshake
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
class StartUp:
    """A process, what is written to it, and the line that says it is there."""

    name: str
    command: tuple[str, ...]
    messages: bytes
    is_ready: Callable[[bytes], bool]
    target: float | None = None


def measure(rounds: int) -> Table:
    """Start each of them in turn, so many times."""
    seconds: dict[str, list[float]] = {start_up.name: [] for start_up in _START_UPS}
    with tempfile.TemporaryDirectory() as data:
        environment = _make_environment(data)
        for number in range(rounds + 1):
            for start_up in _rotate_starts(number):
                seconds_taken = _measure_start(start_up, environment)
                if number:  # the first round fills the file cache and compiles what is new
                    seconds[start_up.name].append(seconds_taken)
    return Table(
        "Cold start over stdio, to the answer of the first `tools/list`",
        ("process", "median ms", "ratio", "target"),
        tuple(_render_row(start_up, seconds) for start_up in _START_UPS),
        _NOTE.format(rounds=rounds),
    )


def _is_import_line(line: bytes) -> bool:
    return line == b"imported\n"


def _is_listing(line: bytes) -> bool:
    answer = json.loads(line)
    if answer.get("id") != LIST_TOOLS.id:
        return False
    if not answer["result"]["tools"]:
        raise AssertionError(f"no tools in {line!r}")
    return True


def _make_server_start(
    name: str, revision: str, *command: str, target: float | None = None
) -> StartUp:
    lines = [message.encode(revision) + b"\n" for message in (*handshake(revision), LIST_TOOLS)]
    return StartUp(f"{name}, {revision}", command, b"".join(lines), _is_listing, target)


_FLOOR = StartUp(
    "`import mcp.server` (the floor)",
    (_PYTHON, "-c", "import mcp.server; print('imported', flush=True)"),
    b"",
    _is_import_line,
)
_START_UPS = (
    _FLOOR,
    _make_server_start("bare SDK server", LEGACY, _PYTHON, _PEER),
    _make_server_start("bare SDK server", MODERN, _PYTHON, _PEER),
    _make_server_start(
        "`readingroom stdio text`", LEGACY, _READINGROOM, "stdio", "text", target=TARGET
    ),
    _make_server_start(
        "`readingroom stdio text`", MODERN, _READINGROOM, "stdio", "text", target=TARGET
    ),
)


def _rotate_starts(number: int) -> tuple[StartUp, ...]:
    """Everybody once, beginning elsewhere each round."""
    first = number % len(_START_UPS)
    return _START_UPS[first:] + _START_UPS[:first]


def _make_environment(data: str) -> dict[str, str]:
    """This process's, without any setting of ours and with an empty data directory."""
    other_variables = {
        key: value for key, value in os.environ.items() if not key.startswith(_SETTINGS)
    }
    return {**other_variables, "READINGROOM_DATA": data}


def _measure_start(start_up: StartUp, environment: Mapping[str, str]) -> float:
    """The seconds one start took."""
    began = time.perf_counter()
    with subprocess.Popen(
        start_up.command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(start_up.messages)
        process.stdin.flush()
        answered = any(start_up.is_ready(line) for line in process.stdout)
        seconds_taken = time.perf_counter() - began
        process.stdin.close()
        errors = process.stderr.read().decode()
    if not answered or process.returncode:
        raise AssertionError(f"{start_up.name} ended with {process.returncode}:\n{errors}")
    return seconds_taken


def _render_row(start_up: StartUp, seconds: Mapping[str, list[float]]) -> tuple[str, ...]:
    seconds_taken = seconds[start_up.name]
    ratio = Ratio(seconds_taken, seconds[_FLOOR.name])
    verdict = ratio.against(start_up.target) if start_up.target else ""
    return (start_up.name, f"{median(seconds_taken) * 1000:.0f}", str(ratio), verdict)
