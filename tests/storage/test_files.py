"""Files that are kept, and what a caller is told when one cannot be."""

import io
from pathlib import Path

import pytest

from readingroom.storage.database import open_small_database
from readingroom.storage.errors import StorageFailed
from readingroom.storage.files import copy_stream
from tests.requirements import requirement


@requirement("room:paths")
def test_a_full_disk_is_told_without_a_path_and_leaves_no_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    target = tmp_path / "kept.pdf"
    target.symlink_to("/dev/full")
    with pytest.raises(StorageFailed) as refusal:
        copy_stream(io.BytesIO(bytes(100_000)), target)
    assert refusal.value.message == "The file cannot be kept: No space left on device"
    assert list(tmp_path.iterdir()) == []
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(StorageFailed) as refusal:
        copy_stream(io.BytesIO(b"x"), blocked / "kept.pdf")
    assert str(tmp_path) not in refusal.value.message
    assert str(blocked) in caplog.text


@requirement("room:paths")
def test_a_database_that_cannot_be_used_is_told_by_its_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "intents.db"
    path.write_bytes(b"no database" * 100)
    with pytest.raises(StorageFailed) as refusal, open_small_database(path, "SELECT 1"):
        pass
    assert refusal.value.message == "intents.db cannot be used: file is not a database"
    assert str(path) in caplog.text
    with (
        pytest.raises(StorageFailed) as refusal,
        open_small_database(path / "below.db", "SELECT 1"),
    ):
        pass
    assert str(tmp_path) not in refusal.value.message
