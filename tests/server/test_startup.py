"""A server that starts: probes are answered at once, and what searches need is loaded early."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from readingroom.bases.federal.store import DATABASE_FILE_NAME
from readingroom.bases.federal.tools import open_federal
from readingroom.bases.text.tools import open_text
from readingroom.core.errors import KnowledgeError
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.errors import ModelUnavailable
from readingroom.protocol.spec import KnowledgeBase
from readingroom.server.startup import StartingApp, warm_up_bases
from readingroom.storage.errors import StoreUnusable
from tests.requirements import requirement
from tests.support.documents.base import PLAIN, open_documents_base
from tests.support.kit import HANG_SECONDS, make_app, open_app_client, run
from tests.support.model import WordEmbedder

pytestmark = pytest.mark.anyio


@dataclass
class SlowStart:
    """Opens an app when a test allows it, and records what becomes of it."""

    app: Starlette
    error: KnowledgeError | None = None
    may_open: threading.Event = field(default_factory=threading.Event)
    is_announced: threading.Event = field(default_factory=threading.Event)
    is_stopped: threading.Event = field(default_factory=threading.Event)

    def open_app(self) -> tuple[Starlette, Callable[[], None]]:
        assert self.may_open.wait(HANG_SECONDS)
        if self.error:
            raise self.error
        return self.app, self.is_announced.set

    @contextmanager
    def client(self) -> Iterator[TestClient]:
        """A client of the server while it starts; it is opened at the latest when this is left."""
        starting = StartingApp(self.open_app)
        starting.stop_server = self.is_stopped.set
        with TestClient(starting, base_url="http://127.0.0.1") as client:
            try:
                yield client
            finally:
                self.may_open.set()


@pytest.fixture
def start(tmp_path: Path) -> SlowStart:
    return SlowStart(make_app(open_text(None, None), data=tmp_path))


@requirement("room:start")
def test_health_is_answered_while_the_bases_are_being_opened(start: SlowStart) -> None:
    with start.client() as client:
        alive, ready = client.get("/health"), client.get("/ready")

        assert (alive.status_code, alive.json()) == (200, {"status": "ok"})
        assert (ready.status_code, ready.json()) == (503, {"status": "starting"})
        assert not start.is_announced.is_set()


@requirement("room:start")
def test_a_request_that_comes_too_early_is_answered_when_the_bases_are_open(
    start: SlowStart,
) -> None:
    statuses: list[int] = []
    with start.client() as client:
        early = threading.Thread(target=lambda: statuses.append(client.get("/metrics").status_code))
        early.start()
        client.get("/health")
        assert statuses == []
        start.may_open.set()
        early.join(HANG_SECONDS)

        assert statuses == [200]
        assert client.get("/ready").json() == {"status": "ready"}
        assert start.is_announced.is_set()


@requirement("room:start")
def test_a_start_that_fails_ends_the_server_and_answers_whoever_waits(start: SlowStart) -> None:
    start.error = StoreUnusable("the disk is gone")
    starting = StartingApp(start.open_app)
    starting.stop_server = start.is_stopped.set
    start.may_open.set()
    with TestClient(starting) as client:
        refusal = client.get("/metrics")
        assert start.is_stopped.wait(HANG_SECONDS)

    assert refusal.status_code == 503
    assert starting.failure is start.error
    assert not start.is_announced.is_set()


def test_a_server_that_cannot_open_a_base_says_why_and_exits_with_an_error(tmp_path: Path) -> None:
    database = tmp_path / "documents" / "chroma" / "chroma.sqlite3"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"no database" * 1000)

    ended = run("serve", "documents", "--port", "0", "--data", str(tmp_path))

    assert ended.returncode == 1
    assert "cannot be opened" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "is answering" not in ended.stdout


@requirement("room:start")
async def test_what_a_search_waits_for_is_loaded_before_anybody_searches(tmp_path: Path) -> None:
    is_warm = anyio.Event()

    async def load() -> None:
        is_warm.set()

    base = replace(open_text(None, None), warm_up=load)
    async with open_app_client(make_app(base, data=tmp_path)):
        with anyio.fail_after(HANG_SECONDS):
            await is_warm.wait()


@pytest.mark.parametrize("error", [ModelUnavailable("no model"), RuntimeError("a bug")])
async def test_a_base_that_cannot_be_warmed_up_is_served_all_the_same(error: Exception) -> None:
    is_warm = threading.Event()

    async def fail() -> None:
        raise error

    async def load() -> None:
        is_warm.set()

    base = open_text(None, None)
    await warm_up_bases([replace(base, warm_up=fail), replace(base, warm_up=load)])

    assert is_warm.is_set()


class CountingEmbedder(WordEmbedder):
    """A model that counts how often it is loaded."""

    def __init__(self) -> None:
        self.loads = 0

    def load(self) -> None:
        self.loads += 1


async def test_warming_up_fills_the_indexes_of_a_base_that_has_documents(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    plain: dict[str, Any] = {**PLAIN, "embedder": embedder}
    async with open_documents_base(tmp_path, **plain) as documents:
        await documents.service.warm_up()
        assert embedder.loads == 0  # nothing can be found, so no model is needed
        await documents.ingest("report.pdf", b"%PDF-\ncycle parking")
    async with open_documents_base(tmp_path, **plain) as documents:
        await documents.service.warm_up()

        index = documents.service.store._index
        assert embedder.loads == 1
        assert index._vector_index is not None
        assert index._is_word_index_current()


async def test_warming_up_an_empty_federal_base_loads_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Embedder, "_load_model", lambda self: pytest.fail("a model is loaded"))
    base: KnowledgeBase = open_federal(tmp_path / DATABASE_FILE_NAME, Embedder(tmp_path))

    await base.warm_up()

    assert len(base.service.vectors) == 0
