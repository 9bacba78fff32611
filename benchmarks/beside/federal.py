"""Both versions' federal base: official files loaded, then asked over REST."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.beside.client import HttpClient
from benchmarks.beside.rounds import (
    ROUNDS,
    Costs,
    ProcessorClock,
    add_cost,
    compare,
    open_versions,
)
from benchmarks.engine.corpus import SHARED
from benchmarks.redesign.tables import Version, measure_process, serve
from benchmarks.table import Table

_OFFICIAL = SHARED / "federal"
_FOLDERS = (
    "billstatus",
    "uslm",
    "congress-legislators",
    "crec",
    "unitedstates-congress",
    "samples",
)
_BILL = "hr:117:5376"
_STATEMENTS = 6
_CALLS = 25
_ADDRESSES: tuple[tuple[str, dict[str, Any]], ...] = (
    (f"/v1/bills/{_BILL}", {}),
    (f"/v1/bills/{_BILL}/dossier", {}),
    (f"/v1/bills/{_BILL}/cosponsors", {"limit": 20}),
    ("/v1/bills", {"limit": 20, "congress": 117}),
    ("/v1/search", {"q": "clean energy credit #", "mode": "lexical"}),
    ("/v1/search", {"q": "infrastructure #", "mode": "lexical", "congress": 117}),
    ("/v1/legislators", {"q": "Sen. Markey from Mass"}),
    ("/v1/committees", {"q": "House Transportation"}),
    ("/v1/bills", {"aggregate": "count", "group_by": "party"}),
    ("/v1/staff-directories", {"aggregate": "count", "group_by": "state"}),
    ("/v1/changes", {"since": "2020-01-01", "limit": 20}),
    ("/v1/fetch", {"id": _BILL}),
)


def tables(quick: bool) -> Iterator[Table]:
    if not _OFFICIAL.is_dir():
        print(f"The federal base is not measured: there is no {_OFFICIAL}", flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        versions = open_versions(Path(folder))
        yield compare(
            "Beside 0.1.0: the federal base",
            "beside-federal",
            versions,
            [measure_load, measure_answers],
            1 if quick else ROUNDS,
        )


def measure_load(version: Version) -> Costs:
    """Return what a load costs, the same again, and one of PDFs; the data stays for the answers."""
    shutil.rmtree(version.sample, ignore_errors=True)
    version.sample.mkdir(parents=True)
    (version.sample / "readingroom.toml").write_text("rate_limit = 0\n", "utf-8")
    folders = [str(_OFFICIAL / name) for name in _FOLDERS]
    statements = sorted((_OFFICIAL / "saps" / "archive").glob("*.yaml"))[:_STATEMENTS]
    return {
        "`federal load` of the official files": _load(version, folders),
        "the same again, nothing changed": _load(version, folders),
        f"`federal load` of {len(statements)} statements with their PDFs": _load(
            version, [str(path) for path in statements]
        ),
    }


def measure_answers(version: Version) -> Costs:
    """Return what one request of each kind costs a server of what `measure_load` loaded."""
    costs: Costs = {}
    with serve(version, version.sample, "federal") as (process, address):
        clock, client = ProcessorClock(process.pid), HttpClient(address)
        for path, parameters in _ADDRESSES:
            shown = "&".join(f"{name}={value}" for name, value in parameters.items())
            row = f"`GET {path}{'?' if shown else ''}{shown}`".replace(" #", "")
            for number in range(3):
                client.get(path, _fill_in(parameters, 1000 + number))
            with add_cost(costs, row, clock, _CALLS):
                for number in range(_CALLS):
                    client.get(path, _fill_in(parameters, number))
        client.close()
    return costs


def _load(version: Version, paths: list[str]) -> float:
    command = version.command("federal", "load", *paths, "--data", str(version.sample))
    return measure_process(command, version)


def _fill_in(parameters: dict[str, Any], number: int) -> dict[str, Any]:
    return {name: str(value).replace("#", str(number)) for name, value in parameters.items()}
