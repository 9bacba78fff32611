"""Files made to harm: each becomes a typed error within its limits, and nothing is left behind."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest

from readingroom.core.errors import KnowledgeError
from readingroom.ingest.document import Document, Skipped
from readingroom.ingest.intake import Roots, take
from readingroom.ingest.pipeline import Pipeline
from readingroom.ingest.sandbox import Limits, Sandbox
from tests import hostile
from tests.processes import descendants
from tests.requirements import requirement

TYPED = {
    "file_not_found",
    "unsupported_file_type",
    "extraction_failed",
    "no_content",
    "no_chunks",
}
LIMITS = Limits(cpu_seconds=15, wall_seconds=40, silent_seconds=30)


async def quiet(done: float, total: float | None, message: str | None) -> None:
    """Progress that nobody follows."""


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    before = descendants()
    yield
    assert descendants() == before


@pytest.mark.parametrize("name", hostile.FILES)
@requirement("ingest:hostile")
@pytest.mark.anyio
async def test_a_hostile_file_is_a_typed_error_within_its_limits(name: str) -> None:
    began = time.monotonic()

    with take(hostile.FILES[name](), name, 2**28) as intake, pytest.raises(KnowledgeError) as told:
        await Pipeline(Sandbox(LIMITS)).read(intake, quiet)

    assert told.value.code in TYPED
    assert "log has the reason" not in told.value.message, "a reason nobody foresaw"
    assert time.monotonic() - began < LIMITS.wall_seconds


@requirement("ingest:hostile")
def test_a_named_pipe_and_a_link_out_are_not_found(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pdf")
    (tmp_path / "passwd.pdf").symlink_to("/etc/passwd")
    roots = Roots("DOCUMENT_ROOTS", (tmp_path,), largest=2**20)

    for name in ("pipe.pdf", "passwd.pdf"):
        with pytest.raises(KnowledgeError) as told, roots.open(str(tmp_path / name)):
            pass
        assert told.value.code == "file_not_found"


@pytest.mark.slow
@pytest.mark.data
@requirement("ingest:corpus")
@pytest.mark.anyio
async def test_every_real_file_gives_an_answer_or_a_typed_error(shared_data: Path) -> None:
    files = [
        path
        for path in sorted((shared_data / "documents").rglob("*"))
        if path.suffix in (".pdf", ".png", ".jpg", ".tif")
    ]
    told: dict[str, str] = {}
    pipeline = Pipeline(Sandbox(Limits(wall_seconds=240)))

    async with anyio.create_task_group() as tasks:
        for path in files:
            tasks.start_soon(read, pipeline, path, told)

    assert len(told) == len(files) >= 90
    assert set(told.values()) <= {"text_layer", "ocr", "mixed", "skipped", *TYPED}
    assert told["pypdf/encryption/r6-empty-password.pdf"] == "text_layer"
    assert told["pypdf/encryption/r6-user-password.pdf"] == "extraction_failed"
    assert told["pikepdf/newline-buffer-test.pdf"] == "extraction_failed"  # no pages
    assert told["ocrmypdf/linn.pdf"] == "ocr"
    assert told["ocrmypdf/cardinal.pdf"] == "ocr"  # on their sides
    assert told["ocrmypdf/lichtenstein.pdf"] == "skipped"  # a photograph
    assert told["pypdf/Seige_of_Vicksburg_Sample_OCR.pdf"] == "text_layer"  # a searchable scan
    assert told["ocrmypdf/multipage.pdf"] == "mixed"
    assert told["ocrmypdf/blank.pdf"] == "no_content"


async def read(pipeline: Pipeline, path: Path, told: dict[str, str]) -> None:
    with ExitStack() as stack:
        intake = stack.enter_context(take(path.read_bytes(), path.name, largest=2**28))
        try:
            found = await pipeline.read(intake, quiet)
        except KnowledgeError as error:
            outcome = error.code
        else:
            assert isinstance(found, Document | Skipped)
            outcome = found.method if isinstance(found, Document) else "skipped"
    told["/".join(path.parts[path.parts.index("documents") + 1 :])] = outcome
