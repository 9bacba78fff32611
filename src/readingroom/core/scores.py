"""What a search says about its own results: how well each fits, and how sure the whole is."""

from dataclasses import dataclass
from typing import Literal

ConfidenceLevel = Literal["strong", "fair", "weak", "none"]
"""How close the best result is to the question."""

SCORE_DESCRIPTION = "The probability that this answers the query, from 0 to 1."
SCORE_PARTS_DESCRIPTION = "What the score is made of."
CONFIDENCE_DESCRIPTION = "How close the best result is: on `none`, say that nothing was found."


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """What a score is made of."""

    semantic: float | None = None
    """The cosine with the question, at least 0; None where one of the two has no vector."""
    lexical: float = 0.0
    """The share of the question's words in the passage, rare words counting more."""
    rank_semantic: int | None = None
    """Its place by meaning, from 1; None where meaning was not asked, or it is not among those."""
    rank_lexical: int | None = None
    """Its place by words, likewise."""
    matched_terms: tuple[str, ...] = ()
    """The words of the question that the passage has."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """One word for how close the best result is to the question, and a sentence for people."""

    level: ConfidenceLevel
    reason: str
