"""Taking files in: from inside the roots only, hashed as they are copied."""

import hashlib
import os
from pathlib import Path

import pytest

from readingroom.ingest import private_copy as private_copies
from readingroom.ingest.errors import ExtractionFailed, FileNotFound
from readingroom.ingest.private_copy import AllowedFolders, enter_copy_in_thread
from readingroom.ingest.setup import make_ingest_context
from readingroom.settings import load_settings
from tests.requirements import requirement
from tests.support.papers import open_private_copy


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "plan.pdf").write_bytes(b"%PDF-1.7 plan")
    (tmp_path / "secret.pdf").write_bytes(b"%PDF-1.7 secret")
    return folder


def make_roots(inbox: Path, largest: int = 2**20) -> AllowedFolders:
    return AllowedFolders("DOCUMENT_ROOTS", (inbox.parent / "none", inbox), largest)


@requirement("ingest:roots")
def test_a_file_inside_a_root_is_taken_with_its_hash(inbox: Path) -> None:
    with make_roots(inbox).open_copy(str(inbox / "deep" / "er" / "plan.pdf")) as private_copy:
        assert private_copy.file_name == "plan.pdf"
        assert private_copy.size_bytes == 13
        assert private_copy.sha256 == hashlib.sha256(b"%PDF-1.7 plan").hexdigest()
        assert private_copy.read_first_bytes(8) == b"%PDF-1.7"


@requirement("ingest:roots")
def test_what_is_hashed_is_what_is_parsed_even_if_the_file_changes_meanwhile(inbox: Path) -> None:
    path = inbox / "deep" / "er" / "plan.pdf"

    with make_roots(inbox).open_copy(str(path)) as private_copy:
        path.write_bytes(b"%PDF-1.7 another plan")

        private_copy.file.seek(0)
        assert hashlib.sha256(private_copy.file.read()).hexdigest() == private_copy.sha256


@pytest.mark.parametrize(
    "path",
    [
        "{inbox}/../secret.pdf",
        "{inbox}/deep/../../secret.pdf",
        "{inbox}/link.pdf",
        "{inbox}/way/secret.pdf",
        "{inbox}",
        "/etc/passwd",
        "/nowhere/at/all.pdf",
        "deep/er/plan.pdf",
        "",
    ],
)
@requirement("ingest:roots")
def test_a_path_that_leads_out_is_outside_and_nothing_is_said_of_it(inbox: Path, path: str) -> None:
    (inbox / "link.pdf").symlink_to(inbox.parent / "secret.pdf")
    (inbox / "way").symlink_to(inbox.parent)

    with (
        pytest.raises(FileNotFound, match="is outside DOCUMENT_ROOTS"),
        make_roots(inbox).open_copy(path.format(inbox=inbox)),
    ):
        pass


@requirement("ingest:roots")
def test_a_link_that_stays_inside_is_followed(inbox: Path) -> None:
    (inbox / "link.pdf").symlink_to(inbox / "deep" / "er" / "plan.pdf")

    with make_roots(inbox).open_copy(str(inbox / "link.pdf")) as private_copy:
        assert private_copy.file_name == "plan.pdf"


@pytest.mark.parametrize("name", ["missing.pdf", "deep", "pipe.pdf", "a\0b.pdf", "a" * 5000])
@requirement("ingest:roots")
def test_what_is_no_regular_file_is_not_found(inbox: Path, name: str) -> None:
    os.mkfifo(inbox / "pipe.pdf")

    with pytest.raises(FileNotFound), make_roots(inbox).open_copy(f"{inbox}/{name}"):
        pass


@requirement("ingest:roots")
def test_a_folder_swapped_for_a_link_after_the_check_leads_nowhere(
    inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (inbox.parent / "er").mkdir()
    (inbox.parent / "er" / "plan.pdf").write_bytes(b"%PDF-1.7 secret")
    honest = private_copies._open_file_without_links

    def swapped(folder: Path, parts: tuple[str, ...]) -> int:
        (inbox / "deep").rename(inbox / "gone")
        (inbox / "deep").symlink_to(inbox.parent)
        return honest(folder, parts)

    monkeypatch.setattr(private_copies, "_open_file_without_links", swapped)

    with (
        pytest.raises(FileNotFound),
        make_roots(inbox).open_copy(str(inbox / "deep" / "er" / "plan.pdf")),
    ):
        pass


@requirement("ingest:roots")
def test_a_file_over_the_size_cap_is_refused(inbox: Path) -> None:
    with (
        pytest.raises(ExtractionFailed, match="larger than 0 MB") as told,
        make_roots(inbox, largest=12).open_copy(str(inbox / "deep" / "er" / "plan.pdf")),
    ):
        pass
    assert told.value.hint == {"largest_bytes": 12}


@requirement("ingest:roots")
def test_a_large_sparse_file_is_refused_before_a_byte_of_it_is_read(
    inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (inbox / "sparse.pdf").open("wb") as file:
        file.truncate(20 * 2**30)
    monkeypatch.delattr(private_copies.os, "read")

    with (
        pytest.raises(ExtractionFailed, match="larger than 1 MB"),
        make_roots(inbox).open_copy(str(inbox / "sparse.pdf")),
    ):
        pass


@requirement("ingest:roots")
def test_bytes_handed_over_keep_only_the_last_part_of_their_name() -> None:
    with open_private_copy(b"%PDF-1.7", "../../etc/plan.pdf") as private_copy:
        assert (private_copy.file_name, private_copy.size_bytes) == ("plan.pdf", 8)


@pytest.mark.anyio
@requirement("ingest:roots")
async def test_a_file_is_taken_in_a_thread_and_let_go_of_at_the_end(inbox: Path) -> None:
    async with enter_copy_in_thread(
        make_roots(inbox).open_copy(str(inbox / "deep" / "er" / "plan.pdf"))
    ) as private_copy:
        assert private_copy.size_bytes == 13
    assert private_copy.file.closed
    with pytest.raises(FileNotFound):
        async with enter_copy_in_thread(make_roots(inbox).open_copy("/etc/passwd")):
            pass


@requirement("ingest:settings")
def test_the_roots_are_the_ones_set_or_the_bases_own(tmp_path: Path) -> None:
    set_by_hand = {"DOCUMENT_ROOTS": "/srv/a, /srv/b", "READINGROOM_MAX_DOCUMENT_BYTES": "4096"}

    settings = load_settings({"data": tmp_path}, set_by_hand)
    roots = settings.document_roots
    documents = make_ingest_context(settings, "documents", "DOCUMENT_ROOTS", roots).roots
    policy = make_ingest_context(settings, "policy", "POLICY_ROOTS", settings.policy_roots).roots

    copies = tmp_path / "tmp"
    assert documents == AllowedFolders(
        "DOCUMENT_ROOTS", (Path("/srv/a"), Path("/srv/b")), 4096, copies
    )
    own = tmp_path / "policy"
    assert policy == AllowedFolders("POLICY_ROOTS", (own / "inbox", own / "uploads"), 4096, copies)
