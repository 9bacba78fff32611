"""Lexical search over 500,000 chunks of natural text, beside an OR of all the words."""

import contextlib
import time
from statistics import median

import numpy as np

from benchmarks.engine.corpus import KEPT, chunks, natural, natural_questions
from benchmarks.table import Table
from readingroom.core.filters import FilterFields
from readingroom.engine.lexical import BUDGET, LexicalDocument, LexicalIndex
from readingroom.engine.words import extract_words

ROWS = 500_000
REAL = 24_000
COLUMNS = {"text": 1.0}


def search(questions: int) -> Table:
    """The same questions of both in turn, by processor time: the machine is shared."""
    path = KEPT / f"words-{ROWS}.sqlite"
    with contextlib.closing(LexicalIndex(path, COLUMNS, FilterFields())) as ours:
        if ours.generation is None:
            texts = enumerate(natural(ROWS))
            ours.fill((LexicalDocument(str(row), {"text": text}, {}) for row, text in texts), 1)
        plain = LexicalIndex(path, COLUMNS, FilterFields(), budget=10**12, seconds=60)
        with contextlib.closing(plain):
            rows = _compare(plain, ours, natural_questions(questions))
    return Table(
        f"Lexical search over {ROWS:,} chunks of natural text",
        ("search", "median CPU ms", "p95 CPU ms", "median ms", "p95 ms", "overlap", "target"),
        rows,
        f"{questions} questions of 5 to 12 words, asked of both in turn after one round not "
        "counted. Plain: FTS5, every word but stop words joined by OR, ranked by bm25(). Overlap: "
        f"of the ten best with plain's. Within {BUDGET:,} postings both are the same search. The "
        "chunks are real sentences put together anew, so the same sentence stands in some twenty "
        "of them, which flatters the overlap: the next table has none of that.",
    )


def agreement(questions: int) -> Table:
    """How much of plain's top ten a budget as tight still finds, on text that is all real."""
    path = KEPT / f"words-real-{REAL}.sqlite"
    texts = chunks(REAL)
    rows = []
    with contextlib.closing(LexicalIndex(path, COLUMNS, FilterFields())) as plain:
        if plain.generation is None:
            documents = (
                LexicalDocument(str(row), {"text": text}, {}) for row, text in enumerate(texts)
            )
            plain.fill(documents, 1)
        asked = natural_questions(questions)
        wanted = [{hit.id for hit in plain.search(question, 10)} for question in asked]
        for share in (25_000, 50_000, BUDGET, 100_000):
            budget = share * len(texts) // ROWS
            tight = LexicalIndex(path, COLUMNS, FilterFields(), budget=budget)
            with contextlib.closing(tight):
                results = [{hit.id for hit in tight.search(question, 10)} for question in asked]
            overlap = np.mean(
                [len(a & b) / max(1, len(a)) for a, b in zip(wanted, results, strict=True)]
            )
            verdict = f"{'met' if overlap >= 0.93 else '**missed**'} (at least 0.93)"
            rows.append((f"{share:,}", f"{overlap:.3f}", verdict if share == BUDGET else ""))
    return Table(
        f"Lexical agreement on {len(texts):,} real chunks",
        ("budget, as if there were 500,000", "overlap of the ten best", "target"),
        tuple(rows),
        f"{questions} questions. The budget is scaled down with the number of chunks, so that as "
        "many questions go over it, and by as much.",
    )


def _compare(
    plain: LexicalIndex, ours: LexicalIndex, questions: list[str]
) -> tuple[tuple[str, ...], ...]:
    spent: dict[str, list[tuple[float, float]]] = {"plain": [], "ours": []}
    overlap, same, within = [], 0, 0
    for turn in range(2):
        for question in questions:
            results = {}
            for name, index in (("plain", plain), ("ours", ours)):
                cpu, wall = time.process_time(), time.perf_counter()
                results[name] = [hit.id for hit in index.search(question, 10)]
                if turn:
                    spent[name].append((time.process_time() - cpu, time.perf_counter() - wall))
            if turn:
                both = {*results["plain"]} & {*results["ours"]}
                overlap.append(len(both) / max(1, len(results["plain"])))
                if _postings(ours, question) <= BUDGET:
                    within += 1
                    same += results["plain"] == results["ours"]
    assert same == within, "within the budget the search must be exact"
    ratio = _p95(spent["ours"], 0) / _p95(spent["plain"], 0)
    shared = float(np.mean(overlap))
    met = ratio <= 0.4 and shared >= 0.93
    verdict = (
        f"{'met' if met else '**missed**'}: p95 {ratio:.2f} of plain (at most 0.4), overlap at "
        f"least 0.93; {within} of {len(questions)} within the budget, all exact"
    )
    return (
        ("plain OR", *_times(spent["plain"]), "1.000", ""),
        ("ours", *_times(spent["ours"]), f"{shared:.3f}", verdict),
    )


def _postings(index: LexicalIndex, question: str) -> int:
    with index._connections.connection() as db:
        return sum(term.documents for term in index._terms(db, extract_words(question)))


def _p95(spent: list[tuple[float, float]], which: int) -> float:
    return float(np.percentile([times[which] for times in spent], 95))


def _times(spent: list[tuple[float, float]]) -> list[str]:
    return [
        f"{value * 1000:.1f}"
        for which in (0, 1)
        for value in (median(times[which] for times in spent), _p95(spent, which))
    ]
