"""A knowledge base before it is opened (`BaseSpec`) and once it is open (`KnowledgeBase`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal

from readingroom.core.errors import InvalidSetting
from readingroom.core.imports import import_reference
from readingroom.core.settings import RoomSettings

# The list of bases is read at every start, and most of these are for a server alone.
if TYPE_CHECKING:
    from readingroom.protocol.embedding_work import LeasablePassages
    from readingroom.protocol.errors import ErrorDialect
    from readingroom.protocol.pages import BasePages
    from readingroom.protocol.resources import Prompt, ReadPageImage, ResourceProvider
    from readingroom.protocol.tool import Tool
    from readingroom.storage.jobs.store import JobStore


async def _do_nothing_to_check() -> None:
    """Nothing that this base needs can go away while it is served."""


async def _do_nothing_to_warm_up() -> None:
    """The first request to this base waits for nothing that a later one would not."""


def _make_no_pages(job_store: JobStore) -> BasePages:
    empty_base_pages: BasePages = import_reference("readingroom.protocol.pages:BasePages")(())
    return empty_base_pages


@dataclass(frozen=True)
class KnowledgeBase:
    """One base, open and ready to be served under any face."""

    name: str
    """Its folder in the tree, in the data directory and in URLs: `text`."""
    server_name: str
    """The name its contract gives the server: `kb-mcp`."""
    title: str
    instructions: str
    """What a model reads about the whole base before it sees a tool."""
    error_dialect: ErrorDialect
    tools: tuple[Tool, ...]
    service: Any
    """What its commands are run against."""
    keeps_sessions: bool = False
    """Whether sessions are kept (progress during long calls); else each call stands alone."""
    serves_sse: bool = False
    """Whether the older HTTP+SSE transport is offered too."""
    add_handlers: Callable[[Any], None] | None = None
    """Adds handlers to the SDK's protocol server that nothing else here can express."""
    prompts: tuple[Prompt, ...] = ()
    resources: ResourceProvider | None = None
    """Its resources, where it has some that a client can attach."""
    page_image_readers: Mapping[str, ReadPageImage] = field(default_factory=dict)
    """Reads the pictures that its views show, by how their URIs begin; no two bases share one."""
    get_routers: Callable[[], Sequence[Any]] = tuple
    """Makes its FastAPI routers, which carry their whole prefix, such as `/api/v1`."""
    make_pages: Callable[[JobStore], BasePages] = _make_no_pages
    """Makes its pages for people, whose forms queue jobs in the store that is given."""
    leasable_passages: LeasablePassages | None = None
    """Its passages without vectors, which workers on other machines may embed; bases whose
    ingestions wait for vectors all have the texts that wait.
    """
    lifespan: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    """Entered for as long as the base is served: what it starts there, it stops there."""
    check_ready: Callable[[], Awaitable[object]] = _do_nothing_to_check
    """Raises a `KnowledgeError` while the base cannot answer."""
    warm_up: Callable[[], Awaitable[object]] = _do_nothing_to_warm_up
    """Loads what its first search would wait for, such as the model; called in the background."""
    metric_collectors: tuple[Any, ...] = ()
    """Prometheus collectors of its own, shown at `/metrics` beside the server's."""


def list_leasable_passages(knowledge_bases: Iterable[KnowledgeBase]) -> list[LeasablePassages]:
    """Return what workers may embed of bases, each once, first what an ingestion waits for."""
    offered_passages = dict.fromkeys(
        knowledge_base.leasable_passages
        for knowledge_base in knowledge_bases
        if knowledge_base.leasable_passages is not None
    )
    return sorted(offered_passages, key=lambda leasable_passages: leasable_passages.is_backlog)


class LazyImport:
    """A function or value named as `package.module:name`, imported when it is first used.

    The list of bases is read at every start, also by commands that need one base or none, so it
    must not import their libraries.
    """

    def __init__(self, import_path: str) -> None:
        self.reference = import_path

    def import_value(self) -> Any:
        """Import the module and return what the reference names."""
        return import_reference(self.reference)

    def __call__(self, *args: Any) -> Any:
        return self.import_value()(*args)


@dataclass(frozen=True)
class SettingFlag:
    """An option of `serve` and `stdio` that chooses a setting of one base."""

    command_line_option: str
    setting_name: str
    help: str


@dataclass(frozen=True)
class BaseSpec:
    """All that the server, the federation and the commands know of a base.

    What is left out, the base does not have.
    """

    name: str
    port: int
    """The port of its contract, when it is served alone."""
    open: LazyImport
    """`(settings) -> KnowledgeBase`."""
    settings_class: type[RoomSettings] = RoomSettings
    """The settings it reads: those of every base, and its own."""
    port_setting: str | None = None
    """The setting that chooses another port, where the contract names one."""
    flags: tuple[SettingFlag, ...] = ()
    """Options of `serve` and `stdio` that choose settings of its own."""
    serves_stdio: bool = False
    """Whether it can be served over standard input and output."""
    follows_josh_auth: bool = False
    """Whether JOSH_AUTH, where it is set, decides who may call; else the keys do."""
    locks_folder: bool = False
    """Whether its folder in the data directory belongs to one process at a time."""
    database_support: Literal["moves", "keeps nothing", "not yet"] = "not yet"
    """What READINGROOM_DATABASE_URL does to it: its data moves there, it has none that processes
    would have to share, or it cannot be served with that setting yet.
    """
    is_view: bool = False
    """Whether it keeps nothing itself, and reads the other bases."""
    id_prefix: str | None = None
    """What its ids begin with, before the colon; a base without one gets every other id."""
    routes: LazyImport | None = None
    """`(service, read_only) -> routers`: its REST surface."""
    pages: LazyImport | None = None
    """`(service, jobs) -> BasePages`: its pages for people."""
    adapter: LazyImport | None = None
    """`(service, links) -> SearchAdapter`: its part in searches over all bases."""
    cli: LazyImport | None = None
    """A click group or command, which becomes the verb with the base's name."""
    commands: LazyImport | None = None
    """A tuple of `Command` classes that the owner of its folder runs for other processes."""
    backup: LazyImport | None = None
    """A `BaseBackup`."""
    doctor: LazyImport | None = None
    """`(settings, repair, run) -> problems`: what is wrong with its data."""
    sample_settings: LazyImport | None = None
    """`(settings) -> context manager`: settings that hold while the sample is used."""
    sample: LazyImport | None = None
    """A `BaseSampleLoader`: how the sample corpus gets into it."""

    def needs_folder_lock(self, settings: RoomSettings) -> bool:
        """Return whether one process at a time may open it: not where a database has its data."""
        return self.locks_folder and not (
            self.database_support == "moves" and settings.database_url
        )

    def check_database(self, settings: RoomSettings) -> None:
        """Raise `InvalidSetting` when the base cannot use the database that the settings name."""
        if settings.database_url and self.database_support == "not yet":
            raise InvalidSetting(
                f"The {self.name} base keeps its data in the data directory and cannot be shared "
                "through READINGROOM_DATABASE_URL yet; serve it without that setting, in a process "
                "of its own"
            )

    def open_base(self, settings: RoomSettings) -> KnowledgeBase:
        """Open the base; in a read-only room without the tools that write.

        Raise `InvalidSetting` when it cannot use the database that the settings name.
        """
        self.check_database(settings)
        knowledge_base: KnowledgeBase = self.open(settings)
        if self.routes:
            knowledge_base = replace(
                knowledge_base,
                get_routers=cache(partial(self.routes, knowledge_base.service, settings.read_only)),
            )
        if self.pages:
            knowledge_base = replace(
                knowledge_base, make_pages=partial(self.pages, knowledge_base.service)
            )
        if settings.read_only:
            knowledge_base = replace(
                knowledge_base,
                tools=tuple(tool for tool in knowledge_base.tools if tool.hints.read_only),
            )
        return knowledge_base

    def get_default_port(self, settings: RoomSettings) -> int:
        """Return the port on which it is served alone, when no other was chosen."""
        return getattr(settings, self.port_setting) if self.port_setting else self.port
