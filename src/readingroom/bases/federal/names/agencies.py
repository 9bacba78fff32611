"""Agencies: the rows of their registry, made of what documents print, and whom a text means."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic_core import from_json

from readingroom.bases.federal.names.similarity import match_word
from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    build_citation_fields,
    hash_item,
)
from readingroom.bases.federal.schema.ids import make_agency_id
from readingroom.bases.federal.schema.records import Agency
from readingroom.storage.database import Database

_PUBLISHER = "Office of the Federal Register"
_AGENCY_PAGES_URL = "https://www.federalregister.gov/agencies/"
_NAMED_SCORE, _INITIALS_SCORE = 1.0, 0.99
# Words that say what an agency is, or whose: not which one.
_WORDS_COMMON_TO_AGENCIES = frozenset(
    ("and", "bureau", "department", "dept", "for", "of", "office", "states", "the", "united", "us")
)


def fold_agency_name(agency_name: str) -> str:
    """Return what tells agencies apart: `Labor Department` is the Department of Labor."""
    agency_slug = make_agency_id(" ".join(fold.fold_all_words(agency_name))).partition(":")[2]
    name_words = fold.fold_all_words(agency_slug)
    return " ".join(sorted(set(name_words) - _WORDS_COMMON_TO_AGENCIES) or name_words)


def shares_distinctive_word(written_name: str, agency_names: Iterable[str]) -> bool:
    """Return whether a text has, in some spelling, a word of a name that tells agencies apart."""
    written_words = fold_agency_name(written_name).split()
    return any(
        match_word(written_word, name_word)
        for agency_name in agency_names
        for name_word in fold_agency_name(agency_name).split()
        for written_word in written_words
    )


def find_abbreviated_names(abbreviation: str, stored_names: Iterable[str]) -> tuple[str, ...]:
    """Return the values whose initials the letters of a text are: `DOT`, `HHS`, `USFWS`."""
    abbreviation_letters = abbreviation.replace(".", "").lower()
    if not (abbreviation_letters.isalpha() and 2 <= len(abbreviation_letters) <= 6):
        return ()
    possible_initials_by_name = {
        stored_name: list_initials(stored_name) for stored_name in stored_names
    }
    letters_without_us = (
        abbreviation_letters[2:]
        if abbreviation_letters.startswith("us") and len(abbreviation_letters) > 4
        else abbreviation_letters
    )
    for tried_letters in dict.fromkeys((abbreviation_letters, letters_without_us)):
        matching_names = [
            stored_name
            for stored_name, possible_initials in possible_initials_by_name.items()
            if tried_letters in possible_initials
        ]
        if len({fold_agency_name(stored_name) for stored_name in matching_names}) == 1:
            return tuple(matching_names)
    return ()


def list_initials(agency_name: str) -> set[str]:
    name_words = fold.fold_all_words(agency_name)
    stopwords = fold.load_vocabulary().stopwords
    content_words = [word for word in name_words if word not in stopwords]
    words_with_of = [word for word in name_words if word not in ("the", "and", "for")]
    words_without_department = [word for word in content_words if word != "department"]
    return {
        "".join(word[0] for word in chosen_words)
        for chosen_words in (content_words, words_with_of, words_without_department)
    }


def expand_abbreviation(written_name: str) -> str:
    """Return the name that an abbreviation stands for, where initials do not tell; else the text.

    `DOE` is the Energy Department, the Pentagon the Defense Department.
    """
    vocabulary = fold.load_vocabulary()
    written_letters = "".join(word for word in fold.fold_all_words(written_name) if word != "the")
    return (
        vocabulary.value_aliases_by_filter["agency"].get(written_letters)
        or vocabulary.agency_name_by_nickname.get(written_letters)
        or written_name
    )


def match_agency_values(
    agency_names: Iterable[str], stored_values: Sequence[str]
) -> tuple[str, ...]:
    """Return the stored names, slugs and codes that mean an agency with one of these names."""
    expanded_names = [expand_abbreviation(agency_name) for agency_name in agency_names]
    folded_names = {fold_agency_name(expanded_name) for expanded_name in expanded_names}
    possible_initials = set().union(*map(list_initials, expanded_names))
    if same_agency_values := tuple(
        stored_value
        for stored_value in stored_values
        if fold_agency_name(expand_abbreviation(stored_value)) in folded_names
        or (stored_value.isupper() and stored_value.lower() in possible_initials)
    ):
        return same_agency_values
    return next(
        filter(
            None,
            (
                find_abbreviated_names(expanded_name, stored_values)
                for expanded_name in expanded_names
            ),
        ),
        (),
    )


# --- whom a text means ---


def find_agencies(db: Database, written_name: str) -> Iterator[tuple[str, float, str]]:
    """Yield the ids of the agencies whose name or abbreviation a text is, with score and reason."""
    expanded_name = expand_abbreviation(written_name)
    name_rows = db.execute(
        """SELECT record_id, form FROM name_forms JOIN names USING (name_row)
           WHERE source = 'agencies'"""
    ).fetchall()
    agency_ids_by_name: dict[str, list[str]] = {}
    for name_row in name_rows:
        agency_ids_by_name.setdefault(name_row["form"], []).append(name_row["record_id"])
    folded_name = fold_agency_name(expanded_name)
    for agency_name, agency_ids in agency_ids_by_name.items():
        if fold_agency_name(agency_name) == folded_name:
            for agency_id in agency_ids:
                yield agency_id, _NAMED_SCORE, f"named {agency_name!r}"
    for agency_name in find_abbreviated_names(expanded_name, agency_ids_by_name):
        for agency_id in agency_ids_by_name[agency_name]:
            reason = f"{written_name!r} are the initials of {agency_name!r}"
            yield agency_id, _INITIALS_SCORE, reason


def read_agency_names_by_code(db: Database) -> dict[str, str]:
    """Return the names of agencies by each slug and abbreviation that records have of them."""
    agency_rows = db.execute("SELECT record FROM agencies WHERE status = 'active'")
    return {
        slug_or_code: agency_fields["name"]
        for agency_fields in (from_json(agency_row["record"]) for agency_row in agency_rows)
        for slug_or_code in (*agency_fields["slugs"], *agency_fields["abbreviations"])
    }


# --- the rows of the registry ---


@dataclass
class _AgencySpellings:
    """The ways in which documents write one agency, each with the number of documents."""

    document_count_by_name: dict[str, int] = field(default_factory=dict)
    document_count_by_slug: dict[str, int] = field(default_factory=dict)
    newest_day_text: str = ""

    def add(self, spelling: str, document_count: int, newest_day_text: str | None) -> None:
        is_slug = " " not in spelling and spelling == spelling.lower()
        document_count_by_spelling = (
            self.document_count_by_slug if is_slug else self.document_count_by_name
        )
        document_count_by_spelling[spelling] = document_count
        self.newest_day_text = max(self.newest_day_text, newest_day_text or "")

    @property
    def names(self) -> list[str]:
        """Its names, the most frequent first; of one word alone only the slug may be known."""
        printed_names = sorted(
            self.document_count_by_name,
            key=lambda printed_name: (-self.document_count_by_name[printed_name], printed_name),
        )
        return printed_names or [
            slug.replace("-", " ").title() for slug in sorted(self.document_count_by_slug)
        ]


def build_agencies(db: Database, built_at: str) -> list[Agency]:
    """Return the agencies that loaded documents name, one for all ways in which they write it."""
    spelling_rows = db.execute(
        """SELECT f.value, count(*) AS documents, max(d.published_at) AS newest_day
           FROM facets f JOIN documents d USING (doc) WHERE f.field = 'agency' GROUP BY f.value"""
    )
    spellings_by_folded_name: dict[str, _AgencySpellings] = {}
    for spelling_row in spelling_rows:
        agency_spellings = spellings_by_folded_name.setdefault(
            fold_agency_name(spelling_row["value"]), _AgencySpellings()
        )
        agency_spellings.add(
            spelling_row["value"], spelling_row["documents"], spelling_row["newest_day"]
        )
    abbreviations_by_folded_name = _collect_abbreviations(db, spellings_by_folded_name)
    id_by_folded_name = {
        fold_agency_name(agency_row["name"]): agency_row["id"]
        for agency_row in db.execute("SELECT id, record ->> 'name' AS name FROM agencies")
    }
    return [
        _build_agency(
            id_by_folded_name.get(folded_name) or make_agency_id(min(agency_spellings.names)),
            agency_spellings,
            abbreviations_by_folded_name.get(folded_name, ()),
            built_at,
        )
        for folded_name, agency_spellings in sorted(spellings_by_folded_name.items())
    ]


def _collect_abbreviations(
    db: Database, spellings_by_folded_name: Mapping[str, _AgencySpellings]
) -> dict[str, list[str]]:
    """Return the abbreviations of agencies: those of the vocabulary, and those dockets are under.

    A code that could be several agencies is left out.
    """
    all_agency_names = [
        agency_name
        for agency_spellings in spellings_by_folded_name.values()
        for agency_name in agency_spellings.names
    ]
    abbreviations_by_folded_name: dict[str, list[str]] = {}
    for abbreviation, expanded_name in (
        fold.load_vocabulary().value_aliases_by_filter["agency"].items()
    ):
        abbreviations_by_folded_name.setdefault(fold_agency_name(expanded_name), []).append(
            abbreviation.upper()
        )
    agency_code_rows = db.execute(
        "SELECT DISTINCT agency FROM regulations_dot_gov_dockets WHERE agency IS NOT NULL"
    )
    for (agency_code,) in agency_code_rows:
        for agency_name in find_abbreviated_names(agency_code, all_agency_names)[:1]:
            abbreviations = abbreviations_by_folded_name.setdefault(
                fold_agency_name(agency_name), []
            )
            if agency_code not in abbreviations:
                abbreviations.append(agency_code)
    return abbreviations_by_folded_name


def _build_agency(
    agency_id: str, agency_spellings: _AgencySpellings, abbreviations: Sequence[str], built_at: str
) -> Agency:
    agency_name, slug = agency_spellings.names[0], agency_id.removeprefix("agency:")
    return Agency(
        id=agency_id,
        title=agency_name,
        name=agency_name,
        slug=slug,
        names=agency_spellings.names,
        abbreviations=sorted(abbreviations),
        slugs=sorted(agency_spellings.document_count_by_slug),
        documents=max(
            sum(agency_spellings.document_count_by_slug.values()),
            *agency_spellings.document_count_by_name.values(),
            0,
        ),
        **build_citation_fields(
            FileStamp(built_at, hash_item(agency_spellings.names)),
            url=f"{_AGENCY_PAGES_URL}{slug}",
            org=_PUBLISHER,
            cite=f"Agency: {agency_name}",
            published_at=None,
            as_of=agency_spellings.newest_day_text or None,
        ),
    )
