"""Puts the records that a search proposes into one order, and scores them."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from readingroom.bases.federal.schema.fold import fold_all_words
from readingroom.bases.federal.search.evidence import weigh_records
from readingroom.bases.federal.search.full_text import count_passages
from readingroom.bases.federal.search.passages import PASSAGE_COLUMNS, build_passage_text
from readingroom.bases.federal.search.vectors import FederalVectors
from readingroom.core.modes import Mode
from readingroom.core.scores import ScoreParts
from readingroom.engine.embedding.embedder import Vector
from readingroom.engine.hybrid import PROPOSALS_PER_SEARCH, rank_proposals
from readingroom.engine.ranking import (
    ProposedPassage,
    RankingWeights,
    Relevance,
    find_terms,
    rank_passages,
)
from readingroom.storage.database import Database, Row

# A passage has at most 800 characters; counting the words of all of them would take longer than
# a search.
_AVERAGE_WORDS = 100.0
# Chosen on the tuning questions with `benchmarks/federal/questions.py`. Neither
# words nor vectors of the best passages are added to the question: in a base of many subjects they
# lead away from it, and to know how common each word is would take longer than the search.
_WEIGHTS = RankingWeights(
    word_weight=0.05,
    coverage_weight=0.1,
    feedback_weight=0.0,
    expansion_share=0.0,
    unembedded_cosine=0.2,
    unembedded_word_weight=0.3,
)
_CONGRESS = re.compile(r", \d+(?:st|nd|rd|th) Congress\b")
_AFTER_CITATION = re.compile(r", | - |: ")
_YEAR = re.compile(r" of \d{4}$")
_NAMED_SCORE = 0.95
"""The score of a record whose title is what was asked for."""


@dataclass(frozen=True, slots=True)
class ProposedRecord:
    """A record that a search by words or by meaning proposes, and its best passage there."""

    doc: int
    chunk: int
    match: float = 0.0
    """By words: how well it matches, as a share of the best one's rank. Titles count most in it."""
    cosine: float = 0.0
    """By meaning: how near it is."""


@dataclass(frozen=True, slots=True)
class RankedRecord:
    """A record in the order of a search, and its best passage; `doc` and `chunk` are numbers."""

    doc: int
    chunk: int
    score: float
    parts: ScoreParts


def rank_records(
    db: Database,
    query: str,
    vector: Vector | None,
    index: FederalVectors,
    passage_count: int,
    by_words: Sequence[ProposedRecord],
    by_meaning: Sequence[ProposedRecord],
    max_records: int,
) -> list[RankedRecord]:
    """Return records that either search proposes, each once, by its best passage.

    At least `max_records` are returned, where so many are proposed. Records that the
    query calls by their name come first.
    """
    named_docs = _find_named_docs(db, query, [proposed.doc for proposed in by_words])
    by_words = sorted(by_words, key=lambda proposed: proposed.doc not in named_docs)
    order: Mode = "lexical"
    if by_meaning:
        order = "hybrid" if by_words else "semantic"
    bonuses: dict[int, float] = {}
    if order == "hybrid":
        chunks = [proposed.chunk for proposed in (*by_words, *by_meaning)]
        bonuses = weigh_records(db, query, chunks)
        # What is read side by side is cut off below: by what the records are worth, too.
        by_meaning = sorted(
            by_meaning,
            key=lambda proposed: -(proposed.cosine + bonuses.get(proposed.chunk, 0.0)),
        )
    docs = {str(proposed.chunk): proposed.doc for proposed in (*by_words, *by_meaning)}
    match_strengths = {str(proposed.chunk): proposed.match for proposed in by_words}
    scored = rank_proposals(
        query,
        [str(proposed.chunk) for proposed in by_meaning],
        [str(proposed.chunk) for proposed in by_words],
        partial(
            _compare,
            db,
            query,
            vector,
            index,
            match_strengths,
            bonuses,
            _WordCounts(db, query, passage_count),
        ),
        order,
        # By both, two passages may belong to one record.
        2 * max_records if order == "hybrid" else max_records,
    )
    ranked_by_doc: dict[int, RankedRecord] = {}
    for passage in scored:
        document_number = docs[passage.passage_id]
        ranked_by_doc.setdefault(
            document_number,
            RankedRecord(document_number, int(passage.passage_id), passage.score, passage.parts),
        )
    named = [
        replace(record, score=max(record.score, _NAMED_SCORE))
        for record in ranked_by_doc.values()
        if record.doc in named_docs
    ]
    return [*named, *(record for record in ranked_by_doc.values() if record.doc not in named_docs)]


def _compare(
    db: Database,
    query: str,
    vector: Vector | None,
    index: FederalVectors,
    match_strengths: Mapping[str, float],
    bonuses: Mapping[int, float],
    word_counts: "_WordCounts",
    chunks: Sequence[str],
) -> list[Relevance]:
    """Return how well each passage answers the query, best first."""
    vectors = {} if vector is None else index.get_vectors(chunks)
    passages = []
    for passage_row in _read_passages(db, chunks):
        passage_id = str(passage_row["chunk"])
        guessed = None
        if vectors and passage_id not in vectors:
            guessed = (
                _WEIGHTS.unembedded_cosine
                + _WEIGHTS.unembedded_word_weight * match_strengths.get(passage_id, 0.0)
            )
        passages.append(
            ProposedPassage(
                passage_id, build_passage_text(passage_row), vectors.get(passage_id), guessed
            )
        )
    ranked = rank_passages(query, vector, passages, word_counts, _WEIGHTS)
    weighed = [
        replace(
            relevance,
            fit=round(relevance.fit + bonuses.get(int(relevance.passage_id), 0.0), 6),
            # A guess orders passages; as a likeness it is not told.
            cosine=relevance.cosine if relevance.passage_id in vectors else None,
        )
        for relevance in ranked
    ]
    return sorted(weighed, key=lambda relevance: (-relevance.fit, relevance.passage_id))


def _read_passages(db: Database, chunks: Iterable[str]) -> list[Row]:
    return db.execute(
        f"""SELECT {PASSAGE_COLUMNS} FROM chunks c JOIN passages p USING (chunk)
            WHERE c.chunk IN ({db.dialect.parameter_numbers}) ORDER BY c.chunk""",
        (json.dumps([int(chunk) for chunk in chunks]),),
    ).fetchall()


class _WordCounts:
    """How many passages have each word of a query."""

    def __init__(self, db: Database, query: str, passage_count: int) -> None:
        self.document_count = passage_count
        self.average_length = _AVERAGE_WORDS
        self._counts = {stem: count_passages(db, word) for stem, word in find_terms(query).items()}

    def frequencies(self, stems: Sequence[str]) -> Mapping[str, int]:
        return {stem: self._counts.get(stem, 0) for stem in stems}


# --- records that are named ---


def _find_named_docs(db: Database, query: str, docs: Sequence[int]) -> set[int]:
    """Return those of the records that the query calls by a title, a citation or a short title."""
    query_words = fold_all_words(_YEAR.sub("", query.strip()))
    # The words of a title count most in a search by words, so one that is named is among the first.
    return {
        document_number
        for document_number, title in _read_titles(db, docs[:PROPOSALS_PER_SEARCH])
        if any(_is_named(title_words, query_words) for title_words in _list_names(title))
    }


def _read_titles(db: Database, docs: Sequence[int]) -> list[tuple[int, str]]:
    """Return the titles of records as they are searched: one a line."""
    title_rows = db.execute(
        f"""SELECT c.doc, p.title FROM chunks c JOIN passages p USING (chunk)
            WHERE c.doc IN ({db.dialect.parameter_numbers})
                AND c.part = 'head' AND c.ordinal = 0""",
        (json.dumps(docs),),
    )
    return [(row["doc"], row["title"]) for row in title_rows]


@lru_cache(maxsize=2000)
def _list_names(title_lines: str) -> list[tuple[str, ...]]:
    """Return what a record is called, as folded words: whole titles, citations, short titles."""
    distinct_names: dict[str, None] = {}
    for title_line in title_lines.splitlines():
        # `H.R. 1155, 114th Congress, SCRUB Act of 2016`, `Public Law 113-67: Making …`
        citation, *short_title = _AFTER_CITATION.split(_CONGRESS.sub("", title_line), maxsplit=1)
        distinct_names |= dict.fromkeys(
            _YEAR.sub("", distinct_name) for distinct_name in (title_line, citation, *short_title)
        )
    return [fold_all_words(distinct_name) for distinct_name in distinct_names]


def _is_named(name_words: tuple[str, ...], query_words: tuple[str, ...]) -> bool:
    """Return whether a query is this name, or has it among other words.

    Only citations and acts are looked for among other words: `General` is a title too.
    """
    if name_words == query_words:
        return bool(name_words)
    is_telling = len(name_words) > 1 and (name_words[-1] == "act" or name_words[-1].isdigit())
    starts = range(len(query_words) - len(name_words) + 1)
    return is_telling and any(
        query_words[start_index : start_index + len(name_words)] == name_words
        for start_index in starts
    )
