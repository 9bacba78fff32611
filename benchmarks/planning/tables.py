"""30 revisions of 80 pages and 120 documents brought in: processor time, memory and disk."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio

from benchmarks.documents.ingest import read_processor_seconds, write_reports
from benchmarks.policy.memory import (
    create_policy,
    run_policy_server,
    upload_revision,
    wait_until_active,
)
from benchmarks.table import Table
from tests.support.documents.base import REF, make_data_with_model
from tests.support.kit import Served, connect_http, read_body, serve_room
from tests.support.policy.base import seed_pdf
from tests.support.processes import read_resident_mb

_PARAGRAPHS_PER_PAGE = 12
_REVISIONS_PER_POLICY = 3
_MAX_PEAK_MB = 2048
_NOTE = (
    "{revisions} revisions of {pages} pages, {per_policy} of each policy, uploaded one after "
    "another; {documents} documents of {document_pages} pages, by `ingest_folder`. Generated "
    "texts. Processor seconds and peak resident memory are the server's, the seconds with "
    "those of its readers; the contract of the policy base allows {max_peak_mb:,} MB."
)


def tables(quick: bool) -> Iterator[Table]:
    revisions, pages = (3, 8) if quick else (30, 80)
    documents, document_pages = (6, 4) if quick else (120, 12)
    rows = (
        _measure_revisions(revisions, pages),
        _measure_documents(documents, document_pages),
    )
    note = _NOTE.format(
        revisions=revisions,
        pages=pages,
        per_policy=_REVISIONS_PER_POLICY,
        documents=documents,
        document_pages=document_pages,
        max_peak_mb=_MAX_PEAK_MB,
    )
    header = ("what", "processor time", "a page", "peak MB", "on disk", "target")
    yield Table("A planning office's records brought in", header, rows, note)


def _measure_revisions(revision_count: int, pages: int) -> tuple[str, ...]:
    with run_policy_server() as server:
        before = read_processor_seconds(server)
        for number in range(revision_count):
            policy, revision = divmod(number, _REVISIONS_PER_POLICY)
            source = f"PLAN_{policy}"
            if revision == 0:
                create_policy(server, source, f"Plan {policy}", "local_plan")
            year = f"{2000 + revision}"
            content = seed_pdf(source, year, _PARAGRAPHS_PER_PAGE * pages)
            status = upload_revision(server, source, year, f"{year}-01-01", content)
            anyio.run(wait_until_active, server, status)
        seconds = read_processor_seconds(server) - before
        name = f"{revision_count} revisions of {pages} pages"
        return _make_row(name, server, seconds, revision_count * pages, server.data)


def _measure_documents(document_count: int, pages: int) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        inbox = make_data_with_model(data)
        write_reports(inbox, document_count, pages)
        with serve_room("documents", data=data) as server:
            before = read_processor_seconds(server)
            anyio.run(_ingest_folder, server, inbox)
            seconds = read_processor_seconds(server) - before
            name = f"{document_count} documents of {pages} pages"
            return _make_row(name, server, seconds, document_count * pages, data)


async def _ingest_folder(server: Served, inbox: Path) -> None:
    async with connect_http(f"{server.url}/mcp", seconds=3600) as client:
        arguments = {"path": str(inbox), "application_ref": REF}
        answer = read_body(await client.call_tool("ingest_folder", arguments))
        assert answer["ingested"] == answer["file_count"], answer


def _make_row(
    name: str, server: Served, seconds: float, page_count: int, data: Path
) -> tuple[str, ...]:
    peak_mb = read_resident_mb(server.process.pid, "VmHWM")
    disk_bytes = sum(path.stat().st_size for path in data.rglob("*") if path.is_file())
    verdict = "met" if peak_mb <= _MAX_PEAK_MB else "**missed**"
    return (
        name,
        f"{seconds:.0f} s",
        f"{1000 * seconds / page_count:.0f} ms",
        f"{peak_mb:.0f}",
        f"{disk_bytes / 2**20:.0f} MB",
        f"{verdict} (at most {_MAX_PEAK_MB:,} MB)",
    )
