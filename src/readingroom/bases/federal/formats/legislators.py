"""Reads the YAML of congress-legislators: people, committees, their members, and offices."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from readingroom.bases.federal.formats.parts.files import FileStart, RawFile, load_yaml
from readingroom.bases.federal.formats.parts.people import (
    BIOGUIDE,
    CONGRESS_LEGISLATORS,
    build_bioguide_url,
    build_legislator_stub,
    build_office,
    parse_chamber,
)
from readingroom.bases.federal.schema.congress import get_congress_on
from readingroom.bases.federal.schema.entries import (
    ParsedRecord,
    Provenance,
    build_citation_fields,
    hash_item,
)
from readingroom.bases.federal.schema.ids import make_committee_id, make_membership_id
from readingroom.bases.federal.schema.records import (
    Committee,
    Leadership,
    Legislator,
    Membership,
    Person,
    Term,
)

PARTIES = {"Democrat": "D", "Republican": "R", "Independent": "I"}
_CONGRESS_GOV = "https://www.congress.gov/committees"
# A term comes after the ids, names and bio of a person, so the usual head is too short.
_FIRST_PEOPLE_BYTES = 200_000
_ADDRESS_FIELDS = ("address", "suite", "building", "city", "state", "zip", "phone", "fax", "hours")


class Legislators:
    """`legislators-current.yaml`, `legislators-historical.yaml`."""

    format_id: ClassVar[str] = "legislators/3"
    sources: ClassVar[tuple[str, ...]] = ("legislators", "staff_directories")
    current_source: ClassVar[str] = "legislators"
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        if not start.head.startswith(b"- id:\n"):
            return False
        people = start.read(_FIRST_PEOPLE_BYTES)
        # executive.yaml looks alike, but its people are presidents.
        has_members = b"  - type: sen" in people or b"  - type: rep" in people
        return has_members and b"  - type: prez" not in people

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        people = load_yaml(file.data)
        provenance = _add_file_date(provenance, people)
        lists_current = "current" in file.name
        for person in people:
            member = _build_legislator(person, lists_current, provenance)
            term = person["terms"][-1]
            yield ParsedRecord(member, names=_list_name_forms(person["name"], member.name))
            if member.current and term.get("address"):
                yield _build_washington_office(member, term, provenance)


class Committees:
    """`committees-current.yaml`, `committees-historical.yaml`."""

    format_id: ClassVar[str] = "committees/1"
    sources: ClassVar[tuple[str, ...]] = ("committees",)
    current_source: ClassVar[str] = "committees"
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return start.head.startswith(b"- type: ") and b"thomas_id:" in start.head

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        for committee in load_yaml(file.data):
            subcommittees = committee.get("subcommittees", ())
            id = make_committee_id(str(committee["thomas_id"]))
            ids = [f"{id}{subcommittee['thomas_id']}" for subcommittee in subcommittees]
            yield _build_committee(committee, id, None, ids, provenance)
            for subcommittee, sub_id in zip(subcommittees, ids, strict=True):
                typed = {"type": committee["type"], **subcommittee}
                yield _build_committee(typed, sub_id, committee, [], provenance)


class Rosters:
    """`committee-membership-current.yaml`."""

    format_id: ClassVar[str] = "rosters/1"
    sources: ClassVar[tuple[str, ...]] = ("committee_memberships",)
    # A roster lists every seat of its Congress: whoever is not in it has left the committee.
    complete_for_columns: ClassVar[str | None] = "congress"

    def matches(self, start: FileStart) -> bool:
        first, _, rest = start.head.partition(b"\n")
        return first.endswith(b":") and rest.startswith(b"- name:") and b"bioguide:" in start.head

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        # The file does not say of which Congress it is: it is that of the day it was read.
        congress = get_congress_on(provenance.retrieved_at)
        for code, seats in load_yaml(file.data).items():
            for seat in seats:
                person = Person(bioguide_id=seat["bioguide"], name=seat["name"])
                yield build_legislator_stub(person, provenance)
                yield _build_membership(make_committee_id(code), congress, seat, provenance)


class DistrictOffices:
    """`legislators-district-offices.yaml`."""

    format_id: ClassVar[str] = "district-offices/1"
    sources: ClassVar[tuple[str, ...]] = ("staff_directories",)
    # The file has all offices of its type, and none of another.
    complete_for_columns: ClassVar[str | None] = "type"

    def matches(self, start: FileStart) -> bool:
        return start.head.startswith(b"- id:\n") and b"\n  offices:\n" in start.head

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        for member in load_yaml(file.data):
            for office in member["offices"]:
                yield _build_district_office(member["id"]["bioguide"], office, provenance)


class SocialMedia:
    """`legislators-social-media.yaml`."""

    format_id: ClassVar[str] = "social-media/1"
    sources: ClassVar[tuple[str, ...]] = ("staff_directories",)
    complete_for_columns: ClassVar[str | None] = "type"

    def matches(self, start: FileStart) -> bool:
        return b"- id:\n" in start.head and b"\n  social:\n" in start.head

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        for member in load_yaml(file.data):
            yield _build_accounts(member["id"]["bioguide"], member["social"], provenance)


def _add_file_date(provenance: Provenance, people: list[dict[str, Any]]) -> Provenance:
    """Date a file that bears no date: it is of no earlier day than the newest term that began."""
    today = provenance.retrieved_at[:10]
    began = [term["start"] for person in people for term in person["terms"]]
    newest = max((day for day in began if day <= today), default=None)
    return replace(provenance, file_date=provenance.file_date or newest)


def _is_current(term_end: str, lists_current: bool, provenance: Provenance) -> bool:
    """Return whether a member sits, by the end of the last term and the list's own word.

    Who is appointed until an election may sit longer than the printed end, so a list of current
    members is believed as of its own date, which the record bears.
    """
    today = provenance.retrieved_at[:10]
    return term_end >= (min(provenance.file_date or today, today) if lists_current else today)


def _build_legislator(
    person: dict[str, Any], lists_current: bool, provenance: Provenance
) -> Legislator:
    names = person["name"]
    terms = [_build_term(term) for term in person["terms"]]
    last = terms[-1]
    name = names.get("official_full") or f"{names['first']} {names['last']}"
    bioguide = person["id"]["bioguide"]
    return Legislator(
        id=bioguide,
        title=f"{name} ({last.party or '?'}-{last.state})",
        name=name,
        first_name=names.get("first"),
        last_name=names.get("last"),
        nickname=names.get("nickname"),
        birthday=person.get("bio", {}).get("birthday"),
        gender=person.get("bio", {}).get("gender"),
        chamber=last.chamber,
        party=last.party,
        state=last.state,
        # District 0 is the whole state, so only None means that there is none.
        district=None if last.district is None else str(last.district),
        current=_is_current(last.end, lists_current, provenance),
        # Candidates for several offices have a list of FEC ids; all others are single.
        ids={key: str(value) for key, value in person["id"].items() if not isinstance(value, list)},
        terms=terms,
        leadership=[
            Leadership(**{key: role.get(key) for key in ("title", "chamber", "start", "end")})
            for role in person.get("leadership_roles", ())
        ],
        **build_citation_fields(
            provenance,
            url=build_bioguide_url(bioguide),
            org=BIOGUIDE,
            cite=f"{name}, {BIOGUIDE}",
            published_at=last.start,
            raw_sha256=hash_item(person),
        ),
    )


def _build_washington_office(
    member: Legislator, term: dict[str, Any], provenance: Provenance
) -> ParsedRecord:
    title = f"Washington office of {member.name}"
    contact = {key: term.get(key) for key in ("address", "phone", "fax", "contact_form")}
    return build_office(
        f"{member.id}-washington",
        member.id,
        provenance,
        type="washington_office",
        title=title,
        names=(title, member.name),
        evidence=f"terms: address {term['address']}",
        raw_sha256=hash_item([member.name, term]),
        city="Washington",
        state="DC",
        website=term.get("url"),
        **contact,
    )


def _build_term(term: dict[str, Any]) -> Term:
    return Term(
        chamber="senate" if term["type"] == "sen" else "house",
        start=str(term["start"]),
        end=str(term["end"]),
        state=term["state"],
        district=term.get("district"),
        senate_class=term.get("class"),
        party=PARTIES.get(term.get("party", ""), term.get("party")),
    )


def _list_name_forms(names: dict[str, Any], full: str) -> tuple[str, ...]:
    """Return every form of a name: official, first and last, nickname, with the middle name."""
    last = " ".join(filter(None, (names["last"], names.get("suffix"))))
    middle = names.get("middle") or ""
    # Some go by their middle name, nobody by its initial.
    firsts = [names["first"], names.get("nickname"), middle if len(middle) > 2 else None]
    forms = [full, *(f"{first} {last}" for first in firsts if first)]
    forms.append(f"{names['first']} {middle} {last}")
    return tuple(" ".join(form.split()) for form in forms)


def _build_committee(
    committee: dict[str, Any],
    id: str,
    parent: dict[str, Any] | None,
    subcommittees: list[str],
    provenance: Provenance,
) -> ParsedRecord:
    congresses = [int(congress) for congress in committee.get("congresses", ())]
    name = f"{parent['name']}, {committee['name']}" if parent else committee["name"]
    record = Committee(
        id=id,
        title=name,
        name=committee["name"],
        chamber=parse_chamber(committee["type"]),
        parent_id=id[:4] if parent else None,
        subcommittees=subcommittees,
        jurisdiction=committee.get("jurisdiction"),
        phone=committee.get("phone"),
        address=committee.get("address"),
        # Only committees of the past come with the Congresses in which they existed.
        current=not (congresses or (parent or {}).get("congresses")),
        congresses=congresses,
        former_names=list(dict.fromkeys(committee.get("names", {}).values())),
        **build_citation_fields(
            provenance,
            url=committee.get("url") or (parent or {}).get("url") or _CONGRESS_GOV,
            org=CONGRESS_LEGISLATORS,
            cite=name,
            published_at=None,
            raw_sha256=hash_item([committee, parent["name"] if parent else None]),
        ),
    )
    # The historical file describes the past of committees that still exist: their current record
    # must stay.
    return ParsedRecord(
        record, partial=not record.current, names=(name, committee["name"], *record.former_names)
    )


def _build_membership(
    committee: str, congress: int, seat: dict[str, Any], provenance: Provenance
) -> ParsedRecord:
    id = make_membership_id(congress, committee, seat["bioguide"])
    role = f", {seat['title']}" if seat.get("title") else ""
    title = f"{seat['name']} on {committee}{role}"
    record = Membership(
        id=id,
        title=title,
        committee_id=committee,
        congress=congress,
        bioguide_id=seat["bioguide"],
        name=seat["name"],
        side=seat["party"],
        rank=seat["rank"],
        role=seat.get("title"),
        chamber=seat.get("chamber"),
        **build_citation_fields(
            provenance,
            url=_CONGRESS_GOV,
            org=CONGRESS_LEGISLATORS,
            cite=f"{title}, {congress}th Congress",
            published_at=None,
            raw_sha256=hash_item([committee, seat]),
        ),
    )
    return ParsedRecord(record, names=(seat["name"],))


def _build_district_office(
    bioguide: str, office: dict[str, Any], provenance: Provenance
) -> ParsedRecord:
    city = f"{office['city']}, {office['state']}"
    title = f"District office in {city} ({bioguide})"
    # YAML takes a suite or a ZIP code for a number.
    address = {
        key: None if office.get(key) is None else str(office[key]) for key in _ADDRESS_FIELDS
    }
    return build_office(
        office["id"],
        bioguide,
        provenance,
        type="district_office",
        title=title,
        names=(f"{city} district office", office.get("building") or ""),
        evidence=f"offices: {office['id']} under bioguide {bioguide}",
        raw_sha256=hash_item([bioguide, office]),
        latitude=office.get("latitude"),
        longitude=office.get("longitude"),
        **address,
    )


def _build_accounts(bioguide: str, social: dict[str, Any], provenance: Provenance) -> ParsedRecord:
    accounts = {service: str(name) for service, name in social.items()}
    # `twitter_id` and the like are numbers that nobody searches for.
    handles = [name for service, name in accounts.items() if not service.endswith("_id")]
    return build_office(
        f"{bioguide}-social",
        bioguide,
        provenance,
        type="social_media",
        title=f"Accounts on social media ({bioguide})",
        names=tuple(handles),
        evidence=f"social: {', '.join(accounts)} under bioguide {bioguide}",
        raw_sha256=hash_item([bioguide, social]),
        accounts=accounts,
    )
