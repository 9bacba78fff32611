"""Runs an operator's command in the process that owns a base's folder, over loopback only."""

import hmac
import json
import logging
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Scope

from readingroom.core.errors import InternalError, InvalidArguments, KnowledgeError
from readingroom.protocol.command import ADMIN_PATH_PREFIX, Command
from readingroom.server.auth.bearer import INVALID_TOKEN_MESSAGE, get_client_ip, log_refusal
from readingroom.server.errors import Unauthorized, UnknownCommand
from readingroom.server.http.addresses import is_loopback

logger = logging.getLogger(__name__)

_COMMAND_PATH_PATTERN = re.compile(ADMIN_PATH_PREFIX + "[^/]+")

ReportLine = dict[str, Any]


class AdminKey:
    """The key of the admin route, which only processes that may read the owner's file know."""

    def __init__(self, admin_key: str) -> None:
        self._key = admin_key.encode()

    def protects_path(self, request_path: str) -> bool:
        """Whether a path asks for this key, and for no other."""
        return _COMMAND_PATH_PATTERN.fullmatch(request_path) is not None

    def authorizes_request(self, scope: Scope) -> bool:
        """Whether a request carries the key, and comes from this machine."""
        authorization_header = dict(scope["headers"]).get(b"authorization", b"")
        auth_scheme, _, sent_key = authorization_header.partition(b" ")
        is_valid_key = auth_scheme == b"Bearer" and hmac.compare_digest(sent_key, self._key)
        return is_valid_key and is_loopback(get_client_ip(scope))


class AdminEndpoint:
    """`POST /admin/{command}`: takes JSON, streams a line per step, then the result or error."""

    def __init__(
        self,
        command_types_by_name: Mapping[str, type[Command]],
        services_by_base_name: Mapping[str, Any],
        admin_key: AdminKey,
    ) -> None:
        self._command_types = command_types_by_name
        self._services_by_base = services_by_base_name
        self._admin_key = admin_key

    async def run_command(self, request: Request) -> Response:
        """Run a command and stream its lines. Raise what a bad key, name or argument deserves."""
        if not self._admin_key.authorizes_request(request.scope):
            # One refusal for a wrong key and another machine: it must not learn that its key is
            # right.
            refusal_error = Unauthorized(INVALID_TOKEN_MESSAGE)
            log_refusal(refusal_error, request.scope)
            raise refusal_error
        base_command = await self._read_command(request)
        report_lines = _stream_report_lines(base_command, self._services_by_base[base_command.base])
        return StreamingResponse(report_lines, media_type="application/x-ndjson")

    async def _read_command(self, request: Request) -> Command:
        command_name = request.path_params["command"]
        command_type = self._command_types.get(command_name)
        if command_type is None or command_type.base not in self._services_by_base:
            raise UnknownCommand(f"This server has no command {command_name!r}")
        try:
            return command_type.model_validate_json(await request.body())
        except ValidationError as error:
            raise InvalidArguments.from_validation_error(error) from error


async def _stream_report_lines(base_command: Command, base_service: Any) -> AsyncIterator[str]:
    """Run a command and yield what it reports, line by line; it stops when the reader leaves."""
    # Bounded: a reader that stalls makes the command wait, and no memory fills.
    report_send_stream, report_receive_stream = anyio.create_memory_object_stream[ReportLine](16)
    async with anyio.create_task_group() as task_group:
        task_group.start_soon(_run_command, base_command, base_service, report_send_stream)
        async with report_receive_stream:
            async for report_line in report_receive_stream:
                yield json.dumps(report_line, ensure_ascii=False) + "\n"


async def _run_command(
    base_command: Command, base_service: Any, report_send_stream: MemoryObjectSendStream[ReportLine]
) -> None:
    async def report_progress(
        done_count: float, total_count: float | None, progress_message: str | None
    ) -> None:
        await report_send_stream.send(
            {"progress": {"done": done_count, "total": total_count, "message": progress_message}}
        )

    async with report_send_stream:
        try:
            command_result = await base_command.run(base_service, report_progress)
            await report_send_stream.send({"result": command_result.model_dump(mode="json")})
        except Exception as failure:
            await report_send_stream.send({"error": _make_error_report(failure, base_command.name)})


def _make_error_report(command_error: Exception, command_name: str) -> ReportLine:
    if not isinstance(command_error, KnowledgeError):
        logger.error("unexpected failure in the command %s", command_name, exc_info=command_error)
        command_error = InternalError("The command failed; the server's log has the reason.")
    return {
        "code": command_error.code,
        "message": command_error.message,
        "hint": dict(command_error.hint),
    }
