"""Whom a name means in a filter: of those who bear it, the ones whose records are here."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic_core import from_json

from readingroom.bases.federal.filters import build_sql_filter, raise_invalid_filter
from readingroom.bases.federal.names import resolver
from readingroom.bases.federal.names.query import NameQuery, QueryWord
from readingroom.bases.federal.names.scoring import SURE_SCORE, EntityMatch, find_sure_match
from readingroom.bases.federal.names.similarity import is_same_but_for_typos
from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME
from readingroom.storage.database import Database

PERSON_FILTERS = frozenset(("bioguide_id", "cosponsor", "member", "speaker", "sponsor"))
EXAMPLE_PERSON_ID = "S000033"

_MAX_NAMED_PEOPLE, _MAX_NEAREST_PEOPLE = 20, 4
_MAX_SURNAME_WORDS = 3
_MAX_SCORE_GAP = 0.1  # of misspelt names that may be meant alike
_MIN_BEGINNING_LETTERS = 3
_NAME_SUFFIXES = frozenset(("jr", "sr", "ii", "iii", "iv", "v"))
_PARENTHESES_PATTERN = re.compile(r"\([^)]*\)|\"[^\"]*\"|\[[^\]]*\]")
# congMember (speaking): Ms. JACKSON-LEE of Texas
_SPEAKER_PATTERN = re.compile(r":\s*(?:Mr|Mrs|Ms|Miss|Dr)\.?\s+(.+?)(?:\s+of\s+.+)?$")


class OccurrenceCounter(Protocol):
    """Where the values of a filter are stored, and how often."""

    def count_records(self, searched_values: Sequence[str]) -> dict[str, int]:
        """Return how many records have each of some values; those that none has are left out."""


@dataclass(frozen=True, slots=True)
class _Person:
    """Somebody whose surname a text has, and whose other names do not speak against it."""

    id: str
    record: Mapping[str, Any]
    has_known_given_names: bool
    """False of whom records print the surname only: it may be another's."""


def resolve_person(
    db: Database, value_counter: OccurrenceCounter, filter_name: str, written_name: str
) -> str:
    """Return the id of whom a name means among the people who occur in the records.

    Where none of that name does, it is whom the registry has. Raise InvalidArguments where it may
    be several, with those who occur, most frequent first, and where it is nobody's.
    """
    namesakes = find_namesakes(db, written_name)
    if not namesakes:
        return _choose_match(db, value_counter, filter_name, written_name)
    count_by_id = value_counter.count_records([namesake.id for namesake in namesakes])
    occurring_people = [namesake for namesake in namesakes if namesake.id in count_by_id]
    surely_named_people = [namesake for namesake in namesakes if namesake.has_known_given_names]
    # Of whom the whole name is written comes before one of whom only the surname is known.
    possible_people = (
        [person for person in occurring_people if person.has_known_given_names]
        or occurring_people
        or namesakes
    )
    if not occurring_people:
        # Nobody of that name is here: the registry's person, whom the answer's note names.
        named_ids = {namesake.id for namesake in namesakes}
        entity_matches = _list_matches(db, written_name)
        sure_match = find_sure_match([match for match in entity_matches if match.id in named_ids])
        if sure_match:
            return sure_match.id
    if len(possible_people) == 1:
        if possible_people[0].has_known_given_names or not surely_named_people:
            return possible_people[0].id
        possible_people = [*possible_people, *surely_named_people]
    title_by_id = {person.id: str(person.record["title"]) for person in possible_people}
    people_text = _format_people(title_by_id, count_by_id)
    raise_invalid_filter(filter_name, f"{written_name!r} may be several: {people_text}; say its id")


def _list_matches(db: Database, written_name: str) -> list[EntityMatch]:
    legislator_source = SOURCES_BY_NAME["legislators"]
    every_legislator = build_sql_filter(legislator_source.record_table, {})
    return resolver.resolve_name(db, legislator_source, written_name, every_legislator)


def _choose_match(
    db: Database, value_counter: OccurrenceCounter, filter_name: str, written_name: str
) -> str:
    """Return whom a text means that is nobody's surname: a post, initials, a misspelt name."""
    entity_matches = _list_matches(db, written_name)
    likely_matches = [
        entity_match
        for entity_match in entity_matches
        if entity_match.score >= max(SURE_SCORE, entity_matches[0].score - _MAX_SCORE_GAP)
    ]
    count_by_id = value_counter.count_records([match.id for match in likely_matches])
    query_words = _list_name_words(NameQuery.parse_name(written_name, "legislators"))
    whole_matches = [
        entity_match
        for entity_match in likely_matches
        if not _is_part_of_name(db, query_words, entity_match)
    ]
    occurring_matches = [match for match in whole_matches if match.id in count_by_id]
    if len(occurring_matches) == 1:
        return occurring_matches[0].id
    if sure_match := find_sure_match(occurring_matches or whole_matches):
        return sure_match.id
    listed_matches = occurring_matches or likely_matches or entity_matches[:_MAX_NEAREST_PEOPLE]
    people_text = _format_people(
        {match.id: str(match.record["title"]) for match in listed_matches}, count_by_id
    )
    if whole_matches:
        problem_text = f"{written_name!r} may be several: {people_text}; say its id"
    elif listed_matches:
        problem_text = (
            f"{written_name!r} is nobody's surname here; the nearest: {people_text}; "
            "say the surname or the id"
        )
    else:
        problem_text = (
            f"{written_name!r} is no id and no name of legislators here; an id such as "
            f"`{EXAMPLE_PERSON_ID}`"
        )
    raise_invalid_filter(filter_name, problem_text)


def _is_part_of_name(
    db: Database, query_words: Sequence[QueryWord], entity_match: EntityMatch
) -> bool:
    """Return whether a text is one word of a name, and not the surname: `Abraham`, `Van`."""
    if len(query_words) != 1:
        return False
    name_words, surname = _read_name_words(db, entity_match.id, entity_match.record)
    query_text = query_words[0].text
    if is_same_but_for_typos(query_text, "".join(surname)):
        return False
    return any(
        is_same_but_for_typos(query_text, name_word) or _is_given_name(query_text, name_word)
        for name_word in name_words
    )


def _format_people(title_by_id: Mapping[str, str], count_by_id: Mapping[str, int]) -> str:
    """Return people for an error, those who occur most often first."""
    person_ids = sorted(title_by_id, key=lambda person_id: -count_by_id.get(person_id, 0))
    people_text = ", ".join(
        f"{person_id} ({title_by_id[person_id]})" for person_id in person_ids[:_MAX_NAMED_PEOPLE]
    )
    more_count = len(person_ids) - _MAX_NAMED_PEOPLE
    return f"{people_text}, and {more_count} more" if more_count > 0 else people_text


# --- who bears a name ---


def find_namesakes(db: Database, written_name: str) -> list[_Person]:
    """Return the people whose whole surname a text has, and nothing that is not theirs.

    A word that may be a given name or a part of a surname alone is nobody's surname.
    """
    name_query = NameQuery.parse_name(written_name, "legislators")
    query_words = _list_name_words(name_query)
    surname_spans = {
        "".join(word.text for word in query_words[start_index:end_index]): (start_index, end_index)
        for start_index in range(len(query_words))
        for end_index in range(
            start_index + 1, min(len(query_words), start_index + _MAX_SURNAME_WORDS) + 1
        )
        if not any(word.is_never_name for word in query_words[start_index:end_index])
    }
    namesakes = []
    for person_id, person_fields in _read_people_named(db, query_words, surname_spans):
        name_words, surname = _read_name_words(db, person_id, person_fields)
        surname_span = surname_spans.get("".join(surname))
        if surname_span is None:
            continue
        other_words = (*query_words[: surname_span[0]], *query_words[surname_span[1] :])
        given_names = [word for word in name_words if word not in surname]
        unexplained_words = [
            word for word in other_words if not _is_confirmed(word, given_names, person_fields)
        ]
        if not unexplained_words:
            namesakes.append(_Person(person_id, person_fields, True))
        elif not given_names and not any(word.meaning for word in unexplained_words):
            namesakes.append(_Person(person_id, person_fields, False))
    return namesakes


def _list_name_words(name_query: NameQuery) -> list[QueryWord]:
    return [word for word in name_query.words if word.text not in _NAME_SUFFIXES]


def _read_people_named(
    db: Database, query_words: Sequence[QueryWord], surnames: Iterable[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the people one of whose names ends in one of these surnames, each written together."""
    words = list(dict.fromkeys(word.text for word in query_words if not word.is_never_name))
    if not words:
        return
    name_rows = db.execute(
        f"""SELECT f.record_id AS person_id, n.folded AS folded
            FROM names n JOIN name_forms f USING (name_row)
            WHERE n.source = 'legislators' AND ({" OR ".join(["n.folded LIKE ?"] * len(words))})""",
        tuple(f"%{fold.pad_words([word])}%" for word in words),
    )
    searched_surnames = set(surnames)
    person_ids = sorted(
        {
            name_row["person_id"]
            for name_row in name_rows
            if searched_surnames.intersection(_iterate_endings(name_row["folded"].split()))
        }
    )
    if not person_ids:
        return
    person_rows = db.execute(
        f"""SELECT id, record FROM legislators WHERE status = 'active'
            AND id IN ({", ".join("?" * len(person_ids))}) ORDER BY id""",
        person_ids,
    )
    for person_row in person_rows.fetchall():
        yield person_row["id"], from_json(person_row["record"])


def _iterate_endings(name_words: Sequence[str]) -> Iterator[str]:
    plain_words = [word for word in name_words if word not in _NAME_SUFFIXES]
    for word_count in range(1, _MAX_SURNAME_WORDS + 1):
        yield "".join(plain_words[-word_count:])


def _read_name_words(
    db: Database, person_id: str, person_fields: Mapping[str, Any]
) -> tuple[list[str], tuple[str, ...]]:
    """Return all words of somebody's names, and those of the surname."""
    form_rows = db.execute("SELECT form FROM name_forms WHERE record_id = ?", (person_id,))
    name_words = [
        word for form_row in form_rows.fetchall() for word in _fold_person_name(form_row["form"])
    ]
    for field_name in ("first_name", "nickname"):
        name_words += _fold_person_name(person_fields.get(field_name) or "")
    if last_name := person_fields.get("last_name"):
        return name_words, _fold_person_name(last_name)
    return name_words, _find_surname(db, person_id, person_fields["name"])


def _fold_person_name(printed_name: str) -> tuple[str, ...]:
    folded_words = fold.fold_all_words(printed_name)
    return tuple(word for word in folded_words if word not in _NAME_SUFFIXES)


def _find_surname(db: Database, person_id: str, whole_name: str) -> tuple[str, ...]:
    """Return the surname of somebody whom no list of members has: as votes and speeches print it.

    Without those it is the last word: nothing tells that Jackson Lee is one.
    """
    plain_name = _PARENTHESES_PATTERN.sub(" ", whole_name)
    name_words = _fold_person_name(plain_name)
    vote_row = db.execute(
        "SELECT name FROM member_votes WHERE bioguide_id = ? LIMIT 1", (person_id,)
    ).fetchone()
    if vote_row:
        voter_name = _PARENTHESES_PATTERN.sub(" ", vote_row["name"]).partition(",")[0]
        voter_words = _fold_person_name(voter_name)
        if voter_words and name_words[-len(voter_words) :] == voter_words:
            return voter_words
    speech_row = db.execute(
        "SELECT evidence FROM links WHERE to_id = ? AND kind = 'speech' LIMIT 1", (person_id,)
    ).fetchone()
    if speech_row and (speaker_match := _SPEAKER_PATTERN.search(speech_row["evidence"])):
        speaker_words = _fold_person_name(speaker_match[1])
        # Namesakes are printed with their whole names: Ms. LORETTA SANCHEZ of California.
        if speaker_words != name_words and name_words[-len(speaker_words) :] == speaker_words:
            return speaker_words
    for last_word in reversed(plain_name.split()):
        if surname := _fold_person_name(last_word):
            return surname
    return name_words


def _is_confirmed(
    query_word: QueryWord, given_names: Iterable[str], person_fields: Mapping[str, Any]
) -> bool:
    """Return whether a word beside the surname is somebody's given name, state, party or such."""
    if not query_word.is_never_name and any(
        _is_given_name(query_word.text, given_name) for given_name in given_names
    ):
        return True
    if query_word.meaning is None:
        return query_word.may_mean_record_kind
    meaning_kind, meaning_value = query_word.meaning
    field_name = "district" if meaning_kind == "number" else meaning_kind
    known_values = {
        str(value)
        for value in (
            person_fields.get(field_name),
            *(term.get(field_name) for term in person_fields.get("terms") or ()),
        )
        if value is not None
    }
    return not known_values or meaning_value in known_values


def _is_given_name(query_text: str, given_name: str) -> bool:
    """Return whether a word may be a given name: as written, as a nickname, shortened."""
    if query_text == given_name:
        return True
    if len(query_text) == 1:
        return query_text == given_name[0]
    if given_name in fold.load_vocabulary().equivalent_names_by_name.get(query_text, ()):
        return True
    return len(query_text) >= _MIN_BEGINNING_LETTERS and given_name.startswith(query_text)
