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

from benchmarks.engine.corpus import (
    CACHE_FOLDER,
    MODELS,
    load_chunks,
    load_vectors,
    make_natural_chunks,
    make_similar_vectors,
)
from benchmarks.table import Ratio, Table
from readingroom.core.filters import And, Filter, FilterFields, In, Range
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.index import EmbeddedIndex
from readingroom.storage.chunks import Chunks, ChunkStore
from tests.support.processes import read_resident_mb

MANY_CHUNKS = 50_000
FEW_CHUNKS = 3_000
FIELDS = FilterFields(
    exact_match_fields=("source", "revision_id"),
    numeric_range_fields=("effective_from", "effective_to"),
)
# Of a hundred policies so many, on one day: what passes is about 1, 10 and 50 % of the chunks.
FILTERS = {"1 %": 2, "10 %": 20, "50 %": 100}
DAY = 20_200_601

_PAGE_SIZE = 5_000


def measure_filtered_search(rounds: int) -> Table:
    """Search under a filter, in the index and in Chroma, on the same vectors."""
    store, collection = _open_chroma(MANY_CHUNKS)
    with contextlib.closing(store), _open_index(MANY_CHUNKS) as chunk_index:
        index = chunk_index.get_vector_index()
        stored = chunk_index.collection.read_chunks(with_vectors=True)
        questions = stored.vectors[:: MANY_CHUNKS // rounds][:rounds]
        rows = [
            row
            for name, sources in FILTERS.items()
            for row in _compare_searches(
                name, _make_filter(sources), questions, index, collection, stored
            )
        ]
    return Table(
        f"Filtered search at {MANY_CHUNKS:,} chunks, k = 10",
        ("passes", "search", "median CPU ms", "median ms", "recall@10", "CPU ratio", "target"),
        tuple(rows),
        f"Policies and a day, as `search_policy` filters; {rounds} questions, asked of both in "
        "turn. Recall: against brute force over the stored vectors. Ratio: CPU of ours to "
        "Chroma's for the same question, median (lowest to highest). Chroma has its default "
        "settings and its own default graph.",
    )


def measure_refill(rounds: int) -> Table:
    """Filling the index from the store, beside the bare export of the same rows from Chroma."""
    ours, bare = [], []
    with _open_index(MANY_CHUNKS) as chunk_index:
        for _ in range(rounds + 1):
            bare.append(_measure_seconds(lambda: _export_all(chunk_index)))
            chunk_index._vector_index = None  # as in a process that has just started
            ours.append(_measure_seconds(chunk_index.get_vector_index))
    ratio = Ratio(ours[1:], bare[1:])
    return Table(
        f"Filling the index from the store, {MANY_CHUNKS:,} chunks",
        ("work", "median s", "ratio", "target"),
        (
            ("bare export of ids, metadata and vectors", f"{median(bare[1:]):.2f}", "1.0", ""),
            ("index filled", f"{median(ours[1:]):.2f}", str(ratio), ratio.against(2)),
        ),
        f"Wall time, {rounds} rounds in turn after one that is not counted. Both read pages of "
        f"{_PAGE_SIZE:,}.",
    )


def measure_memory() -> Table:
    """Resident memory of a process that has embedded and holds the store and both indexes."""
    rows = []
    for count, target in ((FEW_CHUNKS, 400), (MANY_CHUNKS, 550)):
        with _open_index(count):
            pass
        code = f"from benchmarks.engine import store; store.print_memory({count})"
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


def print_memory(count: int) -> None:
    """Print the memory of this process stage by stage; run in a process of its own."""
    import chromadb  # noqa: F401
    import mcp.server  # noqa: F401

    megabytes = {"imported": read_resident_mb()}
    with _open_index(count) as index:
        megabytes["opened"] = read_resident_mb()
        index.get_vector_index()
        megabytes["filled"] = read_resident_mb()
        texts = index.collection.read_chunks(limit=64).texts
        index.embedder.embed_batch(texts)
        megabytes["embedded"] = read_resident_mb()
        for question in texts[:10]:
            index.search(question[:80], 10, _make_filter(20), "hybrid")
        megabytes["settled"] = read_resident_mb()
    print(json.dumps(megabytes))


def _compare_searches(
    name: str, where: Filter, questions: Any, index: Any, collection: Any, stored: Chunks
) -> Iterator[tuple[str, ...]]:
    passing = set(index.list_row_ids(where))
    mask = np.array([id in passing for id in stored.ids])
    chroma_filter = _translate_for_chroma(where)
    times_by_side: dict[str, list[tuple[float, float]]] = {"ours": [], "Chroma": []}
    matches: dict[str, int] = {"ours": 0, "Chroma": 0}
    for question in questions:
        distances = np.where(mask, ((stored.vectors - question) ** 2).sum(axis=1), np.inf)
        nearest = {stored.ids[row] for row in np.argsort(distances, kind="stable")[:10]}
        answers = {
            "Chroma": lambda q=question: collection.query(
                query_embeddings=[q], n_results=10, where=chroma_filter, include=["distances"]
            )["ids"][0],
            "ours": lambda q=question: [hit.id for hit in index.search(q, 10, where)],
        }
        for search_name, search in answers.items():
            cpu, wall = time.process_time(), time.perf_counter()
            ids = search()
            times_by_side[search_name].append(
                (time.process_time() - cpu, time.perf_counter() - wall)
            )
            matches[search_name] += len(nearest & {*ids})
    ratio = Ratio(
        [times[0] for times in times_by_side["ours"]],
        [times[0] for times in times_by_side["Chroma"]],
    )
    for search_name in ("Chroma", "ours"):
        yield (
            f"{name} ({mask.mean():.1%})",
            search_name,
            f"{median(times[0] for times in times_by_side[search_name]) * 1000:.2f}",
            f"{median(times[1] for times in times_by_side[search_name]) * 1000:.2f}",
            f"{matches[search_name] / (10 * len(questions)):.3f}",
            str(ratio) if search_name == "ours" else "",
            ratio.against(0.05) if search_name == "ours" else "",
        )


def _make_filter(sources: int) -> Filter:
    named = tuple(f"S{number:02}" for number in range(sources))
    dates = (Range("effective_from", high=DAY), Range("effective_to", low=DAY))
    return And((In("source", named), *dates))


def _translate_for_chroma(where: Filter) -> Any:
    from readingroom.core.filters import flatten_filter
    from readingroom.storage.chunks import _translate_filter_to_chroma

    return _translate_filter_to_chroma(list(flatten_filter(where)))


def _describe_chunk(number: int) -> dict[str, Any]:
    """A hundred policies of two revisions each; the first ended when the second came."""
    revision_number = number // 100 % 2
    return {
        "source": f"S{number % 100:02}",
        "revision_id": f"rev_S{number % 100:02}_{2018 + 2 * revision_number}_01",
        "effective_from": 20_200_101 if revision_number else 20_180_101,
        "effective_to": 99_991_231 if revision_number else 20_191_231,
        "section_ref": f"Para {number % 243}",
        "page_number": number % 90,
        "chunk_index": number // 200,
    }


def _make_batches(count: int) -> Iterator[Chunks]:
    rows = make_similar_vectors(load_vectors(load_chunks(6_000)), count)
    texts = make_natural_chunks(count)
    for start in range(0, count, _PAGE_SIZE):
        numbers = range(start, min(start + _PAGE_SIZE, count))
        yield Chunks(
            [f"chunk-{number:06}" for number in numbers],
            [next(texts) for _ in numbers],
            [_describe_chunk(number) for number in numbers],
            rows[numbers.start : numbers.stop],
        )


@contextlib.contextmanager
def _open_index(count: int) -> Iterator[EmbeddedIndex]:
    """Our store of so many chunks, built once."""
    folder = CACHE_FOLDER / f"index-{count}"
    if not (folder / "built").exists():
        shutil.rmtree(folder, ignore_errors=True)
    store = ChunkStore(folder / "chroma")
    with contextlib.closing(store):
        collection = store.open_collection("policy_docs")
        index = EmbeddedIndex(collection, FIELDS, Embedder(MODELS), folder / "words.sqlite")
        if not (folder / "built").exists():
            for batch in _make_batches(count):
                index.put_chunks(batch)
            index.get_word_index()
            (folder / "built").touch()
        yield index
        index.close()


def _open_chroma(count: int) -> tuple[Any, Any]:
    """Chroma as anyone would set it up, with the same rows, built once."""
    import chromadb
    from chromadb.config import Settings

    folder = CACHE_FOLDER / f"chroma-{count}"
    if not (folder / "built").exists():
        shutil.rmtree(folder, ignore_errors=True)
    client = chromadb.PersistentClient(folder, Settings(anonymized_telemetry=False))
    collection = client.get_or_create_collection("policy_docs", embedding_function=None)
    if not (folder / "built").exists():
        for batch in _make_batches(count):
            collection.upsert(
                ids=batch.ids,
                embeddings=batch.vectors,
                documents=batch.texts,
                metadatas=batch.metadatas,  # type: ignore[arg-type]
            )
        (folder / "built").touch()
    return client, collection


def _export_all(index: EmbeddedIndex) -> None:
    collection = index.collection._chroma_collection
    for offset in range(0, collection.count(), _PAGE_SIZE):
        collection.get(include=["embeddings", "metadatas"], limit=_PAGE_SIZE, offset=offset)


def _measure_seconds(work: Any) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
