"""A REST request whose caller has left costs nothing more."""

import socket
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import pypdfium2
import pytest
from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import Message

from readingroom.core.errors import FileTooLarge
from readingroom.web.disconnect import run_while_connected
from tests.requirements import requirement
from tests.support.kit import serve_room
from tests.support.papers import encode_image, make_paper
from tests.support.processes import list_descendants, wait_until


async def stay() -> Message:
    await anyio.sleep_forever()
    raise AssertionError


async def leave() -> Message:
    return {"type": "http.disconnect"}


@pytest.mark.anyio
@requirement("ingest:caller-left")
async def test_work_ends_when_its_caller_leaves_and_is_else_untouched() -> None:
    scope = {"type": "http", "method": "POST", "headers": []}
    has_ended = False

    async def work_forever() -> None:
        nonlocal has_ended
        try:
            await anyio.sleep_forever()
        finally:
            has_ended = True

    async def succeed() -> str:
        await anyio.lowlevel.checkpoint()
        return "result"

    async def fail() -> str:
        raise FileTooLarge("too large")

    with pytest.raises(HTTPException, match="left"):
        await run_while_connected(Request(scope, leave), work_forever)
    assert has_ended
    assert await run_while_connected(Request(scope, stay), succeed) == "result"
    with pytest.raises(FileTooLarge, match="too large"):
        await run_while_connected(Request(scope, stay), fail)


def make_scans(count: int) -> bytes:
    """A TIFF whose pages take tesseract minutes."""
    with pypdfium2.PdfDocument(make_paper("Words that take a while to read. " * 60)) as document:
        picture = document[0].render(scale=200 / 72, grayscale=True).to_pil().convert("1")
    pages = [picture] * count
    return encode_image(
        pages[0], "TIFF", save_all=True, append_images=pages[1:], compression="group4"
    )


def list_reading_processes(server: int) -> set[int]:
    """The processes of a server that read documents, tesseract among them."""
    return {
        process
        for process in list_descendants(server)
        if any(name in read_command_line(process) for name in ("ingest.read.worker", "tesseract"))
    }


def read_command_line(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


@requirement("ingest:caller-left")
def test_an_upload_is_read_no_further_once_its_sender_has_left(tmp_path: Path) -> None:
    body = (
        b"--x\r\nContent-Disposition: form-data; name=file; filename=scans.tiff\r\n\r\n"
        + make_scans(300)
        + b"\r\n--x--\r\n"
    )
    with serve_room("documents", data=tmp_path) as served:
        address = urlsplit(served.url)
        head = (
            "POST /api/v1/documents?application_ref=26/1/FUL HTTP/1.1\r\n"
            f"Host: {address.netloc}\r\nContent-Length: {len(body)}\r\n"
            "Content-Type: multipart/form-data; boundary=x\r\n\r\n"
        )
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(head.encode() + body)
            wait_until(lambda: bool(list_reading_processes(served.process.pid)))
        wait_until(lambda: not list_reading_processes(served.process.pid))
        uploads = tmp_path / "documents" / "uploads"
        wait_until(lambda: not [*uploads.iterdir()])
        listed = served.get("/api/v1/documents?application_ref=26/1/FUL").json()

    assert listed["documents"] == []
