"""What two searches propose becomes one ranking: every id once, in an order without chance."""

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from readingroom.engine.hybrid import rank_proposals
from readingroom.engine.ranking import ProposedPassage, Relevance, rank_passages
from tests.requirements import requirement

_RANKING = st.lists(st.sampled_from("abcdefgh"), unique=True)
_QUERY = "cycle parking"


class FewPassages:
    """Statistics of a collection in which every word is as rare as any other."""

    document_count = 10
    average_length = 3.0

    def read_document_frequencies(self, stems: Sequence[str]) -> Mapping[str, int]:
        return dict.fromkeys(stems, 1)


def compare(ids: Sequence[str]) -> list[Relevance]:
    """Rank passages of the same words, of which `a` has one more."""
    passages = [ProposedPassage(id, _QUERY if id == "a" else "cycle track", None) for id in ids]
    return rank_passages(_QUERY, None, passages, FewPassages())


@requirement("engine:fusion")
def test_what_fits_best_comes_first_and_ties_come_by_id() -> None:
    ranked = rank_proposals(_QUERY, ["d", "c"], ["b", "a", "c"], compare, "hybrid", 10)
    assert [passage.passage_id for passage in ranked] == ["a", "b", "c", "d"]
    assert ranked[0].score > ranked[1].score == ranked[2].score == ranked[3].score


@requirement("engine:fusion")
@given(_RANKING, _RANKING)
def test_every_id_comes_once_whatever_the_order_of_the_sides(
    by_meaning: list[str], by_words: list[str]
) -> None:
    ranked = rank_proposals(_QUERY, by_meaning, by_words, compare, "hybrid", 10)
    ids = [passage.passage_id for passage in ranked]
    assert sorted(ids) == sorted({*by_meaning, *by_words})
    scores = [passage.score for passage in ranked]
    assert scores == sorted(scores, reverse=True)
    exchanged = rank_proposals(_QUERY, by_words[::-1], by_meaning, compare, "hybrid", 10)
    assert [passage.passage_id for passage in exchanged] == ids
