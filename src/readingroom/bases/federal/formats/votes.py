"""Reads roll call votes: the XML of the House Clerk and that of the Senate's LIS."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.formats.parts.people import build_legislator_stub
from readingroom.bases.federal.formats.parts.xml import find_text, parse_xml
from readingroom.bases.federal.schema.congress import (
    LABEL_BY_BILL_TYPE,
    format_ordinal,
    get_first_day_of_congress,
)
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
    RecordLink,
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

MemberVoteRow = tuple[Person, str, str | None]
"""Who voted, how, and the LIS id where that is all the file has."""

PARTY_LETTERS_BY_NAME = {
    "Democratic": "D",
    "Democrat": "D",
    "Republican": "R",
    "Independent": "I",
    "Libertarian": "L",
}
_TOTAL_FIELD_BY_POSITION = {
    **dict.fromkeys(("yea", "aye", "guilty"), "yea"),
    **dict.fromkeys(("nay", "no", "not guilty"), "nay"),
    "present": "present",
    "not voting": "not_voting",
}
_AMENDMENT_NUMBER_PATTERN = re.compile(r"S\.?\s?Amdt\.?\s?(?:No\.?\s?)?(\d+)", re.I | re.ASCII)
_BIOGUIDE_ID_PATTERN = re.compile(r"[A-Z]\d{6}", re.ASCII)


_STATE_OF_DELEGATES = "XX"
"""What the Clerk prints for every delegate; which place each is from, the roster says."""


class HouseVoteLoader:
    """`roll037.xml` of clerk.house.gov."""

    format_id: ClassVar[str] = "house-vote/7"
    record_source_names: ClassVar[tuple[str, ...]] = ("roll_call_votes",)
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return b"<rollcall-vote" in file_start_reader.first_bytes

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        vote_element = parse_xml(raw_file.data)
        metadata_element = vote_element.find("vote-metadata")
        if metadata_element is None:
            raise ValueError("no <vote-metadata> in this file")
        yield from _parse_house_vote(metadata_element, vote_element, file_stamp)


class SenateVoteLoader:
    """`vote_108_2_00213.xml` of senate.gov."""

    format_id: ClassVar[str] = "senate-vote/5"
    record_source_names: ClassVar[tuple[str, ...]] = ("roll_call_votes",)
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return b"<roll_call_vote" in file_start_reader.first_bytes

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        yield from _parse_senate_vote(parse_xml(raw_file.data), file_stamp)


def _parse_house_vote(
    metadata_element: Element, vote_element: Element, file_stamp: FileStamp
) -> Iterator[ParsedRecord]:
    congress, vote_number = (
        int(find_text(metadata_element, "congress") or ""),
        int(find_text(metadata_element, "rollcall-num") or ""),
    )
    # `1st` or `2nd`.
    session_number = int((find_text(metadata_element, "session") or "")[:1])
    voted_at = _parse_vote_date(find_text(metadata_element, "action-date"), "%d-%b-%Y")
    # Each session is one year long.
    vote_year = (
        int(voted_at[:4])
        if voted_at
        else get_first_day_of_congress(congress).year + session_number - 1
    )
    member_votes = list(_read_house_member_votes(vote_element))
    bill_number_text = find_text(metadata_element, "legis-num")
    bill_ids = list(_find_voted_bill_ids(bill_number_text, congress))
    # Before the vote: its rows have foreign keys to the members.
    yield from _build_voter_stubs(member_votes, file_stamp)
    yield _build_vote(
        "house",
        (congress, session_number, vote_number),
        member_votes,
        file_stamp,
        url=f"https://clerk.house.gov/Votes/{vote_year}{vote_number}",
        voted_at=voted_at,
        question=find_text(metadata_element, "vote-question") or "",
        type=find_text(metadata_element, "vote-type"),
        result=find_text(metadata_element, "vote-result"),
        description=find_text(metadata_element, "vote-desc"),
        bills=bill_ids,
        record_links=[
            RecordLink(LinkKind.VOTE, bill_id, f"legis-num: {bill_number_text}")
            for bill_id in bill_ids
        ],
        amendment=find_text(metadata_element, "amendment-author"),
        vote_totals=_read_totals(metadata_element.find("vote-totals/totals-by-vote"), "-total"),
        printed_party_totals=list(_read_party_totals(metadata_element)),
    )


def _read_house_member_votes(vote_element: Element) -> Iterator[MemberVoteRow]:
    for recorded_vote_element in vote_element.iterfind("vote-data/recorded-vote"):
        member_element = recorded_vote_element.find("legislator")
        if member_element is None:
            continue
        name_id = member_element.get("name-id") or ""
        is_bioguide_id = (
            _BIOGUIDE_ID_PATTERN.fullmatch(name_id) is not None
        )  # before 2003 there is none
        printed_state = member_element.get("state")
        named_person = Person(
            bioguide_id=name_id if is_bioguide_id else None,
            name=find_text(member_element) or member_element.get("sort-field") or name_id,
            party=member_element.get("party"),
            state=None if printed_state == _STATE_OF_DELEGATES else printed_state,
        )
        yield named_person, find_text(recorded_vote_element, "vote") or "", None


def _parse_senate_vote(vote_element: Element, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
    congress, session_number = (
        int(find_text(vote_element, "congress") or ""),
        int(find_text(vote_element, "session") or ""),
    )
    vote_number = int(find_text(vote_element, "vote_number") or "")
    member_votes = list(_read_senate_member_votes(vote_element))
    name_by_bill_id = dict(_find_voted_bill_ids_and_names(vote_element, congress))
    vote_links = [
        RecordLink(LinkKind.VOTE, bill_id, f"document: {bill_name}")
        for bill_id, bill_name in name_by_bill_id.items()
    ]
    vote_links += _find_senate_amendment(vote_element, congress)
    url_path = (
        f"vote{congress}{session_number}/vote_{congress}_{session_number}_{vote_number:05}.htm"
    )
    yield _build_vote(
        "senate",
        (congress, session_number, vote_number),
        member_votes,
        file_stamp,
        url=f"https://www.senate.gov/legislative/LIS/roll_call_votes/{url_path}",
        voted_at=_parse_senate_date(find_text(vote_element, "vote_date")),
        question=find_text(vote_element, "vote_question_text")
        or find_text(vote_element, "question")
        or "",
        type=find_text(vote_element, "question"),
        result=find_text(vote_element, "vote_result"),
        majority_required=find_text(vote_element, "majority_requirement"),
        description=find_text(vote_element, "vote_document_text")
        or find_text(vote_element, "vote_title"),
        bills=list(name_by_bill_id),
        record_links=vote_links,
        amendment=find_text(vote_element, "amendment/amendment_number"),
        vote_totals=VoteTotals(
            yea=_read_count(vote_element, "count/yeas"),
            nay=_read_count(vote_element, "count/nays"),
            present=_read_count(vote_element, "count/present"),
            not_voting=_read_count(vote_element, "count/absent"),
        ),
    )


def _read_senate_member_votes(vote_element: Element) -> Iterator[MemberVoteRow]:
    """Members go by their LIS ids here; who they are is found out when the load ends."""
    for member_element in vote_element.iterfind("members/member"):
        lis_id = find_text(member_element, "lis_member_id")
        first_name, last_name = (
            find_text(member_element, "first_name"),
            find_text(member_element, "last_name"),
        )
        named_person = Person(
            bioguide_id=None,
            name=" ".join(filter(None, (first_name, last_name)))
            or find_text(member_element, "member_full")
            or "",
            party=find_text(member_element, "party"),
            state=find_text(member_element, "state"),
        )
        yield named_person, find_text(member_element, "vote_cast") or "", lis_id


def _parse_senate_date(date_text: str | None) -> str | None:
    """`November 17, 2004,  05:48 PM`."""
    date_parts = (date_text or "").split(",")
    return _parse_vote_date(",".join(date_parts[:2]).strip(), "%B %d, %Y")


def _find_senate_amendment(vote_element: Element, congress: int) -> Iterator[RecordLink]:
    """`S.Amdt. 4999`; the numbers begin anew with each Congress."""
    amendment_number = find_text(vote_element, "amendment/amendment_number")
    if amendment_match := _AMENDMENT_NUMBER_PATTERN.fullmatch(amendment_number or ""):
        amendment_id = make_amendment_id(congress, "samdt", amendment_match[1])
        yield RecordLink(LinkKind.VOTE, amendment_id, f"amendment_number: {amendment_number}")


def _find_voted_bill_ids_and_names(
    vote_element: Element, congress: int
) -> Iterator[tuple[str, str]]:
    """The bills voted on, and how the file writes them; one vote may be on forty-eight papers."""
    for document_element in vote_element.iterfind("document"):
        # Nominations and treaties are documents too, but no bills.
        document_type = re.sub(
            r"[.\s]", "", find_text(document_element, "document_type") or ""
        ).lower()
        document_number = find_text(document_element, "document_number")
        if document_type in LABEL_BY_BILL_TYPE and document_number and document_number.isdecimal():
            bill_id = make_bill_id(
                find_text(document_element, "document_congress") or congress,
                document_type,
                document_number,
            )
            yield (
                bill_id,
                find_text(document_element, "document_name")
                or f"{document_type} {document_number}",
            )


def _find_voted_bill_ids(bill_number_text: str | None, congress: int) -> Iterator[str]:
    """`H R 21`, `H J RES 5`; a quorum call or an election has none."""
    try:
        if bill_number_text:
            yield parse_federal_id(re.sub(r"\s+(?=\D)", "", bill_number_text), congress).id
    except UnrecognizedId:
        return


def _build_vote(
    chamber: Chamber,
    congress_session_and_number: tuple[int, int, int],
    member_votes: list[MemberVoteRow],
    file_stamp: FileStamp,
    *,
    url: str,
    record_links: Sequence[RecordLink],
    vote_totals: VoteTotals,
    printed_party_totals: Sequence[PartyTotals] = (),
    **record_fields: Any,
) -> ParsedRecord:
    congress, session_number, vote_number = congress_session_and_number
    vote_id = make_vote_id(chamber, *congress_session_and_number)
    vote_label = (
        f"{chamber.title()} roll call vote {vote_number}, {format_ordinal(congress)} Congress"
    )
    vote_label += f", {format_ordinal(session_number)} session"
    bill_ids_text = ", ".join(record_fields["bills"])
    vote_title = f"{vote_label}: {record_fields['question']}" + (
        f" ({bill_ids_text})" if bill_ids_text else ""
    )
    publisher_name = "Clerk of the House" if chamber == "house" else "Secretary of the Senate"
    vote_record = RollCall(
        id=vote_id,
        title=vote_title,
        chamber=chamber,
        congress=congress,
        session=session_number,
        number=vote_number,
        recorded=len(member_votes),
        totals=vote_totals,
        party_totals=list(printed_party_totals) or _count_votes_by_party(member_votes),
        party_totals_of=None
        if printed_party_totals or len(member_votes) >= sum(vote_totals.model_dump().values())
        else len(member_votes),
        **record_fields,
        **build_citation_fields(
            file_stamp,
            url=url,
            org=publisher_name,
            cite=vote_label,
            published_at=record_fields["voted_at"],
        ),
    )
    # Compared as text: by day, and within a day by number.
    sort_key = f"{record_fields['voted_at'] or ''}#{vote_number:05}"
    member_rows = [
        (row_number, voter.bioguide_id, lis_id, congress, sort_key, voter.name, voter.party,
         voter.state, vote_position)
        for row_number, (voter, vote_position, lis_id) in enumerate(member_votes, start=1)
    ]  # fmt: skip
    searchable_names = (vote_title, vote_record.description or "", vote_record.amendment or "")
    return ParsedRecord(
        vote_record,
        names=searchable_names,
        child_rows_by_table={"member_votes": member_rows},
        links=record_links,
    )


def _build_voter_stubs(
    member_votes: list[MemberVoteRow], file_stamp: FileStamp
) -> Iterator[ParsedRecord]:
    for named_person, *_ in member_votes:
        if named_person.bioguide_id:
            yield build_legislator_stub(named_person, file_stamp)


def _read_totals(totals_element: Element | None, tag_suffix: str) -> VoteTotals:
    if totals_element is None:
        return VoteTotals()
    return VoteTotals(
        yea=_read_count(totals_element, f"yea{tag_suffix}"),
        nay=_read_count(totals_element, f"nay{tag_suffix}"),
        present=_read_count(totals_element, f"present{tag_suffix}"),
        not_voting=_read_count(totals_element, f"not-voting{tag_suffix}"),
    )


def _read_party_totals(metadata_element: Element) -> Iterator[PartyTotals]:
    """The Clerk prints how each party voted."""
    for totals_element in metadata_element.iterfind("vote-totals/totals-by-party"):
        party_name = find_text(totals_element, "party") or ""
        party_vote_totals = _read_totals(totals_element, "-total")
        yield PartyTotals(
            party=PARTY_LETTERS_BY_NAME.get(party_name, party_name),
            **party_vote_totals.model_dump(),
        )


def _count_votes_by_party(member_votes: Sequence[MemberVoteRow]) -> list[PartyTotals]:
    """The Senate prints no totals of parties: they are counted from its members."""
    counts_by_party: dict[str, Counter[str]] = {}
    for named_person, vote_position, _ in member_votes:
        total_field_name = _TOTAL_FIELD_BY_POSITION.get(vote_position.lower().partition(",")[0])
        if named_person.party and total_field_name:
            counts_by_party.setdefault(named_person.party, Counter())[total_field_name] += 1
    return [
        PartyTotals(party=party_name, **counts_by_party[party_name])
        for party_name in sorted(counts_by_party)
    ]


def _read_count(parent_element: Element, xml_path: str) -> int:
    number_text = find_text(parent_element, xml_path)
    return int(number_text) if number_text and number_text.isdecimal() else 0


def _parse_vote_date(date_text: str | None, date_format: str) -> str | None:
    try:
        return datetime.strptime(date_text or "", date_format).date().isoformat()  # noqa: DTZ007 a day
    except ValueError:
        return None
