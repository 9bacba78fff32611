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
    documents = {row["value"]: row["documents"] for row in rows}
    aliases = fold.load_vocabulary().value_aliases["agency"]
    meant = aliases.get("".join(fold.fold_all_words(agency_name)), agency_name)
    by_initials = {fold_agency(stored_name) for stored_name in match_abbreviation(meant, documents)}
    matches_by_agency: dict[str, AgencyMatch] = {}
    for folded, (slug, stored_spelling) in _group_spellings(documents).items():
        if folded == fold_agency(meant):
            score, reason = 1.0, f"named {stored_spelling!r}"
        elif folded in by_initials:
            score, reason = 0.99, f"{agency_name!r} are the initials of {stored_spelling!r}"
        else:
            query = NameQuery.parse(meant, AGENCIES)
            score = make_candidate(fold.words(stored_spelling), query).best_score * 0.98
            reason = f"named {stored_spelling!r}"
        if score >= MIN_SCORE:
            document_count = max(documents.get(slug, 0), documents.get(stored_spelling, 0))
            matches_by_agency[folded] = AgencyMatch(
                slug, stored_spelling, document_count, round(score, 4), reason
            )
    return sorted(
        matches_by_agency.values(), key=lambda match: (-match.score, -match.documents, match.slug)
    )


def _group_spellings(documents: Mapping[str, int]) -> dict[str, tuple[str, str]]:
    """Return slug and name of each agency, by what tells agencies apart; both are facets."""
    spellings: dict[str, list[str]] = {}
    for spelling in sorted(documents, key=lambda spelling: -documents[spelling]):
        spellings.setdefault(fold_agency(spelling), []).append(spelling)
    return {
        folded: (
            next(
                (spelling for spelling in same_spellings if spelling == spelling.lower()),
                same_spellings[0],
            ),
            next(
                (spelling for spelling in same_spellings if spelling != spelling.lower()),
                same_spellings[0],
            ),
        )
        for folded, same_spellings in spellings.items()
    }


_AGENCY_KINDS = frozenset(
    ("and", "bureau", "department", "dept", "for", "of", "office", "the", "us")
)


def fold_agency(agency_name: str) -> str:
    """Return what tells agencies apart: `Labor Department` is the Department of Labor."""
    name_words = fold.fold_all_words(agency_name)
    return " ".join(sorted(set(name_words) - _AGENCY_KINDS) or name_words)


def match_abbreviation(abbreviation: str, stored_names: Iterable[str]) -> tuple[str, ...]:
    """Return the values whose initials the letters of a text are: `DOT`, `HHS`, `FERC`."""
    letters = abbreviation.replace(".", "").lower()
    if not (letters.isalpha() and 2 <= len(letters) <= 6):
        return ()
    matching = [
        stored_name for stored_name in stored_names if letters in list_initials(stored_name)
    ]
    return (
        tuple(matching) if len({fold_agency(stored_name) for stored_name in matching}) == 1 else ()
    )


def list_initials(agency_name: str) -> set[str]:
    name_words = fold.fold_all_words(agency_name)
    small = fold.load_vocabulary().stopwords
    strong = [word for word in name_words if word not in small]
    with_of = [word for word in name_words if word not in ("the", "and", "for")]
    without_kind = [word for word in strong if word != "department"]
    return {
        "".join(word[0] for word in chosen_words)
        for chosen_words in (strong, with_of, without_kind)
    }
