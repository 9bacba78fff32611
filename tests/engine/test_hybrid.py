"""Words and meaning together: filters hold on both sides, and either side may be empty."""

import numpy as np

from readingroom.core.filters import Equals, Fields
from readingroom.engine.hybrid import search_both
from readingroom.engine.vectors import VectorIndex
from tests.engine.test_vectors import vector
from tests.requirements import requirement


def index(count: int) -> VectorIndex:
    made = VectorIndex(Fields(equality=("source",)))
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
