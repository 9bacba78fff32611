"""Reciprocal rank fusion: every id once, in an order without chance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readingroom.engine.hybrid import fuse
from tests.requirements import requirement

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
