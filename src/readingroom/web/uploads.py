"""A file that comes in a form: to disk as it comes, and no further than the limit."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.types import Message

from readingroom.core.errors import FileTooLarge, InvalidRequest

_FORM_ROOM = 64 * 1024  # what the other fields and the boundaries may add to a file
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Received:
    """The name a file was sent under, and the form's other fields."""

    name: str
    fields: dict[str, str]


def upload_form(
    file: str, *, required: Sequence[str] = (), **fields: dict[str, Any]
) -> dict[str, Any]:
    """A form with a field `file`, as FastAPI's `openapi_extra` describes it."""
    described = {"type": "string", "format": "binary", "description": file}
    schema = {
        "type": "object",
        "required": ["file", *required],
        "properties": {"file": described, **fields},
    }
    return {
        "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}
    }


async def received(request: Request, spool: Path, largest: int) -> Received:
    """Write the form's field `file` to `spool`."""
    limited = Request(request.scope, _counted(request, largest))
    try:
        async with limited.form(max_files=1, max_fields=10) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise InvalidRequest([{"field": "file", "message": "a file is wanted"}])
            await anyio.Path(spool.parent).mkdir(parents=True, exist_ok=True)
            async with await anyio.open_file(spool, "wb") as copy:
                while block := await file.read(_BLOCK):
                    await copy.write(block)
            texts = {name: value for name, value in form.items() if isinstance(value, str)}
            return Received(file.filename or "", texts)
    except MultiPartException as error:
        raise InvalidRequest([{"field": "body", "message": error.message}]) from error


def _counted(request: Request, largest: int) -> Any:
    taken = 0

    async def receive() -> Message:
        nonlocal taken
        message = await request.receive()
        taken += len(message.get("body", b""))
        if taken > largest + _FORM_ROOM:
            raise FileTooLarge(f"The file is larger than {largest // 2**20} MB")
        return message

    return receive
