"""The federal base's tools, and the base itself as the server sees it."""

from collections.abc import Callable
from pathlib import Path

from readingroom.bases.federal import descriptions, narrowing, sources, store
from readingroom.bases.federal.aggregates import Aggregation, Budget
from readingroom.bases.federal.models import (
    BillText,
    Buckets,
    CosponsorPage,
    Count,
    Fetch,
    Fetched,
    GetBill,
    GetBillText,
    GetCommittee,
    GetLegislator,
    ListCommitteeMembers,
    ListCosponsors,
    ListMemberVotes,
    MembershipPage,
    MemberVotePage,
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
    "get_legislator, list_committee_members. Use search for questions in words, then fetch(id) for "
    "the whole record. Cite `citation.citation_string` with its `url`; `loaded_up_to` says how "
    "recent a source is here."
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
        ),
        service=service,
        routers=(router(service),),
        josh_auth=True,
    )


def _lookups(service: FederalService) -> tuple[Tool, ...]:
    async def get_bill(question: GetBill, call: Call) -> Bill:
        """Look up one bill or resolution whose number and Congress you know, such as H.R. 1 of the
        119th (`hr:119:1`): sponsor, committees, latest action, summary, laws, votes. It does not
        search, and it does not return the bill's text: use get_bill_text for that.
        """
        return await service.bill(question.bill_id)

    async def get_bill_text(question: GetBillText, call: Call) -> BillText:
        """Read the text of a bill whose id you know, in its newest version or a named one. Long
        texts come in pieces: go on with `offset` = `next_offset`. It does not search inside the
        text.
        """
        return await service.bill_text(question.bill_id, question.version, question.offset)

    async def list_cosponsors(question: ListCosponsors, call: Call) -> CosponsorPage:
        """List who cosponsored a bill whose id you know, with party, state and date. The sponsor
        is in get_bill, not here.
        """
        return await service.cosponsors(question.bill_id, question.limit, question.cursor)

    async def get_legislator(question: GetLegislator, call: Call) -> Legislator:
        """Look up one member of Congress, sitting or former, by bioguide id (`S000033`): party,
        state, every term, leadership. It does not look up names.
        """
        return await service.legislator(question.bioguide)

    async def list_member_votes(question: ListMemberVotes, call: Call) -> MemberVotePage:
        """List how one member, by bioguide id, voted in roll calls, newest first, with what each
        vote was on. Only recorded votes that are loaded here are listed.
        """
        return await service.member_votes(
            question.bioguide, question.congress, question.limit, question.cursor
        )

    async def get_committee(question: GetCommittee, call: Call) -> Committee:
        """Look up one committee or subcommittee by its code (`HSAG`, `HSAG15`): name, chamber,
        jurisdiction, subcommittees. Its members are in list_committee_members.
        """
        return await service.committee(question.id)

    async def list_committee_members(question: ListCommitteeMembers, call: Call) -> MembershipPage:
        """List who sits on a committee or subcommittee by its code (`HSWM`), majority first, by
        rank, with the chair and ranking member named. It does not look up committee names.
        """
        return await service.members(
            question.id, question.congress, question.limit, question.cursor
        )

    async def fetch(question: Fetch, call: Call) -> Fetched:
        """Fetch any federal record by its id, whatever its kind: what search returned, or an id
        another record names. Returns its text and the full record. It does not search: unknown
        ids are refused with the list of valid forms.
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
        """Find who or what a noisy name means in a registry: Sen. Markey from Mass, AOC, House Ag,
        Ways & Means. Typos, nicknames, initials, swapped words, states and chambers are
        understood. Returns full records, the likeliest first, each with its id, a score and why.
        It does not search texts: use search for that.
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
