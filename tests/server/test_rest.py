"""The REST surface of a base: documented, in the same process, its errors in one envelope."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from readingroom.server.http.rest import build_rest_app
from tests.support.kit import make_app, open_app_client
from tests.support.specimen import SECRET, make_specimen

pytestmark = pytest.mark.anyio


async def get(path: str, data: Path, **settings: object) -> httpx2.Response:
    base = make_specimen(folder=data)
    base.service.add("a note")
    async with open_app_client(make_app(base, data=data, **settings)) as web:
        return await web.get(path, headers={"X-Request-ID": "r-1"})


async def test_a_route_of_a_base_answers_and_is_in_the_openapi_page(tmp_path: Path) -> None:
    assert (await get("/specimen/v1/notes", tmp_path)).json() == ["a note"]
    described = (await get("/openapi.json", tmp_path)).json()
    assert "/specimen/v1/notes" in described["paths"]
    assert (await get("/docs", tmp_path)).status_code == 200


@pytest.mark.parametrize(
    ("path", "status", "kind", "code"),
    [
        ("/specimen/v1/fail", 503, "unavailable", "text_unreadable"),
        ("/specimen/v1/crash", 500, "internal", "internal"),
        ("/specimen/v1/notes?limit=99", 422, "invalid_request", "validation_error"),
        ("/specimen/v1/nowhere", 404, "not_found", "path_not_found"),
    ],
)
async def test_every_error_comes_in_one_envelope(
    tmp_path: Path, path: str, status: int, kind: str, code: str
) -> None:
    answer = await get(path, tmp_path)
    error = answer.json()["error"]
    assert answer.status_code == status
    assert (error["type"], error["code"], error["request_id"]) == (kind, code, "r-1")
    assert answer.headers["x-request-id"] == "r-1"
    assert SECRET not in answer.text


async def test_a_bad_parameter_is_named(tmp_path: Path) -> None:
    error = (await get("/specimen/v1/notes?limit=many", tmp_path)).json()["error"]
    assert error["hint"]["errors"][0]["field"] == "limit"


async def test_rest_asks_for_the_same_key(tmp_path: Path) -> None:
    assert (await get("/specimen/v1/notes", tmp_path, api_key="sesame")).status_code == 401


async def test_what_a_base_starts_runs_as_long_as_it_is_served(tmp_path: Path) -> None:
    base = make_specimen(folder=tmp_path)
    async with open_app_client(make_app(base, data=tmp_path)):
        assert base.service.is_open
    assert not base.service.is_open


def test_the_description_is_built_once_however_many_ask_at_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two threads that built it at once disturbed each other: some got a 500."""
    builders: list[int] = []
    overlaps: list[int] = []

    def build(self: FastAPI) -> dict[str, str]:
        builders.append(threading.get_ident())
        overlaps.append(len(builders))
        time.sleep(0.02)
        builders.remove(threading.get_ident())
        return {}

    monkeypatch.setattr(FastAPI, "openapi", build)
    app = build_rest_app([])
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: app.openapi(), range(8)))
    assert set(overlaps) == {1}
