"""All bases opened in one process, for a command that needs them when no server has them."""

import tempfile
from collections.abc import AsyncIterator, Container, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from readingroom.bases import BASES, open_bases
from readingroom.core.errors import InvalidSetting
from readingroom.core.settings import RoomSettings
from readingroom.engine.embedding.shared import find_shared_reranker, get_shared_embedder
from readingroom.federation import DESK_NAME
from readingroom.federation.tools import open_federation
from readingroom.protocol.spec import BaseSpec, KnowledgeBase, LazyImport
from readingroom.storage.errors import FolderInUse
from readingroom.storage.lock import FolderLock

FEDERATION_PORT = 8000
FEDERATION_SPEC = BaseSpec(
    name=DESK_NAME,
    port=FEDERATION_PORT,
    open=LazyImport("readingroom.federation.room:open_all_bases"),
    locks_folder=True,
    database_support="moves",
    is_view=True,
    commands=LazyImport("readingroom.federation.commands:COMMANDS"),
)
"""The desk as a base: its folder has one owner, the process that serves all bases."""


def make_federated_base(
    knowledge_bases: tuple[KnowledgeBase, ...],
    settings: RoomSettings,
    server_address: str = "",
    absence_reason_by_base: Mapping[str, str] = {},
) -> KnowledgeBase:
    """Return the desk over bases; `server_address` is where this process answers, if it does."""
    return open_federation(
        knowledge_bases,
        get_shared_embedder(settings),
        server_address,
        absence_reason_by_base,
        reranker=find_shared_reranker(settings),
    )


def open_all_bases(settings: RoomSettings) -> KnowledgeBase:
    """Return the desk over every base that no other process owns, opened and closed with it."""
    empty_base_names = list_empty_base_names(settings)
    locks_by_base_name, absence_reason_by_base = _lock_base_folders(settings, empty_base_names)
    # No folder is made for a question's sake: a base without one is opened on another, for a while.
    temporary_directory = tempfile.TemporaryDirectory(prefix="readingroom-")
    scratch_settings = settings.model_copy(
        update={"data": Path(temporary_directory.name), "models_dir": settings.models_folder}
    )
    opened_bases = (
        *open_bases(locks_by_base_name, settings),
        *open_bases(empty_base_names, scratch_settings),
    )
    federated_base = make_federated_base(
        opened_bases, settings, absence_reason_by_base=absence_reason_by_base
    )

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        async with AsyncExitStack() as exit_stack:
            exit_stack.callback(temporary_directory.cleanup)
            for base_lock in locks_by_base_name.values():
                if base_lock:
                    exit_stack.callback(base_lock.release)
            # The desk last, so that it is closed first: its late calls are still in the bases.
            for opened_base in (*opened_bases, federated_base):
                await exit_stack.enter_async_context(opened_base.lifespan())
            yield

    return replace(federated_base, lifespan=lifespan)


def list_empty_base_names(settings: RoomSettings) -> list[str]:
    """Return the bases that keep their data in a folder and have none here yet."""
    if settings.database_url:
        return []
    # What is kept in a folder is in a backup too.
    return [
        base_name
        for base_name, base_spec in BASES.items()
        if base_spec.backup and not (settings.data / base_name).is_dir()
    ]


def _lock_base_folders(
    settings: RoomSettings, empty_base_names: Container[str]
) -> tuple[dict[str, FolderLock | None], dict[str, str]]:
    """Return the bases that this process can open, each with its lock, and why not the others."""
    locks_by_base_name: dict[str, FolderLock | None] = {}
    absence_reason_by_base: dict[str, str] = {}
    for base_name, base_spec in BASES.items():
        if base_name in empty_base_names:
            continue
        folder_lock = (
            FolderLock(settings.data / base_name) if base_spec.needs_folder_lock(settings) else None
        )
        try:
            if folder_lock:
                folder_lock.acquire()
            base_spec.check_database(settings)
            locks_by_base_name[base_name] = folder_lock
        except (FolderInUse, InvalidSetting) as error:
            absence_reason_by_base[base_name] = error.message
    return locks_by_base_name, absence_reason_by_base
