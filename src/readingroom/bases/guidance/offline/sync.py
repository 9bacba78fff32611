"""Brings the offline copy up to date: lists the Commission's pages, fetches what has changed."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio
import anyio.to_thread
from pydantic_core import from_json

from readingroom.bases.guidance.offline.library import GuidanceLibrary, PendingPage
from readingroom.bases.guidance.pages.page import ORGANISATION, GovukPage
from readingroom.bases.guidance.pages.values import is_plain_path, read_objects, read_text
from readingroom.core import clock
from readingroom.core.progress import ReportProgress
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.errors import ModelUnavailable
from readingroom.net.cache import Reply
from readingroom.net.errors import UpstreamRateLimited, UpstreamUnavailable
from readingroom.net.upstream import CallContext, Request, UpstreamClient

LIST_SIZE = 100
_EMBED_SIZE = 64
_MAX_LISTED = 100_000  # a list that never ends would be asked for for ever
_MAX_FAILURES = 5
"""Failures in a row after which GOV.UK is left alone; the next sync goes on from there."""


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
    no_vectors: str | None = None
    """Why passages have no vectors, where they have none."""


class GuidanceSync:
    """One sync; everything it has done by then survives when it is killed."""

    def __init__(
        self,
        library: GuidanceLibrary,
        client: UpstreamClient,
        embedder: Embedder,
        report: ReportProgress,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._library = library
        self._client = client
        self._embedder = embedder
        self._report = report
        self._sleep = sleep
        self._context = CallContext("sync", "guidance-sync")
        self._summary = SyncSummary()

    async def run(self, check_all: bool = False) -> SyncSummary:
        """Bring the copy up to date. Raise `UpstreamUnavailable` when GOV.UK keeps failing."""
        library = self._library
        await anyio.to_thread.run_sync(library.create)
        self._summary.resumed = await anyio.to_thread.run_sync(library.begin_sync)
        await self._list_pages()
        if check_all:
            await anyio.to_thread.run_sync(library.check_everything)
        await self._fetch_pending()
        await anyio.to_thread.run_sync(library.finish_sync, clock.unix_seconds())
        await self._embed()
        return self._summary

    async def _list_pages(self) -> None:
        """Record every page of the list, from where an interrupted sync stopped."""
        while (
            start := await anyio.to_thread.run_sync(_get_listed_count, self._library)
        ) is not None:
            params = [
                ("filter_organisations", ORGANISATION),
                # The oldest first: what is published meanwhile comes last, and shifts nothing.
                ("order", "public_timestamp"),
                ("count", str(LIST_SIZE)),
                ("start", str(start)),
                *(("fields", name) for name in ("link", "public_timestamp")),
            ]
            reply = await self._get(Request("search", "/api/search.json", params))
            if reply is None or reply.status != 200:
                raise UpstreamUnavailable("GOV.UK's search does not list the pages")
            response = from_json(reply.body)
            results = read_objects(response.get("results"))
            listed = [
                (path, read_text(result.get("public_timestamp")))
                for result in results
                if (path := read_text(result.get("link"))) and is_plain_path(path)
            ]
            self._summary.listed += len(listed)
            await anyio.to_thread.run_sync(self._library.add_listed, listed, start + len(results))
            # Not by `total`, which GOV.UK does not always give.
            if len(results) < LIST_SIZE or start > _MAX_LISTED:
                await anyio.to_thread.run_sync(self._library.complete_list)
            await self._report(start + len(results), None, f"{start + len(results)} pages listed")

    async def _fetch_pending(self) -> None:
        while pages := await anyio.to_thread.run_sync(self._library.list_pending, 50):
            for page in pages:
                await self._fetch_page(page)
            done = self._summary.fetched + self._summary.unchanged
            await self._report(done, None, f"{done} pages checked, {self._summary.fetched} fetched")

    async def _fetch_page(self, pending: PendingPage) -> None:
        stored = await anyio.to_thread.run_sync(self._library.read_page, pending.path)
        request = Request(
            "content", f"/api/content{pending.path}", etag=stored.etag if stored else None
        )
        reply = await self._get(request)
        if reply is None:
            await anyio.to_thread.run_sync(
                self._library.confirm_page, pending, clock.unix_seconds()
            )
            self._summary.unchanged += 1
            return
        await anyio.to_thread.run_sync(self._store_reply, pending, reply, stored is not None)

    def _store_reply(self, pending: PendingPage, reply: Reply, is_stored: bool) -> None:
        page = GovukPage(from_json(reply.body), pending.path) if reply.status == 200 else None
        is_page = page is not None and page.content.get("schema_name") not in ("redirect", "gone")
        if page is None or not is_page or not page.is_in_scope:
            self._library.remove_page(pending.path)
            self._summary.removed += is_stored
            self._summary.out_of_scope += bool(is_page) and not is_stored
            return
        self._library.put_page(page, reply.body, reply.etag, pending, clock.unix_seconds())
        self._summary.fetched += 1

    async def _get(self, request: Request) -> Reply | None:
        """Return GOV.UK's answer; wait when it asks for that, and try again."""
        failures = 0
        while True:
            try:
                return await self._client.get(request, self._context)
            except (UpstreamRateLimited, UpstreamUnavailable) as error:
                failures += 1
                if failures >= _MAX_FAILURES:
                    raise
                wait_seconds = float(error.hint.get("retry_after") or 1.0)
            await self._sleep(wait_seconds)

    async def _embed(self) -> None:
        """Give every passage that has none its vector."""
        while passages := await anyio.to_thread.run_sync(
            self._library.list_unembedded, _EMBED_SIZE
        ):
            try:
                await anyio.to_thread.run_sync(self._embed_passages, passages)
            except ModelUnavailable as error:
                self._summary.no_vectors = error.message
                return
            self._summary.embedded += len(passages)
            await self._report(
                self._summary.embedded, None, f"{self._summary.embedded} passages embedded"
            )

    def _embed_passages(self, passages: list[tuple[str, str]]) -> None:
        vectors = self._embedder.embed_batch([text for _, text in passages])
        self._library.put_vectors([id for id, _ in passages], vectors, self._embedder.identity)


def _get_listed_count(library: GuidanceLibrary) -> int | None:
    return library.listed_count
