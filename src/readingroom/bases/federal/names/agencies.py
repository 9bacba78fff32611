"""Agencies as documents name them: their names, slugs and abbreviations, and who is meant."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from readingroom.bases.federal.names.query import NameQuery
from readingroom.bases.federal.names.scoring import MIN_SCORE, make_candidate
from readingroom.bases.federal.schema import fold
from readingroom.storage.database import Database

AGENCIES = "agencies"
_PAGE = "https://www.federalregister.gov/agencies/"


@dataclass(frozen=True, slots=True)
class AgencyMatch:
    """An agency that may be meant: its slug and printed name, how surely, and why."""

    slug: str
    name: str
    documents: int
    score: float
    reason: str

    def to_record(self) -> dict[str, object]:
        return {
            "id": self.slug,
            "source": AGENCIES,
            "title": self.name,
            "name": self.name,
            "slug": self.slug,
            "documents": self.documents,
            "url": f"{_PAGE}{self.slug}",
            "score": self.score,
            "why": [self.reason],
        }


def resolve_agency(db: Database, agency_name: str) -> list[AgencyMatch]:
    """Return the agencies of loaded documents that a text may mean, the likeliest first."""
    rows = db.execute(
        "SELECT value, count(*) AS documents FROM facets WHERE field = 'agency' GROUP BY value"
    ).fetchall()
    count_by_spelling = {row["value"]: row["documents"] for row in rows}
    aliases = fold.load_vocabulary().value_aliases["agency"]
    meant_name = aliases.get("".join(fold.fold_all_words(agency_name)), agency_name)
    agencies_with_initials = {
        fold_agency_name(stored_name)
        for stored_name in match_abbreviation(meant_name, count_by_spelling)
    }
    matches_by_agency: dict[str, AgencyMatch] = {}
    for folded_name, (slug, stored_spelling) in _group_spellings(count_by_spelling).items():
        if folded_name == fold_agency_name(meant_name):
            score, reason = 1.0, f"named {stored_spelling!r}"
        elif folded_name in agencies_with_initials:
            score, reason = 0.99, f"{agency_name!r} are the initials of {stored_spelling!r}"
        else:
            query = NameQuery.parse(meant_name, AGENCIES)
            score = make_candidate(fold.fold_name(stored_spelling), query).best_score * 0.98
            reason = f"named {stored_spelling!r}"
        if score >= MIN_SCORE:
            document_count = max(
                count_by_spelling.get(slug, 0), count_by_spelling.get(stored_spelling, 0)
            )
            matches_by_agency[folded_name] = AgencyMatch(
                slug, stored_spelling, document_count, round(score, 4), reason
            )
    return sorted(
        matches_by_agency.values(), key=lambda match: (-match.score, -match.documents, match.slug)
    )


def _group_spellings(count_by_spelling: Mapping[str, int]) -> dict[str, tuple[str, str]]:
    """Return slug and name of each agency, by what tells agencies apart; both are facets."""
    spellings_by_agency: dict[str, list[str]] = {}
    for spelling in sorted(count_by_spelling, key=lambda spelling: -count_by_spelling[spelling]):
        spellings_by_agency.setdefault(fold_agency_name(spelling), []).append(spelling)
    return {
        folded_name: (
            next(
                (spelling for spelling in agency_spellings if spelling == spelling.lower()),
                agency_spellings[0],
            ),
            next(
                (spelling for spelling in agency_spellings if spelling != spelling.lower()),
                agency_spellings[0],
            ),
        )
        for folded_name, agency_spellings in spellings_by_agency.items()
    }


_AGENCY_KINDS = frozenset(
    ("and", "bureau", "department", "dept", "for", "of", "office", "the", "us")
)


def fold_agency_name(agency_name: str) -> str:
    """Return what tells agencies apart: `Labor Department` is the Department of Labor."""
    name_words = fold.fold_all_words(agency_name)
    return " ".join(sorted(set(name_words) - _AGENCY_KINDS) or name_words)


def match_abbreviation(abbreviation: str, stored_names: Iterable[str]) -> tuple[str, ...]:
    """Return the values whose initials the letters of a text are: `DOT`, `HHS`, `FERC`."""
    letters = abbreviation.replace(".", "").lower()
    if not (letters.isalpha() and 2 <= len(letters) <= 6):
        return ()
    matching_names = [
        stored_name for stored_name in stored_names if letters in list_initials(stored_name)
    ]
    return (
        tuple(matching_names)
        if len({fold_agency_name(stored_name) for stored_name in matching_names}) == 1
        else ()
    )


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
