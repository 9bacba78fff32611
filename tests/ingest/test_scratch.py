"""Scratch folders: deleted at the end, swept after a kill -9, never taken from a live server."""

import errno
import fcntl
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import pytest

from readingroom.core.progress import no_progress
from readingroom.ingest.private_copy import open_stored_file
from readingroom.ingest.read.scratch import ScratchFolders
from readingroom.ingest.setup import make_ingest_context
from readingroom.settings import load_settings
from tests.requirements import requirement
from tests.support.papers import make_paper
from tests.support.processes import wait_until

pytestmark = pytest.mark.anyio

SERVER = """
    import sys, time
    from pathlib import Path
    import anyio
    from readingroom.ingest.read.scratch import ScratchFolders

    async def serve():
        async with ScratchFolders(Path(sys.argv[1])).make_scratch_folder() as folder:
            Path(folder, "page.ppm").write_bytes(b"a confidential page")
            time.sleep(600)

    anyio.run(serve)
"""


def start_server(parent: Path) -> subprocess.Popen[bytes]:
    """A server in the middle of reading a file."""
    before = {*parent.glob("*/page.ppm")}
    server = subprocess.Popen([sys.executable, "-c", textwrap.dedent(SERVER), str(parent)])
    wait_until(lambda: any(page.stat().st_size for page in {*parent.glob("*/page.ppm")} - before))
    return server


@requirement("ingest:sandbox:scratch")
async def test_what_a_killed_server_left_is_swept_and_a_live_ones_stays(tmp_path: Path) -> None:
    killed, alive = start_server(tmp_path), start_server(tmp_path)
    killed.kill()
    killed.wait()
    others = tmp_path / "readingroom-of-somebody-else"
    others.mkdir()
    assert len([*tmp_path.glob("*/page.ppm")]) == 2

    try:
        async with ScratchFolders(tmp_path).make_scratch_folder() as folder:
            assert Path(folder).exists()
            assert len([*tmp_path.glob("*/page.ppm")]) == 1
            assert others.exists()
    finally:
        alive.kill()
        alive.wait()

    assert not Path(folder).exists()


@requirement("ingest:sandbox:scratch")
async def test_where_folders_cannot_be_locked_nothing_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.EBADF, "NFS")

    monkeypatch.setattr(fcntl, "flock", refuse)
    others = tmp_path / "readingroom-scratch-other"
    others.mkdir()

    async with ScratchFolders(tmp_path).make_scratch_folder() as folder:
        assert Path(folder).exists()

    assert [*tmp_path.iterdir()] == [others]


@requirement("ingest:sandbox:scratch")
async def test_documents_are_copied_and_read_in_the_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder for temporary files may be in memory, and small."""
    unusable = tmp_path / "none"
    monkeypatch.setattr(tempfile, "tempdir", str(unusable))
    data, source = tmp_path / "data", tmp_path / "a.pdf"
    source.write_bytes(make_paper("A page with enough words on it."))
    settings = load_settings({"data": data}, {"DOCUMENT_ROOTS": str(tmp_path)})
    context = make_ingest_context(settings, "documents", "DOCUMENT_ROOTS", settings.document_roots)

    with context.roots.open_copy(str(source)) as private_copy:
        await context.pipeline.read_document(private_copy, no_progress)
    with open_stored_file(source, "a.pdf", 2**20) as private_copy:
        await context.pipeline.render_page(private_copy.file, "a.pdf", 1, 72)

    assert not unusable.exists()
    assert [*(data / "tmp").iterdir()] == []


@requirement("ingest:sandbox:scratch")
async def test_a_folder_that_another_process_sweeps_at_once_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between making it and opening it, nobody holds its lock yet."""
    make_folder = tempfile.mkdtemp
    swept_paths = []

    def make_and_sweep_once(*arguments: Any, **options: Any) -> str:
        made_path = make_folder(*arguments, **options)
        if not swept_paths:
            swept_paths.append(made_path)
            Path(made_path).rmdir()
        return made_path

    monkeypatch.setattr(tempfile, "mkdtemp", make_and_sweep_once)
    async with ScratchFolders(tmp_path).make_scratch_folder() as scratch_folder:
        assert Path(scratch_folder).is_dir()
        assert swept_paths and scratch_folder not in swept_paths
