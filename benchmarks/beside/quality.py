"""What both versions find, compared once: rankings of public test sets, texts of files."""

import json
from collections.abc import Iterator

import numpy as np

from benchmarks.beside.rounds import KEPT, open_versions, run_workload
from benchmarks.engine.corpus import SHARED, TestSet, load_test_set
from benchmarks.engine.quality import TARGETS, Rankings, score_ndcg, score_recall
from benchmarks.redesign.tables import MODELS, Version
from benchmarks.table import Table
from tests.support.model import EMBEDDER

_NOTE = (
    "Nothing here depends on the machine, so each version was asked once. Rankings: nDCG@10 and "
    "recall@10 over the questions of the test sets, and whether every question has the same ids in "
    "the same order, or `better` where they differ and nDCG is no less; the texts' vectors are the "
    "same for both, each embeds the questions itself. Files: how much was found, and the beginning "
    "of a hash of all of it."
)


def tables(quick: bool) -> Iterator[Table]:
    if not SHARED.is_dir():
        print(f"What is found is not compared: there is no {SHARED}", flush=True)
        return
    versions = open_versions(KEPT)
    rows = [row for name in TARGETS for row in _compare_rankings(load_test_set(name), versions)]
    rows += _compare_documents(versions)
    yield Table(
        "Beside 0.1.0: what is found", ("what", "0.1.0", "now", "equal"), tuple(rows), _NOTE
    )


def _compare_rankings(test: TestSet, versions: list[Version]) -> Iterator[tuple[str, ...]]:
    KEPT.mkdir(parents=True, exist_ok=True)
    test_path, vectors_path = KEPT / f"{test.name}.json", KEPT / f"{test.name}.npy"
    test_path.write_text(json.dumps({"texts": test.texts, "questions": test.questions}), "utf-8")
    if not vectors_path.exists():
        # Some of Cranfield's abstracts are empty.
        texts = [text if text.strip() else "empty" for text in test.texts.values()]
        np.save(vectors_path, EMBEDDER.embed_batch(texts))
    arguments = (str(test_path), str(vectors_path), str(MODELS))
    old, new = (run_workload("rankings", version, *arguments) for version in versions)
    for side in old:
        scores = [
            f"{score_ndcg(test, rankings[side]):.3f}, {score_recall(test, rankings[side]):.3f}"
            for rankings in (old, new)
        ]
        row = f"{test.name}, {side}: nDCG@10, recall@10"
        yield row, *scores, _judge_rankings(test, old[side], new[side])


def _judge_rankings(test: TestSet, old: Rankings, new: Rankings) -> str:
    if old == new:
        return "yes"
    return "better" if score_ndcg(test, new) >= score_ndcg(test, old) else "**no**"


def _compare_documents(versions: list[Version]) -> list[tuple[str, ...]]:
    old, new = (run_workload("documents", version, str(SHARED)) for version in versions)
    return [
        (name, old[name], new[name], "yes" if old[name] == new[name] else "**no**") for name in old
    ]
