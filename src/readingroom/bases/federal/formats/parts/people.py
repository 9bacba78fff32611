"""The people other records name: a short name made readable, and a stub where none is loaded."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from readingroom.bases.federal.schema.entries import Entry, Link, Origin, cited
from readingroom.bases.federal.schema.ids import staff_id
from readingroom.bases.federal.schema.records import (
    Chamber,
    Committee,
    Legislator,
    LinkKind,
    Office,
    Person,
)

CONGRESS_LEGISLATORS = "unitedstates/congress-legislators"
BIOGUIDE = "Biographical Directory of the United States Congress"

_CHAMBERS: dict[str, Chamber] = {"h": "house", "r": "house", "s": "senate", "j": "joint"}

# Sen. Casey, Robert P., Jr. [D-PA]
_FULL = re.compile(r"^(?P<title>\w+\.)?\s*(?P<name>.+?)\s*\[(?P<rest>[^\]]*)\]$")


@lru_cache(maxsize=4096)  # the same few hundred people are named again and again
def readable(name: str) -> str:
    """`CRUZ, TED` and `Sen. Cruz, Ted [R-TX]` as `Ted Cruz`."""
    match = _FULL.match(name.strip())
    plain = match["name"] if match else name.strip()
    if plain.isupper():
        plain = plain.title()
    last, comma, first = plain.partition(", ")
    first, _, suffix = first.partition(", ")
    return " ".join(filter(None, (first, last, suffix))) if comma else plain


@lru_cache(maxsize=4096)
def details(full_name: str) -> Mapping[str, str | None]:
    """Party, state and district of `Rep. Adams, Alma S. [D-NC-12]`."""
    match = _FULL.match(full_name.strip())
    parts = match["rest"].split("-") if match else []
    names = ("party", "state", "district")
    return dict(zip(names, [*parts, None, None, None][:3], strict=True))


def page_of(bioguide: str) -> str:
    return f"https://bioguide.congress.gov/search/bio/{bioguide}"


def stub(person: Person, origin: Origin) -> Entry:
    """A legislator of whom only another record speaks."""
    assert person.bioguide_id is not None
    url = page_of(person.bioguide_id)
    record = Legislator(
        id=person.bioguide_id,
        title=person.name,
        name=person.name,
        party=person.party,
        state=person.state,
        district=person.district,
        ids={"bioguide": person.bioguide_id},
        stub=True,
        **cited(origin, url=url, org=BIOGUIDE, cite=person.name, published_at=None),
    )
    return Entry(record, partial=True, names=(person.name,))


def committee_stub(id: str, name: str, chamber: str | None, origin: Origin) -> Entry:
    """A committee of which only a bill speaks."""
    record = Committee(
        id=id,
        title=name,
        name=name,
        chamber=chamber_of(chamber),
        parent_id=id[:4] if len(id) > 4 else None,
        current=False,
        stub=True,
        **cited(
            origin,
            url="https://www.congress.gov/committees",
            org="Congress.gov",
            cite=name,
            published_at=None,
        ),
    )
    return Entry(record, partial=True, names=(name,))


def office(
    id: str,
    bioguide: str,
    origin: Origin,
    *,
    title: str,
    names: tuple[str, ...],
    evidence: str,
    raw_sha256: str,
    **told: Any,
) -> Entry:
    """Where a member is reached, linked to the member."""
    record = Office(
        id=staff_id(id),
        title=title,
        bioguide_id=bioguide,
        **told,
        **cited(
            origin,
            url=told.get("website") or page_of(bioguide),
            org=CONGRESS_LEGISLATORS,
            cite=title,
            published_at=None,
            raw_sha256=raw_sha256,
        ),
    )
    return Entry(record, names=names, links=[Link(LinkKind.OFFICE, bioguide, evidence)])


def chamber_of(word: str | None) -> Chamber | None:
    """`House`, `HOUSE`, `H` and `rep` are the house; likewise the senate."""
    letter = (word or "").strip()[:1].lower()
    return _CHAMBERS.get(letter)
