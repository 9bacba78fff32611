"""Files left for the owner of a base's folder, when the one who left them was killed."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.documents.service import DocumentsService
from readingroom.core import clock
from readingroom.ingest.context import IngestContext
from readingroom.ingest.private_copy import AllowedFolders
from readingroom.storage.handover import hand_over_file
from tests.support.documents import base as documents
from tests.support.policy import base as policies

Make = Callable[[Path, Callable[[], datetime]], Any]


def _open_policies(folder: Path, now: Callable[[], datetime]) -> Any:
    return policies.make_service(folder, **policies.PLAIN, get_now=now)


def _open_documents(folder: Path, now: Callable[[], datetime]) -> Any:
    roots = AllowedFolders("DOCUMENT_ROOTS", (folder / "inbox",), 2**20)
    bench = IngestContext(**documents.PLAIN, roots=roots, get_now=now)
    return DocumentsService(folder, folder / "chroma", bench)


@pytest.mark.anyio
@pytest.mark.parametrize("make", [_open_policies, _open_documents])
async def test_a_start_sweeps_what_was_left_a_day_ago_and_nothing_younger(
    tmp_path: Path, make: Make
) -> None:
    folder, file = tmp_path / "base", tmp_path / "left.pdf"
    file.write_bytes(b"%PDF-")
    name = hand_over_file(folder, file)
    (folder / "handover" / ("0" * 32)).mkdir()
    async with make(folder, clock.now).run_service():
        assert (folder / "handover" / name).exists()
    async with make(folder, lambda: clock.now() + timedelta(days=2)).run_service():
        assert list((folder / "handover").iterdir()) == []
