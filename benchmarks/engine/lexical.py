"""Lexical search over 500,000 chunks of natural text, beside an OR of all the words."""

import contextlib
import time
from statistics import median

import numpy as np

from benchmarks.engine.corpus import CACHE_FOLDER, load_chunks, make_natural_chunks, make_questions
from benchmarks.table import Table
from readingroom.core.filters import FilterFields
from readingroom.engine.lexical import MAX_RANKED_POSTINGS, LexicalDocument, LexicalIndex
from readingroom.engine.words import extract_query_words

CHUNK_COUNT = 500_000
REAL_CHUNK_COUNT = 24_000
COLUMNS = {"text": 1.0}


def measure_search(questions: int) -> Table:
    """The same questions of both in turn, by processor time: the machine is shared."""
    path = CACHE_FOLDER / f"words-{CHUNK_COUNT}.sqlite"
    with contextlib.closing(LexicalIndex(path, COLUMNS, FilterFields())) as ours:
        if ours.generation is None:
            texts = enumerate(make_natural_chunks(CHUNK_COUNT))
            ours.replace_documents(
                (LexicalDocument(str(row), {"text": text}, {}) for row, text in texts), 1
            )
        plain = LexicalIndex(path, COLUMNS, FilterFields(), max_postings=10**12, max_seconds=60)
        with contextlib.closing(plain):
            rows = _compare_searches(plain, ours, make_questions(questions))
    return Table(
        f"Lexical search over {CHUNK_COUNT:,} chunks of natural text",
        ("search", "median CPU ms", "p95 CPU ms", "median ms", "p95 ms", "overlap", "target"),
        rows,
        f"{questions} questions of 5 to 12 words, asked of both in turn after one round not "
        "counted. Plain: FTS5, every word but stop words joined by OR, ranked by bm25(). Overlap: "
        f"of the ten best with plain's. Within {MAX_RANKED_POSTINGS:,} postings both are the same "
        "search. The chunks are real sentences put together anew, so the same sentence stands in "
        "some twenty of them, which flatters the overlap: the next table has none of that.",
    )


def measure_agreement(questions: int) -> Table:
    """How much of plain's top ten a budget as tight still finds, on text that is all real."""
    path = CACHE_FOLDER / f"words-real-{REAL_CHUNK_COUNT}.sqlite"
    texts = load_chunks(REAL_CHUNK_COUNT)
    rows = []
    with contextlib.closing(LexicalIndex(path, COLUMNS, FilterFields())) as plain:
        if plain.generation is None:
            documents = (
                LexicalDocument(str(row), {"text": text}, {}) for row, text in enumerate(texts)
            )
            plain.replace_documents(documents, 1)
        questions_asked = make_questions(questions)
        plain_results = [
            {hit.id for hit in plain.search(question, 10)} for question in questions_asked
        ]
        for full_budget in (25_000, 50_000, MAX_RANKED_POSTINGS, 100_000):
            budget = full_budget * len(texts) // CHUNK_COUNT
            tight_index = LexicalIndex(path, COLUMNS, FilterFields(), max_postings=budget)
            with contextlib.closing(tight_index):
                results = [
                    {hit.id for hit in tight_index.search(question, 10)}
                    for question in questions_asked
                ]
            overlap = np.mean(
                [len(a & b) / max(1, len(a)) for a, b in zip(plain_results, results, strict=True)]
            )
            verdict = f"{'met' if overlap >= 0.93 else '**missed**'} (at least 0.93)"
            rows.append(
                (
                    f"{full_budget:,}",
                    f"{overlap:.3f}",
                    verdict if full_budget == MAX_RANKED_POSTINGS else "",
                )
            )
    return Table(
        f"Lexical agreement on {len(texts):,} real chunks",
        ("budget, as if there were 500,000", "overlap of the ten best", "target"),
        tuple(rows),
        f"{questions} questions. The budget is scaled down with the number of chunks, so that as "
        "many questions go over it, and by as much.",
    )


def _compare_searches(
    plain: LexicalIndex, ours: LexicalIndex, questions: list[str]
) -> tuple[tuple[str, ...], ...]:
    times_by_index: dict[str, list[tuple[float, float]]] = {"plain": [], "ours": []}
    overlap, exact_count, within_budget_count = [], 0, 0
    for turn in range(2):
        for question in questions:
            results = {}
            for name, index in (("plain", plain), ("ours", ours)):
                cpu, wall = time.process_time(), time.perf_counter()
                results[name] = [hit.id for hit in index.search(question, 10)]
                if turn:
                    times_by_index[name].append(
                        (time.process_time() - cpu, time.perf_counter() - wall)
                    )
            if turn:
                both = {*results["plain"]} & {*results["ours"]}
                overlap.append(len(both) / max(1, len(results["plain"])))
                if _count_postings(ours, question) <= MAX_RANKED_POSTINGS:
                    within_budget_count += 1
                    exact_count += results["plain"] == results["ours"]
    assert exact_count == within_budget_count, "within the budget the search must be exact"
    ratio = _find_p95(times_by_index["ours"], 0) / _find_p95(times_by_index["plain"], 0)
    mean_overlap = float(np.mean(overlap))
    met = ratio <= 0.4 and mean_overlap >= 0.93
    verdict = (
        f"{'met' if met else '**missed**'}: p95 {ratio:.2f} of plain (at most 0.4), overlap at "
        f"least 0.93; {within_budget_count} of {len(questions)} within the budget, all exact"
    )
    return (
        ("plain OR", *_render_times(times_by_index["plain"]), "1.000", ""),
        ("ours", *_render_times(times_by_index["ours"]), f"{mean_overlap:.3f}", verdict),
    )


def _count_postings(index: LexicalIndex, question: str) -> int:
    with index._connections.connection() as db:
        return sum(
            term.document_count for term in index._find_terms(db, extract_query_words(question))
        )


def _find_p95(times: list[tuple[float, float]], clock_index: int) -> float:
    return float(np.percentile([pair[clock_index] for pair in times], 95))


def _render_times(times: list[tuple[float, float]]) -> list[str]:
    return [
        f"{value * 1000:.1f}"
        for clock_index in (0, 1)
        for value in (
            median(pair[clock_index] for pair in times),
            _find_p95(times, clock_index),
        )
    ]
