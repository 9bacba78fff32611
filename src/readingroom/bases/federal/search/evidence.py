"""What a record says for itself besides its best passage: its length, date and kind.

Chosen by cross-validation on the tuning questions; `docs/federal.md` has what was tried.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from readingroom.storage.database import Database, Row

_YEAR_PATTERN = re.compile(r"\b(?:19[7-9]\d|20[0-4]\d)\b")
_WORD_PATTERN = re.compile(r"[a-z]+")
_MIN_TEXT_LENGTH = 80
"""A record with fewer characters is a title and nothing that could answer a question."""
_KIND_WORDS_BY_SOURCE = {
    "amendments": {"amendment", "amendments"},
    "bills": {"bill", "bills", "resolution"},
    "cbo_cost_estimates": {"cost", "estimate"},
    "cfr_sections": {"regulation", "regulations"},
    "committee_reports": {"report"},
    "congressional_record": {"speech", "speeches"},
    "federal_register": {"notice", "register"},
    "public_laws": {"law", "act"},
    "saps": {"administration", "position"},
    "statute_compilations": {"law", "act"},
}
"""The words by which a question means a kind of record."""
_WHITE_HOUSE_PHRASE = "white house"


@dataclass(frozen=True, slots=True)
class EvidenceWeights:
    """How much each part counts beside the cosine of the best passage, which counts 1."""

    length_weight: float = 0.05
    """Taken off for the root of the logarithm of the passages: among many, one is near by luck."""
    bare_title_weight: float = 0.15
    """Taken off for a record that is a title alone."""
    year_weight: float = 0.12
    """Added for the year that the question names."""
    kind_weight: float = 0.06
    """Added for the kind of record that the question names."""
    amendment_weight: float = 0.05
    """Taken off for an amendment where none is asked for: the bill itself is meant."""


EVIDENCE_WEIGHTS = EvidenceWeights()


def compute_bonuses(
    db: Database,
    query_text: str,
    chunk_numbers: Sequence[int],
    evidence_weights: EvidenceWeights = EVIDENCE_WEIGHTS,
) -> dict[int, float]:
    """Return what is added to the fit of each passage, by its number, for the record it is of."""
    query_years = frozenset(_YEAR_PATTERN.findall(query_text))
    named_source_names = find_named_sources(query_text)
    return {
        evidence_row["chunk"]: _compute_bonus(
            evidence_row, query_years, named_source_names, evidence_weights
        )
        for evidence_row in _read_evidence_rows(db, chunk_numbers)
    }


def find_named_sources(query_text: str) -> frozenset[str]:
    """Return the sources whose kind of record a question names."""
    lowered_query = query_text.lower()
    query_words = set(_WORD_PATTERN.findall(lowered_query))
    named_source_names = {
        source_name
        for source_name, kind_words in _KIND_WORDS_BY_SOURCE.items()
        if kind_words & query_words
    }
    return frozenset(
        named_source_names | {"saps"}
        if _WHITE_HOUSE_PHRASE in lowered_query
        else named_source_names
    )


def _compute_bonus(
    evidence_row: Row,
    query_years: frozenset[str],
    named_source_names: frozenset[str],
    evidence_weights: EvidenceWeights,
) -> float:
    score_bonus = -evidence_weights.length_weight * math.sqrt(math.log(evidence_row["passages"]))
    if evidence_row["passages"] == 1 and evidence_row["characters"] < _MIN_TEXT_LENGTH:
        score_bonus -= evidence_weights.bare_title_weight
    if (evidence_row["published_at"] or "")[:4] in query_years:
        score_bonus += evidence_weights.year_weight
    if evidence_row["source"] in named_source_names:
        score_bonus += evidence_weights.kind_weight
    elif evidence_row["source"] == "amendments":
        score_bonus -= evidence_weights.amendment_weight
    return score_bonus


def _read_evidence_rows(db: Database, chunk_numbers: Sequence[int]) -> list[Row]:
    return db.execute(
        f"""SELECT c.chunk, d.source, d.published_at,
                length(p.abstract) + length(p.body) AS characters,
                (SELECT count(*) FROM chunks k WHERE k.doc = c.doc) AS passages
            FROM chunks c JOIN passages p USING (chunk) JOIN documents d USING (doc)
            WHERE c.chunk IN ({db.dialect.parameter_numbers_sql})""",
        (json.dumps(list(chunk_numbers)),),
    ).fetchall()
