"""Reads the Congressional Record: a page of HTML per item, and the issue's MODS about them all.

Either may come first, or alone: a page brings the text, and a record where there is none yet; the
MODS brings who spoke and what was named.
"""

import re
from collections.abc import Iterator
from typing import ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.formats.parts.mentions import find_bill_links, find_law_links
from readingroom.bases.federal.formats.parts.people import (
    build_legislator_stub,
    format_name,
    parse_chamber,
)
from readingroom.bases.federal.formats.parts.record_mentions import (
    build_mention_links,
    find_mentioned_cfr_parts,
    find_mentioned_elements,
    find_mentioned_usc_sections,
)
from readingroom.bases.federal.formats.parts.xml import (
    find_text,
    hash_element,
    parse_iso_date,
    parse_xml,
    strip_page_markup,
)
from readingroom.bases.federal.formats.uslm import parse_spelled_date
from readingroom.bases.federal.schema.congress import (
    GPO_PUBLISHER,
    LABEL_BY_BILL_TYPE,
    format_ordinal,
    get_congress_on,
)
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
    RecordLink,
    RecordText,
    SearchableFields,
    build_citation_fields,
    hash_item,
)
from readingroom.bases.federal.schema.ids import (
    make_amendment_id,
    make_proceeding_id,
    parse_federal_id,
)
from readingroom.bases.federal.schema.records import Amendment, LinkKind, Person, Proceeding
from readingroom.core.errors import UnrecognizedId
from readingroom.core.text import fold_dashes

_PAGE_HEADER_PATTERN = re.compile(
    r"\[Congressional Record Volume (\d+), Number (\d+) \(([^)]*)\)\]\s*"
    r"\[([^\]]*)\]\s*\[Pages? ?([^\]]*)\]\s*From the Congressional Record Online[^\n]*\n"
)
_PRE_ELEMENT_PATTERN = re.compile(r"<pre>(.*?)(?:</pre>|$)", re.S | re.I)
_MAX_EVIDENCE_CHARS = 300
_NEW_PAGE_PATTERN = re.compile(r"\[\[Page ([A-Z]?\d+)\]\]", re.ASCII)
_RECORD_TYPE_BY_PART_LETTER = {"D": "digest", "E": "extensions", "H": "house", "S": "senate"}
_PART_LETTER_BY_PART_NAME = {
    "daily digest": "D",
    "extensions of remarks": "E",
    "house": "H",
    "senate": "S",
}
_PRINTED_AMENDMENT_PATTERN = re.compile(
    r"^  SA (\d+)\. (.*?)(?=^  SA \d+\. |^ {6,}_{4,}\s*\Z|\Z)", re.S | re.M
)
_AMENDED_BILL_PATTERN = re.compile(r"\b(?:bill|resolution) ([HS]\.[^,;]{0,20}?\d+)")
# Mr. McCONNELL (for Mr. Byrd): who speaks for another is not the sponsor.
_AMENDMENT_SPONSOR_PATTERN = re.compile(
    r"^(?:M(?:r|rs|s|iss)\. [^(]{1,60}\(for )?M(?:r|rs|s|iss)\. ((?:[A-Z][\w'.-]*\s?)+)"
)


class RecordPageLoader:
    """`CREC-2005-07-20-pt1-PgE1551-2.htm`: the text of one item."""

    format_id: ClassVar[str] = "crec-page/3"
    record_source_names: ClassVar[tuple[str, ...]] = ("congressional_record", "amendments")
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return (
            b"[Congressional Record Volume" in file_start_reader.first_bytes
            and file_start_reader.name.startswith("CREC-")
        )

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        page_parser = _ItemPageParser(raw_file, file_stamp)
        yield page_parser.build_parsed_record()
        yield from page_parser.find_amendments()


class RecordIssueLoader:
    """`mods.xml`: what every item of a day's issue is, who spoke in it, what it names."""

    format_id: ClassVar[str] = "crec-mods/2"
    record_source_names: ClassVar[tuple[str, ...]] = ("congressional_record",)
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return (
            b"http://www.loc.gov/mods" in file_start_reader.first_bytes
            and b">CREC<" in file_start_reader.first_bytes
        )

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        issue_element = parse_xml(raw_file.data)
        issue_parser = _IssueParser(issue_element)
        people_by_id: dict[str, Person] = {}
        for item_element in issue_element.findall("relatedItem[@type='constituent']"):
            parsed_item = issue_parser.build_parsed_record(item_element, file_stamp)
            assert isinstance(parsed_item.record, Proceeding)
            people_by_id.update(
                {speaker.bioguide_id or "": speaker for speaker in parsed_item.record.speakers}
            )
            yield parsed_item
        yield from (
            build_legislator_stub(named_person, file_stamp)
            for bioguide_id, named_person in sorted(people_by_id.items())
            if bioguide_id
        )


class _ItemPageParser:
    """Parses a page of HTML."""

    def __init__(self, raw_file: RawFile, file_stamp: FileStamp) -> None:
        # The printing office marked some lines with a NUL, which no reader can use.
        page_markup = raw_file.data.decode("utf-8", "replace").replace("\0", "")
        pre_match = _PRE_ELEMENT_PATTERN.search(page_markup)
        plain_text = strip_page_markup(pre_match[1] if pre_match else page_markup)
        header_match = _PAGE_HEADER_PATTERN.search(plain_text)
        if header_match is None:
            raise ValueError("no header of the Congressional Record on this page")
        self._file_stamp = file_stamp
        self._granule_id = raw_file.name.rpartition(".")[0]
        self._indented_text = plain_text[header_match.end() :]
        self.volume, self.issue_number = int(header_match[1]), int(header_match[2])
        self.published_at = parse_spelled_date(header_match[3])
        self.part_letter = _PART_LETTER_BY_PART_NAME.get(header_match[4].strip().lower(), "")
        self.page_range = fold_dashes(header_match[5]).strip() or None
        self.text = _remove_indents(self._indented_text)
        self.title = _read_heading(self.text) or self._granule_id
        self.congress = (
            get_congress_on(self.published_at)
            if self.published_at
            else _get_congress_of_volume(self.volume)
        )

    def build_parsed_record(self) -> ParsedRecord:
        proceeding = _build_proceeding(
            self._granule_id,
            self._file_stamp,
            title=self.title,
            congress=self.congress,
            type=_RECORD_TYPE_BY_PART_LETTER.get(self.part_letter, "other"),
            # Extensions of Remarks (E) and the Daily Digest (D) belong to neither chamber.
            chamber=parse_chamber(self.part_letter if self.part_letter in ("H", "S") else None),
            volume=self.volume,
            issue=self.issue_number,
            pages=self.page_range,
            published_at=self.published_at,
        )
        text_version = RecordText(
            "text",
            self.text,
            self.title,
            proceeding.url,
            self._file_stamp.sha256,
            dated=self.published_at,
        )
        return ParsedRecord(
            proceeding,
            # Where the MODS of the issue is loaded, it knows more than the page.
            is_partial=True,
            searchable_fields=SearchableFields(self.title),
            values_by_facet=_build_proceeding_facets(proceeding),
            text=text_version,
            links=list(self._find_links()),
        )

    def _find_links(self) -> Iterator[RecordLink]:
        """The bills and laws that its words name, each with the printed page they stand on."""
        first_page_label = (self.page_range or "").partition("-")[0]
        page_numbers_and_texts = [first_page_label, *_NEW_PAGE_PATTERN.split(self.text)]
        for page_number, page_text in zip(
            page_numbers_and_texts[::2], page_numbers_and_texts[1::2], strict=True
        ):
            page_label = f"page {page_number}" if page_number else "text"
            yield from find_bill_links(page_text, self.congress, LinkKind.MENTION, page_label)
            yield from find_law_links(page_text, LinkKind.MENTION, page_label)

    def find_amendments(self) -> Iterator[ParsedRecord]:
        """The amendments printed in full: the one place where those of the Senate stand."""
        if not self.title.upper().startswith("TEXT OF AMENDMENTS"):
            return
        for amendment_match in _PRINTED_AMENDMENT_PATTERN.finditer(self._indented_text):
            yield self._build_amendment(int(amendment_match[1]), amendment_match[2])

    def _build_amendment(self, amendment_number: int, printed_text: str) -> ParsedRecord:
        amendment_text = _remove_indents(printed_text).rstrip("_\n ")
        # Sponsor and bill stand in the first sentence; the text after it may name other bills.
        opening_text = " ".join(amendment_text[:1000].split())
        sponsor_match = _AMENDMENT_SPONSOR_PATTERN.match(opening_text)
        bill_id = _find_amended_bill_id(opening_text, self.congress)
        congress_ordinal = format_ordinal(self.congress)
        amendment_label = f"S.Amdt. {amendment_number}{_format_amended_bill(bill_id)}"
        citation_text = f"{amendment_label}, {congress_ordinal} Congress"
        url = f"https://www.congress.gov/amendment/{congress_ordinal}-congress/senate-amendment/{amendment_number}"
        amendment_record = Amendment(
            id=make_amendment_id(self.congress, "samdt", amendment_number),
            title=citation_text,
            congress=self.congress,
            type="samdt",
            number=amendment_number,
            chamber="senate",
            bill_id=bill_id,
            submitted_at=self.published_at,
            sponsors=[Person(name=format_name(sponsor_match[1].strip()))] if sponsor_match else [],
            **build_citation_fields(
                self._file_stamp,
                url=url,
                org=GPO_PUBLISHER,
                cite=f"{citation_text}, {self.volume} Cong. Rec. {self.page_range}",
                published_at=self.published_at,
                raw_sha256=hash_item(printed_text),
            ),
        )
        values_by_facet = {
            "congress": [str(self.congress)],
            "type": ["samdt"],
            "chamber": ["senate"],
            "bill": [bill_id] if bill_id else [],
        }
        text_version = RecordText(
            "text",
            amendment_text,
            citation_text,
            url,
            amendment_record.raw_sha256,
            "Submitted",
            self.published_at,
        )
        evidence_text = f"printed as an amendment to it: {opening_text[:_MAX_EVIDENCE_CHARS]}"
        bill_links = [RecordLink(LinkKind.AMENDMENT, bill_id, evidence_text)] if bill_id else []
        return ParsedRecord(
            amendment_record,
            is_partial=True,
            searchable_fields=SearchableFields(citation_text),
            values_by_facet=values_by_facet,
            text=text_version,
            links=bill_links,
        )


class _IssueParser:
    """What the MODS says of the issue as a whole."""

    def __init__(self, mods_element: Element) -> None:
        # There are several extensions; the one about the issue itself has the volume.
        mods_extension = next(
            extension_element
            for extension_element in mods_element.findall("extension")
            if extension_element.find("volume") is not None
        )
        self._published_at = parse_iso_date(find_text(mods_element, "originInfo/dateIssued"))
        self._volume = int(find_text(mods_extension, "volume") or "")
        self._issue_number = int(find_text(mods_extension, "issue") or "")
        self._congress = int(find_text(mods_extension, "congress") or "")
        self._session_number = int(find_text(mods_extension, "session") or "1")

    def build_parsed_record(self, item_element: Element, file_stamp: FileStamp) -> ParsedRecord:
        mods_element = item_element.find("extension")
        if mods_element is None:
            raise ValueError("an item of the issue says nothing of itself")
        granule_id = find_text(mods_element, "accessId") or ""
        spoken_at = parse_iso_date(find_text(mods_element, "granuleDate"))
        page_prefix = find_text(mods_element, "pagePrefix") or ""
        first_page_label, last_page_label = (
            find_text(item_element, f"part/extent/{extent_tag}") for extent_tag in ("start", "end")
        )
        item_title = find_text(item_element, "titleInfo/title") or granule_id
        elements_by_field = find_mentioned_elements(mods_element, self._session_number)
        proceeding = _build_proceeding(
            granule_id,
            file_stamp,
            title=item_title,
            congress=self._congress,
            session=self._session_number,
            type=_RECORD_TYPE_BY_PART_LETTER.get(page_prefix[:1], "other"),
            chamber=parse_chamber(find_text(mods_element, "chamber")),
            category=(find_text(mods_element, "subGranuleClass") or "").lower() or None,
            volume=self._volume,
            issue=self._issue_number,
            pages="-".join(dict.fromkeys(filter(None, (first_page_label, last_page_label))))
            or None,
            published_at=self._published_at,
            # Only what was printed on a later day than it was spoken has a date of its own.
            spoken_at=spoken_at if spoken_at != self._published_at else None,
            raw_sha256=hash_element(item_element),
            speakers=[
                _parse_speaker(member_element)
                for member_element in mods_element.findall("congMember")
            ],
            cfr_references=list(dict.fromkeys(find_mentioned_cfr_parts(mods_element))),
            usc_references=list(dict.fromkeys(find_mentioned_usc_sections(mods_element))),
            **{
                field_name: list(element_by_id)
                for field_name, element_by_id in elements_by_field.items()
            },
        )
        speaker_names_text = ", ".join(speaker.name for speaker in proceeding.speakers)
        return ParsedRecord(
            proceeding,
            searchable_fields=SearchableFields(item_title, action=speaker_names_text),
            values_by_facet=_build_proceeding_facets(proceeding),
            links=[
                *_build_speaker_links(mods_element, proceeding),
                *build_mention_links(elements_by_field),
            ],
        )


def _build_proceeding(
    granule_id: str,
    file_stamp: FileStamp,
    *,
    published_at: str | None,
    raw_sha256: str | None = None,
    **proceeding_fields: object,
) -> Proceeding:
    issue_id = granule_id.partition("-pt")[0]
    first_page_label = str(proceeding_fields["pages"] or "").partition("-")[0]
    page_or_issue_text = first_page_label or f"no. {proceeding_fields['issue']}"
    printed_at = f"{proceeding_fields['volume']} Cong. Rec. {page_or_issue_text}"
    citation_text = f"{printed_at}, {proceeding_fields['title']}"
    return Proceeding.model_validate(
        proceeding_fields
        | {"id": make_proceeding_id(granule_id)}
        | build_citation_fields(
            file_stamp,
            url=f"https://www.govinfo.gov/app/details/{issue_id}/{granule_id}",
            org=GPO_PUBLISHER,
            cite=citation_text,
            published_at=published_at,
            raw_sha256=raw_sha256,
        )
    )


def _build_proceeding_facets(proceeding: Proceeding) -> dict[str, list[str]]:
    return {
        "congress": [str(proceeding.congress)],
        "type": [proceeding.type],
        "chamber": [proceeding.chamber] if proceeding.chamber else [],
        "member": [speaker.bioguide_id for speaker in proceeding.speakers if speaker.bioguide_id],
        "bill": proceeding.bills,
    }


def _get_congress_of_volume(volume_number: int) -> int:
    """The Congress of a volume: one a year, the 151st in 2005."""
    return get_congress_on(f"{volume_number + 1854}-06-01")


def _remove_indents(printed_text: str) -> str:
    """A printed page without its indents; what was indented further begins a paragraph."""
    unindented_lines: list[str] = []
    previous_indent_width = 0
    for printed_line in printed_text.splitlines():
        line_text = printed_line.strip()
        indent_width = len(printed_line) - len(printed_line.lstrip())
        if (
            line_text
            and unindented_lines
            and unindented_lines[-1]
            and indent_width > previous_indent_width
        ):
            unindented_lines.append("")
        if line_text or (unindented_lines and unindented_lines[-1]):
            unindented_lines.append(line_text)
        previous_indent_width = indent_width if line_text else 0
    return "\n".join(unindented_lines).strip()


def _read_heading(page_text: str) -> str:
    """The heading: the lines before the first empty one, or a first line in brackets."""
    if bracket_match := re.match(r"\[([^\]\n]+)\]\n", page_text):
        return bracket_match[1]
    heading_text = page_text.partition("\n\n")[0]
    return " ".join(heading_text.split())[:300].strip("_ ")


def _format_amended_bill(bill_id: str | None) -> str:
    if bill_id is None:
        return ""
    bill_type, _, bill_number_text = bill_id.split(":")
    return f" to {LABEL_BY_BILL_TYPE[bill_type]} {bill_number_text}"


def _find_amended_bill_id(opening_text: str, congress: int) -> str | None:
    bill_match = _AMENDED_BILL_PATTERN.search(opening_text)
    try:
        return parse_federal_id(bill_match[1], congress).id if bill_match else None
    except UnrecognizedId:
        return None


# --- who spoke in an item ---


def _build_speaker_links(
    mods_element: Element, floor_proceeding: Proceeding
) -> Iterator[RecordLink]:
    for member_element, speaker in zip(
        mods_element.findall("congMember"), floor_proceeding.speakers, strict=True
    ):
        if speaker.bioguide_id:
            speaker_name = find_text(member_element, "name[@type='parsed']") or speaker.name
            speaker_role = (member_element.get("role") or "named").lower()
            yield RecordLink(
                LinkKind.SPEECH, speaker.bioguide_id, f"congMember ({speaker_role}): {speaker_name}"
            )


def _parse_speaker(member_element: Element) -> Person:
    name_by_type = {
        name_element.get("type"): find_text(name_element)
        for name_element in member_element.findall("name")
    }
    return Person(
        bioguide_id=member_element.get("bioGuideId"),
        name=name_by_type.get("authority-fnf") or name_by_type.get("parsed") or "",
        party=member_element.get("party"),
        state=member_element.get("state"),
    )
