"""The chunk store: five verbs, one owner."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from readingroom.core.filters import Equals, Filter, FilterFields, In
from readingroom.storage import chunks as store_module
from readingroom.storage.chunks import ChunkCollection, Chunks, ChunkStore
from readingroom.storage.errors import FolderInUse, StoreUnusable
from tests.engine.test_vectors import FILTERS, make_vector
from tests.requirements import requirement
from tests.support.filters import passes

FIELDS = FilterFields(exact_match_fields=("source", "open"), numeric_range_fields=("start", "end"))


def make_chunks(*ids: str, seed: int = 0, **metadata: Any) -> Chunks:
    numbers = [seed + number for number in range(len(ids))]
    return Chunks(
        list(ids),
        [f"Paragraph {id} on cycle parking." for id in ids],
        [dict(metadata) for _ in ids],
        np.array([make_vector(number, 384) for number in numbers]),
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChunkStore]:
    opened = ChunkStore(tmp_path / "chroma")
    yield opened
    opened.close()


@requirement("engine:chunks:verbs")
def test_what_is_put_comes_back_as_it_was(store: ChunkStore) -> None:
    held = store.open_collection("policy_docs")
    put = make_chunks("a", "b", source="NPPF", start=20241212, open=True, weight=0.5)
    held.upsert_chunks(put)

    got = held.read_chunks(with_vectors=True)

    assert (got.ids, got.texts, got.metadatas) == (put.ids, put.texts, put.metadatas)
    assert np.array_equal(got.vectors, put.vectors)
    assert held.count_chunks() == 2
    assert held.read_chunks(["b", "unknown"]).ids == ["b"]
    assert held.read_chunks([]).ids == []


@requirement("engine:chunks:verbs")
def test_an_upsert_replaces_all_metadata_and_an_update_lays_over_it(store: ChunkStore) -> None:
    held = store.open_collection("policy_docs")
    held.upsert_chunks(make_chunks("a", source="A", start=1))

    held.upsert_chunks(make_chunks("a", source="B"))
    assert held.read_chunks(["a"]).metadatas == [{"source": "B"}]
    held.update_metadata(["a", "unknown"], [{"end": 2}, {"end": 3}])
    assert held.read_chunks().metadatas == [{"source": "B", "end": 2}]
    held.upsert_chunks(make_chunks("a"))
    assert held.read_chunks(["a"]).metadatas == [{}]
    held.delete_chunks(["a", "unknown"])
    assert held.count_chunks() == 0


@requirement("engine:chunks:verbs")
def test_a_batch_beyond_chromas_limit_is_split(store: ChunkStore) -> None:
    held = store.open_collection("policy_docs")
    many = make_chunks(*(f"id{number}" for number in range(5_600)), source="A")

    held.upsert_chunks(many)

    assert held.count_chunks() == 5_600
    assert sorted(held.read_chunks(many.ids).ids) == sorted(many.ids)
    held.delete_chunks(many.ids)
    assert held.count_chunks() == 0


@requirement("engine:chunks:verbs")
def test_more_than_one_page_is_read_whole(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = store.open_collection("policy_docs")
    many = make_chunks(*(f"id{number}" for number in range(21)), source="A")
    held.upsert_chunks(many)

    for page in (7, 20, 21, 22):
        monkeypatch.setattr(store_module, "_ROWS_PER_BATCH", page)
        assert sorted(held.read_chunks(with_vectors=True).ids) == sorted(many.ids)
        assert len(held.read_chunks(where=Equals("source", "A"))) == 21
    assert len(held.read_chunks(limit=5, offset=18)) == 3


@pytest.fixture(scope="module")
def filtered() -> Iterator[tuple[ChunkCollection, dict[str, dict[str, Any]]]]:
    store = ChunkStore(None)
    held = store.open_collection("filtered")
    stored: dict[str, dict[str, Any]] = {}
    for number in range(60):
        start = 20200101 + number % 10
        metadata: dict[str, Any] = {"source": "ABC1"[number % 4], "start": start}
        if number % 3:
            metadata |= {"open": number % 2 == 0, "end": 99991231 if number % 5 else start + 2}
        stored[f"id{number}"] = metadata
        held.upsert_chunks(make_chunks(f"id{number}", **metadata))
    yield held, stored
    store.close()


@requirement("engine:filters", "engine:chunks:verbs")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(where=FILTERS)
def test_the_store_passes_what_the_filter_means(
    filtered: tuple[ChunkCollection, dict[str, dict[str, Any]]], where: Filter | None
) -> None:
    held, stored = filtered

    found = held.read_chunks(where=where).ids

    assert sorted(found) == sorted(id for id, one in stored.items() if passes(one, where))


@requirement("engine:filters")
def test_values_of_different_kinds_may_be_asked_together(
    filtered: tuple[ChunkCollection, dict[str, dict[str, Any]]],
) -> None:
    held, stored = filtered
    where = In("source", ("A", 1, True, 2.5))

    assert sorted(held.read_chunks(where=where).ids) == sorted(
        id for id, one in stored.items() if passes(one, where)
    )


@requirement("engine:chunks:bad-input")
def test_bad_batches_are_refused_and_change_nothing(store: ChunkStore) -> None:
    held = store.open_collection("policy_docs")
    held.upsert_chunks(make_chunks("kept"))

    with pytest.raises(ValueError, match="twice"):
        held.upsert_chunks(make_chunks("a", "a"))
    with pytest.raises(ValueError, match="dimension"):
        held.upsert_chunks(Chunks(["a"], ["text"], [{}], np.zeros((1, 3), np.float32)))
    with pytest.raises(ValueError, match="finite"):
        held.upsert_chunks(Chunks(["a"], ["text"], [{}], np.full((1, 384), np.nan, np.float32)))

    assert held.read_chunks().ids == ["kept"]


@requirement("engine:chunks:owner")
def test_a_second_process_is_refused_and_may_come_when_the_first_has_gone(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from readingroom.storage.chunks import ChunkStore\n"
        "store = ChunkStore(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    )
    directory = tmp_path / "chroma"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "open\n"
        with pytest.raises(FolderInUse, match="in use"):
            ChunkStore(directory)
        first.kill()
        first.wait()

    ChunkStore(directory).close()


@requirement("engine:chunks:damaged")
def test_a_damaged_store_is_told_and_lets_go_of_its_folder(tmp_path: Path) -> None:
    directory = tmp_path / "chroma"
    directory.mkdir()
    (directory / "chroma.sqlite3").write_bytes(b"not a database" * 1000)

    for _ in range(2):
        with pytest.raises(StoreUnusable, match="cannot be opened"):
            ChunkStore(directory)


FUNCTION = {
    "type": "known",
    "name": "sentence_transformer",
    "config": {
        "model_name": "somebody/model",
        "device": "cpu",
        "normalize_embeddings": False,
        "kwargs": {"trust_remote_code": True},
    },
}


@requirement("engine:chunks:verbs")
@pytest.mark.parametrize("where", ["keys", "defaults", "sparse"])
def test_a_collection_that_names_an_embedding_function_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Chroma builds it at the first write, and one of them runs code out of a model's files."""
    from chromadb.utils.embedding_functions import SentenceTransformerEmbeddingFunction

    built: list[Any] = []
    monkeypatch.setattr(SentenceTransformerEmbeddingFunction, "build_from_config", built.append)
    opened = ChunkStore(tmp_path / "chroma")
    opened.open_collection("policy_docs").upsert_chunks(make_chunks("a"))
    opened.close()
    with closing(sqlite3.connect(tmp_path / "chroma" / "chroma.sqlite3")) as db:
        schema = json.loads(db.execute("SELECT schema_str FROM collections").fetchone()[0])
        part = schema["keys"]["#embedding"] if where == "keys" else schema["defaults"]
        index = (
            part["sparse_vector"]["sparse_vector_index"]
            if where == "sparse"
            else part["float_list"]["vector_index"]
        )
        index["config"]["embedding_function"] = FUNCTION
        db.execute("UPDATE collections SET schema_str = ?", (json.dumps(schema),))
        db.commit()
    opened = ChunkStore(tmp_path / "chroma")
    try:
        with pytest.raises(StoreUnusable, match="names an embedding function"):
            opened.open_collection("policy_docs").upsert_chunks(make_chunks("b"))
    finally:
        opened.close()
    assert built == []
