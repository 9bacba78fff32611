"""What the guidance base can do, with no word of MCP or HTTP in it."""

from collections.abc import Mapping
from typing import Any

import anyio.to_thread

from readingroom.bases.guidance.answers import (
    make_cache_state,
    make_error_kind,
    make_page_answer,
    make_passage,
    make_passage_at,
    make_passage_of_block,
    make_reply_warnings,
    make_source_fields,
    make_stale_warnings,
)
from readingroom.bases.guidance.errors import (
    ERROR_CLASSES,
    ContentOutOfScope,
    NotFoundOrRedirected,
)
from readingroom.bases.guidance.models import (
    Changes,
    ErrorTaxonomy,
    ForceRefresh,
    GetContentById,
    GetContentByPath,
    GetSourceMetadata,
    GuidanceQuoteCheck,
    OfflineCopy,
    PageContent,
    PageText,
    PassagesInPage,
    RecentChanges,
    Refreshed,
    SearchGuidance,
    SearchInPage,
    SearchResults,
    SourceMetadata,
    VerifyGuidanceQuote,
)
from readingroom.bases.guidance.offline.answers import OfflineGuidance, make_offline_cache_state
from readingroom.bases.guidance.pages.addresses import (
    PageAddress,
    is_publication_page,
    parse_page_address,
)
from readingroom.bases.guidance.pages.page import COMMISSION_SLUG, GovukPage
from readingroom.bases.guidance.pages.sections import (
    find_nearest_block,
    find_quotation,
    list_sections,
    search_blocks,
)
from readingroom.bases.guidance.search import (
    group_params_by_filter_name,
    group_params_by_name,
    make_scope_params,
    parse_hits,
    translate_filters,
)
from readingroom.bases.guidance.store import GovukReader, KeptCopy, wait_for_caller_turn
from readingroom.core import clock
from readingroom.core.errors import InvalidArguments
from readingroom.net.cache import ServedReply
from readingroom.net.errors import (
    UpstreamError,
    UpstreamRateLimited,
    UpstreamUnavailable,
)
from readingroom.net.limiter import Limiter
from readingroom.net.upstream import CallContext, QueryParams


class GuidanceService:
    """Charity Commission guidance: its pages, searches over them, and their metadata."""

    def __init__(
        self,
        govuk_reader: GovukReader,
        rate_limiter: Limiter,
        offline_guidance: OfflineGuidance | None = None,
    ) -> None:
        self._govuk_reader = govuk_reader
        self._caller_limiter = rate_limiter
        self.offline = offline_guidance

    async def read_page(
        self, arguments: GetContentByPath, call_context: CallContext
    ) -> PageContent | PageText:
        page_address, govuk_page, govuk_reply = await self._get_address_and_page(
            arguments.path, call_context
        )
        return await anyio.to_thread.run_sync(
            make_page_answer, govuk_page, govuk_reply, arguments, page_address.anchor
        )

    async def read_page_by_id(
        self, arguments: GetContentById, call_context: CallContext
    ) -> PageContent | PageText:
        """Return the page with this content id; raise `NotFoundOrRedirected` if there is none."""
        # The Content API knows paths only, so the search has to find the path of the id.
        query_params = [("filter_content_id", arguments.content_id), *make_scope_params(10, 0)]
        search_response, _ = await self._govuk_reader.search_govuk(query_params, call_context)
        # Translations share an id; theirs is the original's path and a suffix.
        page_path = min(
            (hit.path for hit in parse_hits(search_response) if hit.path), key=len, default=None
        )
        if page_path:
            govuk_page, govuk_reply = await self._get_page(page_path, call_context)
            # The search index may lag behind, and still name a path that the page has left.
            if govuk_page.content.get("content_id") == arguments.content_id:
                return await anyio.to_thread.run_sync(
                    make_page_answer, govuk_page, govuk_reply, arguments
                )
        raise NotFoundOrRedirected(
            f"The Charity Commission has no page with the id {arguments.content_id}",
            use_tool="search_guidance",
        )

    async def get_source_metadata(
        self, arguments: GetSourceMetadata, call_context: CallContext
    ) -> SourceMetadata:
        _, govuk_page, govuk_reply = await self._get_address_and_page(arguments.path, call_context)
        return SourceMetadata(
            **make_source_fields(govuk_page, govuk_reply),
            last_updated=govuk_page.public_updated_at,
            first_published_at=govuk_page.first_published_at,
            organisations=govuk_page.organisations,
        )

    async def refresh_page(self, arguments: ForceRefresh, call_context: CallContext) -> Refreshed:
        """Fetch a page past the cache; where GOV.UK fails, keep the old copy and state its age."""
        # Read before the refresh, which replaces it.
        page_address = await self._resolve_address(arguments.path, call_context)
        previous_cache_entry = await self._govuk_reader.peek_cache_entry(page_address.path)
        govuk_page, govuk_reply = await self._govuk_reader.refresh_page(
            page_address.path, call_context
        )
        _check_page_in_scope(govuk_page)
        return Refreshed(
            refreshed=govuk_reply.failure is None,
            timestamp=_format_timestamp(govuk_reply.entry.fetched_at),
            changed=previous_cache_entry.reply.body != govuk_reply.reply.body
            if previous_cache_entry
            else None,
            url=govuk_page.url,
            public_updated_at=govuk_page.public_updated_at,
            warnings=make_reply_warnings(govuk_reply),
        )

    async def search(self, arguments: SearchGuidance, call_context: CallContext) -> SearchResults:
        query_text = _clean_query(arguments.query)
        filter_params = translate_filters(arguments.filters)
        if arguments.mode == "offline" or (
            arguments.mode == "auto" and await self._has_young_offline_copy()
        ):
            return await self._search_offline(arguments, query_text, filter_params)
        try:
            return await self._search_live(arguments, query_text, filter_params, call_context)
        except (UpstreamUnavailable, UpstreamRateLimited) as failure:
            if not await self._has_young_offline_copy():
                raise
            return await self._search_offline(arguments, query_text, filter_params, failure)

    async def _search_live(
        self,
        arguments: SearchGuidance,
        query_text: str,
        filter_params: QueryParams,
        call_context: CallContext,
    ) -> SearchResults:
        query_params = [
            ("q", query_text),
            *filter_params,
            *make_scope_params(arguments.page_size, _compute_first_index(arguments)),
        ]
        if arguments.order == "newest":
            query_params.append(("order", "-public_timestamp"))
        search_response, govuk_reply = await self._govuk_reader.search_govuk(
            query_params, call_context
        )
        return SearchResults(
            **_make_live_fields(search_response, govuk_reply, arguments),
            query=query_text,
            searched={
                "organisation": COMMISSION_SLUG,
                **group_params_by_filter_name(filter_params),
            },
            results=parse_hits(search_response),
            confidence=None,
            confidence_reason="GOV.UK orders its results and gives no scores; read before relying.",
        )

    async def _search_offline(
        self,
        arguments: SearchGuidance,
        query_text: str,
        filter_params: QueryParams,
        upstream_error: UpstreamError | None = None,
    ) -> SearchResults:
        if self.offline is None or not self.offline.library.has_database:
            raise UpstreamUnavailable(
                "There is no offline copy of the guidance yet: `readingroom guidance sync` makes it"
            )
        offline_hits = await anyio.to_thread.run_sync(
            self.offline.search,
            query_text,
            group_params_by_name(filter_params),
            _compute_first_index(arguments),
            arguments.page_size,
            arguments.order == "newest",
        )
        return SearchResults(
            **_make_offline_fields(
                offline_hits.offline_copy, offline_hits.total_count, arguments, upstream_error
            ),
            query=query_text,
            searched={
                "organisation": COMMISSION_SLUG,
                **group_params_by_filter_name(filter_params),
            },
            results=offline_hits.hits,
            confidence=offline_hits.confidence.level,
            confidence_reason=offline_hits.confidence.reason,
        )

    async def _has_young_offline_copy(self) -> bool:
        """Whether there is an offline copy, young enough to answer in place of GOV.UK."""
        return self.offline is not None and await anyio.to_thread.run_sync(
            self.offline.can_replace_govuk
        )

    async def search_page(
        self, arguments: SearchInPage, call_context: CallContext
    ) -> PassagesInPage:
        """Return the passages of one page that have words of the query."""
        query_text = _clean_query(arguments.query)
        _, govuk_page, govuk_reply = await self._get_address_and_page(arguments.path, call_context)

        def find_passages() -> PassagesInPage:
            section_spans = list_sections(govuk_page.text, govuk_page.anchors)
            found_blocks = search_blocks(govuk_page.text, section_spans, query_text)
            return PassagesInPage(
                **make_source_fields(govuk_page, govuk_reply),
                query=query_text,
                total=len(found_blocks),
                passages=[
                    make_passage(
                        govuk_page, found_block.text, found_block.start_offset, found_block.section
                    )
                    for found_block in found_blocks[: arguments.limit]
                ],
            )

        return await anyio.to_thread.run_sync(find_passages)

    async def verify_quote(
        self, arguments: VerifyGuidanceQuote, call_context: CallContext
    ) -> GuidanceQuoteCheck:
        """Return whether the words stand in the page, and where; else what is most like them.

        Raises `InvalidArguments` where the quotation has no word.
        """
        if not any(map(str.isalnum, arguments.quote)):
            raise InvalidArguments([{"field": "quote", "message": "Give at least one word"}])
        _, govuk_page, govuk_reply = await self._get_address_and_page(arguments.path, call_context)

        def check_quote() -> GuidanceQuoteCheck:
            source_fields = {
                **make_source_fields(govuk_page, govuk_reply),
                "quote": arguments.quote,
            }
            quote_offset = find_quotation(govuk_page.text, arguments.quote)
            if quote_offset is None:
                nearest_block_text, text_similarity = find_nearest_block(
                    govuk_page.text, arguments.quote
                )
                nearest_passage = (
                    make_passage_of_block(govuk_page, nearest_block_text)
                    if nearest_block_text
                    else None
                )
                return GuidanceQuoteCheck(
                    **source_fields,
                    verdict="not_found",
                    passage=None,
                    nearest=nearest_passage,
                    similarity=text_similarity if nearest_passage else None,
                )
            return GuidanceQuoteCheck(
                **source_fields,
                verdict="verified",
                passage=make_passage_at(govuk_page, quote_offset),
                nearest=None,
                similarity=None,
            )

        return await anyio.to_thread.run_sync(check_quote)

    async def list_changes(self, arguments: RecentChanges, call_context: CallContext) -> Changes:
        query_params = [
            ("filter_public_timestamp", f"from:{arguments.since}"),
            ("order", "-public_timestamp"),
            *make_scope_params(arguments.page_size, _compute_first_index(arguments)),
        ]
        try:
            search_response, govuk_reply = await self._govuk_reader.search_govuk(
                query_params, call_context
            )
        except (UpstreamUnavailable, UpstreamRateLimited) as failure:
            if self.offline is None or not await self._has_young_offline_copy():
                raise
            return await anyio.to_thread.run_sync(
                _list_offline_changes, self.offline, arguments, failure
            )
        hits = parse_hits(search_response)
        if self.offline:
            hits = await anyio.to_thread.run_sync(
                self.offline.add_change_notes, hits, arguments.since
            )
        return Changes(
            **_make_live_fields(search_response, govuk_reply, arguments),
            since=arguments.since,
            changes=hits,
        )

    def list_kept_copies(self) -> list[KeptCopy]:
        """Return the pages that were read by this process, the most recently read first."""
        return self._govuk_reader.list_kept_copies()

    def describe_outage(self) -> str:
        """Return when GOV.UK is asked again after it kept failing; empty while it answers."""
        return self._govuk_reader.describe_outage()

    async def list_error_kinds(self, call_context: CallContext) -> ErrorTaxonomy:
        await wait_for_caller_turn(self._caller_limiter, call_context)
        return ErrorTaxonomy(errors=[make_error_kind(error_class) for error_class in ERROR_CLASSES])

    async def _get_address_and_page(
        self, typed_address: str, call_context: CallContext
    ) -> tuple[PageAddress, GovukPage, ServedReply]:
        """Return the page that an address names, with that address."""
        page_address = await self._resolve_address(typed_address, call_context)
        return page_address, *await self._get_page(page_address.path, call_context)

    async def _resolve_address(self, typed_address: str, call_context: CallContext) -> PageAddress:
        """Return the address with its path; raise `InvalidPath` or `NotFoundOrRedirected`."""
        page_address = parse_page_address(typed_address)
        if page_address.cc_number is None:
            return page_address
        query_params = [("q", page_address.cc_number), *make_scope_params(50, 0)]
        search_response, _ = await self._govuk_reader.search_govuk(query_params, call_context)
        publication_paths = [
            hit.path
            for hit in parse_hits(search_response)
            if hit.path and is_publication_page(page_address.cc_number, hit.title, hit.path)
        ]
        if not publication_paths:
            raise NotFoundOrRedirected(
                f"The Charity Commission has no publication {page_address.cc_number.upper()} that "
                "its search finds",
                use_tool="search_guidance",
            )
        # Parts of a publication are below it.
        return PageAddress(min(publication_paths, key=len))

    async def _get_page(
        self, page_path: str, call_context: CallContext
    ) -> tuple[GovukPage, ServedReply]:
        try:
            govuk_page, govuk_reply = await self._govuk_reader.read_page(page_path, call_context)
        except (UpstreamUnavailable, UpstreamRateLimited) as failure:
            stale_page_and_reply = (
                await anyio.to_thread.run_sync(self.offline.read_stale_page, page_path, failure)
                if self.offline
                else None
            )
            if stale_page_and_reply is None:
                raise
            govuk_page, govuk_reply = stale_page_and_reply
        _check_page_in_scope(govuk_page)
        return govuk_page, govuk_reply


def _check_page_in_scope(govuk_page: GovukPage) -> None:
    if not govuk_page.is_in_scope:
        publishers_text = ", ".join(govuk_page.organisations[:5]) or "no organisation"
        raise ContentOutOfScope(
            f"{govuk_page.path} is published by {publishers_text}, not by the Charity Commission",
            url=govuk_page.url,
            use_tool="search_guidance",
        )


def _clean_query(query_text: str) -> str:
    """Return a query with single blanks; raise `InvalidArguments` where it has nothing else."""
    cleaned_query = " ".join(query_text.split())
    if not cleaned_query:
        raise InvalidArguments([{"field": "query", "message": "Give at least one word"}])
    return cleaned_query


def _make_live_fields(
    search_response: Mapping[str, Any],
    govuk_reply: ServedReply,
    arguments: SearchGuidance | RecentChanges,
) -> dict[str, Any]:
    """Return the fields of a list that GOV.UK gives."""
    total_count = search_response.get("total")
    # GOV.UK's answers are read with suspicion: a missing field must not fail the call.
    total_count = total_count if isinstance(total_count, int) else len(parse_hits(search_response))
    return {
        **_make_paging_fields(arguments, total_count),
        "cache": make_cache_state(govuk_reply),
        "warnings": make_reply_warnings(govuk_reply),
    }


def _list_offline_changes(
    offline_guidance: OfflineGuidance, arguments: RecentChanges, upstream_error: UpstreamError
) -> Changes:
    hits, offline_copy = offline_guidance.list_changes(arguments)
    first_index = _compute_first_index(arguments)
    return Changes(
        **_make_offline_fields(offline_copy, len(hits), arguments, upstream_error),
        since=arguments.since,
        changes=hits[first_index : first_index + arguments.page_size],
    )


def _make_offline_fields(
    offline_copy: OfflineCopy,
    total_count: int,
    arguments: SearchGuidance | RecentChanges,
    upstream_error: UpstreamError | None,
) -> dict[str, Any]:
    """Return the fields of a list that the offline copy gives."""
    return {
        **_make_paging_fields(arguments, total_count),
        "cache": make_offline_cache_state(offline_copy, upstream_error),
        "offline": offline_copy,
        "warnings": make_stale_warnings(upstream_error, offline_copy.age_s),
    }


def _make_paging_fields(
    arguments: SearchGuidance | RecentChanges, total_count: int
) -> dict[str, Any]:
    """Return how many results there are, which page of them this is, and the next one."""
    has_next_page = _compute_first_index(arguments) + arguments.page_size < total_count
    return {
        "total": total_count,
        "page": arguments.page,
        "page_size": arguments.page_size,
        "next_page": arguments.page + 1 if has_next_page else None,
    }


def _compute_first_index(arguments: SearchGuidance | RecentChanges) -> int:
    return (arguments.page - 1) * arguments.page_size


def _format_timestamp(unix_seconds: float) -> str:
    return clock.from_timestamp(unix_seconds).isoformat(timespec="seconds").replace("+00:00", "Z")
