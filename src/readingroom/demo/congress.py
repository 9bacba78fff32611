"""Makes up a Congress for the sample: a hundred senators, bills over six years, and their votes.

What it makes is the same each time. Nobody in it exists, no bill was ever introduced, and the
numbers are ones that no real record has.
"""

import datetime as dt
import itertools
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from readingroom.demo.subjects import BILL_SUBJECTS, TITLE_ENDINGS, BillSubject

Chamber = Literal["House", "Senate"]
Party = Literal["D", "R", "I"]

BILLS_PER_CONGRESS = 80
_RANDOM_SEED = 1789
_FIRST_BILL_NUMBER = 95001
"""No Congress has introduced as many bills."""
_FIRST_ROLL_CALL_NUMBER = 9801
_FIRST_AND_LAST_DAY_BY_CONGRESS = {
    117: (dt.date(2021, 1, 12), dt.date(2022, 12, 15)),
    118: (dt.date(2023, 1, 12), dt.date(2024, 12, 12)),
    119: (dt.date(2025, 1, 14), dt.date(2026, 5, 28)),
}
"""The days between which bills are introduced."""
_SAMPLE_DAY = dt.date(2026, 7, 1)
"""What has happened by then is in the sample."""
_STATES_TEXT = """
AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY
NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY
"""
_STATE_CODES = _STATES_TEXT.split()
_SENATOR_COUNTS_BY_STATE = {"VA": 1, "WA": 1}
"""Two senators stand in the files of `records/` already."""
_FIRST_NAMES_TEXT = """
Alma Bert Cora Dale Edith Floyd Greta Hugo Irma Jonas Kira Leland Maud Ned Odette Perry Quinn
Ruth Silas Thea Upton Vera Wendell Xenia Yorick Zelda
"""
_FIRST_NAMES = _FIRST_NAMES_TEXT.split()
_LAST_NAMES_TEXT = """
Alderbrook Bramwell Cressing Danforth Elmhurst Fennimore Garrick Hollins Ingersby Jarrow Kestrel
Lowther Marchbank Netherby Oakshott Pendrell Quillan Ravensby Stanhill Thornley Underhay Vexford
Wetherall Yarmouth Zennor
"""
_LAST_NAMES = _LAST_NAMES_TEXT.split()
_COMMITTEES_BY_CHAMBER: dict[Chamber, Sequence[tuple[str, str]]] = {
    "House": (
        ("hsag00", "Agriculture"),
        ("hsif00", "Energy and Commerce"),
        ("hsii00", "Natural Resources"),
        ("hsvr00", "Veterans' Affairs"),
    ),
    "Senate": (
        ("ssaf00", "Agriculture, Nutrition, and Forestry"),
        ("sseg00", "Energy and Natural Resources"),
        ("sscm00", "Commerce, Science, and Transportation"),
        ("ssva00", "Veterans' Affairs"),
    ),
}


@dataclass(frozen=True, slots=True)
class _Member:
    bioguide_id: str
    first_name: str
    last_name: str
    party: Party
    state: str
    chamber: Chamber
    district: int | None = None

    @property
    def lis_id(self) -> str:
        """The Senate's own id, by which its votes name a senator."""
        return f"S{self.bioguide_id[-3:]}"

    @property
    def party_and_state(self) -> str:
        """The party and the state, as files of bills write them."""
        district_text = f"-{self.district}" if self.district else ""
        return f"{self.party}-{self.state}{district_text}"


@dataclass(frozen=True, slots=True)
class _Bill:
    congress: int
    number: int
    chamber: Chamber
    title: str
    subject: BillSubject
    introduced: dt.date
    sponsor: _Member
    cosponsors: Sequence[_Member]
    committee_code_and_name: tuple[str, str]
    stage: int
    """0 introduced, 1 reported, 2 passed by its chamber, 3 by both, 4 a law."""

    @property
    def type_code(self) -> str:
        return "HR" if self.chamber == "House" else "S"

    @property
    def file_stem(self) -> str:
        return f"{self.congress}{self.type_code.lower()}{self.number}"

    @property
    def citation(self) -> str:
        return f"{'H.R.' if self.chamber == 'House' else 'S.'} {self.number}"

    def compute_day(self, bill_stage: int) -> dt.date:
        """The day on which it came so far."""
        return self.introduced + dt.timedelta(days=17 * bill_stage + self.number % 9)


def write_congress(target_folder: Path) -> None:
    """Write the files of bills, votes, members and committees into a folder.

    Members and committees are added to the lists that are there.
    """
    random_source = random.Random(_RANDOM_SEED)
    demo_members = _make_demo_members(random_source)
    bills = list(_make_bills(random_source, demo_members))
    _append_yaml(
        target_folder / "legislators-current.yaml", list(map(_build_member_entry, demo_members))
    )
    _append_yaml(target_folder / "committees-current.yaml", list(_build_committee_entries()))
    for demo_bill in bills:
        (target_folder / f"BILLSTATUS-{demo_bill.file_stem}.xml").write_text(
            _render_bill(demo_bill), "utf-8"
        )
    for demo_bill in [demo_bill for demo_bill in bills if demo_bill.stage >= 3][:3]:
        for version_code, stage_name, bill_stage in _TEXT_VERSIONS_BY_CHAMBER[demo_bill.chamber]:
            version_path = target_folder / f"BILLS-{demo_bill.file_stem}{version_code}.xml"
            version_path.write_text(
                _render_bill_text(demo_bill, version_code, stage_name, bill_stage), "utf-8"
            )
    for demo_bill in [demo_bill for demo_bill in bills if demo_bill.stage >= 2]:
        vote_path = target_folder / f"{_make_vote_file_name(demo_bill)}.xml"
        vote_path.write_text(_render_vote(demo_bill, demo_members, random_source), "utf-8")


def _append_yaml(yaml_path: Path, yaml_entries: Sequence[object]) -> None:
    """Add entries to a YAML list; JSON is YAML, and one entry a line stays readable."""
    yaml_text = "".join(f"- {json.dumps(yaml_entry)}\n" for yaml_entry in yaml_entries)
    yaml_path.write_text(yaml_path.read_text("utf-8") + yaml_text, "utf-8")


# --- people ---


def _make_demo_members(random_source: random.Random) -> list[_Member]:
    first_and_last_names = list(itertools.product(_FIRST_NAMES, _LAST_NAMES))
    random_source.shuffle(first_and_last_names)
    state_seats: list[tuple[Chamber, str, int | None]] = []
    for state_code in _STATE_CODES:
        new_senator_count = 2 - _SENATOR_COUNTS_BY_STATE.get(state_code, 0)
        state_seats += [("Senate", state_code, None)] * new_senator_count
        state_seats += [("House", state_code, district) for district in (11, 12)]
    return [
        _Member(
            f"{first_and_last_names[seat_index][1][0]}980{seat_index:03}",
            *first_and_last_names[seat_index],
            random_source.choices(("D", "R", "I"), (48, 49, 3))[0],
            state_code,
            chamber,
            district,
        )
        for seat_index, (chamber, state_code, district) in enumerate(state_seats)
    ]


_PARTY_NAMES_BY_LETTER = {"D": "Democrat", "R": "Republican", "I": "Independent"}


def _build_member_entry(demo_member: _Member) -> object:
    is_senator = demo_member.chamber == "Senate"
    term_fields: dict[str, object] = {
        "type": "sen" if is_senator else "rep",
        "start": "2021-01-03" if is_senator else "2025-01-03",
        "end": "2027-01-03",
        "state": demo_member.state,
        "party": _PARTY_NAMES_BY_LETTER[demo_member.party],
    }
    term_fields |= {"class": 2} if is_senator else {"district": demo_member.district}
    member_ids = {"bioguide": demo_member.bioguide_id} | (
        {"lis": demo_member.lis_id} if is_senator else {}
    )
    full_name = f"{demo_member.first_name} {demo_member.last_name}"
    name_fields = {
        "first": demo_member.first_name,
        "last": demo_member.last_name,
        "official_full": full_name,
    }
    return {"id": member_ids, "name": name_fields, "bio": {"gender": "F"}, "terms": [term_fields]}


def _build_committee_entries() -> Iterator[object]:
    for chamber, committee_codes_and_names in _COMMITTEES_BY_CHAMBER.items():
        for committee_code, committee_name in committee_codes_and_names:
            yield {
                "type": chamber.lower(),
                "name": f"{chamber} Committee on {committee_name}",
                "thomas_id": committee_code[:4].upper(),
                "jurisdiction": f"Sample record. {committee_name}, as far as this sample goes.",
            }


# --- bills ---


def _make_bills(random_source: random.Random, demo_members: Sequence[_Member]) -> Iterator[_Bill]:
    for congress_number, (first_day, last_day) in _FIRST_AND_LAST_DAY_BY_CONGRESS.items():
        day_count = (last_day - first_day).days
        for bill_index in range(BILLS_PER_CONGRESS):
            chamber: Chamber = "House" if bill_index % 5 < 3 else "Senate"
            chamber_members = [
                demo_member for demo_member in demo_members if demo_member.chamber == chamber
            ]
            sponsor_member, *cosponsor_members = random_source.sample(
                chamber_members, 1 + random_source.randint(0, 6)
            )
            bill_year = first_day.year + bill_index * 2 // BILLS_PER_CONGRESS
            bill_subject = random_source.choice(BILL_SUBJECTS)
            title_noun = random_source.choice(bill_subject.title_nouns)
            title_subject = f"{title_noun} {random_source.choice(TITLE_ENDINGS)}"
            yield _Bill(
                congress_number,
                _FIRST_BILL_NUMBER + bill_index,
                chamber,
                f"{sponsor_member.state} {title_subject} of {bill_year}",
                bill_subject,
                first_day + dt.timedelta(days=day_count * bill_index // BILLS_PER_CONGRESS),
                sponsor_member,
                cosponsor_members,
                random_source.choice(_COMMITTEES_BY_CHAMBER[chamber]),
                4 if bill_index == 1 else random_source.choices(range(5), (70, 14, 8, 4, 4))[0],
            )


def _find_file_day(congress_number: int, last_action_day: dt.date) -> dt.date:
    """Return the day of a bill's file: after a Congress has ended, each is written once more."""
    end_day = dt.date(1789 + 2 * congress_number, 1, 3)
    return end_day if last_action_day < end_day <= _SAMPLE_DAY else last_action_day


def _render_bill(demo_bill: _Bill) -> str:
    bill_actions = list(_list_actions(demo_bill))
    action_day, latest_action_text, _, _ = bill_actions[-1]
    law_number = f"{demo_bill.congress}-{demo_bill.number}"
    laws_xml = f"<laws><item><type>Public Law</type><number>{law_number}</number></item></laws>"
    committee_code, committee_name = demo_bill.committee_code_and_name
    return f"""<?xml version="1.0" encoding="utf-8"?>
<billStatus><version>3.0.0</version><bill>
<number>{demo_bill.number}</number><type>{demo_bill.type_code}</type><congress>{demo_bill.congress}</congress>
<updateDate>{_find_file_day(demo_bill.congress, action_day)}T05:00:00Z</updateDate>
<originChamber>{demo_bill.chamber}</originChamber>
<introducedDate>{demo_bill.introduced}</introducedDate>
<title>{demo_bill.title} (sample)</title>
<policyArea><name>{demo_bill.subject.policy_area}</name></policyArea>
<subjects><legislativeSubjects><item><name>{demo_bill.subject.subject_term}</name></item></legislativeSubjects></subjects>
<sponsors>{_render_person(demo_bill.sponsor)}</sponsors>
<cosponsors>{"".join(_render_person(demo_member, demo_bill.introduced) for demo_member in demo_bill.cosponsors)}</cosponsors>
<committees><item><systemCode>{committee_code}</systemCode><name>{committee_name} Committee</name><chamber>{demo_bill.chamber}</chamber><activities><item><name>Referred To</name><date>{demo_bill.introduced}T15:00:00Z</date></item></activities></item></committees>
<actions>{"".join(_render_action(*bill_action) for bill_action in reversed(bill_actions))}</actions>
{laws_xml if demo_bill.stage == 4 else ""}
<summaries><summary><versionCode>00</versionCode><actionDate>{demo_bill.introduced}</actionDate><actionDesc>Introduced in {demo_bill.chamber}</actionDesc><text>{_summarise_bill(demo_bill)}</text></summary></summaries>
<latestAction><actionDate>{action_day}</actionDate><text>{latest_action_text}</text></latestAction>
</bill></billStatus>
"""  # noqa: E501


def _summarise_bill(demo_bill: _Bill) -> str:
    return (
        f"This sample bill makes grants to {demo_bill.subject.beneficiaries}. The money goes first "
        f"to {demo_bill.sponsor.state}, and a report is due after {1 + demo_bill.number % 4} years."
    )


def _render_person(demo_member: _Member, signed_day: dt.date | None = None) -> str:
    honorific = "Sen." if demo_member.chamber == "Senate" else "Rep."
    full_name = (
        f"{honorific} {demo_member.last_name}, {demo_member.first_name} "
        f"[{demo_member.party_and_state}]"
    )
    district_text = f"<district>{demo_member.district}</district>" if demo_member.district else ""
    sponsorship_date = f"<sponsorshipDate>{signed_day}</sponsorshipDate>" if signed_day else ""
    return (
        f"<item><bioguideId>{demo_member.bioguide_id}</bioguideId><fullName>{full_name}</fullName>"
        f"<party>{demo_member.party}</party><state>{demo_member.state}</state>{district_text}{sponsorship_date}</item>"
    )


def _list_actions(demo_bill: _Bill) -> Iterator[tuple[dt.date, str, str, str]]:
    """Yield the day, the words, the type and the vote of each step, the oldest first."""
    _, committee_name = demo_bill.committee_code_and_name
    other_chamber = "Senate" if demo_bill.chamber == "House" else "House"
    texts_and_types = (
        (
            f"Introduced in {demo_bill.chamber} and referred to the Committee on {committee_name}.",
            "Intro",
        ),
        (f"Reported by the Committee on {committee_name}.", "Committee"),
        (
            f"Passed {demo_bill.chamber} by recorded vote (Roll no. "
            f"{_compute_roll_number(demo_bill)}).",
            "Floor",
        ),
        (f"Passed {other_chamber} without amendment by voice vote.", "Floor"),
        (f"Became Public Law No: {demo_bill.congress}-{demo_bill.number}.", "BecameLaw"),
    )
    for bill_stage, (action_text, action_type) in enumerate(texts_and_types[: demo_bill.stage + 1]):
        action_day = demo_bill.introduced if bill_stage == 0 else demo_bill.compute_day(bill_stage)
        vote_xml = _render_vote_reference(demo_bill) if bill_stage == 2 else ""
        yield (
            action_day,
            action_text,
            "IntroReferral" if action_type == "Intro" else action_type,
            vote_xml,
        )


def _render_action(action_day: dt.date, action_text: str, action_type: str, vote_xml: str) -> str:
    return (
        f"<item><actionDate>{action_day}</actionDate><text>{action_text}</text>"
        f"<type>{action_type}</type>{vote_xml}</item>"
    )


_TEXT_VERSIONS_BY_CHAMBER: dict[Chamber, Sequence[tuple[str, str, int]]] = {
    "House": (
        ("ih", "Introduced in House", 0),
        ("eh", "Engrossed in House", 2),
        ("enr", "Enrolled Bill", 3),
    ),
    "Senate": (
        ("is", "Introduced in Senate", 0),
        ("es", "Engrossed in Senate", 2),
        ("enr", "Enrolled Bill", 3),
    ),
}
"""The versions of a bill's text: the code, its name, and the stage at which it is printed."""


def _render_bill_text(demo_bill: _Bill, version_code: str, stage_name: str, bill_stage: int) -> str:
    """Return the text of a version; what a chamber passes has a section more, and less money."""
    million_dollars = 40 + demo_bill.number % 50 - 5 * bill_stage
    headings_and_texts = [
        (
            "Short title",
            f"This Act may be called the {demo_bill.title}. It is a sample and not law.",
        ),
        ("Grants", f"Grants are made to {demo_bill.subject.beneficiaries}."),
        (
            "Money",
            f"There are authorized {million_dollars} million dollars for each of five fiscal "
            "years.",
        ),
    ]
    if bill_stage >= 2:
        headings_and_texts.insert(
            2, ("Reports", "Who receives a grant reports each year what it was for.")
        )
    sections_xml = "".join(
        f"<section><num>{'SECTION' if section_number == 1 else 'SEC.'} {section_number}.</num>"
        f"<heading>{section_heading}</heading><content><p>{section_text}</p></content></section>"
        for section_number, (section_heading, section_text) in enumerate(headings_and_texts, 1)
    )
    citable_name = f"{demo_bill.file_stem}{version_code}"
    version_day = demo_bill.compute_day(bill_stage) if bill_stage else demo_bill.introduced
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<bill xmlns="http://schemas.gpo.gov/xml/uslm" xmlns:dc="http://purl.org/dc/elements/1.1/">
<meta><dc:title>{demo_bill.congress} {demo_bill.type_code} {demo_bill.number} {version_code.upper()}: {demo_bill.title} (sample)</dc:title><citableAs>{citable_name}</citableAs><docNumber>{demo_bill.number}</docNumber><docStage>{stage_name}</docStage><congress>{demo_bill.congress}</congress></meta>
<preface><action><date date="{version_day}">{version_day:%B} {version_day.day}, {version_day.year}</date></action></preface>
<main><longTitle><docTitle>A BILL</docTitle><officialTitle>To make grants to {demo_bill.subject.beneficiaries} (sample).</officialTitle></longTitle>
{sections_xml}</main>
</bill>
"""  # noqa: E501


# --- votes ---


def _compute_roll_number(demo_bill: _Bill) -> int:
    return _FIRST_ROLL_CALL_NUMBER + demo_bill.number - _FIRST_BILL_NUMBER


def _compute_session(demo_bill: _Bill) -> int:
    return 1 if demo_bill.compute_day(2).year % 2 else 2


def _make_vote_file_name(bill: _Bill) -> str:
    if bill.chamber == "House":
        return f"{bill.congress}-roll{_compute_roll_number(bill)}"
    return f"vote_{bill.congress}_{_compute_session(bill)}_{_compute_roll_number(bill):05}"


def _render_vote_reference(demo_bill: _Bill) -> str:
    return (
        f"<recordedVotes><recordedVote><rollNumber>{_compute_roll_number(demo_bill)}</rollNumber>"
        f"<chamber>{demo_bill.chamber}</chamber><congress>{demo_bill.congress}</congress>"
        f"<date>{demo_bill.compute_day(2)}T20:10:00Z</date>"
        f"<sessionNumber>{_compute_session(demo_bill)}</sessionNumber></recordedVote></recordedVotes>"
    )


def _render_vote(
    demo_bill: _Bill, demo_members: Sequence[_Member], random_source: random.Random
) -> str:
    voting_members = [
        demo_member for demo_member in demo_members if demo_member.chamber == demo_bill.chamber
    ]
    if demo_bill.chamber == "Senate":
        # The two of the story have seats as well.
        voting_members += [
            _Member("D990903", "Mina", "Dunmore", "R", "VA", "Senate"),
            _Member("E990904", "Ivo", "Eastlake", "D", "WA", "Senate"),
        ]
    position_by_member = {
        demo_member: _choose_position(demo_member, demo_bill, random_source)
        for demo_member in voting_members
    }
    position_counts = [
        list(position_by_member.values()).count(vote_position) for vote_position in _VOTE_POSITIONS
    ]
    if demo_bill.chamber == "House":
        return _render_house_vote(demo_bill, position_by_member, position_counts)
    return _render_senate_vote(demo_bill, position_by_member, position_counts)


_VOTE_POSITIONS = ("Yea", "Nay", "Present", "Not Voting")


def _choose_position(member: _Member, bill: _Bill, random_source: random.Random) -> str:
    is_own_party = member.party == bill.sponsor.party
    return random_source.choices(
        _VOTE_POSITIONS, (88, 8, 1, 3) if is_own_party else (46, 48, 1, 5)
    )[0]


def _render_house_vote(
    bill: _Bill, position_by_member: dict[_Member, str], position_counts: Sequence[int]
) -> str:
    vote_day = bill.compute_day(2)
    session_text = {1: "1st", 2: "2nd"}[_compute_session(bill)]
    votes_xml = "".join(
        f'<recorded-vote><legislator name-id="{member.bioguide_id}" '
        f'sort-field="{member.last_name}" party="{member.party}" '
        f'state="{member.state}">'
        f"{member.last_name}</legislator><vote>{vote_position}</vote></recorded-vote>\n"
        for member, vote_position in position_by_member.items()
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<rollcall-vote><vote-metadata><congress>{bill.congress}</congress><session>{session_text}</session>
<rollcall-num>{_compute_roll_number(bill)}</rollcall-num><legis-num>H R {bill.number}</legis-num>
<vote-question>On Passage</vote-question><vote-type>YEA-AND-NAY</vote-type>
<vote-result>Passed</vote-result><action-date>{vote_day.day}-{vote_day:%b-%Y}</action-date>
<vote-desc>{bill.title} (sample)</vote-desc>
<vote-totals><totals-by-vote><yea-total>{position_counts[0]}</yea-total><nay-total>{position_counts[1]}</nay-total>
<present-total>{position_counts[2]}</present-total><not-voting-total>{position_counts[3]}</not-voting-total></totals-by-vote></vote-totals>
</vote-metadata><vote-data>
{votes_xml}</vote-data></rollcall-vote>
"""


def _render_senate_vote(
    bill: _Bill, position_by_member: dict[_Member, str], position_counts: Sequence[int]
) -> str:
    vote_day = bill.compute_day(2)
    votes_xml = "".join(
        f"<member><member_full>{member.last_name} "
        f"({member.party_and_state})</member_full>"
        f"<last_name>{member.last_name}</last_name><first_name>{member.first_name}</first_name>"
        f"<party>{member.party}</party><state>{member.state}</state>"
        f"<vote_cast>{vote_position}</vote_cast>"
        f"<lis_member_id>{_get_lis_id(member)}</lis_member_id></member>\n"
        for member, vote_position in position_by_member.items()
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<roll_call_vote><congress>{bill.congress}</congress><session>{_compute_session(bill)}</session><congress_year>{vote_day.year}</congress_year>
<vote_number>{_compute_roll_number(bill)}</vote_number><vote_date>{vote_day:%B} {vote_day.day}, {vote_day.year},  11:42 AM</vote_date>
<vote_question_text>On Passage of the Bill {bill.citation}</vote_question_text>
<vote_document_text>A sample bill.</vote_document_text>
<vote_title>{bill.title} (sample)</vote_title><majority_requirement>1/2</majority_requirement>
<vote_result>Bill Passed</vote_result><question>On Passage of the Bill</question>
<document><document_congress>{bill.congress}</document_congress><document_type>S.</document_type><document_number>{bill.number}</document_number><document_name>{bill.citation}</document_name><document_title>{bill.title} (sample)</document_title></document>
<count><yeas>{position_counts[0]}</yeas><nays>{position_counts[1]}</nays><present>{position_counts[2] or ""}</present><absent>{position_counts[3] or ""}</absent></count>
<members>
{votes_xml}</members></roll_call_vote>
"""  # noqa: E501


def _get_lis_id(demo_member: _Member) -> str:
    """The ids of the two senators of the story are those of their own file."""
    return {"Dunmore": "S9903", "Eastlake": "S9904"}.get(demo_member.last_name, demo_member.lis_id)
