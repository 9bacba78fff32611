"""The vector index at 500,000 rows, beside a scan with numpy; and what choosing by signs loses."""

import time
from statistics import median
from typing import Any

import numpy as np

from benchmarks.engine.corpus import load_chunks, load_vectors, make_similar_vectors
from benchmarks.table import Ratio, Table
from readingroom.core.filters import Equals, Filter, FilterFields, In, Range
from readingroom.engine import vectors as engine
from readingroom.engine.vectors import VectorIndex

VECTOR_COUNT = 500_000
REAL_VECTOR_COUNT = 6_000
FILTERS: dict[str, Filter | None] = {
    "none": None,
    "1 %": Equals("group", "rare"),
    "10 %": In("group", ("rare", "some")),
    "50 %": Range("part", high=0.5),
}


def measure_scan(rounds: int) -> Table:
    """Ours and a plain scan, the same questions in turn."""
    real_vectors = load_vectors(load_chunks(REAL_VECTOR_COUNT))
    rows, random_parts = (
        make_similar_vectors(real_vectors, VECTOR_COUNT),
        np.random.default_rng(3).random(VECTOR_COUNT),
    )
    index = _build_index(rows, random_parts)
    masks = {
        "none": None,
        "1 %": random_parts < 0.01,
        "10 %": random_parts < 0.1,
        "50 %": random_parts <= 0.5,
    }
    table_rows = []
    for name, where in FILTERS.items():
        peer_seconds, our_seconds, correct_count = [], [], 0
        for question in real_vectors[:: REAL_VECTOR_COUNT // rounds][:rounds]:
            began = time.perf_counter()
            nearest = _scan_with_numpy(rows, question, masks[name])
            peer_seconds.append(time.perf_counter() - began)
            began = time.perf_counter()
            hits = index.search(question, 10, where)
            our_seconds.append(time.perf_counter() - began)
            correct_count += len({int(hit.id) for hit in hits} & {*nearest.tolist()})
        ratio, is_peer_slow = Ratio(our_seconds, peer_seconds), median(peer_seconds) > 0.010
        recall = correct_count / (10 * rounds)
        table_rows.append(
            (name, "numpy float32", f"{median(peer_seconds) * 1000:.1f}", "1.000", "", "")
        )
        verdict = f"{ratio.against(0.5)}" if is_peer_slow else "(numpy is under 10 ms)"
        verdict += f"; recall {'met' if recall >= 0.995 else '**missed**'} (at least 0.995)"
        cells = (f"{median(our_seconds) * 1000:.1f}", f"{recall:.4f}", str(ratio), verdict)
        table_rows.append((name, "ours", *cells))
    return Table(
        f"Vector search at {VECTOR_COUNT:,} rows, k = 10",
        ("passes", "search", "median ms", "recall@10", "ratio", "target"),
        tuple(table_rows),
        f"Rows made from {REAL_VECTOR_COUNT:,} real chunks (each near one of them, cosine about "
        f"0.8), questions are {rounds} of those chunks. The scan gathers the rows that pass, or "
        "scans all and masks where they are more than a quarter. Wall time; ratio of the same "
        "question.",
    )


def measure_sign_choice() -> Table:
    """Choosing by signs forced upon real vectors, where neighbours are hard to tell apart."""
    real_vectors = load_vectors(load_chunks(REAL_VECTOR_COUNT))
    index = VectorIndex(FilterFields())
    index.upsert_rows(
        [str(number) for number in range(REAL_VECTOR_COUNT)], real_vectors, [{}] * REAL_VECTOR_COUNT
    )
    questions = real_vectors[::20]
    exact = [{hit.id for hit in index.search(question, 10)} for question in questions]
    rows = []
    for depth in (100, 200, 500, 1_000):
        approximate = [
            {hit.id for hit in _search_at_depth(index, question, depth)} for question in questions
        ]
        recall = np.mean([len(one & two) / 10 for one, two in zip(approximate, exact, strict=True)])
        verdict = f"{'met' if recall >= 0.995 else '**missed**'} (at least 0.995)"
        rows.append((f"{depth}", f"{recall:.4f}", verdict if depth == 1_000 else ""))
    return Table(
        f"Choosing by signs on {REAL_VECTOR_COUNT:,} real vectors",
        ("rows that are compared exactly", "recall@10", "target"),
        tuple(rows),
        "The index does this only above 65,536 rows, with 1,000; below, every search is "
        f"exact. {len(questions)} questions. On so few rows 1,000 is a larger share than it is of "
        "500,000.",
    )


def _search_at_depth(index: VectorIndex, question: Any, depth: int) -> Any:
    view = index._view
    differing = engine._count_differing_signs(view, question, np.arange(view.row_count))
    limit = np.searchsorted(np.cumsum(np.bincount(differing)), depth)
    return engine._find_nearest_hits(view, question, 10, np.flatnonzero(differing <= limit))


def _build_index(rows: Any, random_parts: Any) -> VectorIndex:
    index = VectorIndex(FilterFields(("group",), ("part",)), reserved_row_count=len(rows))
    for start in range(0, len(rows), 10_000):
        numbers = range(start, start + 10_000)
        groups = [
            "rare" if part_value < 0.01 else "some" if part_value < 0.1 else "rest"
            for part_value in random_parts[numbers]
        ]
        metadata = [
            {"group": group, "part": float(part_value)}
            for group, part_value in zip(groups, random_parts[numbers], strict=True)
        ]
        index.upsert_rows([str(number) for number in numbers], rows[numbers], metadata)
    return index


def _scan_with_numpy(rows: Any, question: Any, mask: Any) -> Any:
    """What one would write: numpy, float32, the filter as a mask."""
    if mask is None:
        scores, row_numbers = rows @ question, None
    else:
        row_numbers = np.flatnonzero(mask)
        if len(row_numbers) > len(rows) // 4:
            scores, row_numbers = np.where(mask, rows @ question, -2), None
        else:
            scores = rows[row_numbers] @ question
    nearest_rows = np.argpartition(-scores, 10)[:10]
    nearest_rows = nearest_rows[np.argsort(-scores[nearest_rows])]
    return nearest_rows if row_numbers is None else row_numbers[nearest_rows]
