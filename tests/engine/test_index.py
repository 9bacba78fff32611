"""The index of a collection: three ways to search, always in step with the store."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from readingroom.core.filters import And, Equals, Filter, Range
from readingroom.core.modes import Mode
from readingroom.engine.embedding import weights
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.index import ChunkIndex, EmbeddedIndex, Ranking
from readingroom.engine.shared.index import open_chunk_index
from readingroom.storage.chunks import ChunkCollection, Chunks, ChunkStore
from readingroom.storage.errors import EmbeddingMismatch, StoreUnusable
from tests.engine.test_vectors import _METADATA, FILTERS, agree, make_vector, search_by_brute_force
from tests.requirements import requirement
from tests.storage.test_chunks import FIELDS, make_chunks

COLLECTION = "policy_docs"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChunkStore]:
    store = ChunkStore(tmp_path / "chroma")
    yield store
    store.close()


_WRITER = """
import sys
from pathlib import Path
import numpy as np
from readingroom.storage.chunks import Chunks, ChunkStore
held = ChunkStore(Path(sys.argv[1])).open_collection("policy_docs")
made = np.random.default_rng(1)
print("ready", flush=True)
for batch in range(50):
    ids = [f"{batch:02}-{number:03}" for number in range(100)]
    vectors = made.standard_normal((100, 384)).astype(np.float32)
    texts = ["cycle parking " + id for id in ids]
    held.upsert_chunks(Chunks(ids, texts, [{"source": "A"}] * 100, vectors))
    print(batch, flush=True)
"""


@requirement("engine:chunks:crash", "engine:index:in-step")
@pytest.mark.parametrize("after", [1, 9, 23])
def test_kill_9_during_an_upsert_of_5000_chunks_loses_nothing_acknowledged(
    tmp_path: Path, embedder: Embedder, after: int
) -> None:
    directory = tmp_path / "chroma"
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(directory)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        acknowledged = -1
        for line in writer.stdout:
            if line != "ready\n":
                acknowledged = int(line)
            if acknowledged == after:
                writer.send_signal(signal.SIGKILL)
                break
        writer.wait()

    store = ChunkStore(directory)
    index = EmbeddedIndex(
        store.open_collection(COLLECTION), FIELDS, embedder, tmp_path / "words.sqlite"
    )
    found = index.collection.read_chunks(with_vectors=True)

    promised = {f"{batch:02}-{number:03}" for batch in range(after + 1) for number in range(100)}
    assert promised <= set(found.ids)
    assert index.get_vector_index().list_row_ids() == sorted(found.ids)
    stored = {
        id: (row, metadata)
        for id, row, metadata in zip(found.ids, found.vectors, found.metadatas, strict=True)
    }
    query = make_vector(5, 384)
    assert agree(
        index.get_vector_index().search(query, 10), search_by_brute_force(stored, query, 10, None)
    )
    assert len(index.get_word_index()) == len(found)
    index.close()
    store.close()


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    return Embedder(tmp_path_factory.mktemp("models"))


@pytest.fixture
def index(store: ChunkStore, tmp_path: Path, embedder: Embedder) -> Iterator[EmbeddedIndex]:
    index = EmbeddedIndex(
        store.open_collection(COLLECTION), FIELDS, embedder, tmp_path / "words.sqlite"
    )
    yield index
    index.close()


TEXTS = {
    "cycle": "Every new home needs secure and covered space for bicycles.",
    "flood": "Development in areas at risk of flooding should be avoided.",
    "green": "The Green Belt prevents urban sprawl by keeping land open.",
}


def list_ids(ranking: Ranking) -> list[str]:
    return [hit.chunk_id for hit in ranking.hits]


def put(index: EmbeddedIndex, **metadata: Any) -> None:
    texts = list(TEXTS.values())
    vectors = index.embedder.embed_batch(texts)
    index.put_chunks(Chunks(list(TEXTS), texts, [dict(metadata) for _ in TEXTS], vectors))


@requirement("engine:index:search")
def test_an_index_finds_by_words_by_meaning_and_by_both(index: EmbeddedIndex) -> None:
    put(index, source="A")

    assert list_ids(index.search("green belt", 3, None, "lexical")) == ["green"]
    assert list_ids(index.search("Where can I keep my bike?", 1, None, "semantic")) == ["cycle"]
    assert (
        list_ids(index.search("Can I build where rivers overflow?", 3, None, "hybrid"))[0]
        == "flood"
    )
    for mode in get_args(Mode):
        assert list_ids(index.search("green belt", 3, Equals("source", "B"), mode)) == []


@requirement("engine:index:search")
def test_what_one_index_dumps_another_is_filled_with(
    index: EmbeddedIndex, store: ChunkStore, tmp_path: Path, embedder: Embedder
) -> None:
    other: ChunkIndex = open_chunk_index(
        store.open_collection("other"), FIELDS, embedder, tmp_path / "other.sqlite"
    )
    assert list(other.list_warm_up_steps()) == []
    put(index, source="A")
    assert index.dump_chunks(tmp_path / "chunks.db") == 3
    before = other.generation

    assert (
        other.fill_from_dump(tmp_path / "chunks.db", lambda chunks: None)
        == other.count_chunks()
        == 3
    )

    assert other.generation > before
    assert sorted(other.read_chunks(Equals("source", "A")).ids) == sorted(TEXTS)
    assert list_ids(other.search("green belt", 3, None, "hybrid"))[0] == "green"
    assert other.count_chunks_of_both_indexes() == (3, 3)
    for step in other.list_warm_up_steps():
        step()
    other.close()


@requirement("engine:index:search")
def test_without_a_model_words_still_answer_and_the_answer_says_so(
    index: EmbeddedIndex, store: ChunkStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(index)
    monkeypatch.setattr(weights, "MODEL_PACKAGE_NAME", "no-such-package")
    collection = store.open_collection(COLLECTION)
    bare = EmbeddedIndex(collection, FIELDS, Embedder(tmp_path / "none"), tmp_path / "other.sqlite")

    for mode in ("semantic", "hybrid"):
        ranking = bare.search("green belt", 3, None, mode)

        assert list_ids(ranking) == ["green"]
        assert ranking.degraded_reason is not None
        assert "readingroom model install" in ranking.degraded_reason
    bare.close()


@requirement("engine:index:identity")
def test_vectors_of_two_precisions_never_meet_in_one_collection(
    index: EmbeddedIndex, store: ChunkStore, tmp_path: Path
) -> None:
    put(index)
    quick = Embedder(tmp_path / "models", precision="int8")
    other = EmbeddedIndex(
        store.open_collection(COLLECTION), FIELDS, quick, tmp_path / "other.sqlite"
    )

    with pytest.raises(EmbeddingMismatch, match="must not be mixed"):
        put(other)
    with pytest.raises(EmbeddingMismatch):
        other.search("bicycles", 3, None, "semantic")
    assert list_ids(other.search("green belt", 3, None, "hybrid")) == ["green"]
    other.close()


@requirement("engine:index:in-step")
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.sets(st.integers(0, 9), min_size=1), _METADATA),
            st.tuples(st.just("change"), st.sets(st.integers(0, 12), min_size=1), _METADATA),
            st.tuples(st.just("remove"), st.sets(st.integers(0, 12)), st.just({})),
        ),
        max_size=6,
    ),
    FILTERS,
)
def test_after_any_writes_both_indexes_agree_with_the_store(
    index: EmbeddedIndex, writes: list[tuple[str, set[int], dict[str, Any]]], where: Filter | None
) -> None:
    index.get_vector_index()
    index.get_word_index()
    for verb, numbers, metadata in writes:
        ids = [f"id{number}" for number in sorted(numbers)]
        known = {name: value for name, value in metadata.items() if name in ("source", "open")}
        if verb == "put":
            index.put_chunks(make_chunks(*ids, seed=len(ids), **metadata))
        elif verb == "change" and known:
            index.update_metadata(ids, [known] * len(ids))
        elif verb == "remove":
            index.delete_chunks(ids)
        every = [f"id{number}" for number in range(13)]
        assert describe_fields(index.fetch_chunks(every)) == describe_fields(
            index.collection.read_chunks(every)
        )

    wanted = sorted(index.collection.read_chunks(where=where).ids)
    assert index.get_vector_index().list_row_ids(where) == wanted
    assert sorted(hit.id for hit in index.search_words("cycle", 99, where)) == wanted
    index.delete_chunks(index.collection.read_chunks().ids)


def describe_fields(held: Chunks) -> dict[str, tuple[str, Any]]:
    rows = zip(held.texts, held.metadatas, strict=True)
    return dict(zip(held.ids, rows, strict=True))


@requirement("engine:index:in-step")
def test_what_a_write_overtook_is_not_remembered(
    index: EmbeddedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.put_chunks(make_chunks("a", source="old"))
    read = index.collection.read_chunks

    def read_overtaken_by_a_write(ids: Any) -> Chunks:
        overtaken = read(ids)
        index.update_metadata(["a"], [{"source": "new"}])
        return overtaken

    with monkeypatch.context() as slow:
        slow.setattr(index.collection, "read_chunks", read_overtaken_by_a_write)
        assert index.fetch_chunks(["a"]).metadatas == [{"source": "old"}]

    assert index.fetch_chunks(["a"]).metadatas == [{"source": "new"}]
    index.delete_chunks(["a"])
    assert index.fetch_chunks(["a"]).ids == []


@requirement("engine:index:in-step")
def test_a_store_that_moved_on_alone_makes_the_lexical_index_anew(
    index: EmbeddedIndex, store: ChunkStore
) -> None:
    put(index)
    assert len(index.get_word_index()) == 3

    store.open_collection(COLLECTION)  # as another run would open it
    index.collection.delete_chunks(["green"])

    assert index.search_words("green belt", 3) == []


@requirement("engine:index:in-step")
def test_a_write_that_fails_half_way_leaves_no_doubt_behind(
    index: EmbeddedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(index)
    index.get_vector_index()

    def fail(*args: Any) -> None:
        raise StoreUnusable("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(ChunkCollection, "upsert_chunks", fail)
        with pytest.raises(StoreUnusable):
            index.put_chunks(make_chunks("new"))

    assert index.get_vector_index().list_row_ids() == sorted(TEXTS)
    assert [hit.id for hit in index.search_words("green", 5)] == ["green"]


@requirement("engine:index:concurrent")
def test_many_readers_and_one_writer_share_an_index(index: EmbeddedIndex) -> None:
    index.put_chunks(make_chunks(*(f"id{number}" for number in range(60)), source="A"))
    stop, wrong = threading.Event(), list[Any]()

    def read() -> None:
        while not stop.is_set():
            try:
                where = And((Equals("source", "A"),))
                ranking = index.search("cycle parking", 100, where, "hybrid")
            except Exception as error:
                wrong.append(error)
                return
            if len(ranking.hits) != 60:
                wrong.append(len(ranking.hits))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(12):
        index.update_metadata([f"id{turn}"], [{"start": 20200101 + turn}])
    stop.set()
    for reader in readers:
        reader.join()

    assert wrong == []
    assert len(index.get_vector_index().list_row_ids(Range("start", low=20200101))) == 12
