"""Searching one application among two thousand, beside a store that holds it alone."""

import tempfile
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import chromadb
import numpy as np
from chromadb.config import Settings

from benchmarks.table import Ratio, Table
from readingroom.bases.documents.store import FILTER_FIELDS
from readingroom.core.filters import And, Equals, Filter, In
from readingroom.engine.vectors import VectorIndex

EACH = 250
DOCUMENT = 25
_TYPES = ("transport_assessment", "planning_statement", "noise_assessment", "other", "site_plan")
_TARGET = 2.0
_PEER = 200
_NOTE = (
    f"{EACH} chunks an application in documents of {DOCUMENT}, documents of all applications in "
    "random order; vectors at random, k = 10, the same questions in turn; median of {rounds}. "
    "Ratio: to the same search in a store that holds this application alone, question by question. "
    f"Chroma: its own `query` with `where`, default settings, {_PEER} applications."
)


def measure(applications: int, rounds: int) -> Table:
    """The same searches in a large index and in a small one; and in Chroma, fewer rows."""
    random = np.random.default_rng(7)
    order = random.permutation(applications * EACH // DOCUMENT)
    rows = _vectors(random, applications * EACH)
    questions = _vectors(random, rounds)
    wanted = "25/00042/FUL"
    whole = _index(rows, order)
    mine = [place for place, document in enumerate(order) if _reference(document) == wanted]
    alone = _index(
        np.concatenate([rows[place * DOCUMENT : (place + 1) * DOCUMENT] for place in mine]),
        order[mine],
    )
    searches: dict[str, Filter] = {
        "by application": Equals("application_ref", wanted),
        "by application and two types": And(
            (Equals("application_ref", wanted), In("document_type", _TYPES[:2]))
        ),
    }
    table_rows: list[tuple[str, ...]] = []
    for name, where in searches.items():
        ratio = _ratio(
            questions,
            lambda query_vector, where=where: whole.search(query_vector, 10, where),
            lambda query_vector, where=where: alone.search(query_vector, 10, where),
        )
        table_rows.append((name, "ours, alone", f"{len(alone):,}", _ms(ratio.to), "1.000", ""))
        table_rows.append(
            (name, "ours", f"{len(whole):,}", _ms(ratio.of), str(ratio), ratio.against(_TARGET))
        )
    table_rows += _chroma(rows, order, questions[: max(3, rounds // 10)], wanted)
    return Table(
        f"Searching one application among {applications:,}",
        ("search", "store", "rows", "median ms", "ratio", "target"),
        tuple(table_rows),
        _NOTE.format(rounds=rounds),
    )


def _ratio(
    questions: Any, many: Callable[[Any], Sequence[Any]], few: Callable[[Any], Sequence[Any]]
) -> Ratio:
    large, small = [], []
    for place, question in enumerate([*questions[:2], *questions]):
        began = time.perf_counter()
        few_hits = few(question)
        between = time.perf_counter()
        same = many(question)
        ended = time.perf_counter()
        assert len(few_hits) == len(same) == 10
        if place >= 2:  # the first ones wake the caches
            small.append(between - began)
            large.append(ended - between)
    return Ratio(large, small)


def _index(rows: Any, documents: Any) -> VectorIndex:
    index = VectorIndex(FILTER_FIELDS, reserve=len(rows))
    for start in range(0, len(documents), 400):
        some = documents[start : start + 400]
        first = start * DOCUMENT
        described = [_metadata(document) for document in some for _ in range(DOCUMENT)]
        ids = [f"{document}_{row}" for document in some for row in range(DOCUMENT)]
        index.upsert(ids, rows[first : first + len(ids)], described)
    return index


def _chroma(rows: Any, order: Any, questions: Any, wanted: str) -> list[tuple[str, ...]]:
    kept = [place for place, row in enumerate(order) if row * DOCUMENT // EACH < _PEER]
    with tempfile.TemporaryDirectory() as folder:
        client = chromadb.PersistentClient(folder, Settings(anonymized_telemetry=False))
        many = _filled(client, "many", rows, order, kept)
        mine = [place for place in kept if _reference(order[place]) == wanted]
        few = _filled(client, "few", rows, order, mine)

        def ask(collection: Any) -> Callable[[Any], Sequence[Any]]:
            where = {"application_ref": wanted}
            return lambda query_vector: collection.query(
                query_embeddings=[query_vector.tolist()], n_results=10, where=where
            )["ids"][0]

        ratio = _ratio(questions, ask(many), ask(few))
        client.close()
    name = "by application"
    return [
        (name, "Chroma, alone", f"{len(mine) * DOCUMENT:,}", _ms(ratio.to), "1.000", ""),
        (name, "Chroma", f"{len(kept) * DOCUMENT:,}", _ms(ratio.of), str(ratio), ""),
    ]


def _filled(client: Any, name: str, rows: Any, order: Any, places: Sequence[int]) -> Any:
    collection = client.create_collection(name, embedding_function=None)
    for start in range(0, len(places), 100):
        some = places[start : start + 100]
        collection.add(
            ids=[f"{order[place]}_{row}" for place in some for row in range(DOCUMENT)],
            embeddings=np.concatenate(
                [rows[place * DOCUMENT : (place + 1) * DOCUMENT] for place in some]
            ),
            metadatas=[_metadata(order[place]) for place in some for _ in range(DOCUMENT)],
        )
    return collection


def _metadata(document: int) -> dict[str, str]:
    return {
        "application_ref": _reference(document),
        "document_type": _TYPES[int(document) % len(_TYPES)],
    }


def _reference(document: int) -> str:
    return f"25/{int(document) * DOCUMENT // EACH:05d}/FUL"


def _vectors(random: Any, count: int) -> Any:
    made = random.standard_normal((count, 384), np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


def _ms(seconds: Sequence[float]) -> str:
    return f"{1000 * median(seconds):.3f}"
