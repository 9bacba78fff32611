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


def resolve_agency(db: Database, text: str) -> list[AgencyMatch]:
    """Return the agencies of loaded documents that a text may mean, the likeliest first."""
    rows = db.execute(
        "SELECT value, count(*) AS documents FROM facets WHERE field = 'agency' GROUP BY value"
    ).fetchall()
    documents = {row["value"]: row["documents"] for row in rows}
    aliases = fold.load_vocabulary().value_aliases["agency"]
    meant = aliases.get("".join(fold.fold_all_words(text)), text)
    by_initials = {fold_agency(value) for value in match_abbreviation(meant, documents)}
    matches: dict[str, AgencyMatch] = {}
    for folded, (slug, name) in _group_spellings(documents).items():
        if folded == fold_agency(meant):
            score, reason = 1.0, f"named {name!r}"
        elif folded in by_initials:
            score, reason = 0.99, f"{text!r} are the initials of {name!r}"
        else:
            query = NameQuery.parse(meant, AGENCIES)
            score = make_candidate(fold.words(name), query).best_score * 0.98
            reason = f"named {name!r}"
        if score >= MIN_SCORE:
            count = max(documents.get(slug, 0), documents.get(name, 0))
            matches[folded] = AgencyMatch(slug, name, count, round(score, 4), reason)
    return sorted(matches.values(), key=lambda match: (-match.score, -match.documents, match.slug))


def _group_spellings(documents: Mapping[str, int]) -> dict[str, tuple[str, str]]:
    """Return slug and name of each agency, by what tells agencies apart; both are facets."""
    spellings: dict[str, list[str]] = {}
    for value in sorted(documents, key=lambda value: -documents[value]):
        spellings.setdefault(fold_agency(value), []).append(value)
    return {
        folded: (
            next((value for value in values if value == value.lower()), values[0]),
            next((value for value in values if value != value.lower()), values[0]),
        )
        for folded, values in spellings.items()
    }


_AGENCY_KINDS = frozenset(
    ("and", "bureau", "department", "dept", "for", "of", "office", "the", "us")
)


def fold_agency(text: str) -> str:
    """Return what tells agencies apart: `Labor Department` is the Department of Labor."""
    words = fold.fold_all_words(text)
    return " ".join(sorted(set(words) - _AGENCY_KINDS) or words)


def match_abbreviation(text: str, stored: Iterable[str]) -> tuple[str, ...]:
    """Return the values whose initials the letters of a text are: `DOT`, `HHS`, `FERC`."""
    letters = text.replace(".", "").lower()
    if not (letters.isalpha() and 2 <= len(letters) <= 6):
        return ()
    matching = [value for value in stored if letters in list_initials(value)]
    return tuple(matching) if len({fold_agency(value) for value in matching}) == 1 else ()


def list_initials(name: str) -> set[str]:
    words = fold.fold_all_words(name)
    small = fold.load_vocabulary().stopwords
    strong = [word for word in words if word not in small]
    with_of = [word for word in words if word not in ("the", "and", "for")]
    without_kind = [word for word in strong if word != "department"]
    return {"".join(word[0] for word in chosen) for chosen in (strong, with_of, without_kind)}
