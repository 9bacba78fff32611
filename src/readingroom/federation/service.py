"""One search and one fetch over every base, independent of MCP and HTTP."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import anyio.to_thread
from pydantic import ValidationError

from readingroom.core.errors import RecordNotFound, UnknownSource, UnrecognizedId
from readingroom.engine.confidence import judge_confidence
from readingroom.engine.embedding.cross_encoder.reranker import Reranker
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.errors import ModelUnavailable
from readingroom.engine.second_look import postpone_second_look
from readingroom.federation.assessment import build_application_side, build_policy_side
from readingroom.federation.errors import ValidationDateUnknown
from readingroom.federation.fan_out import FanOut, GatheredAnswers
from readingroom.federation.models import (
    AssessAgainstPolicy,
    Assessment,
    DeskAnswer,
    DeskFetch,
    DeskSearch,
    ExcludedBase,
    Note,
)
from readingroom.federation.off_topic import measure_doubt
from readingroom.federation.question_words import estimate_answer_kinds, load_question_words
from readingroom.federation.ranking import rank_hits
from readingroom.protocol.search import (
    DeskHit,
    DeskRecord,
    KnownApplication,
    SearchAdapter,
    SearchRequest,
    UnreadRevision,
)
from readingroom.protocol.tool import ToolContext
from readingroom.storage.errors import FolderInUse

# The same for every page of a search, so that pages agree.
_RESULTS_PER_BASE = 20  # results that each base is asked for


@dataclass(frozen=True, slots=True)
class _BaseAnswer:
    """What one base answers to a search."""

    hits: list[DeskHit]
    unread_revisions: list[UnreadRevision]


class FederationService:
    """What takes more than one base to answer."""

    def __init__(
        self,
        adapters_by_base: Mapping[str, SearchAdapter],
        base_by_id_prefix: Mapping[str, str],
        embedder: Embedder,
        fan_out: FanOut,
        absence_reason_by_base: Mapping[str, str] = {},
        reranker: Reranker | None = None,
    ) -> None:
        """`base_by_id_prefix` maps the first word of an id to its base; `""` stands for all others.

        `absence_reason_by_base` maps the bases that could not be opened to the reason.
        """
        self._adapters_by_base = adapters_by_base
        self._base_by_id_prefix = base_by_id_prefix
        self._embedder = embedder
        self._reranker = reranker
        self._fan_out = fan_out
        self._absence_notes = [
            Note(base=base_name, code=FolderInUse.code, message=absence_reason)
            for base_name, absence_reason in absence_reason_by_base.items()
        ]
        self.run_inside = fan_out.run_calls_inside

    async def warm_up(self) -> None:
        """Load what reads the first results again; raise `ModelUnavailable` if it cannot be."""
        if self._reranker is not None:
            await anyio.to_thread.run_sync(self._reranker.load)

    async def search(self, arguments: DeskSearch, tool_context: ToolContext) -> DeskAnswer:
        """Return the best passages of every base that is searched, in one order."""
        started_at = time.perf_counter()
        base_names, sources_by_base = await self._select_bases(arguments.source)
        search_request = SearchRequest(
            query=arguments.query,
            limit=_RESULTS_PER_BASE,
            day=arguments.date,
            application_ref=arguments.application_ref,
            since=arguments.since,
            until=arguments.until,
        )
        await self._embed_query(arguments.query)
        doubt_log_odds = await anyio.to_thread.run_sync(
            measure_doubt, arguments.query, self._embedder
        )
        # Of all bases' passages the best are read again here, and not those of each base there.
        with postpone_second_look():
            gathered_answers = await self._search_bases(
                base_names, search_request, tool_context, sources_by_base
            )
        # In threads: the tables of words are read once, and embedding takes tens of milliseconds.
        log_probability_by_base = await anyio.to_thread.run_sync(
            self._estimate_base_log_probabilities, arguments.query, gathered_answers.answers_by_base
        )
        hits = await anyio.to_thread.run_sync(
            rank_hits,
            arguments.query,
            [base_answer.hits for base_answer in gathered_answers.answers_by_base.values()],
            self._embedder,
            self._reranker,
            log_probability_by_base,
            doubt_log_odds,
        )
        nearest_citation = hits[0].citation.citation_string if hits else ""
        answer_confidence = judge_confidence([hit.score for hit in hits], nearest_citation)
        end_index = arguments.offset + arguments.limit
        return DeskAnswer(
            results=hits[arguments.offset : end_index],
            total=len(hits),
            took_ms=round((time.perf_counter() - started_at) * 1000, 1),
            searched=list(gathered_answers.answers_by_base),
            excluded=[
                ExcludedBase(base=base_name, reason="`source` names others")
                for base_name in self._adapters_by_base
                if base_name not in base_names
            ],
            notes=[
                *gathered_answers.notes,
                *await self._make_unknown_application_notes(base_names, arguments.application_ref),
                *self._absence_notes,
            ],
            confidence=answer_confidence.level,
            confidence_reason=answer_confidence.reason,
            next_offset=end_index if end_index < len(hits) else None,
            unread_revisions=_list_unread_revisions(gathered_answers),
        )

    async def fetch(self, arguments: DeskFetch, tool_context: ToolContext) -> DeskRecord:
        """Return any record of any base.

        Raise `RecordNotFound` when it is not there or its base is not served here, and
        `UnrecognizedId` when no base knows ids of that form.
        """
        base_name = self.get_base_name_of_id(arguments.id)
        search_adapter = self._adapters_by_base.get(base_name)
        if search_adapter is None:
            raise RecordNotFound(f"{arguments.id} belongs to the base {base_name}, not served here")
        try:
            return await search_adapter.fetch(arguments.id.strip(), arguments.offset, tool_context)
        except (UnrecognizedId, ValidationError) as error:
            raise UnrecognizedId(
                f"{arguments.id[:100]!r} is not an id that any base here knows",
                valid_prefixes=self._list_id_forms(),
            ) from error

    def get_base_name_of_id(self, record_id: str) -> str:
        """Return the name of the base that an id belongs to."""
        for base_name, search_adapter in self._adapters_by_base.items():
            if search_adapter.recognizes_id(record_id):
                return base_name
        id_prefix, colon, _ = record_id.strip().partition(":")
        # Federal ids have many first words (`hr:`, `pl:`), so their base takes what no other
        # claims.
        fallback_base_name = self._base_by_id_prefix.get("", "")
        return (
            self._base_by_id_prefix.get(id_prefix.lower(), fallback_base_name)
            if colon
            else fallback_base_name
        )

    async def assess_against_policy(
        self, arguments: AssessAgainstPolicy, tool_context: ToolContext
    ) -> Assessment:
        """Return what an application says on a topic, beside the policy of its day and authority.

        Raise `ValidationDateUnknown` when no day is given and none is recorded.
        """
        document_adapter, policy_adapter = (
            self._get_adapter_by_role("application"),
            self._get_adapter_by_role("policy"),
        )
        known_application = await document_adapter.find_application(arguments.application_ref)
        policy_day, day_origin = _choose_policy_day(arguments, known_application)
        local_authority, authority_origin = _choose_authority(arguments, known_application)
        search_request = SearchRequest(
            query=arguments.topic,
            limit=arguments.limit,
            day=policy_day,
            application_ref=arguments.application_ref,
            local_authority=local_authority,
            address=known_application.address if known_application else None,
        )
        sources_by_base = {
            policy_adapter.base_name: [
                policy_source.upper() for policy_source in arguments.sources or ()
            ]
        }
        gathered_answers = await self._search_bases(
            (document_adapter.base_name, policy_adapter.base_name),
            search_request,
            tool_context,
            sources_by_base,
        )
        policy_scope = await policy_adapter.build_search_scope(
            replace(search_request, sources=tuple(sources_by_base[policy_adapter.base_name]))
        )
        application_hits = _get_base_hits(gathered_answers, document_adapter)
        policy_hits = _get_base_hits(gathered_answers, policy_adapter)
        return Assessment(
            application_ref=arguments.application_ref,
            topic=arguments.topic,
            date=policy_day,
            date_from=day_origin,
            application=application_hits,
            policy=policy_hits,
            notes=gathered_answers.notes,
            application_known=known_application is not None,
            local_authority=local_authority,
            authority_from=authority_origin,
            application_side=build_application_side(known_application, application_hits),
            policy_side=build_policy_side(policy_scope, policy_day, policy_hits),
            unread_revisions=_list_unread_revisions(gathered_answers),
        )

    def _list_id_forms(self) -> list[str]:
        # A base with many forms last, so that a short list still shows the others.
        adapters_fewest_forms_first = sorted(
            self._adapters_by_base.values(), key=lambda search_adapter: len(search_adapter.id_forms)
        )
        return [
            id_form
            for search_adapter in adapters_fewest_forms_first
            for id_form in search_adapter.id_forms
        ]

    @property
    def adapters(self) -> Iterable[SearchAdapter]:
        return self._adapters_by_base.values()

    def _estimate_base_log_probabilities(
        self, query_text: str, base_names: Iterable[str]
    ) -> dict[str, float]:
        """Return the log-probability that a query is meant for each of these bases, by its words.

        Bases without words of their own are left out.
        """
        return estimate_answer_kinds(
            query_text,
            {
                base_name: load_question_words(package_name)[base_name]
                for base_name in base_names
                if (package_name := self._adapters_by_base[base_name].question_words_package)
            },
        )

    async def _embed_query(self, query_text: str) -> None:
        """Embed the query once, before all bases ask for its vector at the same time."""
        # Without a model each base says for itself what it can do.
        with suppress(ModelUnavailable):
            await anyio.to_thread.run_sync(self._embedder.embed, query_text)

    async def _search_bases(
        self,
        base_names: Iterable[str],
        search_request: SearchRequest,
        tool_context: ToolContext,
        sources_by_base: Mapping[str, Sequence[str]],
    ) -> GatheredAnswers[_BaseAnswer]:
        """Ask each base, limited to the sources inside it that are named."""
        requests_by_base = {
            base_name: replace(search_request, sources=tuple(sources_by_base.get(base_name, ())))
            for base_name in base_names
        }
        return await self._fan_out.call_all_bases(
            {
                base_name: partial(
                    _search_base, self._adapters_by_base[base_name], base_request, tool_context
                )
                for base_name, base_request in requests_by_base.items()
            }
        )

    def _get_adapter_by_role(self, adapter_role: str) -> SearchAdapter:
        return next(
            search_adapter
            for search_adapter in self._adapters_by_base.values()
            if search_adapter.role == adapter_role
        )

    async def _make_unknown_application_notes(
        self, base_names: Sequence[str], application_ref: str | None
    ) -> list[Note]:
        """Return a note where a search is limited to an application that nobody knows."""
        if application_ref is None:
            return []
        unknown_message = (
            f"nothing is known of an application with this reference ({application_ref}), "
            "so no document of it was searched"
        )
        return [
            Note(base=base_name, code=RecordNotFound.code, message=unknown_message)
            for base_name, search_adapter in self._adapters_by_base.items()
            if base_name in base_names
            and search_adapter.role == "application"
            and await search_adapter.find_application(application_ref) is None
        ]

    async def _select_bases(
        self, sources_argument: Sequence[str] | str | None
    ) -> tuple[list[str], dict[str, list[str]]]:
        """Return the bases to search, and by base the sources inside it that limit the search.

        Raise `UnknownSource` for a name that is neither.
        """
        unfolded_names = (
            sources_argument.split(",")
            if isinstance(sources_argument, str)
            else sources_argument or ()
        )
        folded_source_names = [
            folded_source_name.strip().lower()
            for folded_source_name in unfolded_names
            if folded_source_name.strip()
        ]
        if not folded_source_names:
            default_base_names = [
                base_name
                for base_name, search_adapter in self._adapters_by_base.items()
                if search_adapter.is_searched_unasked
            ]
            return default_base_names, {}
        base_names = [
            folded_source_name
            for folded_source_name in folded_source_names
            if folded_source_name in self._adapters_by_base
        ]
        sources_by_base: dict[str, list[str]] = {}
        for folded_source_name in folded_source_names:
            if folded_source_name not in self._adapters_by_base:
                base_name, source_name = await self._find_base_and_source(folded_source_name)
                # A base that is named itself is searched whole.
                if base_name not in base_names:
                    sources_by_base.setdefault(base_name, []).append(source_name)
        return [*base_names, *sources_by_base], sources_by_base

    async def _find_base_and_source(self, folded_source_name: str) -> tuple[str, str]:
        for search_adapter in self._adapters_by_base.values():
            if (found_source := await search_adapter.find_source(folded_source_name)) is not None:
                return search_adapter.base_name, found_source
        source_lists = [
            await search_adapter.list_sources()
            for search_adapter in self._adapters_by_base.values()
        ]
        raise UnknownSource(
            f"There is no base or source {folded_source_name[:100]!r}",
            valid_sources=[*self._adapters_by_base, *chain.from_iterable(source_lists)],
        )


async def _search_base(
    search_adapter: SearchAdapter, search_request: SearchRequest, tool_context: ToolContext
) -> _BaseAnswer:
    hits = await search_adapter.search(search_request, tool_context)
    return _BaseAnswer(hits, await search_adapter.list_unread_revisions(search_request))


def _get_base_hits(
    gathered_answers: GatheredAnswers[_BaseAnswer], search_adapter: SearchAdapter
) -> list[DeskHit]:
    """Return the passages of a base; none where it did not answer."""
    base_answer = gathered_answers.answers_by_base.get(search_adapter.base_name)
    return base_answer.hits if base_answer else []


def _list_unread_revisions(gathered_answers: GatheredAnswers[_BaseAnswer]) -> list[UnreadRevision]:
    return [
        unread_revision
        for base_answer in gathered_answers.answers_by_base.values()
        for unread_revision in base_answer.unread_revisions
    ]


def _choose_policy_day(
    arguments: AssessAgainstPolicy, known_application: KnownApplication | None
) -> tuple[str, str]:
    """Return the day whose policy is shown, and where it comes from."""
    if arguments.date is not None:
        return arguments.date, "asked"
    if known_application is not None and known_application.validation_date is not None:
        return known_application.validation_date, "validation_date"
    missing_day_reason = (
        f"The day {arguments.application_ref} was validated is not known"
        if known_application
        else f"Nothing is known of an application {arguments.application_ref}"
    )
    raise ValidationDateUnknown(
        f"{missing_day_reason}: give `date`, or set it",
        use_tool="set_application",
        application_known=known_application is not None,
    )


def _choose_authority(
    arguments: AssessAgainstPolicy, known_application: KnownApplication | None
) -> tuple[str | None, str | None]:
    """Return the authority whose plans apply, and where it comes from; None for all plans."""
    if arguments.local_authority is not None:
        return arguments.local_authority, "asked"
    # Whoever names the policies has chosen among the plans.
    if (
        arguments.sources is None
        and known_application is not None
        and known_application.local_authority
    ):
        return known_application.local_authority, "application"
    return None, None
