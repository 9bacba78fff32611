"""Fifty clients with keys beside 1,500 connections that never finish their request."""

import os
import selectors
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import httpx2

from benchmarks.table import Table
from readingroom.storage.keys import KeyRing
from tests.support.kit import Served, serve_room

CLIENTS = 50
HALF_OPEN = 1500
_SECONDS = 60.0
_PAUSE = 0.4  # seconds between two requests of one client: its key allows ten a second
_DESCRIPTORS = 1024
_UNFINISHED = b"GET /health HTTP/1.1\r\nHost: x\r\nX: "
_OWN = ("127.0.0.1",)
_OTHERS = tuple(f"127.0.0.{number}" for number in range(2, 32))
_NOTE = (
    "`make bench ARGS='--part attacks --write'`. `readingroom serve documents` with "
    f"{_DESCRIPTORS:,} open files at most, soft and hard; {{clients}} clients, each with a key of "
    f"its own and a new connection for every request, for {{seconds:g}} s; {HALF_OPEN:,} "
    "connections that send half a header, opened again whenever the server closes one. Refused: "
    "requests that got no answer, or not the one they should. Lost: writes (the record of an "
    "application) that were acknowledged and are not there at the end. {baseline}"
)


@dataclass
class Ledger:
    """What the honest clients saw."""

    requests: int = 0
    refused: list[str] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    """The references of applications whose record was acknowledged."""


def measure(seconds: float = _SECONDS, clients: int = CLIENTS) -> Table:
    """Attack from other addresses, then from the clients' own, and count who is refused."""
    baseline = os.environ.get("BENCHMARK_BASELINE")
    versions = [("now", {})]
    if baseline:
        versions.append(("0.1.0", {"PYTHONPATH": str(Path(baseline) / "src")}))
    rows = [
        (version, where, *_attack(addresses, seconds, clients, env))
        for version, env in versions
        for where, addresses in (("other addresses", _OTHERS), ("the clients' own", _OWN))
    ]
    note = "0.1.0 was run by the same program." if baseline else ""
    return Table(
        "Attacks: half-open connections",
        ("version", "half-open from", "requests", "refused", "writes", "lost", "opened in all"),
        tuple(rows),
        _NOTE.format(clients=clients, seconds=seconds, baseline=note).rstrip(),
    )


def _attack(
    addresses: Sequence[str], seconds: float, clients: int, env: dict[str, str]
) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        keys = _make_keys(data, clients)
        ledger = Ledger()
        with serve_room("documents", data=data, env=env, max_descriptors=_DESCRIPTORS) as served:
            with _standing(served, addresses) as attacker:
                anyio.run(_visit, served, keys, seconds, ledger)
            lost = _count_lost(served, keys[0], ledger.written)
    if ledger.refused:
        print(f"first refusal: {ledger.refused[0]}")
    counts = (ledger.requests, len(ledger.refused), len(ledger.written), lost, attacker.opened)
    return tuple(f"{count:,}" for count in counts)


def _make_keys(data: Path, clients: int) -> list[str]:
    data.mkdir(mode=0o700)
    ring = KeyRing(data)
    return [ring.add_key(f"client-{number}") for number in range(clients)]


async def _visit(served: Served, keys: Sequence[str], seconds: float, ledger: Ledger) -> None:
    until = time.monotonic() + seconds
    async with anyio.create_task_group() as tasks:
        for number, key in enumerate(keys):
            tasks.start_soon(_stay, served, number, key, until, ledger)


async def _stay(served: Served, number: int, key: str, until: float, ledger: Ledger) -> None:
    """One client: reads and writes by turns, each request on a new connection."""
    turn = 0
    async with httpx2.AsyncClient(
        base_url=served.url,
        headers={"Authorization": f"Bearer {key}"},
        limits=httpx2.Limits(max_keepalive_connections=0),
        timeout=60,
        trust_env=False,
    ) as web:
        while time.monotonic() < until:
            turn += 1
            ledger.requests += 1
            reference = f"26/{number:05}/{turn // 2:05}"  # read after it was written
            address = f"/api/v1/applications?reference={reference}"
            try:
                if turn % 2 == 0:
                    (await web.patch(address, json={"description": "x"})).raise_for_status()
                    ledger.written.add(reference)
                elif reference in ledger.written:
                    (await web.get(address)).raise_for_status()
                else:
                    (await web.get("/")).raise_for_status()
            except httpx2.HTTPError as error:
                ledger.refused.append(f"{type(error).__name__}: {error}"[:200])
            await anyio.sleep(_PAUSE)


def _count_lost(served: Served, key: str, written: set[str]) -> int:
    """Return how many of the acknowledged records are not there."""
    with httpx2.Client(
        headers={"Authorization": f"Bearer {key}"}, timeout=60, trust_env=False
    ) as web:
        answer = web.get(f"{served.url}/api/v1/applications").raise_for_status().json()
    kept = {application["reference"] for application in answer["applications"]}
    return len(written - kept)


class _Attacker:
    """Keeps connections half-open from a thread of its own, and opens closed ones again."""

    def __init__(self, target: tuple[str, int], addresses: Sequence[str]) -> None:
        self.opened = 0
        self._target = target
        self._addresses = addresses
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.standing = threading.Event()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with selectors.DefaultSelector() as watched:
            while not self._stop.is_set():
                while len(watched.get_map()) < HALF_OPEN and self._open(watched):
                    pass
                self.standing.set()
                for key, _ in watched.select(timeout=0.1):
                    # Whatever comes, an answer or an end, the connection is of no more use.
                    watched.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
            for key in list(watched.get_map().values()):
                key.fileobj.close()  # type: ignore[union-attr]

    def _open(self, watched: selectors.BaseSelector) -> bool:
        source = self._addresses[self.opened % len(self._addresses)]
        try:
            connection = socket.create_connection(self._target, 5, source_address=(source, 0))
            connection.sendall(_UNFINISHED)
        except OSError:
            return False
        self.opened += 1
        watched.register(connection, selectors.EVENT_READ)
        return True


@contextmanager
def _standing(served: Served, addresses: Sequence[str]) -> Iterator[_Attacker]:
    """The attack, from when all its connections were opened once."""
    host, port = served.url.removeprefix("http://").split(":")
    attacker = _Attacker((host, int(port)), addresses)
    attacker.start()
    try:
        attacker.standing.wait(timeout=60)
        yield attacker
    finally:
        attacker.stop()
