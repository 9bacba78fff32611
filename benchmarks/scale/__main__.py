"""Measures the shared index beside the embedded one: python -m benchmarks.scale [CHUNKS] [ROUNDS].

Both engines get the same chunks, questions and filters, and each ranks its own candidates.
Processor time is that of this process and, for PostgreSQL, of the server's processes too;
embedding a question is in neither, and its words were asked for before: what new ones cost,
`benchmarks.scale.new_words` measures. 200,000 chunks take about 4 minutes, 1,000,000 about 12.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.engine.corpus import TestSet, load_test_set
from benchmarks.engine.quality import score_ndcg
from benchmarks.scale.corpus import Corpus, KnownVectors, find_passing, make_corpus, make_filter
from benchmarks.scale.engines import (
    DATABASE,
    SERVER_OPTIONS,
    Engines,
    fill_engines,
    measure_cpu,
    print_progress,
)
from readingroom.core.filters import Filter, FilterFields
from readingroom.engine.index import CollectionIndex, EmbeddedIndex
from readingroom.engine.lexical import LexicalDocument, LexicalIndex
from readingroom.engine.shared.index import SharedIndex
from readingroom.engine.shared.words import SharedWords
from readingroom.storage.chunks import Chunks
from readingroom.storage.postgres.chunks import PostgresChunkStore
from readingroom.storage.postgres.database import PostgresDatabase
from tests.support.postgres import make_template, run_server

_RECALL_QUESTIONS = 60
_MIN_RECALL, _MIN_WORST = 0.995, 0.8
_NARROW = "1 %"


def main(chunk_count: int, rounds: int) -> None:
    _compare_words()
    corpus = make_corpus(chunk_count, max(rounds, _RECALL_QUESTIONS))
    print_progress(f"{chunk_count:,} chunks made")
    with fill_engines(corpus) as engines:
        shared, embedded = engines.open_shared(), engines.open_embedded()
        print_progress("the embedded engine has its vectors")
        _compare(engines, shared, embedded, rounds)
        shared.collection.database.close()
        embedded.close()


def _compare(engines: Engines, shared: SharedIndex, embedded: EmbeddedIndex, rounds: int) -> None:
    corpus = engines.corpus
    policies = corpus.policy_count
    filters: dict[str, Filter | None] = {
        _NARROW: make_filter(policies, max(1, policies // 25), 1),
        "10 %": make_filter(policies, max(1, policies * 2 // 5), 1),
        "25 % (all in force)": make_filter(policies, policies, 1),
        "50 %": make_filter(policies, policies, 2),
        "none": None,
    }
    print("| filter | recall@10 pg / embedded (worst) | hybrid CPU ms pg / embedded | ratio | |")
    for name, where in filters.items():
        recalls = _measure_recalls(corpus, shared, embedded, where)
        costs = _measure_costs(engines, shared, embedded, where, corpus.questions[:rounds])
        told = " / ".join(f"{mean(each):.4f} ({min(each):.1f})" for each in recalls)
        (own, database), (embedded_ms, _) = costs
        ratio, limit = (own + database) / embedded_ms, 1.0 if name == _NARROW else 1.1
        is_found = all(mean(each) >= _MIN_RECALL and min(each) >= _MIN_WORST for each in recalls)
        print(
            f"| {name} | {told} | {own + database:.1f} ({database:.1f} in the database) / "
            f"{embedded_ms:.1f} | {ratio:.2f} | recall {'met' if is_found else '**missed**'}, "
            f"cost {'met' if ratio <= limit else '**missed**'} (at most {limit}) |",
            flush=True,
        )


def _measure_recalls(
    corpus: Corpus, shared: SharedIndex, embedded: EmbeddedIndex, where: Filter | None
) -> list[list[float]]:
    """Of the shared index and of the embedded one, for each question."""
    recalls: list[list[float]] = [[], []]
    passing = find_passing(corpus.chunks, where)
    passing_vectors = corpus.chunks.vectors if where is None else corpus.chunks.vectors[passing]
    for question in corpus.questions:
        vector = corpus.embedder.vectors[question]
        best = _find_best(corpus.chunks, passing, passing_vectors, vector)
        for side, index in enumerate((shared, embedded)):
            hits = index.get_vector_index().search(vector, 10, where)
            recalls[side].append(len(best & {hit.id for hit in hits}) / len(best))
    return recalls


def _find_best(chunks: Chunks, passing: Any, passing_vectors: Any, vector: Any) -> set[str]:
    """The ten nearest by brute force; all vectors have unit length."""
    products = passing_vectors @ vector
    near = np.argpartition(-products, min(50, len(products) - 1))[:50]
    distances = ((passing_vectors[near].astype(np.float64) - vector) ** 2).sum(axis=1)
    return {chunks.ids[passing[near[place]]] for place in np.argsort(distances)[:10]}


def _measure_costs(
    engines: Engines,
    shared: SharedIndex,
    embedded: EmbeddedIndex,
    where: Filter | None,
    questions: list[str],
) -> list[tuple[float, float]]:
    """Milliseconds of this process and of the database: shared, then embedded."""
    repeats = 20 if len(engines.corpus.chunks) <= 200_000 else 5
    costs: list[list[tuple[float, float]]] = [[], []]
    for question in questions:
        for side, index in enumerate((shared, embedded)):
            ask = partial(_ask_again, index, question, where, repeats)
            _ask_again(index, question, where, 1)  # connections and caches are there then
            costs[side].append(measure_cpu(engines.server if side == 0 else None, ask))
    return [
        (
            1000 * mean(own for own, _ in each) / repeats,
            1000 * mean(database for _, database in each) / repeats,
        )
        for each in costs
    ]


def _ask_again(index: CollectionIndex, question: str, where: Filter | None, repeats: int) -> None:
    for _ in range(repeats):
        index.search(question, 10, where, "hybrid")


def _compare_words() -> None:
    with run_server(SERVER_OPTIONS) as server:
        make_template(server)
        database = PostgresDatabase(server.url(DATABASE))
        for number, name in enumerate(("govuk", "cranfield")):
            _compare_words_of(database, f"quality_{number}", name)
        database.close()


def _compare_words_of(database: PostgresDatabase, collection_name: str, name: str) -> None:
    test_set, fields = load_test_set(name), FilterFields()
    with tempfile.TemporaryDirectory() as folder:
        fts5 = LexicalIndex(Path(folder) / "words.db", {"text": 1.0}, fields)
        fts5.replace_documents(
            (LexicalDocument(i, {"text": t}, {}) for i, t in test_set.texts.items()), 1
        )
        collection = PostgresChunkStore(database).open_collection(collection_name, fields)
        shared = SharedIndex(collection, fields, KnownVectors())  # type: ignore[arg-type]
        ids = list(test_set.texts)
        vectors = np.zeros((len(ids), 2), np.float32)
        collection.upsert_chunks(
            Chunks(ids, list(test_set.texts.values()), [{}] * len(ids), vectors)
        )
        words = shared.get_word_index()
        by_fts5, in_sql = (_score_words(test_set, index) for index in (fts5, words))
        shared._memory_copy.open_vectors()  # which answers then
        in_memory = _score_words(test_set, words)
        shared.close()
        fts5.close()
    difference = max(abs(in_sql - by_fts5), abs(in_memory - by_fts5))
    print_progress(
        f"{name}: nDCG@10 by words, FTS5 {by_fts5:.4f}, SQL {in_sql:.4f}, in memory "
        f"{in_memory:.4f}: {'met' if difference <= 0.01 else '**missed**'} (within 0.01)"
    )


def _score_words(test_set: TestSet, index: LexicalIndex | SharedWords) -> float:
    """nDCG@10 of the ten best by words."""
    found = {
        number: [hit.id for hit in index.search(text, 10)]
        for number, text in test_set.questions.items()
    }
    return score_ndcg(test_set, found)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 50_000, int(sys.argv[2]) if sys.argv[2:] else 8)
