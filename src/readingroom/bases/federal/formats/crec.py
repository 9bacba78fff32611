"""Reads the Congressional Record: a page of HTML per item, and the issue's MODS about them all.

Either may come first, or alone: a page brings the text, and a record where there is none yet; the
MODS brings who spoke and what was named.
"""

import html
import re
from collections.abc import Iterator
from typing import ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts.files import FileStart, RawFile
from readingroom.bases.federal.formats.parts.mentions import find_bills, find_laws
from readingroom.bases.federal.formats.parts.people import (
    build_legislator_stub,
    format_name,
    parse_chamber,
)
from readingroom.bases.federal.formats.parts.xml import (
    find_text,
    hash_element,
    parse_iso_date,
    parse_xml,
)
from readingroom.bases.federal.formats.uslm import parse_spelled_date
from readingroom.bases.federal.schema.congress import (
    BILL_LABELS,
    GPO_PUBLISHER,
    format_ordinal,
    get_congress_on,
)
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
    RecordLink,
    RecordText,
    SearchHead,
    build_citation_fields,
    hash_item,
)
from readingroom.bases.federal.schema.ids import (
    BILL_TYPES,
    make_amendment_id,
    make_bill_id,
    make_committee_id,
    make_law_id,
    make_proceeding_id,
    make_report_id,
    make_vote_id,
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
_HTML_TAG_PATTERN = re.compile(r"</?[A-Za-z][^>\n]*>")
_TYPES_BY_LETTER = {"D": "digest", "E": "extensions", "H": "house", "S": "senate"}
_LETTERS_BY_PART = {"daily digest": "D", "extensions of remarks": "E", "house": "H", "senate": "S"}
_PRINTED_AMENDMENT_PATTERN = re.compile(
    r"^  SA (\d+)\. (.*?)(?=^  SA \d+\. |^ {6,}_{4,}\s*\Z|\Z)", re.S | re.M
)
_AMENDED_BILL_PATTERN = re.compile(r"\b(?:bill|resolution) ([HS]\.[^,;]{0,20}?\d+)")
# Mr. McCONNELL (for Mr. Byrd): who speaks for another is not the sponsor.
_AMENDMENT_SPONSOR_PATTERN = re.compile(
    r"^(?:M(?:r|rs|s|iss)\. [^(]{1,60}\(for )?M(?:r|rs|s|iss)\. ((?:[A-Z][\w'.-]*\s?)+)"
)

Mentions = Iterator[tuple[str, Element]]
"""Ids, each with the element of the MODS that names it."""
MentionsByField = dict[str, dict[str, Element]]
"""The same by the record's field, each id once."""


class RecordPageLoader:
    """`CREC-2005-07-20-pt1-PgE1551-2.htm`: the text of one item."""

    format_id: ClassVar[str] = "crec-page/2"
    sources: ClassVar[tuple[str, ...]] = ("congressional_record", "amendments")
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start: FileStart) -> bool:
        return b"[Congressional Record Volume" in file_start.head and file_start.name.startswith(
            "CREC-"
        )

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        item_page = _ItemPage(raw_file, file_stamp)
        yield item_page.build_entry()
        yield from item_page.find_amendments()


class RecordIssueLoader:
    """`mods.xml`: what every item of a day's issue is, who spoke in it, what it names."""

    format_id: ClassVar[str] = "crec-mods/2"
    sources: ClassVar[tuple[str, ...]] = ("congressional_record",)
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start: FileStart) -> bool:
        return b"http://www.loc.gov/mods" in file_start.head and b">CREC<" in file_start.head

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        issue_element = parse_xml(raw_file.data)
        issue_parser = _IssueParser(issue_element)
        people_by_id: dict[str, Person] = {}
        for item_element in issue_element.findall("relatedItem[@type='constituent']"):
            parsed_item = issue_parser.build_entry(item_element, file_stamp)
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


class _ItemPage:
    """Parses a page of HTML."""

    def __init__(self, raw_file: RawFile, file_stamp: FileStamp) -> None:
        # The printing office marked some lines with a NUL, which no reader can use.
        markup = raw_file.data.decode("utf-8", "replace").replace("\0", "")
        pre_match = _PRE_ELEMENT_PATTERN.search(markup)
        plain_text = html.unescape(_HTML_TAG_PATTERN.sub("", pre_match[1] if pre_match else markup))
        header_match = _PAGE_HEADER_PATTERN.search(plain_text)
        if header_match is None:
            raise ValueError("no header of the Congressional Record on this page")
        self._file_stamp = file_stamp
        self._granule_id = raw_file.name.rpartition(".")[0]
        self._indented_text = plain_text[header_match.end() :]
        self.volume, self.issue_number = int(header_match[1]), int(header_match[2])
        self.published_at = parse_spelled_date(header_match[3])
        self.part_letter = _LETTERS_BY_PART.get(header_match[4].strip().lower(), "")
        self.page_range = fold_dashes(header_match[5]).strip() or None
        self.text = _remove_indents(self._indented_text)
        self.title = _read_heading(self.text) or self._granule_id
        self.congress = (
            get_congress_on(self.published_at) if self.published_at else _find_congress(self.volume)
        )

    def build_entry(self) -> ParsedRecord:
        proceeding = _build_proceeding(
            self._granule_id,
            self._file_stamp,
            title=self.title,
            congress=self.congress,
            type=_TYPES_BY_LETTER.get(self.part_letter, "other"),
            # Extensions of Remarks (E) and the Daily Digest (D) belong to neither chamber.
            chamber=parse_chamber(self.part_letter if self.part_letter in ("H", "S") else None),
            volume=self.volume,
            issue=self.issue_number,
            pages=self.page_range,
            published_at=self.published_at,
        )
        item_text = RecordText(
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
            partial=True,
            head=SearchHead(self.title),
            facets=_build_proceeding_facets(proceeding),
            text=item_text,
            links=list(self._find_links()),
        )

    def _find_links(self) -> Iterator[RecordLink]:
        """The bills and laws that its words name, each with the printed page they stand on."""
        first_page = (self.page_range or "").partition("-")[0]
        page_parts = [first_page, *_NEW_PAGE_PATTERN.split(self.text)]
        for page_number, page_text in zip(page_parts[::2], page_parts[1::2], strict=True):
            page_label = f"page {page_number}" if page_number else "text"
            yield from find_bills(page_text, self.congress, LinkKind.MENTION, page_label)
            yield from find_laws(page_text, LinkKind.MENTION, page_label)

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
        bill_id = _find_bill_id(opening_text, self.congress)
        congress_ordinal = format_ordinal(self.congress)
        cite = f"S.Amdt. {amendment_number}{_format_amended(bill_id)}, {congress_ordinal} Congress"
        url = f"https://www.congress.gov/amendment/{congress_ordinal}-congress/senate-amendment/{amendment_number}"
        amendment = Amendment(
            id=make_amendment_id(self.congress, "samdt", amendment_number),
            title=cite,
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
                cite=f"{cite}, {self.volume} Cong. Rec. {self.page_range}",
                published_at=self.published_at,
                raw_sha256=hash_item(printed_text),
            ),
        )
        facet_values = {
            "congress": [str(self.congress)],
            "type": ["samdt"],
            "chamber": ["senate"],
            "bill": [bill_id] if bill_id else [],
        }
        text_version = RecordText(
            "text", amendment_text, cite, url, amendment.raw_sha256, "Submitted", self.published_at
        )
        evidence_text = f"printed as an amendment to it: {opening_text[:_MAX_EVIDENCE_CHARS]}"
        bill_links = [RecordLink(LinkKind.AMENDMENT, bill_id, evidence_text)] if bill_id else []
        return ParsedRecord(
            amendment,
            partial=True,
            head=SearchHead(cite),
            facets=facet_values,
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
        self._session = int(find_text(mods_extension, "session") or "1")

    def build_entry(self, item_element: Element, file_stamp: FileStamp) -> ParsedRecord:
        item_mods = item_element.find("extension")
        if item_mods is None:
            raise ValueError("an item of the issue says nothing of itself")
        granule_id = find_text(item_mods, "accessId") or ""
        spoken_at = parse_iso_date(find_text(item_mods, "granuleDate"))
        page_prefix = find_text(item_mods, "pagePrefix") or ""
        first_page, last_page = (
            find_text(item_element, f"part/extent/{page_edge}") for page_edge in ("start", "end")
        )
        item_title = find_text(item_element, "titleInfo/title") or granule_id
        mentions = self._find_mentions(item_mods)
        proceeding = _build_proceeding(
            granule_id,
            file_stamp,
            title=item_title,
            congress=self._congress,
            session=self._session,
            type=_TYPES_BY_LETTER.get(page_prefix[:1], "other"),
            chamber=parse_chamber(find_text(item_mods, "chamber")),
            category=(find_text(item_mods, "subGranuleClass") or "").lower() or None,
            volume=self._volume,
            issue=self._issue_number,
            pages="-".join(dict.fromkeys(filter(None, (first_page, last_page)))) or None,
            published_at=self._published_at,
            # Only what was printed on a later day than it was spoken has a date of its own.
            spoken_at=spoken_at if spoken_at != self._published_at else None,
            raw_sha256=hash_element(item_element),
            speakers=[
                _parse_speaker(member_element) for member_element in item_mods.findall("congMember")
            ],
            cfr_references=list(dict.fromkeys(_find_mentioned_cfr_parts(item_mods))),
            usc_references=list(dict.fromkeys(_find_mentioned_usc_sections(item_mods))),
            **{field_name: list(mentioned_ids) for field_name, mentioned_ids in mentions.items()},
        )
        speaker_names_text = ", ".join(speaker.name for speaker in proceeding.speakers)
        return ParsedRecord(
            proceeding,
            head=SearchHead(item_title, action=speaker_names_text),
            facets=_build_proceeding_facets(proceeding),
            links=[*_build_speaker_links(item_mods, proceeding), *_build_mention_links(mentions)],
        )

    def _find_mentions(self, item_mods: Element) -> MentionsByField:
        return {
            "bills": _keep_first_elements(_find_mentioned_bills(item_mods)),
            "amendments": _keep_first_elements(_find_mentioned_amendments(item_mods)),
            "votes": _keep_first_elements(self._find_votes(item_mods)),
            "laws": _keep_first_elements(_find_mentioned_laws(item_mods)),
            "reports": _keep_first_elements(_find_mentioned_reports(item_mods)),
            "committees": _keep_first_elements(_find_mentioned_committees(item_mods)),
        }

    def _find_votes(self, item_mods: Element) -> Mentions:
        for vote_element, congress, vote_number in _iterate_numbered(item_mods, "congVote"):
            if chamber_name := vote_element.get("chamber"):
                yield make_vote_id(chamber_name, congress, self._session, vote_number), vote_element


def _build_proceeding(
    granule_id: str,
    file_stamp: FileStamp,
    *,
    published_at: str | None,
    raw_sha256: str | None = None,
    **fields: object,
) -> Proceeding:
    issue_id = granule_id.partition("-pt")[0]
    first_page = str(fields["pages"] or "").partition("-")[0]
    page_or_issue = first_page or f"no. {fields['issue']}"
    cite = f"{fields['volume']} Cong. Rec. {page_or_issue}, {fields['title']}"
    return Proceeding.model_validate(
        fields
        | {"id": make_proceeding_id(granule_id)}
        | build_citation_fields(
            file_stamp,
            url=f"https://www.govinfo.gov/app/details/{issue_id}/{granule_id}",
            org=GPO_PUBLISHER,
            cite=cite,
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


def _find_congress(volume_number: int) -> int:
    """The Congress of a volume: one a year, the 151st in 2005."""
    return get_congress_on(f"{volume_number + 1854}-06-01")


def _remove_indents(printed_text: str) -> str:
    """A printed page without its indents; what was indented further begins a paragraph."""
    unindented_lines: list[str] = []
    previous_indent = 0
    for printed_line in printed_text.splitlines():
        line_text = printed_line.strip()
        indent = len(printed_line) - len(printed_line.lstrip())
        if line_text and unindented_lines and unindented_lines[-1] and indent > previous_indent:
            unindented_lines.append("")
        if line_text or (unindented_lines and unindented_lines[-1]):
            unindented_lines.append(line_text)
        previous_indent = indent if line_text else 0
    return "\n".join(unindented_lines).strip()


def _read_heading(page_text: str) -> str:
    """The heading: the lines before the first empty one, or a first line in brackets."""
    if bracket_match := re.match(r"\[([^\]\n]+)\]\n", page_text):
        return bracket_match[1]
    heading_text = page_text.partition("\n\n")[0]
    return " ".join(heading_text.split())[:300].strip("_ ")


def _format_amended(bill_id: str | None) -> str:
    if bill_id is None:
        return ""
    bill_type, _, bill_number = bill_id.split(":")
    return f" to {BILL_LABELS[bill_type]} {bill_number}"


def _find_bill_id(opening_text: str, congress: int) -> str | None:
    bill_match = _AMENDED_BILL_PATTERN.search(opening_text)
    try:
        return parse_federal_id(bill_match[1], congress).id if bill_match else None
    except UnrecognizedId:
        return None


# --- what an item names ---


def _build_speaker_links(item_mods: Element, floor_proceeding: Proceeding) -> Iterator[RecordLink]:
    for member_element, speaker in zip(
        item_mods.findall("congMember"), floor_proceeding.speakers, strict=True
    ):
        if speaker.bioguide_id:
            name = find_text(member_element, "name[@type='parsed']") or speaker.name
            role = (member_element.get("role") or "named").lower()
            yield RecordLink(LinkKind.SPEECH, speaker.bioguide_id, f"congMember ({role}): {name}")


def _build_mention_links(mentions_by_field: MentionsByField) -> Iterator[RecordLink]:
    for element_by_id in mentions_by_field.values():
        for mentioned_id, element in element_by_id.items():
            yield RecordLink(
                LinkKind.MENTION, mentioned_id, f"MODS of the item: {_format_element(element)}"
            )


def _format_element(element: Element) -> str:
    """An element as it stands in the file: its attributes, and what it says first, if anything."""
    attributes_xml = "".join(f' {attribute}="{value}"' for attribute, value in element.items())
    first_text = find_text(element[0]) or "" if len(element) else ""
    return f"<{element.tag}{attributes_xml}> {first_text}".strip()


def _keep_first_elements(mentions: Mentions) -> dict[str, Element]:
    """What is named, each with the first element that names it."""
    first_element_by_id: dict[str, Element] = {}
    for mentioned_id, element in mentions:
        first_element_by_id.setdefault(mentioned_id, element)
    return first_element_by_id


def _parse_speaker(member_element: Element) -> Person:
    names_by_type = {
        name_element.get("type"): find_text(name_element)
        for name_element in member_element.findall("name")
    }
    return Person(
        bioguide_id=member_element.get("bioGuideId"),
        name=names_by_type.get("authority-fnf") or names_by_type.get("parsed") or "",
        party=member_element.get("party"),
        state=member_element.get("state"),
    )


def _iterate_numbered(item_mods: Element, tag_name: str) -> Iterator[tuple[Element, str, str]]:
    """What is named by congress and number; a few lack one, and name nothing."""
    for element in item_mods.findall(tag_name):
        named_congress, item_number = element.get("congress", ""), element.get("number", "")
        if named_congress.isdecimal() and item_number.isdecimal():
            yield element, named_congress, item_number


def _find_mentioned_bills(item_mods: Element) -> Mentions:
    for bill_element, named_congress, bill_number in _iterate_numbered(item_mods, "bill"):
        if (bill_type := bill_element.get("type", "").lower()) in BILL_TYPES:
            yield make_bill_id(named_congress, bill_type, bill_number), bill_element


def _find_mentioned_amendments(item_mods: Element) -> Mentions:
    for element, named_congress, amendment_number in _iterate_numbered(item_mods, "amendment"):
        amendment_type = "samdt" if element.get("chamber") == "SENATE" else "hamdt"
        yield make_amendment_id(named_congress, amendment_type, amendment_number), element


def _find_mentioned_laws(item_mods: Element) -> Mentions:
    for element, named_congress, law_number in _iterate_numbered(item_mods, "law"):
        is_private = element.get("isPrivate") == "true"
        yield make_law_id(f"{named_congress}-{law_number}", is_private=is_private), element


def _find_mentioned_reports(item_mods: Element) -> Mentions:
    for element, named_congress, report_number in _iterate_numbered(item_mods, "congReport"):
        report_type = f"{element.get('type', 'H')[0]}rpt"
        yield make_report_id(named_congress, report_type, report_number), element


def _find_mentioned_committees(item_mods: Element) -> Mentions:
    for committee_element in item_mods.findall("congCommittee"):
        if committee_code := committee_element.get("authorityId"):
            yield make_committee_id(committee_code), committee_element


def _find_mentioned_cfr_parts(item_mods: Element) -> Iterator[str]:
    for title_element in item_mods.findall("cfr"):
        for part_element in title_element.findall("part"):
            yield f"{title_element.get('title')} CFR Part {part_element.get('number')}"


def _find_mentioned_usc_sections(item_mods: Element) -> Iterator[str]:
    for title_element in item_mods.findall("USCode"):
        for section_element in title_element.findall("section"):
            section_number = f"{section_element.get('number')}{section_element.get('detail') or ''}"
            yield f"{title_element.get('title')} U.S.C. {section_number}"
