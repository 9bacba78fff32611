"""Reads hearings and meetings: the XML of the House's repository, the JSON of api.congress.gov."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.formats.parts.mentions import find_bill_links
from readingroom.bases.federal.formats.parts.people import build_committee_stub, parse_chamber
from readingroom.bases.federal.formats.parts.xml import find_text, parse_iso_date, parse_xml
from readingroom.bases.federal.schema.congress import LABEL_BY_BILL_TYPE, format_ordinal
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
    RecordLink,
    build_citation_fields,
    hash_item,
)
from readingroom.bases.federal.schema.ids import (
    make_bill_id,
    make_committee_id,
    make_meeting_id,
    make_transcript_id,
)
from readingroom.bases.federal.schema.records import Chamber, Hearing, LinkKind, Witness

_MEETING_TYPES_BY_CODE = {"HMTG": "meeting", "HHRG": "hearing", "HMKP": "markup"}
_WITNESS_NAME_TAGS = ("honorific", "firstname", "middlename", "lastname")
_HOUSE_PUBLISHER = "Clerk of the House, Committee Repository"
_CONGRESS_GOV_PUBLISHER = "Congress.gov"
_EVENTS_URL = "https://www.congress.gov/event"

CommitteeIdAndName = tuple[str, str]
"""A committee: its id and name."""


class HouseMeetingLoader:
    """`HMTG-113-RU00-20140519.xml` of docs.house.gov."""

    format_id: ClassVar[str] = "house-meeting/2"
    record_source_names: ClassVar[tuple[str, ...]] = ("hearings",)
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return b"<committee-meeting" in file_start_reader.first_bytes

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        yield from _parse_house_meeting(parse_xml(raw_file.data), file_stamp)


class HouseWitnessLoader:
    """The list of witnesses of a House meeting; a file of its own that names the meeting."""

    format_id: ClassVar[str] = "house-witnesses/1"
    record_source_names: ClassVar[tuple[str, ...]] = ("hearings",)
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return b"<witness-list" in file_start_reader.first_bytes

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        yield _parse_house_witnesses(parse_xml(raw_file.data), file_stamp)


class CongressMeetingLoader:
    """A meeting, as /v3/committee-meeting/118/house/115538 gives it."""

    format_id: ClassVar[str] = "congress-meeting/2"
    record_source_names: ClassVar[tuple[str, ...]] = ("hearings",)
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return _has_json_object(file_start_reader, b"committeeMeeting")

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        yield from _parse_congress_meeting(
            json.loads(raw_file.data)["committeeMeeting"], file_stamp
        )


class CongressHearingLoader:
    """A printed hearing, as /v3/hearing/116/senate/37721 gives it."""

    format_id: ClassVar[str] = "congress-hearing/2"
    record_source_names: ClassVar[tuple[str, ...]] = ("hearings",)
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return _has_json_object(file_start_reader, b"hearing")

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        yield from _parse_congress_hearing(json.loads(raw_file.data)["hearing"], file_stamp)


def _has_json_object(file_start_reader: FileStartReader, object_name: bytes) -> bool:
    """Whether it is JSON with an object of this name; the API's description only mentions it."""
    is_json = file_start_reader.first_bytes.lstrip()[:1] == b"{"
    return (
        is_json
        and re.search(rb'"%s"\s*:\s*\{' % object_name, file_start_reader.first_bytes) is not None
    )


# --- docs.house.gov ---


def _parse_house_meeting(meeting_element: Element, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
    event_id, congress = (
        _read_event_id(meeting_element),
        int(meeting_element.get("congress-num") or ""),
    )
    details_element = meeting_element.find("meeting-details")
    meeting_title = find_text(details_element, "meeting-title") or f"Meeting {event_id}"
    committee_ids_and_names = [
        # The House leaves out the HS that its codes have in every other file: RU00 is HSRU.
        (make_committee_id(f"HS{committee_code}"), find_text(committee_element) or committee_code)
        for committee_element in meeting_element.iterfind(
            "meeting-details/committees/committee-name"
        )
        if (committee_code := committee_element.get("id"))
    ]
    legislation_numbers = (
        find_text(legislation_number_element)
        for legislation_number_element in meeting_element.iterfind(
            "meeting-documents/meeting-document/legis-num"
        )
    )
    hearing_links = [
        *(
            bill_link
            for legislation_number in legislation_numbers
            for bill_link in find_bill_links(
                legislation_number or "", congress, LinkKind.HEARING, "legis-num"
            )
        ),
        *find_bill_links(meeting_title, congress, LinkKind.HEARING, "meeting-title"),
    ]
    yield from _build_parsed_records(
        file_stamp,
        committee_ids_and_names,
        hearing_links,
        revision=meeting_element.get("update-date"),
        publisher_name=_HOUSE_PUBLISHER,
        url=f"https://docs.house.gov/Committee/Calendar/ByEvent.aspx?EventID={event_id}",
        citation_text=meeting_title,
        raw_sha256=file_stamp.sha256,
        id=make_meeting_id("house", event_id),
        title=meeting_title,
        type=_MEETING_TYPES_BY_CODE.get(meeting_element.get("meeting-type") or "", "meeting"),
        congress=congress,
        chamber="house",
        held_at=parse_iso_date(find_text(details_element, "meeting-date/calendar-date")),
        time=find_text(details_element, "meeting-date/start-time"),
        status=find_text(meeting_element, "current-status"),
        location=_read_meeting_place(details_element, "meeting-location/capitol-complex/"),
    )


def _read_event_id(meeting_element: Element) -> str:
    """`HMTG102252` and `102252` are one event."""
    id_match = re.fullmatch(r"[A-Z]*(\d+)", meeting_element.get("meeting-id") or "")
    if id_match is None:
        raise ValueError("the file does not say which meeting it is of")
    return id_match[1]


def _read_meeting_place(details_element: Element | None, path_prefix: str) -> str | None:
    location_texts = (
        find_text(details_element, path_prefix + location_tag)
        for location_tag in ("room", "building")
    )
    return " ".join(filter(None, location_texts)) or None


def _parse_house_witnesses(meeting_element: Element, file_stamp: FileStamp) -> ParsedRecord:
    event_id = _read_event_id(meeting_element)
    hearing_witnesses = [
        Witness(
            name=" ".join(
                filter(
                    None, (find_text(witness_element, name_tag) for name_tag in _WITNESS_NAME_TAGS)
                )
            ),
            position=find_text(witness_element, "position"),
            organization=find_text(witness_element, "organization"),
        )
        for witness_element in meeting_element.iterfind("panel/witness")
    ]
    meeting_title = f"House committee meeting {event_id}"
    hearing_record = Hearing(
        id=make_meeting_id("house", event_id),
        title=meeting_title,
        type="meeting",
        congress=_get_congress_from_papers(meeting_element),
        chamber="house",
        **build_citation_fields(
            file_stamp,
            url=f"https://docs.house.gov/Committee/Calendar/ByEvent.aspx?EventID={event_id}",
            org=_HOUSE_PUBLISHER,
            cite=meeting_title,
            published_at=None,
        ),
    )
    return ParsedRecord(
        hearing_record,
        is_partial=True,
        names=(meeting_title,),
        child_rows_by_table=_build_witness_rows(hearing_witnesses),
    )


def _get_congress_from_papers(meeting_element: Element) -> int:
    """The list itself does not say; the names of its papers do: `HHRG-113-GO25-…`."""
    for file_element in meeting_element.iter("file"):
        if congress_match := re.search(r"/[A-Z]+-(\d{2,3})-", file_element.get("doc-url") or ""):
            return int(congress_match[1])
    raise ValueError("the list of witnesses does not say in which Congress they spoke")


# --- api.congress.gov ---


def _parse_congress_meeting(
    meeting_data: dict[str, Any], file_stamp: FileStamp
) -> Iterator[ParsedRecord]:
    event_id, congress = str(meeting_data["eventId"]), int(meeting_data["congress"])
    chamber_name = parse_chamber(_read_chamber(meeting_data))
    meeting_title = meeting_data.get("title") or f"Meeting {event_id}"
    related_bills = (meeting_data.get("relatedItems") or {}).get("bills") or ()
    hearing_links = [
        *_build_bill_links(related_bills),
        *find_bill_links(meeting_title, congress, LinkKind.HEARING, "title"),
    ]
    location_data = meeting_data.get("location") or {}
    meeting_type = str(meeting_data.get("type") or "").lower()
    yield from _build_parsed_records(
        file_stamp,
        _list_committees(meeting_data),
        hearing_links,
        hearing_witnesses=[
            Witness(
                **{
                    field_name: witness_data.get(field_name)
                    for field_name in ("name", "position", "organization")
                }
            )
            for witness_data in meeting_data.get("witnesses") or ()
        ],
        revision=meeting_data.get("updateDate"),
        publisher_name=_CONGRESS_GOV_PUBLISHER,
        url=(
            f"{_EVENTS_URL}/{format_ordinal(congress)}-congress/"
            f"{chamber_name or 'joint'}-event/{event_id}"
        ),
        citation_text=meeting_title,
        raw_sha256=hash_item(meeting_data),
        id=make_meeting_id(chamber_name, event_id),
        title=meeting_title,
        type=meeting_type if meeting_type in ("hearing", "markup") else "meeting",
        congress=congress,
        chamber=chamber_name,
        held_at=parse_iso_date(meeting_data.get("date")),
        time=(meeting_data.get("date") or "")[11:16] or None,
        status=meeting_data.get("meetingStatus"),
        location=" ".join(filter(None, (location_data.get("room"), location_data.get("building"))))
        or None,
    )


def _parse_congress_hearing(
    hearing_data: dict[str, Any], file_stamp: FileStamp
) -> Iterator[ParsedRecord]:
    congress, jacket_number = int(hearing_data["congress"]), str(hearing_data["jacketNumber"])
    chamber_name = parse_chamber(_read_chamber(hearing_data))
    hearing_title = hearing_data.get("title") or f"Hearing {jacket_number}"
    hearing_id = make_transcript_id(congress, chamber_name, jacket_number)
    hearing_links = list(find_bill_links(hearing_title, congress, LinkKind.HEARING, "title"))
    meeting_data = hearing_data.get("associatedMeeting") or {}
    # The API's documentation writes `eventID`, its answers have `eventId`.
    if event_id := meeting_data.get("eventId") or meeting_data.get("eventID"):
        evidence_text = f"associatedMeeting: {event_id}"
        hearing_links.append(
            RecordLink(
                LinkKind.RELATED, make_meeting_id(chamber_name, str(event_id)), evidence_text
            )
        )
    package_id = hearing_id.removeprefix("hearing:")
    hearing_days = sorted(
        filter(
            None,
            (
                parse_iso_date(date_data.get("date"))
                for date_data in hearing_data.get("dates") or ()
            ),
        )
    )
    printed_citation = hearing_data.get("citation")
    yield from _build_parsed_records(
        file_stamp,
        _list_committees(hearing_data),
        hearing_links,
        revision=hearing_data.get("updateDate"),
        publisher_name=_CONGRESS_GOV_PUBLISHER,
        url=f"https://www.congress.gov/{congress}/chrg/{package_id}/{package_id}.htm",
        citation_text=", ".join(filter(None, (hearing_title, printed_citation))),
        raw_sha256=hash_item(hearing_data),
        id=hearing_id,
        title=hearing_title,
        type="transcript",
        congress=congress,
        chamber=chamber_name,
        # A printed hearing may have lasted several days; it is dated by the first.
        held_at=hearing_days[0] if hearing_days else None,
        number=printed_citation,
    )


def _read_chamber(hearing_data: dict[str, Any]) -> str | None:
    """`NoChamber` is what both chambers hold together."""
    chamber_name: str | None = hearing_data.get("chamber")
    return "joint" if chamber_name == "NoChamber" else chamber_name


def _list_committees(hearing_data: dict[str, Any]) -> list[CommitteeIdAndName]:
    return [
        (
            make_committee_id(committee_data["systemCode"]),
            committee_data.get("name") or committee_data["systemCode"],
        )
        for committee_data in hearing_data.get("committees") or ()
        if committee_data.get("systemCode")
    ]


def _build_bill_links(related_bills: Sequence[dict[str, Any]]) -> Iterator[RecordLink]:
    for bill_data in related_bills:
        bill_type = str(bill_data.get("type") or "").lower()
        if bill_type in LABEL_BY_BILL_TYPE:
            bill_id = make_bill_id(bill_data["congress"], bill_type, bill_data["number"])
            yield RecordLink(
                LinkKind.HEARING,
                bill_id,
                f"relatedItems/bills: {bill_data['type']} {bill_data['number']}",
            )


# --- both ---


def _build_parsed_records(
    file_stamp: FileStamp,
    committee_ids_and_names: Sequence[CommitteeIdAndName],
    record_links: Sequence[RecordLink],
    *,
    publisher_name: str,
    url: str,
    citation_text: str,
    raw_sha256: str,
    revision: str | None,
    hearing_witnesses: Sequence[Witness] | None = None,
    **record_fields: Any,
) -> Iterator[ParsedRecord]:
    chamber_name: Chamber | None = record_fields["chamber"]
    for committee_id, committee_name in committee_ids_and_names:
        yield build_committee_stub(committee_id, committee_name, chamber_name, file_stamp)
    bill_ids = dict.fromkeys(
        record_link.id for record_link in record_links if record_link.kind is LinkKind.HEARING
    )
    hearing_record = Hearing(
        **record_fields,
        committees=[committee_id for committee_id, _ in committee_ids_and_names],
        bills=list(bill_ids),
        **build_citation_fields(
            file_stamp,
            url=url,
            org=publisher_name,
            cite=citation_text,
            published_at=record_fields["held_at"],
            raw_sha256=raw_sha256,
        ),
    )
    committee_links = [
        RecordLink(LinkKind.COMMITTEE, committee_id, f"committees: {committee_name}")
        for committee_id, committee_name in committee_ids_and_names
    ]
    yield ParsedRecord(
        hearing_record,
        names=(
            hearing_record.title,
            hearing_record.number or "",
            hearing_record.id.removeprefix("hearing:"),
        ),
        links=[*record_links, *committee_links],
        # None is not empty: the House lists witnesses in another file, whose rows must stay.
        child_rows_by_table={}
        if hearing_witnesses is None
        else _build_witness_rows(hearing_witnesses),
        revision=revision,
    )


def _build_witness_rows(hearing_witnesses: Sequence[Witness]) -> dict[str, list[tuple[Any, ...]]]:
    witness_rows = [
        (list_position, hearing_witness.model_dump_json())
        for list_position, hearing_witness in enumerate(hearing_witnesses, start=1)
    ]
    return {"hearing_witnesses": witness_rows}
