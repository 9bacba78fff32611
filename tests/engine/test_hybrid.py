"""Hybrid search: a fusion without chance, filters on both sides, either side empty."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from readingroom.core.filters import Equals, FilterFields
from readingroom.engine.hybrid import fuse, search_both
from readingroom.engine.vectors import VectorIndex
from tests.engine.test_vectors import vector
from tests.requirements import requirement


def index(count: int) -> VectorIndex:
    made = VectorIndex(FilterFields(exact_match=("source",)))
    made.upsert(
        [f"{number:03}" for number in range(count)],
        np.array([vector(number, 384) for number in range(count)]).reshape(-1, 384),
        [{"source": "AB"[number % 2]} for number in range(count)],
    )
    return made


@requirement("engine:hybrid")
def test_what_both_sides_rank_first_comes_first() -> None:
    found = search_both(["007", "003"], vector(7, 384), index(40), 5)

    assert found[0][0] == "007"
    assert len(found) == 5
    assert found == sorted(found, key=lambda scored: (-scored[1], scored[0]))


@requirement("engine:hybrid")
def test_a_filter_holds_for_what_meaning_finds() -> None:
    found = search_both(["008"], vector(7, 384), index(40), 50, Equals("source", "A"))

    assert {int(id) % 2 for id, _ in found} == {0}
    assert len(found) == 20


@requirement("engine:hybrid")
def test_either_side_may_be_empty() -> None:
    assert search_both([], vector(1, 384), index(0), 5) == []
    assert [id for id, _ in search_both([], vector(3, 384), index(9), 1)] == ["003"]
    # Written to words but not yet to vectors: ranked by words alone, never an error.
    assert search_both(["gone"], vector(3, 384), index(0), 5)[0][0] == "gone"


_RANKINGS = st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), max_size=4)


@requirement("engine:fusion")
def test_what_both_sides_rank_high_comes_first_and_ties_come_by_id() -> None:
    fused = fuse([["b", "a", "c"], ["d", "a"]], k=60)

    assert [id for id, _ in fused] == ["a", "b", "d", "c"]
    assert fused[0][1] == pytest.approx(2 / 62)
    assert fused[1][1] == fused[2][1]


@requirement("engine:fusion")
@given(_RANKINGS)
def test_every_id_comes_once_best_first_whatever_the_order_of_the_sides(
    rankings: list[list[str]],
) -> None:
    fused = fuse(rankings)

    assert sorted(id for id, _ in fused) == sorted({id for ranking in rankings for id in ranking})
    assert fused == sorted(fused, key=lambda scored: (-scored[1], scored[0]))
    assert [id for id, _ in fuse(rankings[::-1])] == [id for id, _ in fused] or len(rankings) > 2


@requirement("engine:fusion")
def test_nothing_fuses_to_nothing_and_a_repeated_id_counts_once() -> None:
    assert fuse([]) == fuse([[], []]) == []
    assert fuse([["a", "a", "b"]]) == fuse([["a", "b"]])
    with pytest.raises(ValueError, match="at least 0"):
        fuse([["a"]], k=-1)
