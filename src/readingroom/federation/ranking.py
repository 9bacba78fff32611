"""Puts the hits of several bases into one order, by how well each answers the question.

All hits are compared with the question in one pool, so that a word that every base has counts
little. Bases with vectors know how near their passages are; those of the others are embedded here.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import chain, islice, repeat

from readingroom.core.scores import ScoreParts
from readingroom.engine.confidence import (
    DEFAULT_CALIBRATION,
    MIN_CLOSE_SCORE,
    score_compared_passages,
)
from readingroom.engine.embedding.cross_encoder.reranker import Reranker
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.errors import ModelUnavailable
from readingroom.engine.hybrid import MAX_GROUP_CHARS
from readingroom.engine.ranking import (
    ComparedPassage,
    ProposedPassage,
    RankingWeights,
    rank_passages,
)
from readingroom.engine.second_look import rescore_passages
from readingroom.engine.stems import count_stems, count_stems_of_texts, count_words
from readingroom.protocol.search import DeskHit

_MAX_EMBEDDED_HITS = 20  # hits of a base without vectors that are compared by meaning
_MAX_EMBEDDED_CHARS = 1_000  # characters of each that are embedded
_FIRST_RESULT_COUNT = 5
"""Among so many results, the best hit of every base has a place."""
_UNDISPLACED_RESULT_COUNT = 2  # the first ones, which no other base's hit displaces
_MAX_HITS_READ_AGAIN = 6  # of held-out questions, eight had no more right among the first three
_MAX_HITS_PER_DOCUMENT = 3  # results of one document among the first ones
_MIN_OVERLAP_CHARS = 40  # characters that two passages share if one goes on where the other ends
_SAME_TEXT_WORD_SHARE = (
    0.9  # the share of their words that two passages have in common if they are one
)
_NUMBER_WORD_STEMS = frozenset(
    [
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "twelv",
        "fifteen",
        "twenti",
        "thirti",
        "fifti",
    ]
)
# Each base has improved the question by its own best passages already. Here they would pull it
# towards the base with the most of them.
_RANKING_WEIGHTS = RankingWeights(
    word_weight=0.0, coverage_weight=0.25, feedback_weight=0.0, expansion_share=0.0
)
# Of many bases' hits far fewer are right than of one base's, so scores fall faster behind the best.
# By this number the scores are the shares of the tuning questions' hits that are right.
_SCORE_CALIBRATION = replace(DEFAULT_CALIBRATION, decline_per_fit=32.0)
_BASE_LOG_PROBABILITY_WEIGHT = 0.07
"""What a base's hits lose in fit for each unit of log-probability behind the likeliest base."""
_NAMED_SCORE = 0.95
"""The score of what the question calls by its name, here or in its base."""


def rank_hits(
    query: str,
    base_rankings: Sequence[Sequence[DeskHit]],
    embedder: Embedder,
    reranker: Reranker | None = None,
    log_probability_by_base: Mapping[str, float] = {},
    doubt_log_odds: float = 0.0,
) -> list[DeskHit]:
    """Return the hits of all bases in one order.

    What the query names exactly comes first, then goes by probability. Of passages that fit alike,
    those of the base come first that the query's words are likelier meant for. Scores lose
    `doubt_log_odds`, but for what is named. A text that several hits have comes once. The best hit
    of every base is among the first five, unless nothing in that base is close to the question, or
    the first two are one base's and all four others are close.
    """
    hits = [hit for base_hits in base_rankings for hit in base_hits]
    compared_hits = _compare_hits(query, base_rankings, embedder)
    base_adjusted_hits = _adjust_fits_by_base(compared_hits, hits, log_probability_by_base)
    score_calibration = replace(
        _SCORE_CALIBRATION, constant=_SCORE_CALIBRATION.constant - doubt_log_odds
    )
    ranked_hits = [
        _set_score(hits[int(compared_hit.passage_id)], compared_hit, hit_score)
        for compared_hit, hit_score in zip(
            base_adjusted_hits,
            score_compared_passages(base_adjusted_hits, score_calibration),
            strict=True,
        )
        # What has none of the words is a result only if it is close by meaning.
        if hits[int(compared_hit.passage_id)].score > 0
        or hits[int(compared_hit.passage_id)].exact_reference
        or hit_score >= MIN_CLOSE_SCORE
    ]
    query_names_hit = partial(_is_hit_named, count_stems(query).keys())
    named_hits = [hit for hit in ranked_hits if query_names_hit(hit)]
    unnamed_hits = [hit for hit in ranked_hits if not query_names_hit(hit)]
    # A section that the query names by its number comes before what only has the same words, and
    # of several such sections the one that its base thinks likeliest.
    place_by_hit_id = {hit.id: hit_rank for hit_rank, hit in enumerate(hits)}
    named_hits.sort(key=lambda hit: place_by_hit_id[hit.id] if hit.exact_reference else len(hits))
    ordered_hits = [*map(_raise_to_named_score, named_hits), *unnamed_hits]
    # What was found is what is read again, without the neighbours that it is shown with.
    # In reverse, so that of several hits with one id the text of the best one stays.
    found_text_by_hit_id = {hit.id: _get_hit_text(hit) for hit in reversed(ordered_hits)}
    ordered_hits = _drop_repeated_texts(_join_neighbours(ordered_hits))
    if reranker is not None:
        named_hit_count = sum(map(query_names_hit, ordered_hits))
        ordered_hits = [
            *ordered_hits[:named_hit_count],
            *_rescore_first_hits(
                query, ordered_hits[named_hit_count:], found_text_by_hit_id, reranker
            ),
        ]
    # As a base would score them: close is what another base's better hit does not make far.
    compared_hits_with_scores = zip(
        compared_hits, score_compared_passages(compared_hits), strict=True
    )
    close_base_names = {
        hits[int(compared_hit.passage_id)].base
        for compared_hit, base_score in compared_hits_with_scores
        if base_score >= MIN_CLOSE_SCORE
    }
    return _raise_first_hits(_spread_documents(ordered_hits), close_base_names)


def _compare_hits(
    query: str, base_rankings: Sequence[Sequence[DeskHit]], embedder: Embedder
) -> list[ComparedPassage]:
    """Return how well each hit answers the query, best first; its number is the passage's id."""
    hits = [hit for base_hits in base_rankings for hit in base_hits]
    cosines = _measure_cosines(query, base_rankings, embedder)
    passages = [
        ProposedPassage(str(hit_index), _get_hit_text(hit), None, cosine)
        for hit_index, (hit, cosine) in enumerate(zip(hits, cosines, strict=True))
    ]
    pool_statistics = _PoolStatistics([passage.text for passage in passages])
    return rank_passages(query, None, passages, pool_statistics, _RANKING_WEIGHTS)


def _adjust_fits_by_base(
    compared_hits: Sequence[ComparedPassage],
    hits: Sequence[DeskHit],
    log_probability_by_base: Mapping[str, float],
) -> list[ComparedPassage]:
    """Return the compared hits, best first, less what the unlikelier bases of the query lose.

    A base of which nothing is known loses as much as the others do on average.
    """
    if not log_probability_by_base:
        return list(compared_hits)
    highest_log_probability = max(log_probability_by_base.values())
    mean_log_probability = sum(log_probability_by_base.values()) / len(log_probability_by_base)
    return sorted(
        (
            replace(
                compared_hit,
                fit=compared_hit.fit
                - _BASE_LOG_PROBABILITY_WEIGHT
                * (
                    highest_log_probability
                    - log_probability_by_base.get(
                        hits[int(compared_hit.passage_id)].base, mean_log_probability
                    )
                ),
            )
            for compared_hit in compared_hits
        ),
        key=lambda compared_hit: -compared_hit.fit,
    )


def _measure_cosines(
    query: str, base_rankings: Sequence[Sequence[DeskHit]], embedder: Embedder
) -> list[float | None]:
    """Return the cosine of every hit with the query, base by base; None without a model.

    The first hits of a base that have no vector are embedded. Those after them are taken to be as
    far away as the farthest of these, since their base found them less fitting.
    """
    unembedded_hits = [
        [hit for hit in base_hits if _find_known_cosine(hit) is None][:_MAX_EMBEDDED_HITS]
        for base_hits in base_rankings
    ]
    unembedded_texts = [
        _get_hit_text(hit)[:_MAX_EMBEDDED_CHARS]
        for base_hits in unembedded_hits
        for hit in base_hits
    ]
    embedded_cosines = iter(_embed_and_compare(query, unembedded_texts, embedder))
    cosines: list[float | None] = []
    for base_hits, embedded_hits in zip(base_rankings, unembedded_hits, strict=True):
        measured_cosines = list(islice(embedded_cosines, len(embedded_hits)))
        lowest_cosine = min(measured_cosines, default=None)
        next_cosines = chain(measured_cosines, repeat(lowest_cosine))
        cosines += [
            next(next_cosines) if (cosine := _find_known_cosine(hit)) is None else cosine
            for hit in base_hits
        ]
    return cosines


def _get_hit_text(hit: DeskHit) -> str:
    return f"{hit.title}. {hit.snippet}"


def _find_known_cosine(hit: DeskHit) -> float | None:
    return hit.parts.semantic if hit.parts else None


def _embed_and_compare(query: str, hit_texts: Sequence[str], embedder: Embedder) -> list[float]:
    """Return the cosine of each text with the query; none of them where there is no model."""
    if not hit_texts:
        return []
    try:
        query_vector, *text_vectors = embedder.embed_each([query, *hit_texts])
    except ModelUnavailable:
        return []
    return [float(text_vector @ query_vector) for text_vector in text_vectors]


def _set_score(hit: DeskHit, compared_hit: ComparedPassage, relevance_score: float) -> DeskHit:
    score_parts = hit.parts or ScoreParts(
        semantic=None if compared_hit.cosine is None else round(max(0.0, compared_hit.cosine), 6),
        lexical=round(compared_hit.coverage, 4),
        matched_terms=compared_hit.matched_terms,
    )
    # A base gives so high a score only to what is called by its name.
    relevance_score = hit.score if hit.parts and hit.score >= _NAMED_SCORE else relevance_score
    # Rounded, but never to 0: that is what a base gives to a hit with none of the words.
    return hit.model_copy(
        update={"score": max(round(relevance_score, 6), 1e-6), "parts": score_parts}
    )


def _rescore_first_hits(
    query: str,
    ranked_hits: Sequence[DeskHit],
    found_text_by_hit_id: Mapping[str, str],
    reranker: Reranker,
) -> list[DeskHit]:
    """Return the hits with the first few in the order that reading them again gives."""
    new_scores = rescore_passages(
        query,
        [hit.score for hit in ranked_hits],
        [found_text_by_hit_id[hit.id] for hit in ranked_hits[:_MAX_HITS_READ_AGAIN]],
        reranker,
        _SCORE_CALIBRATION.decline_per_fit,
    )
    rescored_hits = [
        hit.model_copy(update={"score": max(round(new_score, 6), 1e-6)})
        for hit, new_score in zip(ranked_hits, new_scores, strict=True)
    ]
    return sorted(rescored_hits, key=lambda hit: -hit.score)


def _raise_to_named_score(hit: DeskHit) -> DeskHit:
    return hit.model_copy(update={"score": max(hit.score, _NAMED_SCORE)})


def _is_hit_named(query_stems: Set[str], hit: DeskHit) -> bool:
    """Return whether the query names the hit: by a reference, or by its title or citation."""
    if hit.exact_reference or hit.score >= _NAMED_SCORE:
        return True
    # A single word is part of many titles, and is the name of none of them.
    if len(query_stems) < 2:
        return False
    hit_names = (hit.title, hit.citation.citation_string)
    return any(query_stems <= count_stems(hit_name).keys() for hit_name in hit_names)


def _join_neighbours(ordered_hits: Sequence[DeskHit]) -> list[DeskHit]:
    """Return the hits, each joined with a later one that goes on where it ends.

    A long section or page is cut into passages that share some words with the next, so two of them
    may both be found: a reader wants one passage. What stands before a better hit stays apart, so
    that a result begins with what was found.
    """
    joined_hits: list[DeskHit] = []
    joined_indexes_by_document: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for hit in ordered_hits:
        joined_indexes_of_document = joined_indexes_by_document[_get_document_key(hit)]
        for joined_index in joined_indexes_of_document:
            better_hit = joined_hits[joined_index]
            if joined_text := _join_texts(better_hit, hit):
                joined_hits[joined_index] = better_hit.model_copy(
                    update={
                        "snippet": joined_text,
                        "joined_ids": [*better_hit.joined_ids, hit.id, *hit.joined_ids],
                    }
                )
                break
        else:
            joined_indexes_of_document.append(len(joined_hits))
            joined_hits.append(hit)
    return joined_hits


def _join_texts(hit: DeskHit, other_hit: DeskHit) -> str | None:
    """Return two passages of one document as one; None where the other does not go on there."""
    if hit.in_force != other_hit.in_force:
        return None
    if len(hit.snippet) + len(other_hit.snippet) > MAX_GROUP_CHARS:
        return None
    return _continue_text(hit.snippet, other_hit.snippet)


def _continue_text(passage_text: str, next_passage_text: str) -> str | None:
    """Return two passages as one where the second begins with the end of the first."""
    next_opening = next_passage_text[:_MIN_OVERLAP_CHARS]
    overlap_offset = (
        passage_text.rfind(next_opening) if len(next_opening) == _MIN_OVERLAP_CHARS else -1
    )
    if overlap_offset < 0 or not next_passage_text.startswith(passage_text[overlap_offset:]):
        return None
    return passage_text[:overlap_offset] + next_passage_text


def _drop_repeated_texts(ordered_hits: Sequence[DeskHit]) -> list[DeskHit]:
    """Return the hits without those whose id or text a better one has."""
    kept_hits: list[DeskHit] = []
    kept_hit_ids: set[str] = set()
    stems_of_kept_hits: list[frozenset[str]] = []
    for hit in ordered_hits:
        hit_stems = frozenset(count_stems(hit.snippet))
        # Most texts differ in length already, which is seen without a call for each.
        min_stem_count, max_stem_count = (
            _SAME_TEXT_WORD_SHARE * len(hit_stems) - 1,
            len(hit_stems) / _SAME_TEXT_WORD_SHARE + 1,
        )
        if hit.id in kept_hit_ids or any(
            _is_same_text(hit_stems, other_text_stems)
            for other_text_stems in stems_of_kept_hits
            if min_stem_count <= len(other_text_stems) <= max_stem_count
        ):
            continue
        kept_hit_ids.add(hit.id)
        stems_of_kept_hits.append(hit_stems)
        kept_hits.append(hit)
    return kept_hits


def _is_same_text(text_stems: frozenset[str], other_text_stems: frozenset[str]) -> bool:
    """Return whether two texts have the same words but for a few, none of them a number."""
    if (
        not text_stems
        or not _SAME_TEXT_WORD_SHARE
        <= len(text_stems) / max(len(other_text_stems), 1)
        <= 1 / _SAME_TEXT_WORD_SHARE
    ):
        return False
    common_stem_count = len(text_stems & other_text_stems)
    distinct_stem_count = len(text_stems) + len(other_text_stems) - common_stem_count
    return distinct_stem_count - common_stem_count <= (
        1 - _SAME_TEXT_WORD_SHARE
    ) * distinct_stem_count and not any(
        stem[0].isdigit() or stem in _NUMBER_WORD_STEMS for stem in text_stems ^ other_text_stems
    )


def _spread_documents(ordered_hits: Sequence[DeskHit]) -> list[DeskHit]:
    """Return the hits with at most a few of one document before those of others."""
    hit_count_by_document: Counter[tuple[str, str]] = Counter()
    first_hits: list[DeskHit] = []
    later_hits: list[DeskHit] = []
    for hit in ordered_hits:
        hit_count_by_document[_get_document_key(hit)] += 1
        (
            first_hits
            if hit_count_by_document[_get_document_key(hit)] <= _MAX_HITS_PER_DOCUMENT
            else later_hits
        ).append(hit)
    return [*first_hits, *later_hits]


def _get_document_key(hit: DeskHit) -> tuple[str, str]:
    """Return what tells the document of a passage from others."""
    # Passages of policies: `policy:NPPF__rev_…__Para_116__001`; pages: `doc:25_1_a1b2#page=4`.
    return hit.base, hit.source if hit.in_force else hit.id.partition("#")[0]


def _raise_first_hits(ordered_hits: Sequence[DeskHit], close_base_names: Set[str]) -> list[DeskHit]:
    """Return the hits with the best one of each close base among the first few.

    The first two keep their places: where many bases are close, each would have a single hit.
    """
    best_hit_id_by_base: dict[str, str] = {}
    for hit in ordered_hits:
        if hit.base in close_base_names:
            best_hit_id_by_base.setdefault(hit.base, hit.id)
    ordered_hit_ids = [hit.id for hit in ordered_hits]
    candidate_hit_ids = dict.fromkeys(
        [
            *ordered_hit_ids[:_UNDISPLACED_RESULT_COUNT],
            *best_hit_id_by_base.values(),
            *ordered_hit_ids,
        ]
    )
    raised_hit_ids = set(islice(candidate_hit_ids, _FIRST_RESULT_COUNT))
    return sorted(ordered_hits, key=lambda hit: hit.id not in raised_hit_ids)


class _PoolStatistics:
    """How common words are among a handful of passages, where no collection is at hand."""

    def __init__(self, passage_texts: Sequence[str]) -> None:
        stem_counts_by_text = count_stems_of_texts(passage_texts)
        stems_of_texts = [
            stem_counts_by_text[passage_text].keys() for passage_text in passage_texts
        ]
        self._text_counts_by_stem = Counter(
            stem for text_stems in stems_of_texts for stem in text_stems
        )
        self.document_count = len(stems_of_texts)
        self.average_length = sum(map(count_words, passage_texts)) / max(len(stems_of_texts), 1)

    def read_document_frequencies(self, stems: Sequence[str]) -> Mapping[str, int]:
        return {stem: self._text_counts_by_stem[stem] for stem in stems}
