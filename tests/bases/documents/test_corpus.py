"""Real files through a real client: a specified outcome for each; the server stays small."""

from pathlib import Path

import pytest

from tests.requirements import requirement
from tests.support.documents.base import make_data_with_model
from tests.support.documents.real import describe_outcome, ingest_all, list_files, sample_of
from tests.support.kit import serve_room
from tests.support.processes import read_resident_mb

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.data]

OUTCOMES = {
    *("success", "already_ingested", "skipped"),
    *("unsupported_file_type", "extraction_failed", "no_content", "no_chunks"),
}
EXPECTED = {
    "pypdf/encryption/r6-empty-password.pdf": "text_layer",
    "pypdf/encryption/r6-user-password.pdf": "extraction_failed",
    "pikepdf/newline-buffer-test.pdf": "extraction_failed",  # no pages
    "ocrmypdf/linn.pdf": "ocr",
    "ocrmypdf/lichtenstein.pdf": "skipped",  # a photograph
    "pypdf/Seige_of_Vicksburg_Sample_OCR.pdf": "text_layer",  # a searchable scan
    "ocrmypdf/blank.pdf": "no_content",
}
EXPECTED_OF_MANY_PAGES = {  # OCR of these two takes as long as everything else together
    "ocrmypdf/cardinal.pdf": "ocr",  # on their sides
    "ocrmypdf/multipage.pdf": "mixed",
}


@requirement("ingest:corpus", "documents:corpus")
async def test_each_of_a_sample_of_real_files_has_a_specified_outcome(
    tmp_path: Path, shared_data: Path
) -> None:
    folder = shared_data / "documents"
    sample = sample_of(folder, always=EXPECTED)
    assert len(sample) >= 15
    await _check_outcomes(tmp_path / "data", folder, sample, EXPECTED, repeats=1)


@requirement("ingest:corpus", "documents:corpus")
@pytest.mark.full
async def test_every_real_file_has_a_specified_outcome_and_repeats_cost_no_memory(
    tmp_path: Path, shared_data: Path
) -> None:
    folder = shared_data / "documents"
    files = list_files(folder)
    assert len(files) >= 90
    expected = EXPECTED | EXPECTED_OF_MANY_PAGES
    await _check_outcomes(tmp_path / "data", folder, files, expected, repeats=2)


async def _check_outcomes(
    data: Path, folder: Path, files: list[Path], expected: dict[str, str], repeats: int
) -> None:
    """Repeats read again what was skipped or failed; the rest is known. That reading and removing
    everything again costs no memory either is measured in `benchmarks/documents/memory.py`.
    """
    make_data_with_model(data)
    with serve_room("documents", data=data, env={"DOCUMENT_ROOTS": str(folder)}) as served:
        answers = await ingest_all(served, folder, files)
        first = read_resident_mb(served.process.pid)
        again = [await ingest_all(served, folder, files) for _ in range(repeats)]
        last = read_resident_mb(served.process.pid)
        assert served.get("/health").status_code == 200
    assert len(answers) == len(files)
    for answer in answers.values():
        assert answer.get("error_type", answer["status"]) in OUTCOMES
    outcomes = {name: describe_outcome(answer) for name, answer in answers.items()}
    assert {name: outcomes[name] for name in expected} == expected
    ingested = {name for name, answer in answers.items() if answer["status"] == "success"}
    for repeat in again:
        assert ingested <= {
            name for name, answer in repeat.items() if answer["status"] == "already_ingested"
        }
    assert last < first + 40
