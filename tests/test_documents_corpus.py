"""Every real file through a real client: a specified outcome for each; the server stays small."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.documents import REF, room_with_model
from tests.kit import Served, body, http, serving
from tests.requirements import requirement

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.data]

OUTCOMES = {
    *("success", "already_ingested", "skipped"),
    *("unsupported_file_type", "extraction_failed", "no_content", "no_chunks"),
}
AT_ONCE = 3


def files_in(folder: Path) -> list[Path]:
    kinds = (".pdf", ".png", ".jpg", ".tif", ".tiff", ".bmp")
    return [path for path in sorted(folder.rglob("*")) if path.suffix in kinds]


async def ingest_all(served: Served, folder: Path) -> dict[str, Any]:
    """Each file by a call of its own; the answers by name."""
    told: dict[str, Any] = {}
    seats = anyio.Semaphore(AT_ONCE)
    async with http(f"{served.url}/mcp", seconds=300) as client:

        async def ingest(path: Path) -> None:
            async with seats:
                asked = {"file_path": str(path), "application_ref": REF}
                answer = body(await client.call_tool("ingest_document", asked))
                told[str(path.relative_to(folder))] = answer

        async with anyio.create_task_group() as tasks:
            for path in files_in(folder):
                tasks.start_soon(ingest, path)
    return told


async def remove_all(served: Served) -> None:
    async with http(f"{served.url}/mcp") as client:
        listed = body(await client.call_tool("list_ingested_documents", {"application_ref": REF}))
        for one in listed["documents"]:
            await client.call_tool("remove_document", {"document_id": one["document_id"]})


def resident_mb(served: Served) -> int:
    status = Path(f"/proc/{served.process.pid}/status").read_text("utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) // 1024


def outcome(answer: dict[str, Any]) -> str:
    return str(answer.get("error_type") or answer.get("extraction_method") or answer["status"])


@requirement("ingest:corpus", "documents:corpus")
async def test_every_real_file_has_a_specified_outcome(tmp_path: Path, shared_data: Path) -> None:
    folder = shared_data / "documents"
    room_with_model(tmp_path / "data")
    env = {"DOCUMENT_ROOTS": str(folder)}
    with serving("documents", data=tmp_path / "data", env=env) as served:
        told = await ingest_all(served, folder)
        assert served.get("/health").status_code == 200
    assert len(told) == len(files_in(folder)) >= 90
    for answer in told.values():
        assert answer.get("error_type", answer["status"]) in OUTCOMES
    known = {name: outcome(answer) for name, answer in told.items()}
    assert known["pypdf/encryption/r6-empty-password.pdf"] == "text_layer"
    assert known["pypdf/encryption/r6-user-password.pdf"] == "extraction_failed"
    assert known["pikepdf/newline-buffer-test.pdf"] == "extraction_failed"  # no pages
    assert known["ocrmypdf/linn.pdf"] == "ocr"
    assert known["ocrmypdf/cardinal.pdf"] == "ocr"  # on their sides
    assert known["ocrmypdf/lichtenstein.pdf"] == "skipped"  # a photograph
    assert known["pypdf/Seige_of_Vicksburg_Sample_OCR.pdf"] == "text_layer"  # a searchable scan
    assert known["ocrmypdf/multipage.pdf"] == "mixed"
    assert known["ocrmypdf/blank.pdf"] == "no_content"


@requirement("documents:corpus")
async def test_the_server_does_not_grow_over_three_repeats(
    tmp_path: Path, shared_data: Path
) -> None:
    """Without OCR, whose memory is another process's: each file is read, embedded, removed."""
    folder = shared_data / "documents"
    room_with_model(tmp_path / "data")
    env = {"DOCUMENT_ROOTS": str(folder), "ENABLE_OCR": "false"}
    sizes, answers = [], []
    with serving("documents", data=tmp_path / "data", env=env) as served:
        for _ in range(3):
            told = await ingest_all(served, folder)
            answers.append({name: outcome(answer) for name, answer in told.items()})
            await remove_all(served)
            sizes.append(resident_mb(served))
    assert answers[0] == answers[1] == answers[2]
    # What is loaded once is loaded after the first; a leak of a file's size would show three times.
    assert sizes[2] < sizes[0] + 40, sizes
