"""A federal base to ask in tests, on official files or on a made-up world."""

import contextlib
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from readingroom.bases.federal import store
from readingroom.bases.federal.load.loading import LoadSummary, load
from readingroom.bases.federal.query.aggregates import Budget
from readingroom.bases.federal.routes import make_routers
from readingroom.bases.federal.schema.sources import SOURCES
from readingroom.bases.federal.search import vectors
from readingroom.bases.federal.store import get_database_path
from readingroom.bases.federal.tools import open_federal
from readingroom.core.arrays import Matrix, Vector
from readingroom.core.progress import no_progress_sync
from readingroom.engine.errors import ModelUnavailable
from readingroom.protocol.spec import KnowledgeBase
from tests.support.engines import find_database_url
from tests.support.federal import world_registries as registries
from tests.support.federal.world import World, register_document
from tests.support.federal.world_texts import every_text
from tests.support.kit import LEGACY, POST, choose_mode, make_app, make_rpc, open_app_client

MADE_UP = {"crs_reports", "regulations_dot_gov_dockets"}
"""The sources of which no official file is at hand: only the made-up world has them."""


@cache
def _hash_word(word: str) -> int:
    return sum(word.strip(".,:;").encode()) % 384


class HashedWords:
    """Stands in for the model: texts that share words are near each other. Nothing to install."""

    identity = "hashed-words/1"
    reranker = None
    dimensions = 384

    def load(self) -> None:
        """There is nothing to load."""

    def embed(self, text: str) -> Vector:
        counts = np.bincount([_hash_word(word) for word in text.lower().split()], minlength=384)
        vector = counts.astype(np.float32) + np.float32(1e-3)
        return vector / np.linalg.norm(vector)

    def embed_batch(self, texts: Sequence[str]) -> Matrix:
        return np.stack([self.embed(text) for text in texts])

    texts_per_batch = 256

    def embed_stream(
        self, batches: Iterable[tuple[Any, Sequence[str]]]
    ) -> Iterator[tuple[Any, Matrix]]:
        return ((key, self.embed_batch(texts)) for key, texts in batches)


class NoModel:
    """A machine without weights."""

    reranker = None

    @property
    def identity(self) -> str:
        raise ModelUnavailable("There is no embedding model here")

    @property
    def dimensions(self) -> int:
        raise ModelUnavailable("There is no embedding model here")

    def embed(self, text: str) -> Vector:
        raise ModelUnavailable("There is no embedding model here")


def write_world(folder: Path, bills: int = 30, votes: int = 3, seed: int = 1) -> World:
    """Files of every format we make up, in one folder."""
    world = World(seed, people=40)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "legislators-current.yaml").write_text(world.legislators(), "utf-8")
    (folder / "committees-current.yaml").write_text(world.committees(), "utf-8")
    (folder / "committee-membership-current.yaml").write_text(world.rosters(), "utf-8")
    texts = (*_texts(world, bills), *every_text(world))
    for name, text in (*world.bills(bills), *world.votes(votes), *texts):
        (folder / name).write_text(text, "utf-8")
    rule = register_document("2025-00001", "2025-02-03", "Airport noise near schools")
    order = register_document(
        "2025-00002", "2025-02-04", "Order on passenger rail", type="Presidential Document"
    )
    for one in (rule, order):
        (folder / f"{one['document_number']}.json").write_text(json.dumps(one), "utf-8")
    (folder / "47-Sample.yaml").write_text(
        "- bills:\n  - hr1\n  document_title: H.R. 1 – Statement on rural broadband\n"
        "  congress: 119\n  date_issued: '2025-03-01'\n"
        "  url: https://www.whitehouse.gov/sample\n  date_fetched: '2025-03-02'\n",
        "utf-8",
    )
    write_registries(folder, world)
    return world


def write_registries(folder: Path, world: World) -> None:
    """Offices, filings, dockets and hearings of that world."""
    written = {
        "legislators-district-offices.yaml": registries.district_offices(world),
        "legislators-social-media.yaml": registries.social_media(world),
        "filings.json": registries.filings(world, 10),
        "witnesses-900001.xml": registries.witnesses(world, 1),
        "committee-meeting-335000.json": registries.api_meeting(world, 335000),
        "hearing-60001.json": registries.api_hearing(60001, 335000),
    }
    for name, text in (
        *written.items(),
        *registries.dockets(world, 3),
        *registries.meetings(world, 3),
    ):
        (folder / name).write_text(text, "utf-8")


def _texts(world: World, bills: int) -> Iterator[tuple[str, str]]:
    """The text of the first bill, where there is one."""
    for name, _ in world.bills(min(1, bills)):
        congress, kind, number = re.findall(r"\d+|[a-z]+", name.removesuffix(".xml"))
        yield world.text(int(congress), kind, int(number))


def find_place(data: Path) -> store.FederalPlace:
    """Where the federal records of a data directory are: in its file, or in its database."""
    url = find_database_url(data)
    return store.SharedRecords(url) if url else get_database_path(data)


def load_files(data: Path, *files: Path, embed: bool = True) -> LoadSummary:
    """Load files into the federal base of a data directory."""
    return load_files_into(find_place(data), *files, embed=embed)


def load_files_into(place: store.FederalPlace, *files: Path, embed: bool = True) -> LoadSummary:
    """The same, into the records in a certain place."""
    summary = load(place, list(files), None)
    if embed:
        with contextlib.closing(store.connect(place, writing=True)) as db:
            vectors.embed_passages(db, HashedWords(), no_progress_sync)  # type: ignore[arg-type]
    return summary


def read_all_tables(data: Path) -> dict[str, Any]:
    """Records without the moment of their loading, and how much hangs on them."""
    with contextlib.closing(store.connect(get_database_path(data))) as db:
        told: dict[str, Any] = {
            source.name: _rows(
                db,
                f"SELECT id, json_remove(record, '$.retrieved_at') FROM {source.name} ORDER BY 1",
            )
            for source in SOURCES
        }
        for table in ("bill_cosponsors", "bill_actions", "member_votes", "names", "links"):
            told[table] = _rows(db, f"SELECT count(*) FROM {table}")
        for table in ("passages", "facets"):
            told[table] = sorted(_rows(db, f"SELECT * FROM {table}"))
    return told


def _rows(db: sqlite3.Connection, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in db.execute(sql)]


def write_world_files(data: Path) -> Path:
    """A data directory that holds the made-up world."""
    write_world(data / "files")
    load_files(data, data / "files")
    return data


def trace_statements(base: KnowledgeBase) -> list[str]:
    """Every statement from here on; connections that are open already are opened anew."""
    statements: list[str] = []
    base.service.store.close()
    base.service.store.trace_statement = statements.append
    return statements


def make_base(data: Path, embedder: Any = None, budget: Budget | None = None) -> KnowledgeBase:
    return make_base_on(find_place(data), embedder, budget)


def make_base_on(place: store.FederalPlace, embedder: Any, budget: Budget | None) -> KnowledgeBase:
    base = open_federal(place, embedder or HashedWords(), budget)
    routers = cache(partial(make_routers, base.service, False))
    # As BaseSpec.open_base does, but not warmed up: tests look at every statement.
    return replace(base, get_routers=routers, warm_up=stay_cold)


async def stay_cold() -> None:
    """Load nothing in advance."""


class _Endpoints:
    """The endpoints of the base, on one service after another: they take long to make."""

    def __init__(self) -> None:
        self.service: Any = None
        self.routers = make_routers(self, False)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.service, name)


_idle_endpoints: list[_Endpoints] = []


@contextlib.contextmanager
def _lend_endpoints(base: KnowledgeBase) -> Iterator[KnowledgeBase]:
    """The base with endpoints that another one may have had before."""
    endpoints = _idle_endpoints.pop() if _idle_endpoints else _Endpoints()
    endpoints.service = base.service
    yield replace(base, get_routers=lambda: endpoints.routers)
    _idle_endpoints.append(endpoints)


@contextlib.asynccontextmanager
async def serve_in_process(
    data: Path, embedder: Any = None, budget: Budget | None = None
) -> AsyncIterator["Asked"]:
    """The base served in this process, REST and MCP."""
    async with serve_place_in_process(find_place(data), data, embedder, budget) as face:
        yield face


@contextlib.asynccontextmanager
async def serve_place_in_process(
    place: store.FederalPlace, data: Path, embedder: Any = None, budget: Budget | None = None
) -> AsyncIterator["Asked"]:
    """The same, on the records in a certain place."""
    with _lend_endpoints(make_base_on(place, embedder, budget)) as base:
        async with open_app_client(make_app(base, data=data, rate_limit=0)) as web:
            yield Asked(web, base)
        base.service.store.close()


@contextlib.asynccontextmanager
async def connect_client(
    data: Path, wire: str, embedder: Any = None, budget: Budget | None = None
) -> AsyncIterator[tuple[Client, "Asked"]]:
    """The SDK's own client on the base in this process, on either wire, and REST beside it."""
    with _lend_endpoints(make_base(data, embedder, budget)) as base:
        app = make_app(base, data=data, rate_limit=0)
        async with open_app_client(app) as web:
            transport = streamable_http_client(f"{web.base_url}/mcp", http_client=web)
            async with Client(transport, mode=choose_mode(wire)) as client:
                yield client, Asked(web, base)
        base.service.store.close()


class Asked:
    """A client of both faces."""

    def __init__(self, web: httpx2.AsyncClient, base: KnowledgeBase) -> None:
        self.web = web
        self.base = base

    async def get(self, path: str, **params: Any) -> httpx2.Response:
        return await self.web.get(f"/v1{path}", params=params)

    async def record(self, path: str, **params: Any) -> Any:
        found = await self.get(path, **params)
        assert found.status_code == 200, found.text
        return found.json()

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """A tool's result as it stands on the wire."""
        told = await self.rpc("tools/call", {"name": name, "arguments": arguments})
        assert "result" in told, told
        return dict(told["result"])

    async def answer(self, name: str, **arguments: Any) -> Any:
        result = await self.call(name, **arguments)
        assert not result.get("isError"), result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result["structuredContent"]

    async def rpc(self, method: str, params: dict[str, Any]) -> Any:
        headers = POST | {"MCP-Protocol-Version": LEGACY}
        answered = await self.web.post("/mcp", json=make_rpc(method, params), headers=headers)
        return answered.json()


def make_unembedded_file(data: Path) -> bytes:
    """The file of a federal base with a few records and no vector yet."""
    write_world(data / "files", bills=6, votes=1)
    load_files(data, data / "files", embed=False)
    path = get_database_path(data)
    with contextlib.closing(store.connect(path, writing=True)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.read_bytes()


def put_database_file(data: Path, content: bytes) -> Path:
    """A data directory with this file as its federal base."""
    path = get_database_path(data)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return data
