"""The chunk store at 50,000 chunks: filtered search beside Chroma's own, refilling, memory."""

import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np

from benchmarks.engine.corpus import KEPT, MODELS, chunks, many, natural, vectors
from benchmarks.table import Ratio, Table
from readingroom.core.filters import And, Filter, FilterFields, In, Range
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.index import ChunkIndex
from readingroom.storage.chunks import Chunks, ChunkStore
from tests.support.processes import resident_mb

LARGE = 50_000
SMALL = 3_000
FIELDS = FilterFields(
    exact_match=("source", "revision_id"), numeric_ranges=("effective_from", "effective_to")
)
# Of a hundred policies so many, on one day: what passes is about 1, 10 and 50 % of the chunks.
FILTERS = {"1 %": 2, "10 %": 20, "50 %": 100}
DAY = 20_200_601

_PAGE = 5_000


def filtered(rounds: int) -> Table:
    """Search under a filter, in the index and in Chroma, on the same vectors."""
    store, collection = _peer(LARGE)
    with contextlib.closing(store), _index(LARGE) as chunk_index:
        index = chunk_index.vectors()
        stored = chunk_index.collection.get(vectors=True)
        questions = stored.vectors[:: LARGE // rounds][:rounds]
        rows = [
            row
            for name, sources in FILTERS.items()
            for row in _compare(name, _where(sources), questions, index, collection, stored)
        ]
    return Table(
        f"Filtered search at {LARGE:,} chunks, k = 10",
        ("passes", "search", "median CPU ms", "median ms", "recall@10", "CPU ratio", "target"),
        tuple(rows),
        f"Policies and a day, as `search_policy` filters; {rounds} questions, asked of both in "
        "turn. Recall: against brute force over the stored vectors. Ratio: CPU of ours to "
        "Chroma's for the same question, median (lowest to highest). Chroma has its default "
        "settings and its own default graph.",
    )


def refill(rounds: int) -> Table:
    """Filling the index from the store, beside the bare export of the same rows from Chroma."""
    ours, bare = [], []
    with _index(LARGE) as chunk_index:
        for _ in range(rounds + 1):
            bare.append(_seconds(lambda: _export(chunk_index)))
            chunk_index._vectors = None  # as in a process that has just started
            ours.append(_seconds(chunk_index.vectors))
    ratio = Ratio(ours[1:], bare[1:])
    return Table(
        f"Filling the index from the store, {LARGE:,} chunks",
        ("work", "median s", "ratio", "target"),
        (
            ("bare export of ids, metadata and vectors", f"{median(bare[1:]):.2f}", "1.0", ""),
            ("index filled", f"{median(ours[1:]):.2f}", str(ratio), ratio.against(2)),
        ),
        f"Wall time, {rounds} rounds in turn after one that is not counted. Both read pages of "
        f"{_PAGE:,}.",
    )


def memory() -> Table:
    """Resident memory of a process that has embedded and holds the store and both indexes."""
    rows = []
    for count, target in ((SMALL, 400), (LARGE, 550)):
        with _index(count):
            pass
        code = f"from benchmarks.engine import store; store.report({count})"
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
        megabytes = json.loads(done.stdout.splitlines()[-1])
        verdict = (
            f"{'met' if megabytes['settled'] <= target else '**missed**'} (at most {target} MB)"
        )
        rows.append((f"{count:,} chunks", *(f"{megabytes[key]:.0f}" for key in _STAGES), verdict))
    return Table(
        "Memory of a whole process, MB resident",
        ("store", *_STAGES, "target"),
        tuple(rows),
        "One process: imports of the server and of Chroma, the store opened, the vector index "
        "filled, 64 chunks embedded in float32, ten searches by words and meaning. Stages add up.",
    )


_STAGES = ("imported", "opened", "filled", "embedded", "settled")


def report(count: int) -> None:
    """Print the memory of this process stage by stage; run in a process of its own."""
    import chromadb  # noqa: F401
    import mcp.server  # noqa: F401

    megabytes = {"imported": resident_mb()}
    with _index(count) as index:
        megabytes["opened"] = resident_mb()
        index.vectors()
        megabytes["filled"] = resident_mb()
        texts = index.collection.get(limit=64).texts
        index.embedder.embed_batch(texts)
        megabytes["embedded"] = resident_mb()
        for question in texts[:10]:
            index.search(question[:80], 10, _where(20), "hybrid")
        megabytes["settled"] = resident_mb()
    print(json.dumps(megabytes))


def _compare(
    name: str, where: Filter, questions: Any, index: Any, collection: Any, stored: Chunks
) -> Iterator[tuple[str, ...]]:
    passing = set(index.find_ids(where))
    mask = np.array([id in passing for id in stored.ids])
    theirs = _in_chroma(where)
    spent: dict[str, list[tuple[float, float]]] = {"ours": [], "Chroma": []}
    matches: dict[str, int] = {"ours": 0, "Chroma": 0}
    for question in questions:
        distances = np.where(mask, ((stored.vectors - question) ** 2).sum(axis=1), np.inf)
        nearest = {stored.ids[row] for row in np.argsort(distances, kind="stable")[:10]}
        answers = {
            "Chroma": lambda q=question: collection.query(
                query_embeddings=[q], n_results=10, where=theirs, include=["distances"]
            )["ids"][0],
            "ours": lambda q=question: [hit.id for hit in index.search(q, 10, where)],
        }
        for side, ask in answers.items():
            cpu, wall = time.process_time(), time.perf_counter()
            ids = ask()
            spent[side].append((time.process_time() - cpu, time.perf_counter() - wall))
            matches[side] += len(nearest & {*ids})
    ratio = Ratio([times[0] for times in spent["ours"]], [times[0] for times in spent["Chroma"]])
    for side in ("Chroma", "ours"):
        yield (
            f"{name} ({mask.mean():.1%})",
            side,
            f"{median(times[0] for times in spent[side]) * 1000:.2f}",
            f"{median(times[1] for times in spent[side]) * 1000:.2f}",
            f"{matches[side] / (10 * len(questions)):.3f}",
            str(ratio) if side == "ours" else "",
            ratio.against(0.05) if side == "ours" else "",
        )


def _where(sources: int) -> Filter:
    named = tuple(f"S{number:02}" for number in range(sources))
    dates = (Range("effective_from", high=DAY), Range("effective_to", low=DAY))
    return And((In("source", named), *dates))


def _in_chroma(where: Filter) -> Any:
    from readingroom.core.filters import flatten
    from readingroom.storage.chunks import _translate_filter

    return _translate_filter(list(flatten(where)))


def _metadata(number: int) -> dict[str, Any]:
    """A hundred policies of two revisions each; the first ended when the second came."""
    second = number // 100 % 2
    return {
        "source": f"S{number % 100:02}",
        "revision_id": f"rev_S{number % 100:02}_{2018 + 2 * second}_01",
        "effective_from": 20_200_101 if second else 20_180_101,
        "effective_to": 99_991_231 if second else 20_191_231,
        "section_ref": f"Para {number % 243}",
        "page_number": number % 90,
        "chunk_index": number // 200,
    }


def _batches(count: int) -> Iterator[Chunks]:
    rows = many(vectors(chunks(6_000)), count)
    texts = natural(count)
    for start in range(0, count, _PAGE):
        numbers = range(start, min(start + _PAGE, count))
        yield Chunks(
            [f"chunk-{number:06}" for number in numbers],
            [next(texts) for _ in numbers],
            [_metadata(number) for number in numbers],
            rows[numbers.start : numbers.stop],
        )


@contextlib.contextmanager
def _index(count: int) -> Iterator[ChunkIndex]:
    """Our store of so many chunks, built once."""
    folder = KEPT / f"index-{count}"
    if not (folder / "built").exists():
        shutil.rmtree(folder, ignore_errors=True)
    store = ChunkStore(folder / "chroma")
    with contextlib.closing(store):
        collection = store.open_collection("policy_docs")
        index = ChunkIndex(collection, FIELDS, Embedder(MODELS), folder / "words.sqlite")
        if not (folder / "built").exists():
            for batch in _batches(count):
                index.put(batch)
            index.words()
            (folder / "built").touch()
        yield index
        index.close()


def _peer(count: int) -> tuple[Any, Any]:
    """Chroma as anyone would set it up, with the same rows, built once."""
    import chromadb
    from chromadb.config import Settings

    folder = KEPT / f"chroma-{count}"
    if not (folder / "built").exists():
        shutil.rmtree(folder, ignore_errors=True)
    client = chromadb.PersistentClient(folder, Settings(anonymized_telemetry=False))
    collection = client.get_or_create_collection("policy_docs", embedding_function=None)
    if not (folder / "built").exists():
        for batch in _batches(count):
            collection.upsert(
                ids=batch.ids,
                embeddings=batch.vectors,
                documents=batch.texts,
                metadatas=batch.metadatas,  # type: ignore[arg-type]
            )
        (folder / "built").touch()
    return client, collection


def _export(index: ChunkIndex) -> None:
    collection = index.collection._collection
    for offset in range(0, collection.count(), _PAGE):
        collection.get(include=["embeddings", "metadatas"], limit=_PAGE, offset=offset)


def _seconds(work: Any) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
