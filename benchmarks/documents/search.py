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
from readingroom.bases.documents.store import CHUNK_FILTER_FIELDS
from readingroom.core.filters import And, Equals, Filter, In
from readingroom.engine.vectors import VectorIndex

CHUNKS_PER_APPLICATION = 250
CHUNKS_PER_DOCUMENT = 25
_DOCUMENT_TYPES = (
    "transport_assessment",
    "planning_statement",
    "noise_assessment",
    "other",
    "site_plan",
)
_TARGET = 2.0
_PEER_APPLICATIONS = 200
_NOTE = (
    f"{CHUNKS_PER_APPLICATION} chunks an application in documents of {CHUNKS_PER_DOCUMENT}, "
    "documents of all applications in random order; vectors at random, k = 10, the same questions "
    "in turn; median of {rounds}. "
    "Ratio: to the same search in a store that holds this application alone, question by question. "
    f"Chroma: its own `query` with `where`, default settings, {_PEER_APPLICATIONS} applications."
)


def measure(applications: int, rounds: int) -> Table:
    """The same searches in a large index and in a small one; and in Chroma, fewer rows."""
    random = np.random.default_rng(7)
    document_order = random.permutation(
        applications * CHUNKS_PER_APPLICATION // CHUNKS_PER_DOCUMENT
    )
    vectors = _make_vectors(random, applications * CHUNKS_PER_APPLICATION)
    questions = _make_vectors(random, rounds)
    application_ref = "25/00042/FUL"
    large_index = _build_index(vectors, document_order)
    application_places = [
        place
        for place, document in enumerate(document_order)
        if _application_of(document) == application_ref
    ]
    small_index = _build_index(
        np.concatenate(
            [
                vectors[place * CHUNKS_PER_DOCUMENT : (place + 1) * CHUNKS_PER_DOCUMENT]
                for place in application_places
            ]
        ),
        document_order[application_places],
    )
    searches: dict[str, Filter] = {
        "by application": Equals("application_ref", application_ref),
        "by application and two types": And(
            (Equals("application_ref", application_ref), In("document_type", _DOCUMENT_TYPES[:2]))
        ),
    }
    table_rows: list[tuple[str, ...]] = []
    for name, where in searches.items():
        ratio = _compare_searches(
            questions,
            lambda query_vector, where=where: large_index.search(query_vector, 10, where),
            lambda query_vector, where=where: small_index.search(query_vector, 10, where),
        )
        table_rows.append(
            (
                name,
                "ours, alone",
                f"{len(small_index):,}",
                _render_milliseconds(ratio.to),
                "1.000",
                "",
            )
        )
        table_rows.append(
            (
                name,
                "ours",
                f"{len(large_index):,}",
                _render_milliseconds(ratio.of),
                str(ratio),
                ratio.against(_TARGET),
            )
        )
    table_rows += _measure_chroma(
        vectors, document_order, questions[: max(3, rounds // 10)], application_ref
    )
    return Table(
        f"Searching one application among {applications:,}",
        ("search", "store", "rows", "median ms", "ratio", "target"),
        tuple(table_rows),
        _NOTE.format(rounds=rounds),
    )


def _compare_searches(
    questions: Any,
    search_large: Callable[[Any], Sequence[Any]],
    search_small: Callable[[Any], Sequence[Any]],
) -> Ratio:
    large_seconds, small_seconds = [], []
    for place, question in enumerate([*questions[:2], *questions]):
        began = time.perf_counter()
        small_hits = search_small(question)
        between = time.perf_counter()
        large_hits = search_large(question)
        ended = time.perf_counter()
        assert len(small_hits) == len(large_hits) == 10
        if place >= 2:  # the first ones wake the caches
            small_seconds.append(between - began)
            large_seconds.append(ended - between)
    return Ratio(large_seconds, small_seconds)


def _build_index(vectors: Any, documents: Any) -> VectorIndex:
    index = VectorIndex(CHUNK_FILTER_FIELDS, reserved_row_count=len(vectors))
    for start in range(0, len(documents), 400):
        page_of_documents = documents[start : start + 400]
        first = start * CHUNKS_PER_DOCUMENT
        described = [
            _describe_chunk(document)
            for document in page_of_documents
            for _ in range(CHUNKS_PER_DOCUMENT)
        ]
        ids = [
            f"{document}_{row}"
            for document in page_of_documents
            for row in range(CHUNKS_PER_DOCUMENT)
        ]
        index.upsert_rows(ids, vectors[first : first + len(ids)], described)
    return index


def _measure_chroma(
    vectors: Any, document_order: Any, questions: Any, application_ref: str
) -> list[tuple[str, ...]]:
    kept = [
        place
        for place, row in enumerate(document_order)
        if row * CHUNKS_PER_DOCUMENT // CHUNKS_PER_APPLICATION < _PEER_APPLICATIONS
    ]
    with tempfile.TemporaryDirectory() as folder:
        client = chromadb.PersistentClient(folder, Settings(anonymized_telemetry=False))
        large_collection = _fill_collection(client, "many", vectors, document_order, kept)
        application_places = [
            place for place in kept if _application_of(document_order[place]) == application_ref
        ]
        small_collection = _fill_collection(
            client, "few", vectors, document_order, application_places
        )

        def make_search(collection: Any) -> Callable[[Any], Sequence[Any]]:
            where = {"application_ref": application_ref}
            return lambda query_vector: collection.query(
                query_embeddings=[query_vector.tolist()], n_results=10, where=where
            )["ids"][0]

        ratio = _compare_searches(
            questions, make_search(large_collection), make_search(small_collection)
        )
        client.close()
    name = "by application"
    return [
        (
            name,
            "Chroma, alone",
            f"{len(application_places) * CHUNKS_PER_DOCUMENT:,}",
            _render_milliseconds(ratio.to),
            "1.000",
            "",
        ),
        (
            name,
            "Chroma",
            f"{len(kept) * CHUNKS_PER_DOCUMENT:,}",
            _render_milliseconds(ratio.of),
            str(ratio),
            "",
        ),
    ]


def _fill_collection(
    client: Any, name: str, vectors: Any, document_order: Any, places: Sequence[int]
) -> Any:
    collection = client.create_collection(name, embedding_function=None)
    for start in range(0, len(places), 100):
        batch_of_places = places[start : start + 100]
        collection.add(
            ids=[
                f"{document_order[place]}_{row}"
                for place in batch_of_places
                for row in range(CHUNKS_PER_DOCUMENT)
            ],
            embeddings=np.concatenate(
                [
                    vectors[place * CHUNKS_PER_DOCUMENT : (place + 1) * CHUNKS_PER_DOCUMENT]
                    for place in batch_of_places
                ]
            ),
            metadatas=[
                _describe_chunk(document_order[place])
                for place in batch_of_places
                for _ in range(CHUNKS_PER_DOCUMENT)
            ],
        )
    return collection


def _describe_chunk(document: int) -> dict[str, str]:
    return {
        "application_ref": _application_of(document),
        "document_type": _DOCUMENT_TYPES[int(document) % len(_DOCUMENT_TYPES)],
    }


def _application_of(document: int) -> str:
    return f"25/{int(document) * CHUNKS_PER_DOCUMENT // CHUNKS_PER_APPLICATION:05d}/FUL"


def _make_vectors(random: Any, count: int) -> Any:
    vectors = random.standard_normal((count, 384), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _render_milliseconds(seconds: Sequence[float]) -> str:
    return f"{1000 * median(seconds):.3f}"
