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
    get_text,
    hash_element,
    parse,
    parse_iso_date,
)
from readingroom.bases.federal.formats.uslm import parse_spelled_date
from readingroom.bases.federal.schema.congress import GPO, SPOKEN, format_ordinal, get_congress_on
from readingroom.bases.federal.schema.entries import (
    Link,
    ParsedRecord,
    Provenance,
    SearchHead,
    Text,
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

_HEADER = re.compile(
    r"\[Congressional Record Volume (\d+), Number (\d+) \(([^)]*)\)\]\s*"
    r"\[([^\]]*)\]\s*\[Pages? ?([^\]]*)\]\s*From the Congressional Record Online[^\n]*\n"
)
_PRE = re.compile(r"<pre>(.*?)(?:</pre>|$)", re.S | re.I)
_EVIDENCE = 300
_NEW_PAGE = re.compile(r"\[\[Page ([A-Z]?\d+)\]\]", re.ASCII)
_TAG = re.compile(r"</?[A-Za-z][^>\n]*>")
_TYPES = {"D": "digest", "E": "extensions", "H": "house", "S": "senate"}
_PARTS = {"daily digest": "D", "extensions of remarks": "E", "house": "H", "senate": "S"}
_AMENDMENT = re.compile(r"^  SA (\d+)\. (.*?)(?=^  SA \d+\. |^ {6,}_{4,}\s*\Z|\Z)", re.S | re.M)
_ITS_BILL = re.compile(r"\b(?:bill|resolution) ([HS]\.[^,;]{0,20}?\d+)")
# Mr. McCONNELL (for Mr. Byrd): who speaks for another is not the sponsor.
_ITS_SPONSOR = re.compile(
    r"^(?:M(?:r|rs|s|iss)\. [^(]{1,60}\(for )?M(?:r|rs|s|iss)\. ((?:[A-Z][\w'.-]*\s?)+)"
)

Mentions = Iterator[tuple[str, Element]]
"""Ids, each with the element of the MODS that names it."""
MentionsByField = dict[str, dict[str, Element]]
"""The same by the record's field, each id once."""


class Pages:
    """`CREC-2005-07-20-pt1-PgE1551-2.htm`: the text of one item."""

    format_id: ClassVar[str] = "crec-page/2"
    sources: ClassVar[tuple[str, ...]] = ("congressional_record", "amendments")
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return b"[Congressional Record Volume" in start.head and start.name.startswith("CREC-")

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        page = _Page(file, provenance)
        yield page.build_entry()
        yield from page.find_amendments()


class Issues:
    """`mods.xml`: what every item of a day's issue is, who spoke in it, what it names."""

    format_id: ClassVar[str] = "crec-mods/2"
    sources: ClassVar[tuple[str, ...]] = ("congressional_record",)
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return b"http://www.loc.gov/mods" in start.head and b">CREC<" in start.head

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        issue = parse(file.data)
        about = _Issue(issue)
        people: dict[str, Person] = {}
        for item in issue.findall("relatedItem[@type='constituent']"):
            entry = about.build_entry(item, provenance)
            assert isinstance(entry.record, Proceeding)
            people.update({speaker.bioguide_id or "": speaker for speaker in entry.record.speakers})
            yield entry
        yield from (
            build_legislator_stub(person, provenance) for id, person in sorted(people.items()) if id
        )


class _Page:
    """Parses a page of HTML."""

    def __init__(self, file: RawFile, provenance: Provenance) -> None:
        # The printing office marked some lines with a NUL, which no reader can use.
        markup = file.data.decode("utf-8", "replace").replace("\0", "")
        inside = _PRE.search(markup)
        raw = html.unescape(_TAG.sub("", inside[1] if inside else markup))
        header = _HEADER.search(raw)
        if header is None:
            raise ValueError("no header of the Congressional Record on this page")
        self._provenance = provenance
        self._granule = file.name.rpartition(".")[0]
        self._raw = raw[header.end() :]
        self.volume, self.issue = int(header[1]), int(header[2])
        self.published = parse_spelled_date(header[3])
        self.letter = _PARTS.get(header[4].strip().lower(), "")
        self.pages = fold_dashes(header[5]).strip() or None
        self.text = _remove_indents(self._raw)
        self.title = _read_heading(self.text) or self._granule
        self.congress = (
            get_congress_on(self.published) if self.published else _find_congress(self.volume)
        )

    def build_entry(self) -> ParsedRecord:
        record = _build_proceeding(
            self._granule,
            self._provenance,
            title=self.title,
            congress=self.congress,
            type=_TYPES.get(self.letter, "other"),
            # Extensions of Remarks (E) and the Daily Digest (D) belong to neither chamber.
            chamber=parse_chamber(self.letter if self.letter in ("H", "S") else None),
            volume=self.volume,
            issue=self.issue,
            pages=self.pages,
            published=self.published,
        )
        text = Text(
            "text", self.text, self.title, record.url, self._provenance.sha256, dated=self.published
        )
        return ParsedRecord(
            record,
            # Where the MODS of the issue is loaded, it knows more than the page.
            partial=True,
            head=SearchHead(self.title),
            facets=_build_facets(record),
            text=text,
            links=list(self._find_links()),
        )

    def _find_links(self) -> Iterator[Link]:
        """The bills and laws that its words name, each with the printed page they stand on."""
        first = (self.pages or "").partition("-")[0]
        parts = [first, *_NEW_PAGE.split(self.text)]
        for page, words in zip(parts[::2], parts[1::2], strict=True):
            location = f"page {page}" if page else "text"
            yield from find_bills(words, self.congress, LinkKind.MENTION, location)
            yield from find_laws(words, LinkKind.MENTION, location)

    def find_amendments(self) -> Iterator[ParsedRecord]:
        """The amendments printed in full: the one place where those of the Senate stand."""
        if not self.title.upper().startswith("TEXT OF AMENDMENTS"):
            return
        for match in _AMENDMENT.finditer(self._raw):
            yield self._build_amendment(int(match[1]), match[2])

    def _build_amendment(self, number: int, printed: str) -> ParsedRecord:
        body = _remove_indents(printed).rstrip("_\n ")
        # Sponsor and bill stand in the first sentence; the text after it may name other bills.
        opening = " ".join(body[:1000].split())
        sponsor = _ITS_SPONSOR.match(opening)
        bill = _find_bill(opening, self.congress)
        cite = f"S.Amdt. {number}{_format_amended(bill)}, {format_ordinal(self.congress)} Congress"
        url = f"https://www.congress.gov/amendment/{format_ordinal(self.congress)}-congress/senate-amendment/{number}"
        record = Amendment(
            id=make_amendment_id(self.congress, "samdt", number),
            title=cite,
            congress=self.congress,
            type="samdt",
            number=number,
            chamber="senate",
            bill_id=bill,
            submitted_at=self.published,
            sponsors=[Person(name=format_name(sponsor[1].strip()))] if sponsor else [],
            **build_citation_fields(
                self._provenance,
                url=url,
                org=GPO,
                cite=f"{cite}, {self.volume} Cong. Rec. {self.pages}",
                published_at=self.published,
                raw_sha256=hash_item(printed),
            ),
        )
        facets = {
            "congress": [str(self.congress)],
            "type": ["samdt"],
            "chamber": ["senate"],
            "bill": [bill] if bill else [],
        }
        text = Text("text", body, cite, url, record.raw_sha256, "Submitted", self.published)
        evidence = f"printed as an amendment to it: {opening[:_EVIDENCE]}"
        links = [Link(LinkKind.AMENDMENT, bill, evidence)] if bill else []
        return ParsedRecord(
            record, partial=True, head=SearchHead(cite), facets=facets, text=text, links=links
        )


class _Issue:
    """What the MODS says of the issue as a whole."""

    def __init__(self, mods: Element) -> None:
        # There are several extensions; the one about the issue itself has the volume.
        extension = next(
            element for element in mods.findall("extension") if element.find("volume") is not None
        )
        self._published = parse_iso_date(get_text(mods, "originInfo/dateIssued"))
        self._volume = int(get_text(extension, "volume") or "")
        self._number = int(get_text(extension, "issue") or "")
        self._congress = int(get_text(extension, "congress") or "")
        self._session = int(get_text(extension, "session") or "1")

    def build_entry(self, element: Element, provenance: Provenance) -> ParsedRecord:
        extension = element.find("extension")
        if extension is None:
            raise ValueError("an item of the issue says nothing of itself")
        granule = get_text(extension, "accessId") or ""
        spoken = parse_iso_date(get_text(extension, "granuleDate"))
        letter = get_text(extension, "pagePrefix") or ""
        start, end = (get_text(element, f"part/extent/{edge}") for edge in ("start", "end"))
        title = get_text(element, "titleInfo/title") or granule
        mentions = self._find_mentions(extension)
        record = _build_proceeding(
            granule,
            provenance,
            title=title,
            congress=self._congress,
            session=self._session,
            type=_TYPES.get(letter[:1], "other"),
            chamber=parse_chamber(get_text(extension, "chamber")),
            category=(get_text(extension, "subGranuleClass") or "").lower() or None,
            volume=self._volume,
            issue=self._number,
            pages="-".join(dict.fromkeys(filter(None, (start, end)))) or None,
            published=self._published,
            # Only what was printed on a later day than it was spoken has a date of its own.
            spoken_at=spoken if spoken != self._published else None,
            raw_sha256=hash_element(element),
            speakers=[_parse_speaker(element) for element in extension.findall("congMember")],
            cfr_references=list(dict.fromkeys(_find_cfr_parts(extension))),
            usc_references=list(dict.fromkeys(_find_usc_sections(extension))),
            **{field: list(ids) for field, ids in mentions.items()},
        )
        names = ", ".join(speaker.name for speaker in record.speakers)
        return ParsedRecord(
            record,
            head=SearchHead(title, action=names),
            facets=_build_facets(record),
            links=[*_build_speech_links(extension, record), *_build_mention_links(mentions)],
        )

    def _find_mentions(self, extension: Element) -> MentionsByField:
        return {
            "bills": _keep_first(_find_bills(extension)),
            "amendments": _keep_first(_find_amendments(extension)),
            "votes": _keep_first(self._find_votes(extension)),
            "laws": _keep_first(_find_laws(extension)),
            "reports": _keep_first(_find_reports(extension)),
            "committees": _keep_first(_find_committees(extension)),
        }

    def _find_votes(self, extension: Element) -> Mentions:
        for vote, congress, number in _iterate_numbered(extension, "congVote"):
            if chamber := vote.get("chamber"):
                yield make_vote_id(chamber, congress, self._session, number), vote


def _build_proceeding(
    granule: str,
    provenance: Provenance,
    *,
    published: str | None,
    raw_sha256: str | None = None,
    **fields: object,
) -> Proceeding:
    issue = granule.partition("-pt")[0]
    first = str(fields["pages"] or "").partition("-")[0]
    cite = (
        f"{fields['volume']} Cong. Rec. {first or 'no. ' + str(fields['issue'])}, {fields['title']}"
    )
    return Proceeding.model_validate(
        fields
        | {"id": make_proceeding_id(granule)}
        | build_citation_fields(
            provenance,
            url=f"https://www.govinfo.gov/app/details/{issue}/{granule}",
            org=GPO,
            cite=cite,
            published_at=published,
            raw_sha256=raw_sha256,
        )
    )


def _build_facets(record: Proceeding) -> dict[str, list[str]]:
    return {
        "congress": [str(record.congress)],
        "type": [record.type],
        "chamber": [record.chamber] if record.chamber else [],
        "member": [speaker.bioguide_id for speaker in record.speakers if speaker.bioguide_id],
        "bill": record.bills,
    }


def _find_congress(volume: int) -> int:
    """The Congress of a volume: one a year, the 151st in 2005."""
    return get_congress_on(f"{volume + 1854}-06-01")


def _remove_indents(printed: str) -> str:
    """A printed page without its indents; what was indented further begins a paragraph."""
    lines: list[str] = []
    before = 0
    for line in printed.splitlines():
        words = line.strip()
        indent = len(line) - len(line.lstrip())
        if words and lines and lines[-1] and indent > before:
            lines.append("")
        if words or (lines and lines[-1]):
            lines.append(words)
        before = indent if words else 0
    return "\n".join(lines).strip()


def _read_heading(text: str) -> str:
    """The heading: the lines before the first empty one, or a first line in brackets."""
    if bracketed := re.match(r"\[([^\]\n]+)\]\n", text):
        return bracketed[1]
    heading = text.partition("\n\n")[0]
    return " ".join(heading.split())[:300].strip("_ ")


def _format_amended(bill: str | None) -> str:
    if bill is None:
        return ""
    kind, _, number = bill.split(":")
    return f" to {SPOKEN[kind]} {number}"


def _find_bill(opening: str, congress: int) -> str | None:
    match = _ITS_BILL.search(opening)
    try:
        return parse_federal_id(match[1], congress).id if match else None
    except UnrecognizedId:
        return None


# --- what an item names ---


def _build_speech_links(extension: Element, record: Proceeding) -> Iterator[Link]:
    for member, speaker in zip(extension.findall("congMember"), record.speakers, strict=True):
        if speaker.bioguide_id:
            called = get_text(member, "name[@type='parsed']") or speaker.name
            role = (member.get("role") or "named").lower()
            yield Link(LinkKind.SPEECH, speaker.bioguide_id, f"congMember ({role}): {called}")


def _build_mention_links(mentions: MentionsByField) -> Iterator[Link]:
    for ids in mentions.values():
        for id, element in ids.items():
            yield Link(LinkKind.MENTION, id, f"MODS of the item: {_format_element(element)}")


def _format_element(element: Element) -> str:
    """An element as it stands in the file: its attributes, and what it says first, if anything."""
    attributes = " ".join((element.tag, *(f'{name}="{value}"' for name, value in element.items())))
    return f"<{attributes}> {get_text(element[0]) or '' if len(element) else ''}".strip()


def _keep_first(mentions: Mentions) -> dict[str, Element]:
    """What is named, each with the first element that names it."""
    first: dict[str, Element] = {}
    for id, element in mentions:
        first.setdefault(id, element)
    return first


def _parse_speaker(member: Element) -> Person:
    names = {name.get("type"): get_text(name) for name in member.findall("name")}
    return Person(
        bioguide_id=member.get("bioGuideId"),
        name=names.get("authority-fnf") or names.get("parsed") or "",
        party=member.get("party"),
        state=member.get("state"),
    )


def _iterate_numbered(extension: Element, tag: str) -> Iterator[tuple[Element, str, str]]:
    """What is named by congress and number; a few lack one, and name nothing."""
    for element in extension.findall(tag):
        named_congress, number = element.get("congress", ""), element.get("number", "")
        if named_congress.isdecimal() and number.isdecimal():
            yield element, named_congress, number


def _find_bills(extension: Element) -> Mentions:
    for item, named_congress, number in _iterate_numbered(extension, "bill"):
        if (kind := item.get("type", "").lower()) in BILL_TYPES:
            yield make_bill_id(named_congress, kind, number), item


def _find_amendments(extension: Element) -> Mentions:
    for item, named_congress, number in _iterate_numbered(extension, "amendment"):
        kind = "samdt" if item.get("chamber") == "SENATE" else "hamdt"
        yield make_amendment_id(named_congress, kind, number), item


def _find_laws(extension: Element) -> Mentions:
    for item, named_congress, number in _iterate_numbered(extension, "law"):
        yield (
            make_law_id(f"{named_congress}-{number}", private=item.get("isPrivate") == "true"),
            item,
        )


def _find_reports(extension: Element) -> Mentions:
    for item, named_congress, number in _iterate_numbered(extension, "congReport"):
        yield make_report_id(named_congress, f"{item.get('type', 'H')[0]}rpt", number), item


def _find_committees(extension: Element) -> Mentions:
    for element in extension.findall("congCommittee"):
        if code := element.get("authorityId"):
            yield make_committee_id(code), element


def _find_cfr_parts(extension: Element) -> Iterator[str]:
    for title in extension.findall("cfr"):
        for element in title.findall("part"):
            yield f"{title.get('title')} CFR Part {element.get('number')}"


def _find_usc_sections(extension: Element) -> Iterator[str]:
    for title in extension.findall("USCode"):
        for section in title.findall("section"):
            number = f"{section.get('number')}{section.get('detail') or ''}"
            yield f"{title.get('title')} U.S.C. {number}"
