"""Files uploaded in a form: written to disk as they arrive, up to the size limit."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.types import Message, Receive

from readingroom.core.errors import FileTooLarge, InvalidRequest

_FORM_OVERHEAD = 64 * 1024  # for the other fields and the boundaries around the file
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Upload:
    """The name of an uploaded file, and the form's other fields."""

    name: str
    fields: dict[str, str]


def describe_upload_form(
    file: str, *, required: Sequence[str] = (), **fields: dict[str, Any]
) -> dict[str, Any]:
    """Return the `openapi_extra` of a FastAPI route that takes a form with a field `file`."""
    file_schema = {"type": "string", "format": "binary", "description": file}
    schema = {
        "type": "object",
        "required": ["file", *required],
        "properties": {"file": file_schema, **fields},
    }
    return {
        "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}
    }


async def receive_upload(request: Request, spool: Path, max_bytes: int) -> Upload:
    """Write the form's field `file` to `spool`. Raise InvalidRequest or FileTooLarge."""
    # Counted as it arrives: Content-Length may be missing, or wrong.
    limited = Request(request.scope, _limit_body(request, max_bytes))
    try:
        # A form may otherwise have parts without end.
        async with limited.form(max_files=1, max_fields=10) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise InvalidRequest([{"field": "file", "message": "a file is required"}])
            await anyio.Path(spool.parent).mkdir(parents=True, exist_ok=True)
            async with await anyio.open_file(spool, "wb") as copy:
                while block := await file.read(_BLOCK):
                    await copy.write(block)
            texts = {name: value for name, value in form.items() if isinstance(value, str)}
            return Upload(file.filename or "", texts)
    except MultiPartException as error:
        raise InvalidRequest([{"field": "body", "message": error.message}]) from error


def _limit_body(request: Request, max_bytes: int) -> Receive:
    received = 0

    async def receive() -> Message:
        nonlocal received
        message = await request.receive()
        received += len(message.get("body", b""))
        if received > max_bytes + _FORM_OVERHEAD:
            raise FileTooLarge(f"The file is larger than {max_bytes // 2**20} MB")
        return message

    return receive
