"""The chunk store and the shelf on it: five verbs, one owner, and nothing lost to a kill."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from readingroom.core.filters import And, Equals, Fields, Filter, In, Range
from readingroom.engine.embedding import weights
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.lexical import LexicalIndex
from readingroom.engine.recent import RecentChunks
from readingroom.engine.shelf import TEXT, Shelf
from readingroom.storage import chunks as store_module
from readingroom.storage.chunks import ChunkCollection, Chunks, ChunkStore
from readingroom.storage.errors import EmbeddingMismatch, FolderInUse, StoreUnusable
from tests.engine.test_vectors import _METADATA, FILTERS, agree, brute, vector
from tests.requirements import requirement
from tests.support.filters import passes

FIELDS = Fields(equality=("source", "open"), ranges=("start", "end"))


def chunks(*ids: str, seed: int = 0, **metadata: Any) -> Chunks:
    numbers = [seed + number for number in range(len(ids))]
    return Chunks(
        list(ids),
        [f"Paragraph {id} on cycle parking." for id in ids],
        [dict(metadata) for _ in ids],
        np.array([vector(number, 384) for number in numbers]),
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChunkStore]:
    opened = ChunkStore(tmp_path / "chroma")
    yield opened
    opened.close()


@requirement("engine:chunks:verbs")
def test_what_is_put_comes_back_as_it_was(store: ChunkStore) -> None:
    held = store.collection("policy_docs")
    put = chunks("a", "b", source="NPPF", start=20241212, open=True, weight=0.5)
    held.upsert(put)

    got = held.get(vectors=True)

    assert (got.ids, got.texts, got.metadatas) == (put.ids, put.texts, put.metadatas)
    assert np.array_equal(got.vectors, put.vectors)
    assert held.count() == 2
    assert held.get(["b", "unknown"]).ids == ["b"]
    assert held.get([]).ids == []


@requirement("engine:chunks:verbs")
def test_an_upsert_replaces_all_metadata_and_an_update_lays_over_it(store: ChunkStore) -> None:
    held = store.collection("policy_docs")
    held.upsert(chunks("a", source="A", start=1))

    held.upsert(chunks("a", source="B"))
    assert held.get(["a"]).metadatas == [{"source": "B"}]
    held.update_metadata(["a", "unknown"], [{"end": 2}, {"end": 3}])
    assert held.get().metadatas == [{"source": "B", "end": 2}]
    held.upsert(chunks("a"))
    assert held.get(["a"]).metadatas == [{}]
    held.delete(["a", "unknown"])
    assert held.count() == 0


@requirement("engine:chunks:verbs")
def test_a_batch_beyond_chromas_limit_is_split(store: ChunkStore) -> None:
    held = store.collection("policy_docs")
    many = chunks(*(f"id{number}" for number in range(5_600)), source="A")

    held.upsert(many)

    assert held.count() == 5_600
    assert sorted(held.get(many.ids).ids) == sorted(many.ids)
    held.delete(many.ids)
    assert held.count() == 0


@requirement("engine:chunks:verbs")
def test_more_than_one_page_is_read_whole(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = store.collection("policy_docs")
    many = chunks(*(f"id{number}" for number in range(21)), source="A")
    held.upsert(many)

    for page in (7, 20, 21, 22):
        monkeypatch.setattr(store_module, "_BATCH", page)
        assert sorted(held.get(vectors=True).ids) == sorted(many.ids)
        assert len(held.get(where=Equals("source", "A"))) == 21
    assert len(held.get(limit=5, offset=18)) == 3


@pytest.fixture(scope="module")
def filtered() -> Iterator[tuple[ChunkCollection, dict[str, dict[str, Any]]]]:
    store = ChunkStore(None)
    held = store.collection("filtered")
    stored: dict[str, dict[str, Any]] = {}
    for number in range(60):
        start = 20200101 + number % 10
        metadata: dict[str, Any] = {"source": "ABC1"[number % 4], "start": start}
        if number % 3:
            metadata |= {"open": number % 2 == 0, "end": 99991231 if number % 5 else start + 2}
        stored[f"id{number}"] = metadata
        held.upsert(chunks(f"id{number}", **metadata))
    yield held, stored
    store.close()


@requirement("engine:filters", "engine:chunks:verbs")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(where=FILTERS)
def test_the_store_passes_what_the_filter_means(
    filtered: tuple[ChunkCollection, dict[str, dict[str, Any]]], where: Filter | None
) -> None:
    held, stored = filtered

    found = held.get(where=where).ids

    assert sorted(found) == sorted(id for id, one in stored.items() if passes(one, where))


@requirement("engine:filters")
def test_values_of_different_kinds_may_be_asked_together(
    filtered: tuple[ChunkCollection, dict[str, dict[str, Any]]],
) -> None:
    held, stored = filtered
    where = In("source", ("A", 1, True, 2.5))

    assert sorted(held.get(where=where).ids) == sorted(
        id for id, one in stored.items() if passes(one, where)
    )


@requirement("engine:chunks:bad-input")
def test_bad_batches_are_refused_and_change_nothing(store: ChunkStore) -> None:
    held = store.collection("policy_docs")
    held.upsert(chunks("kept"))

    with pytest.raises(ValueError, match="twice"):
        held.upsert(chunks("a", "a"))
    with pytest.raises(ValueError, match="dimension"):
        held.upsert(Chunks(["a"], ["text"], [{}], np.zeros((1, 3), np.float32)))
    with pytest.raises(ValueError, match="finite"):
        held.upsert(Chunks(["a"], ["text"], [{}], np.full((1, 384), np.nan, np.float32)))

    assert held.get().ids == ["kept"]


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


_WRITER = """
import sys
from pathlib import Path
import numpy as np
from readingroom.storage.chunks import Chunks, ChunkStore
held = ChunkStore(Path(sys.argv[1])).collection("policy_docs")
made = np.random.default_rng(1)
print("ready", flush=True)
for batch in range(50):
    ids = [f"{batch:02}-{number:03}" for number in range(100)]
    vectors = made.standard_normal((100, 384)).astype(np.float32)
    texts = ["cycle parking " + id for id in ids]
    held.upsert(Chunks(ids, texts, [{"source": "A"}] * 100, vectors))
    print(batch, flush=True)
"""


@requirement("engine:chunks:crash", "engine:shelf:in-step")
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
    held = store.collection("policy_docs")
    words = LexicalIndex(tmp_path / "words.sqlite", {TEXT: 1.0}, FIELDS)
    shelf = Shelf(held, FIELDS, embedder, words)
    found = held.get(vectors=True)

    promised = {f"{batch:02}-{number:03}" for batch in range(after + 1) for number in range(100)}
    assert promised <= set(found.ids)
    assert shelf.vectors().matching() == sorted(found.ids)
    stored = {
        id: (row, metadata)
        for id, row, metadata in zip(found.ids, found.vectors, found.metadatas, strict=True)
    }
    query = vector(5, 384)
    assert agree(shelf.vectors().search(query, 10), brute(stored, query, 10, None))
    assert len(shelf.words()) == len(found)
    words.close()
    store.close()


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    return Embedder(tmp_path_factory.mktemp("models"))


@pytest.fixture
def shelf(store: ChunkStore, tmp_path: Path, embedder: Embedder) -> Iterator[Shelf]:
    words = LexicalIndex(tmp_path / "words.sqlite", {TEXT: 1.0}, FIELDS)
    yield Shelf(store.collection("policy_docs"), FIELDS, embedder, words)
    words.close()


TEXTS = {
    "cycle": "Every new home needs secure and covered space for bicycles.",
    "flood": "Development in areas at risk of flooding should be avoided.",
    "green": "The Green Belt prevents urban sprawl by keeping land open.",
}


def put(shelf: Shelf, **metadata: Any) -> None:
    texts = list(TEXTS.values())
    vectors = shelf._embedder.embed_batch(texts)
    shelf.put(Chunks(list(TEXTS), texts, [dict(metadata) for _ in TEXTS], vectors))


@requirement("engine:shelf:search")
def test_a_shelf_finds_by_words_by_meaning_and_by_both(shelf: Shelf) -> None:
    put(shelf, source="A")

    assert [hit.id for hit in shelf.worded("green belt", 3)] == ["green"]
    assert shelf.near("Where can I keep my bike?", 1)[0].id == "cycle"
    assert shelf.search("Can I build where rivers overflow?", 3).ids[0] == "flood"
    assert shelf.search("green belt", 3, Equals("source", "B")).ids == []


@requirement("engine:shelf:search")
def test_without_a_model_words_still_answer_and_the_answer_says_so(
    shelf: Shelf, store: ChunkStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(shelf)
    monkeypatch.setattr(weights, "PACKAGE", "no-such-package")
    words = LexicalIndex(tmp_path / "other.sqlite", {TEXT: 1.0}, FIELDS)
    bare = Shelf(store.collection("policy_docs"), FIELDS, Embedder(tmp_path / "none"), words)

    found = bare.search("green belt", 3)

    assert found.ids == ["green"]
    assert found.degraded is not None
    assert "readingroom model install" in found.degraded
    words.close()


@requirement("engine:shelf:identity")
def test_vectors_of_two_precisions_never_meet_on_one_shelf(
    shelf: Shelf, store: ChunkStore, tmp_path: Path
) -> None:
    put(shelf)
    words = LexicalIndex(tmp_path / "other.sqlite", {TEXT: 1.0}, FIELDS)
    quick = Embedder(tmp_path / "models", precision="int8")
    other = Shelf(store.collection("policy_docs"), FIELDS, quick, words)

    with pytest.raises(EmbeddingMismatch, match="must not be mixed"):
        put(other)
    with pytest.raises(EmbeddingMismatch):
        other.near("bicycles", 3)
    assert other.search("green belt", 3).ids == ["green"]
    words.close()


@requirement("engine:shelf:in-step")
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
    shelf: Shelf, writes: list[tuple[str, set[int], dict[str, Any]]], where: Filter | None
) -> None:
    shelf.vectors()
    shelf.words()
    for verb, numbers, metadata in writes:
        ids = [f"id{number}" for number in sorted(numbers)]
        known = {name: value for name, value in metadata.items() if name in ("source", "open")}
        if verb == "put":
            shelf.put(chunks(*ids, seed=len(ids), **metadata))
        elif verb == "change" and known:
            shelf.change(ids, [known] * len(ids))
        elif verb == "remove":
            shelf.remove(ids)
        every = [f"id{number}" for number in range(13)]
        assert described(shelf.named(every)) == described(shelf.chunks.get(every))

    wanted = sorted(shelf.chunks.get(where=where).ids)
    assert shelf.vectors().matching(where) == wanted
    assert sorted(hit.id for hit in shelf.worded("cycle", 99, where)) == wanted
    shelf.remove(shelf.chunks.get().ids)


def described(held: Chunks) -> dict[str, tuple[str, Any]]:
    rows = zip(held.texts, held.metadatas, strict=True)
    return dict(zip(held.ids, rows, strict=True))


@requirement("engine:shelf:in-step")
def test_what_a_write_overtook_is_not_remembered(shelf: Shelf) -> None:
    shelf.put(chunks("a", source="old"))
    read = shelf.chunks.get

    def overtaken(ids: Any) -> Chunks:
        held = read(ids)
        shelf.change(["a"], [{"source": "new"}])
        return held

    recent = RecentChunks(overtaken)
    shelf._recent = recent
    shelf.named(["a"])
    recent._read = read
    assert shelf.named(["a"]).metadatas == [{"source": "new"}]
    shelf.remove(["a"])
    assert shelf.named(["a"]).ids == []


@requirement("engine:shelf:in-step")
def test_a_store_that_moved_on_alone_makes_the_lexical_index_anew(
    shelf: Shelf, store: ChunkStore
) -> None:
    put(shelf)
    assert len(shelf.words()) == 3

    store.collection("policy_docs")  # as another run would open it
    shelf.chunks.delete(["green"])

    assert shelf.worded("green belt", 3) == []


@requirement("engine:shelf:in-step")
def test_a_write_that_fails_half_way_leaves_no_doubt_behind(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(shelf)
    shelf.vectors()

    def fail(*args: Any) -> None:
        raise StoreUnusable("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(ChunkCollection, "upsert", fail)
        with pytest.raises(StoreUnusable):
            shelf.put(chunks("new"))

    assert shelf.vectors().matching() == sorted(TEXTS)
    assert [hit.id for hit in shelf.worded("green", 5)] == ["green"]


@requirement("engine:shelf:concurrent")
def test_many_readers_and_one_writer_share_a_shelf(shelf: Shelf) -> None:
    shelf.put(chunks(*(f"id{number}" for number in range(60)), source="A"))
    stop, wrong = threading.Event(), list[Any]()

    def read() -> None:
        while not stop.is_set():
            try:
                found = shelf.search("cycle parking", 100, And((Equals("source", "A"),)))
            except Exception as error:
                wrong.append(error)
                return
            if len(found.ids) != 60:
                wrong.append(len(found.ids))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(12):
        shelf.change([f"id{turn}"], [{"start": 20200101 + turn}])
    stop.set()
    for reader in readers:
        reader.join()

    assert wrong == []
    assert len(shelf.vectors().matching(Range("start", low=20200101))) == 12
