"""The console as a whole: the pages of every base in one frame, its menu, its assets, its jobs."""

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from readingroom.core.errors import KnowledgeError
from readingroom.ingest.read.scratch import ScratchFolders
from readingroom.protocol.pages import BasePage, BasePages, RecentEvent
from readingroom.protocol.spec import KnowledgeBase
from readingroom.server.auth.bearer import KeyAuth
from readingroom.server.auth.browsers import BrowserAuth
from readingroom.server.observe.history import CallHistory
from readingroom.server.pages.dispatch import make_page_routes, make_upload_spools
from readingroom.server.pages.doctor import DoctorPages
from readingroom.server.pages.frame import MenuEntry, PageFrame
from readingroom.server.pages.jobs import make_job_pages
from readingroom.server.pages.keys import KeyPages
from readingroom.server.pages.operations import OperationsPages
from readingroom.server.pages.sign_in import SignInPages
from readingroom.server.settings import ServerSettings
from readingroom.storage.jobs.runner import JobRunner
from readingroom.storage.postgres.state import open_jobs
from readingroom.web.assets import ASSET_PREFIX, load_assets

_MAX_HOME_PAGE_EVENTS = 8
_MENU_ORDER = ("Search", "Policies", "Applications", "Records", "Guidance", "Operations")


@dataclass(frozen=True, slots=True)
class ConsolePages:
    """What the server needs of its pages."""

    routes: Sequence[BaseRoute]
    frame: PageFrame
    menu_entries: Sequence[MenuEntry]
    job_runner: JobRunner
    upload_spools: ScratchFolders
    """Where files of forms are received; what a killed server left there is swept at the start."""
    list_recent_events: Callable[[], Awaitable[Sequence[RecentEvent]]]
    """What happened lately, for the home page."""


def build_console_pages(
    knowledge_bases: Sequence[KnowledgeBase],
    browser_auth: BrowserAuth,
    settings: ServerSettings,
    key_auth: KeyAuth,
    call_history: CallHistory,
) -> ConsolePages:
    """Return the pages of all bases, those to sign in, and the runner of the jobs they begin."""
    job_store = open_jobs(settings)
    pages_of_bases = [knowledge_base.make_pages(job_store) for knowledge_base in knowledge_bases]
    doctor_pages = DoctorPages(settings, job_store)
    operations_pages = OperationsPages(
        knowledge_bases,
        settings,
        job_store,
        call_history,
        pages_of_bases,
        key_auth.key_ring,
        doctor_pages,
    )
    all_pages = [base_page for pages_of_base in pages_of_bases for base_page in pages_of_base.pages]
    all_pages += [
        *make_job_pages(job_store),
        *operations_pages.make_pages(),
        *doctor_pages.make_pages(),
    ]
    menu_entries = _make_menu_entries(all_pages)
    frame_renderer = PageFrame(browser_auth, menu_entries, settings.is_sample)
    upload_spools = make_upload_spools(settings)
    handler_by_job_kind = {
        job_kind: job_handler
        for pages_of_base in pages_of_bases
        for job_kind, job_handler in pages_of_base.job_handler_by_kind.items()
    }
    # The checks are no base's own, and run like any other job.
    handler_by_job_kind |= doctor_pages.make_job_handlers()
    page_routes: list[BaseRoute] = [
        Route(f"{ASSET_PREFIX}{{digest}}/{{file_name}}", _show_asset),
        *SignInPages(frame_renderer).make_routes(),
        *KeyPages(frame_renderer, key_auth).make_routes(),
        *make_page_routes(all_pages, frame_renderer, settings, upload_spools),
    ]
    list_recent_events = partial(_list_recent_events, pages_of_bases)
    return ConsolePages(
        page_routes,
        frame_renderer,
        menu_entries,
        JobRunner(job_store, handler_by_job_kind),
        upload_spools,
        list_recent_events,
    )


async def _list_recent_events(pages_of_bases: Sequence[BasePages]) -> Sequence[RecentEvent]:
    """Return what happened lately in every base, the newest first."""
    recent_events: list[RecentEvent] = []
    for pages_of_base in pages_of_bases:
        # A base that cannot answer says so on its own pages.
        with contextlib.suppress(KnowledgeError):
            recent_events += await pages_of_base.list_recent_events()
    return sorted(recent_events, key=lambda event: event.day, reverse=True)[:_MAX_HOME_PAGE_EVENTS]


def make_page_test(page_routes: Sequence[BaseRoute]) -> Callable[[Scope], bool]:
    """Return a function that tells whether a request is for one of these pages."""

    def matches_page(scope: Scope) -> bool:
        return any(page_route.matches(scope)[0] is not Match.NONE for page_route in page_routes)

    return matches_page


def _make_menu_entries(base_pages: Sequence[BasePage]) -> list[MenuEntry]:
    menu_entries = [
        MenuEntry(base_page.menu_label, base_page.path, base_page.role, base_page.summary)
        for base_page in base_pages
        if base_page.menu_label
    ]
    return sorted(menu_entries, key=_make_menu_sort_key)


def _make_menu_sort_key(menu_entry: MenuEntry) -> tuple[int, str]:
    """Return what the menu is sorted by: a base that is not known here comes last."""
    is_known_label = menu_entry.label in _MENU_ORDER
    return (
        _MENU_ORDER.index(menu_entry.label) if is_known_label else len(_MENU_ORDER),
        menu_entry.label,
    )


async def _show_asset(request: Request) -> Response:
    web_asset = load_assets().get(request.url.path)
    if web_asset is None:
        return Response(status_code=404)
    response_headers = {
        # The address changes with the content.
        "Cache-Control": "public, max-age=31536000, immutable",
        "Vary": "Accept-Encoding",
    }
    if "gzip" in request.headers.get("accept-encoding", ""):
        response_headers["Content-Encoding"] = "gzip"
        return Response(
            web_asset.compressed_content, headers=response_headers, media_type=web_asset.media_type
        )
    return Response(web_asset.content, headers=response_headers, media_type=web_asset.media_type)
