"""0.1.0 and the present tree in alternating rounds, by processor time."""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.request import Request, urlopen

from benchmarks.engine import lexical_release
from benchmarks.engine.corpus import SHARED
from benchmarks.server.wires import MODERN, call_tool
from benchmarks.table import Ratio, Table

ROOT = Path(__file__).parents[2]
BASELINE_COMMIT = "b0dd50c"
BASELINE_VARIABLE = "BENCHMARK_BASELINE"
"""Names a worktree of 0.1.0; without it one is made in build/."""
MODELS = ROOT / "build" / "models"
OPEN_BASES = Path(__file__).with_name("open_bases.py")
QUESTION = "how many cycle parking spaces for a house?"
FIRST_SEARCHES = (
    ("policy", "search_policy"),
    ("documents", "search_application_docs"),
    ("federal", "search"),
)
_LOAD_SECONDS = 600
_JSON_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}


@dataclass(frozen=True)
class Version:
    """A source tree, and the sample as that tree has loaded it."""

    name: str
    source: Path
    sample: Path

    @property
    def environment(self) -> dict[str, str]:
        # Both run on the present .venv, whose packages include those of 0.1.0.
        settings = ("READINGROOM_", "KB_", "MCP_", "OTEL_")
        others = {key: value for key, value in os.environ.items() if not key.startswith(settings)}
        # As it is once installed: compiled by the round that is not counted.
        others.pop("PYTHONDONTWRITEBYTECODE", None)
        return {**others, "PYTHONPATH": str(self.source)}

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "readingroom", *words]


Measure = Callable[[Version], float]


def tables(quick: bool) -> Iterator[Table]:
    rounds = 1 if quick else 9
    with tempfile.TemporaryDirectory() as folder:
        versions = [
            Version("0.1.0", find_baseline() / "src", Path(folder) / "old"),
            Version("now", ROOT / "src", Path(folder) / "new"),
        ]
        for version in versions:
            load_sample(version)
        yield compare_versions(versions, rounds)
    if SHARED.is_dir():  # the search is measured on real text, which is not in the repository
        yield lexical_release.measure(find_baseline() / "src", rounds=rounds)


def compare_versions(versions: list[Version], rounds: int) -> Table:
    """Measure both versions in turn; the first round is not counted."""
    rows = []
    for name, measure, target in MEASURES:
        seconds: dict[str, list[float]] = {version.name: [] for version in versions}
        for number in range(rounds + 1):
            for version in versions if number % 2 else reversed(versions):
                spent = measure(version)
                if number:
                    seconds[version.name].append(spent)
        old, new = (seconds[version.name] for version in versions)
        ratio = Ratio(new, old)
        verdict = ratio.against(target) if target else ""
        rows.append((name, render_spread(old), render_spread(new), str(ratio), verdict))
    return Table(
        "The redesign beside 0.1.0, by processor time",
        ("what", "median of 0.1.0, ms", "median now, ms", "ratio", "target"),
        tuple(rows),
        f"User and system time of the process and its children; median (lowest to highest) of "
        f"{rounds} rounds in which both versions take turns, after one that is not counted. Both "
        "run on the same interpreter and packages. Ratio: now to 0.1.0 of the same round.",
    )


def render_spread(seconds: list[float]) -> str:
    low, middle, high = (value * 1000 for value in (min(seconds), median(seconds), max(seconds)))
    return f"{middle:,.1f} ({low:,.1f} to {high:,.1f})"


def find_baseline() -> Path:
    """Return a worktree of 0.1.0: the one that the environment names, or one in build/."""
    if chosen := os.environ.get(BASELINE_VARIABLE):
        return Path(chosen).absolute()
    folder = ROOT / "build" / "0.1.0"
    if not folder.exists():
        command = ["git", "worktree", "add", "--detach", folder, BASELINE_COMMIT]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


def measure_ask(version: Version) -> float:
    """Return the processor seconds of one `readingroom ask` on the sample, without a server."""
    words = ("ask", QUESTION, "--demo", "--data", str(version.sample))
    return measure_process(version.command(*words), version)


def measure_opening(version: Version) -> float:
    """Return the processor seconds of opening every base, as `open_bases.py` measures them."""
    with tempfile.TemporaryDirectory() as data:
        output = subprocess.run(
            [sys.executable, OPEN_BASES, data],
            env=version.environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    return float(output)


def measure_health(version: Version) -> float:
    """Return the processor seconds of a server until it has said that every base answers."""
    with tempfile.TemporaryDirectory() as data, serve(version, Path(data)) as (process, address):
        with urlopen(f"{address}/health", timeout=60) as response:
            assert response.status == 200
        return read_processor_seconds(process.pid)


def measure_first_health(version: Version) -> float:
    """Return the processor seconds from the open port until /health answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (
        tempfile.TemporaryDirectory() as data,
        start_server(version, Path(data), "--port", str(port)) as process,
        connect(port) as connection,
    ):
        before = read_processor_seconds(process.pid)
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        return read_processor_seconds(process.pid) - before


def connect(port: int) -> socket.socket:
    """Return a connection to the port, as soon as it is open."""
    deadline = time.monotonic() + _LOAD_SECONDS
    while time.monotonic() < deadline:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=_LOAD_SECONDS)
        except ConnectionRefusedError:
            time.sleep(0.01)
    raise TimeoutError(f"nothing listens on port {port}")


def measure_first_searches(version: Version) -> float:
    """Return the processor seconds of the first search of each base that holds texts.

    The server has done by then whatever it does before anybody asks.
    """
    with serve(version, version.sample, "--demo") as (process, address):
        wait_until_idle(process.pid)
        before = read_processor_seconds(process.pid)
        for base, tool in FIRST_SEARCHES:
            search(f"{address}/{base}/mcp", tool)
        return read_processor_seconds(process.pid) - before


def wait_until_idle(process: int) -> None:
    """Wait until a process has used no processor for three seconds."""
    last, since = -1.0, time.monotonic()
    while time.monotonic() - since < 3:
        time.sleep(0.1)
        if (spent := read_processor_seconds(process)) != last:
            last, since = spent, time.monotonic()


def search(url: str, tool: str) -> None:
    """Call a tool with the question, over the wire of 2026-07-28."""
    message = call_tool(tool, {"query": QUESTION})
    headers = {**message.headers(MODERN), **_JSON_HEADERS}
    with urlopen(Request(url, message.encode(MODERN), headers), timeout=_LOAD_SECONDS) as response:
        assert b'"isError":true' not in response.read()


def measure_process(command: list[str], version: Version) -> float:
    process = subprocess.Popen(
        command, env=version.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, output.decode()
    return usage.ru_utime + usage.ru_stime


def read_processor_seconds(process: int) -> float:
    """Return the user and system time of a running process and of its children that ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serve(version: Version, data: Path, *flags: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a server; yield its process and its address when it is ready."""
    with start_server(version, data, "--port", "0", *flags) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert match, line
        yield process, match[0]


@contextmanager
def start_server(version: Version, data: Path, *flags: str) -> Iterator[subprocess.Popen[str]]:
    """Run a server; yield its process at once, and end it on exit."""
    command = version.command("serve", "--json", "--data", str(data), *flags)
    with subprocess.Popen(
        command,
        env=version.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def load_sample(version: Version) -> None:
    """Load the sample corpus into the version's own data directory."""
    version.sample.mkdir()
    if MODELS.is_dir():
        (version.sample / "models").symlink_to(MODELS)
    with serve(version, version.sample, "--demo"):
        deadline = time.monotonic() + _LOAD_SECONDS
        while json.loads((version.sample / "sample.json").read_text())["state"] == "loading":
            if time.monotonic() > deadline:
                raise TimeoutError(f"{version.name} did not load the sample in time")
            time.sleep(0.5)


MEASURES: tuple[tuple[str, Measure, float | None], ...] = (
    ("`readingroom ask` on the sample", measure_ask, 0.55),
    ("opening all bases", measure_opening, 0.5),
    ("`readingroom serve` until every base answers", measure_health, None),
    ("from the open port until /health answers", measure_first_health, 0.1),
    ("the first search of three bases, on a settled server", measure_first_searches, 0.5),
)
