"""What a record tells besides its name: what it belongs to, and the words of its other fields."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pydantic_core import from_json

from readingroom.bases.federal.names.similarity import (
    Similarity,
    WordMatch,
    compare_words,
    find_initials,
    match_word,
    score_initials,
)
from readingroom.bases.federal.schema import fold
from readingroom.storage.database import Database


@dataclass(frozen=True, slots=True)
class ContextFields:
    """The fields of a registry's records where words of a query may be found besides the name."""

    registry_name_by_parent_field: Mapping[str, str] = field(default_factory=dict)
    """Fields with ids of what the record belongs to, each with the registry of those ids."""
    text_field_names: tuple[str, ...] = ()
    """Fields whose words a query may contain."""


_CONTEXT_FIELDS_BY_SOURCE: Mapping[str, ContextFields] = {
    "committees": ContextFields({"parent_id": "committees"}),
    "staff_directories": ContextFields(
        {"bioguide_id": "legislators"},
        ("title", "type", "city", "building", "address", "zip", "accounts"),
    ),
    "committee_memberships": ContextFields(
        {"committee_id": "committees", "bioguide_id": "legislators"}, ("role", "side")
    ),
    "hearings": ContextFields(
        {"committees": "committees"}, ("id", "title", "type", "location", "bills")
    ),
    "roll_call_votes": ContextFields(
        text_field_names=("title", "question", "description", "amendment", "result", "type")
    ),
    "lda_filings": ContextFields(text_field_names=("title", "period", "activities")),
    "regulations_dot_gov_dockets": ContextFields(
        text_field_names=(
            "title",
            "id",
            "agency",
            "type",
            "abstract",
            "keywords",
            "program",
            "organization",
        )
    ),
}
_NO_CONTEXT_FIELDS = ContextFields()

_PARENT_SCORE_FACTOR, _FIELD_SCORE_FACTOR = 0.97, 0.9
"""What a match there counts, compared with 1 for one in the record's own name."""
# A lower score explains nothing there: among so many words, some have the same initial.
_MIN_WORD_SCORE = 0.6
# How many words of the other fields are compared: an abstract may be long.
_MAX_FIELD_WORDS = 200


def get_context_fields(source_name: str) -> ContextFields:
    return _CONTEXT_FIELDS_BY_SOURCE.get(source_name, _NO_CONTEXT_FIELDS)


def get_extra_initials(record_fields: Mapping[str, Any]) -> str:
    """Return letters that an acronym may have besides a name's: `committee` and its chamber."""
    return (
        f"c{(record_fields.get('chamber') or ' ')[0]}"
        if record_fields.get("source") == "committees"
        else ""
    )


@dataclass(frozen=True, slots=True)
class Parent:
    """A record that another one belongs to, and how similar its name is to the query."""

    record_fields: Mapping[str, Any]
    similarity: Similarity


class NameContext:
    """Explains words of a query by the context of a record. Each parent is read once."""

    def __init__(self, db: Database, source_name: str, query_words: Sequence[str]) -> None:
        self._db = db
        self._context_fields = get_context_fields(source_name)
        self._query_words = query_words
        self._parents_by_id: dict[str, Parent | None] = {}

    def find_parents(self, record_fields: Mapping[str, Any]) -> list[Parent]:
        """Return the records that this one belongs to, as far as they are loaded."""
        registry_name_by_field = self._context_fields.registry_name_by_parent_field
        parents_or_none = (
            self._find_parent(registry_name, parent_id)
            for field_name, registry_name in registry_name_by_field.items()
            for parent_id in _list_field_values(record_fields.get(field_name))
        )
        return [parent for parent in parents_or_none if parent]

    def _find_parent(self, registry_name: str, parent_id: str) -> Parent | None:
        if parent_id not in self._parents_by_id:
            self._parents_by_id[parent_id] = self._read_parent(registry_name, parent_id)
        return self._parents_by_id[parent_id]

    def _read_parent(self, registry_name: str, parent_id: str) -> Parent | None:
        parent_row = self._db.execute(
            f"SELECT record FROM {registry_name} WHERE id = ?", (parent_id,)
        ).fetchone()
        name_rows = self._db.execute(
            "SELECT folded FROM name_forms JOIN names USING (name_row) WHERE record_id = ?",
            (parent_id,),
        ).fetchall()
        if parent_row is None or not name_rows:
            return None
        parent_fields = from_json(parent_row["record"])
        similarities = (
            self._compare_query_with_name(tuple(name_row["folded"].split()), parent_fields)
            for name_row in name_rows
        )
        return Parent(parent_fields, max(similarities, key=_make_similarity_sort_key))

    def _compare_query_with_name(
        self, name_words: tuple[str, ...], record_fields: Mapping[str, Any]
    ) -> Similarity:
        """Compare the query with a name; a word of the query may also be the name's initials."""
        similarity = compare_words(self._query_words, name_words)
        word_matches = list(similarity.word_matches)
        for word_index, query_word_text in enumerate(self._query_words):
            if word_matches[word_index] is None and 3 <= len(query_word_text) <= 6:
                initials_score = score_initials(
                    query_word_text, name_words, get_extra_initials(record_fields)
                )
                initials_word_match = WordMatch(
                    query_word_text, " ".join(name_words), initials_score, "stands for"
                )
                word_matches[word_index] = initials_word_match if initials_score else None
        return Similarity(tuple(word_matches), similarity.coverage)

    def match_query_words(
        self,
        name_words: tuple[str, ...],
        record_fields: Mapping[str, Any],
        parents: Iterable[Parent],
    ) -> list[WordMatch | None]:
        """Return, for each word of the query, its best match in the context of a record.

        A word may be the initials of a committee whose name other words have: `Intel (HPSCI)`.
        """
        field_words = tuple(islice(self._iterate_field_words(record_fields), _MAX_FIELD_WORDS))
        similarities = [parent.similarity for parent in parents]
        if record_fields.get("source") == "committees":
            similarities.append(self._compare_query_with_name(name_words, record_fields))
        return [
            _choose_best_match(
                [
                    *(
                        _scale_likely_match(
                            parent_similarity.word_matches[word_index], _PARENT_SCORE_FACTOR
                        )
                        for parent_similarity in similarities
                    ),
                    _match_among_field_words(query_word_text, field_words),
                ]
            )
            for word_index, query_word_text in enumerate(self._query_words)
        ]

    def _iterate_field_words(self, record_fields: Mapping[str, Any]) -> Iterator[str]:
        for field_name in self._context_fields.text_field_names:
            for field_text in _iterate_field_texts(record_fields.get(field_name)):
                yield from fold.fold_all_words(field_text)


def _make_similarity_sort_key(similarity: Similarity) -> tuple[float, float]:
    return sum(
        word_match.score for word_match in similarity.word_matches if word_match
    ), similarity.coverage


def _list_field_values(field_value: Any) -> Sequence[str]:
    return field_value if isinstance(field_value, list) else [field_value] if field_value else []


def _iterate_field_texts(field_value: Any) -> Iterator[str]:
    """Yield every text in a field, however deep, and the keys above it: `twitter`."""
    if isinstance(field_value, Mapping):
        field_value = [*field_value.keys(), *field_value.values()]
    if isinstance(field_value, list):
        for inner_value in field_value:
            yield from _iterate_field_texts(inner_value)
    elif field_value is not None:
        yield str(field_value)


def _match_among_field_words(
    query_word_text: str, field_words: tuple[str, ...]
) -> WordMatch | None:
    """Return the best match of a word among those of the fields, where initials do not count."""
    if not query_word_text:
        return None
    if query_word_text in field_words:
        return WordMatch(query_word_text, query_word_text, _FIELD_SCORE_FACTOR, "stands beside")
    if len(query_word_text) < 3:
        return None
    if initials_range := find_initials(query_word_text, field_words):
        spelled_out_text = " ".join(field_words[initials_range.start : initials_range.stop])
        return _scale_likely_match(
            WordMatch(query_word_text, spelled_out_text, 0.85, "stands for"), _FIELD_SCORE_FACTOR
        )
    word_matches = (
        match_word(query_word_text, field_word)
        for field_word in set(field_words)
        if len(field_word) > 2
    )
    return _scale_likely_match(_choose_best_match(word_matches), _FIELD_SCORE_FACTOR)


def _scale_likely_match(word_match: WordMatch | None, score_factor: float) -> WordMatch | None:
    if word_match is None or word_match.score < _MIN_WORD_SCORE:
        return None
    return WordMatch(
        word_match.query_word_text,
        word_match.name_word,
        word_match.score * score_factor,
        word_match.relation,
    )


def _choose_best_match(word_matches: Iterable[WordMatch | None]) -> WordMatch | None:
    return max(
        (word_match for word_match in word_matches if word_match),
        key=lambda word_match: word_match.score,
        default=None,
    )
