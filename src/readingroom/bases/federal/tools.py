"""The federal base's tools, and the base itself as the server sees it."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from readingroom.bases.federal import descriptions, store
from readingroom.bases.federal.filters import parse_filters
from readingroom.bases.federal.load import coverage
from readingroom.bases.federal.models import (
    BillText,
    CosponsorPage,
    Fetch,
    GetBill,
    GetBillText,
    GetCommittee,
    GetLegislator,
    ListCommitteeMembers,
    ListCosponsors,
    ListMemberVotes,
    ListRecords,
    MembershipPage,
    MemberVotePage,
    RecordList,
    Resolved,
    ResolveEntity,
    Search,
    SearchAnswer,
)
from readingroom.bases.federal.query.aggregate_models import (
    Buckets,
    Count,
    Series,
    Sum,
    TimeSeries,
    Total,
)
from readingroom.bases.federal.query.aggregates import Aggregation, Budget
from readingroom.bases.federal.query.cards import fit_items, fit_series, shorten_records
from readingroom.bases.federal.query.dossier_models import (
    BillDossier,
    CommitteeDossier,
    GetBillDossier,
    GetCommitteeDossier,
    GetLegislatorDossier,
    GetPublicLawDossier,
    LegislatorDossier,
    PublicLawDossier,
)
from readingroom.bases.federal.schema.records import Bill, Committee, Legislator
from readingroom.bases.federal.schema.sources import (
    RecordTable,
    Shape,
    Source,
    get_record_table,
    get_registry,
)
from readingroom.bases.federal.schema.tables import lacks_agencies
from readingroom.bases.federal.search.passages import read_records_generation
from readingroom.bases.federal.search.remote import FederalPassages
from readingroom.bases.federal.service import FederalService
from readingroom.bases.federal.settings import FederalSettings
from readingroom.core.imports import LazyModule
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.embedding.shared import get_shared_embedder
from readingroom.protocol import tool as protocol_tool
from readingroom.protocol.errors import FederalDialect
from readingroom.protocol.search import Fetched
from readingroom.protocol.spec import KnowledgeBase
from readingroom.protocol.tool import ResourceLink, Tool, ToolContext

if TYPE_CHECKING:
    from readingroom.bases.federal.load import linking
else:
    linking = LazyModule("readingroom.bases.federal.load.linking")

# The whole schemas of answers are in /openapi.json; in a listing they would cost more tokens than
# all that a model chooses by.
make_tool = partial(protocol_tool.make_tool, has_outlined_answer=True)

_INSTRUCTIONS = (
    "U.S. federal records from official bulk files: bills, laws, amendments, the Federal Register, "
    "Statements of Administration Policy, members, committees, votes. When the question names an "
    "identifier (H.R. 1, a bioguide id, a committee), use the typed tools: get_bill, "
    "get_legislator, list_committee_members. A name without an id (Sen. Markey, House Ag) goes to "
    "resolve_entity first. Questions in words: search, then fetch(id). "
    "How many, how much and how it changed: count, sum, time_series. Everything about one bill, "
    "member, committee or law in one call: the dossiers. Cite `citation.citation_string` with its "
    "`url`; `as_of` says how recent a record is, `loaded_up_to` up to when a source is complete."
)


def open_base(settings: FederalSettings) -> KnowledgeBase:
    """Open the federal base as the settings say."""
    return open_federal(store.locate_records(settings), get_shared_embedder(settings))


def open_federal(
    federal_place: store.FederalPlace, embedder: Embedder, cost_budget: Budget | None = None
) -> KnowledgeBase:
    """Open the federal base in a file or a database; an empty one is made where there is none."""
    store.prepare_records(federal_place)
    if _lacks_agencies(federal_place):
        linking.register_agencies_of_older_records(federal_place)
    coverage.correct_dates_from_issues(federal_place)
    federal_service = FederalService(federal_place, embedder, cost_budget)
    return KnowledgeBase(
        name="federal",
        server_name="josh",
        title="Federal records",
        instructions=_INSTRUCTIONS,
        error_dialect=FederalDialect(),
        tools=(
            *_make_bill_tools(federal_service),
            *_make_member_tools(federal_service),
            *_make_committee_tools(federal_service),
            *_make_record_tools(federal_service),
            *_make_search_tools(federal_service),
            _make_name_tool(federal_service),
            *_make_aggregate_tools(federal_service),
            *_make_dossier_tools(federal_service),
        ),
        service=federal_service,
        leasable_passages=FederalPassages(federal_place, federal_service.vectors),
        check_ready=partial(federal_service.store.query, read_records_generation),
        warm_up=federal_service.warm_up,
    )


def _lacks_agencies(federal_place: store.FederalPlace) -> bool:
    with store.translate_errors(federal_place), closing(store.connect(federal_place)) as db:
        return lacks_agencies(db)


def _make_bill_tools(federal_service: FederalService) -> tuple[Tool, ...]:
    async def get_bill(arguments: GetBill, tool_context: ToolContext) -> Bill:
        """Look up one bill or resolution whose number and Congress you know (`hr:119:1`, H.R. 1 of
        the 119th Congress): the basic facts. Where does it stand, what is its status and latest
        action? Has it moved, did it pass, was it signed or vetoed, did it become law, or is it
        stuck in committee? Who sponsored (wrote) it and when was it introduced? What is its
        official title, summary and policy area? For the wording use `get_bill_text`. For the
        members who support it besides the sponsor use `list_cosponsors`. For votes, amendments,
        cost estimates and hearings too, use `get_bill_dossier`.
        """
        return await federal_service.get_bill(arguments.bill_id)

    async def get_bill_text(arguments: GetBillText, tool_context: ToolContext) -> BillText:
        """Read the actual wording of one bill whose number you know (`hr:119:1`, H.R. 1 of the
        119th Congress): what does the bill say, in full or in one section, title or definition?
        Gives the legal text to read or quote, as introduced, engrossed or enrolled, else the newest
        version, or what changed between two: of a compiled law, its amendments. Long texts come in
        pieces: go on with `offset` = `next_offset`. It does not search the text.
        """
        return await federal_service.read_bill_text(
            arguments.bill_id,
            arguments.version,
            arguments.offset,
            arguments.section,
            arguments.compare_with,
        )

    async def list_cosponsors(
        arguments: ListCosponsors, tool_context: ToolContext
    ) -> CosponsorPage:
        """List who cosponsored one bill whose number you know (`hr:119:1`, H.R. 1 of the 119th
        Congress). Which members have signed on, who backs or supports the bill besides the sponsor,
        and is that bipartisan? Gives each Democrat and Republican with party, state, district and
        the date they joined or withdrew. For the sponsor use `get_bill`.
        """
        return await federal_service.list_cosponsors(
            arguments.bill_id, arguments.limit, arguments.cursor
        )

    return (
        make_tool(get_bill, title="Look up a bill", list_links=_make_bill_links),
        make_tool(get_bill_text, title="Read a bill"),
        make_tool(list_cosponsors, title="List a bill's cosponsors"),
    )


def _make_member_tools(federal_service: FederalService) -> tuple[Tool, ...]:
    async def get_legislator(arguments: GetLegislator, tool_context: ToolContext) -> Legislator:
        """Look up one member of Congress, senator or representative, now or formerly, by bioguide
        id (`S000033`). Who is it? Which party and state do they belong to, which district do they
        represent? Are they still in office, and since when? Gives the name and every term served
        with the dates it began and ends. For committee seats, bills and speeches too, use
        `get_legislator_dossier`. When you have a name and no id, use `resolve_entity`.
        """
        return await federal_service.get_legislator(arguments.bioguide)

    async def list_member_votes(
        arguments: ListMemberVotes, tool_context: ToolContext
    ) -> MemberVotePage:
        """List how one member of Congress voted, by bioguide id (`S000033`): the voting record. How
        did they vote on each question, for or against, and which votes did they miss? Gives roll
        call by roll call, the most recent first, the position taken (Yea, Nay, Present, Not
        Voting), the question, the bill and the result; only recorded votes that are loaded here.
        For how many votes were held use `count`.
        """
        return await federal_service.list_member_votes(
            arguments.bioguide, arguments.congress, arguments.limit, arguments.cursor
        )

    return (
        make_tool(get_legislator, title="Look up a member of Congress"),
        make_tool(list_member_votes, title="List a member's votes"),
    )


def _make_committee_tools(federal_service: FederalService) -> tuple[Tool, ...]:
    async def get_committee(arguments: GetCommittee, tool_context: ToolContext) -> Committee:
        """Look up one committee, subcommittee or panel of Congress by its code (`HSAG`, `hsag00`,
        `HSAG15`). What does the code stand for, what is its official name and chamber? What is it
        responsible for (jurisdiction), which subcommittees does it have? Gives web page, address,
        phone, parent committee and former names too. For the people on it use
        `list_committee_members`. When you have a name and want the code, use `resolve_entity`. For
        its hearings, bills and reports use `get_committee_dossier`.
        """
        return await federal_service.get_committee(arguments.id)

    async def list_committee_members(
        arguments: ListCommitteeMembers, tool_context: ToolContext
    ) -> MembershipPage:
        """List who sits on a committee or subcommittee of Congress, by its code (`HSWM`, `hswm00`,
        `HSWM15`): the roster. Who are the members, who chairs it, who is the ranking member, which
        Republicans and Democrats serve on it? Gives names of senators or representatives with
        party, rank and side, majority and minority, in one Congress. For the committee itself use
        `get_committee`.
        """
        committee_roster = await federal_service.list_committee_members(
            arguments.id, arguments.congress, arguments.limit, arguments.cursor
        )
        fitting_count = len(fit_items(committee_roster.results))
        if "limit" in arguments.model_fields_set or fitting_count == len(committee_roster.results):
            return committee_roster
        # Who does not say how many wants an answer that can be read; the rest is a page away.
        return await federal_service.list_committee_members(
            arguments.id, arguments.congress, fitting_count, arguments.cursor
        )

    return (
        make_tool(get_committee, title="Look up a committee"),
        make_tool(list_committee_members, title="List a committee's members"),
    )


def _make_record_tools(federal_service: FederalService) -> tuple[Tool, ...]:
    async def fetch(arguments: Fetch, tool_context: ToolContext) -> Fetched:
        """Open any federal document or record when you have its id, whatever its kind: what search
        returned, or an id another record names (a law `pl:110-140`, a CRS report `R41234`, a
        Federal Register document `2024-00321`, a vote `house:117:1:9`, a speech
        `crec:CREC-2011-03-02-pt1-PgS1234`). Returns the whole record and its text, to show, read or
        cite. It does not search: unknown ids are refused with the list of valid forms.
        """
        return await federal_service.fetch_record(arguments.id, arguments.offset, arguments.section)

    async def list_records(arguments: ListRecords, tool_context: ToolContext) -> RecordList:
        """List records by filter, newest first, page by page: bills that a member sponsored or a
        committee got, introduced last week, vetoed, on a subject; all actions or amendments of one
        bill (`id` and `part`), who voted no in a roll call, who votes alike, what is new since
        Monday (`changes`). Filters are those of `count`; a wrong one is refused with the valid.
        """
        return await federal_service.list_cards(arguments)

    return (
        make_tool(fetch, title="Fetch a record by id"),
        make_tool(list_records, title="List records", view="vote"),
    )


def _make_search_tools(federal_service: FederalService) -> tuple[Tool, ...]:
    async def search(arguments: Search, tool_context: ToolContext) -> SearchAnswer:
        return await federal_service.search(arguments, "hybrid")

    async def lexical_search(arguments: Search, tool_context: ToolContext) -> SearchAnswer:
        return await federal_service.search(arguments, "lexical")

    async def semantic_search(arguments: Search, tool_context: ToolContext) -> SearchAnswer:
        return await federal_service.search(arguments, "semantic")

    def make_live_describer(
        describe_sources: Callable[[tuple[Source, ...]], str],
    ) -> Callable[[], str]:
        """Return what reads the file at every listing: a source appears when its table does."""
        return lambda: describe_sources(federal_service.store.query_now(store.list_stored_sources))

    return (
        make_tool(
            search,
            title="Search",
            make_description=make_live_describer(descriptions.describe_search_tool),
        ),
        make_tool(
            lexical_search,
            title="Search by words",
            make_description=make_live_describer(descriptions.describe_lexical_search_tool),
        ),
        make_tool(
            semantic_search,
            title="Search by meaning",
            make_description=make_live_describer(descriptions.describe_semantic_search_tool),
        ),
    )


def _make_name_tool(federal_service: FederalService) -> Tool:
    async def resolve_entity(arguments: ResolveEntity, tool_context: ToolContext) -> Resolved:
        """Find out who or what is meant by a name, and its official id or code, when you only know
        a name that is partial, a nickname, noisy or misspelt. Which senator, congressman or
        congresswoman is that, what is the bioguide id of a member by this name (Sen. Markey from
        Mass, AOC) or in this post (Speaker, chair of Ways and Means)? What is the code of this
        committee or subcommittee (House Ag, Ways & Means)? Can you identify a bill by its popular
        name, an agency, hearing, docket, topic, office (telephone), lobbying client or firm called
        something like this? Typos, initials, states and chambers are understood. Returns full
        records, the likeliest first, each with a score and why. For what documents say on a subject
        use `search`.
        """
        record_source = get_registry(arguments.entity_type)
        sql_filter = parse_filters(record_source.record_table, arguments.filters)

        async def resolve_up_to(max_results: int) -> Resolved:
            resolved_page = await federal_service.resolve_name(
                record_source, arguments.query, sql_filter, max_results, arguments.cursor
            )
            if record_source.name != "bills":
                return resolved_page
            # A bill's record alone may be longer than an answer; `get_bill` has it whole.
            return resolved_page.model_copy(
                update={"results": shorten_records(resolved_page.results)}
            )

        resolved_page = await resolve_up_to(arguments.limit)
        fitting_count = len(fit_items(resolved_page.results))
        if "limit" in arguments.model_fields_set or fitting_count == len(resolved_page.results):
            return resolved_page
        return await resolve_up_to(fitting_count)

    def list_entity_types() -> dict[str, list[str]]:
        stored_sources = federal_service.store.query_now(store.list_stored_sources)
        registry_slugs = [
            record_source.slug
            for record_source in stored_sources
            if record_source.shape is Shape.REGISTRY
        ]
        return {"entity_type": [*registry_slugs, "bills"]}

    return make_tool(resolve_entity, title="Resolve a name", list_choices=list_entity_types)


def _make_aggregate_tools(federal_service: FederalService) -> tuple[Tool, ...]:
    async def count(arguments: Count, tool_context: ToolContext) -> Total | Buckets:
        record_table = get_record_table(arguments.resource)
        sql_filter = parse_filters(record_table, arguments.filters)
        return await federal_service.compute_aggregate(
            Aggregation(record_table, sql_filter, group_by=arguments.group_by, top=arguments.top)
        )

    async def sum(arguments: Sum, tool_context: ToolContext) -> Total | Buckets:
        record_table = get_record_table(arguments.resource)
        sql_filter = parse_filters(record_table, arguments.filters)
        return await federal_service.compute_aggregate(
            Aggregation(
                record_table, sql_filter, arguments.sum_field, arguments.group_by, top=arguments.top
            )
        )

    async def time_series(arguments: TimeSeries, tool_context: ToolContext) -> Series:
        record_table = get_record_table(arguments.resource)
        series = await federal_service.compute_time_series(
            Aggregation(
                record_table,
                parse_filters(record_table, arguments.filters),
                arguments.sum_field,
                arguments.group_by,
                arguments.top,
                arguments.time_field,
                arguments.interval,
            )
        )
        return series if "top" in arguments.model_fields_set else fit_series(series)

    def list_live_tables() -> tuple[RecordTable, ...]:
        return federal_service.store.query_now(store.list_stored_record_tables)

    def make_choice_lister(*argument_names: str) -> Callable[[], dict[str, list[str]]]:
        return lambda: descriptions.collect_aggregate_choices(list_live_tables(), argument_names)

    return (
        make_tool(
            count,
            title="Count records",
            view="series",
            make_description=lambda: descriptions.describe_count_tool(list_live_tables()),
            list_choices=make_choice_lister("resource", "group_by"),
        ),
        make_tool(
            sum,
            title="Add numbers up",
            make_description=lambda: descriptions.describe_sum_tool(list_live_tables()),
            list_choices=make_choice_lister("resource", "sum_field", "group_by"),
        ),
        make_tool(
            time_series,
            title="Count over time",
            view="series",
            make_description=lambda: descriptions.describe_time_series_tool(list_live_tables()),
            list_choices=make_choice_lister("resource", "time_field", "group_by", "sum_field"),
        ),
    )


def _make_dossier_tools(federal_service: FederalService) -> tuple[Tool, ...]:
    async def get_bill_dossier(arguments: GetBillDossier, tool_context: ToolContext) -> BillDossier:
        """Get everything about one bill whose number you know (`hr:119:1`, H.R. 1 of the 119th
        Congress) in one call, its whole history as a complete file for a briefing: the record,
        actions, cosponsors, amendments, votes, and all that is connected with it: CRS reports, CBO
        cost estimates (the score), what the White House said (Statements of Administration Policy),
        committee reports and hearings. Each section has its total, and `more_url` where it is cut.
        For the status alone use `get_bill`. For the wording use `get_bill_text`.
        """
        return await federal_service.build_bill_dossier(arguments.bill_id)

    async def get_legislator_dossier(
        arguments: GetLegislatorDossier, tool_context: ToolContext
    ) -> LegislatorDossier:
        """Get everything about one member of Congress by bioguide id (`S000033`) in one call, the
        full profile or background to know before a meeting: terms, committee seats, leadership
        posts, bills sponsored and cosponsored, offices, what they say in speeches on the floor.
        With `congress`, only what falls into it. For party, state and terms alone use
        `get_legislator`. When you have a name and no id, use `resolve_entity`.
        """
        return await federal_service.build_legislator_dossier(
            arguments.bioguide_id, arguments.congress
        )

    async def get_committee_dossier(
        arguments: GetCommitteeDossier, tool_context: ToolContext
    ) -> CommitteeDossier:
        """Get everything about one committee by its code (`HSAG`, `hsag00`) in one call, a briefing
        with the complete picture. Who is on it, and what has it been doing and working on? Gives
        members, subcommittees, hearings held, bills referred to it, reports filed. With `congress`,
        only what falls into it. For name, chamber and contact alone use `get_committee`. When you
        have a name and no code, use `resolve_entity`.
        """
        return await federal_service.build_committee_dossier(
            arguments.committee_id, arguments.congress
        )

    async def get_public_law_dossier(
        arguments: GetPublicLawDossier, tool_context: ToolContext
    ) -> PublicLawDossier:
        """Get everything about one public law by its number (`pl:110-140`, Public Law 110-140, P.L.
        110-140) in one call, its whole story. Which bill did it come from, and which rules and
        regulations were issued to implement it? Gives the bill, the parts of the CFR and the rules
        of the Federal Register that cite it, its text as amended since it was enacted. For the text
        of the law itself use `fetch`.
        """
        return await federal_service.build_public_law_dossier(arguments.id)

    return (
        make_tool(get_bill_dossier, title="Everything about a bill"),
        make_tool(get_legislator_dossier, title="Everything about a member of Congress"),
        make_tool(get_committee_dossier, title="Everything about a committee"),
        make_tool(get_public_law_dossier, title="Everything about a law"),
    )


def _make_bill_links(bill_answer: Bill) -> list[ResourceLink]:
    return [ResourceLink(f"federal/{quote(bill_answer.id, safe='')}", bill_answer.citation_string)]
