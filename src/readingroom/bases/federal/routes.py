"""The federal base over REST: under `/v1`, a list and a record endpoint for every source."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    create_model,
    model_validator,
)

from readingroom.bases.federal.filters import SqlFilter, make_filters_model, parse_filters
from readingroom.bases.federal.models import (
    DEFAULT_MATCH_LIMIT,
    ActionPage,
    Address,
    BillText,
    ChangeKind,
    ChangePage,
    Congress,
    CosponsorPage,
    Filters,
    Limit,
    LinkPage,
    MembershipPage,
    MemberVotePage,
    Offset,
    RecordPage,
    Resolved,
    Search,
    SearchAnswer,
    WitnessPage,
)
from readingroom.bases.federal.query.aggregate_models import Buckets, Interval, Series, TopN, Total
from readingroom.bases.federal.query.aggregates import Aggregation
from readingroom.bases.federal.query.dossier_models import (
    BillDossier,
    CommitteeDossier,
    LegislatorDossier,
    PublicLawDossier,
)
from readingroom.bases.federal.schema.records import LinkKind
from readingroom.bases.federal.schema.sources import (
    MEMBER_VOTES,
    SOURCES,
    RecordTable,
    Source,
)
from readingroom.bases.federal.schema.values import AnyType, HouseOrSenate, Party, RecordOf, State
from readingroom.bases.federal.service import FederalService
from readingroom.core.errors import InvalidArguments, InvalidRequest
from readingroom.core.modes import Mode
from readingroom.protocol.rest import make_problem_responses
from readingroom.protocol.search import Fetched
from readingroom.protocol.tool import Day, NonBlankText, ShortText
from readingroom.web.parameters import StrictQueryRoute

_MAX_ID_LENGTH = 200

RecordId = Annotated[
    str, Path(min_length=1, max_length=_MAX_ID_LENGTH, description="The record's id.")
]
Cursor = Annotated[str | None, Query(max_length=500, description="`next_cursor` of the last page.")]


_PROBLEM_RESPONSES = make_problem_responses(
    {
        401: "A key is asked for",
        404: "No such record",
        422: "An argument does not fit",
        429: "Too many requests",
        503: "The storage cannot be used",
    }
)
_GONE_RESPONSE = make_problem_responses({410: "Withdrawn; the hint names its successor"})


def _make_invalid_parameter_error(field_name: str, problem_text: str) -> InvalidRequest:
    """Return the error for parameters that do not go together, at the one to change."""
    return InvalidRequest([{"field": field_name, "message": problem_text}])


def _rename_to_parameter(problem: dict[str, str]) -> dict[str, str]:
    """Return a problem with a tool's argument under the name of the REST parameter."""
    parameter_by_argument = {"time_field": "bucket_by_time", "interval": "time_interval"}
    field_name = problem["field"].removeprefix("filters.")
    return problem | {"field": parameter_by_argument.get(field_name, field_name)}


@contextmanager
def _translate_argument_errors() -> Iterator[None]:
    """Raise what the service says of arguments as a problem with parameters of the request."""
    try:
        yield
    except InvalidRequest:
        raise
    except InvalidArguments as error:
        raise InvalidRequest([_rename_to_parameter(problem) for problem in error.errors]) from error


class AggregateQuestion(BaseModel):
    """Asks for numbers in place of records; what it is narrowed by comes from its resource."""

    aggregate: Literal["count", "sum"] | None = None
    sum_field: ShortText | None = Field(None, description="What `aggregate=sum` adds up.")
    group_by: ShortText | None = Field(None, description="One number for each value of this field.")
    top: TopN | None = Field(None, description="How many groups, the largest first; else 20.")
    bucket_by_time: ShortText | None = Field(
        None, description="One number for each stretch of time."
    )
    time_interval: Interval | None = Field(None, description="How long a stretch is; else a month.")

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if (self.aggregate == "sum") != (self.sum_field is not None):
            raise _make_invalid_parameter_error(
                "sum_field", "belongs to aggregate=sum, which needs it"
            )
        if self.time_interval and not self.bucket_by_time:
            raise _make_invalid_parameter_error(
                "bucket_by_time", "say which date time_interval is about"
            )
        if (self.group_by or self.top) and not self.wants_numbers:
            raise _make_invalid_parameter_error("aggregate", "say count or sum")
        return self

    @property
    def wants_numbers(self) -> bool:
        return self.aggregate is not None or self.bucket_by_time is not None

    def make_sql_filter(self, record_table: RecordTable) -> SqlFilter:
        filter_names = set(make_filters_model(record_table).model_fields)
        return parse_filters(record_table, self.model_dump(include=filter_names, exclude_none=True))

    async def compute_numbers(
        self, federal_service: FederalService, record_table: RecordTable
    ) -> Total | Buckets | Series:
        """Return what the tools answer to the same question."""
        aggregation = Aggregation(
            record_table,
            self.make_sql_filter(record_table),
            self.sum_field,
            self.group_by,
            self.top or 20,
            self.bucket_by_time,
            self.time_interval or "month",
        )
        if self.bucket_by_time:
            return await federal_service.compute_time_series(aggregation)
        return await federal_service.compute_aggregate(aggregation)


class CountQuestion(AggregateQuestion):
    """The same where there is no list behind it."""

    @model_validator(mode="after")
    def _check_numbers(self) -> Self:
        if not self.wants_numbers:
            raise _make_invalid_parameter_error("aggregate", "these are counted here, not listed")
        return self


class ListQuestion(AggregateQuestion):
    """What every list takes besides the filters of its source."""

    limit: Limit = 50
    cursor: str | None = Field(None, max_length=500, description="`next_cursor` of the last page.")

    async def answer(
        self, federal_service: FederalService, record_source: Source
    ) -> RecordPage | Resolved | Total | Buckets | Series:
        if self.wants_numbers:
            return await self.compute_numbers(federal_service, record_source.record_table)
        return await federal_service.list_records(
            record_source, self.make_sql_filter(record_source.record_table), self.limit, self.cursor
        )


class RegistryQuestion(ListQuestion):
    """The list of a registry also takes a name."""

    q: NonBlankText | None = Field(
        None,
        min_length=1,
        max_length=300,
        description="A name, as it was said: the records it may mean, the likeliest first; "
        f"{DEFAULT_MATCH_LIMIT} unless `limit` says more.",
    )

    async def answer(
        self, federal_service: FederalService, record_source: Source
    ) -> RecordPage | Resolved | Total | Buckets | Series:
        if self.q is None:
            return await super().answer(federal_service, record_source)
        if self.wants_numbers:
            raise _make_invalid_parameter_error(
                "q", "names are looked up, not counted: leave it out"
            )
        sql_filter = self.make_sql_filter(record_source.record_table)
        match_limit = self.limit if "limit" in self.model_fields_set else DEFAULT_MATCH_LIMIT
        return await federal_service.resolve_name(
            record_source, self.q, sql_filter, match_limit, self.cursor
        )


def _split_sources(parameter_values: list[str]) -> list[str]:
    """Split a parameter that may be repeated, and may have several names each time."""
    return [
        source_name
        for parameter_value in parameter_values
        for source_name in parameter_value.split(",")
        if source_name.strip()
    ]


class SearchQuestion(BaseModel):
    """A search as a query string: the tool's arguments, filters beside the rest."""

    model_config = ConfigDict(extra="forbid")

    q: NonBlankText = Field(
        min_length=1, max_length=1000, description="What to look for, in words."
    )
    source: Annotated[list[ShortText], Field(max_length=30), BeforeValidator(_split_sources)] = (
        Field([], description="One source, or several with commas between: fr,bills.")
    )
    mode: Mode = "hybrid"
    since: Day | None = None
    until: Day | None = None
    limit: Limit = 50
    offset: int = Field(0, ge=0, le=10_000)
    congress: Congress | None = None
    chamber: HouseOrSenate | None = None
    party: Party | None = None
    state: State | None = None
    type: AnyType | None = None
    agency: ShortText | None = None
    topic: ShortText | None = None
    member: RecordOf | None = None
    bill: RecordOf | None = None

    def to_search_arguments(self) -> Search:
        """Return the question of the tool `search` with these arguments."""
        # Fields that were not given stay so: without `limit`, as many results as can be read.
        arguments = self.model_dump(exclude_none=True, exclude_unset=True, exclude={"mode"})
        filter_names = Filters.model_fields.keys() & arguments.keys()
        filter_values = {filter_name: arguments.pop(filter_name) for filter_name in filter_names}
        return Search(
            query=arguments.pop("q"),
            source=arguments.pop("source", None) or None,
            filters=Filters(**filter_values) if filter_values else None,
            **arguments,
        )


def make_routers(federal_service: FederalService, read_only: bool) -> tuple[APIRouter, ...]:
    """Return the REST surface of the base; nothing in it writes."""
    return (make_router(federal_service),)


def make_router(federal_service: FederalService) -> APIRouter:
    """Return every endpoint of the base; each is a thin call into the service."""
    router = APIRouter(prefix="/v1", responses=_PROBLEM_RESPONSES, route_class=StrictQueryRoute)
    # Routes are tried in order: those requested most, and quickest to answer, come first.
    for record_source in SOURCES:
        _add_record_route(router, federal_service, record_source)
    _add_fetch_route(router, federal_service)
    _add_changes_route(router, federal_service)
    _add_bill_routes(router, federal_service)
    _add_people_routes(router, federal_service)
    _add_dossier_routes(router, federal_service)
    for record_source in SOURCES:
        _add_links_route(router, federal_service, record_source)
    _add_search_route(router, federal_service)
    _add_member_votes_route(router, federal_service)
    for record_source in SOURCES:
        _add_list_route(router, federal_service, record_source)
    return router


def _add_search_route(router: APIRouter, federal_service: FederalService) -> None:
    @router.get("/search", tags=["search"])
    async def search(arguments: Annotated[SearchQuestion, Query()]) -> SearchAnswer:
        """Documents by words, by meaning, or by both; the answer of the tool `search`."""
        with _translate_argument_errors():
            return await federal_service.search(arguments.to_search_arguments(), arguments.mode)


def _add_fetch_route(router: APIRouter, federal_service: FederalService) -> None:
    @router.get("/fetch", tags=["search"], responses=_GONE_RESPONSE)
    async def fetch(
        id: Address,
        offset: Offset = 0,
        section: Annotated[ShortText | None, Query()] = None,
    ) -> Fetched:
        """Any record by its id, as the tool `fetch` gives it."""
        with _translate_argument_errors():
            return await federal_service.fetch_record(id, offset, section)


def _add_changes_route(router: APIRouter, federal_service: FederalService) -> None:
    @router.get("/changes", tags=["changes"])
    async def changes(
        since: Annotated[
            Day | None, Query(description="Loaded here on this day (UTC) or later.")
        ] = None,
        source: Annotated[ShortText | None, Query()] = None,
        kind: ChangeKind | None = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> ChangePage:
        """What came, changed or was withdrawn since a day, each record once, oldest first."""
        return await federal_service.list_changes(since, source, kind, limit, cursor)


def _add_list_route(
    router: APIRouter, federal_service: FederalService, record_source: Source
) -> None:
    question_class = create_model(
        f"List{record_source.record_class.__name__}",
        __base__=(
            RegistryQuestion if record_source.has_names else ListQuestion,
            make_filters_model(record_source.record_table),
        ),
    )

    # One function per source, so that each list documents its own filters.
    async def list_records(
        arguments: Annotated[question_class, Query()],  # type: ignore[valid-type]
    ) -> RecordPage | Resolved | Total | Buckets | Series:
        list_question: ListQuestion = arguments
        with _translate_argument_errors():
            return await list_question.answer(federal_service, record_source)

    router.add_api_route(
        f"/{record_source.slug}",
        list_records,
        methods=["GET"],
        tags=[record_source.slug],
        operation_id=f"list_{record_source.name}",
        summary=f"List {record_source.slug}, newest first",
    )


def _add_member_votes_route(router: APIRouter, federal_service: FederalService) -> None:
    question_class = create_model(
        "CountMemberVotes", __base__=(CountQuestion, make_filters_model(MEMBER_VOTES))
    )

    @router.get("/member-votes", tags=["roll-call-votes"])
    async def member_votes(
        arguments: Annotated[question_class, Query()],  # type: ignore[valid-type]
    ) -> Total | Buckets | Series:
        """How members voted, counted; listed they are by member or by roll call."""
        count_question: CountQuestion = arguments
        with _translate_argument_errors():
            return await count_question.compute_numbers(federal_service, MEMBER_VOTES)


def _add_dossier_routes(router: APIRouter, federal_service: FederalService) -> None:
    @router.get("/bills/{id}/dossier", tags=["bills"], responses=_GONE_RESPONSE)
    async def bill(id: RecordId) -> BillDossier:
        """A bill and everything linked to it, in sections."""
        return await federal_service.build_bill_dossier(id)

    @router.get("/legislators/{id}/dossier", tags=["legislators"], responses=_GONE_RESPONSE)
    async def legislator(id: RecordId, congress: Congress | None = None) -> LegislatorDossier:
        """A member of Congress: seats, bills, offices, speeches."""
        return await federal_service.build_legislator_dossier(id, congress)

    @router.get("/committees/{id}/dossier", tags=["committees"], responses=_GONE_RESPONSE)
    async def committee(id: RecordId, congress: Congress | None = None) -> CommitteeDossier:
        """A committee: members, subcommittees, hearings, bills, reports."""
        return await federal_service.build_committee_dossier(id, congress)

    @router.get("/public-laws/{id}/dossier", tags=["public-laws"], responses=_GONE_RESPONSE)
    async def public_law(id: RecordId) -> PublicLawDossier:
        """A law, the bill it was, and the regulations that rest on it."""
        return await federal_service.build_public_law_dossier(id)


class _LookupRoute(StrictQueryRoute):
    """A route that takes only an id, which it passes on without FastAPI's parsing of arguments.

    Parsing costs more than reading the record, so it is left to requests that it would refuse.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        parse_and_answer = super().get_route_handler()

        async def answer_request(request: Request) -> Response:
            id = request.path_params["id"]
            if request.scope["query_string"] or len(id) > _MAX_ID_LENGTH:
                return await parse_and_answer(request)
            response: Response = await self.endpoint(id)
            return response

        return answer_request


def _add_record_route(
    router: APIRouter, federal_service: FederalService, record_source: Source
) -> None:
    async def read_record(id: RecordId) -> Response:
        # The stored JSON is the answer; parsing it into a model would only cost time.
        return Response(
            await federal_service.read_record_json(record_source, id), media_type="application/json"
        )

    router.add_api_route(
        f"/{record_source.slug}/{{id}}",
        read_record,
        methods=["GET"],
        tags=[record_source.slug],
        operation_id=f"get_{record_source.name}",
        summary=f"One record of {record_source.slug}, whole",
        response_model=None,
        route_class_override=_LookupRoute,
        responses={200: {"model": record_source.record_class}, **_GONE_RESPONSE},
    )


def _add_links_route(
    router: APIRouter, federal_service: FederalService, record_source: Source
) -> None:
    async def read_links(
        id: RecordId, kind: LinkKind | None = None, limit: Limit = 50, cursor: Cursor = None
    ) -> LinkPage:
        return await federal_service.list_links(record_source, id, kind, limit, cursor)

    router.add_api_route(
        f"/{record_source.slug}/{{id}}/links",
        read_links,
        methods=["GET"],
        tags=[record_source.slug],
        operation_id=f"links_of_{record_source.name}",
        summary="What a record is linked to, in either direction, and why",
        responses=_GONE_RESPONSE,
    )


def _add_bill_routes(router: APIRouter, federal_service: FederalService) -> None:
    @router.get("/bills/{id}/cosponsors", tags=["bills"], responses=_GONE_RESPONSE)
    async def cosponsors(id: RecordId, limit: Limit = 50, cursor: Cursor = None) -> CosponsorPage:
        """Who cosponsored a bill."""
        return await federal_service.list_cosponsors(id, limit, cursor)

    @router.get("/bills/{id}/actions", tags=["bills"], responses=_GONE_RESPONSE)
    async def actions(id: RecordId, limit: Limit = 50, cursor: Cursor = None) -> ActionPage:
        """What happened to a bill, in the order its official file tells it."""
        return await federal_service.list_actions(id, limit, cursor)

    @router.get("/bills/{id}/amendments", tags=["bills"], responses=_GONE_RESPONSE)
    async def amendments(id: RecordId, limit: Limit = 50, cursor: Cursor = None) -> RecordPage:
        """The amendments to a bill, newest first."""
        return await federal_service.list_amendments(id, limit, cursor)

    @router.get("/bills/{id}/body", tags=["bills"], responses=_GONE_RESPONSE)
    async def body(
        id: RecordId,
        version: Annotated[str | None, Query(max_length=10)] = None,
        offset: Offset = 0,
        section: Annotated[ShortText | None, Query()] = None,
        compare_with: Annotated[str | None, Query(max_length=10)] = None,
    ) -> BillText:
        """The text of a bill, in its newest version or a named one; a section, or what changed."""
        with _translate_argument_errors():
            return await federal_service.read_bill_text(id, version, offset, section, compare_with)


def _add_people_routes(router: APIRouter, federal_service: FederalService) -> None:
    @router.get("/legislators/{id}/votes", tags=["legislators"], responses=_GONE_RESPONSE)
    async def votes(
        id: RecordId, congress: Congress | None = None, limit: Limit = 50, cursor: Cursor = None
    ) -> MemberVotePage:
        """How a member voted, newest first."""
        return await federal_service.list_member_votes(id, congress, limit, cursor)

    @router.get("/committees/{id}/members", tags=["committees"], responses=_GONE_RESPONSE)
    async def members(
        id: RecordId, congress: Congress | None = None, limit: Limit = 200, cursor: Cursor = None
    ) -> MembershipPage:
        """Who sits on a committee: the majority first, each side by rank."""
        return await federal_service.list_committee_members(id, congress, limit, cursor)

    @router.get("/hearings/{id}/witnesses", tags=["hearings"], responses=_GONE_RESPONSE)
    async def witnesses(id: RecordId, limit: Limit = 50, cursor: Cursor = None) -> WitnessPage:
        """Who spoke at a hearing, in the order of the official list."""
        return await federal_service.list_witnesses(id, limit, cursor)

    @router.get("/roll-call-votes/{id}/members", tags=["roll-call-votes"], responses=_GONE_RESPONSE)
    async def voters(id: RecordId, limit: Limit = 50, cursor: Cursor = None) -> MemberVotePage:
        """How each member voted in a roll call."""
        return await federal_service.list_roll_call_votes(id, limit, cursor)
