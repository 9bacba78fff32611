"""Files made to harm: each becomes a typed error within its limits, and nothing is left behind."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from readingroom.core.errors import KnowledgeError
from readingroom.core.progress import no_progress
from readingroom.ingest.pipeline import Pipeline
from readingroom.ingest.private_copy import AllowedFolders
from readingroom.ingest.read.sandbox import ReadingLimits, Sandbox
from tests.requirements import requirement
from tests.support import hostile
from tests.support.papers import open_private_copy
from tests.support.processes import list_descendants

TYPED = {
    "file_not_found",
    "unsupported_file_type",
    "extraction_failed",
    "no_content",
    "no_chunks",
}
LIMITS = ReadingLimits(cpu_seconds=15, wall_seconds=300, silent_seconds=200)


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    before = list_descendants()
    yield
    assert list_descendants() == before


@pytest.mark.parametrize("name", hostile.FILES)
@requirement("ingest:hostile")
@pytest.mark.anyio
async def test_a_hostile_file_is_a_typed_error_within_its_limits(name: str) -> None:
    with (
        open_private_copy(hostile.FILES[name](), name) as private_copy,
        pytest.raises(KnowledgeError) as told,
    ):
        await Pipeline(Sandbox(LIMITS)).read_document(private_copy, no_progress)

    assert told.value.code in TYPED
    assert "log has the reason" not in told.value.message, "a reason nobody foresaw"
    assert "seconds in all" not in told.value.message, "it came to the limit of time"


@requirement("ingest:hostile")
def test_a_named_pipe_and_a_link_out_are_not_found(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pdf")
    (tmp_path / "passwd.pdf").symlink_to("/etc/passwd")
    roots = AllowedFolders("DOCUMENT_ROOTS", (tmp_path,), max_file_bytes=2**20)

    for name in ("pipe.pdf", "passwd.pdf"):
        with pytest.raises(KnowledgeError) as told, roots.open_copy(str(tmp_path / name)):
            pass
        assert told.value.code == "file_not_found"
