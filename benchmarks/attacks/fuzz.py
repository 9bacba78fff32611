"""Random calls of every REST route and MCP tool: what breaks, and what the costliest takes."""

import tempfile
import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

from benchmarks.table import Table
from tests.server.test_fuzz import (
    SEED,
    find_document,
    is_broken,
    make_honest_calls,
    make_requests,
    read_memory,
    read_processor_seconds,
    send,
    serve_filled,
)
from tests.support.govuk import run_emulator
from tests.support.hostile_values import KNOWN, ValueMaker
from tests.support.kit import HANG_SECONDS, Served

_NOTE = (
    "`make bench ARGS='--part attacks --write'`. One server with something in each base, one call "
    "after the other, from seeds other than the one of `make test`, which makes 5,100 such calls "
    "each time. Broken: a 5xx, -32603, or an answer that says that something went wrong."
)
_HEADER = ("calls", "broken", "slowest, processor s", "slowest, wall s", "memory, MB more")


def measure(times: int, seeds: int) -> Table:
    """Make `times` the calls of `make test` from each of some seeds."""
    with (
        tempfile.TemporaryDirectory() as folder,
        run_emulator() as upstream,
        serve_filled(Path(folder), upstream) as served,
    ):
        known = {**KNOWN}
        KNOWN["document_id"] = (find_document(served),)
        try:
            rows = [_count_calls(served, SEED + number, times) for number in range(1, seeds + 1)]
        finally:
            KNOWN.clear()
            KNOWN.update(known)
    return Table("Attacks: random calls", _HEADER, tuple(rows), _NOTE)


def _count_calls(served: Served, seed: int, times: int) -> tuple[str, ...]:
    process_id = served.process.pid
    call_count = broken_count = 0
    slowest_processor = slowest_wall = 0.0
    address = served.url.removeprefix("http://")
    with closing(HTTPConnection(address, timeout=HANG_SECONDS)) as connection:
        for request in make_honest_calls():
            send(connection, request)
        memory_before = read_memory(process_id)
        for request in make_requests(connection, ValueMaker(seed), times):
            processor, wall = read_processor_seconds(process_id), time.monotonic()
            status, answer = send(connection, request)
            slowest_wall = max(slowest_wall, time.monotonic() - wall)
            spent = read_processor_seconds(process_id) - processor
            slowest_processor = max(slowest_processor, spent)
            broken_count += is_broken(status, answer)
            call_count += 1
    memory = (read_memory(process_id) - memory_before) / 2**20
    figures = (f"{slowest_processor:.2f}", f"{slowest_wall:.2f}", f"{memory:+.0f}")
    return (f"{call_count:,}", str(broken_count), *figures)
