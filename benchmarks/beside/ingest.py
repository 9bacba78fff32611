"""Both versions bringing documents in: files read, a policy uploaded, a folder ingested."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.beside.client import HttpClient
from benchmarks.beside.rounds import (
    ROUNDS,
    Costs,
    ProcessorClock,
    add_cost,
    compare,
    open_versions,
    run_workload,
)
from benchmarks.engine.corpus import SHARED
from benchmarks.redesign.tables import MODELS, Version, serve
from benchmarks.server.wires import call_tool
from benchmarks.table import Table
from tests.support.policy.base import seed_pdf

_API = "/api/v1/policies"
_PARAGRAPHS = 60
_FILES = 4
_INGEST_SECONDS = 300
_BOUNDARY = "benchmarks"


def tables(quick: bool) -> Iterator[Table]:
    measurements = [measure_ingestion]
    if SHARED.is_dir():
        measurements += [measure_reading, measure_sandbox]
    with tempfile.TemporaryDirectory() as folder:
        yield compare(
            "Beside 0.1.0: ingesting",
            "beside-ingest",
            open_versions(Path(folder)),
            measurements,
            1 if quick else ROUNDS,
        )


def measure_reading(version: Version) -> Costs:
    costs: Costs = run_workload("reading", version, str(SHARED))
    return costs


def measure_sandbox(version: Version) -> Costs:
    costs: Costs = run_workload("sandbox", version, str(SHARED))
    return costs


def measure_ingestion(version: Version) -> Costs:
    """Return what a policy costs from upload to `active`, and a folder of documents."""
    costs: Costs = {}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        (data / "models").symlink_to(MODELS)
        inbox = data / "documents" / "inbox"
        inbox.mkdir(parents=True)
        for number in range(_FILES):
            pdf = seed_pdf(f"REPORT{number}", "2024", _PARAGRAPHS // _FILES)
            (inbox / f"Report {number}.pdf").write_bytes(pdf)
        with serve(version, data) as (process, address):
            clock, client = ProcessorClock(process.pid), HttpClient(address)
            new_policy = b'{"source": "NPPF", "title": "Framework", "category": "national_policy"}'
            client.post(_API, new_policy, "application/json")
            _upload(client, "2000", 2)  # loads the model
            with add_cost(
                costs, f"a policy of {_PARAGRAPHS} paragraphs, upload to `active`", clock
            ):
                _upload(client, "2020", _PARAGRAPHS)
            arguments = {"path": str(inbox), "application_ref": "25/01178/REM"}
            with add_cost(costs, f"`ingest_folder` of {_FILES} documents", clock):
                answer = client.send_message("/mcp", call_tool("ingest_folder", arguments))
            assert answer["structuredContent"]["ingested"] == _FILES, answer
            client.close()
    return costs


def _upload(client: HttpClient, year: str, paragraphs: int) -> None:
    """Upload a revision and wait until it can be searched."""
    fields = {"version_label": year, "effective_from": f"{year}-01-01"}
    parts = [
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    head = (
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="policy.pdf"\r\n'
        "Content-Type: application/pdf\r\n\r\n"
    )
    body = "".join((*parts, head)).encode() + seed_pdf("NPPF", year, paragraphs)
    body += f"\r\n--{_BOUNDARY}--\r\n".encode()
    path = f"{_API}/NPPF/revisions"
    answer = client.post(path, body, f"multipart/form-data; boundary={_BOUNDARY}")
    deadline = time.monotonic() + _INGEST_SECONDS
    while (state := client.get(answer["links"]["status"])["status"]) != "active":
        assert state == "processing", state
        if time.monotonic() > deadline:
            raise TimeoutError("the revision did not become active in time")
        time.sleep(0.5)  # each question costs the server time that is counted
