"""Every real file through a real client: a specified outcome for each; the server stays small."""

from pathlib import Path

import pytest

from tests.requirements import requirement
from tests.support.documents.base import room_with_model
from tests.support.documents.real import files_in, ingest_all, outcome
from tests.support.kit import serving
from tests.support.processes import resident_mb

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.data]

OUTCOMES = {
    *("success", "already_ingested", "skipped"),
    *("unsupported_file_type", "extraction_failed", "no_content", "no_chunks"),
}


@requirement("ingest:corpus", "documents:corpus")
async def test_every_real_file_has_a_specified_outcome_and_repeats_cost_no_memory(
    tmp_path: Path, shared_data: Path
) -> None:
    """Repeats read again what was skipped or failed; the rest is known. That reading and removing
    everything again costs none either is measured in `benchmarks/documents/memory.py`.
    """
    folder = shared_data / "documents"
    room_with_model(tmp_path / "data")
    env = {"DOCUMENT_ROOTS": str(folder)}
    with serving("documents", data=tmp_path / "data", env=env) as served:
        told = await ingest_all(served, folder)
        first = resident_mb(served.process.pid)
        again = [await ingest_all(served, folder) for _ in range(2)]
        last = resident_mb(served.process.pid)
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
    ingested = {name for name, answer in told.items() if answer["status"] == "success"}
    for repeat in again:
        assert {name for name, one in repeat.items() if one["status"] == "already_ingested"} >= (
            ingested
        )
    assert last < first + 40
