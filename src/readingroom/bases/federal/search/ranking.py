"""Puts the records that a search proposes into one order, and scores them."""

import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from readingroom.bases.federal.schema.fold import fold_all_words
from readingroom.bases.federal.search.evidence import compute_bonuses
from readingroom.bases.federal.search.full_text import count_passages_with_word
from readingroom.bases.federal.search.passages import PASSAGE_COLUMNS_SQL, build_passage_text
from readingroom.bases.federal.search.vectors import FederalVectors
from readingroom.core.arrays import Vector
from readingroom.core.modes import Mode
from readingroom.core.scores import ScoreParts
from readingroom.engine.hybrid import (
    PROPOSALS_PER_SEARCH,
    ScoredPassage,
    rank_proposals,
    rerank_first_passages,
)
from readingroom.engine.ranking import (
    ComparedPassage,
    ProposedPassage,
    RankingWeights,
    map_stems_to_words,
    rank_passages,
)
from readingroom.storage.database import Database, Row

# A passage has at most 800 characters; counting the words of all of them would take longer than
# a search.
_AVERAGE_WORD_COUNT = 100.0
# Chosen on the tuning questions with `benchmarks/federal/questions.py`. Neither
# words nor vectors of the best passages are added to the question: in a base of many subjects they
# lead away from it, and to know how common each word is would take longer than the search.
_RANKING_WEIGHTS = RankingWeights(
    word_weight=0.05,
    half_weight_evidence=0.0,
    coverage_weight=0.2,
    feedback_weight=0.0,
    expansion_share=0.0,
    unembedded_cosine=0.2,
    unembedded_word_weight=0.3,
)
_CONGRESS_PATTERN = re.compile(r", \d+(?:st|nd|rd|th) Congress\b")
_CITATION_END_PATTERN = re.compile(r", | - |: ")
_YEAR_AT_END_PATTERN = re.compile(r" of \d{4}$")
_NAMED_SCORE = 0.95
"""The score of a record whose title is what was asked for."""


@dataclass(frozen=True, slots=True)
class ProposedRecord:
    """A record that a search by words or by meaning proposes, and its best passage there."""

    document_row_id: int
    chunk_number: int
    match_strength: float = 0.0
    """By words: how well it matches, as a share of the best one's rank. Titles count most in it."""
    cosine: float = 0.0
    """By meaning: how near it is."""


@dataclass(frozen=True, slots=True)
class RankedRecord:
    """A record in the order of a search, and its best passage; both by their numbers."""

    document_row_id: int
    chunk_number: int
    score: float
    score_parts: ScoreParts


def rank_records(
    db: Database,
    query_text: str,
    query_vector: Vector | None,
    vector_index: FederalVectors,
    passage_count: int,
    records_matching_words: Sequence[ProposedRecord],
    records_matching_meaning: Sequence[ProposedRecord],
    max_records: int,
) -> list[RankedRecord]:
    """Return records that either search proposes, each once, by its best passage.

    At least `max_records` are returned, where so many are proposed. Records that the
    query calls by their name come first.
    """
    named_document_row_ids = _find_named_document_row_ids(
        db,
        query_text,
        [proposed_record.document_row_id for proposed_record in records_matching_words],
    )
    records_matching_words = sorted(
        records_matching_words,
        key=lambda proposed_record: proposed_record.document_row_id not in named_document_row_ids,
    )
    ranking_mode: Mode = "lexical"
    if records_matching_meaning:
        ranking_mode = "hybrid" if records_matching_words else "semantic"
    bonus_by_chunk_number: dict[int, float] = {}
    if ranking_mode == "hybrid":
        bonus_by_chunk_number = _compute_bonuses(
            db, query_text, records_matching_words, records_matching_meaning
        )
        records_matching_meaning = _sort_by_cosine_and_bonus(
            records_matching_meaning, bonus_by_chunk_number
        )
    document_row_id_by_chunk_id = {
        str(proposed_record.chunk_number): proposed_record.document_row_id
        for proposed_record in (*records_matching_words, *records_matching_meaning)
    }
    match_strength_by_chunk_id = {
        str(proposed_record.chunk_number): proposed_record.match_strength
        for proposed_record in records_matching_words
    }
    scored_passages = rank_proposals(
        query_text,
        [str(proposed_record.chunk_number) for proposed_record in records_matching_meaning],
        [str(proposed_record.chunk_number) for proposed_record in records_matching_words],
        partial(
            _score_passages,
            db,
            query_text,
            query_vector,
            vector_index,
            match_strength_by_chunk_id,
            bonus_by_chunk_number,
            _WordStatistics(db, query_text, passage_count),
        ),
        ranking_mode,
        # By both, two passages may belong to one record.
        2 * max_records if ranking_mode == "hybrid" else max_records,
    )
    named_passages, other_passages = _separate_named_records(
        scored_passages, document_row_id_by_chunk_id, named_document_row_ids
    )
    if ranking_mode == "hybrid":
        other_passages = rerank_first_passages(
            query_text,
            other_passages,
            partial(_read_passage_texts, db),
            vector_index.embedder.reranker,
        )
    return [
        RankedRecord(
            document_row_id_by_chunk_id[scored_passage.passage_id],
            int(scored_passage.passage_id),
            scored_passage.score,
            scored_passage.score_parts,
        )
        for scored_passage in (*named_passages, *other_passages)
    ]


def _compute_bonuses(
    db: Database,
    query_text: str,
    records_matching_words: Sequence[ProposedRecord],
    records_matching_meaning: Sequence[ProposedRecord],
) -> dict[int, float]:
    """Return what the record of each proposed passage is worth beside the passage itself."""
    chunk_numbers = [
        proposed_record.chunk_number
        for proposed_record in (*records_matching_words, *records_matching_meaning)
    ]
    return compute_bonuses(db, query_text, chunk_numbers)


def _sort_by_cosine_and_bonus(
    records_matching_meaning: Sequence[ProposedRecord], bonus_by_chunk_number: Mapping[int, float]
) -> list[ProposedRecord]:
    """Return the records by nearness and worth together.

    What is read side by side is cut off later, and must not be cut off by nearness alone.
    """

    def compute_cosine_and_bonus(proposed_record: ProposedRecord) -> float:
        return proposed_record.cosine + bonus_by_chunk_number.get(proposed_record.chunk_number, 0.0)

    return sorted(records_matching_meaning, key=compute_cosine_and_bonus, reverse=True)


def _separate_named_records(
    scored_passages: Sequence[ScoredPassage],
    document_row_id_by_chunk_id: Mapping[str, int],
    named_document_row_ids: Container[int],
) -> tuple[list[ScoredPassage], list[ScoredPassage]]:
    """Return the best passage of each record: of those that the query names, and of the others."""
    best_passage_by_document: dict[int, ScoredPassage] = {}
    for scored_passage in scored_passages:
        best_passage_by_document.setdefault(
            document_row_id_by_chunk_id[scored_passage.passage_id], scored_passage
        )
    named_passages, other_passages = [], []
    for document_row_id, scored_passage in best_passage_by_document.items():
        if document_row_id in named_document_row_ids:
            named_score = max(scored_passage.score, _NAMED_SCORE)
            named_passages.append(replace(scored_passage, score=named_score))
        else:
            other_passages.append(scored_passage)
    return named_passages, other_passages


def _score_passages(
    db: Database,
    query_text: str,
    query_vector: Vector | None,
    vector_index: FederalVectors,
    match_strength_by_chunk_id: Mapping[str, float],
    bonus_by_chunk_number: Mapping[int, float],
    word_statistics: "_WordStatistics",
    chunk_ids: Sequence[str],
) -> list[ComparedPassage]:
    """Return how well each passage answers the query, best first."""
    vector_by_chunk_id = {} if query_vector is None else vector_index.get_vectors(chunk_ids)
    proposed_passages = []
    for passage_row in _read_passages(db, chunk_ids):
        passage_id = str(passage_row["chunk"])
        estimated_cosine = None
        if vector_by_chunk_id and passage_id not in vector_by_chunk_id:
            estimated_cosine = (
                _RANKING_WEIGHTS.unembedded_cosine
                + _RANKING_WEIGHTS.unembedded_word_weight
                * match_strength_by_chunk_id.get(passage_id, 0.0)
            )
        proposed_passages.append(
            ProposedPassage(
                passage_id,
                build_passage_text(passage_row),
                vector_by_chunk_id.get(passage_id),
                estimated_cosine,
            )
        )
    compared_passages = rank_passages(
        query_text, query_vector, proposed_passages, word_statistics, _RANKING_WEIGHTS
    )
    adjusted_passages = [
        replace(
            compared_passage,
            fit=round(
                compared_passage.fit
                + bonus_by_chunk_number.get(int(compared_passage.passage_id), 0.0),
                6,
            ),
            # A guess orders passages; as a likeness it is not told.
            cosine=compared_passage.cosine
            if compared_passage.passage_id in vector_by_chunk_id
            else None,
        )
        for compared_passage in compared_passages
    ]
    return sorted(
        adjusted_passages,
        key=lambda compared_passage: (-compared_passage.fit, compared_passage.passage_id),
    )


def _read_passages(db: Database, chunk_ids: Iterable[str]) -> list[Row]:
    return db.execute(
        f"""SELECT {PASSAGE_COLUMNS_SQL} FROM chunks c JOIN passages p USING (chunk)
            WHERE c.chunk IN ({db.dialect.parameter_numbers_sql}) ORDER BY c.chunk""",
        (json.dumps([int(chunk_id) for chunk_id in chunk_ids]),),
    ).fetchall()


def _read_passage_texts(db: Database, chunk_ids: Iterable[str]) -> dict[str, str]:
    return {
        str(passage_row["chunk"]): build_passage_text(passage_row)
        for passage_row in _read_passages(db, chunk_ids)
    }


class _WordStatistics:
    """How many passages have each word of a query, and each stem that is asked for beside them."""

    def __init__(self, db: Database, query_text: str, passage_count: int) -> None:
        self.document_count = passage_count
        self.average_length = _AVERAGE_WORD_COUNT
        self._db = db
        self._words_by_stem = map_stems_to_words(query_text)
        self._passage_count_by_stem: dict[str, int] = {}

    def read_document_frequencies(self, word_stems: Sequence[str]) -> Mapping[str, int]:
        for word_stem in word_stems:
            if word_stem not in self._passage_count_by_stem:
                # A stem of the vocabulary stands for its word, which FTS5 cuts to nearly the same.
                self._passage_count_by_stem[word_stem] = count_passages_with_word(
                    self._db, self._words_by_stem.get(word_stem, word_stem)
                )
        return {word_stem: self._passage_count_by_stem[word_stem] for word_stem in word_stems}


# --- records that are named ---


def _find_named_document_row_ids(
    db: Database, query_text: str, document_row_ids: Sequence[int]
) -> set[int]:
    """Return those of the records that the query calls by a title, a citation or a short title."""
    query_words = fold_all_words(_YEAR_AT_END_PATTERN.sub("", query_text.strip()))
    # The words of a title count most in a search by words, so one that is named is among the first.
    return {
        document_row_id
        for document_row_id, title_text in _read_titles(db, document_row_ids[:PROPOSALS_PER_SEARCH])
        if any(
            _contains_name(title_words, query_words)
            for title_words in _list_record_names(title_text)
        )
    }


def _read_titles(db: Database, document_row_ids: Sequence[int]) -> list[tuple[int, str]]:
    """Return the titles of records as they are searched: one a line."""
    title_rows = db.execute(
        f"""SELECT c.doc, p.title FROM chunks c JOIN passages p USING (chunk)
            WHERE c.doc IN ({db.dialect.parameter_numbers_sql})
                AND c.part = 'head' AND c.ordinal = 0""",
        (json.dumps(document_row_ids),),
    )
    return [(title_row["doc"], title_row["title"]) for title_row in title_rows]


@lru_cache(maxsize=2000)
def _list_record_names(title_text: str) -> list[tuple[str, ...]]:
    """Return what a record is called, as folded words: whole titles, citations, short titles."""
    distinct_names: dict[str, None] = {}
    for title_line in title_text.splitlines():
        # `H.R. 1155, 114th Congress, SCRUB Act of 2016`, `Public Law 113-67: Making …`
        citation, *short_title = _CITATION_END_PATTERN.split(
            _CONGRESS_PATTERN.sub("", title_line), maxsplit=1
        )
        distinct_names |= dict.fromkeys(
            _YEAR_AT_END_PATTERN.sub("", distinct_name)
            for distinct_name in (title_line, citation, *short_title)
        )
    return [fold_all_words(distinct_name) for distinct_name in distinct_names]


def _contains_name(name_words: tuple[str, ...], query_words: tuple[str, ...]) -> bool:
    """Return whether a query is this name, or has it among other words.

    Only citations and acts are looked for among other words: `General` is a title too.
    """
    if name_words == query_words:
        return bool(name_words)
    is_citation_or_act = len(name_words) > 1 and (
        name_words[-1] == "act" or name_words[-1].isdigit()
    )
    start_indexes = range(len(query_words) - len(name_words) + 1)
    return is_citation_or_act and any(
        query_words[start_index : start_index + len(name_words)] == name_words
        for start_index in start_indexes
    )
