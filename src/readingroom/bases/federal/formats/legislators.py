"""Reads the YAML of congress-legislators: people with their terms, committees, who sits on them."""

from collections.abc import Iterator
from typing import Any, ClassVar

from readingroom.bases.federal.formats.parts.files import RawFile, load_yaml
from readingroom.bases.federal.formats.parts.people import (
    BIOGUIDE,
    CONGRESS_LEGISLATORS,
    chamber_of,
    office,
    page_of,
    stub,
)
from readingroom.bases.federal.schema.congress import congress_on
from readingroom.bases.federal.schema.entries import Entry, Origin, cited, digest
from readingroom.bases.federal.schema.ids import committee_id, membership_id
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


class Legislators:
    """`legislators-current.yaml`, `legislators-historical.yaml`."""

    name: ClassVar[str] = "legislators/2"
    sources: ClassVar[tuple[str, ...]] = ("legislators", "staff_directories")
    current_source: ClassVar[str] = "legislators"
    complete_for: ClassVar[str | None] = None

    def matches(self, file: RawFile) -> bool:
        start = file.normalized_start(200_000)
        # executive.yaml is alike, but its people are presidents.
        members = b"  - type: sen" in start or b"  - type: rep" in start
        return start.startswith(b"- id:\n") and members and b"  - type: prez" not in start

    def read(self, file: RawFile, origin: Origin) -> Iterator[Entry]:
        for told in load_yaml(file.data):
            member, names, term = _legislator(told, origin), told["name"], told["terms"][-1]
            yield Entry(member, names=_name_forms(names, member.name))
            if member.current and term.get("address"):
                yield _washington_office(member, term, origin)


class Committees:
    """`committees-current.yaml`, `committees-historical.yaml`."""

    name: ClassVar[str] = "committees/1"
    sources: ClassVar[tuple[str, ...]] = ("committees",)
    current_source: ClassVar[str] = "committees"
    complete_for: ClassVar[str | None] = None

    def matches(self, file: RawFile) -> bool:
        return file.head.startswith(b"- type: ") and b"thomas_id:" in file.head

    def read(self, file: RawFile, origin: Origin) -> Iterator[Entry]:
        for told in load_yaml(file.data):
            parts = told.get("subcommittees", ())
            whole = committee_id(str(told["thomas_id"]))
            ids = [f"{whole}{part['thomas_id']}" for part in parts]
            yield _committee(told, whole, None, ids, origin)
            for part, id in zip(parts, ids, strict=True):
                yield _committee({"type": told["type"], **part}, id, told, [], origin)


class Rosters:
    """`committee-membership-current.yaml`."""

    name: ClassVar[str] = "rosters/1"
    sources: ClassVar[tuple[str, ...]] = ("committee_memberships",)
    complete_for: ClassVar[str | None] = "congress"

    def matches(self, file: RawFile) -> bool:
        first, _, rest = file.head.partition(b"\n")
        return first.endswith(b":") and rest.startswith(b"- name:") and b"bioguide:" in file.head

    def read(self, file: RawFile, origin: Origin) -> Iterator[Entry]:
        congress = congress_on(origin.retrieved_at)
        for code, seats in load_yaml(file.data).items():
            for seat in seats:
                person = Person(bioguide_id=seat["bioguide"], name=seat["name"])
                yield stub(person, origin)
                yield _membership(committee_id(code), congress, seat, origin)


def _legislator(told: dict[str, Any], origin: Origin) -> Legislator:
    names = told["name"]
    terms = [_term(term) for term in told["terms"]]
    last = terms[-1]
    name = names.get("official_full") or f"{names['first']} {names['last']}"
    bioguide = told["id"]["bioguide"]
    return Legislator(
        id=bioguide,
        title=f"{name} ({last.party or '?'}-{last.state})",
        name=name,
        first_name=names.get("first"),
        last_name=names.get("last"),
        nickname=names.get("nickname"),
        birthday=told.get("bio", {}).get("birthday"),
        gender=told.get("bio", {}).get("gender"),
        chamber=last.chamber,
        party=last.party,
        state=last.state,
        district=None if last.district is None else str(last.district),
        current=last.end >= origin.retrieved_at[:10],
        ids={key: str(value) for key, value in told["id"].items() if not isinstance(value, list)},
        terms=terms,
        leadership=[
            Leadership(**{key: role.get(key) for key in ("title", "chamber", "start", "end")})
            for role in told.get("leadership_roles", ())
        ],
        **cited(
            origin,
            url=page_of(bioguide),
            org=BIOGUIDE,
            cite=f"{name}, {BIOGUIDE}",
            published_at=last.start,
            raw_sha256=digest(told),
        ),
    )


def _washington_office(member: Legislator, term: dict[str, Any], origin: Origin) -> Entry:
    title = f"Washington office of {member.name}"
    told = {key: term.get(key) for key in ("address", "phone", "fax", "contact_form")}
    return office(
        f"{member.id}-washington",
        member.id,
        origin,
        type="washington_office",
        title=title,
        names=(title, member.name),
        evidence=f"terms: address {term['address']}",
        raw_sha256=digest([member.name, term]),
        city="Washington",
        state="DC",
        website=term.get("url"),
        **told,
    )


def _term(term: dict[str, Any]) -> Term:
    return Term(
        chamber="senate" if term["type"] == "sen" else "house",
        start=str(term["start"]),
        end=str(term["end"]),
        state=term["state"],
        district=term.get("district"),
        senate_class=term.get("class"),
        party=PARTIES.get(term.get("party", ""), term.get("party")),
    )


def _name_forms(names: dict[str, Any], full: str) -> tuple[str, ...]:
    """Every way a person may be called: official, first and last, nickname, with the middle."""
    last = " ".join(filter(None, (names["last"], names.get("suffix"))))
    middle = names.get("middle") or ""
    # Some go by their middle name, nobody by its initial.
    firsts = [names["first"], names.get("nickname"), middle if len(middle) > 2 else None]
    forms = [full, *(f"{first} {last}" for first in firsts if first)]
    forms.append(f"{names['first']} {middle} {last}")
    return tuple(" ".join(form.split()) for form in forms)


def _committee(
    told: dict[str, Any], id: str, parent: dict[str, Any] | None, parts: list[str], origin: Origin
) -> Entry:
    congresses = [int(one) for one in told.get("congresses", ())]
    name = f"{parent['name']}, {told['name']}" if parent else told["name"]
    record = Committee(
        id=id,
        title=name,
        name=told["name"],
        chamber=chamber_of(told["type"]),
        parent_id=id[:4] if parent else None,
        subcommittees=parts,
        jurisdiction=told.get("jurisdiction"),
        phone=told.get("phone"),
        address=told.get("address"),
        current=not (congresses or (parent or {}).get("congresses")),
        congresses=congresses,
        former_names=list(dict.fromkeys(told.get("names", {}).values())),
        **cited(
            origin,
            url=told.get("url") or (parent or {}).get("url") or _CONGRESS_GOV,
            org=CONGRESS_LEGISLATORS,
            cite=name,
            published_at=None,
            raw_sha256=digest([told, parent["name"] if parent else None]),
        ),
    )
    # The historical file tells the past of committees that still sit; what they are now stays.
    return Entry(
        record, partial=not record.current, names=(name, told["name"], *record.former_names)
    )


def _membership(committee: str, congress: int, seat: dict[str, Any], origin: Origin) -> Entry:
    id = membership_id(congress, committee, seat["bioguide"])
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
        **cited(
            origin,
            url=_CONGRESS_GOV,
            org=CONGRESS_LEGISLATORS,
            cite=f"{title}, {congress}th Congress",
            published_at=None,
            raw_sha256=digest([committee, seat]),
        ),
    )
    return Entry(record, names=(seat["name"],))
