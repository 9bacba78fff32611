"""Runs a command here, or sends it to the process that owns the base's folder."""

import json
import tempfile
from pathlib import Path
from typing import Any

import httpx2

from readingroom.console.errors import OwnerRefused, OwnerUnreachable
from readingroom.core.errors import KnowledgeError
from readingroom.core.progress import ReportProgress
from readingroom.core.settings import RoomSettings
from readingroom.net.http import make_async_client
from readingroom.protocol.command import ADMIN_PATH_PREFIX, Command, is_opened_for_command
from readingroom.protocol.sample import mark_sample_document
from readingroom.protocol.spec import BaseSpec, KnowledgeBase
from readingroom.storage.errors import FolderInUse
from readingroom.storage.lock import FolderLock, FolderOwner, read_folder_owner


async def dispatch_command(
    base_command: Command,
    base_spec: BaseSpec,
    settings: RoomSettings,
    report_progress: ReportProgress,
) -> dict[str, Any]:
    """Return the command's result as JSON, wherever it ran.

    Raise what the command raised, `FolderInUse` when the owner has not said where it answers yet,
    or `OwnerUnreachable` when it does not answer.
    """
    command_result = await _run_here_or_send(base_command, base_spec, settings, report_progress)
    return dict(mark_sample_document(command_result)) if settings.is_sample else command_result


async def _run_here_or_send(
    base_command: Command,
    base_spec: BaseSpec,
    settings: RoomSettings,
    report_progress: ReportProgress,
) -> dict[str, Any]:
    if base_spec.locks_folder and not base_spec.needs_folder_lock(settings):
        return await _run_here(base_command, base_spec.open_base(settings), report_progress)
    if base_command.reads_only and not (settings.data / base_command.base).exists():
        return await _run_without_base_folder(base_command, base_spec, settings, report_progress)
    # Trying the lock is the only way to know: an address in the file may be a dead server's.
    folder_lock = FolderLock(settings.data / base_command.base)
    try:
        folder_lock.acquire()
    except FolderInUse:
        folder_owner = read_folder_owner(folder_lock.path.parent)
        if folder_owner is None:  # it holds the folder but has not said where it answers
            raise
        return await _send_to_owner(base_command, folder_owner, report_progress)
    try:
        return await _run_here(base_command, base_spec.open_base(settings), report_progress)
    finally:
        folder_lock.release()


async def _run_without_base_folder(
    base_command: Command,
    base_spec: BaseSpec,
    settings: RoomSettings,
    report_progress: ReportProgress,
) -> dict[str, Any]:
    """Return the result of a command that reads a base of which there is nothing, and make nothing.

    It runs on an empty directory that goes afterwards.
    """
    with tempfile.TemporaryDirectory(prefix="readingroom-") as scratch_folder:
        models_folder = (
            settings.models_folder
            if settings.models_folder.exists()
            else Path(scratch_folder) / "models"
        )
        replaced_setting_values: dict[str, Path] = {"models_dir": models_folder}
        if not base_spec.is_view:
            replaced_setting_values["data"] = Path(scratch_folder)
        opened_base = base_spec.open_base(settings.model_copy(update=replaced_setting_values))
        return await _run_here(base_command, opened_base, report_progress)


async def _run_here(
    base_command: Command, opened_base: KnowledgeBase, report_progress: ReportProgress
) -> dict[str, Any]:
    opening_token = is_opened_for_command.set(True)
    try:
        # Raised outside of the block: inside, the base's task group would wrap it in a group.
        async with opened_base.lifespan():
            try:
                return (await base_command.run(opened_base.service, report_progress)).model_dump(
                    mode="json"
                )
            except KnowledgeError as error:
                command_error = error
        raise command_error
    finally:
        is_opened_for_command.reset(opening_token)


async def _send_to_owner(
    base_command: Command, folder_owner: FolderOwner, report_progress: ReportProgress
) -> dict[str, Any]:
    request_headers = {"Authorization": f"Bearer {folder_owner.key}"}
    http_timeout = httpx2.Timeout(10, read=None)  # a long command is silent between its steps
    try:
        # Not verified: a server's certificate names the host that others know it by, not loopback.
        async with (
            make_async_client(timeout=http_timeout, verify=False) as http_client,
            http_client.stream(
                "POST",
                f"{folder_owner.url}{ADMIN_PATH_PREFIX}{base_command.name}",
                content=base_command.model_dump_json(),
                headers=request_headers,
            ) as response,
        ):
            return await _read_streamed_result(response, report_progress)
    except httpx2.TransportError as error:
        raise OwnerUnreachable(
            f"The server at {folder_owner.url} (process {folder_owner.pid}) owns the folder "
            "but does not answer; end it, and run this again"
        ) from error


async def _read_streamed_result(
    response: httpx2.Response, report_progress: ReportProgress
) -> dict[str, Any]:
    if response.status_code != 200:
        error_fields = json.loads(await response.aread())["error"]
        raise OwnerRefused(
            error_fields["code"], error_fields["message"], error_fields.get("hint", {})
        )
    async for response_line in response.aiter_lines():
        match json.loads(response_line):
            case {"progress": progress_step}:
                await report_progress(
                    progress_step["done"], progress_step["total"], progress_step["message"]
                )
            case {"error": error_fields}:
                raise OwnerRefused(
                    error_fields["code"], error_fields["message"], error_fields["hint"]
                )
            case {"result": dict(command_result)}:
                return command_result
    raise OwnerUnreachable("The server ended before the command did; run it again")
