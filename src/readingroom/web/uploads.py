"""Files uploaded in a form: written to disk as they arrive, a few at once, up to the size limit.

Programs send one file in the field `file`; the forms of our own pages send many.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import anyio
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import FormParser, MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.types import Message, Receive

from readingroom.core.errors import FileTooLarge, InvalidRequest
from readingroom.core.ids import current_caller_id
from readingroom.core.work_slots import WorkSlots
from readingroom.web.disconnect import CALLER_LEFT_STATUS

logger = logging.getLogger(__name__)

_FORM_OVERHEAD_BYTES = 64 * 1024  # for the other fields and the boundaries around the file
_MAX_UPLOAD_FIELDS = 20
_MAX_PAGE_FIELDS = 2000
_MAX_PAGE_FILES = 200
"""Files in one form of a page: the documents of a large application."""
_MAX_SILENT_SECONDS = 60.0
"""Between two parts of a body: a sender that stalls gives up its place."""
_UPLOAD_SLOTS = WorkSlots(slots_per_caller=3)
"""Uploads that are received at once, four in all."""
_SLOW_START_GRACE_SECONDS = 10.0
_MIN_BYTES_PER_SECOND = 256 * 1024
"""While others wait, an upload that is slower than this, and has had its grace, gives way."""
_SECONDS_BETWEEN_CHECKS = 1.0


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """The name of an uploaded file, and the form's other fields."""

    file_name: str
    fields: dict[str, str]


def make_upload_form_openapi(
    file_description: str, *, required_fields: Sequence[str] = (), **form_fields: dict[str, Any]
) -> dict[str, Any]:
    """Return the `openapi_extra` of a FastAPI route that takes a form with a field `file`."""
    file_schema = {"type": "string", "format": "binary", "description": file_description}
    form_schema = {
        "type": "object",
        "required": ["file", *required_fields],
        "properties": {"file": file_schema, **form_fields},
    }
    return {
        "requestBody": {
            "required": True,
            "content": {"multipart/form-data": {"schema": form_schema}},
        }
    }


async def receive_upload(request: Request, spool_path: Path, max_bytes: int) -> UploadedFile:
    """Write the form's field `file` to `spool_path`, and return its name and the other fields.

    Wait while as many uploads are received as may be. Raise `InvalidRequest` for a form without a
    file, `FileTooLarge` for one with too large a file, and `HTTPException` for what is no form.
    """
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise _make_missing_file_error()
    spool_path.parent.mkdir(parents=True, exist_ok=True)
    async with _UPLOAD_SLOTS.hold_slot(current_caller_id.get()):
        with spool_path.open("wb") as spool_file:
            upload_form = await _parse_multipart_form(request, lambda: spool_file, max_bytes)
    uploaded_file = upload_form.get("file")
    if not isinstance(uploaded_file, UploadFile):
        raise _make_missing_file_error()
    other_fields = {
        field_name: field_value
        for field_name, field_value in upload_form.items()
        if isinstance(field_value, str)
    }
    return UploadedFile(uploaded_file.filename or "", other_fields)


@dataclass(frozen=True, slots=True)
class PageForm:
    """What a form of one of our own pages carried."""

    fields: dict[str, str]
    files: list[tuple[str, Path]]
    """The name that the browser gave each file, and where it was written."""


async def receive_form(
    request: Request, make_spool_path: Callable[[], Path], max_file_bytes: int, max_field_bytes: int
) -> PageForm:
    """Return the fields of a form, and its files, each written to a path of `make_spool_path`.

    No file is left behind when this raises: `FileTooLarge` for files that are too large together,
    and `HTTPException` for what is no form.
    """
    content_type = request.headers.get("content-type", "").lower()
    if not content_type and request.headers.get("content-length", "0") == "0":
        return PageForm({}, [])  # a form without fields
    if content_type.startswith("application/x-www-form-urlencoded"):
        limited_request = Request(request.scope, _make_limited_receive(request, max_field_bytes))
        upload_form = await FormParser(
            request.headers, _limit_field_count(limited_request.stream())
        ).parse()
        return PageForm(
            {
                field_name: field_value
                for field_name, field_value in upload_form.items()
                if isinstance(field_value, str)
            },
            [],
        )
    if not content_type.startswith("multipart/form-data"):
        raise HTTPException(415, "This page takes forms, and nothing else")
    spool_paths: list[Path] = []
    with ExitStack() as open_files_stack:

        def open_spool() -> IO[bytes]:
            spool_path = make_spool_path()
            spool_path.parent.mkdir(parents=True, exist_ok=True)
            spool_paths.append(spool_path)
            return open_files_stack.enter_context(spool_path.open("wb"))

        try:
            async with _UPLOAD_SLOTS.hold_slot(current_caller_id.get()):
                max_file_count = _MAX_PAGE_FILES if max_file_bytes else 0
                upload_form = await _parse_multipart_form(
                    request, open_spool, max_file_bytes, max_file_count
                )
        except BaseException:
            for spool_path in spool_paths:
                spool_path.unlink(missing_ok=True)
            raise
    return _collect_form(upload_form, spool_paths)


async def _limit_field_count(body_blocks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the blocks of a form. Raise HTTPException when it has more fields than any page."""
    field_count = 0
    async for body_block in body_blocks:
        field_count += body_block.count(b"&") + body_block.count(b";")
        if field_count > _MAX_PAGE_FIELDS:
            raise HTTPException(400, "The form has too many fields")
        yield body_block


def _collect_form(upload_form: FormData, spool_paths: Sequence[Path]) -> PageForm:
    """Return a form's fields and files; a field for files that was left empty counts as none."""
    text_fields = {
        field_name: field_value
        for field_name, field_value in upload_form.items()
        if isinstance(field_value, str)
    }
    uploaded_files = [
        field_value
        for _, field_value in upload_form.multi_items()
        if isinstance(field_value, UploadFile)
    ]
    names_and_spool_paths = []
    # One path was made for each file, in the order of the form.
    for uploaded_file, spool_path in zip(uploaded_files, spool_paths, strict=True):
        if uploaded_file.filename:
            names_and_spool_paths.append((uploaded_file.filename, spool_path))
        else:
            spool_path.unlink(missing_ok=True)
    return PageForm(text_fields, names_and_spool_paths)


class _SpoolingParser(MultiPartParser):
    """Writes each file of a form to what `open_spool` opens, as it arrives.

    Starlette alone writes it to the folder for temporary files, which may be in memory.
    """

    open_spool: Callable[[], IO[bytes]]

    def on_headers_finished(self) -> None:
        super().on_headers_finished()
        form_part = self._current_part
        if form_part.file is not None:
            # Starlette has just opened it, for a temporary file that is not wanted.
            form_part.file.file.close()
            form_part.file.file = self.open_spool()  # type: ignore[assignment]


async def _parse_multipart_form(
    request: Request, open_spool: Callable[[], IO[bytes]], max_bytes: int, max_file_count: int = 1
) -> FormData:
    # Counted as it arrives: Content-Length may be missing, or wrong.
    limited_request = Request(request.scope, _make_limited_receive(request, max_bytes))
    _check_charset(request)
    # A form may otherwise have parts without end.
    form_parser = _SpoolingParser(
        request.headers,
        limited_request.stream(),
        max_files=max_file_count,
        max_fields=_MAX_UPLOAD_FIELDS,
    )
    form_parser.open_spool = open_spool
    try:
        return await form_parser.parse()
    except MultiPartException as error:
        raise HTTPException(400, error.message) from error


def _check_charset(request: Request) -> None:
    """Raise HTTPException unless a form is in UTF-8: some of Python's codecs take minutes."""
    _, content_type_parameters = parse_options_header(request.headers.get("content-type", ""))
    charset_name = (
        content_type_parameters.get(b"charset", b"utf-8").decode("latin-1").strip().lower()
    )
    if charset_name not in ("utf-8", "utf8"):
        raise HTTPException(415, "Forms are sent in UTF-8")


def _make_limited_receive(request: Request, max_bytes: int) -> Receive:
    """Return the request's `receive` that fails when the body is too large, stalls, is broken off,
    or must give way because it is slow and others wait.
    """
    received_byte_count = 0
    upload_began_at = anyio.current_time()

    async def receive() -> Message:
        nonlocal received_byte_count
        receive_called_at = anyio.current_time()
        while True:
            elapsed_seconds = anyio.current_time() - upload_began_at
            is_upload_slow = received_byte_count < elapsed_seconds * _MIN_BYTES_PER_SECOND
            if (
                elapsed_seconds > _SLOW_START_GRACE_SECONDS
                and is_upload_slow
                and _UPLOAD_SLOTS.has_waiting_callers
            ):
                raise HTTPException(408, "The upload is slow, and others wait; send it again later")
            if anyio.current_time() - receive_called_at > _MAX_SILENT_SECONDS:
                raise HTTPException(408, "The upload stalled; send it again")
            with anyio.move_on_after(_SECONDS_BETWEEN_CHECKS):
                asgi_message = await request.receive()
                break
        if asgi_message["type"] == "http.disconnect":
            logger.info("the sender of a form left before all of it had arrived")
            raise HTTPException(CALLER_LEFT_STATUS, "The caller left before the form had arrived")
        received_byte_count += len(asgi_message.get("body", b""))
        if received_byte_count > max_bytes + _FORM_OVERHEAD_BYTES:
            raise FileTooLarge(f"The file is larger than {max_bytes // 2**20} MB")
        return asgi_message

    return receive


def _make_missing_file_error() -> InvalidRequest:
    return InvalidRequest([{"field": "file", "message": "a file is required"}])
