"""Reads hearings and meetings: the XML of the House's repository, the JSON of api.congress.gov."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts.files import FileStart, RawFile
from readingroom.bases.federal.formats.parts.mentions import find_bills
from readingroom.bases.federal.formats.parts.people import build_committee_stub, parse_chamber
from readingroom.bases.federal.formats.parts.xml import get_text, parse, parse_iso_date
from readingroom.bases.federal.schema.congress import SPOKEN, format_ordinal
from readingroom.bases.federal.schema.entries import (
    Link,
    ParsedRecord,
    Provenance,
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

_HOUSE_TYPES = {"HMTG": "meeting", "HHRG": "hearing", "HMKP": "markup"}
_NAME = ("honorific", "firstname", "middlename", "lastname")
_HOUSE = "Clerk of the House, Committee Repository"
_CONGRESS_GOV = "Congress.gov"
_EVENTS = "https://www.congress.gov/event"

NamedCommittee = tuple[str, str]
"""A committee: its id and name."""


class HouseMeetings:
    """`HMTG-113-RU00-20140519.xml` of docs.house.gov."""

    format_id: ClassVar[str] = "house-meeting/2"
    sources: ClassVar[tuple[str, ...]] = ("hearings",)
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return b"<committee-meeting" in start.head

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        yield from _parse_house_meeting(parse(file.data), provenance)


class HouseWitnesses:
    """The list of witnesses of a House meeting; a file of its own that names the meeting."""

    format_id: ClassVar[str] = "house-witnesses/1"
    sources: ClassVar[tuple[str, ...]] = ("hearings",)
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return b"<witness-list" in start.head

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        yield _parse_house_witnesses(parse(file.data), provenance)


class CongressMeetings:
    """A meeting, as /v3/committee-meeting/118/house/115538 gives it."""

    format_id: ClassVar[str] = "congress-meeting/2"
    sources: ClassVar[tuple[str, ...]] = ("hearings",)
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return _has_object(start, b"committeeMeeting")

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        yield from _parse_congress_meeting(json.loads(file.data)["committeeMeeting"], provenance)


class CongressHearings:
    """A printed hearing, as /v3/hearing/116/senate/37721 gives it."""

    format_id: ClassVar[str] = "congress-hearing/2"
    sources: ClassVar[tuple[str, ...]] = ("hearings",)
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return _has_object(start, b"hearing")

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        yield from _parse_congress_hearing(json.loads(file.data)["hearing"], provenance)


def _has_object(start: FileStart, name: bytes) -> bool:
    """Whether it is JSON with an object of this name; the API's description only mentions it."""
    is_json = start.head.lstrip()[:1] == b"{"
    return is_json and re.search(rb'"%s"\s*:\s*\{' % name, start.head) is not None


# --- docs.house.gov ---


def _parse_house_meeting(meeting: Element, provenance: Provenance) -> Iterator[ParsedRecord]:
    event, congress = _read_event(meeting), int(meeting.get("congress-num") or "")
    details = meeting.find("meeting-details")
    title = get_text(details, "meeting-title") or f"Meeting {event}"
    committees = [
        # The House leaves out the HS that its codes have in every other file: RU00 is HSRU.
        (make_committee_id(f"HS{code}"), get_text(element) or code)
        for element in meeting.iterfind("meeting-details/committees/committee-name")
        if (code := element.get("id"))
    ]
    documents = (
        get_text(element)
        for element in meeting.iterfind("meeting-documents/meeting-document/legis-num")
    )
    links = [
        *(
            link
            for written in documents
            for link in find_bills(written or "", congress, LinkKind.HEARING, "legis-num")
        ),
        *find_bills(title, congress, LinkKind.HEARING, "meeting-title"),
    ]
    yield from _build_entries(
        provenance,
        committees,
        links,
        revision=meeting.get("update-date"),
        org=_HOUSE,
        url=f"https://docs.house.gov/Committee/Calendar/ByEvent.aspx?EventID={event}",
        cite=title,
        raw_sha256=provenance.sha256,
        id=make_meeting_id("house", event),
        title=title,
        type=_HOUSE_TYPES.get(meeting.get("meeting-type") or "", "meeting"),
        congress=congress,
        chamber="house",
        held_at=parse_iso_date(get_text(details, "meeting-date/calendar-date")),
        time=get_text(details, "meeting-date/start-time"),
        status=get_text(meeting, "current-status"),
        location=_format_location(details, "meeting-location/capitol-complex/"),
    )


def _read_event(element: Element) -> str:
    """`HMTG102252` and `102252` are one event."""
    match = re.fullmatch(r"[A-Z]*(\d+)", element.get("meeting-id") or "")
    if match is None:
        raise ValueError("the file does not say which meeting it is of")
    return match[1]


def _format_location(details: Element | None, path: str) -> str | None:
    parts = (get_text(details, path + name) for name in ("room", "building"))
    return " ".join(filter(None, parts)) or None


def _parse_house_witnesses(element: Element, provenance: Provenance) -> ParsedRecord:
    event = _read_event(element)
    witnesses = [
        Witness(
            name=" ".join(filter(None, (get_text(witness, part) for part in _NAME))),
            position=get_text(witness, "position"),
            organization=get_text(witness, "organization"),
        )
        for witness in element.iterfind("panel/witness")
    ]
    title = f"House committee meeting {event}"
    record = Hearing(
        id=make_meeting_id("house", event),
        title=title,
        type="meeting",
        congress=_find_congress(element),
        chamber="house",
        **build_citation_fields(
            provenance,
            url=f"https://docs.house.gov/Committee/Calendar/ByEvent.aspx?EventID={event}",
            org=_HOUSE,
            cite=title,
            published_at=None,
        ),
    )
    return ParsedRecord(
        record, partial=True, names=(title,), children=_build_witness_rows(witnesses)
    )


def _find_congress(element: Element) -> int:
    """The list itself does not say; the names of its papers do: `HHRG-113-GO25-…`."""
    for file in element.iter("file"):
        if match := re.search(r"/[A-Z]+-(\d{2,3})-", file.get("doc-url") or ""):
            return int(match[1])
    raise ValueError("the list of witnesses does not say in which Congress they spoke")


# --- api.congress.gov ---


def _parse_congress_meeting(data: dict[str, Any], provenance: Provenance) -> Iterator[ParsedRecord]:
    event, congress = str(data["eventId"]), int(data["congress"])
    chamber = parse_chamber(_read_chamber(data))
    title = data.get("title") or f"Meeting {event}"
    related = (data.get("relatedItems") or {}).get("bills") or ()
    links = [
        *_build_bill_links(related),
        *find_bills(title, congress, LinkKind.HEARING, "title"),
    ]
    location = data.get("location") or {}
    kind = str(data.get("type") or "").lower()
    yield from _build_entries(
        provenance,
        _list_committees(data),
        links,
        witnesses=[
            Witness(**{key: witness.get(key) for key in ("name", "position", "organization")})
            for witness in data.get("witnesses") or ()
        ],
        revision=data.get("updateDate"),
        org=_CONGRESS_GOV,
        url=f"{_EVENTS}/{format_ordinal(congress)}-congress/{chamber or 'joint'}-event/{event}",
        cite=title,
        raw_sha256=hash_item(data),
        id=make_meeting_id(chamber, event),
        title=title,
        type=kind if kind in ("hearing", "markup") else "meeting",
        congress=congress,
        chamber=chamber,
        held_at=parse_iso_date(data.get("date")),
        time=(data.get("date") or "")[11:16] or None,
        status=data.get("meetingStatus"),
        location=" ".join(filter(None, (location.get("room"), location.get("building")))) or None,
    )


def _parse_congress_hearing(data: dict[str, Any], provenance: Provenance) -> Iterator[ParsedRecord]:
    congress, jacket = int(data["congress"]), str(data["jacketNumber"])
    chamber = parse_chamber(_read_chamber(data))
    title = data.get("title") or f"Hearing {jacket}"
    id = make_transcript_id(congress, chamber, jacket)
    links = list(find_bills(title, congress, LinkKind.HEARING, "title"))
    meeting = data.get("associatedMeeting") or {}
    # The API's documentation writes `eventID`, its answers have `eventId`.
    if event := meeting.get("eventId") or meeting.get("eventID"):
        evidence = f"associatedMeeting: {event}"
        links.append(Link(LinkKind.RELATED, make_meeting_id(chamber, str(event)), evidence))
    package = id.removeprefix("hearing:")
    days = sorted(
        filter(None, (parse_iso_date(date.get("date")) for date in data.get("dates") or ()))
    )
    number = data.get("citation")
    yield from _build_entries(
        provenance,
        _list_committees(data),
        links,
        revision=data.get("updateDate"),
        org=_CONGRESS_GOV,
        url=f"https://www.congress.gov/{congress}/chrg/{package}/{package}.htm",
        cite=", ".join(filter(None, (title, number))),
        raw_sha256=hash_item(data),
        id=id,
        title=title,
        type="transcript",
        congress=congress,
        chamber=chamber,
        # A printed hearing may have lasted several days; it is dated by the first.
        held_at=days[0] if days else None,
        number=number,
    )


def _read_chamber(data: dict[str, Any]) -> str | None:
    """`NoChamber` is what both chambers hold together."""
    chamber: str | None = data.get("chamber")
    return "joint" if chamber == "NoChamber" else chamber


def _list_committees(data: dict[str, Any]) -> list[NamedCommittee]:
    return [
        (
            make_committee_id(committee["systemCode"]),
            committee.get("name") or committee["systemCode"],
        )
        for committee in data.get("committees") or ()
        if committee.get("systemCode")
    ]


def _build_bill_links(related: Sequence[dict[str, Any]]) -> Iterator[Link]:
    for item in related:
        kind = str(item.get("type") or "").lower()
        if kind in SPOKEN:
            id = make_bill_id(item["congress"], kind, item["number"])
            yield Link(LinkKind.HEARING, id, f"relatedItems/bills: {item['type']} {item['number']}")


# --- both ---


def _build_entries(
    provenance: Provenance,
    committees: Sequence[NamedCommittee],
    links: Sequence[Link],
    *,
    org: str,
    url: str,
    cite: str,
    raw_sha256: str,
    revision: str | None,
    witnesses: Sequence[Witness] | None = None,
    **fields: Any,
) -> Iterator[ParsedRecord]:
    chamber: Chamber | None = fields["chamber"]
    for id, name in committees:
        yield build_committee_stub(id, name, chamber, provenance)
    bills = dict.fromkeys(link.id for link in links if link.kind is LinkKind.HEARING)
    record = Hearing(
        **fields,
        committees=[id for id, _ in committees],
        bills=list(bills),
        **build_citation_fields(
            provenance,
            url=url,
            org=org,
            cite=cite,
            published_at=fields["held_at"],
            raw_sha256=raw_sha256,
        ),
    )
    held_by = [Link(LinkKind.COMMITTEE, id, f"committees: {name}") for id, name in committees]
    yield ParsedRecord(
        record,
        names=(record.title, record.number or "", record.id.removeprefix("hearing:")),
        links=[*links, *held_by],
        # None is not empty: the House lists witnesses in another file, whose rows must stay.
        children={} if witnesses is None else _build_witness_rows(witnesses),
        revision=revision,
    )


def _build_witness_rows(witnesses: Sequence[Witness]) -> dict[str, list[tuple[Any, ...]]]:
    rows = [
        (position, witness.model_dump_json()) for position, witness in enumerate(witnesses, start=1)
    ]
    return {"hearing_witnesses": rows}
