"""Reads the YAML of congress-legislators: people, committees, their members, and offices."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.formats.parts.people import (
    BIOGUIDE_PUBLISHER,
    LEGISLATORS_PUBLISHER,
    build_bioguide_url,
    build_legislator_stub,
    build_office_record,
    parse_chamber,
)
from readingroom.bases.federal.formats.parts.yaml_files import parse_yaml
from readingroom.bases.federal.schema.congress import get_congress_on
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
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

PARTY_LETTERS_BY_NAME = {"Democrat": "D", "Republican": "R", "Independent": "I"}
_COMMITTEES_URL = "https://www.congress.gov/committees"
# A term comes after the ids, names and bio of a person, so the usual head is too short.
_RECOGNITION_BYTE_COUNT = 200_000
_ADDRESS_FIELD_NAMES = (
    "address",
    "suite",
    "building",
    "city",
    "state",
    "zip",
    "phone",
    "fax",
    "hours",
)


class LegislatorLoader:
    """`legislators-current.yaml`, `legislators-historical.yaml`."""

    format_id: ClassVar[str] = "legislators/3"
    record_source_names: ClassVar[tuple[str, ...]] = ("legislators", "staff_directories")
    current_source_name: ClassVar[str] = "legislators"
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        if not file_start_reader.first_bytes.startswith(b"- id:\n"):
            return False
        first_bytes = file_start_reader.read_start(_RECOGNITION_BYTE_COUNT)
        # executive.yaml looks alike, but its people are presidents.
        has_member_terms = b"  - type: sen" in first_bytes or b"  - type: rep" in first_bytes
        return has_member_terms and b"  - type: prez" not in first_bytes

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        people_data = parse_yaml(raw_file.data)
        file_stamp = _make_dated_stamp(file_stamp, people_data)
        is_current_list = "current" in raw_file.name
        for person_data in people_data:
            legislator_record = _build_legislator(person_data, is_current_list, file_stamp)
            latest_term_data = person_data["terms"][-1]
            yield ParsedRecord(
                legislator_record,
                names=_list_name_forms(person_data["name"], legislator_record.name),
            )
            if legislator_record.current and latest_term_data.get("address"):
                yield _build_washington_office(legislator_record, latest_term_data, file_stamp)


class CommitteeLoader:
    """`committees-current.yaml`, `committees-historical.yaml`."""

    format_id: ClassVar[str] = "committees/1"
    record_source_names: ClassVar[tuple[str, ...]] = ("committees",)
    current_source_name: ClassVar[str] = "committees"
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return (
            file_start_reader.first_bytes.startswith(b"- type: ")
            and b"thomas_id:" in file_start_reader.first_bytes
        )

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        for committee_data in parse_yaml(raw_file.data):
            subcommittee_items = committee_data.get("subcommittees", ())
            committee_id = make_committee_id(str(committee_data["thomas_id"]))
            subcommittee_ids = [
                f"{committee_id}{subcommittee_data['thomas_id']}"
                for subcommittee_data in subcommittee_items
            ]
            yield _build_committee(committee_data, committee_id, None, subcommittee_ids, file_stamp)
            for subcommittee_data, subcommittee_id in zip(
                subcommittee_items, subcommittee_ids, strict=True
            ):
                subcommittee_with_type = {"type": committee_data["type"], **subcommittee_data}
                yield _build_committee(
                    subcommittee_with_type, subcommittee_id, committee_data, [], file_stamp
                )


class RosterLoader:
    """`committee-membership-current.yaml`."""

    format_id: ClassVar[str] = "rosters/1"
    record_source_names: ClassVar[tuple[str, ...]] = ("committee_memberships",)
    # A roster lists every seat of its Congress: whoever is not in it has left the committee.
    complete_for_columns: ClassVar[str | None] = "congress"

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        first_line_bytes, _, other_line_bytes = file_start_reader.first_bytes.partition(b"\n")
        return (
            first_line_bytes.endswith(b":")
            and other_line_bytes.startswith(b"- name:")
            and b"bioguide:" in file_start_reader.first_bytes
        )

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        # The file does not say of which Congress it is: it is that of the day it was read.
        congress = get_congress_on(file_stamp.retrieved_at)
        for committee_code, committee_seats in parse_yaml(raw_file.data).items():
            for committee_seat in committee_seats:
                named_person = Person(
                    bioguide_id=committee_seat["bioguide"], name=committee_seat["name"]
                )
                yield build_legislator_stub(named_person, file_stamp)
                yield _build_membership(
                    make_committee_id(committee_code), congress, committee_seat, file_stamp
                )


class DistrictOfficeLoader:
    """`legislators-district-offices.yaml`."""

    format_id: ClassVar[str] = "district-offices/1"
    record_source_names: ClassVar[tuple[str, ...]] = ("staff_directories",)
    # The file has all offices of its type, and none of another.
    complete_for_columns: ClassVar[str | None] = "type"

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return (
            file_start_reader.first_bytes.startswith(b"- id:\n")
            and b"\n  offices:\n" in file_start_reader.first_bytes
        )

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        for member_data in parse_yaml(raw_file.data):
            for office_data in member_data["offices"]:
                yield _build_district_office(member_data["id"]["bioguide"], office_data, file_stamp)


class SocialMediaLoader:
    """`legislators-social-media.yaml`."""

    format_id: ClassVar[str] = "social-media/1"
    record_source_names: ClassVar[tuple[str, ...]] = ("staff_directories",)
    complete_for_columns: ClassVar[str | None] = "type"

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return (
            b"- id:\n" in file_start_reader.first_bytes
            and b"\n  social:\n" in file_start_reader.first_bytes
        )

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        for member_data in parse_yaml(raw_file.data):
            yield _build_account_record(
                member_data["id"]["bioguide"], member_data["social"], file_stamp
            )


def _make_dated_stamp(file_stamp: FileStamp, people_data: list[dict[str, Any]]) -> FileStamp:
    """Date a file that bears no date: it is of no earlier day than the newest term that began."""
    retrieval_day = file_stamp.retrieved_at[:10]
    term_start_days = [
        term_data["start"] for person_data in people_data for term_data in person_data["terms"]
    ]
    newest_start_day = max(
        (start_day for start_day in term_start_days if start_day <= retrieval_day), default=None
    )
    return replace(file_stamp, file_date=file_stamp.file_date or newest_start_day)


def _is_current(term_end_day: str, is_current_list: bool, file_stamp: FileStamp) -> bool:
    """Return whether a member sits, by the end of the last term and the list's own word.

    Who is appointed until an election may sit longer than the printed end, so a list of current
    members is believed as of its own date, which the record bears.
    """
    retrieval_day = file_stamp.retrieved_at[:10]
    return term_end_day >= (
        min(file_stamp.file_date or retrieval_day, retrieval_day)
        if is_current_list
        else retrieval_day
    )


def _build_legislator(
    person_data: dict[str, Any], is_current_list: bool, file_stamp: FileStamp
) -> Legislator:
    name_data = person_data["name"]
    office_terms = [_build_office_term(term_data) for term_data in person_data["terms"]]
    last_term = office_terms[-1]
    full_name = name_data.get("official_full") or f"{name_data['first']} {name_data['last']}"
    bioguide_id = person_data["id"]["bioguide"]
    return Legislator(
        id=bioguide_id,
        title=f"{full_name} ({last_term.party or '?'}-{last_term.state})",
        name=full_name,
        first_name=name_data.get("first"),
        last_name=name_data.get("last"),
        nickname=name_data.get("nickname"),
        birthday=person_data.get("bio", {}).get("birthday"),
        gender=person_data.get("bio", {}).get("gender"),
        chamber=last_term.chamber,
        party=last_term.party,
        state=last_term.state,
        # District 0 is the whole state, so only None means that there is none.
        district=None if last_term.district is None else str(last_term.district),
        current=_is_current(last_term.end, is_current_list, file_stamp),
        # Candidates for several offices have a list of FEC ids; all others are single.
        ids={
            id_name: str(id_value)
            for id_name, id_value in person_data["id"].items()
            if not isinstance(id_value, list)
        },
        terms=office_terms,
        leadership=[
            Leadership(
                **{
                    field_name: role_data.get(field_name)
                    for field_name in ("title", "chamber", "start", "end")
                }
            )
            for role_data in person_data.get("leadership_roles", ())
        ],
        **build_citation_fields(
            file_stamp,
            url=build_bioguide_url(bioguide_id),
            org=BIOGUIDE_PUBLISHER,
            cite=f"{full_name}, {BIOGUIDE_PUBLISHER}",
            published_at=last_term.start,
            raw_sha256=hash_item(person_data),
        ),
    )


def _build_washington_office(
    office_member: Legislator, latest_term_data: dict[str, Any], file_stamp: FileStamp
) -> ParsedRecord:
    office_title = f"Washington office of {office_member.name}"
    contact_fields = {
        field_name: latest_term_data.get(field_name)
        for field_name in ("address", "phone", "fax", "contact_form")
    }
    return build_office_record(
        f"{office_member.id}-washington",
        office_member.id,
        file_stamp,
        type="washington_office",
        contact_place_title=office_title,
        contact_place_names=(office_title, office_member.name),
        evidence_text=f"terms: address {latest_term_data['address']}",
        raw_sha256=hash_item([office_member.name, latest_term_data]),
        city="Washington",
        state="DC",
        website=latest_term_data.get("url"),
        **contact_fields,
    )


def _build_office_term(term_data: dict[str, Any]) -> Term:
    return Term(
        chamber="senate" if term_data["type"] == "sen" else "house",
        start=str(term_data["start"]),
        end=str(term_data["end"]),
        state=term_data["state"],
        district=term_data.get("district"),
        senate_class=term_data.get("class"),
        party=PARTY_LETTERS_BY_NAME.get(term_data.get("party", ""), term_data.get("party")),
    )


def _list_name_forms(name_data: dict[str, Any], full_name: str) -> tuple[str, ...]:
    """Return every form of a name: official, first and last, nickname, with the middle name."""
    last_name = " ".join(filter(None, (name_data["last"], name_data.get("suffix"))))
    middle_name = name_data.get("middle") or ""
    # Some go by their middle name, nobody by its initial.
    first_names = [
        name_data["first"],
        name_data.get("nickname"),
        middle_name if len(middle_name) > 2 else None,
    ]
    name_forms = [
        full_name,
        *(f"{first_name} {last_name}" for first_name in first_names if first_name),
    ]
    name_forms.append(f"{name_data['first']} {middle_name} {last_name}")
    return tuple(" ".join(name_form.split()) for name_form in name_forms)


def _build_committee(
    committee_data: dict[str, Any],
    committee_id: str,
    parent_committee_data: dict[str, Any] | None,
    subcommittee_ids: list[str],
    file_stamp: FileStamp,
) -> ParsedRecord:
    congress_numbers = [int(congress) for congress in committee_data.get("congresses", ())]
    committee_name = (
        f"{parent_committee_data['name']}, {committee_data['name']}"
        if parent_committee_data
        else committee_data["name"]
    )
    committee_record = Committee(
        id=committee_id,
        title=committee_name,
        name=committee_data["name"],
        chamber=parse_chamber(committee_data["type"]),
        parent_id=committee_id[:4] if parent_committee_data else None,
        subcommittees=subcommittee_ids,
        jurisdiction=committee_data.get("jurisdiction"),
        phone=committee_data.get("phone"),
        address=committee_data.get("address"),
        # Only committees of the past come with the Congresses in which they existed.
        current=not (congress_numbers or (parent_committee_data or {}).get("congresses")),
        congresses=congress_numbers,
        former_names=list(dict.fromkeys(committee_data.get("names", {}).values())),
        **build_citation_fields(
            file_stamp,
            url=committee_data.get("url")
            or (parent_committee_data or {}).get("url")
            or _COMMITTEES_URL,
            org=LEGISLATORS_PUBLISHER,
            cite=committee_name,
            published_at=None,
            raw_sha256=hash_item(
                [committee_data, parent_committee_data["name"] if parent_committee_data else None]
            ),
        ),
    )
    # The historical file describes the past of committees that still exist: their current record
    # must stay.
    return ParsedRecord(
        committee_record,
        is_partial=not committee_record.current,
        names=(committee_name, committee_data["name"], *committee_record.former_names),
    )


def _build_membership(
    committee_id: str, congress: int, committee_seat: dict[str, Any], file_stamp: FileStamp
) -> ParsedRecord:
    membership_id = make_membership_id(congress, committee_id, committee_seat["bioguide"])
    role_suffix = f", {committee_seat['title']}" if committee_seat.get("title") else ""
    membership_title = f"{committee_seat['name']} on {committee_id}{role_suffix}"
    membership_record = Membership(
        id=membership_id,
        title=membership_title,
        committee_id=committee_id,
        congress=congress,
        bioguide_id=committee_seat["bioguide"],
        name=committee_seat["name"],
        side=committee_seat["party"],
        rank=committee_seat["rank"],
        role=committee_seat.get("title"),
        chamber=committee_seat.get("chamber"),
        **build_citation_fields(
            file_stamp,
            url=_COMMITTEES_URL,
            org=LEGISLATORS_PUBLISHER,
            cite=f"{membership_title}, {congress}th Congress",
            published_at=None,
            raw_sha256=hash_item([committee_id, committee_seat]),
        ),
    )
    return ParsedRecord(membership_record, names=(committee_seat["name"],))


def _build_district_office(
    bioguide_id: str, office_data: dict[str, Any], file_stamp: FileStamp
) -> ParsedRecord:
    city_and_state_text = f"{office_data['city']}, {office_data['state']}"
    office_title = f"District office in {city_and_state_text} ({bioguide_id})"
    # YAML takes a suite or a ZIP code for a number.
    address_fields = {
        field_name: None if office_data.get(field_name) is None else str(office_data[field_name])
        for field_name in _ADDRESS_FIELD_NAMES
    }
    return build_office_record(
        office_data["id"],
        bioguide_id,
        file_stamp,
        type="district_office",
        contact_place_title=office_title,
        contact_place_names=(
            f"{city_and_state_text} district office",
            office_data.get("building") or "",
        ),
        evidence_text=f"offices: {office_data['id']} under bioguide {bioguide_id}",
        raw_sha256=hash_item([bioguide_id, office_data]),
        latitude=office_data.get("latitude"),
        longitude=office_data.get("longitude"),
        **address_fields,
    )


def _build_account_record(
    bioguide_id: str, social_data: dict[str, Any], file_stamp: FileStamp
) -> ParsedRecord:
    account_name_by_service = {
        service_name: str(account_name) for service_name, account_name in social_data.items()
    }
    # `twitter_id` and the like are numbers that nobody searches for.
    account_handles = [
        account_name
        for service_name, account_name in account_name_by_service.items()
        if not service_name.endswith("_id")
    ]
    return build_office_record(
        f"{bioguide_id}-social",
        bioguide_id,
        file_stamp,
        type="social_media",
        contact_place_title=f"Accounts on social media ({bioguide_id})",
        contact_place_names=tuple(account_handles),
        evidence_text=f"social: {', '.join(account_name_by_service)} under bioguide {bioguide_id}",
        raw_sha256=hash_item([bioguide_id, social_data]),
        accounts=account_name_by_service,
    )
