"""Bodies over the limit: refused on every REST route that writes, before anything parses them."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from fastapi import APIRouter

from readingroom.bases import BASES
from readingroom.server.settings import ServerSettings
from tests.requirements import requirement
from tests.support.kit import Served, make_app, open_app_client
from tests.support.specimen import make_specimen

LIMIT: int = ServerSettings.model_fields["max_body_bytes"].default
_SAFE = {"GET", "HEAD", "OPTIONS"}


def _list_writing_routes() -> Iterator[tuple[str, str]]:
    """The method and path of each operation that writes, in every base that has REST."""
    for spec in BASES.values():
        routers: tuple[APIRouter, ...] = spec.routes(None, False) if spec.routes else ()
        for router in routers:
            for route in router.routes:
                for method in route.methods - _SAFE:  # type: ignore[attr-defined]
                    yield method, re.sub(r"\{.*?\}", "x", route.path)  # type: ignore[attr-defined]


WRITING_ROUTES = sorted(_list_writing_routes())


def test_routes_that_write_were_found() -> None:
    assert len(WRITING_ROUTES) >= 11


@requirement("room:limits")
@pytest.mark.parametrize("content_type", ["application/json", "text/plain"])
@pytest.mark.parametrize(("method", "path"), WRITING_ROUTES)
def test_one_byte_over_the_limit_is_too_large(
    room: Served, method: str, path: str, content_type: str
) -> None:
    refused = _send(room, method, path, b"a" * (LIMIT + 1), content_type)
    assert refused.status_code == 413
    assert refused.json()["error"]["code"] == "request_too_large"


@requirement("room:limits")
@pytest.mark.parametrize(
    ("method", "path"), [route for route in WRITING_ROUTES if route[0] in ("POST", "PATCH")]
)
def test_a_form_is_too_large_where_no_file_is_taken(room: Served, method: str, path: str) -> None:
    upload_paths = ("/api/v1/documents", "/api/v1/policies/x/revisions")
    form = b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n" + b"a" * LIMIT + b"\r\n--x--"
    refused = _send(room, method, path, form, "multipart/form-data; boundary=x")
    assert (refused.status_code == 413) is (path not in upload_paths)
    assert 400 <= refused.status_code < 500


@requirement("room:limits")
def test_a_body_without_a_length_is_cut_off_at_the_limit(room: Served) -> None:
    blocks = (b"a" * 65536 for _ in range(LIMIT // 65536 + 1))
    answer = httpx2.post(
        f"{room.url}/api/v1/policies",
        content=blocks,
        headers={"Content-Type": "application/json"},
        timeout=300,
        trust_env=False,
    )
    assert answer.status_code == 413


@requirement("room:limits")
def test_a_body_at_the_limit_is_read(room: Served) -> None:
    answer = _send(room, "POST", "/api/v1/policies", b"a" * LIMIT, "application/json")
    assert answer.status_code == 422


@pytest.mark.anyio
async def test_a_body_on_a_path_that_is_not_there_is_limited_too(tmp_path: Path) -> None:
    app = make_app(make_specimen(folder=tmp_path), data=tmp_path, max_body_bytes=1024)
    async with open_app_client(app) as web:
        assert (await web.post("/nowhere", content=b"a" * 1025)).status_code == 413
        assert (await web.post("/nowhere", content=b"a" * 1024)).status_code == 404


def _send(room: Served, method: str, path: str, body: bytes, kind: str) -> httpx2.Response:
    query = "?reference=x" if path.endswith("/applications") else ""
    return httpx2.request(
        method,
        room.url + path + query,
        content=body,
        headers={"Content-Type": kind},
        timeout=300,
        trust_env=False,
    )
