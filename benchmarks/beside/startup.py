"""Both versions from nothing: over stdio, over HTTP, and until the sample is loaded."""

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from benchmarks.beside.client import StdioClient
from benchmarks.beside.rounds import ROUNDS, Costs, ProcessorClock, compare, open_versions
from benchmarks.redesign.tables import MODELS, Version, serve
from benchmarks.server.wires import LEGACY, LIST_TOOLS, MODERN, call_tool
from benchmarks.table import Table

_CALLS = 150
_LOAD_SECONDS = 600
_READ_TEXT = call_tool("get_kb_content", {})


def tables(quick: bool) -> Iterator[Table]:
    with tempfile.TemporaryDirectory() as folder:
        yield compare(
            "Beside 0.1.0: starting",
            "beside-startup",
            open_versions(Path(folder)),
            [measure_stdio, measure_serving, measure_sample],
            1 if quick else ROUNDS,
        )


def measure_stdio(version: Version) -> Costs:
    """Return what `readingroom stdio text` costs until its first listing, and then for a call."""
    costs: Costs = {}
    for revision in (LEGACY, MODERN):
        with _run_stdio(version) as process:
            client, clock = StdioClient(process, revision), ProcessorClock(process.pid)
            assert client.send_message(LIST_TOOLS)["tools"]
            costs[f"`stdio text` until the first `tools/list`, {revision}"] = clock.read_seconds()
            before = clock.read_seconds()
            for _ in range(_CALLS):
                client.send_message(LIST_TOOLS)
            after_listings = clock.read_seconds()
            for _ in range(_CALLS):
                client.send_message(_READ_TEXT)
            after_calls = clock.read_seconds()
        costs[f"`tools/list` of the text base over stdio, {revision}"] = (
            after_listings - before
        ) / _CALLS
        costs[f"a call of the text base over stdio, {revision}"] = (
            after_calls - after_listings
        ) / _CALLS
    return costs


def measure_serving(version: Version) -> Costs:
    """Return what `readingroom serve text` costs until /health answers."""
    with (
        tempfile.TemporaryDirectory() as data,
        serve(version, Path(data), "text") as (process, address),
    ):
        with urlopen(f"{address}/health", timeout=60) as response:
            assert response.status == 200
        seconds = ProcessorClock(process.pid).read_seconds()
    return {"`serve text` until /health answers": seconds}


def measure_sample(version: Version) -> Costs:
    """Return what `readingroom serve --demo` costs until the whole sample is loaded."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        (data / "models").symlink_to(MODELS)
        with serve(version, data, "--demo") as (process, _):
            deadline = time.monotonic() + _LOAD_SECONDS
            while json.loads((data / "sample.json").read_text())["state"] == "loading":
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{version.name} did not load the sample in time")
                time.sleep(0.1)
            seconds = ProcessorClock(process.pid).read_seconds()
    return {"`serve --demo` until the sample is loaded": seconds}


@contextmanager
def _run_stdio(version: Version) -> Iterator[subprocess.Popen[bytes]]:
    with tempfile.TemporaryDirectory() as data:
        text = Path(data, "notes.txt")
        text.write_text("The reading room opens at nine. " * 100, "utf-8")
        process = subprocess.Popen(
            version.command("stdio", "text", "--data", data, "--file", str(text)),
            env=version.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        with process:
            yield process
            assert process.stdin
            process.stdin.close()
