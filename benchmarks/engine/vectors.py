"""The vector index at 500,000 rows, beside a scan with numpy; and what choosing by signs loses."""

import time
from statistics import median
from typing import Any

import numpy as np

from benchmarks.engine.corpus import chunks, many, vectors
from benchmarks.table import Ratio, Table
from readingroom.core.filters import Equals, Filter, FilterFields, In, Range
from readingroom.engine import vectors as engine
from readingroom.engine.vectors import VectorIndex

ROWS = 500_000
REAL = 6_000
FILTERS: dict[str, Filter | None] = {
    "none": None,
    "1 %": Equals("group", "rare"),
    "10 %": In("group", ("rare", "some")),
    "50 %": Range("part", high=0.5),
}


def scan(rounds: int) -> Table:
    """Ours and a plain scan, the same questions in turn."""
    real = vectors(chunks(REAL))
    rows, part = many(real, ROWS), np.random.default_rng(3).random(ROWS)
    index = _index(rows, part)
    masks = {"none": None, "1 %": part < 0.01, "10 %": part < 0.1, "50 %": part <= 0.5}
    table_rows = []
    for name, where in FILTERS.items():
        peer, ours, correct = [], [], 0
        for question in real[:: REAL // rounds][:rounds]:
            began = time.perf_counter()
            nearest = _scan(rows, question, masks[name])
            peer.append(time.perf_counter() - began)
            began = time.perf_counter()
            hits = index.search(question, 10, where)
            ours.append(time.perf_counter() - began)
            correct += len({int(hit.id) for hit in hits} & {*nearest.tolist()})
        ratio, slow = Ratio(ours, peer), median(peer) > 0.010
        recall = correct / (10 * rounds)
        table_rows.append((name, "numpy float32", f"{median(peer) * 1000:.1f}", "1.000", "", ""))
        verdict = f"{ratio.against(0.5)}" if slow else "(numpy is under 10 ms)"
        verdict += f"; recall {'met' if recall >= 0.995 else '**missed**'} (at least 0.995)"
        cells = (f"{median(ours) * 1000:.1f}", f"{recall:.4f}", str(ratio), verdict)
        table_rows.append((name, "ours", *cells))
    return Table(
        f"Vector search at {ROWS:,} rows, k = 10",
        ("passes", "search", "median ms", "recall@10", "ratio", "target"),
        tuple(table_rows),
        f"Rows made from {REAL:,} real chunks (each near one of them, cosine about 0.8), questions "
        f"are {rounds} of those chunks. The scan gathers the rows that pass, or scans all and "
        "masks where they are more than a quarter. Wall time; ratio of the same question.",
    )


def signs() -> Table:
    """Choosing by signs forced upon real vectors, where neighbours are hard to tell apart."""
    real = vectors(chunks(REAL))
    index = VectorIndex(FilterFields())
    index.upsert([str(number) for number in range(REAL)], real, [{}] * REAL)
    asked = real[::20]
    exact = [{hit.id for hit in index.search(question, 10)} for question in asked]
    rows = []
    for depth in (100, 200, 500, 1_000):
        approximate = [{hit.id for hit in _at_depth(index, question, depth)} for question in asked]
        recall = np.mean([len(one & two) / 10 for one, two in zip(approximate, exact, strict=True)])
        verdict = f"{'met' if recall >= 0.995 else '**missed**'} (at least 0.995)"
        rows.append((f"{depth}", f"{recall:.4f}", verdict if depth == 1_000 else ""))
    return Table(
        f"Choosing by signs on {REAL:,} real vectors",
        ("rows that are compared exactly", "recall@10", "target"),
        tuple(rows),
        "The index does this only above 65,536 rows, with 1,000; below, every search is exact. "
        f"{len(asked)} questions. On so few rows 1,000 is a larger share than it is of 500,000.",
    )


def _at_depth(index: VectorIndex, question: Any, depth: int) -> Any:
    view = index._view
    chosen = engine._nearest_by_signs(view, question, depth, np.arange(view.count))
    return engine._find_nearest(view, question, 10, chosen)


def _index(rows: Any, part: Any) -> VectorIndex:
    index = VectorIndex(FilterFields(("group",), ("part",)), reserve=len(rows))
    for start in range(0, len(rows), 10_000):
        numbers = range(start, start + 10_000)
        groups = [
            "rare" if part_value < 0.01 else "some" if part_value < 0.1 else "rest"
            for part_value in part[numbers]
        ]
        metadata = [
            {"group": group, "part": float(part_value)}
            for group, part_value in zip(groups, part[numbers], strict=True)
        ]
        index.upsert([str(number) for number in numbers], rows[numbers], metadata)
    return index


def _scan(rows: Any, question: Any, mask: Any) -> Any:
    """What one would write: numpy, float32, the filter as a mask."""
    if mask is None:
        scores, kept = rows @ question, None
    else:
        kept = np.flatnonzero(mask)
        if len(kept) > len(rows) // 4:
            scores, kept = np.where(mask, rows @ question, -2), None
        else:
            scores = rows[kept] @ question
    best = np.argpartition(-scores, 10)[:10]
    best = best[np.argsort(-scores[best])]
    return best if kept is None else kept[best]
