"""Pages of policies as pictures, drawn from the PDFs that are kept, with a passage marked."""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import anyio.to_thread

from readingroom.bases.policy.admin.service import PolicyAdmin
from readingroom.bases.policy.service import PolicyService
from readingroom.core.errors import RecordNotFound
from readingroom.ingest.errors import FileNotFound
from readingroom.ingest.page_pictures import PassageRectangle, StoredFile
from readingroom.protocol.resources import PageImage

_IMAGE_DPI = 100
_MAX_QUOTATION_CHARS = 2000


class PolicyPictures:
    """The pages of the revisions of one policy base."""

    def __init__(self, policy_service: PolicyService) -> None:
        self._service = policy_service

    async def draw_page(
        self, policy_slug: str, revision_id: str, page_number: int, dpi: int
    ) -> bytes:
        """Return a page as a lossless WebP.

        Raise FileNotFound when the PDF is not kept, and ExtractionFailed when it has no such page.
        """
        file_path, sha256 = await self._locate_and_hash_in_thread(policy_slug, revision_id)
        with _open_file(file_path, policy_slug, revision_id, sha256) as stored_file:
            return await self._service.ingestion.pictures.draw_page(stored_file, page_number, dpi)

    async def locate_passage(
        self, policy_slug: str, revision_id: str, page_number: int, passage_text: str
    ) -> tuple[PassageRectangle, ...]:
        """Return where a passage stands on a page, if it does. Raise FileNotFound."""
        file_path, sha256 = await self._locate_and_hash_in_thread(policy_slug, revision_id)
        with _open_file(file_path, policy_slug, revision_id, sha256) as stored_file:
            return await self._service.ingestion.pictures.mark_passage(
                stored_file, page_number, passage_text
            )

    async def get_file_path(self, policy_slug: str, revision_id: str) -> Path:
        """Return where the file of a revision can be read. Raise FileNotFound."""
        file_path, _ = await self._locate_and_hash_in_thread(policy_slug, revision_id)
        return file_path

    async def read_image(self, picture_uri: str) -> PageImage:
        """Return the picture of a page for a view, with the words of `quotation` marked.

        Raise RecordNotFound for a URI of no page, and the errors of `draw_page`.
        """
        uri_parts = urlsplit(picture_uri)
        policy_slug, revision_id, page_number = _parse_page_path(picture_uri, uri_parts.path)
        # Both name folders: only what the registry knows is looked for.
        revision = await PolicyAdmin(self._service).get_revision(policy_slug, revision_id)
        picture_bytes = await self.draw_page(
            revision.source, revision.revision_id, page_number, _IMAGE_DPI
        )
        quoted_text = parse_qs(uri_parts.query).get("quotation", [""])[0][:_MAX_QUOTATION_CHARS]
        passage_rectangles = (
            await self.locate_passage(
                revision.source, revision.revision_id, page_number, quoted_text
            )
            if quoted_text.strip()
            else ()
        )
        mark_rectangles = [
            (
                passage_rectangle.left,
                passage_rectangle.top,
                passage_rectangle.right - passage_rectangle.left,
                passage_rectangle.bottom - passage_rectangle.top,
            )
            for passage_rectangle in passage_rectangles
        ]
        return PageImage(picture_bytes, "image/webp", mark_rectangles)

    async def _locate_and_hash_in_thread(
        self, policy_slug: str, revision_id: str
    ) -> tuple[Path, str]:
        """Return where the PDF lies, and its SHA-256."""
        return await anyio.to_thread.run_sync(self._locate_and_hash_file, policy_slug, revision_id)

    def _locate_and_hash_file(self, policy_slug: str, revision_id: str) -> tuple[Path, str]:
        file_path = self._service.ingestion.files.locate_file(policy_slug, revision_id)
        try:
            file_stat = file_path.stat()
        except FileNotFoundError as error:
            raise _make_missing_file_error(policy_slug, revision_id) from error
        return file_path, _hash_file_cached(file_path, file_stat.st_mtime_ns, file_stat.st_size)


def _parse_page_path(picture_uri: str, uri_path: str) -> tuple[str, str, int]:
    """Return source, revision and page number of `/SOURCE/REVISION/PAGE`. Raise RecordNotFound."""
    path_parts = [unquote(path_part) for path_part in uri_path.strip("/").split("/")]
    if len(path_parts) != 3 or not re.fullmatch(r"[0-9]{1,6}", path_parts[2]):
        raise RecordNotFound(f"There is no page at {picture_uri[:200]}")
    return path_parts[0], path_parts[1], int(path_parts[2])


@contextmanager
def _open_file(
    file_path: Path, policy_slug: str, revision_id: str, sha256: str
) -> Iterator[StoredFile]:
    try:
        with file_path.open("rb", buffering=0) as open_file:
            yield StoredFile(open_file, file_path.name, sha256)
    except FileNotFoundError as error:
        raise _make_missing_file_error(policy_slug, revision_id) from error


@lru_cache(maxsize=200)
def _hash_file_cached(file_path: Path, modified_ns: int, file_size: int) -> str:
    """Return the SHA-256 of a file; when it was changed and its size tell it from an older one."""
    with file_path.open("rb") as open_file:
        return hashlib.file_digest(open_file, "sha256").hexdigest()


def _make_missing_file_error(policy_slug: str, revision_id: str) -> FileNotFound:
    return FileNotFound(
        f"The PDF of {policy_slug}, {revision_id} is not kept here; ingest it again"
    )
