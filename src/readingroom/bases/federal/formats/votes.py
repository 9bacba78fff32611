"""Reads roll call votes: the XML of the House Clerk and that of the Senate's LIS."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts.files import FileStart, RawFile
from readingroom.bases.federal.formats.parts.people import build_legislator_stub
from readingroom.bases.federal.formats.parts.xml import get_text, parse
from readingroom.bases.federal.schema.congress import SPOKEN, format_ordinal, get_first_day
from readingroom.bases.federal.schema.entries import (
    Link,
    ParsedRecord,
    Provenance,
    build_citation_fields,
)
from readingroom.bases.federal.schema.ids import (
    make_amendment_id,
    make_bill_id,
    make_vote_id,
    parse_federal_id,
)
from readingroom.bases.federal.schema.records import (
    Chamber,
    LinkKind,
    PartyTotals,
    Person,
    RollCall,
    VoteTotals,
)
from readingroom.core.errors import UnrecognizedId

Row = tuple[Person, str, str | None]
"""Who voted, how, and the LIS id where that is all the file has."""

PARTIES = {
    "Democratic": "D",
    "Democrat": "D",
    "Republican": "R",
    "Independent": "I",
    "Libertarian": "L",
}
_TOTAL_OF_POSITION = {
    **dict.fromkeys(("yea", "aye", "guilty"), "yea"),
    **dict.fromkeys(("nay", "no", "not guilty"), "nay"),
    "present": "present",
    "not voting": "not_voting",
}
_AMENDMENT = re.compile(r"S\.?\s?Amdt\.?\s?(?:No\.?\s?)?(\d+)", re.I | re.ASCII)
_BIOGUIDE = re.compile(r"[A-Z]\d{6}", re.ASCII)


class HouseVotes:
    """`roll037.xml` of clerk.house.gov."""

    format_id: ClassVar[str] = "house-vote/5"
    sources: ClassVar[tuple[str, ...]] = ("roll_call_votes",)
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return b"<rollcall-vote" in start.head

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        root = parse(file.data)
        meta = root.find("vote-metadata")
        if meta is None:
            raise ValueError("no <vote-metadata> in this file")
        yield from _parse_house_vote(meta, root, provenance)


class SenateVotes:
    """`vote_108_2_00213.xml` of senate.gov."""

    format_id: ClassVar[str] = "senate-vote/4"
    sources: ClassVar[tuple[str, ...]] = ("roll_call_votes",)
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return b"<roll_call_vote" in start.head

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        yield from _parse_senate_vote(parse(file.data), provenance)


def _parse_house_vote(
    meta: Element, element: Element, provenance: Provenance
) -> Iterator[ParsedRecord]:
    congress, number = (
        int(get_text(meta, "congress") or ""),
        int(get_text(meta, "rollcall-num") or ""),
    )
    # `1st` or `2nd`.
    session = int((get_text(meta, "session") or "")[:1])
    voted = _parse_date(get_text(meta, "action-date"), "%d-%b-%Y")
    # Each session is one year long.
    year = int(voted[:4]) if voted else get_first_day(congress).year + session - 1
    rows = list(_read_house_rows(element))
    bill_number = get_text(meta, "legis-num")
    bills = list(_find_bill(bill_number, congress))
    # Before the vote: its rows have foreign keys to the members.
    yield from _build_stubs(rows, provenance)
    yield _build_entry(
        "house",
        (congress, session, number),
        rows,
        provenance,
        url=f"https://clerk.house.gov/Votes/{year}{number}",
        voted_at=voted,
        question=get_text(meta, "vote-question") or "",
        type=get_text(meta, "vote-type"),
        result=get_text(meta, "vote-result"),
        description=get_text(meta, "vote-desc"),
        bills=bills,
        links=[Link(LinkKind.VOTE, bill, f"legis-num: {bill_number}") for bill in bills],
        amendment=get_text(meta, "amendment-author"),
        totals=_read_totals(meta.find("vote-totals/totals-by-vote"), "-total"),
        party_totals=list(_read_party_totals(meta)) or _count_by_party(rows),
    )


def _read_house_rows(element: Element) -> Iterator[Row]:
    for vote in element.iterfind("vote-data/recorded-vote"):
        member = vote.find("legislator")
        if member is None:
            continue
        name_id = member.get("name-id") or ""
        is_bioguide = _BIOGUIDE.fullmatch(name_id) is not None  # before 2003 there is none
        person = Person(
            bioguide_id=name_id if is_bioguide else None,
            name=get_text(member) or member.get("sort-field") or name_id,
            party=member.get("party"),
            state=member.get("state"),
        )
        yield person, get_text(vote, "vote") or "", None


def _parse_senate_vote(element: Element, provenance: Provenance) -> Iterator[ParsedRecord]:
    congress, session = (
        int(get_text(element, "congress") or ""),
        int(get_text(element, "session") or ""),
    )
    number = int(get_text(element, "vote_number") or "")
    rows = list(_read_senate_rows(element))
    documents = dict(_find_documents(element, congress))
    links = [Link(LinkKind.VOTE, id, f"document: {name}") for id, name in documents.items()]
    links += _find_senate_amendment(element, congress)
    page = f"vote{congress}{session}/vote_{congress}_{session}_{number:05}.htm"
    yield _build_entry(
        "senate",
        (congress, session, number),
        rows,
        provenance,
        url=f"https://www.senate.gov/legislative/LIS/roll_call_votes/{page}",
        voted_at=_parse_senate_date(get_text(element, "vote_date")),
        question=get_text(element, "vote_question_text") or get_text(element, "question") or "",
        type=get_text(element, "question"),
        result=get_text(element, "vote_result"),
        majority_required=get_text(element, "majority_requirement"),
        description=get_text(element, "vote_document_text") or get_text(element, "vote_title"),
        bills=list(documents),
        links=links,
        amendment=get_text(element, "amendment/amendment_number"),
        totals=VoteTotals(
            yea=_read_number(element, "count/yeas"),
            nay=_read_number(element, "count/nays"),
            present=_read_number(element, "count/present"),
            not_voting=_read_number(element, "count/absent"),
        ),
        party_totals=_count_by_party(rows),
    )


def _read_senate_rows(element: Element) -> Iterator[Row]:
    """Members go by their LIS ids here; who they are is found out when the load ends."""
    for member in element.iterfind("members/member"):
        lis = get_text(member, "lis_member_id")
        first, last = get_text(member, "first_name"), get_text(member, "last_name")
        person = Person(
            bioguide_id=None,
            name=" ".join(filter(None, (first, last))) or get_text(member, "member_full") or "",
            party=get_text(member, "party"),
            state=get_text(member, "state"),
        )
        yield person, get_text(member, "vote_cast") or "", lis


def _parse_senate_date(text: str | None) -> str | None:
    """`November 17, 2004,  05:48 PM`."""
    parts = (text or "").split(",")
    return _parse_date(",".join(parts[:2]).strip(), "%B %d, %Y")


def _find_senate_amendment(element: Element, congress: int) -> Iterator[Link]:
    """`S.Amdt. 4999`; the numbers begin anew with each Congress."""
    number = get_text(element, "amendment/amendment_number")
    if match := _AMENDMENT.fullmatch(number or ""):
        id = make_amendment_id(congress, "samdt", match[1])
        yield Link(LinkKind.VOTE, id, f"amendment_number: {number}")


def _find_documents(element: Element, congress: int) -> Iterator[tuple[str, str]]:
    """The bills voted on, and how the file writes them; one vote may be on forty-eight papers."""
    for document in element.iterfind("document"):
        # Nominations and treaties are documents too, but no bills.
        kind = re.sub(r"[.\s]", "", get_text(document, "document_type") or "").lower()
        number = get_text(document, "document_number")
        if kind in SPOKEN and number and number.isdecimal():
            id = make_bill_id(get_text(document, "document_congress") or congress, kind, number)
            yield id, get_text(document, "document_name") or f"{kind} {number}"


def _find_bill(text: str | None, congress: int) -> Iterator[str]:
    """`H R 21`, `H J RES 5`; a quorum call or an election has none."""
    try:
        if text:
            yield parse_federal_id(re.sub(r"\s+(?=\D)", "", text), congress).id
    except UnrecognizedId:
        return


def _build_entry(
    chamber: Chamber,
    numbers: tuple[int, int, int],
    rows: list[Row],
    provenance: Provenance,
    *,
    url: str,
    links: Sequence[Link],
    **fields: Any,
) -> ParsedRecord:
    congress, session, number = numbers
    id = make_vote_id(chamber, *numbers)
    label = f"{chamber.title()} roll call vote {number}, {format_ordinal(congress)} Congress"
    label += f", {format_ordinal(session)} session"
    about = ", ".join(fields["bills"])
    title = f"{label}: {fields['question']}" + (f" ({about})" if about else "")
    org = "Clerk of the House" if chamber == "house" else "Secretary of the Senate"
    record = RollCall(
        id=id,
        title=title,
        chamber=chamber,
        congress=congress,
        session=session,
        number=number,
        recorded=len(rows),
        **fields,
        **build_citation_fields(
            provenance, url=url, org=org, cite=label, published_at=fields["voted_at"]
        ),
    )
    # Compared as text: by day, and within a day by number.
    sorted_at = f"{fields['voted_at'] or ''}#{number:05}"
    members = [
        (row_number, person.bioguide_id, lis, congress, sorted_at, person.name, person.party,
         person.state, position)
        for row_number, (person, position, lis) in enumerate(rows, start=1)
    ]  # fmt: skip
    names = (title, record.description or "", record.amendment or "")
    return ParsedRecord(record, names=names, children={"member_votes": members}, links=links)


def _build_stubs(rows: list[Row], provenance: Provenance) -> Iterator[ParsedRecord]:
    for person, *_ in rows:
        if person.bioguide_id:
            yield build_legislator_stub(person, provenance)


def _read_totals(totals: Element | None, ending: str) -> VoteTotals:
    if totals is None:
        return VoteTotals()
    return VoteTotals(
        yea=_read_number(totals, f"yea{ending}"),
        nay=_read_number(totals, f"nay{ending}"),
        present=_read_number(totals, f"present{ending}"),
        not_voting=_read_number(totals, f"not-voting{ending}"),
    )


def _read_party_totals(meta: Element) -> Iterator[PartyTotals]:
    """The Clerk prints how each party voted."""
    for totals in meta.iterfind("vote-totals/totals-by-party"):
        party = get_text(totals, "party") or ""
        counts = _read_totals(totals, "-total")
        yield PartyTotals(party=PARTIES.get(party, party), **counts.model_dump())


def _count_by_party(rows: Sequence[Row]) -> list[PartyTotals]:
    """The Senate prints no totals of parties: they are counted from its members."""
    counts: dict[str, Counter[str]] = {}
    for person, position, _ in rows:
        field = _TOTAL_OF_POSITION.get(position.lower().partition(",")[0])
        if person.party and field:
            counts.setdefault(person.party, Counter())[field] += 1
    return [PartyTotals(party=party, **counts[party]) for party in sorted(counts)]


def _read_number(element: Element, path: str) -> int:
    text = get_text(element, path)
    return int(text) if text and text.isdecimal() else 0


def _parse_date(text: str | None, pattern: str) -> str | None:
    try:
        return datetime.strptime(text or "", pattern).date().isoformat()  # noqa: DTZ007 a day
    except ValueError:
        return None
