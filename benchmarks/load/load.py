"""Thirty-two clients at once, each with its own key: reading, ingesting, uploading, refreshing."""

import json
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression, quantiles, stdev
from typing import Any

import anyio
import httpx2
from mcp import Client

from benchmarks.table import Table
from readingroom.core.settings import SAMPLE_MARK_FILE_NAME
from readingroom.storage.keys import KeyRing
from tests.support.kit import Served, connect_http, read_body, serve_room
from tests.support.model import link_model
from tests.support.policy.base import make_policy_pdf
from tests.support.processes import read_resident_mb

CLIENTS = 32
_PAUSE_SECONDS = 1.5  # seconds between two calls of one client, on average
_READING_SHARE = 0.3  # how much longer, beside the minutes before, they stay and only read
_APPLICATION = "25/01178/REM"
_WORDS = (
    *("cycle parking", "visibility at junctions", "affordable homes", "flood risk", "heritage"),
    *("annual return", "trustee duties", "rail safety", "highway grants", "noise near schools"),
)
_NOTE = (
    "`readingroom serve --demo` with {clients} clients over Streamable HTTP for {minutes:g} "
    "minutes, each with a key of its own, every fourth for reading alone, {pause} s apart on "
    "average: an hour of as many people who ask every nine seconds. Milliseconds as the client "
    "sees them, clients and server on the same two cores. Lost: documents and revisions that were "
    "acknowledged and are not there at the end. Memory: resident set of the server once a second, "
    "over the last four fifths; first while the stores grow, then, for {reading_minutes:g} minutes "
    "more, while everybody reads. Noise is what the quarters of that time have for slopes."
)


@dataclass
class CallLog:
    """What happened."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)
    documents: set[str] = field(default_factory=set)
    revisions: set[tuple[str, str]] = field(default_factory=set)
    resident: list[tuple[float, float]] = field(default_factory=list)
    """Seconds since the beginning, and megabytes."""

    async def record(self, name: str, work: Callable[[], Awaitable[Any]]) -> Any:
        started = time.perf_counter()
        try:
            return await work()
        except Exception as error:
            self.errors.append(f"{name}: {type(error).__name__}: {error}"[:300])
            return None
        finally:
            self.seconds[name].append(time.perf_counter() - started)


class Visitor:
    """One client: asks what its kind asks, until time is up."""

    def __init__(
        self,
        number: int,
        client: Client,
        http_client: httpx2.AsyncClient,
        call_log: CallLog,
        inbox: Path | None,
    ) -> None:
        """Without an inbox it only reads."""
        self.number = number
        self.inbox = inbox
        self.client = client
        self.http_client = http_client
        self.call_log = call_log
        self.choose = random.Random(number)
        self.turn = 0

    async def call_until(self, until: float) -> None:
        call_tools = _KINDS[self.number % len(_KINDS)]
        while time.monotonic() < until:
            self.turn += 1
            await call_tools(self)
            await anyio.sleep(self.choose.expovariate(1 / _PAUSE_SECONDS))

    async def call(self, name: str, **arguments: Any) -> Any:
        async def work() -> Any:
            result = await self.client.call_tool(name, arguments)
            if result.is_error:
                raise RuntimeError(result.content[0].text)
            return read_body(result)

        return await self.call_log.record(name, work)

    @property
    def random_query(self) -> str:
        return f"{self.choose.choice(_WORDS)} {self.choose.choice(_WORDS)}"

    async def ask_desk(self) -> None:
        hits = await self.call("search", query=self.random_query, limit=5)
        if hits and hits["results"]:
            await self.call("fetch", id=self.choose.choice(hits["results"])["id"])

    async def ask_policy(self) -> None:
        day = f"20{self.choose.randrange(21, 26)}-06-01"
        await self.call("search_policy", query=self.random_query, effective_date=day)
        await self.call("get_policy_section", source="NPPF", section_ref="Para 116")
        await self.call("policy_snapshot", date=day)

    async def ask_documents(self) -> None:
        await self.call(
            "search_application_docs", query=self.random_query, application_ref=_APPLICATION
        )
        listing = await self.call("list_ingested_documents", application_ref=_APPLICATION)
        if listing and listing["documents"]:
            document_id = self.choose.choice(listing["documents"])["document_id"]
            await self.call("get_document_text", document_id=document_id, max_chars=5000)

    async def ask_federal(self) -> None:
        await self.call("lexical_search", query=self.random_query)
        await self.call("resolve_entity", query="Smith", entity_type="legislators")
        await self.call("get_bill", bill_id="hr:119:99001")

    async def ask_guidance(self) -> None:
        path = "/guidance/prepare-a-charity-annual-return"
        await self.call("search_guidance", query=self.random_query)
        await self.call("get_content_by_path", path=path, text_only=True)
        if self.turn % 10 == 0:
            await self.call("force_refresh", path=path)

    async def ingest(self) -> None:
        await self.ask_documents()
        if self.inbox and self.turn % 5 == 1:
            paper = self._write_pdf(self.inbox)
            asked = {"file_path": paper, "application_ref": f"26/{self.number:05}/LOAD"}
            document = await self.call("ingest_document", **asked)
            if document:
                self.call_log.documents.add(document["document_id"])

    async def upload(self) -> None:
        await self.ask_policy()
        if self.inbox is None or self.turn % 10 != 1:
            return
        source = f"LOAD_{self.number}"
        if self.turn == 1:
            new_policy = {"source": source, "title": "Load", "category": "supplementary"}
            await self.call_log.record(
                "POST policy", lambda: self._post("/api/v1/policies", json=new_policy)
            )
        year, month = divmod(self.turn // 10, 12)
        form = {
            "version_label": f"{self.turn}",
            "effective_from": f"{1990 + year}-{month + 1:02}-01",
        }
        files = {"file": ("load.pdf", self._make_pdf(), "application/pdf")}
        path = f"/api/v1/policies/{source}/revisions"
        revision = await self.call_log.record(
            "POST revision", lambda: self._post(path, data=form, files=files)
        )
        if revision:
            self.call_log.revisions.add((source, revision["revision_id"]))

    async def _post(self, path: str, **sent: Any) -> Any:
        answer = await self.http_client.post(path, **sent)
        answer.raise_for_status()
        return answer.json()

    def _make_pdf(self) -> bytes:
        text = f"Visitor {self.number} on turn {self.turn} writes of {self.random_query}. " * 5
        return make_policy_pdf([("Load", [text, text])])

    def _write_pdf(self, inbox: Path) -> str:
        path = inbox / f"paper-{self.number}-{self.turn}.pdf"
        path.write_bytes(self._make_pdf())
        return str(path)


# Every fourth client has a key for reading alone: places 0 and 4.
_KINDS = (
    Visitor.ask_desk,
    Visitor.ingest,
    Visitor.ask_policy,
    Visitor.upload,
    Visitor.ask_documents,
    Visitor.ask_federal,
    Visitor.ask_guidance,
    Visitor.ask_desk,
)


def measure(minutes: float, clients: int = CLIENTS) -> Table:
    """Let them all in, and see what comes of it."""
    with tempfile.TemporaryDirectory() as folder:
        data = link_model(Path(folder) / "data")
        with serve_room("--demo", data=data) as served:
            wait_for_sample(served)
            ring = KeyRing(data)
            keys = [ring.add_key(f"c{n:02}", read_only=n % 4 == 0) for n in range(clients)]
            inbox = data / "documents" / "inbox"
            inbox.mkdir(parents=True, exist_ok=True)
            call_log, reading_log = CallLog(), CallLog()
            anyio.run(_run_visitors, served, keys, minutes * 60, call_log, inbox)
            lost = anyio.run(_find_lost, served, keys[1], call_log)
            anyio.run(_run_visitors, served, keys, minutes * 60 * _READING_SHARE, reading_log, None)
    return Table(
        f"{clients} clients at once, {minutes:g} minutes",
        ("tool", "calls", "median ms", "p95 ms"),
        (*_render_rows(call_log), *_render_totals(call_log, reading_log, lost)),
        _NOTE.format(
            clients=clients,
            minutes=minutes,
            pause=_PAUSE_SECONDS,
            reading_minutes=minutes * _READING_SHARE,
        ),
    )


def wait_for_sample(served: Served) -> None:
    """Wait until everything of the sample is loaded."""
    give_up = time.monotonic() + 600
    while json.loads((served.data / SAMPLE_MARK_FILE_NAME).read_text("utf-8"))["state"] != "loaded":
        if time.monotonic() > give_up:
            raise RuntimeError("the sample did not load in ten minutes")
        time.sleep(1)


async def _run_visitors(
    served: Served, keys: list[str], seconds: float, call_log: CallLog, inbox: Path | None
) -> None:
    until = time.monotonic() + seconds
    async with anyio.create_task_group() as room:
        for number, key in enumerate(keys):
            room.start_soon(_run_visitor, served, number, key, until, call_log, inbox)
        room.start_soon(_watch_memory, served.process.pid, until, call_log)


async def _run_visitor(
    served: Served, number: int, key: str, until: float, call_log: CallLog, inbox: Path | None
) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(
            base_url=served.url, headers=headers, timeout=60, trust_env=False
        ) as http_client,
        connect_http(served.url + "/mcp", key=key) as client,
    ):
        await Visitor(number, client, http_client, call_log, inbox).call_until(until)


async def _watch_memory(pid: int, until: float, call_log: CallLog) -> None:
    started = time.monotonic()
    while time.monotonic() < until:
        call_log.resident.append((time.monotonic() - started, read_resident_mb(pid)))
        await anyio.sleep(1)


async def _find_lost(served: Served, key: str, call_log: CallLog) -> list[str]:
    """What was acknowledged and is not there."""
    headers = {"Authorization": f"Bearer {key}"}
    missing: list[str] = []
    async with connect_http(served.url + "/mcp", key=key) as client:
        for id in sorted(call_log.documents):
            result = await client.call_tool("get_document_text", {"document_id": id})
            missing += [id] if result.is_error else []
    async with httpx2.AsyncClient(
        base_url=served.url, headers=headers, trust_env=False
    ) as http_client:
        for source, revision in sorted(call_log.revisions):
            if not await _becomes_active(
                http_client, f"/api/v1/policies/{source}/revisions/{revision}"
            ):
                missing.append(revision)
    return missing


async def _becomes_active(http_client: httpx2.AsyncClient, path: str) -> bool:
    for _ in range(120):
        status = (await http_client.get(path)).json().get("status")
        if status != "processing":
            return status in ("active", "superseded")
        await anyio.sleep(1)
    return False


def _render_rows(call_log: CallLog) -> list[tuple[str, ...]]:
    return [
        (
            name,
            f"{len(tool_seconds):,}",
            *(f"{1000 * seconds:,.0f}" for seconds in _find_median_and_p95(tool_seconds)),
        )
        for name, tool_seconds in sorted(call_log.seconds.items())
    ]


def _find_median_and_p95(tool_seconds: list[float]) -> tuple[float, float]:
    if len(tool_seconds) < 2:
        return tool_seconds[0], tool_seconds[0]
    cuts = quantiles(tool_seconds, n=20, method="inclusive")
    return cuts[9], cuts[18]


def _render_totals(
    call_log: CallLog, reading_log: CallLog, lost: list[str]
) -> list[tuple[str, ...]]:
    calls = sum(map(len, call_log.seconds.values()))
    errors = call_log.errors + reading_log.errors
    first = ", such as " + errors[0] if errors else ""
    kept = len(call_log.documents) + len(call_log.revisions)
    return [
        ("**all**", f"{calls:,}", "", ""),
        ("errors", f"{len(errors)}{first}", "", "target 0"),
        ("lost", f"{len(lost)} of {kept} acknowledged", "", "target 0"),
        (f"memory, MB, while {kept} are added", *_render_memory(call_log)),
        ("memory, MB, while nothing is added", *_render_memory(reading_log)),
    ]


def _render_memory(call_log: CallLog) -> tuple[str, str, str]:
    """How it went from first to last, and how steeply beside its own noise."""
    settled = call_log.resident[len(call_log.resident) // 5 :]
    size = max(2, len(settled) // 4)
    quarters = [_fit_slope(settled[at : at + size]) for at in range(0, 4 * size, size)]
    went = f"{settled[0][1]:.0f} to {settled[-1][1]:.0f}"
    return went, "", f"{_fit_slope(settled):+.2f} a minute, noise {stdev(quarters):.2f}"


def _fit_slope(resident: list[tuple[float, float]]) -> float:
    """Megabytes a minute."""
    return linear_regression([at / 60 for at, _ in resident], [mb for _, mb in resident]).slope
