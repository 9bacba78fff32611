"""Bulk embedding on a graphics card: tokens, forward pass, both together, and into a database.

Runs by itself on a machine that has only torch, tokenizers and numpy:

    python3 -m benchmarks.gpu.bulk --weights weights.npz --tokenizer tokenizer.json

`--sample` holds texts and their float32 vectors, made beforehand on the processor; the cosine of
each is reported, and the card's vectors are written beside it. `python -m benchmarks.gpu.prepare`
makes all three files.
"""

import argparse
import json
import random
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Tokenizer

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

from readingroom.engine.embedding.bulk import (
    TEXTS_PER_BATCH,
    TokenizingPool,
    embed_stream,
)

if TYPE_CHECKING:
    from readingroom.engine.embedding.packed import PackedEncoder

MAX_TOKENS = 256
_SEED = 20261116
_PARAMETERS_PER_TOKEN = 6 * (4 * 384 * 384 + 2 * 384 * 1536)


def main() -> None:
    # Not on top: this module can be imported where torch, which is an extra, is not installed.
    import torch

    from readingroom.engine.embedding.packed import PackedEncoder

    options = _parse_options()
    config, weights = _read_weights(options.weights)
    encoder = PackedEncoder(config, weights, options.device)
    results: dict[str, Any] = {"device": options.device, "torch": torch.__version__}
    if options.device == "cuda":
        results["device"] = torch.cuda.get_device_name()
        results["matmul_tflops"] = _measure_matmul(torch)
    if options.sample:
        results |= _compare_sample(encoder, options)
    texts = make_passages(options.tokenizer, options.texts)
    batches = _split(texts)
    with TokenizingPool(options.tokenizer, MAX_TOKENS, options.processes) as pool:
        list(
            embed_stream(encoder, pool, enumerate(batches[: 4 * pool.process_count]))
        )  # everything warm
        results |= _measure_stages(encoder, pool, texts, options)
        if options.stored:
            results |= _measure_stored(encoder, pool, options)
    results["host_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    if options.device == "cuda":
        results["card_memory_mb"] = torch.cuda.max_memory_allocated() // 2**20
    print(json.dumps(results, indent=1))
    if options.out:
        (options.out / "bulk.json").write_text(json.dumps(results, indent=1))


def make_passages(tokenizer_file: Path, count: int, seed: int = _SEED) -> list[str]:
    """Return passages of about 145 tokens, with names, numbers and words that come but once.

    Words follow Zipf's law, as in real text; one in forty is new, which is what a real corpus has
    left after its first ten thousand passages.
    """
    vocabulary = json.loads(tokenizer_file.read_text("utf-8"))["model"]["vocab"]
    words = [word for word in vocabulary if word.isascii() and word.isalpha() and len(word) > 1]
    generator = np.random.default_rng(seed)
    plain = random.Random(seed)
    ranks = generator.zipf(1.15, (count, 148))
    lengths = generator.integers(84, 148, count)
    passages = []
    for row, length in zip(ranks % len(words), lengths, strict=True):
        chosen = [words[rank] for rank in row[:length].tolist()]
        chosen[0] = chosen[0].capitalize()
        for place in range(8, len(chosen), 9):
            chosen[place] += plain.choice((",", ".", ";", "’s", ")"))
        for place in range(20, len(chosen), 40):
            chosen[place] = f"{plain.choice(words)}{plain.randrange(10**6)}"
        passages.append(" ".join(chosen))
    return passages


def _measure_stages(
    encoder: "PackedEncoder", pool: TokenizingPool, texts: list[str], options: argparse.Namespace
) -> dict[str, Any]:
    batches = _split(texts)
    rounds: dict[str, list[float]] = {"tokens": [], "forward": [], "both": []}
    tokenized = list(pool.tokenize_batches(batches))
    token_count = sum(int(batch.lengths.sum()) for batch in tokenized)
    for _ in range(options.rounds):
        rounds["tokens"].append(_time(lambda: [None for _ in pool.tokenize_batches(batches)]))
        rounds["forward"].append(_time(lambda: _run_forward(encoder, tokenized)))
        rounds["both"].append(
            _time(lambda: [None for _ in embed_stream(encoder, pool, enumerate(batches))])
        )
    rates = {name: len(texts) / sorted(times)[len(times) // 2] for name, times in rounds.items()}
    flops = 2 * _PARAMETERS_PER_TOKEN * token_count / len(texts)
    library = _make_tokenizer(options.tokenizer)
    library_seconds = _time(lambda: library.encode_batch(texts[:50_000]))
    return {
        "texts": len(texts),
        "tokens_a_text": token_count / len(texts),
        "tokenizing_processes": pool.process_count,
        "library_tokenizer_a_second": min(len(texts), 50_000) / library_seconds,
        **{f"{name}_a_second": rate for name, rate in rates.items()},
        "both_of_the_slower": rates["both"] / min(rates["tokens"], rates["forward"]),
        "forward_tflops": rates["forward"] * flops / 1e12,
        "both_tflops": rates["both"] * flops / 1e12,
        "seconds": rounds,
    }


def _run_forward(encoder: "PackedEncoder", tokenized: list[Any]) -> None:
    pending = []
    for batch in tokenized:
        pending.append(encoder.start_encoding(batch))
        if len(pending) > 4:
            pending.pop(0).wait()
    for vectors in pending:
        vectors.wait()


def _measure_stored(
    encoder: "PackedEncoder", pool: TokenizingPool, options: argparse.Namespace
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "passages.db")
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("CREATE TABLE passages (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
            database.execute(
                """CREATE TABLE vectors (seq INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE,
                   model TEXT NOT NULL, embedding BLOB NOT NULL)"""
            )
            for start in range(0, options.stored, 100_000):
                count = min(100_000, options.stored - start)
                texts = make_passages(options.tokenizer, count, _SEED + 1 + start)
                database.executemany(
                    "INSERT INTO passages (text) VALUES (?)", ((t,) for t in texts)
                )
            database.commit()
        seconds = _time(lambda: _embed_database(encoder, pool, path))
        with closing(sqlite3.connect(path)) as database:
            (stored,) = database.execute("SELECT count(*) FROM vectors").fetchone()
        size = path.stat().st_size
    assert stored == options.stored, (stored, options.stored)
    return {
        "stored": stored,
        "stored_seconds": seconds,
        "stored_a_second": stored / seconds,
        "database_mb": size // 2**20,
    }


def _embed_database(encoder: "PackedEncoder", pool: TokenizingPool, path: Path) -> None:
    """Embed all passages of a database in the way of the federal base."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA synchronous = NORMAL")
        for ids, vectors in embed_stream(encoder, pool, _read_passages(database)):
            with database:
                database.executemany(
                    "INSERT INTO vectors (id, model, embedding) VALUES (?, 'bulk', ?)",
                    zip(ids, map(bytes, vectors), strict=True),
                )


def _read_passages(database: sqlite3.Connection) -> Iterator[tuple[list[int], list[str]]]:
    last_id = 0
    while rows := database.execute(
        """SELECT p.id, p.text FROM passages p LEFT JOIN vectors v USING (id)
           WHERE v.id IS NULL AND p.id > ? ORDER BY p.id LIMIT ?""",
        (last_id, TEXTS_PER_BATCH),
    ).fetchall():
        yield [row[0] for row in rows], [row[1] for row in rows]
        last_id = rows[-1][0]


def _compare_sample(encoder: "PackedEncoder", options: argparse.Namespace) -> dict[str, Any]:
    sample = json.loads(options.sample.read_text("utf-8"))
    expected = np.load(options.sample.with_suffix(".npy"))
    with TokenizingPool(options.tokenizer, MAX_TOKENS, 1) as pool:
        batches = enumerate(_split(sample))
        vectors = np.concatenate([matrix for _, matrix in embed_stream(encoder, pool, batches)])
    if options.out:
        np.save(options.out / "sample.npy", vectors.astype(np.float16))
    cosines = (vectors * expected).sum(axis=1)
    cosines /= np.linalg.norm(vectors, axis=1) * np.linalg.norm(expected, axis=1)
    return {"sample": len(sample), "worst_cosine": float(cosines.min())}


def _measure_matmul(torch: Any) -> float:
    """Return how many TFLOP a second the card gives in bf16, as a large product."""
    left, right = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in "ab")
    for _ in range(3):
        left @ right
    torch.cuda.synchronize()
    seconds = _time(lambda: [left @ right for _ in range(20)] and torch.cuda.synchronize())
    return 20 * 2 * 8192**3 / seconds / 1e12


def _time(work: Any) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _split(texts: list[str]) -> list[list[str]]:
    return [
        texts[start : start + TEXTS_PER_BATCH] for start in range(0, len(texts), TEXTS_PER_BATCH)
    ]


def _make_tokenizer(path: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    return tokenizer


def _read_weights(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    with np.load(path) as arrays:
        weights = {
            name: arrays[name].astype(np.float32) for name in arrays.files if name != "config"
        }
        return json.loads(str(arrays["config"])), weights


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--sample", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--texts", type=int, default=200_000)
    parser.add_argument("--stored", type=int, default=0, help="passages to embed into a database")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
