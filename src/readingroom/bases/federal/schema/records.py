"""The federal records: what each source holds, as it is stored and answered."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from readingroom.protocol.search import Citation
from readingroom.protocol.tool import Answer

Chamber = Literal["house", "senate", "joint"]
BillStage = Literal["introduced", "reported", "passed_one", "passed_both", "vetoed", "law"]
PolicyPosition = Literal["supports", "opposes", "veto_threat", "unknown"]
BillOutcome = Literal["law", "vetoed", "adopted", "died", "pending"]


class Record(Answer):
    """What every record has: an id that fetches, a title, and where it comes from, as of when."""

    id: str
    source: str = Field(description="The source it belongs to, such as `bills`.")
    title: str
    url: str = Field(description="The official page.")
    source_url: str
    source_org: str
    published_at: str | None = Field(None, description="YYYY-MM-DD; null where none is known.")
    retrieved_at: str = Field(description="When it was loaded here (ISO 8601, UTC).")
    raw_sha256: str = Field(description="Hash of the official bytes it was read from.")
    citation_string: str
    citation: Citation
    as_of: str | None = Field(
        None,
        description="The date of the official file it was read from: nothing later is known of it "
        "here. Null where the file bears no date.",
    )
    loaded_up_to: str | None = Field(
        None,
        description="The date up to which this source is known to be complete here; null where "
        "nothing says so.",
    )

    def list_unknown_fields(self) -> frozenset[str]:
        """Return the fields that nothing tells and that have no null: they are not stored."""
        return frozenset()


class LinkKind(StrEnum):
    """What a pair of records has to do with each other, whichever of them says so."""

    AMENDMENT = "amendment"
    """A bill, or an amendment, and an amendment to it."""
    AUTHORITY = "authority"
    """A rule, or a section of regulations, and a law it cites."""
    CFR = "cfr"
    """A rule and the part or section of regulations it affects."""
    COMMITTEE = "committee"
    """A committee and a hearing or meeting of it."""
    COMMITTEE_REPORT = "committee_report"
    """A bill and the report of a committee on it."""
    COMPILATION = "compilation"
    """A law and its text as amended since."""
    COST_ESTIMATE = "cost_estimate"
    """A bill and an estimate of what it would cost."""
    CRS_REPORT = "crs_report"
    """A bill, or a law, and a report of the Congressional Research Service about it."""
    DOCKET = "docket"
    """A rule and the docket its papers are filed in."""
    FILING = "filing"
    """A bill, or a law, and a lobbying report that names it."""
    HEARING = "hearing"
    """A bill and a hearing or meeting on it."""
    LAW = "law"
    """A bill and the law it became."""
    MENTION = "mention"
    """A record and one that its text names."""
    OFFICE = "office"
    """A member and an office of theirs."""
    RELATED = "related"
    """Two bills that an official file calls related; a meeting and its printed record."""
    SPEECH = "speech"
    """A member and what they said on the floor."""
    STATEMENT = "statement"
    """A bill and what the White House said of it."""
    TOPIC = "topic"
    """A record and a subject it is filed under."""
    VOTE = "vote"
    """A bill, or an amendment, and a roll call on it."""


class SponsorKind(StrEnum):
    """What a bill and a member have to do with each other. Not stored as links, but drawn so."""

    SPONSOR = "sponsor"
    COSPONSOR = "cosponsor"


class Person(Answer):
    """A member of Congress as a record names one."""

    bioguide_id: str | None = None
    lis_id: str | None = None
    name: str
    party: str | None = None
    state: str | None = None
    district: str | None = None


class Cosponsor(Person):
    """Who cosponsored, and when."""

    sponsored_at: str | None = None
    original: bool = False
    withdrawn_at: str | None = None


class BillAction(Answer):
    """One step in the life of a bill."""

    date: str
    time: str | None = None
    text: str
    type: str | None = None
    code: str | None = None
    committees: list[str] = Field(default_factory=list, description="Committee ids.")
    votes: list[str] = Field(default_factory=list, description="Roll call ids.")


class LatestAction(Answer):
    date: str | None = None
    text: str


class CommitteeActivity(Answer):
    """What a committee did with a bill, and when."""

    name: str
    date: str | None = None


class BillCommittee(Answer):
    id: str
    name: str
    chamber: str | None = None
    activities: list[str] = Field(default_factory=list)
    dated_activities: list[CommitteeActivity] = Field(default_factory=list)


class BillSummary(Answer):
    version: str | None = None
    date: str | None = None
    description: str | None = None
    text: str


class SummaryVersion(Answer):
    """A summary of a bill at one stage, without its text."""

    version: str | None = None
    date: str | None = None
    description: str | None = None
    characters: int = 0


class CalendarNumber(Answer):
    """The place of a bill on a calendar of a chamber."""

    calendar: str = Field(description="`Union Calendar`, `Senate Calendar of Business`, …")
    number: int | None = None


class TextVersion(Answer):
    type: str
    date: str | None = None
    url: str | None = None


class RelatedBill(Answer):
    id: str
    title: str | None = None
    relationships: list[str] = Field(default_factory=list)


class CostEstimate(Answer):
    id: str | None = Field(None, description="Its record's id; null where CBO gave it no number.")
    title: str
    date: str | None = None
    url: str | None = None


class Bill(Record):
    """A bill or resolution, with its sponsor, progress and counts of what belongs to it."""

    source: Literal["bills"] = "bills"
    congress: int
    type: str = Field(description="hr, s, hjres, sjres, hres, sres, hconres or sconres.")
    number: int
    origin_chamber: Chamber | None = None
    introduced_at: str | None = None
    updated_at: str | None = None
    policy_area: str | None = None
    subjects: list[str] = Field(default_factory=list)
    sponsors: list[Person] = Field(default_factory=list)
    committees: list[BillCommittee] = Field(default_factory=list)
    latest_action: LatestAction | None = None
    laws: list[str] = Field(default_factory=list, description="Ids of the laws it became.")
    summary: BillSummary | None = Field(None, description="The newest summary by CRS.")
    short_titles: list[str] = Field(default_factory=list)
    text_versions: list[TextVersion] = Field(default_factory=list)
    related_bills: list[RelatedBill] = Field(default_factory=list)
    cost_estimates: list[CostEstimate] = Field(default_factory=list)
    committee_reports: list[str] = Field(
        default_factory=list, description="As it cites them: `H. Rept. 117-118,Part 2`."
    )
    report_ids: list[str] = Field(default_factory=list, description="Ids of these reports.")
    votes: list[str] = Field(default_factory=list, description="Ids of its roll call votes.")
    cosponsor_count: int = 0
    action_count: int = 0
    amendment_count: int = 0
    stage: BillStage | None = Field(
        None,
        description="How far it came; passed_one is one chamber, passed_both both, maybe not in "
        "the same words. Of a bill without status: at least so far, as its newest text says.",
    )
    stage_at: str | None = Field(None, description="The day it came so far.")
    outcome: BillOutcome | None = Field(
        None,
        description="What became of it, as of its file: adopted is a resolution that needs no "
        "signature, died is what its Congress left undone. Null where its status is not loaded.",
    )
    calendar_numbers: list[CalendarNumber] = Field(default_factory=list)
    summary_versions: list[SummaryVersion] = Field(
        default_factory=list, description="Every summary by CRS; `summary` is the newest."
    )
    status_loaded: bool = Field(
        True,
        description="False when only its text is here: no actions, and of sponsors, committees and "
        "stage what the text says.",
    )


class Amendment(Record):
    """An amendment to a bill or to another amendment."""

    source: Literal["amendments"] = "amendments"
    congress: int
    type: str = Field(description="hamdt or samdt.")
    number: int
    chamber: Chamber | None = None
    bill_id: str | None = None
    amends: str | None = Field(None, description="The id of the amendment it amends, if one.")
    purpose: str | None = None
    description: str | None = None
    submitted_at: str | None = None
    proposed_at: str | None = None
    sponsors: list[Person] = Field(default_factory=list)
    cosponsor_count: int = 0
    cosponsors: list[Cosponsor] = Field(default_factory=list)
    latest_action: LatestAction | None = None
    actions: list[BillAction] = Field(default_factory=list, description="Newest first.")
    votes: list[str] = Field(default_factory=list, description="Ids of its roll call votes.")


class Law(Record):
    """A public or private law, with the bill it came from."""

    source: Literal["public_laws"] = "public_laws"
    congress: int
    number: int
    private: bool = False
    bill_id: str | None = None
    approved_at: str | None = None
    statutes_at_large: str | None = None
    characters: int = 0


class Rule(Record):
    """A document of the Federal Register: rule, proposed rule or notice."""

    source: Literal["federal_register"] = "federal_register"
    document_number: str
    type: str
    subtype: str | None = None
    action: str | None = None
    abstract: str | None = None
    agencies: list[str] = Field(default_factory=list)
    agency_slugs: list[str] = Field(default_factory=list)
    fr_citation: str | None = None
    cfr_references: list[str] = Field(default_factory=list)
    docket_ids: list[str] = Field(default_factory=list)
    regulation_id_numbers: list[str] = Field(default_factory=list)
    topics: list[str] = Field(default_factory=list)
    pdf_url: str | None = None
    characters: int = 0


class PresidentialDocument(Record):
    """An executive order, proclamation or memorandum, as the Federal Register printed it."""

    source: Literal["presidential_documents"] = "presidential_documents"
    document_number: str
    type: str | None = None
    abstract: str | None = None
    president: str | None = None
    signed_at: str | None = None
    executive_order_number: str | None = None
    fr_citation: str | None = None
    topics: list[str] = Field(default_factory=list)
    pdf_url: str | None = None
    characters: int = 0


class Sap(Record):
    """A Statement of Administration Policy: what the White House says of a bill."""

    source: Literal["saps"] = "saps"
    congress: int
    issued_at: str
    bills: list[str] = Field(default_factory=list, description="Bill ids.")
    president: str | None = None
    president_number: int | None = Field(None, description="47 for the 47th: two may share a name.")
    president_name: str | None = None
    position: PolicyPosition = Field(
        "unknown",
        description="What it says of its bill; unknown where its text is not here, is mixed, or "
        "speaks of parts of the bill.",
    )
    position_evidence: str | None = Field(None, description="The words that say so.")
    rescinded: bool = False
    characters: int = 0
    text_problem: str | None = Field(None, description="Why its PDF, which is here, has no text.")


class Proceeding(Record):
    """An item of the Congressional Record: a speech, a debate, a list of what was introduced."""

    source: Literal["congressional_record"] = "congressional_record"
    congress: int
    session: int | None = None
    type: str = Field(description="house, senate, extensions or digest: the part it stands in.")
    chamber: Chamber | None = None
    category: str | None = Field(None, description="What GPO files it under, such as `prayer`.")
    volume: int
    issue: int
    pages: str | None = Field(None, description="As printed: `E1551-E1552`.")
    spoken_at: str | None = Field(
        None, description="The day it was said, where it was printed on a later one."
    )
    speakers: list[Person] = Field(default_factory=list)
    bills: list[str] = Field(default_factory=list, description="Ids of the bills it names.")
    amendments: list[str] = Field(default_factory=list, description="Ids of amendments it names.")
    votes: list[str] = Field(default_factory=list, description="Ids of the roll calls in it.")
    laws: list[str] = Field(default_factory=list, description="Ids of the laws it names.")
    reports: list[str] = Field(default_factory=list, description="Ids of committee reports.")
    committees: list[str] = Field(default_factory=list, description="Committee ids.")
    cfr_references: list[str] = Field(default_factory=list)
    usc_references: list[str] = Field(default_factory=list)


class CrsReport(Record):
    """A report of the Congressional Research Service: what Congress is told of a subject."""

    source: Literal["crs_reports"] = "crs_reports"
    type: str | None = Field(None, description="reports, posts, resources, infographics, …")
    archived: bool = False
    version: int | None = None
    updated_at: str | None = None
    authors: list[str] = Field(default_factory=list)
    topics: list[str] = Field(default_factory=list)
    bills: list[str] = Field(default_factory=list, description="Ids of the bills it is about.")
    laws: list[str] = Field(default_factory=list, description="Ids of the laws it is about.")
    pdf_url: str | None = None
    characters: int = 0


class CfrSection(Record):
    """A section of the Code of Federal Regulations, or an appendix, as a yearly edition has it."""

    source: Literal["cfr_sections"] = "cfr_sections"
    type: Literal["section", "appendix"] = "section"
    cfr_title: int
    part: str | None = Field(None, description="Null for what is appended to a whole chapter.")
    subpart: str | None = None
    number: str = Field(description="Such as `447.21`, `478.25a` or `447.appendix-a`.")
    heading: str | None = None
    part_heading: str | None = None
    agency: str | None = None
    revised_at: str | None = Field(None, description="The day this edition tells the law of.")
    authority: str | None = Field(None, description="The law its part rests on, in its words.")
    source_note: str | None = Field(None, description="Where it was printed, in its words.")
    fr_citations: list[str] = Field(
        default_factory=list, description="Where it was printed and amended: `78 FR 23676`."
    )
    laws: list[str] = Field(default_factory=list, description="Ids of the laws it names.")
    usc_references: list[str] = Field(default_factory=list)
    cfr_references: list[str] = Field(
        default_factory=list, description="Ids of the sections it names."
    )
    characters: int = 0


class Compilation(Record):
    """A law as amended since: the text in force, put together by the House's counsel."""

    source: Literal["statute_compilations"] = "statute_compilations"
    congress: int | None = None
    law_id: str | None = Field(None, description="The id of the law it is the text of.")
    approved_at: str | None = None
    amended_through: str | None = Field(None, description="The last law worked into it.")
    amended_at: str | None = None
    statutes_at_large: str | None = None
    short_titles: list[str] = Field(default_factory=list)
    usc_references: list[str] = Field(default_factory=list)
    sections: int = 0
    characters: int = 0


class CboEstimate(Record):
    """What the Congressional Budget Office says a bill would cost."""

    source: Literal["cbo_cost_estimates"] = "cbo_cost_estimates"
    congress: int | None = None
    description: str | None = None
    bills: list[str] = Field(default_factory=list, description="Ids of the bills it is about.")


class CommitteeReport(Record):
    """What a committee says of a bill it sends to its chamber."""

    source: Literal["committee_reports"] = "committee_reports"
    congress: int
    type: str = Field(description="hrpt, srpt or erpt (executive).")
    number: int
    part: str | None = Field(None, description="pt2, bk1, errata; null for the first or only.")
    chamber: Chamber | None = None
    session: int | None = None
    conference: bool = False
    issued_at: str | None = None
    updated_at: str | None = None
    committees: list[str] = Field(default_factory=list, description="Committee ids.")
    bills: list[str] = Field(default_factory=list, description="Ids of the bills it is about.")


class Term(Answer):
    chamber: Chamber
    start: str
    end: str
    state: str
    district: int | None = None
    senate_class: int | None = None
    party: str | None = None


class Leadership(Answer):
    title: str
    chamber: str | None = None
    start: str | None = None
    end: str | None = None


class Legislator(Record):
    """A member of Congress, with every term served."""

    source: Literal["legislators"] = "legislators"
    name: str
    first_name: str | None = None
    last_name: str | None = None
    nickname: str | None = None
    birthday: str | None = None
    gender: str | None = None
    chamber: Chamber | None = None
    party: str | None = None
    state: str | None = None
    district: str | None = None
    current: bool = False
    ids: dict[str, str] = Field(default_factory=dict)
    terms: list[Term] = Field(default_factory=list)
    leadership: list[Leadership] = Field(default_factory=list)
    stub: bool = Field(
        False, description="True when only other records name this person: `current` is unknown."
    )

    def list_unknown_fields(self) -> frozenset[str]:
        return frozenset(("current",)) if self.stub else frozenset()


class Committee(Record):
    """A committee or subcommittee of either chamber, or of both."""

    source: Literal["committees"] = "committees"
    name: str
    chamber: Chamber | None = None
    parent_id: str | None = None
    subcommittees: list[str] = Field(default_factory=list)
    jurisdiction: str | None = None
    phone: str | None = None
    address: str | None = None
    current: bool = True
    congresses: list[int] = Field(default_factory=list)
    former_names: list[str] = Field(default_factory=list)
    stub: bool = False


class Membership(Record):
    """A seat on a committee."""

    source: Literal["committee_memberships"] = "committee_memberships"
    committee_id: str
    congress: int
    bioguide_id: str
    name: str
    party: str | None = Field(default=None, description="The member's, now or at last.")
    state: str | None = None
    side: Literal["majority", "minority"]
    rank: int
    role: str | None = None
    chamber: str | None = None


class VoteTotals(Answer):
    yea: int = 0
    nay: int = 0
    present: int = 0
    not_voting: int = 0


class PartyTotals(VoteTotals):
    """How the members of one party voted."""

    party: str = Field(description="D, R, I, or as printed.")


class RollCall(Record):
    """A recorded vote of one chamber; `/members` lists how each member voted."""

    source: Literal["roll_call_votes"] = "roll_call_votes"
    chamber: Chamber
    congress: int
    session: int
    number: int
    voted_at: str | None = None
    question: str
    type: str | None = None
    result: str | None = None
    majority_required: str | None = None
    description: str | None = None
    bills: list[str] = Field(default_factory=list)
    amendment: str | None = None
    totals: VoteTotals
    party_totals: list[PartyTotals] = Field(
        default_factory=list,
        description="As the file prints them, or counted from its members where it prints none.",
    )
    party_totals_of: int | None = Field(
        None,
        description="Of how many members' votes `party_totals` were counted, where these are not "
        "all that `totals` has. Null where they are of the whole vote.",
    )
    recorded: int = Field(0, description="How many members' votes are here.")


class Topic(Record):
    """A subject that records are filed under."""

    source: Literal["topic_taxonomy"] = "topic_taxonomy"
    name: str
    policy_area: bool = Field(False, description="Whether it is one of the few each bill has.")
    parent_id: str | None = Field(None, description="The wider subject it belongs to.")
    vocabulary: Literal["crs", "federal_register", "lda"] = "crs"


class Agency(Record):
    """An agency of the government, as loaded documents name it."""

    source: Literal["agencies"] = "agencies"
    name: str
    slug: str = Field(description="What its page at the Federal Register is called.")
    names: list[str] = Field(
        default_factory=list, description="Every way in which loaded documents print its name."
    )
    abbreviations: list[str] = Field(default_factory=list)
    slugs: list[str] = Field(
        default_factory=list, description="What documents are filed under: keys of groups by it."
    )
    documents: int = Field(0, description="How many loaded documents name it.")


class Office(Record):
    """Where a member of Congress is reached: an office, or accounts on social media."""

    source: Literal["staff_directories"] = "staff_directories"
    type: Literal["washington_office", "district_office", "social_media"]
    bioguide_id: str
    address: str | None = None
    suite: str | None = None
    building: str | None = None
    city: str | None = None
    state: str | None = None
    zip: str | None = None
    phone: str | None = None
    fax: str | None = None
    hours: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    website: str | None = None
    contact_form: str | None = None
    accounts: dict[str, str] = Field(default_factory=dict, description="By service: twitter, …")


class LobbyingActivity(Answer):
    """One subject of a lobbying report: what was asked for, by whom, of whom."""

    issue_code: str | None = None
    issue: str | None = None
    description: str | None = None
    lobbyists: list[str] = Field(default_factory=list)
    government_entities: list[str] = Field(default_factory=list)


class Filing(Record):
    """A lobbying registration or report; of a quarter filed again only the newest is active."""

    source: Literal["lda_filings"] = "lda_filings"
    type: str = Field(description="The code of the form: RR, Q1, 1A, …")
    type_name: str | None = None
    registration: bool = False
    amendment: bool = False
    year: int
    period: str | None = Field(None, description="first_quarter, mid_year, …")
    registrant_id: str
    registrant: str
    client_id: str
    client: str
    income: str | None = Field(None, description="US dollars, as the registrant's form gives it.")
    expenses: str | None = None
    amount_cents: int | None = Field(
        None, description="Income, or else expenses, in whole cents: sums of it are exact."
    )
    posted_at: str | None = Field(None, description="The moment of filing, in UTC.")
    series: str = Field(description="Alike for all filings of the same report.")
    activities: list[LobbyingActivity] = Field(default_factory=list)


class Docket(Record):
    """A folder of Regulations.gov, where an agency keeps the papers of a rulemaking."""

    source: Literal["regulations_dot_gov_dockets"] = "regulations_dot_gov_dockets"
    agency: str | None = None
    type: str | None = Field(None, description="Rulemaking or Nonrulemaking.")
    abstract: str | None = None
    rin: str | None = None
    keywords: list[str] = Field(default_factory=list)
    program: str | None = None
    organization: str | None = None
    modified_at: str | None = None


class Witness(Answer):
    """Who spoke at a hearing, and for whom."""

    name: str
    position: str | None = None
    organization: str | None = None


class Hearing(Record):
    """A meeting of a committee, or the printed record of a hearing."""

    source: Literal["hearings"] = "hearings"
    type: Literal["hearing", "meeting", "markup", "transcript"]
    congress: int
    chamber: Chamber | None = None
    held_at: str | None = None
    time: str | None = None
    status: str | None = None
    location: str | None = None
    committees: list[str] = Field(default_factory=list, description="Committee ids.")
    bills: list[str] = Field(default_factory=list, description="Bill ids.")
    number: str | None = Field(None, description="What a printed hearing is cited by.")


class MemberVote(Answer):
    """How one member voted in one roll call."""

    vote_id: str
    bioguide_id: str | None = None
    name: str
    party: str | None = None
    state: str | None = None
    position: str
    standard_position: str | None = Field(
        None, description="yea, nay, present or not_voting, whatever the chamber prints."
    )
    voted_at: str | None = None
    question: str | None = None
    result: str | None = None
    bills: list[str] = Field(default_factory=list)
    title: str | None = None
    url: str | None = None
