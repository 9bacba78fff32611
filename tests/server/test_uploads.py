"""Uploads: written where they are kept, four at once, and only while they arrive."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from readingroom.core.errors import FileTooLarge, InvalidRequest
from readingroom.core.ids import current_caller_id
from readingroom.web import uploads
from readingroom.web.uploads import UploadedFile, receive_form, receive_upload
from tests.requirements import requirement
from tests.support.kit import HANG_SECONDS

pytestmark = pytest.mark.anyio

CONTENT = bytes(range(256)) * 16_384  # 4 MB
LARGEST = 8 * 2**20


def make_form(content: bytes, field: str = "file") -> bytes:
    return (
        b"--x\r\nContent-Disposition: form-data; name=notes\r\n\r\nof a plan\r\n"
        b"--x\r\nContent-Disposition: form-data; name="
        + field.encode()
        + b"; filename=a.pdf\r\n\r\n"
        b"" + content + b"\r\n--x--\r\n"
    )


def make_receiver(body: bytes) -> Receive:
    blocks = (body[start : start + 65_536] for start in range(0, len(body), 65_536))
    messages: Iterator[Message] = (
        {"type": "http.request", "body": block, "more_body": True} for block in blocks
    )

    async def receive() -> Message:
        return next(messages, {"type": "http.request", "body": b"", "more_body": False})

    return receive


def make_request(
    receive: Receive, content_type: str = "multipart/form-data; boundary=x"
) -> Request:
    headers = [(b"content-type", content_type.encode())]
    return Request({"type": "http", "method": "POST", "headers": headers}, receive)


@requirement("ingest:caller-left")
async def test_a_form_that_is_broken_off_is_a_line_of_the_log_and_no_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    messages: Iterator[Message] = iter(
        [{"type": "http.request", "body": make_form(CONTENT)[:1000], "more_body": True}]
    )

    async def receive() -> Message:
        return next(messages, {"type": "http.disconnect"})

    with caplog.at_level("INFO", uploads.logger.name), pytest.raises(HTTPException) as caught:
        await receive_form(make_request(receive), lambda: tmp_path / "a", LARGEST, LARGEST)

    assert caught.value.status_code == 499
    told = [record.levelname for record in caplog.records if record.name == uploads.logger.name]
    assert told == ["INFO"]
    assert not (tmp_path / "a").exists()


@requirement("ingest:uploads")
async def test_a_file_is_written_where_it_is_kept_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    spool = tmp_path / "uploads" / "a"

    upload = await receive_upload(make_request(make_receiver(make_form(CONTENT))), spool, LARGEST)

    assert upload == UploadedFile("a.pdf", {"notes": "of a plan"})
    assert spool.read_bytes() == CONTENT


@requirement("ingest:uploads")
async def test_what_is_no_upload_is_refused(tmp_path: Path) -> None:
    spool = tmp_path / "a"
    with pytest.raises(FileTooLarge):
        await receive_upload(make_request(make_receiver(make_form(CONTENT))), spool, 2**20)
    with pytest.raises(InvalidRequest):
        await receive_upload(
            make_request(make_receiver(make_form(CONTENT, "other"))), spool, LARGEST
        )
    with pytest.raises(InvalidRequest):
        await receive_upload(make_request(make_receiver(b"{}"), "application/json"), spool, LARGEST)
    for broken in (b"--y", make_form(CONTENT)[:-10], b"--x\r\n\r\n"):
        with pytest.raises((HTTPException, InvalidRequest)):
            await receive_upload(make_request(make_receiver(broken)), spool, LARGEST)


@requirement("ingest:uploads")
async def test_four_are_received_at_once_and_three_of_one_caller(tmp_path: Path) -> None:
    all_may_arrive = anyio.Event()
    begun: list[str] = []

    async def send_slowly(caller: str, number: int) -> None:
        current_caller_id.set(caller)
        deliver = make_receiver(make_form(b"content"))

        async def receive() -> Message:
            if not all_may_arrive.is_set():
                begun.append(caller)
                await all_may_arrive.wait()
            return await deliver()

        await receive_upload(make_request(receive), tmp_path / f"{caller}{number}", LARGEST)

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(send_slowly, "greedy", number)
        await anyio.wait_all_tasks_blocked()
        for number in range(3):
            tasks.start_soon(send_slowly, "modest", number)
        await anyio.wait_all_tasks_blocked()
        assert begun == ["greedy"] * 3 + ["modest"]
        all_may_arrive.set()

    assert {path.read_bytes() for path in tmp_path.iterdir()} == {b"content"}
    assert len([*tmp_path.iterdir()]) == 8


@requirement("ingest:uploads")
async def test_a_sender_that_stalls_gives_up_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "_MAX_SILENT_SECONDS", 0.05)
    monkeypatch.setattr(uploads, "_SECONDS_BETWEEN_CHECKS", 0.01)

    async def receive() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    with pytest.raises(HTTPException, match="stalled"):
        await receive_upload(make_request(receive), tmp_path / "a", LARGEST)


@requirement("ingest:uploads")
async def test_slow_uploads_of_two_callers_give_way_to_a_third(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They never pause for long and never end, and have all four places."""
    monkeypatch.setattr(uploads, "_SLOW_START_GRACE_SECONDS", 0.1)
    monkeypatch.setattr(uploads, "_SECONDS_BETWEEN_CHECKS", 0.01)
    refused: list[str] = []

    async def trickle() -> Message:
        await anyio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def upload_slowly(caller: str, number: int) -> None:
        current_caller_id.set(caller)
        try:
            await receive_upload(make_request(trickle), tmp_path / f"{caller}{number}", LARGEST)
        except HTTPException as error:
            assert error.status_code == 408
            refused.append(error.detail)

    async with anyio.create_task_group() as slow_uploads:
        for caller, number in (("ann", 1), ("ann", 2), ("bob", 1), ("bob", 2)):
            slow_uploads.start_soon(upload_slowly, caller, number)
        await anyio.sleep(0.3)
        assert not refused, "nobody else wants their places"
        current_caller_id.set("cyd")
        with anyio.fail_after(HANG_SECONDS):
            await receive_upload(
                make_request(make_receiver(make_form(CONTENT))), tmp_path / "cyd", LARGEST
            )
        slow_uploads.cancel_scope.cancel()

    assert (tmp_path / "cyd").read_bytes() == CONTENT
    assert refused
    assert all("others wait" in detail for detail in refused)


@requirement("ingest:uploads")
@pytest.mark.parametrize("charset", ["punycode", "utf-7", "raw_unicode_escape", "undefined", "é"])
async def test_a_form_chooses_no_codec(tmp_path: Path, charset: str) -> None:
    content_type = f"multipart/form-data; boundary=x; charset={charset}"
    headers = [(b"content-type", content_type.encode("latin-1"))]
    sent = Request(
        {"type": "http", "method": "POST", "headers": headers}, make_receiver(make_form(b"text"))
    )
    with pytest.raises(HTTPException, match="UTF-8") as refusal:
        await receive_upload(sent, tmp_path / "a", LARGEST)
    assert refusal.value.status_code == 415
