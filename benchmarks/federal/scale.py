"""What the federal base costs at scale: searches, lookups, loading, memory."""

import resource
import sqlite3
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import anyio
import httpx2
import numpy as np
from anyio.from_thread import BlockingPortal
from fastapi import APIRouter, FastAPI, Response

from benchmarks.federal import world as federal_world
from benchmarks.federal.world import RandomEmbedder, Size, Vocabulary
from benchmarks.table import Ratio, Table
from readingroom.bases.federal import store
from readingroom.bases.federal.load import loading
from readingroom.bases.federal.routes import RecordId, make_router
from readingroom.bases.federal.service import FederalService
from readingroom.bases.federal.store import DATABASE_FILE_NAME
from readingroom.engine.words import parse_query
from readingroom.server.http.rest import build_rest_app
from tests.support.federal.world import World
from tests.support.processes import read_resident_mb

WHOLE = Size(bills=100_000, votes=1_000_000)
QUICK = Size(bills=2_000, votes=10_000)
_LIMIT = 10

Get = Callable[[str, dict[str, Any]], Any]


def measure_searches(quick: bool) -> Table:
    return _compare_searches(*_open_service(quick), rounds=10 if quick else 60)


def measure_lookups(quick: bool) -> Table:
    return _compare_lookups(
        *_open_service(quick), passes=3 if quick else 15, calls=40 if quick else 200
    )


def measure_loads(quick: bool) -> Table:
    """Measured last: the memory it tells is that of the searches before it."""
    service, size = _open_service(quick)
    return _compare_loading(300 if quick else 2_000, service.place, size)


@cache
def _open_service(quick: bool) -> tuple[FederalService, Size]:
    """The file is made once and kept in build/: the whole one takes about ten minutes."""
    size = QUICK if quick else WHOLE
    path = Path("build") / f"federal-{size.bills}.db"
    path.parent.mkdir(exist_ok=True)
    federal_world.build_database(path, size)
    service = FederalService(path, RandomEmbedder())  # type: ignore[arg-type]
    with closing(store.connect(path)) as db:
        service.vectors.apply_vector_changes(db)
    return service, size


# --- searching ---


def _compare_searches(service: FederalService, size: Size, rounds: int) -> Table:
    words = Vocabulary(2)
    questions = [words.question() for _ in range(rounds)]
    names = ("fts", "scan", "index", "rest", "narrow")
    times: dict[str, list[float]] = {name: [] for name in names}
    matrix = _load_matrix(service)
    with closing(store.connect(service.place)) as db, open_client(service) as get:
        for question in [*questions[:3], *questions]:  # the first three warm the caches
            vector = service.vectors.embedder.embed(question)
            times["fts"].append(measure_wall_seconds(lambda q=question: _search_fts(db, q)))
            times["scan"].append(measure_wall_seconds(lambda v=vector: _scan_vectors(matrix, v)))
            times["index"].append(
                measure_wall_seconds(
                    lambda v=vector: service.vectors._index.search(v, 2 * _LIMIT + 50)
                )
            )
            asked = {"q": question, "limit": _LIMIT, "source": "bills"}
            times["rest"].append(measure_wall_seconds(lambda a=asked: get("/v1/search", a)))
            narrow = asked | {"congress": 115}
            times["narrow"].append(measure_wall_seconds(lambda a=narrow: get("/v1/search", a)))
    times = {name: series[3:] for name, series in times.items()}
    floor = [sum(pair) for pair in zip(times["fts"], times["scan"], strict=True)]
    nearer = [sum(pair) for pair in zip(times["fts"], times["index"], strict=True)]
    rows = (
        ("bare FTS5: the 10 best passages", *render_median_and_p95(times["fts"]), "", ""),
        ("bare scan: numpy, every vector", *render_median_and_p95(times["scan"]), "", ""),
        ("the engine's index, every vector", *render_median_and_p95(times["index"]), "", ""),
        ("the sum of the two bare ones (the floor)", *render_median_and_p95(floor), "1.000", ""),
        (
            "`GET /v1/search`, hybrid",
            *render_median_and_p95(times["rest"]),
            str(Ratio(times["rest"], floor)),
            Ratio(times["rest"], floor).against(1.5),
        ),
        (
            "the same, beside bare FTS5 and the engine's index",
            *render_median_and_p95(times["rest"]),
            str(Ratio(times["rest"], nearer)),
            "",
        ),
        (
            "the same with `congress=115` (one record in ten)",
            *render_median_and_p95(times["narrow"]),
            str(Ratio(times["narrow"], floor)),
            "",
        ),
    )
    p95 = _p95(times["rest"])
    note = (
        f"{size.bills:,} bills, {size.chunks:,} passages with vectors, {size.votes:,} votes. Wall "
        f"time, all in one process taking turns, {rounds} questions of four words; the vector of "
        "a question is given, not computed. The REST call groups passages into records, counts "
        "all matches and brings titles, passages and citations. Its p95 is "
        f"{p95:.0f} ms beside the contract's 500 ms: {'met' if p95 <= 500 else '**missed**'}."
    )
    header = ("search", "median ms", "median p95 ms", "ratio", "target")
    return Table("Federal search at scale", header, rows, note)


def _search_fts(db: sqlite3.Connection, question: str) -> None:
    db.execute(
        """SELECT rowid FROM passages_fts WHERE passages_fts MATCH ?
           AND rank MATCH 'bm25(10.0, 4.0, 2.0, 1.0)' ORDER BY rank LIMIT 10""",
        (parse_query(question).match_expression,),
    ).fetchall()


def _scan_vectors(matrix: Any, vector: Any) -> None:
    scores = matrix @ vector
    np.argpartition(scores, -_LIMIT)[-_LIMIT:]


def _load_matrix(service: FederalService) -> Any:
    """The index's own vectors, so that the floor costs no memory of its own."""
    view = service.vectors._index._view  # the measurement looks inside on purpose
    return view.vectors[: view.row_count]


# --- lookups ---


def _compare_lookups(service: FederalService, size: Size, passes: int, calls: int) -> Table:
    drawn = np.random.default_rng(5).integers(1, size.bills, calls)
    ids = [f"hr:{110 + n % 10}:{n}" for n in drawn]
    rounds = [_time_lookups(service, ids) for _ in range(passes)]
    times = {name: [value for each in rounds for value in each[name]] for name in rounds[0]}
    floor = [
        3 * value + other for value, other in zip(times["select"], times["thread"], strict=True)
    ]
    ratio = Ratio(
        [median(each["record"]) for each in rounds],
        [3 * median(each["select"]) + median(each["thread"]) for each in rounds],
    )
    rows = (
        ("bare `SELECT` by primary key", *render_median_and_p95(times["select"], 1e6), "", ""),
        (
            "a FastAPI route that returns the same bytes",
            *render_median_and_p95(times["route"], 1e6),
            "",
            "",
        ),
        (
            "the same as a plain `def`, on a thread",
            *render_median_and_p95(times["thread"], 1e6),
            "",
            "",
        ),
        (
            "three times the first plus the last (the bound)",
            *render_median_and_p95(floor, 1e6),
            "1.000",
            "",
        ),
        (
            "`GET /v1/bills/{id}`",
            *render_median_and_p95(times["record"], 1e6),
            str(ratio),
            ratio.against(1.0),
        ),
    )
    note = (
        f"Processor time, the in-process client included; {calls} records drawn at random out of "
        f"{size.bills:,}, all taking turns on one event loop. What blocks runs on a worker thread, "
        "with FastAPI as here, so the framework's own cost is that of its route on a thread. What "
        "such a thread costs depends on the cores that the system happens to give it and the loop, "
        f"so the ratio is the median of {passes} passes, each with new threads. Every record is "
        "read once before it counts: a `SELECT` that waits for the disk would widen the bound."
    )
    header = ("lookup", "median µs", "median p95 µs", "ratio", "target")
    return Table("Federal lookups", header, rows, note)


def _time_lookups(service: FederalService, ids: list[str]) -> dict[str, list[float]]:
    """A pass over the records in every way: the first round warms caches, the second is timed."""
    select = "SELECT record FROM bills WHERE id = ?"
    with closing(store.connect(service.place)) as db:
        (sample,) = db.execute(select, (ids[0],)).fetchone()
        apps = build_rest_app([make_router(service)]), _build_peer_app(sample.encode())
        with open_clients(*apps) as (get, peer):
            for _ in range(2):
                times: dict[str, list[float]] = defaultdict(list)
                for id in ids:
                    times["select"].append(
                        measure_cpu_seconds(lambda i=id: db.execute(select, (i,)).fetchone())
                    )
                    times["route"].append(
                        measure_cpu_seconds(lambda i=id: peer(f"/constant/{i}", {}))
                    )
                    times["thread"].append(
                        measure_cpu_seconds(lambda i=id: peer(f"/threaded/{i}", {}))
                    )
                    times["record"].append(
                        measure_cpu_seconds(lambda i=id: get(f"/v1/bills/{i}", {}))
                    )
    return times


def _build_peer_app(body: bytes) -> FastAPI:
    """What FastAPI alone costs: the route, the id, the response."""
    routes = APIRouter()

    @routes.get("/constant/{id}")
    async def give(id: RecordId) -> Response:
        return Response(body, media_type="application/json")

    @routes.get("/threaded/{id}")
    def give_from_a_thread(id: RecordId) -> Response:
        return Response(body, media_type="application/json")

    app = FastAPI()
    app.include_router(routes)
    return app


# --- loading ---


def _compare_loading(bills: int, path: Path, size: Size) -> Table:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "files"
        folder.mkdir()
        world = World()
        (folder / "legislators-current.yaml").write_text(world.legislators(), "utf-8")
        for name, text in (*world.bills(bills), *world.votes(bills // 20)):
            (folder / name).write_text(text, "utf-8")
        load_seconds = measure_wall_seconds(
            lambda: loading.load(Path(scratch) / DATABASE_FILE_NAME, [folder], None)
        )
        reload_seconds = measure_wall_seconds(
            lambda: loading.load(Path(scratch) / DATABASE_FILE_NAME, [folder], None)
        )
        with closing(sqlite3.connect(Path(scratch) / DATABASE_FILE_NAME)) as db:
            row_counts = [
                db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("bills", "bill_cosponsors", "member_votes", "passages", "facets")
            ]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    resident = read_resident_mb()
    gigabytes = path.stat().st_size / 1e9
    rows = (
        ("bill files a second", f"{bills / load_seconds:,.0f}", ""),
        ("rows a second (bills, cosponsors, votes, passages, facets)",
         f"{sum(row_counts) / load_seconds:,.0f}", ""),
        ("files a second when nothing has changed", f"{bills / reload_seconds:,.0f}", ""),
        (f"size of the file with {size.chunks:,} passages and vectors", f"{gigabytes:.2f} GB", ""),
        ("resident memory with that file's index loaded", f"{resident:,.0f} MB",
         "met (at most 1,300)" if resident <= 1300 else "**missed** (at most 1,300)"),
        ("peak memory of the whole measurement", f"{peak:,.0f} MB", ""),
    )  # fmt: skip
    note = f"{bills:,} made-up BILLSTATUS files and {bills // 20} votes of 120 members, on disk."
    return Table("Federal loading and memory", ("what", "measured", "target"), rows, note)


# --- tools ---


@contextmanager
def open_client(service: FederalService) -> Iterator[Get]:
    """A client of the base's REST routes, as they are served, in this process."""
    with open_clients(build_rest_app([make_router(service)])) as (get,):
        yield get


@contextmanager
def open_clients(*apps: FastAPI) -> Iterator[list[Get]]:
    """A client for each app, called from plain code; the apps share an event loop and threads."""
    with anyio.from_thread.start_blocking_portal() as portal:
        yield [_make_client(app, portal) for app in apps]


def _make_client(app: FastAPI, portal: BlockingPortal) -> Get:
    http_client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://x")

    async def ask(path: str, params: dict[str, Any]) -> Any:
        return await http_client.get(path, params=params)

    def get(path: str, params: dict[str, Any]) -> Any:
        response = portal.call(ask, path, params)
        assert response.status_code == 200, response.text
        return response

    return get


def measure_wall_seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure_cpu_seconds(work: Callable[[], Any]) -> float:
    """Processor time of all threads: others may be busy on this machine."""
    started = time.process_time()
    work()
    return time.process_time() - started


def render_median_and_p95(series: list[float], scale: float = 1e3) -> tuple[str, str]:
    return f"{median(series) * scale:,.1f}", f"{_p95(series, scale):,.1f}"


def _p95(series: list[float], scale: float = 1e3) -> float:
    return quantiles(series, n=20)[-1] * scale


if __name__ == "__main__":
    for measure in (measure_searches, measure_lookups, measure_loads):
        print(measure("--quick" in sys.argv), end="\n\n", flush=True)
