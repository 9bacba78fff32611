"""The vector index answers as brute force does, whatever was written, filtered or asked at once."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from readingroom.core.filters import And, Equals, Filter, FilterFields, In, Metadata, Range
from readingroom.engine import vectors
from readingroom.engine.vectors import VectorHit, VectorIndex
from tests.requirements import requirement
from tests.support.filters import passes

FIELDS = FilterFields(exact_match_fields=("source", "open"), numeric_range_fields=("start", "end"))
SIZE = 12

_SOURCES = st.sampled_from(["A", "B", "C", "1"])
_DAYS = st.integers(20200101, 20200110)
_METADATA = st.fixed_dictionaries(
    {},
    optional={
        "source": _SOURCES,
        "open": st.booleans(),
        "start": _DAYS,
        "end": st.one_of(_DAYS, st.just(99991231)),
        "unasked": st.text(max_size=3),
    },
)
_PARTS = st.one_of(
    st.builds(Equals, st.just("source"), _SOURCES),
    st.builds(Equals, st.just("open"), st.sampled_from([True, False, 1, "True"])),
    st.builds(In, st.just("source"), st.lists(_SOURCES, max_size=3).map(tuple)),
    st.builds(Range, st.just("start"), high=_DAYS),
    st.builds(Range, st.just("end"), low=_DAYS),
    st.builds(Range, st.just("start"), low=_DAYS, high=_DAYS),
)
FILTERS: st.SearchStrategy[Filter | None] = st.one_of(
    st.none(), _PARTS, st.lists(_PARTS, max_size=3).map(lambda parts: And(tuple(parts)))
)


def make_vector(seed: int, size: int = SIZE) -> Any:
    made = np.random.default_rng(seed).standard_normal(size).astype(np.float32)
    return made / np.linalg.norm(made)


Stored = dict[str, tuple[Any, Metadata]]


def search_by_brute_force(
    stored: Stored, query: Any, k: int, where: Filter | None
) -> list[VectorHit]:
    """Every stored vector that passes, compared one by one in double precision."""
    hits = [
        VectorHit(id, float(((held.astype(float) - query) ** 2).sum()))
        for id, (held, metadata) in stored.items()
        if passes(metadata, where)
    ]
    steps = vectors.STEPS_PER_UNIT_DISTANCE
    return sorted(hits, key=lambda hit: (round(hit.distance * steps), hit.id))[:k]


def agree(found: Sequence[VectorHit], wanted: Sequence[VectorHit]) -> bool:
    return [hit.id for hit in found] == [hit.id for hit in wanted] and all(
        abs(left.score - right.score) < 1e-5 for left, right in zip(found, wanted, strict=True)
    )


class WritesAndSearches(RuleBasedStateMachine):
    """Any order of writes, with a brute-force search after each."""

    @initialize()
    def begin(self) -> None:
        self.index = VectorIndex(FIELDS, SIZE)
        self.stored: Stored = {}

    @rule(rows=st.dictionaries(st.integers(0, 30), st.tuples(st.integers(0, 40), _METADATA)))
    def upsert(self, rows: dict[int, tuple[int, dict[str, Any]]]) -> None:
        batch = {
            f"id{key}": (make_vector(seed), metadata) for key, (seed, metadata) in rows.items()
        }
        self.index.upsert_rows(
            list(batch),
            np.array([row[0] for row in batch.values()]).reshape(-1, SIZE),
            [row[1] for row in batch.values()],
        )
        self.stored.update(batch)

    @rule(ids=st.lists(st.integers(0, 35), max_size=12))
    def delete(self, ids: list[int]) -> None:
        self.index.delete_rows([f"id{id}" for id in ids])
        for id in ids:
            self.stored.pop(f"id{id}", None)

    @rule(ids=st.lists(st.integers(0, 35), max_size=6, unique=True), new=_METADATA)
    def update(self, ids: list[int], new: dict[str, Any]) -> None:
        self.index.update_metadata([f"id{id}" for id in ids], [new] * len(ids))
        for id in ids:
            if held := self.stored.get(f"id{id}"):
                self.stored[f"id{id}"] = (held[0], {**held[1], **new})

    @rule(seed=st.integers(0, 60), k=st.integers(0, 40), where=FILTERS)
    def search(self, seed: int, k: int, where: Filter | None) -> None:
        wanted = search_by_brute_force(self.stored, make_vector(seed), k, where)
        assert agree(self.index.search(make_vector(seed), k, where), wanted)
        passing = [id for id, (_, metadata) in self.stored.items() if passes(metadata, where)]
        assert self.index.list_row_ids(where) == sorted(passing)

    @invariant()
    def counts(self) -> None:
        if hasattr(self, "index"):
            assert len(self.index) == len(self.stored)


@requirement("engine:vectors:exact", "engine:vectors:writes")
@pytest.mark.parametrize("sweep", [0, 10_000])
def test_any_order_of_writes_leaves_an_index_that_answers_as_brute_force(
    sweep: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "_MIN_ROWS_TO_REMOVE", sweep)
    WritesAndSearches.TestCase.settings = settings(max_examples=40, stateful_step_count=25)
    WritesAndSearches.TestCase().runTest()


@requirement("engine:vectors:exact")
@pytest.mark.parametrize("small", [65_536, 0])
def test_the_nearest_of_each_group_is_what_brute_force_finds(
    small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "_MAX_ROWS_OF_EXACT_INDEX", small)
    monkeypatch.setattr(vectors, "_MAX_EXACTLY_COMPARED_ROWS", small)
    numbers = np.random.default_rng(1)
    rows = numbers.standard_normal((600, SIZE), np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    groups = numbers.integers(0, 40, len(rows))
    index = VectorIndex(FilterFields(("doc",)), SIZE)
    index.upsert_rows(
        [str(n) for n in range(len(rows))], rows, [{"doc": int(one)} for one in groups]
    )
    distances = ((rows - rows[0]) ** 2).sum(axis=1)
    nearest = sorted((float(distances[groups == one].min()), one) for one in range(40))[:7]
    found = index.search_groups(rows[0], 7, "doc")
    assert [groups[int(hit.id)] for hit in found] == [group for _, group in nearest]
    assert np.allclose([hit.distance for hit in found], [far for far, _ in nearest], atol=1e-5)
    assert index.search_groups(rows[0], 7, "doc", In("doc", (99,))) == []


@requirement("engine:vectors:exact")
def test_equal_vectors_come_in_the_order_of_their_ids() -> None:
    index = VectorIndex(FIELDS)
    ids = [f"{number:04}" for number in range(2000)]
    index.upsert_rows(ids[::-1], np.tile(make_vector(1, 384), (2000, 1)), [{}] * 2000)

    assert [hit.id for hit in index.search(make_vector(2, 384), 10)] == ids[:10]


@requirement("engine:vectors:exact")
def test_vectors_that_are_not_of_unit_length_have_their_true_distance() -> None:
    index = VectorIndex(FIELDS, 2)
    index.upsert_rows(["near", "far"], np.array([[3, 0], [0, 1]], np.float32), [{}, {}])

    hits = index.search(np.array([2, 0], np.float32), 5)

    assert hits == [VectorHit("near", 1.0), VectorHit("far", 5.0)]
    assert [hit.score for hit in hits] == [0.5, 0.0]


@requirement("engine:vectors:signs")
def test_a_large_scan_by_signs_finds_what_brute_force_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vectors, "_MAX_ROWS_OF_EXACT_INDEX", 100)
    monkeypatch.setattr(vectors, "_MAX_EXACTLY_COMPARED_ROWS", 100)
    made = np.random.default_rng(7)
    # Neighbours as texts have them: around topics, not spread evenly in all directions.
    topics = made.standard_normal((300, 384))
    rows = topics[made.integers(0, 300, 20_000)] + 0.7 * made.standard_normal((20_000, 384))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    index = VectorIndex(FIELDS)
    ids = [str(number) for number in range(len(rows))]
    index.upsert_rows(ids, rows, [{"source": "AB"[number % 2]} for number in range(len(rows))])

    found = 0
    for query in rows[::500]:
        for where, kept in ((None, rows), (Equals("source", "A"), rows[::2])):
            nearest = np.sort(((kept - query) ** 2).sum(axis=1))[:10]
            hits = index.search(query, 10, where)
            found += sum(hit.distance <= nearest[-1] + 1e-5 for hit in hits)

    assert found / (40 * 2 * 10) > 0.99


@requirement("engine:vectors:signs")
def test_a_query_that_hardly_anything_answers_is_compared_with_more_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of rows that are all far, the signs hardly tell which is nearest: few were compared."""
    monkeypatch.setattr(vectors, "_MAX_ROWS_OF_EXACT_INDEX", 100)
    monkeypatch.setattr(vectors, "_MAX_EXACTLY_COMPARED_ROWS", 100)
    made = np.random.default_rng(11)
    rows = made.standard_normal((12_000, 384), np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    index = VectorIndex(FIELDS)
    index.upsert_rows([str(number) for number in range(len(rows))], rows, [{}] * len(rows))
    queries = made.standard_normal((20, 384), np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)

    def count_found() -> int:
        found = 0
        for query in queries:
            nearest = set(map(str, np.argsort(-(rows @ query))[:10]))
            found += len(nearest & {hit.id for hit in index.search(query, 10)})
        return found

    assert count_found() >= 0.99 * 200
    monkeypatch.setattr(vectors, "_MAX_DOUBTFUL_ROWS", 0)
    assert count_found() < 0.95 * 200


def make_revisions(count: int, dimensions: int) -> tuple[Any, Any]:
    """Return rows like many near-equal revisions of 1,000 texts, and queries about other texts."""
    made = np.random.default_rng(7)
    # As in real embeddings, a few directions hold most of the variance, along no single axis.
    scale = ((np.arange(dimensions) + 5.0) ** -1.2).astype(np.float32)
    rotation = np.linalg.qr(made.standard_normal((dimensions, dimensions)))[0].astype(np.float32)

    def draw(size: int) -> Any:
        return (made.standard_normal((size, dimensions), np.float32) * scale) @ rotation

    rows = draw(1_000)[made.integers(0, 1_000, count)] + 0.3 * draw(count)
    queries = draw(40)
    return tuple(
        matrix / np.linalg.norm(matrix, axis=1, keepdims=True) for matrix in (rows, queries)
    )


@requirement("engine:vectors:signs")
def test_the_more_rows_pass_the_more_candidates_signs_choose(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, queries = make_revisions(100_000, 128)
    index = VectorIndex(FIELDS, 128)
    index.upsert_rows([str(number) for number in range(len(rows))], rows, [{}] * len(rows))

    def measure_recall() -> float:
        found = 0
        for query in queries:
            tenth = np.partition(2 - 2 * rows @ query, 9)[9]
            found += sum(hit.distance <= tenth + 1e-5 for hit in index.search(query, 10))
        return found / (10 * len(queries))

    assert measure_recall() > 0.99
    # 1,000 candidates, as in 0.1.0.
    monkeypatch.setattr(vectors, "_ROWS_PER_CANDIDATE", len(rows))
    monkeypatch.setattr(vectors, "_MAX_DOUBTFUL_ROWS", 0)
    assert measure_recall() < 0.97


@requirement("engine:vectors:bad-input")
def test_bad_vectors_are_refused_and_change_nothing() -> None:
    index = VectorIndex(FIELDS, SIZE)
    index.upsert_rows(["kept"], make_vector(1)[np.newaxis], [{"source": "A"}])

    for bad in (np.zeros((1, SIZE + 1)), np.full((1, SIZE), np.nan), np.full((1, SIZE), np.inf)):
        with pytest.raises(ValueError, match="vector"):
            index.upsert_rows(["new"], bad, [{}])
        with pytest.raises(ValueError, match="vector"):
            index.search(bad[0], 1)
    with pytest.raises(ValueError, match="twice"):
        index.upsert_rows(["new", "new"], np.zeros((2, SIZE)), [{}, {}])
    with pytest.raises(ValueError, match="metadatas"):
        index.upsert_rows(["new"], np.zeros((1, SIZE)), [])
    with pytest.raises(ValueError, match="cannot be filtered by"):
        index.upsert_rows(["new"], np.zeros((1, SIZE)), [{"source": ["A"]}])  # type: ignore[dict-item]

    assert index.list_row_ids() == ["kept"]


@requirement("engine:vectors:bad-input")
def test_a_filter_on_an_unknown_field_is_refused_by_name() -> None:
    index = VectorIndex(FIELDS, SIZE)

    with pytest.raises(ValueError, match="'colour' is not a filter field"):
        index.search(make_vector(1), 5, Equals("colour", "red"))
    with pytest.raises(ValueError, match="'source' is not a filter field"):
        index.search(make_vector(1), 5, Range("source", low=1))


@requirement("engine:vectors:bad-input")
def test_an_empty_index_no_rows_wanted_and_more_than_there_are_are_all_answers() -> None:
    index = VectorIndex(FIELDS, SIZE)
    assert index.search(make_vector(1), 5) == []
    assert index.search(make_vector(1), 5, In("source", ())) == []

    index.upsert_rows(["one"], make_vector(1)[np.newaxis], [{}])
    assert index.search(make_vector(1), 0) == []
    assert [hit.id for hit in index.search(make_vector(1), 10**9)] == ["one"]
    with pytest.raises(ValueError, match="-1"):
        index.search(make_vector(1), -1)


@requirement("engine:vectors:concurrent")
def test_readers_see_each_write_whole_or_not_at_all() -> None:
    """A writer moves all rows from one source to the other and back; a reader never sees both."""
    index = VectorIndex(FIELDS, SIZE)
    ids = [str(number) for number in range(400)]
    held = np.array([make_vector(number) for number in range(400)])
    index.upsert_rows(ids, held, [{"source": "A"}] * 400)
    stop, torn = threading.Event(), list[tuple[int, int]]()

    def read() -> None:
        while not stop.is_set():
            hits = index.search(make_vector(1), 1000, In("source", ("A", "B")))
            if len({hit.id for hit in hits}) != 400 or len(hits) != 400:
                torn.append((len(hits), len({hit.id for hit in hits})))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(60):
        metadata: list[Metadata] = [{"source": "AB"[turn % 2]}] * 400
        if turn % 3:
            index.update_metadata(ids, metadata)
        else:
            index.upsert_rows(ids, held, metadata)
    stop.set()
    for reader in readers:
        reader.join()

    assert torn == []
    assert len(index) == 400


@requirement("engine:filters")
@given(_METADATA, FILTERS)
def test_a_filter_of_several_parts_passes_what_every_part_passes(
    metadata: Metadata, where: Filter | None
) -> None:
    parts = where.sub_filters if isinstance(where, And) else ()
    if isinstance(where, And):
        assert passes(metadata, where) == all(passes(metadata, part) for part in parts)
    assert passes(metadata, None)


@requirement("engine:filters")
@pytest.mark.parametrize(
    ("held", "asked", "same"),
    [(1, True, False), (1, "1", False), (True, True, True), (1, 1.0, True), ("a", "A", False)],
)
def test_text_numbers_and_truth_are_never_equal_to_each_other(
    held: Any, asked: Any, same: bool
) -> None:
    assert passes({"field": held}, Equals("field", asked)) is same
    assert not passes({}, Equals("field", asked))


def test_distances_that_differ_in_their_last_digits_are_equal() -> None:
    index = VectorIndex(FIELDS, SIZE)
    query = make_vector(1)
    index.upsert_rows(["b", "a"], np.stack([query, query + np.float32(1e-4)]), [{}, {}])
    hits = index.search(query, 2)
    assert hits[0].distance > hits[1].distance
    assert [hit.id for hit in hits] == ["a", "b"]
