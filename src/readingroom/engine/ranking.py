"""Ranks passages for a question by words and by meaning at once.

Two searches propose passages: the word index and the vector index. Here both are read once more,
side by side, and ordered by one number that words and meaning contribute to. The best of a first
order then improve the question: its vector is moved towards theirs (Rocchio), and their most
telling words are added to its words (relevance model 3). `docs/engine.md` has the measurements.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from readingroom.engine.embedding.embedder import Vector
from readingroom.engine.stems import shared_stemmer
from readingroom.engine.words import MAX_WORDS

# The parameters of FTS5's own bm25().
_K1, _B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """How much each part counts beside the cosine, which counts 1.

    Chosen on the public questions, where `benchmarks/engine/quality.py` measures what such a choice
    is worth.
    """

    words: float = 0.35
    """For the BM25 score as a share of the best one's."""
    coverage: float = 0.0
    """For the share of the question's words that a passage has."""
    feedback: float = 0.4
    """How far the question's vector is moved, towards the mean of `feedback_passages`."""
    feedback_passages: int = 4
    expansion: float = 0.8
    """The share of the added words; a question with many words of its own gets less of it."""
    expansion_length: float = 5.0
    expansion_passages: int = 6
    expansion_stems: int = 30
    unembedded: float = 0.3
    """What the cosine of a passage without a vector is taken to be, if it has none of the words."""
    unembedded_words: float = 0.4
    """How much more, if it has as many as the best."""


WEIGHTS = RankingWeights()


@dataclass(frozen=True, slots=True)
class ProposedPassage:
    """A passage that a search proposes; `vector` is None while it is not embedded."""

    id: str
    text: str
    vector: Vector | None
    cosine: float | None = None
    """With the question, where it is known although the vector is not at hand."""
    heading: str = ""
    """What it stands under, where those words count as its own."""


class Statistics(Protocol):
    """How common words are in the collection that is searched."""

    @property
    def documents(self) -> int: ...

    @property
    def average_length(self) -> float:
        """Words of an average passage."""

    def frequencies(self, stems: Sequence[str]) -> Mapping[str, int]:
        """Return in how many passages each stem occurs; stems of none may be left out."""


@dataclass(frozen=True, slots=True)
class Relevance:
    """How well a passage answers a question; `fit` orders the passages of one question."""

    passage_id: str
    fit: float
    cosine: float | None
    """None where the passage or the question has no vector."""
    words: float
    """Its BM25 score as a share of the best one's."""
    coverage: float
    """The share of the question's words that it has, rare words counting more."""
    found: float
    """The share that any of the passages has which were ranked with it."""
    matched_terms: tuple[str, ...]


RankPassages = Callable[
    [str, Vector | None, Sequence[ProposedPassage], Statistics], list[Relevance]
]
"""Returns how well each passage answers a question, best first."""


def rank_passages(
    question: str,
    vector: Vector | None,
    passages: Sequence[ProposedPassage],
    statistics: Statistics,
    weights: RankingWeights = WEIGHTS,
) -> list[Relevance]:
    """Return how well each passage answers the question, best first, equal ones by id."""
    if not passages:
        return []
    question_terms = find_terms(question)
    counted_texts = _Texts(passages, statistics)
    word_scores = counted_texts.score_words(dict.fromkeys(question_terms, 1.0))
    meaning = _Meaning(vector, passages, weights)
    coverage = counted_texts.measure_coverage(question_terms)
    from_coverage = weights.coverage * coverage
    first_fit = meaning.estimate(word_scores) + weights.words * word_scores + from_coverage
    best = np.argsort(-first_fit, kind="stable")
    expanded_terms = counted_texts.expand(
        question_terms, best[: weights.expansion_passages], weights
    )
    moved = meaning.move_towards(best[: weights.feedback_passages])
    expanded_words = counted_texts.score_words(expanded_terms)
    fit = moved.estimate(word_scores) + weights.words * expanded_words + from_coverage
    found_share = counted_texts.measure_found(question_terms)
    relevances = [
        Relevance(
            passage.id,
            # Rounded: what is equal but for the order of additions is ordered by its id.
            round(float(fit[place]), 6),
            meaning.cosines.get(place),
            float(word_scores[place]),
            float(coverage[place]),
            found_share,
            tuple(word for stem, word in question_terms.items() if counted_texts.has(place, stem)),
        )
        for place, passage in enumerate(passages)
    ]
    return sorted(relevances, key=lambda relevance: (-relevance.fit, relevance.passage_id))


def find_terms(question: str) -> dict[str, str]:
    """Return the stems of a question, each with the word as it was written."""
    words_by_stem: dict[str, str] = {}
    for word, stem in shared_stemmer().split_with_words(question)[:MAX_WORDS]:
        words_by_stem.setdefault(stem, word)
    return words_by_stem


# A question looks at a few hundred passages, and the next ones largely at the same: 20 MB.
@lru_cache(maxsize=4000)
def count_stems(passage_text: str) -> Mapping[str, int]:
    """Return the stems of a text, each with how often it has it; not to be changed."""
    return Counter(shared_stemmer().split(passage_text))


def count_passage_stems(passage: ProposedPassage) -> Mapping[str, int]:
    """Return the stems of a passage and its heading, each with how often they have it."""
    if not passage.heading:
        return count_stems(passage.text)
    # Counted apart: many passages share a heading, and their texts are counted without it too.
    counts = dict(count_stems(passage.text))
    for stem, count in count_stems(passage.heading).items():
        counts[stem] = counts.get(stem, 0) + count
    return counts


class _Texts:
    """The passages as counts of stems, and how rare each stem is in the collection."""

    def __init__(self, passages: Sequence[ProposedPassage], statistics: Statistics) -> None:
        self._counts = [count_passage_stems(passage) for passage in passages]
        lengths = np.array([len(passage.text.split()) for passage in passages], np.float32)
        self._norms = _K1 * (1 - _B + _B * lengths / max(statistics.average_length, 1.0))
        self._statistics = statistics

    def has(self, passage: int, stem: str) -> bool:
        return stem in self._counts[passage]

    def score_words(self, stems: Mapping[str, float]) -> Any:
        """Return the BM25 score of each passage for weighted stems, as a share of the best."""
        scores = self._weigh(list(stems)) @ np.array(list(stems.values()), np.float32)
        best = scores.max(initial=0.0)
        return scores / best if best > 0 else scores

    def measure_coverage(self, question_terms: Mapping[str, str]) -> Any:
        """Return the share of the terms that each passage has, rare ones counting more."""
        rarities = self._measure_rarities(list(question_terms))
        present = np.array(
            [[stem in stem_counts for stem in question_terms] for stem_counts in self._counts]
        )
        total_rarity = rarities.sum()
        return (
            present @ rarities / total_rarity
            if total_rarity
            else np.zeros(len(self._counts), np.float32)
        )

    def measure_found(self, question_terms: Mapping[str, str]) -> float:
        """Return the share of the terms that any passage has, those of few passages counting more.

        What is few is counted among these passages alone, so that large and small collections give
        comparable shares.
        """
        passage_counts = np.array(
            [sum(stem in stem_counts for stem_counts in self._counts) for stem in question_terms],
            np.float32,
        )
        rarities = np.log1p((len(self._counts) - passage_counts + 0.5) / (passage_counts + 0.5))
        return (
            float(rarities[passage_counts > 0].sum() / rarities.sum())
            if len(passage_counts)
            else 0.0
        )

    def expand(
        self, question_terms: Mapping[str, str], best: Any, weights: RankingWeights
    ) -> dict[str, float]:
        """Return the terms and the most telling stems of the best passages, with their weights."""
        if not question_terms or not weights.expansion:
            return dict.fromkeys(question_terms, 1.0)
        share = weights.expansion * weights.expansion_length
        share /= weights.expansion_length + len(question_terms)
        stems = list(dict.fromkeys(stem for i in best for stem in self._counts[i]))
        telling = np.zeros(len(stems), np.float32)
        for rank, stem_weights in enumerate(self._weigh(stems, best)):
            telling += stem_weights / max(stem_weights.sum(), 1e-9) / (1 + 0.3 * rank)
        chosen_places = np.argsort(-telling, kind="stable")[: weights.expansion_stems]
        chosen_weight = max(float(telling[chosen_places].sum()), 1e-9)
        expanded = dict.fromkeys(question_terms, (1 - share) / len(question_terms))
        for i in chosen_places:
            weight = share * float(telling[i]) / chosen_weight
            expanded[stems[i]] = expanded.get(stems[i], 0.0) + weight
        return expanded

    def _weigh(self, stems: Sequence[str], passage_places: Any = None) -> Any:
        """Return what each stem adds to the BM25 score of each passage."""
        stem_counts = (
            self._counts if passage_places is None else [self._counts[i] for i in passage_places]
        )
        norms = self._norms if passage_places is None else self._norms[passage_places]
        frequencies = np.array(
            [[passage_counts.get(stem, 0) for stem in stems] for passage_counts in stem_counts],
            np.float32,
        )
        frequencies = frequencies.reshape(len(stem_counts), len(stems))
        saturated = frequencies * (_K1 + 1) / (frequencies + norms[:, np.newaxis])
        return saturated * self._measure_rarities(stems)

    def _measure_rarities(self, stems: Sequence[str]) -> Any:
        """Return the inverse document frequencies; that of an unknown stem is the highest."""
        documents = self._statistics.documents
        frequencies = self._statistics.frequencies(stems)
        known_frequencies = np.array([frequencies.get(stem, 0) for stem in stems], np.float32)
        return np.log1p(
            (documents - np.minimum(known_frequencies, documents) + 0.5) / (known_frequencies + 0.5)
        )


class _Meaning:
    """The cosine of each passage with the question, where both have a vector."""

    def __init__(
        self, vector: Vector | None, passages: Sequence[ProposedPassage], weights: RankingWeights
    ) -> None:
        self._weights = weights
        self._count = len(passages)
        self._vector = vector
        self._vectors = {
            place: passage.vector
            for place, passage in enumerate(passages)
            if vector is not None and passage.vector is not None
        }
        known_cosines = {
            place: passage.cosine
            for place, passage in enumerate(passages)
            if passage.cosine is not None
        }
        self.cosines = known_cosines | self._compare(vector)

    def estimate(self, word_scores: Any) -> Any:
        """Return the cosine of every passage, guessed from its words where it is not known."""
        if not self.cosines:
            return np.zeros(self._count, np.float32)
        cosines = self._weights.unembedded + self._weights.unembedded_words * word_scores
        cosines[list(self.cosines)] = list(self.cosines.values())
        return cosines

    def move_towards(self, best: Any) -> "_Meaning":
        """Return the same for the question's vector moved towards these passages."""
        near = [self._vectors[place] for place in best if place in self._vectors]
        if not near or self._vector is None:
            return self
        moved = self._vector + self._weights.feedback * np.mean(near, axis=0)
        moved_meaning = copy(self)
        moved_meaning.cosines = self.cosines | self._compare(moved / np.linalg.norm(moved))
        return moved_meaning

    def _compare(self, vector: Vector | None) -> dict[int, float]:
        if vector is None or not self._vectors:
            return {}
        cosines = np.stack(list(self._vectors.values())) @ vector
        return dict(zip(self._vectors, cosines.tolist(), strict=True))
