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

from readingroom.core.errors import Internal, InvalidArguments, KnowledgeError
from readingroom.protocol.command import ADMIN_PREFIX, Command
from readingroom.server.auth.keys import INVALID, client_ip, log_refusal
from readingroom.server.errors import Unauthorized, UnknownCommand
from readingroom.server.http.addresses import is_loopback

logger = logging.getLogger(__name__)

PATH = re.compile(ADMIN_PREFIX + "[^/]+")

Line = dict[str, Any]


class Admin:
    """`POST /admin/{command}`: JSON in, a line for each step, then the result or the error."""

    def __init__(
        self, commands: Mapping[str, type[Command]], services: Mapping[str, Any], key: str
    ) -> None:
        self._commands = commands
        self._services = services
        self._key = key.encode()

    async def run(self, request: Request) -> Response:
        self._check(request)
        command = await self._command(request)
        lines = _lines(command, self._services[command.base])
        return StreamingResponse(lines, media_type="application/x-ndjson")

    def _check(self, request: Request) -> None:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        right = scheme == "Bearer" and hmac.compare_digest(given.encode(), self._key)
        if not right or not is_loopback(client_ip(request.scope)):
            refusal = Unauthorized(INVALID)
            log_refusal(refusal, request.scope)
            raise refusal

    async def _command(self, request: Request) -> Command:
        kind = self._commands.get(request.path_params["command"])
        if kind is None or kind.base not in self._services:
            raise UnknownCommand(f"No command {request.path_params['command']!r} is served here")
        try:
            return kind.model_validate_json(await request.body())
        except ValidationError as error:
            raise InvalidArguments.of(error) from error


async def _lines(command: Command, service: Any) -> AsyncIterator[str]:
    """What the command says while it runs, each as a line; a reader who leaves stops it."""
    saying, heard = anyio.create_memory_object_stream[Line](16)
    async with anyio.create_task_group() as running:
        running.start_soon(_run, command, service, saying)
        async with heard:
            async for line in heard:
                yield json.dumps(line, ensure_ascii=False) + "\n"


async def _run(command: Command, service: Any, saying: MemoryObjectSendStream[Line]) -> None:
    async def report(done: float, total: float | None, message: str | None) -> None:
        await saying.send({"progress": {"done": done, "total": total, "message": message}})

    async with saying:
        try:
            result = await command.run(service, report)
            await saying.send({"result": result.model_dump(mode="json")})
        except Exception as failure:
            await saying.send({"error": _told(failure, command.name)})


def _told(failure: Exception, name: str) -> Line:
    if not isinstance(failure, KnowledgeError):
        logger.error("unexpected failure in the command %s", name, exc_info=failure)
        failure = Internal("The command failed; the server's log has the reason.")
    return {"code": failure.code, "message": failure.message, "hint": dict(failure.hint)}
