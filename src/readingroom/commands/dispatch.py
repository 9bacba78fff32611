"""Runs a command here, or sends it to the process that owns the base's folder."""

import json
from collections.abc import Mapping
from typing import Any

import httpx2

from readingroom.bases.documents.commands import DOCUMENTS_COMMANDS
from readingroom.bases.policy.commands import POLICY_COMMANDS
from readingroom.commands.errors import OwnerRefused, OwnerUnreachable
from readingroom.core.errors import KnowledgeError
from readingroom.core.progress import ReportProgress
from readingroom.core.settings import Settings
from readingroom.federation.commands import DESK_COMMANDS
from readingroom.net.http import make_async_client
from readingroom.protocol.base import KnowledgeBase
from readingroom.protocol.command import Command
from readingroom.protocol.sample import marked_document
from readingroom.server.catalogue import OFFERS, Offer
from readingroom.server.http.admin import PREFIX
from readingroom.storage.errors import FolderInUse
from readingroom.storage.lock import FolderLock, Owner, owner_of

# The commands an owner runs for others, by name: those of bases whose folder has one owner.
_ALL: tuple[type[Command], ...] = (*POLICY_COMMANDS, *DOCUMENTS_COMMANDS, *DESK_COMMANDS)
COMMANDS = {command.name: command for command in _ALL}


async def dispatch(
    command: Command,
    settings: Settings,
    report: ReportProgress,
    offers: Mapping[str, Offer] = OFFERS,
) -> dict[str, Any]:
    """The command's result, as JSON, wherever it ran."""
    result = await _dispatched(command, settings, report, offers)
    return dict(marked_document(result)) if settings.sample else result


async def _dispatched(
    command: Command, settings: Settings, report: ReportProgress, offers: Mapping[str, Offer]
) -> dict[str, Any]:
    lock = FolderLock(settings.data / command.base)
    try:
        lock.acquire()
    except FolderInUse:
        owner = owner_of(lock.path.parent)
        if owner is None:  # it holds the folder but has not said where it answers
            raise
        return await _by_owner(command, owner, report)
    try:
        return await _here(command, offers[command.base].open(settings), report)
    finally:
        lock.release()


async def _here(command: Command, base: KnowledgeBase, report: ReportProgress) -> dict[str, Any]:
    # Carried out by hand: an error that leaves a running base by itself comes wrapped in a group.
    async with base.running():
        try:
            return (await command.run(base.service, report)).model_dump(mode="json")
        except KnowledgeError as error:
            failure = error
    raise failure


async def _by_owner(command: Command, owner: Owner, report: ReportProgress) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {owner.key}"}
    timeout = httpx2.Timeout(10, read=None)  # a long command is silent between its steps
    try:
        # Not verified: a server's certificate names the host that others know it by, not loopback.
        async with (
            make_async_client(timeout=timeout, verify=False) as client,
            client.stream(
                "POST",
                f"{owner.url}{PREFIX}{command.name}",
                content=command.model_dump_json(),
                headers=headers,
            ) as response,
        ):
            return await _result(response, report)
    except httpx2.TransportError as error:
        raise OwnerUnreachable(
            f"The server at {owner.url} (process {owner.pid}) owns the folder but does not "
            "answer; end it, and run this again"
        ) from error


async def _result(response: httpx2.Response, report: ReportProgress) -> dict[str, Any]:
    if response.status_code != 200:
        refused = json.loads(await response.aread())["error"]
        raise OwnerRefused(refused["code"], refused["message"], refused.get("hint", {}))
    async for text in response.aiter_lines():
        match json.loads(text):
            case {"progress": step}:
                await report(step["done"], step["total"], step["message"])
            case {"error": told}:
                raise OwnerRefused(told["code"], told["message"], told["hint"])
            case {"result": dict(result)}:
                return result
    raise OwnerUnreachable("The server ended before the command did; run it again")
