"""Scores with one meaning, and one word for how sure an answer is."""

from dataclasses import replace

import pytest

from readingroom.engine.confidence import judge_confidence, score_compared_passages
from readingroom.engine.ranking import ComparedPassage
from tests.requirements import requirement

CLOSE = ComparedPassage("a", 1.3, 0.85, 1.0, 1.0, 1.0, ("cycle", "parking"))
FAR = ComparedPassage("a", 0.4, 0.1, 1.0, 0.1, 0.1, ())


@requirement("engine:confidence")
def test_scores_fall_with_the_fit_and_lie_between_0_and_1() -> None:
    ranked = [
        replace(CLOSE, passage_id=id, fit=fit)
        for id, fit in zip("abc", (1.3, 1.1, 0.2), strict=True)
    ]
    scores = score_compared_passages(ranked)
    assert scores == sorted(scores, reverse=True)
    assert 1 >= scores[0] > 0.5 > 0.1 > scores[2] >= 0


@requirement("engine:confidence")
def test_a_close_passage_is_strong_and_a_far_one_is_none() -> None:
    (close,), (far,) = score_compared_passages([CLOSE]), score_compared_passages([FAR])
    assert judge_confidence([close]).level == "strong"
    nothing = judge_confidence([far], "NPPF, Para 1")
    assert nothing.level == "none"
    assert nothing.reason == "Nothing here is close to the question; nearest: NPPF, Para 1."
    assert judge_confidence([]).level == "none"


@requirement("engine:confidence")
@pytest.mark.parametrize("coverage", [0.0, 0.5, 1.0])
def test_without_a_vector_the_words_decide(coverage: float) -> None:
    """A passage with every word of the question is never called none for want of a vector."""
    (score,) = score_compared_passages([replace(CLOSE, cosine=None, coverage=coverage)])
    assert (judge_confidence([score]).level == "none") == (coverage == 0.0)


@requirement("engine:confidence")
def test_nothing_has_no_scores() -> None:
    assert score_compared_passages([]) == []
