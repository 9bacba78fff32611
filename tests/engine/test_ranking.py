"""One ranking of words and meaning: what each contributes, and fairness to what has no vector."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from readingroom.engine.ranking import (
    RANKING_WEIGHTS,
    ProposedPassage,
    map_stems_to_words,
    measure_evidence,
    rank_passages,
)
from readingroom.engine.stems import Stemmer, get_shared_stemmer
from tests.requirements import requirement


class Corpus:
    """The statistics of a handful of texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._stems = [set(get_shared_stemmer().stem_significant_words(text)) for text in texts]
        self.document_count = len(texts)
        self.average_length = sum(len(text.split()) for text in texts) / len(texts)

    def read_document_frequencies(self, stems: Sequence[str]) -> Mapping[str, int]:
        return {stem: sum(stem in text for text in self._stems) for stem in stems}


TEXTS = [
    "Cycle parking must be secure, covered and close to the entrance.",
    "Bicycles need racks that hold the frame.",
    "Homes in flood zone 3 need a sequential test.",
    "The entrance of a building should face the street.",
]


def test_stems_are_counted_as_they_are_split() -> None:
    texts = [
        *TEXTS,
        " ".join(TEXTS),
        "",
        "the of and",
        "Cycling 24 cycles, 24 CYCLED\u2014caf\u00e9s",
    ]
    stemmer = Stemmer()
    for counts, text in zip(stemmer.count_stems_of_texts(texts), texts, strict=True):
        assert list(counts.items()) == list(Counter(stemmer.stem_significant_words(text)).items())


def make_unit_vector(*values: float) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
    vector = np.zeros(8, np.float32)
    vector[: len(values)] = values
    return vector / np.linalg.norm(vector)


MEANINGS = [
    make_unit_vector(1, 0.1),
    make_unit_vector(0.9, 0.4),
    make_unit_vector(0, 0, 1),
    make_unit_vector(0.1, 0, 0, 1),
]


def make_passages(embedded: Sequence[bool] = (True,) * 4) -> list[ProposedPassage]:
    return [
        ProposedPassage(str(i), text, meaning if known else None)
        for i, (text, meaning, known) in enumerate(zip(TEXTS, MEANINGS, embedded, strict=True))
    ]


def order(question: str, *, vector: bool = True, embedded: Sequence[bool] = (True,) * 4) -> str:
    ranked = rank_passages(
        question, make_unit_vector(1) if vector else None, make_passages(embedded), Corpus(TEXTS)
    )
    return "".join(compared_passage.passage_id for compared_passage in ranked)


@requirement("engine:hybrid")
def test_words_and_meaning_both_raise_a_passage() -> None:
    assert order("cycle parking at the entrance")[:2] == "01"
    # Without a vector only the words are left: the passage about racks shares none of them.
    assert order("cycle parking at the entrance", vector=False)[:2] == "03"


@requirement("engine:hybrid")
def test_a_passage_without_a_vector_is_not_at_a_disadvantage() -> None:
    """It stays first by its words, though others have a vector that is somewhat near."""
    question = "secure covered cycle parking"
    assert order(question, embedded=(False, True, True, True))[0] == "0"


@requirement("engine:hybrid")
def test_a_chance_word_outweighs_no_nearness_in_meaning() -> None:
    """A question in other words shares one common word with a passage about something else."""
    texts = [
        *("Racks hold the frame and the wheel.", "The test of a building is its street."),
        *(f"Every building of phase {i} is of brick." for i in range(40)),
    ]
    meanings = [
        make_unit_vector(1, 0.9),
        make_unit_vector(0.9, 1),
        *[make_unit_vector(0, 0, 1)] * 40,
    ]
    proposed = [
        ProposedPassage(str(i), text, meaning)
        for i, (text, meaning) in enumerate(zip(texts, meanings, strict=True))
    ]
    question = "where do I lean my bike outside the building"
    first, *_ = rank_passages(question, make_unit_vector(1, 0.5), proposed, Corpus(texts))
    assert first.passage_id == "0"
    in_full = replace(RANKING_WEIGHTS, half_weight_evidence=0.0)
    first, *_ = rank_passages(question, make_unit_vector(1, 0.5), proposed, Corpus(texts), in_full)
    assert first.passage_id == "1"


@requirement("engine:hybrid")
def test_the_best_passages_improve_a_question_only_with_evidence() -> None:
    little, much = (RANKING_WEIGHTS.adapt_to_own_evidence(evidence) for evidence in (0.3, 2.0))
    assert (little.feedback_weight, little.expansion_share) == (0.0, 0.0)
    assert little.official_term_weight == RANKING_WEIGHTS.official_term_weight
    assert much.feedback_weight == RANKING_WEIGHTS.feedback_weight
    assert much.expansion_share == RANKING_WEIGHTS.expansion_share
    assert much.official_term_weight == 0.0
    little, much = (RANKING_WEIGHTS.adapt_to_evidence(evidence) for evidence in (0.3, 2.0))
    assert 0.0 < little.word_weight < much.word_weight < RANKING_WEIGHTS.word_weight


@requirement("engine:hybrid")
def test_relevance_tells_what_matched() -> None:
    first, *_, last = rank_passages(
        "Is secure parking for CYCLES required?",
        make_unit_vector(1),
        make_passages(),
        Corpus(TEXTS),
    )
    assert first.matched_terms == ("secure", "parking", "cycles")
    assert first.cosine == pytest.approx(float(MEANINGS[0][0]))
    assert first.word_score == 1.0
    assert 0.5 < first.coverage < 1  # "required" is nowhere
    assert (last.matched_terms, last.coverage) == ((), 0.0)


@requirement("engine:hybrid")
@pytest.mark.parametrize("question", ["the of and", "", "?!", "zzz"])
def test_a_question_without_a_known_word_is_ranked_by_meaning(question: str) -> None:
    assert order(question)[:2] == "01"
    # By neither: all are equal, and equal ones come by id.
    assert order(question, vector=False) == "0123"


@requirement("engine:hybrid")
def test_no_passages_are_no_results() -> None:
    assert rank_passages("cycle parking", make_unit_vector(1), [], Corpus(TEXTS)) == []


@requirement("engine:hybrid")
def test_words_of_the_best_passages_find_others_like_them() -> None:
    texts = [
        "Hedgehog highways: holes in fences let hedgehogs pass.",
        "Fences with holes at the foot for small mammals.",
        "A transport assessment is needed for large sites.",
    ]
    ranked = rank_passages(
        "hedgehogs",
        None,
        [ProposedPassage(str(i), t, None) for i, t in enumerate(texts)],
        Corpus(texts),
        # Of three texts no word is rare enough to count as evidence.
        replace(RANKING_WEIGHTS, feedback_min_evidence=0.0, feedback_full_evidence=0.1),
    )
    assert [compared_passage.passage_id for compared_passage in ranked] == ["0", "1", "2"]
    assert ranked[1].fit > ranked[2].fit


def test_stems_are_those_of_the_word_index() -> None:
    assert map_stems_to_words("Parking, parked PARKS and the parks") == {"park": "parking"}
    assert get_shared_stemmer().stem_significant_words(
        "Cafés’ bicycles"
    ) == get_shared_stemmer().stem_significant_words("cafes bicycle")


def test_a_passage_that_several_questions_find_is_split_into_stems_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    split_texts: list[str] = []
    count = Stemmer.count_stems_of_texts

    def watch(self: Stemmer, texts: Iterable[str]) -> list[dict[str, int]]:
        new_texts = list(texts)
        split_texts.extend(new_texts)
        return count(self, new_texts)

    monkeypatch.setattr(Stemmer, "count_stems_of_texts", watch)
    passage = ProposedPassage("1", "A passage that no other test has: cycle parking.", None)
    statistics = Corpus(TEXTS)
    for question in ("cycle parking", "a covered entrance", "flood zones"):
        rank_passages(question, None, [passage], statistics)
    assert split_texts.count(passage.text) == 1


def test_the_question_s_words_are_weighed_once_where_nothing_improves_it() -> None:
    asked_stems: list[tuple[str, ...]] = []

    class WatchedCorpus(Corpus):
        def read_document_frequencies(self, stems: Sequence[str]) -> Mapping[str, int]:
            asked_stems.append(tuple(stems))
            return super().read_document_frequencies(stems)

    weights = replace(RANKING_WEIGHTS, feedback_weight=0.0, expansion_share=0.0)
    rank_passages(
        "covered cycle parking", make_unit_vector(1), make_passages(), WatchedCorpus(TEXTS), weights
    )
    assert asked_stems == [("cover", "cycl", "park")]


def test_evidence_is_how_many_telling_words_the_best_passage_has() -> None:
    rarest = math.log1p((1_000 - 1 + 0.5) / (1 + 0.5))
    once_in_an_average_passage = rarest  # BM25 of a word that no other passage has
    one_word = measure_evidence(once_in_an_average_passage, 1_000)
    assert 0.4 < one_word < 0.5
    assert measure_evidence(3 * once_in_an_average_passage, 1_000) == pytest.approx(3 * one_word)
    assert measure_evidence(0.0, 1_000) == 0
    assert measure_evidence(0.0, 0) == 0


@requirement("engine:hybrid")
def test_the_order_of_proposals_changes_no_score() -> None:
    """Of equal passages some improve the question: always the same ones."""
    texts = [f"Secure cycle parking for {word}." for word in ("homes", "shops", "inns", "mills")]
    texts += ["Secure cycle parking for barns.", *(f"Text number {i}" for i in range(200))]
    passages = [ProposedPassage(str(place), text, None) for place, text in enumerate(texts[:5])]
    rankings = [
        rank_passages("secure cycle parking", None, proposals, Corpus(texts))
        for proposals in (passages, passages[::-1])
    ]
    assert rankings[0] == rankings[1]
    assert len({compared_passage.fit for compared_passage in rankings[0]}) > 1  # they do improve it
