"""The federal base's tools, and the base itself as the server sees it."""

from collections.abc import Callable
from pathlib import Path

from readingroom.bases.federal import descriptions, narrowing, sources, store
from readingroom.bases.federal.aggregates import Aggregation, Budget
from readingroom.bases.federal.models import (
    BillDossier,
    BillText,
    Buckets,
    CommitteeDossier,
    CosponsorPage,
    Count,
    Fetch,
    Fetched,
    GetBill,
    GetBillDossier,
    GetBillText,
    GetCommittee,
    GetCommitteeDossier,
    GetLegislator,
    GetLegislatorDossier,
    GetPublicLawDossier,
    LegislatorDossier,
    ListCommitteeMembers,
    ListCosponsors,
    ListMemberVotes,
    MembershipPage,
    MemberVotePage,
    PublicLawDossier,
    Resolved,
    ResolveEntity,
    Search,
    SearchAnswer,
    Series,
    Sum,
    TimeSeries,
    Total,
)
from readingroom.bases.federal.records import Bill, Committee, Legislator
from readingroom.bases.federal.routes import router
from readingroom.bases.federal.service import FILE, FederalService
from readingroom.bases.federal.sources import Resource, Shape, Source
from readingroom.engine.embedding import Embedder
from readingroom.protocol.dialects import FederalDialect
from readingroom.protocol.knowledge import KnowledgeBase
from readingroom.protocol.tool import Call, Tool, tool

_INSTRUCTIONS = (
    "U.S. federal records from official bulk files: bills, laws, amendments, the Federal Register, "
    "Statements of Administration Policy, members, committees, votes. When the question names an "
    "identifier (H.R. 1, a bioguide id, a committee), use the typed tools: get_bill, "
    "get_legislator, list_committee_members. A name without an id (Sen. Markey, House Ag) goes to "
    "resolve_entity first. Use search for questions in words, then fetch(id) for the whole record. "
    "How many, how much and how it changed: count, sum, time_series. Everything about one bill, "
    "member, committee or law in one call: the dossiers. Cite `citation.citation_string` with its "
    "`url`; `loaded_up_to` says how recent a source is here."
)


def open_federal(folder: Path, embedder: Embedder, budget: Budget | None = None) -> KnowledgeBase:
    """Open the federal base on its folder; an empty one is made where there is none."""
    path = folder / FILE
    store.prepare(path)
    service = FederalService(path, embedder, budget)
    return KnowledgeBase(
        name="federal",
        server_name="josh",
        title="Federal records",
        instructions=_INSTRUCTIONS,
        dialect=FederalDialect(),
        tools=(
            *_lookups(service),
            *_searches(service),
            _resolution(service),
            *_aggregates(service),
            *_dossiers(service),
        ),
        service=service,
        routers=(router(service),),
        josh_auth=True,
    )


def _lookups(service: FederalService) -> tuple[Tool, ...]:
    async def get_bill(question: GetBill, call: Call) -> Bill:
        """Look up one bill or resolution whose number and Congress you know, such as H.R. 1 of the
        119th (`hr:119:1`, `s:118:2226`, `hjres:118:44`): the basic facts: its status, what happened
        to it and where it stands, whether it passed, was signed, enacted or became law or is stuck
        in committee, official title, who sponsored it (its author) and when it was introduced, the
        committees it was referred to, latest action, policy area, summary, related bills. It does
        not search, and it does not return the bill's wording: use get_bill_text for that.
        """
        return await service.bill(question.bill_id)

    async def get_bill_text(question: GetBillText, call: Call) -> BillText:
        """Read the text of one bill whose id you know (`hr:119:1`, H.R. 1 of the 119th Congress):
        its actual legal wording and language, what a section of the bill says, to read or quote, as
        introduced, engrossed or enrolled, else in the newest version. Shows or prints the full
        bill; long texts come in pieces: go on with `offset` = `next_offset`. It does not search
        inside the text.
        """
        return await service.bill_text(question.bill_id, question.version, question.offset)

    async def list_cosponsors(question: ListCosponsors, call: Call) -> CosponsorPage:
        """List who cosponsored a bill whose id you know (`hr:119:1`, H.R. 1 of the 119th Congress):
        the co-sponsors, which Democrats and Republicans joined or signed on, back or support the
        bill and put their names to it, with party, state, district and the date each joined or
        withdrew. The sponsor is in get_bill, not here.
        """
        return await service.cosponsors(question.bill_id, question.limit, question.cursor)

    async def get_legislator(question: GetLegislator, call: Call) -> Legislator:
        """Look up one member of Congress, senator or representative, current or former, by bioguide
        id (`S000033`): who it is, the biographical entry: party (Democrat, Republican,
        independent), home state, district, whether still in office and how long, every term served
        with the dates it started and ends, leadership. It does not look up names: resolve_entity
        does.
        """
        return await service.legislator(question.bioguide)

    async def list_member_votes(question: ListMemberVotes, call: Call) -> MemberVotePage:
        """List how one member voted, by bioguide id (`S000033`): the voting record in roll calls on
        the floor, the last votes first, with the position taken, for or against (Yea, Nay, Present,
        Not Voting when missed), the question, the bill and the result. Only recorded votes that are
        loaded here are listed.
        """
        return await service.member_votes(
            question.bioguide, question.congress, question.limit, question.cursor
        )

    async def get_committee(question: GetCommittee, call: Call) -> Committee:
        """Look up one committee or subcommittee by its code (`HSAG`, `HSAG15`, `SSBK`): what the
        code stands for, the name it is called by, chamber, jurisdiction (what area it is
        responsible for), contact details (address, phone, web page), the subcommittees it has,
        parent, former names. Its members are in list_committee_members; it does not look up names.
        """
        return await service.committee(question.id)

    async def list_committee_members(question: ListCommitteeMembers, call: Call) -> MembershipPage:
        """List who sits on a committee or subcommittee, by its code (`HSWM`, `SSBK`): the
        membership or roster, the lawmakers serving on it, Republicans and Democrats, majority
        first, by rank and seniority, who chairs it (the chairman) and the ranking member. It does
        not look up committee names: resolve_entity does.
        """
        return await service.members(
            question.id, question.congress, question.limit, question.cursor
        )

    async def fetch(question: Fetch, call: Call) -> Fetched:
        """Open any federal document or record when you have its id, whatever its kind: what search
        returned, or an id another record names (a law `pl:110-140`, a CRS report `R41234`, a rule
        `2024-00321`, a vote `house:117:1:9`, a speech `crec:CREC-2011-…`). Returns the whole record
        and its text, to show, retrieve or cite. It does not search: unknown ids are refused with
        the list of valid forms.
        """
        return await service.fetch(question.id, question.offset)

    return (
        tool(get_bill, title="Look up a bill"),
        tool(get_bill_text, title="Read a bill"),
        tool(list_cosponsors, title="List a bill's cosponsors"),
        tool(get_legislator, title="Look up a member of Congress"),
        tool(list_member_votes, title="List a member's votes"),
        tool(get_committee, title="Look up a committee"),
        tool(list_committee_members, title="List a committee's members"),
        tool(fetch, title="Fetch a record by id"),
    )


def _searches(service: FederalService) -> tuple[Tool, ...]:
    async def search(question: Search, call: Call) -> SearchAnswer:
        return await service.search(question, "hybrid")

    async def lexical_search(question: Search, call: Call) -> SearchAnswer:
        return await service.search(question, "lexical")

    async def semantic_search(question: Search, call: Call) -> SearchAnswer:
        return await service.search(question, "semantic")

    def described(say: Callable[[tuple[Source, ...]], str]) -> Callable[[], str]:
        """Asked of the file at every listing: a source appears when its table does."""
        return lambda: say(service.store.now(store.live_sources))

    return (
        tool(search, title="Search", describe=described(descriptions.search)),
        tool(
            lexical_search, title="Search by words", describe=described(descriptions.lexical_search)
        ),
        tool(
            semantic_search,
            title="Search by meaning",
            describe=described(descriptions.semantic_search),
        ),
    )


def _resolution(service: FederalService) -> Tool:
    async def resolve_entity(question: ResolveEntity, call: Call) -> Resolved:
        """Find who or what is meant by a name or nickname, however noisy or misspelt, and get its
        id or identifier: the bioguide id of the senator, representative, congressman or
        congresswoman (Sen. Markey from Mass, AOC), the code of a committee (House Ag, Ways &
        Means), a staffer, a lobbying client or firm, a hearing or docket called something like
        this. Typos, spelling, nicknames, initials, swapped words, states and chambers are
        understood. Returns full records, the likeliest first, each with its id, a score and why. It
        does not search texts: use search for that.
        """
        source = sources.registry(question.entity_type)
        narrowed = narrowing.read(source.resource, question.filters)
        return await service.resolve(
            source, question.query, narrowed, question.limit, question.cursor
        )

    def choices() -> dict[str, list[str]]:
        live = service.store.now(store.live_sources)
        return {"entity_type": [one.path for one in live if one.shape is Shape.REGISTRY]}

    return tool(resolve_entity, title="Resolve a name", choices=choices)


def _aggregates(service: FederalService) -> tuple[Tool, ...]:
    async def count(question: Count, call: Call) -> Total | Buckets:
        found = sources.resource(question.resource)
        narrowed = narrowing.read(found, question.filters)
        asked = Aggregation(found, narrowed, group_by=question.group_by, top=question.top)
        return await service.aggregate(asked)

    async def sum(question: Sum, call: Call) -> Total | Buckets:
        found = sources.resource(question.resource)
        narrowed = narrowing.read(found, question.filters)
        asked = Aggregation(
            found, narrowed, question.sum_field, question.group_by, top=question.top
        )
        return await service.aggregate(asked)

    async def time_series(question: TimeSeries, call: Call) -> Series:
        found = sources.resource(question.resource)
        asked = Aggregation(
            found,
            narrowing.read(found, question.filters),
            question.sum_field,
            question.group_by,
            question.top,
            question.time_field,
            question.interval,
        )
        return await service.time_series(asked)

    def live() -> tuple[Resource, ...]:
        return service.store.now(store.live_resources)

    def choices(*arguments: str) -> Callable[[], dict[str, list[str]]]:
        return lambda: descriptions.aggregate_choices(live(), arguments)

    return (
        tool(
            count,
            title="Count records",
            describe=lambda: descriptions.count(live()),
            choices=choices("resource", "group_by"),
        ),
        tool(
            sum,
            title="Add numbers up",
            describe=lambda: descriptions.sum(live()),
            choices=choices("resource", "sum_field", "group_by"),
        ),
        tool(
            time_series,
            title="Count over time",
            describe=lambda: descriptions.time_series(live()),
            choices=choices("resource", "time_field", "group_by", "sum_field"),
        ),
    )


def _dossiers(service: FederalService) -> tuple[Tool, ...]:
    async def get_bill_dossier(question: GetBillDossier, call: Call) -> BillDossier:
        """Get everything about one bill whose id you know (`hr:119:1`, H.R. 1 of the 119th
        Congress) in one call, all there is on it, the complete file or dossier for a briefing or
        talking points: the record, cosponsors, actions, amendments, votes, and all the material
        connected with it: CRS reports, CBO cost estimates (the score), what the White House said
        (Statements of Administration Policy), committee reports and hearings. Each section has its
        total, and `more_url` where it is cut. It does not return the wording; for one of these
        alone, use the narrower tool.
        """
        return await service.bill_dossier(question.bill_id)

    async def get_legislator_dossier(
        question: GetLegislatorDossier, call: Call
    ) -> LegislatorDossier:
        """Get everything about one member of Congress by bioguide id (`S000033`) in one call, the
        full profile, the comprehensive picture of a career or background before a meeting: terms,
        committee seats, bills sponsored and cosponsored by Congress, leadership, offices, speeches
        on the floor. With `congress`, only what falls into it. It does not look up names: use
        resolve_entity first.
        """
        return await service.legislator_dossier(question.bioguide_id, question.congress)

    async def get_committee_dossier(question: GetCommitteeDossier, call: Call) -> CommitteeDossier:
        """Get everything about one committee by its code (`HSAG`, `SSEG`) in one call, the complete
        picture of its activity, what it has been doing: members, subcommittees, hearings held,
        bills referred to it, reports. With `congress`, only what falls into it. It does not look up
        names: use resolve_entity first.
        """
        return await service.committee_dossier(question.committee_id, question.congress)

    async def get_public_law_dossier(question: GetPublicLawDossier, call: Call) -> PublicLawDossier:
        """Get everything about one public law by its number (`pl:110-140`, Public Law or P.L.
        110-140) in one call, its whole story: the bill it came from, the regulations that implement
        it (the sections of the CFR and the rules of the Federal Register that cite it), its text as
        amended since it was enacted. It does not return the law's own text: fetch does.
        """
        return await service.public_law_dossier(question.id)

    return (
        tool(get_bill_dossier, title="Everything about a bill"),
        tool(get_legislator_dossier, title="Everything about a member of Congress"),
        tool(get_committee_dossier, title="Everything about a committee"),
        tool(get_public_law_dossier, title="Everything about a law"),
    )
