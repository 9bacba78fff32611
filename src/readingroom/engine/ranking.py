"""Ranks passages for a question by words and by meaning at once.

Two searches propose passages: the word index and the vector index. Here both are read once more,
side by side, and ordered by one number that words and meaning contribute to. How much words count
depends on the evidence: how many telling words of the question the best passage has. With much of
it, the best of a first order also improve the question: its vector is moved towards theirs
(Rocchio), and their most telling words are added to its words (relevance model 3).
`docs/engine.md` has the measurements.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain, compress
from typing import Any, Protocol

from readingroom.core.arrays import Vector, np
from readingroom.engine.stems import count_stems_of_texts, count_words, get_shared_stemmer
from readingroom.engine.vocabulary import Wording, find_wordings
from readingroom.engine.words import MAX_QUERY_WORDS

# The parameters of FTS5's own bm25().
_BM25_K1, _BM25_B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """How much each part counts beside the cosine, which counts 1.

    Chosen on the public questions, where `benchmarks/engine/quality.py` measures what such a choice
    is worth.
    """

    word_weight: float = 0.5
    """For the BM25 score as a share of the best one's, where there is much evidence."""
    half_weight_evidence: float = 1.0
    """The evidence with which words count half of that; 0 if they always count in full."""
    coverage_weight: float = 0.0
    """For the share of the question's words that a passage has."""
    official_term_weight: float = 0.8
    """What an official term counts where a passage has it instead of the question's own words."""
    official_terms_full_evidence: float = 0.8
    official_terms_max_evidence: float = 1.2
    """With more evidence by its own words a question needs no official terms."""
    feedback_weight: float = 0.5
    """How far the question's vector is moved, towards the mean of the best passages."""
    feedback_passage_count: int = 4
    feedback_min_evidence: float = 0.7
    """With less evidence the best passages do not improve the question: they may be wrong."""
    feedback_full_evidence: float = 1.0
    expansion_share: float = 0.8
    """The share of the added words; a question with many words of its own gets less of it."""
    half_expansion_word_count: float = 10.0
    expansion_passage_count: int = 4
    expansion_stem_count: int = 50
    unembedded_cosine: float = 0.3
    """What the cosine of a passage without a vector is taken to be, if it has none of the words."""
    unembedded_word_weight: float = 0.4
    """How much more, if it has as many as the best."""

    def adapt_to_own_evidence(self, own_evidence: float) -> "RankingWeights":
        """Return the weights for a question whose best passage has so many of its telling words.

        A question in the words of the text needs no others, and its best passages improve it.
        """
        own_words_share = _compute_share_between(
            own_evidence, self.official_terms_full_evidence, self.official_terms_max_evidence
        )
        feedback_trust = _compute_share_between(
            own_evidence, self.feedback_min_evidence, self.feedback_full_evidence
        )
        return replace(
            self,
            official_term_weight=self.official_term_weight * (1.0 - own_words_share),
            feedback_weight=self.feedback_weight * feedback_trust,
            expansion_share=self.expansion_share * feedback_trust,
        )

    def adapt_to_evidence(self, evidence: float) -> "RankingWeights":
        """Return the weights for a question of which, official terms counted, so much is found.

        Of a question in other words than the text's, words find passages by chance.
        """
        if not self.half_weight_evidence:
            return self
        word_share = evidence / (evidence + self.half_weight_evidence)
        return replace(self, word_weight=self.word_weight * word_share)


def _compute_share_between(number: float, low: float, high: float) -> float:
    """Return where a number lies between two others: 0 up to the lower, 1 from the higher on."""
    return min(max((number - low) / (high - low), 0.0), 1.0)


RANKING_WEIGHTS = RankingWeights()


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


class WordStatistics(Protocol):
    """How common words are in the collection that is searched."""

    @property
    def document_count(self) -> int: ...

    @property
    def average_length(self) -> float:
        """Words of an average passage."""

    def read_document_frequencies(self, stems: Sequence[str]) -> Mapping[str, int]:
        """Return in how many passages each stem occurs; stems of none may be left out."""


@dataclass(frozen=True, slots=True)
class ComparedPassage:
    """How well a passage answers a question; `fit` orders the passages of one question."""

    passage_id: str
    fit: float
    cosine: float | None
    """None where the passage or the question has no vector."""
    word_score: float
    """Its BM25 score, official terms counted, as a share of the best one's."""
    coverage: float
    """The share of the question's words that it has, rare words counting more."""
    found_share: float
    """The share that any of the passages has which were ranked with it."""
    matched_terms: tuple[str, ...]


RankPassages = Callable[
    [str, Vector | None, Sequence[ProposedPassage], WordStatistics], list[ComparedPassage]
]
"""Returns how well each passage answers a question, best first."""


def rank_passages(
    question_text: str,
    question_vector: Vector | None,
    passages: Sequence[ProposedPassage],
    word_statistics: WordStatistics,
    weights: RankingWeights = RANKING_WEIGHTS,
) -> list[ComparedPassage]:
    """Return how well each passage answers the question, best first, equal ones by id."""
    if not passages:
        return []
    words_by_stem = map_stems_to_words(question_text)
    wordings = find_wordings(question_text)
    passage_stems = _PassageStemCounts(passages, word_statistics)
    own_word_scores = passage_stems.score_words(dict.fromkeys(words_by_stem, 1.0))
    own_evidence = measure_evidence(float(own_word_scores.max()), word_statistics.document_count)
    weights = weights.adapt_to_own_evidence(own_evidence)
    official_term_scores = passage_stems.score_official_terms(
        words_by_stem, wordings, weights.official_term_weight
    )
    bm25_scores = own_word_scores + official_term_scores
    weights = weights.adapt_to_evidence(
        measure_evidence(float(bm25_scores.max()), word_statistics.document_count)
    )
    word_scores = _scale_to_best_score(bm25_scores)
    passage_cosines = _PassageCosines(question_vector, passages, weights)
    coverages = passage_stems.measure_coverage(words_by_stem)
    weighted_coverages: Any = 0.0
    if weights.coverage_weight:
        weighted_coverages = weights.coverage_weight * passage_stems.measure_coverage(
            words_by_stem, wordings, weights.official_term_weight
        )
    first_fits = (
        passage_cosines.estimate_cosines(word_scores)
        + weights.word_weight * word_scores
        + weighted_coverages
    )
    fits = first_fits
    if weights.feedback_weight or weights.expansion_share:
        best_passage_indexes = _sort_passage_indexes_by_fit(first_fits, passages)
        weight_by_stem = passage_stems.expand_terms(
            words_by_stem, best_passage_indexes[: weights.expansion_passage_count], weights
        )
        own_words_weight = min((weight_by_stem[stem] for stem in words_by_stem), default=1.0)
        moved_cosines = passage_cosines.move_question_towards(
            best_passage_indexes[: weights.feedback_passage_count]
        )
        fits = (
            moved_cosines.estimate_cosines(word_scores)
            + weights.word_weight
            * _scale_to_best_score(
                passage_stems.score_words(weight_by_stem) + own_words_weight * official_term_scores
            )
            + weighted_coverages
        )
    found_share = passage_stems.measure_found_share(words_by_stem)
    compared_passages = [
        ComparedPassage(
            passage.id,
            # Rounded: what is equal but for the order of additions is ordered by its id.
            round(float(fits[passage_index]), 6),
            passage_cosines.cosine_by_index.get(passage_index),
            float(word_scores[passage_index]),
            float(coverages[passage_index]),
            found_share,
            tuple(compress(words_by_stem.values(), stem_counts)),
        )
        for passage_index, (passage, stem_counts) in enumerate(
            zip(passages, passage_stems.count_stems(words_by_stem), strict=True)
        )
    ]
    return sorted(compared_passages, key=lambda passage: (-passage.fit, passage.passage_id))


def _sort_passage_indexes_by_fit(fits: Any, passages: Sequence[ProposedPassage]) -> Any:
    """Return the places of the passages, best first, equal ones by id.

    Whatever their order: which of two equal passages improves a question changes every score.
    """
    ids_of_passages = np.array([passage.id for passage in passages])
    return np.lexsort((ids_of_passages, -np.round(fits, 5)))


def map_stems_to_words(question_text: str) -> dict[str, str]:
    """Return the stems of a question, each with the word as it was written."""
    words_by_stem: dict[str, str] = {}
    for word, stem in get_shared_stemmer().split_words_with_stems(question_text)[:MAX_QUERY_WORDS]:
        words_by_stem.setdefault(stem, word)
    return words_by_stem


def measure_evidence(best_bm25_score: float, document_count: int) -> float:
    """Return how many telling words of the question its best passage has, by that one's score.

    A word that no other passage has counts up to 1, by how often it stands there and how long the
    passage is: about a half, once in one of average length. A commoner word counts less.
    """
    max_rarity = math.log1p((document_count - 0.5) / 1.5) if document_count else 0.0
    return best_bm25_score / ((_BM25_K1 + 1) * max_rarity) if max_rarity > 0 else 0.0


def count_passage_stems(passages: Sequence[ProposedPassage]) -> list[Mapping[str, int]]:
    """Return the stems of each passage and its heading, with how often they have them."""
    # Counted apart: many passages share a heading, and their texts are counted without it too.
    counts_by_text = count_stems_of_texts(
        chain.from_iterable((passage.text, passage.heading) for passage in passages)
    )
    return [
        _sum_counts(counts_by_text[passage.text], counts_by_text[passage.heading])
        if passage.heading
        else counts_by_text[passage.text]
        for passage in passages
    ]


def _sum_counts(counts: Mapping[str, int], more_counts: Mapping[str, int]) -> Mapping[str, int]:
    summed_counts = dict(counts)
    for stem, stem_count in more_counts.items():
        summed_counts[stem] = summed_counts.get(stem, 0) + stem_count
    return summed_counts


class _PassageStemCounts:
    """The passages as counts of stems, and how rare each stem is in the collection."""

    def __init__(self, passages: Sequence[ProposedPassage], statistics: WordStatistics) -> None:
        self._stem_counts = count_passage_stems(passages)
        word_counts = np.array([count_words(passage.text) for passage in passages], np.float32)
        self._length_norms = _BM25_K1 * (
            1 - _BM25_B + _BM25_B * word_counts / max(statistics.average_length, 1.0)
        )
        self._statistics = statistics
        self._rarity_by_stem: dict[str, float] = {}
        self._occurrences_by_stems: dict[tuple[str, ...], Any] = {}

    def count_stems(self, stems: Iterable[str]) -> Any:
        """Return how often each passage has each stem: a row for each passage."""
        stem_tuple = tuple(stems)
        if stem_tuple not in self._occurrences_by_stems:
            self._occurrences_by_stems[stem_tuple] = _count_occurrences(
                stem_tuple, self._stem_counts
            )
        return self._occurrences_by_stems[stem_tuple]

    def score_words(self, weights_by_stem: Mapping[str, float]) -> Any:
        """Return the BM25 score of each passage for weighted stems."""
        return self._compute_bm25_parts(list(weights_by_stem)) @ np.array(
            list(weights_by_stem.values()), np.float32
        )

    def score_official_terms(
        self, question_stems: Container[str], wordings: Sequence[Wording], weight: float
    ) -> Any:
        """Return what a passage gains by official terms for what the question says otherwise.

        The best term for a wording counts in place of the wording itself, where it is the better
        of the two; of a term of several words that a passage has in part, that part of it.
        """
        zero_scores = np.zeros(len(self._stem_counts), np.float32)
        if not weight:
            return zero_scores
        found_stems = [
            stem
            for stem in dict.fromkeys(chain.from_iterable(map(Wording.list_stems, wordings)))
            if any(stem in stem_counts for stem_counts in self._stem_counts)
        ]
        scores_by_stem = defaultdict(
            lambda: zero_scores,
            zip(found_stems, self._compute_bm25_parts(found_stems).T, strict=True),
        )
        gains = zero_scores
        for wording in wordings:
            wording_scores = sum(
                (scores_by_stem[stem] for stem in wording.stems if stem in question_stems),
                zero_scores,
            )
            term_scores = [
                _score_term(np.stack([scores_by_stem[stem] for stem in term_stems]))
                for term_stems in wording.official_term_stems
            ]
            gains = gains + np.maximum(np.max(term_scores, axis=0) * weight - wording_scores, 0.0)
        return gains

    def measure_coverage(
        self,
        words_by_stem: Mapping[str, str],
        wordings: Sequence[Wording] = (),
        official_term_weight: float = 0.0,
    ) -> Any:
        """Return the share of the terms that each passage has, rare ones counting more.

        An official term for a wording of the question counts in part as the words of it.
        """
        rarities = self._measure_rarities(list(words_by_stem))
        term_presence = (self.count_stems(words_by_stem) > 0).astype(np.float32)
        for wording in wordings if official_term_weight else ():
            official_term_presence = [
                official_term_weight
                * max(
                    sum(stem in stem_counts for stem in term_stems) / len(term_stems)
                    for term_stems in wording.official_term_stems
                )
                for stem_counts in self._stem_counts
            ]
            for stem_index, stem in enumerate(words_by_stem):
                if stem in wording.stems:
                    term_presence[:, stem_index] = np.maximum(
                        term_presence[:, stem_index], official_term_presence
                    )
        total_rarity = rarities.sum()
        if not total_rarity:
            return np.zeros(len(self._stem_counts), np.float32)
        return term_presence @ rarities / total_rarity

    def measure_found_share(self, words_by_stem: Mapping[str, str]) -> float:
        """Return the share of the terms that any passage has, those of few passages counting more.

        What is few is counted among these passages alone, so that large and small collections give
        comparable shares.
        """
        passage_count_of_stems = (self.count_stems(words_by_stem) > 0).sum(axis=0, dtype=np.float32)
        rarities = np.log1p(
            (len(self._stem_counts) - passage_count_of_stems + 0.5) / (passage_count_of_stems + 0.5)
        )
        if not len(passage_count_of_stems):
            return 0.0
        return float(rarities[passage_count_of_stems > 0].sum() / rarities.sum())

    def expand_terms(
        self, words_by_stem: Mapping[str, str], best_indexes: Any, weights: RankingWeights
    ) -> dict[str, float]:
        """Return the terms and the most telling stems of the best passages, with their weights."""
        if not words_by_stem or not weights.expansion_share:
            return dict.fromkeys(words_by_stem, 1.0)
        expansion_share = weights.expansion_share * weights.half_expansion_word_count
        expansion_share /= weights.half_expansion_word_count + len(words_by_stem)
        best_stem_counts = [self._stem_counts[index] for index in best_indexes]
        stems = list(
            dict.fromkeys(stem for stem_counts in best_stem_counts for stem in stem_counts)
        )
        summed_parts = np.zeros(len(stems), np.float32)
        for rank, bm25_parts in enumerate(self._compute_bm25_parts(stems, best_indexes)):
            summed_parts += bm25_parts / max(bm25_parts.sum(), 1e-9) / (1 + 0.3 * rank)
        stem_indexes = np.argsort(-summed_parts, kind="stable")[: weights.expansion_stem_count]
        chosen_weight_sum = max(float(summed_parts[stem_indexes].sum()), 1e-9)
        weights_by_stem = dict.fromkeys(words_by_stem, (1 - expansion_share) / len(words_by_stem))
        for stem_index in stem_indexes:
            stem_weight = expansion_share * float(summed_parts[stem_index]) / chosen_weight_sum
            stem = stems[stem_index]
            weights_by_stem[stem] = weights_by_stem.get(stem, 0.0) + stem_weight
        return weights_by_stem

    def _compute_bm25_parts(self, stems: Sequence[str], passage_indexes: Any = None) -> Any:
        """Return what each stem adds to the BM25 score of each passage."""
        if passage_indexes is None:
            occurrences, length_norms = self.count_stems(stems), self._length_norms
        else:
            stem_counts = [self._stem_counts[passage_index] for passage_index in passage_indexes]
            occurrences, length_norms = (
                _count_occurrences(stems, stem_counts),
                self._length_norms[passage_indexes],
            )
        saturations = occurrences * (_BM25_K1 + 1) / (occurrences + length_norms[:, np.newaxis])
        return saturations * self._measure_rarities(stems)

    def _measure_rarities(self, stems: Sequence[str]) -> Any:
        """Return the inverse document frequencies; that of an unknown stem is the highest."""
        unmeasured_stems = [stem for stem in stems if stem not in self._rarity_by_stem]
        if unmeasured_stems:
            document_count = self._statistics.document_count
            document_counts = self._statistics.read_document_frequencies(unmeasured_stems)
            for stem in unmeasured_stems:
                having_count = document_counts.get(stem, 0)
                other_count = document_count - min(having_count, document_count)
                self._rarity_by_stem[stem] = math.log1p((other_count + 0.5) / (having_count + 0.5))
        return np.array([self._rarity_by_stem[stem] for stem in stems], np.float32)


def _count_occurrences(stems: Sequence[str], stem_counts: Sequence[Mapping[str, int]]) -> Any:
    """Return how often each text has each stem: a row for each text."""
    occurrences = [[text_counts.get(stem, 0) for stem in stems] for text_counts in stem_counts]
    return np.array(occurrences, np.float32).reshape(len(stem_counts), len(stems))


def _score_term(stem_scores: Any) -> Any:
    """Return the score of a term in each passage, less the share of its stems that it lacks."""
    return stem_scores.sum(axis=0) * (stem_scores > 0).mean(axis=0)


def _scale_to_best_score(scores: Any) -> Any:
    """Return the scores as shares of the best one."""
    best_score = scores.max(initial=0.0)
    return scores / best_score if best_score > 0 else scores


class _PassageCosines:
    """The cosine of each passage with the question, where both have a vector."""

    def __init__(
        self,
        question_vector: Vector | None,
        passages: Sequence[ProposedPassage],
        weights: RankingWeights,
    ) -> None:
        self._weights = weights
        self._passage_count = len(passages)
        self._question_vector = question_vector
        self._vectors_by_index = {
            passage_index: passage.vector
            for passage_index, passage in enumerate(passages)
            if question_vector is not None and passage.vector is not None
        }
        known_cosine_by_index = {
            passage_index: passage.cosine
            for passage_index, passage in enumerate(passages)
            if passage.cosine is not None
        }
        self.cosine_by_index = known_cosine_by_index | self._measure_cosines(question_vector)

    def estimate_cosines(self, word_scores: Any) -> Any:
        """Return the cosine of every passage, guessed from its words where it is not known."""
        if not self.cosine_by_index:
            return np.zeros(self._passage_count, np.float32)
        cosines = (
            self._weights.unembedded_cosine + self._weights.unembedded_word_weight * word_scores
        )
        cosines[list(self.cosine_by_index)] = list(self.cosine_by_index.values())
        return cosines

    def move_question_towards(self, best_passage_indexes: Any) -> "_PassageCosines":
        """Return the same for the question's vector moved towards these passages."""
        best_vectors = [
            self._vectors_by_index[passage_index]
            for passage_index in best_passage_indexes
            if passage_index in self._vectors_by_index
        ]
        if not best_vectors or self._question_vector is None:
            return self
        moved_vector = self._question_vector + self._weights.feedback_weight * np.mean(
            best_vectors, axis=0
        )
        moved_cosines = copy(self)
        moved_cosines.cosine_by_index = self.cosine_by_index | self._measure_cosines(
            moved_vector / np.linalg.norm(moved_vector)
        )
        return moved_cosines

    def _measure_cosines(self, question_vector: Vector | None) -> dict[int, float]:
        if question_vector is None or not self._vectors_by_index:
            return {}
        cosines = np.stack(list(self._vectors_by_index.values())) @ question_vector
        return dict(zip(self._vectors_by_index, cosines.tolist(), strict=True))
