"""Pages for people that a base adds to the server: what a page is asked, and what it answers."""

import datetime as dt
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from readingroom.protocol.sample import SAMPLE_CITATION_PREFIX
from readingroom.protocol.search import DeskRecord, SearchRequest
from readingroom.protocol.tool import ToolContext
from readingroom.storage.jobs.runner import JobHandler

Role = Literal["reader", "editor", "operator"]
ROLES: tuple[Role, ...] = ("reader", "editor", "operator")
"""Each may do what those before it may: read; change what is stored; run the server."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who looks at a page: the holder of a key, or whoever sits at a machine that needs none."""

    name: str
    role: Role

    def has_role(self, required_role: Role) -> bool:
        """Whether this visitor may do what takes that role."""
        return ROLES.index(self.role) >= ROLES.index(required_role)


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that a form carried, written to disk; whoever takes it on moves or deletes it."""

    file_name: str
    path: Path


@dataclass(frozen=True, slots=True)
class FormRefusal:
    """Why a form was not accepted, to be shown where it can be mended."""

    code: str
    """The code of the error."""
    message: str
    fields: frozenset[str] = frozenset()
    """The fields that it is about, where the error names them."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What a page is asked."""

    parameters: Mapping[str, str]
    """Of the path and the query; of a form, its fields as well."""
    visitor: Visitor
    tool_context: ToolContext
    """The same as a tool gets, so that a page asks the services as an agent does."""
    is_sample: bool = False
    """Whether the data are the sample's, which has to be said wherever something is cited."""
    form_token: str = ""
    """What every form on the page carries in its field `form_token`."""
    files: Sequence[SentFile] = ()
    refusal: FormRefusal | None = None
    """Where the page shows a form again that was refused; its fields are in the parameters."""

    @property
    def sample_citation_prefix(self) -> str:
        """What every citation on the page begins with: `[sample] ` on the sample, else nothing."""
        return SAMPLE_CITATION_PREFIX if self.is_sample else ""

    def get_parameter(self, parameter_name: str, default: str = "") -> str:
        """Return a parameter without the spaces around it."""
        return self.parameters.get(parameter_name, default).strip()


@dataclass(frozen=True, slots=True)
class ToolExample:
    """The tool call that gives an agent what a page shows."""

    tool_name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """What a page answers; the server adds the frame, the headers and the sign-in."""

    title: str
    """Which is a citation, where the page shows something that is cited."""
    body: str
    """HTML in which everything that is not ours has been escaped."""
    data: Any = None
    """The answer that it shows, which the same address with `?format=json` gives as JSON."""
    tool_example: ToolExample | None = None
    status: int = 200
    print_note: str = ""
    """What is printed on each sheet after the title, such as the days that it was in force."""


@dataclass(frozen=True, slots=True)
class PagePicture:
    """A picture that a page shows, which a browser may keep."""

    content: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file as it was received, which a browser saves and never shows."""

    path: Path
    file_name: str


@dataclass(frozen=True, slots=True)
class SeeOther:
    """Sends the browser to another page, after a form was accepted."""

    address: str


PageAnswer = RenderedPage | PagePicture | PageFile | SeeOther


@dataclass(frozen=True, slots=True)
class BasePage:
    """One address and the coroutine that answers it."""

    path: str
    """The whole path, as Starlette writes it: `/policies/{source}`."""
    render: Callable[[PageRequest], Awaitable[PageAnswer]]
    method: Literal["GET", "POST"] = "GET"
    role: Role = "reader"
    """What a visitor must at least be."""
    menu_label: str | None = None
    """Its entry in the menu that stands on every page; None for a page that is reached by links."""
    summary: str = ""
    """What the home page says about it, where it is in the menu."""
    render_form_page: Callable[[PageRequest], Awaitable[PageAnswer]] | None = None
    """The page with the form, shown again with the reason when the form is refused; None for one
    whose errors have a page of their own.
    """
    max_upload_bytes: int | None = None
    """How large the files of its form may be together; None when it takes none."""


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link to another page."""

    label: str
    href: str


@dataclass(frozen=True, slots=True)
class RecordPageExtras:
    """What a base adds to the page of one of its records."""

    trail: Sequence[PageLink] = ()
    """Where it belongs, from the menu down."""
    previous: PageLink | None = None
    next: PageLink | None = None
    related: Sequence[PageLink] = ()
    """Other revisions of it, what it belongs to, what changed."""
    citation: str | None = None
    """How to cite it, where that says more than the record's own citation."""
    picture: str = ""
    """HTML with the page of the document as a picture, and the passage marked on it."""
    replaced_by: PageLink | None = None
    """What took its place."""
    caution: str = ""
    """What a reader must know before relying on it."""
    facts: Sequence[tuple[str, str]] = ()
    """What else is known of it: labels and texts."""


@dataclass(frozen=True, slots=True)
class SearchOmission:
    """Something that a search left out, and why."""

    title: str
    reason: str
    href: str | None = None
    period: tuple[dt.date, dt.date | None] | None = None
    """When the nearest of its revisions was in force."""


@dataclass(frozen=True, slots=True)
class RecentEvent:
    """Something that happened to what is kept here, for the home page."""

    day: dt.date
    title: str
    href: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SourceFreshness:
    """How far something that is loaded from elsewhere reaches, or how old a copy of it is."""

    title: str
    href: str | None
    detail: str
    """What is there."""
    complete_up_to: str | None = None
    """The day up to which nothing is missing, where that is known."""
    newest_at: str | None = None
    """The day of the newest thing that is there, which says nothing about others."""


@dataclass(frozen=True, slots=True)
class RunningWork:
    """Something that goes on in the background, and how far it has come."""

    title: str
    href: str
    percent: float
    phase: str


async def _list_no_freshness() -> Sequence[SourceFreshness]:
    return ()


async def list_no_recent_events() -> Sequence[RecentEvent]:
    """Return nothing: where nothing happens that is told."""
    return ()


async def _list_no_work() -> Sequence[RunningWork]:
    return ()


async def _make_empty_record_page_extras(
    request: PageRequest, desk_record: DeskRecord
) -> RecordPageExtras:
    return RecordPageExtras()


async def _list_no_omissions(
    search_request: SearchRequest, tool_context: ToolContext
) -> Sequence[SearchOmission]:
    return ()


@dataclass(frozen=True, slots=True)
class BasePages:
    """The pages of one base, the jobs that its forms begin, and what it adds to common pages."""

    pages: Sequence[BasePage]
    job_handler_by_kind: Mapping[str, JobHandler] = field(default_factory=dict)
    """By the kind of job."""
    build_record_page_extras: Callable[[PageRequest, DeskRecord], Awaitable[RecordPageExtras]] = (
        _make_empty_record_page_extras
    )
    """What `/read` shows beside one of its records."""
    list_omissions: Callable[[SearchRequest, ToolContext], Awaitable[Sequence[SearchOmission]]] = (
        _list_no_omissions
    )
    """What a search over all bases leaves out of this one."""
    list_source_freshness: Callable[[], Awaitable[Sequence[SourceFreshness]]] = _list_no_freshness
    """How fresh each of its sources is, for whoever runs the server."""
    list_recent_events: Callable[[], Awaitable[Sequence[RecentEvent]]] = list_no_recent_events
    """What happened lately, the newest first, for the home page."""
    list_running_work: Callable[[], Awaitable[Sequence[RunningWork]]] = _list_no_work
    """What is being read or embedded now and is no job, for whoever runs the server."""
