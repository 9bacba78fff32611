"""How well a record explains a query: by its own name, else by its context."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from readingroom.bases.federal.names.context import NameContext, Parent, get_extra_initials
from readingroom.bases.federal.names.query import NameQuery, QueryWord
from readingroom.bases.federal.names.similarity import (
    Similarity,
    WordMatch,
    compare_words,
    compute_word_weight,
    is_same_but_for_typos,
    score_initials,
)
from readingroom.bases.federal.schema.fold import load_vocabulary

MIN_SCORE = 0.5
"""The score a record needs to be an answer at all."""
SURE_SCORE = 0.8
"""A name is taken for one record if that scores at least this, and the next is far behind."""
COMMITTEE_INITIAL_LETTERS = "chsj"
"""`committee`, and the chambers: House, Senate, joint."""
# For how many of the best names two words are also tried as one.
_MAX_NAMES_WITH_VARIANTS = 40
_MIN_SCORE_GAP = 0.04  # by which the next record is behind
# A title of which the query is less than this share only mentions it: such a bill scores less.
_MIN_TITLE_COVERAGE, _MENTION_FACTOR = 0.2, 0.7
_NUMBER_FIELD_NAMES = ("district", "congress", "number", "session", "year")
_RECORD_KIND_WEIGHT, _WRONG_RECORD_KIND_WEIGHT = 0.15, 0.05
"""Weights of a word for a kind of record, when the record confirms it and when it does not."""
# Weight of a word like `Mass` or `Sen.`, compared with 1 for a name.
_MEANING_WEIGHT = 0.6


@dataclass(frozen=True, slots=True)
class EntityMatch:
    """A record that may be meant: how surely, and why."""

    id: str
    score: float
    reasons: list[str]
    record: dict[str, Any]
    name_word_count: int = 1
    """How many words the name has that led to the record."""


@dataclass(frozen=True, slots=True)
class CandidateName:
    """A name that may be meant, and the variant of the query that is most similar to it."""

    name_words: tuple[str, ...]
    query_variant: NameQuery
    similarity: Similarity
    best_possible_score: float
    """The score if the record confirms every word that may mean something else."""


def select_candidate_names(
    name_query: NameQuery,
    words_by_name_id: Mapping[int, tuple[str, ...]],
    unexplained_word_score: float = 0.0,
) -> dict[int, CandidateName]:
    """Return the names that may reach MIN_SCORE, by row.

    Only for the best of them are two words also tried as one: trying all costs too much.
    """
    candidate_by_name_id = {
        name_id: make_candidate_name(name_words, name_query, unexplained_word_score)
        for name_id, name_words in words_by_name_id.items()
    }
    best_name_ids = sorted(
        candidate_by_name_id,
        key=lambda name_id: (-candidate_by_name_id[name_id].best_possible_score, name_id),
    )[:_MAX_NAMES_WITH_VARIANTS]
    candidate_by_name_id |= {
        name_id: max(
            _iterate_candidate_variants(candidate_by_name_id[name_id]),
            key=lambda candidate_variant: candidate_variant.best_possible_score,
        )
        for name_id in best_name_ids
    }
    return {
        name_id: name_candidate
        for name_id, name_candidate in candidate_by_name_id.items()
        if name_candidate.best_possible_score >= MIN_SCORE
    }


def _iterate_candidate_variants(name_candidate: CandidateName) -> Iterator[CandidateName]:
    """Yield the candidate, and it with two words of the query, or of the name, joined."""
    yield name_candidate
    weak_words = load_vocabulary().weak_words
    query_words = name_candidate.query_variant.words
    for word_index, joined_query in enumerate(
        name_candidate.query_variant.iterate_joined_variants()
    ):
        must_stay_apart = any(
            query_word.may_mean_record_kind or query_word.text in weak_words
            for query_word in query_words[word_index : word_index + 2]
        )
        joined_word = joined_query.word_texts[word_index]
        if not must_stay_apart and any(
            is_same_but_for_typos(joined_word, compared_word)
            for compared_word in name_candidate.name_words
        ):
            yield make_candidate_name(name_candidate.name_words, joined_query)
    for word_index, (first_word, second_word) in enumerate(pairwise(name_candidate.name_words)):
        joined_word = first_word + second_word
        if any(
            is_same_but_for_typos(compared_word, joined_word)
            for compared_word in name_candidate.query_variant.word_texts
        ):
            joined_name_words = (
                *name_candidate.name_words[:word_index],
                joined_word,
                *name_candidate.name_words[word_index + 2 :],
            )
            yield make_candidate_name(joined_name_words, name_candidate.query_variant)


def make_candidate_name(
    name_words: tuple[str, ...], name_query: NameQuery, unexplained_word_score: float = 0.0
) -> CandidateName:
    """Compare a name with a query; words that it does not explain get `unexplained_word_score`."""
    similarity = compare_words(name_query.name_word_texts, name_words)
    if name_query.acronym and score_initials(
        name_query.acronym, name_words, COMMITTEE_INITIAL_LETTERS
    ):
        return CandidateName(name_words, name_query, similarity, 1.0)
    word_scores = [
        _compute_best_word_score(query_word, word_match, unexplained_word_score)
        for query_word, word_match in zip(name_query.words, similarity.word_matches, strict=True)
    ]
    best_possible_score = combine_scores(name_query, word_scores, similarity.coverage)
    return CandidateName(name_words, name_query, similarity, best_possible_score)


def _compute_best_word_score(
    query_word: QueryWord, word_match: WordMatch | None, unexplained_word_score: float
) -> float:
    if query_word.meaning:
        return 1.0
    if word_match:
        return word_match.score
    return 0.0 if query_word.may_mean_record_kind else unexplained_word_score


def is_subcommittee(record_fields: Mapping[str, Any]) -> bool:
    """Return whether a record is a subcommittee, or a seat on one."""
    committee_id = (
        record_fields["id"]
        if record_fields.get("source") == "committees"
        else record_fields.get("committee_id")
    )
    # A committee's id has four characters; a subcommittee's has more behind them.
    return len(committee_id or "") > 4


def score_record(
    name_context: NameContext,
    name_query: NameQuery,
    name_candidate: CandidateName,
    printed_name: str,
    record_fields: Mapping[str, Any],
) -> tuple[float, list[str]]:
    """Return how well a record explains the query, and the reasons for that."""
    if acronym_score := _score_acronym(name_query, name_candidate, record_fields):
        word_scores, reasons = explain_words(
            name_query, name_query.no_word_matches, name_query.no_word_matches, [record_fields]
        )
        word_scores = [
            acronym_score if query_word.text in name_query.acronym_words else word_score
            for query_word, word_score in zip(name_query.words, word_scores, strict=True)
        ]
        initials_reason = f"{name_query.acronym!r} are the initials of {printed_name!r}"
        return combine_scores(name_query, word_scores, 1.0), [initials_reason, *reasons]
    return _score_by_words(name_context, name_query, name_candidate, printed_name, record_fields)


def _score_acronym(
    name_query: NameQuery, name_candidate: CandidateName, record_fields: Mapping[str, Any]
) -> float:
    if not name_query.acronym:
        return 0.0
    return score_initials(
        name_query.acronym, name_candidate.name_words, get_extra_initials(record_fields)
    )


def _score_by_words(
    name_context: NameContext,
    name_query: NameQuery,
    name_candidate: CandidateName,
    printed_name: str,
    record_fields: Mapping[str, Any],
) -> tuple[float, list[str]]:
    word_matches = name_candidate.similarity.word_matches
    parents: list[Parent] = []
    context_matches: Sequence[WordMatch | None] = name_candidate.query_variant.no_word_matches
    # Whether its own name has every word of the query that is more than the word for its kind.
    is_exact_name = all(
        (word_match and word_match.score == 1.0)
        or (query_word.meaning == ("kind", "subcommittee") and is_subcommittee(record_fields))
        for query_word, word_match in zip(
            name_candidate.query_variant.words, word_matches, strict=True
        )
    )
    # A variant has other words than the query that the context was made for.
    if name_candidate.query_variant is name_query and not is_exact_name:
        parents = name_context.find_parents(record_fields)
        context_matches = name_context.match_query_words(
            name_candidate.name_words, record_fields, parents
        )
    if not any(
        word_match and word_match.score > 0.5 for word_match in (*word_matches, *context_matches)
    ):
        return 0.0, []
    confirming_records = [record_fields, *(parent.record_fields for parent in parents)]
    word_scores, reasons = explain_words(
        name_candidate.query_variant, word_matches, context_matches, confirming_records
    )
    if parents and _names_another_record(name_candidate.query_variant, word_matches, word_scores):
        return 0.0, []
    name_coverages = [
        name_candidate.similarity.coverage,
        *(parent.similarity.coverage for parent in parents),
    ]
    mean_coverage = sum(name_coverages) / len(name_coverages)
    unexplained_word_factor = 0.5 if _is_full_name(name_candidate) else 1.0
    record_score = combine_scores(
        name_candidate.query_variant, word_scores, mean_coverage, unexplained_word_factor
    )
    if (
        record_fields.get("source") == "bills"
        and name_candidate.similarity.coverage < _MIN_TITLE_COVERAGE
    ):
        record_score *= _MENTION_FACTOR
    return record_score, [f"named {printed_name!r}", *reasons]


def _names_another_record(
    name_query: NameQuery,
    word_matches: Sequence[WordMatch | None],
    word_scores: Sequence[float | None],
) -> bool:
    """Return whether the query has a name that is not the record's, and nothing of the record's.

    Whoever sits on the committee mentioned beside `Gandalf` is no answer.
    """
    if any(
        word_match
        and word_match.score > 0.5
        and compute_word_weight(word_match.query_word_text) == 1.0
        for word_match in word_matches
    ):
        return False
    return any(
        word_score == 0.0
        and not query_word.meaning
        and not query_word.may_mean_record_kind
        and compute_word_weight(query_word.text) == 1.0
        for query_word, word_score in zip(name_query.words, word_scores, strict=True)
    )


def _is_full_name(name_candidate: CandidateName) -> bool:
    """Return whether the query has a whole name of several words: other words count less then."""
    similarity = name_candidate.similarity
    close_matches = (
        word_match
        for word_match in similarity.word_matches
        if word_match and word_match.score > 0.8
    )
    return (
        sum(compute_word_weight(word_match.query_word_text) == 1.0 for word_match in close_matches)
        > 1
        and similarity.coverage > 0.9
    )


def explain_words(
    name_query: NameQuery,
    word_matches: Sequence[WordMatch | None],
    context_matches: Sequence[WordMatch | None],
    confirming_records: Sequence[Mapping[str, Any]],
) -> tuple[list[float | None], list[str]]:
    """Return the score of each word and the reasons; None if it is neither for nor against.

    The first record is the one that may be meant, the others are those it belongs to.
    """
    word_scores: list[float | None] = []
    reasons = []
    for query_word, name_match, context_match in zip(
        name_query.words, word_matches, context_matches, strict=True
    ):
        best_match = (
            context_match
            if context_match and (name_match is None or context_match.score > name_match.score)
            else name_match
        )
        confirming_field_name = next(
            filter(
                None,
                (
                    _find_confirming_field(record_fields, query_word)
                    for record_fields in confirming_records
                ),
            ),
            None,
        )
        if confirming_field_name and (best_match is None or best_match.score < 1.0):
            word_scores.append(1.0)
            reasons.append(f"{query_word.text!r} is its {confirming_field_name}")
        elif best_match:
            word_scores.append(best_match.score)
            if best_match.score < 1.0:
                reasons.append(
                    f"{best_match.query_word_text!r} {best_match.relation} {best_match.name_word!r}"
                )
        else:
            word_scores.append(None if _is_neutral(query_word, confirming_records[0]) else 0.0)
    return word_scores, reasons


def _is_neutral(query_word: QueryWord, record_fields: Mapping[str, Any]) -> bool:
    """Return whether a word does not speak against a record that cannot confirm it."""
    return bool(
        query_word.meaning
        and query_word.meaning[0] == "number"
        and not record_fields.get("published_at")
        and not any(record_fields.get(field_name) for field_name in _NUMBER_FIELD_NAMES)
    )


def is_of_other_chamber(
    name_query: NameQuery, name_candidate: CandidateName, record_fields: Mapping[str, Any]
) -> bool:
    """Return whether the query names a chamber that is neither the record's nor in its name.

    People change chambers and are called by either; what is joint belongs to both.
    """
    chamber_words = [
        chamber_word
        for chamber_word in name_query.words
        if chamber_word.meaning and chamber_word.meaning[0] == "chamber"
    ]
    if (
        not chamber_words
        or "terms" in record_fields
        or record_fields.get("chamber") not in ("house", "senate")
    ):
        return False
    record_chamber_meaning = ("chamber", record_fields["chamber"])
    return not any(
        chamber_word.meaning == record_chamber_meaning
        or chamber_word.text in name_candidate.name_words
        for chamber_word in chamber_words
    )


def _find_confirming_field(record_fields: Mapping[str, Any], query_word: QueryWord) -> str | None:
    """Return what the meaning of a word is in a record, such as its `state`, or None."""
    if query_word.meaning is None:
        return None
    meaning_kind, meaning_value = query_word.meaning
    if meaning_kind == "kind":
        return "kind" if is_subcommittee(record_fields) else None
    if meaning_kind == "number":
        if len(meaning_value) == 4 and (record_fields.get("published_at") or "").startswith(
            meaning_value
        ):
            return "year"
        return next(
            (
                field_name
                for field_name in _NUMBER_FIELD_NAMES
                if str(record_fields.get(field_name)) == meaning_value
            ),
            None,
        )
    office_term_values = (
        office_term.get(meaning_kind) for office_term in record_fields.get("terms") or ()
    )
    return (
        meaning_kind
        if meaning_value in (record_fields.get(meaning_kind), *office_term_values)
        else None
    )


def combine_scores(
    name_query: NameQuery,
    word_scores: Sequence[float | None],
    name_coverage: float,
    unexplained_word_factor: float = 1.0,
) -> float:
    """Return mostly how much of the query is explained, and a little how much of the name.

    Words that nothing explains count `unexplained_word_factor` times as much as others.
    """
    total_weight = explained_weight = 0.0
    for query_word, word_score in zip(name_query.words, word_scores, strict=True):
        if word_score is None:
            continue
        word_weight = _compute_weight_in_query(query_word, word_score)
        total_weight += word_weight if word_score else word_weight * unexplained_word_factor
        explained_weight += word_weight * word_score
    # A little for coverage: of names that explain the query alike, the shorter one is meant.
    return explained_weight / total_weight * (0.85 + 0.15 * name_coverage) if total_weight else 0.0


def _compute_weight_in_query(query_word: QueryWord, word_score: float) -> float:
    """Return how much a word counts; least when it only names a kind of record, and another."""
    if query_word.may_mean_record_kind:
        return _RECORD_KIND_WEIGHT if word_score else _WRONG_RECORD_KIND_WEIGHT
    word_weight = compute_word_weight(query_word.text)
    return _MEANING_WEIGHT if query_word.meaning and word_weight == 1.0 else word_weight


def make_match_sort_key(entity_match: EntityMatch) -> tuple[Any, ...]:
    """Sort by score; of equals, those in office and whole committees first, then the newest.

    Of members in office, those who have served longest are the best known.
    """
    record_fields = entity_match.record
    office_terms = record_fields.get("terms") if record_fields.get("current") else None
    first_day_in_office = office_terms[0]["start"] if office_terms else None
    return (
        -entity_match.score,
        not record_fields.get("current", not record_fields.get("stub")),
        bool(record_fields.get("stub")),
        bool(record_fields.get("parent_id")),
        entity_match.name_word_count,
        first_day_in_office or "9999",
        _make_newest_first_key(record_fields.get("published_at")),
        entity_match.id,
    )


def _make_newest_first_key(iso_day: str | None) -> tuple[int, ...]:
    return tuple(-ord(date_character) for date_character in iso_day) if iso_day else (0,)


def rescale_match(entity_match: EntityMatch, score_factor: float) -> EntityMatch:
    """Return a match whose score counts so much less."""
    return replace(entity_match, score=round(entity_match.score * score_factor, 4))


def find_sure_match(
    entity_matches: Sequence[EntityMatch],
) -> EntityMatch | None:
    """Return the first match if it is good, and the others are far behind or of the past."""
    likely_matches = [
        entity_match for entity_match in entity_matches if entity_match.score >= SURE_SCORE
    ]
    if likely_matches and (
        len(likely_matches) == 1
        or likely_matches[0].score - likely_matches[1].score >= _MIN_SCORE_GAP
        or _is_first_alone_current(likely_matches)
    ):
        return likely_matches[0]
    return None


def _is_first_alone_current(likely_matches: Sequence[EntityMatch]) -> bool:
    """Return whether the first alone sits now, of those who score as well."""
    return bool(likely_matches[0].record.get("current")) and not any(
        entity_match.record.get("current")
        for entity_match in likely_matches[1:]
        if likely_matches[0].score - entity_match.score < _MIN_SCORE_GAP
    )
