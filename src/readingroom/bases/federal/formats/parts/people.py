"""The people other records name: a short name made readable, and a stub where none is loaded."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
    RecordLink,
    build_citation_fields,
)
from readingroom.bases.federal.schema.ids import make_staff_id
from readingroom.bases.federal.schema.records import (
    Chamber,
    Committee,
    Legislator,
    LinkKind,
    Office,
    Person,
)

LEGISLATORS_PUBLISHER = "unitedstates/congress-legislators"
BIOGUIDE_PUBLISHER = "Biographical Directory of the United States Congress"

_CHAMBER_BY_FIRST_LETTER: dict[str, Chamber] = {
    "h": "house",
    "r": "house",
    "s": "senate",
    "j": "joint",
}

# Sen. Casey, Robert P., Jr. [D-PA]
_FULL_NAME_PATTERN = re.compile(r"^(?P<title>\w+\.)?\s*(?P<name>.+?)\s*\[(?P<rest>[^\]]*)\]$")


@lru_cache(maxsize=4096)  # the same few hundred people are named again and again
def format_name(printed_name: str) -> str:
    """`CRUZ, TED` and `Sen. Cruz, Ted [R-TX]` as `Ted Cruz`."""
    name_match = _FULL_NAME_PATTERN.match(printed_name.strip())
    plain_name = name_match["name"] if name_match else printed_name.strip()
    if plain_name.isupper():
        plain_name = plain_name.title()
    last_name, comma_mark, first_name = plain_name.partition(", ")
    first_name, _, name_suffix = first_name.partition(", ")
    return (
        " ".join(filter(None, (first_name, last_name, name_suffix))) if comma_mark else plain_name
    )


@lru_cache(maxsize=4096)
def parse_affiliation(full_name: str) -> Mapping[str, str | None]:
    """Party, state and district of `Rep. Adams, Alma S. [D-NC-12]`."""
    name_match = _FULL_NAME_PATTERN.match(full_name.strip())
    affiliation_parts = name_match["rest"].split("-") if name_match else []
    field_names = ("party", "state", "district")
    return dict(zip(field_names, [*affiliation_parts, None, None, None][:3], strict=True))


def format_sponsor_lines(bill_sponsors: Iterable[Person]) -> Iterator[str]:
    """Yield a line for each sponsor, for searches: people ask for `Tina Smith's bill on nurses`."""
    for bill_sponsor in bill_sponsors:
        yield f"Sponsor: {bill_sponsor.name}"


def build_bioguide_url(bioguide_id: str) -> str:
    return f"https://bioguide.congress.gov/search/bio/{bioguide_id}"


def build_legislator_stub(named_person: Person, file_stamp: FileStamp) -> ParsedRecord:
    """A legislator of whom only another record speaks."""
    assert named_person.bioguide_id is not None
    url = build_bioguide_url(named_person.bioguide_id)
    legislator_record = Legislator(
        id=named_person.bioguide_id,
        title=named_person.name,
        name=named_person.name,
        party=named_person.party,
        state=named_person.state,
        district=named_person.district,
        ids={"bioguide": named_person.bioguide_id},
        stub=True,
        **build_citation_fields(
            file_stamp, url=url, org=BIOGUIDE_PUBLISHER, cite=named_person.name, published_at=None
        ),
    )
    return ParsedRecord(legislator_record, is_partial=True, names=(named_person.name,))


def build_committee_stub(
    committee_id: str, committee_name: str, chamber_name: str | None, file_stamp: FileStamp
) -> ParsedRecord:
    """A committee of which only a bill speaks."""
    committee_record = Committee(
        id=committee_id,
        title=committee_name,
        name=committee_name,
        chamber=parse_chamber(chamber_name),
        # The code of a subcommittee is that of its committee and two digits.
        parent_id=committee_id[:4] if len(committee_id) > 4 else None,
        current=False,
        stub=True,
        **build_citation_fields(
            file_stamp,
            url="https://www.congress.gov/committees",
            org="Congress.gov",
            cite=committee_name,
            published_at=None,
        ),
    )
    return ParsedRecord(committee_record, is_partial=True, names=(committee_name,))


def build_office_record(
    office_id: str,
    bioguide_id: str,
    file_stamp: FileStamp,
    *,
    contact_place_title: str,
    contact_place_names: tuple[str, ...],
    evidence_text: str,
    raw_sha256: str,
    **record_fields: Any,
) -> ParsedRecord:
    """Where a member is reached, linked to the member."""
    office_record = Office(
        id=make_staff_id(office_id),
        title=contact_place_title,
        bioguide_id=bioguide_id,
        **record_fields,
        **build_citation_fields(
            file_stamp,
            url=record_fields.get("website") or build_bioguide_url(bioguide_id),
            org=LEGISLATORS_PUBLISHER,
            cite=contact_place_title,
            published_at=None,
            raw_sha256=raw_sha256,
        ),
    )
    return ParsedRecord(
        office_record,
        names=contact_place_names,
        links=[RecordLink(LinkKind.OFFICE, bioguide_id, evidence_text)],
    )


def parse_chamber(chamber_word: str | None) -> Chamber | None:
    """`House`, `HOUSE`, `H` and `rep` are the house; likewise the senate."""
    first_letter = (chamber_word or "").strip()[:1].lower()
    return _CHAMBER_BY_FIRST_LETTER.get(first_letter)
