"""What a record tells besides its name: what it belongs to, and the words of its other fields."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pydantic_core import from_json

from readingroom.bases.federal.names.similarity import (
    Similarity,
    WordMatch,
    compare,
    find_initials,
    match_word,
    score_initials,
)
from readingroom.bases.federal.schema import fold
from readingroom.storage.database import Database


@dataclass(frozen=True, slots=True)
class ContextFields:
    """The fields of a registry's records where words of a query may be found besides the name."""

    parents: Mapping[str, str] = field(default_factory=dict)
    """Fields with ids of what the record belongs to, each with the registry of those ids."""
    texts: tuple[str, ...] = ()
    """Fields whose words a query may contain."""


_FIELDS: Mapping[str, ContextFields] = {
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
        texts=("title", "question", "description", "amendment", "result", "type")
    ),
    "lda_filings": ContextFields(texts=("title", "period", "activities")),
    "regulations_dot_gov_dockets": ContextFields(
        texts=("title", "id", "agency", "type", "abstract", "keywords", "program", "organization")
    ),
}
_NO_FIELDS = ContextFields()

_PARENT_FACTOR, _FIELD_FACTOR = 0.97, 0.9
"""What a match there counts, compared with 1 for one in the record's own name."""
_MIN_SCORE = 0.6
"""A lower score explains nothing there: among so many words, some have the same initial."""
_MAX_FIELD_WORDS = 200
"""How many words of the other fields are compared: an abstract may be long."""


def get_context_fields(source: str) -> ContextFields:
    return _FIELDS.get(source, _NO_FIELDS)


def get_extra_initials(record: Mapping[str, Any]) -> str:
    """Return letters that an acronym may have besides a name's: `committee` and its chamber."""
    return f"c{(record.get('chamber') or ' ')[0]}" if record.get("source") == "committees" else ""


@dataclass(frozen=True, slots=True)
class Parent:
    """A record that another one belongs to, and how similar its name is to the query."""

    record: Mapping[str, Any]
    similarity: Similarity


class NameContext:
    """Explains words of a query by the context of a record. Each parent is read once."""

    def __init__(self, db: Database, source: str, query: Sequence[str]) -> None:
        self._db = db
        self._fields = get_context_fields(source)
        self._query = query
        self._parents: dict[str, Parent | None] = {}

    def find_parents(self, record: Mapping[str, Any]) -> list[Parent]:
        """Return the records that this one belongs to, as far as they are loaded."""
        parents = (
            self._get_parent(registry, id)
            for name, registry in self._fields.parents.items()
            for id in _to_list(record.get(name))
        )
        return [parent for parent in parents if parent]

    def _get_parent(self, registry: str, id: str) -> Parent | None:
        if id not in self._parents:
            self._parents[id] = self._read_parent(registry, id)
        return self._parents[id]

    def _read_parent(self, registry: str, id: str) -> Parent | None:
        row = self._db.execute(f"SELECT record FROM {registry} WHERE id = ?", (id,)).fetchone()
        names = self._db.execute(
            "SELECT folded FROM name_forms JOIN names USING (name_row) WHERE record_id = ?", (id,)
        ).fetchall()
        if row is None or not names:
            return None
        parent_record = from_json(row["record"])
        candidates = (self._compare(tuple(name["folded"].split()), parent_record) for name in names)
        return Parent(parent_record, max(candidates, key=_sum_scores))

    def _compare(self, name: tuple[str, ...], record: Mapping[str, Any]) -> Similarity:
        """Compare the query with a name; a word of the query may also be the name's initials."""
        similarity = compare(self._query, name)
        matches = list(similarity.matches)
        for index, word in enumerate(self._query):
            if matches[index] is None and 3 <= len(word) <= 6:
                score = score_initials(word, name, get_extra_initials(record))
                match = WordMatch(word, " ".join(name), score, "stands for")
                matches[index] = match if score else None
        return Similarity(tuple(matches), similarity.coverage)

    def match_words(
        self, name: tuple[str, ...], record: Mapping[str, Any], parents: Iterable[Parent]
    ) -> list[WordMatch | None]:
        """Return, for each word of the query, its best match in the context of a record.

        A word may be the initials of a committee whose name other words have: `Intel (HPSCI)`.
        """
        field_words = tuple(islice(self._iterate_field_words(record), _MAX_FIELD_WORDS))
        similarities = [parent.similarity for parent in parents]
        if record.get("source") == "committees":
            similarities.append(self._compare(name, record))
        return [
            _choose_best(
                [
                    *(_scale(names.matches[index], _PARENT_FACTOR) for names in similarities),
                    _match_among(word, field_words),
                ]
            )
            for index, word in enumerate(self._query)
        ]

    def _iterate_field_words(self, record: Mapping[str, Any]) -> Iterator[str]:
        for name in self._fields.texts:
            for text in _iterate_texts(record.get(name)):
                yield from fold.fold_all_words(text)


def _sum_scores(similarity: Similarity) -> tuple[float, float]:
    return sum(match.score for match in similarity.matches if match), similarity.coverage


def _to_list(value: Any) -> Sequence[str]:
    return value if isinstance(value, list) else [value] if value else []


def _iterate_texts(value: Any) -> Iterator[str]:
    """Yield every text in a field, however deep, and the keys above it: `twitter`."""
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list):
        for item in value:
            yield from _iterate_texts(item)
    elif value is not None:
        yield str(value)


def _match_among(word: str, words: tuple[str, ...]) -> WordMatch | None:
    """Return the best match of a word among those of the fields, where initials do not count."""
    if not word:
        return None
    if word in words:
        return WordMatch(word, word, _FIELD_FACTOR, "stands beside")
    if len(word) < 3:
        return None
    if run := find_initials(word, words):
        spelled_out = " ".join(words[run.start : run.stop])
        return _scale(WordMatch(word, spelled_out, 0.85, "stands for"), _FIELD_FACTOR)
    matches = (match_word(word, other) for other in set(words) if len(other) > 2)
    return _scale(_choose_best(matches), _FIELD_FACTOR)


def _scale(match: WordMatch | None, factor: float) -> WordMatch | None:
    if match is None or match.score < _MIN_SCORE:
        return None
    return WordMatch(match.word, match.name_word, match.score * factor, match.relation)


def _choose_best(matches: Iterable[WordMatch | None]) -> WordMatch | None:
    return max((match for match in matches if match), key=lambda match: match.score, default=None)
