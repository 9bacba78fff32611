"""Brings the offline copy up to date: lists the Commission's pages, fetches what has changed."""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
import anyio.to_thread
from pydantic_core import from_json

from readingroom.bases.guidance.offline.library import GuidanceLibrary, PendingPage
from readingroom.bases.guidance.offline.passages import Passage, cut_passages
from readingroom.bases.guidance.pages.page import COMMISSION_SLUG, GovukPage
from readingroom.bases.guidance.pages.values import find_text, is_plain_path, read_objects
from readingroom.bases.guidance.settings import GuidanceSettings
from readingroom.core import clock
from readingroom.core.progress import ReportProgress
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.embedding.shared import get_shared_embedder
from readingroom.engine.errors import ModelUnavailable
from readingroom.net.cache import Reply
from readingroom.net.errors import UpstreamError, UpstreamRateLimited, UpstreamUnavailable
from readingroom.net.limiter import SlidingWindow
from readingroom.net.metrics import UpstreamMetrics
from readingroom.net.upstream import CallContext, Request, UpstreamClient

logger = logging.getLogger(__name__)

RESULTS_PER_LIST_PAGE = 100
PAGES_PER_BATCH = 50  # pages between two looks at the bounds
_PASSAGES_PER_BATCH = 64
_MAX_FAILURES_IN_A_ROW = 5
"""Failures in a row after which GOV.UK is left alone; the next sync goes on from there."""
_MAX_PAGE_FAILURES = 2  # after which a page is left out of this sync
# The Commission has some 1,000 pages. Whoever answers in GOV.UK's place could go on for ever.
MAX_PAGES = 20_000
MAX_SYNC_BYTES = 2 * 1024**3
MAX_SYNC_SECONDS = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class SkippedPage:
    """A page that could not be fetched or read, and why; the next sync tries it again."""

    path: str
    reason: str


class _UnreadablePageError(Exception):
    """A page that arrived and cannot be read; the message says why."""


@dataclass
class SyncSummary:
    """What a sync did."""

    resumed: bool = False
    listed: int = 0
    fetched: int = 0
    unchanged: int = 0
    removed: int = 0
    out_of_scope: int = 0
    embedded: int = 0
    skipped: list[SkippedPage] = field(default_factory=list)
    no_vectors: str | None = None
    """Why passages have no vectors, where they have none."""


class GuidanceSync:
    """One sync; everything it has done by then survives when it is killed."""

    def __init__(
        self,
        guidance_library: GuidanceLibrary,
        upstream_client: UpstreamClient,
        embedder: Embedder,
        report_progress: ReportProgress,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        read_clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._library = guidance_library
        self._client = upstream_client
        self._embedder = embedder
        self._report_progress = report_progress
        self._sleep = sleep
        self._get_now = read_clock
        self._must_end_at = read_clock() + MAX_SYNC_SECONDS
        self._fetched_bytes = 0
        self._skipped_in_a_row_count = 0
        self._call_context = CallContext("sync", "guidance-sync")
        self._summary = SyncSummary()

    async def synchronize_pages(self, checks_every_page: bool = False) -> SyncSummary:
        """Bring the copy up to date; a page that cannot be read is skipped, and named.

        Raise `UpstreamUnavailable` when GOV.UK keeps failing, or sends more than it can have.
        """
        guidance_library = self._library
        await anyio.to_thread.run_sync(guidance_library.create_database)
        self._summary.resumed = await anyio.to_thread.run_sync(
            guidance_library.begin_or_resume_sync
        )
        await self._record_listed_pages()
        if checks_every_page:
            await anyio.to_thread.run_sync(guidance_library.mark_all_pending)
        await self._fetch_pending_pages()
        # Before the vectors, which take longest: those that are missing are made by any later sync.
        await anyio.to_thread.run_sync(guidance_library.finish_sync, clock.read_unix_seconds())
        await self._embed_all_passages()
        return self._summary

    async def _record_listed_pages(self) -> None:
        """Record every page of the list, from where an interrupted sync stopped."""
        while (
            listed_count := await anyio.to_thread.run_sync(_read_listed_count, self._library)
        ) is not None:
            query_params = [
                ("filter_organisations", COMMISSION_SLUG),
                # The oldest first: what is published meanwhile comes last, and shifts nothing.
                ("order", "public_timestamp"),
                ("count", str(RESULTS_PER_LIST_PAGE)),
                ("start", str(listed_count)),
                *(("fields", field_name) for field_name in ("link", "public_timestamp")),
            ]
            upstream_reply = await self._fetch_changed_reply(
                Request("search", "/api/search.json", query_params)
            )
            if upstream_reply is None or upstream_reply.status != 200:
                raise UpstreamUnavailable("GOV.UK's search does not list the pages")
            search_response = from_json(upstream_reply.body)
            search_results = read_objects(search_response.get("results"))
            paths_and_timestamps = [
                (page_path, find_text(search_result.get("public_timestamp")))
                for search_result in search_results
                if (page_path := find_text(search_result.get("link"))) and is_plain_path(page_path)
            ]
            self._summary.listed += len(paths_and_timestamps)
            await anyio.to_thread.run_sync(
                self._library.add_listed_pages,
                paths_and_timestamps,
                listed_count + len(search_results),
            )
            # Not by `total`, which GOV.UK does not always give.
            if len(search_results) < RESULTS_PER_LIST_PAGE:
                await anyio.to_thread.run_sync(self._library.complete_page_list)
            await self._report_progress(
                listed_count + len(search_results),
                None,
                f"{listed_count + len(search_results)} pages listed",
            )
            await self._check_sync_limits(listed_count)

    async def _fetch_pending_pages(self) -> None:
        # A page that was skipped stays pending, so each batch begins after the one before.
        last_path = ""
        # By path: a document of a publication is below it, so that it comes later.
        while pending_pages := await anyio.to_thread.run_sync(
            self._library.list_pending_pages, PAGES_PER_BATCH, last_path
        ):
            for pending_page in pending_pages:
                await self._fetch_or_skip_page(pending_page)
            last_path = pending_pages[-1].path
            checked_count = self._summary.fetched + self._summary.unchanged
            await self._report_progress(
                checked_count,
                None,
                f"{checked_count} pages checked, {self._summary.fetched} fetched",
            )
            await self._check_sync_limits()

    async def _fetch_or_skip_page(self, pending_page: PendingPage) -> None:
        """Fetch a page; one that fails by itself stays pending, and stops none of the others."""
        try:
            await self._fetch_page(pending_page)
        except UpstreamRateLimited:
            raise
        except (UpstreamError, _UnreadablePageError) as error:
            skip_reason = error.message if isinstance(error, UpstreamError) else str(error)
            self._summary.skipped.append(SkippedPage(pending_page.path, skip_reason))
            await self._report_progress(0, None, f"{pending_page.path} was skipped: {skip_reason}")
            # A page that arrived shows that GOV.UK is at work.
            self._skipped_in_a_row_count += isinstance(error, UpstreamError)
            if self._skipped_in_a_row_count >= _MAX_FAILURES_IN_A_ROW:
                raise UpstreamUnavailable(
                    f"GOV.UK failed for {_MAX_FAILURES_IN_A_ROW} pages in a row, at last with: "
                    f"{skip_reason}. What was fetched is kept; the next sync goes on from there"
                ) from error
        else:
            self._skipped_in_a_row_count = 0

    async def _fetch_page(self, pending_page: PendingPage) -> None:
        stored_page = await anyio.to_thread.run_sync(self._library.read_page, pending_page.path)
        request = Request(
            "content",
            f"/api/content{pending_page.path}",
            etag=stored_page.etag if stored_page else None,
        )
        upstream_reply = await self._fetch_changed_reply(request, _MAX_PAGE_FAILURES)
        if upstream_reply is None:
            await anyio.to_thread.run_sync(
                self._library.mark_page_unchanged, pending_page, clock.read_unix_seconds()
            )
            self._summary.unchanged += 1
            return
        self._fetched_bytes += len(upstream_reply.body)
        await anyio.to_thread.run_sync(
            self._store_reply, pending_page, upstream_reply, stored_page is not None
        )

    def _store_reply(
        self, pending_page: PendingPage, upstream_reply: Reply, was_page_stored: bool
    ) -> None:
        govuk_page, passages = (
            _parse_reply(pending_page.path, upstream_reply)
            if upstream_reply.status == 200
            else (None, [])
        )
        is_page = govuk_page is not None and govuk_page.content.get("schema_name") not in (
            "redirect",
            "gone",
        )
        if govuk_page is None or not is_page or not govuk_page.is_in_scope:
            self._library.remove_page(pending_page.path)
            self._summary.removed += was_page_stored
            self._summary.out_of_scope += bool(is_page) and not was_page_stored
            return
        self._library.put_page(
            govuk_page,
            passages,
            upstream_reply.body,
            upstream_reply.etag,
            pending_page,
            clock.read_unix_seconds(),
        )
        self._summary.fetched += 1

    async def _check_sync_limits(self, listed_count: int = 0) -> None:
        """Raise `UpstreamUnavailable` when there is more than the Commission can have."""
        library_status = await anyio.to_thread.run_sync(self._library.read_status)
        if max(listed_count, library_status.pages + library_status.pending) > MAX_PAGES:
            exceeded_limit_text = f"{MAX_PAGES:,} pages"
        elif self._fetched_bytes > MAX_SYNC_BYTES:
            exceeded_limit_text = f"{MAX_SYNC_BYTES // 1024**2:,} MB"
        elif self._get_now() > self._must_end_at:
            exceeded_limit_text = f"{MAX_SYNC_SECONDS / 3600:.0f} hours"
        else:
            return
        raise UpstreamUnavailable(
            f"The sync was ended at {exceeded_limit_text}, more than the Commission's guidance "
            "takes. What was fetched is kept; the next sync goes on from there. Check "
            "GOVUK_BASE_URL"
        )

    async def _fetch_changed_reply(
        self, request: Request, max_failures: int = _MAX_FAILURES_IN_A_ROW
    ) -> Reply | None:
        """Return GOV.UK's answer, None if nothing changed; wait and try again when it says so."""
        failure_count = 0
        while True:
            try:
                return await self._client.send_get(request, self._call_context)
            except (UpstreamRateLimited, UpstreamUnavailable) as error:
                failure_count += 1
                is_rate_limited = isinstance(error, UpstreamRateLimited)
                if failure_count >= (_MAX_FAILURES_IN_A_ROW if is_rate_limited else max_failures):
                    raise
                wait_seconds = float(error.hint.get("retry_after") or 1.0)
            await self._sleep(wait_seconds)

    async def _embed_all_passages(self) -> None:
        """Give every passage that has none its vector."""
        library_status = await anyio.to_thread.run_sync(self._library.read_status)
        unembedded_count = library_status.passages - library_status.embedded
        started_at = time.monotonic()
        while unembedded_ids_and_texts := await anyio.to_thread.run_sync(
            self._library.list_unembedded_passages, _PASSAGES_PER_BATCH
        ):
            try:
                await anyio.to_thread.run_sync(self._embed_passages, unembedded_ids_and_texts)
            except ModelUnavailable as error:
                self._summary.no_vectors = error.message
                return
            self._summary.embedded += len(unembedded_ids_and_texts)
            passages_per_second = self._summary.embedded / max(time.monotonic() - started_at, 0.001)
            seconds_left = max(0, unembedded_count - self._summary.embedded) / passages_per_second
            await self._report_progress(
                self._summary.embedded,
                None,
                f"{self._summary.embedded} of {unembedded_count} passages embedded, "
                f"{passages_per_second:,.1f} a second, {seconds_left:,.0f} s left",
            )

    def _embed_passages(self, passage_ids_and_texts: list[tuple[str, str]]) -> None:
        passage_vectors = self._embedder.embed_batch(
            [searched_text for _, searched_text in passage_ids_and_texts]
        )
        self._library.put_vectors(
            [passage_id for passage_id, _ in passage_ids_and_texts],
            passage_vectors,
            self._embedder.identity,
        )


def _parse_reply(page_path: str, upstream_reply: Reply) -> tuple[GovukPage, list[Passage]]:
    """Return the page of a reply and its passages; raise `_UnreadablePageError`."""
    try:
        govuk_page = GovukPage(from_json(upstream_reply.body), page_path)
        passages = cut_passages(govuk_page) if govuk_page.is_in_scope else []
        # Looked at here, so that a page whose parts cannot be read is never stored.
        _ = govuk_page.documents, govuk_page.withdrawn_notice
        return govuk_page, passages
    # Whatever a page makes its reader raise, the others are to be read.
    except Exception as error:
        logger.warning(
            "a page cannot be read", exc_info=error, extra={"fields": {"path": page_path}}
        )
        raise _UnreadablePageError(f"it cannot be read ({type(error).__name__})") from error


def _read_listed_count(guidance_library: GuidanceLibrary) -> int | None:
    return guidance_library.listed_count


async def synchronize_library(
    settings: GuidanceSettings, checks_every_page: bool, report_progress: ReportProgress
) -> SyncSummary:
    """Bring the copy in the data directory up to date; raise `UpstreamUnavailable`."""
    guidance_library = GuidanceLibrary(settings.data / "guidance")
    upstream_client = UpstreamClient(
        settings.govuk_base_url,
        SlidingWindow(settings.rate_limit_per_second),
        UpstreamMetrics(),
        timeout_seconds=settings.govuk_timeout_seconds,
    )
    try:
        return await GuidanceSync(
            guidance_library, upstream_client, get_shared_embedder(settings), report_progress
        ).synchronize_pages(checks_every_page)
    finally:
        await upstream_client.close()
        guidance_library.close()
