"""Which bases there are, and how each is opened as the settings say."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from readingroom.core.settings import Settings, revealed
from readingroom.federation import NAME as DESK
from readingroom.protocol.base import KnowledgeBase
from readingroom.storage.errors import FolderInUse
from readingroom.storage.lock import FolderLock

if TYPE_CHECKING:
    from readingroom.engine.embedding.embedder import Embedder

ALL_PORT = 8000


@dataclass(frozen=True)
class Offer:
    """A base that can be opened: what must be known of it before it is."""

    port: int
    """The port of its contract, when it is served alone."""
    open: Callable[[Settings], KnowledgeBase]
    stdio: bool = False
    """Whether it can be served over standard input and output."""
    folder_locked: bool = False
    """Whether its folder in the data directory belongs to one process at a time."""
    port_setting: str | None = None
    """The setting that chooses another port, where the contract names one."""

    def port_in(self, settings: Settings) -> int:
        """The port when it is served alone and none was asked for."""
        return getattr(settings, self.port_setting) if self.port_setting else self.port


# Openers import their base when called: a server of one base does not pay for another's libraries.
def _text(settings: Settings) -> KnowledgeBase:
    from readingroom.bases.text.tools import open_text

    return open_text(settings.kb_file, settings.kb_description)


def _documents(settings: Settings) -> KnowledgeBase:
    from readingroom.bases.documents.tools import open_documents
    from readingroom.server.workbench import workbench_of

    folder = settings.data / "documents"
    chosen = settings.chroma_persist_dir
    return open_documents(
        folder,
        None if chosen == "" else Path(chosen) if chosen else folder / "chroma",
        workbench_of("documents", settings, embedder_of(settings)),
        settings.read_only,
    )


def _policy(settings: Settings) -> KnowledgeBase:
    from readingroom.bases.policy.tools import open_policy
    from readingroom.server.workbench import workbench_of

    return open_policy(
        settings.data / "policy",
        revealed(settings.redis_url),
        workbench_of("policy", settings, embedder_of(settings)),
        settings.read_only,
    )


def _federal(settings: Settings) -> KnowledgeBase:
    from readingroom.bases.federal.tools import open_federal

    return open_federal(settings.data / "federal", embedder_of(settings))


def _guidance(settings: Settings) -> KnowledgeBase:
    from readingroom.bases.guidance.store import Lifetimes
    from readingroom.bases.guidance.tools import open_guidance

    return open_guidance(
        settings.govuk_base_url,
        timeout=settings.govuk_timeout_seconds,
        fresh=Lifetimes(settings.cache_ttl_content_seconds, settings.cache_ttl_search_seconds),
        stale_seconds=settings.cache_stale_seconds,
        per_second=settings.rate_limit_per_second,
        redis_url=revealed(settings.redis_url),
    )


def embedder_of(settings: Settings) -> "Embedder":
    """One model for all bases of a process; nothing is loaded before the first text."""
    from readingroom.engine.embedding.embedder import Embedder

    key = (
        settings.models,
        settings.embedding_model_dir,
        settings.embedding_precision,
        settings.embedding_threads,
    )
    if key not in _EMBEDDERS:
        _EMBEDDERS[key] = Embedder(*key)
    return _EMBEDDERS[key]


_EMBEDDERS: dict[Any, "Embedder"] = {}


def desk_of(
    bases: tuple[KnowledgeBase, ...],
    settings: Settings,
    address: str = "",
    absent: Mapping[str, str] = {},
) -> KnowledgeBase:
    """The desk over bases; `address` is where this process answers, if it does."""
    from readingroom.federation.tools import open_desk

    return open_desk(bases, embedder_of(settings), address, absent)


OFFERS = {
    "documents": Offer(3002, _documents, folder_locked=True, port_setting="document_store_port"),
    "federal": Offer(8000, _federal),
    "guidance": Offer(3004, _guidance, stdio=True),
    "policy": Offer(3003, _policy, folder_locked=True, port_setting="policy_kb_port"),
    "text": Offer(3001, _text, stdio=True),
}
STDIO = tuple(name for name, offer in OFFERS.items() if offer.stdio)


def open_room(settings: Settings) -> KnowledgeBase:
    """The desk over every base that no other process has, opened and closed with it."""
    free, absent = _free_bases(settings)
    bases = open_bases(free, settings)
    desk = desk_of(bases, settings, absent=absent)

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        async with AsyncExitStack() as opened:
            for lock in free.values():
                if lock:
                    opened.callback(lock.release)
            for base in (*bases, desk):
                await opened.enter_async_context(base.running())
            yield

    return replace(desk, running=running)


def _free_bases(settings: Settings) -> tuple[dict[str, FolderLock | None], dict[str, str]]:
    """The bases this process can have, with the lock it took, and why not the others."""
    free: dict[str, FolderLock | None] = {}
    absent: dict[str, str] = {}
    for name, offer in OFFERS.items():
        lock = FolderLock(settings.data / name) if offer.folder_locked else None
        try:
            if lock:
                lock.acquire()
            free[name] = lock
        except FolderInUse as error:
            absent[name] = error.message
    return free, absent


# The room as a whole: what a command that needs every base is run on when no server has them.
ROOM = {DESK: Offer(ALL_PORT, open_room, folder_locked=True)}


def open_bases(
    names: Iterable[str], settings: Settings, offers: Mapping[str, Offer] = OFFERS
) -> tuple[KnowledgeBase, ...]:
    """Open these bases; read-only ones have no tool that writes."""
    bases = tuple(offers[name].open(settings) for name in names)
    return tuple(map(_reading_only, bases)) if settings.read_only else bases


def _reading_only(base: KnowledgeBase) -> KnowledgeBase:
    return replace(base, tools=tuple(tool for tool in base.tools if tool.hints.read_only))
