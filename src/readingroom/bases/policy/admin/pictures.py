"""Pages of policies as pictures, drawn from the PDFs that are kept, with a passage marked."""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import anyio.to_thread

from readingroom.bases.policy.admin.service import PolicyAdmin
from readingroom.bases.policy.service import PolicyService
from readingroom.core.errors import RecordNotFound
from readingroom.ingest.errors import FileNotFound
from readingroom.ingest.page_pictures import Mark, PagePictures, StoredFile
from readingroom.protocol.resources import PageImage

_CACHE_FOLDER = "pages"
_IMAGE_DPI = 100
_MAX_QUOTATION_CHARS = 2000


class PolicyPictures:
    """The pages of the revisions of one policy base."""

    def __init__(self, service: PolicyService) -> None:
        self._service = service

    @cached_property
    def _pictures(self) -> PagePictures:
        # When a page is first asked for: routes are listed without a service too.
        return PagePictures(self._service.pipeline, self._service.folder / _CACHE_FOLDER)

    async def draw_page(self, source: str, revision_id: str, page: int, dpi: int) -> bytes:
        """Return a page as a lossless WebP.

        Raise FileNotFound when the PDF is not kept, and ExtractionFailed when it has no such page.
        """
        path, sha256 = await self._locate_file(source, revision_id)
        with _open_file(path, source, revision_id, sha256) as stored_file:
            return await self._pictures.draw_page(stored_file, page, dpi)

    async def mark_passage(
        self, source: str, revision_id: str, page: int, passage: str
    ) -> tuple[Mark, ...]:
        """Return where a passage stands on a page, if it does. Raise FileNotFound."""
        path, sha256 = await self._locate_file(source, revision_id)
        with _open_file(path, source, revision_id, sha256) as stored_file:
            return await self._pictures.mark_passage(stored_file, page, passage)

    async def read_image(self, uri: str) -> PageImage:
        """Return the picture of a page for a view, with the words of `quotation` marked.

        Raise RecordNotFound for a URI of no page, and the errors of `draw_page`.
        """
        parts = urlsplit(uri)
        source, revision_id, page = _parse_page_path(uri, parts.path)
        # Both name folders: only what the registry knows is looked for.
        revision = await PolicyAdmin(self._service).get_revision(source, revision_id)
        content = await self.draw_page(revision.source, revision.revision_id, page, _IMAGE_DPI)
        quotation = parse_qs(parts.query).get("quotation", [""])[0][:_MAX_QUOTATION_CHARS]
        marks = (
            await self.mark_passage(revision.source, revision.revision_id, page, quotation)
            if quotation.strip()
            else ()
        )
        rectangles = [
            (mark.left, mark.top, mark.right - mark.left, mark.bottom - mark.top) for mark in marks
        ]
        return PageImage(content, "image/webp", rectangles)

    async def _locate_file(self, source: str, revision_id: str) -> tuple[Path, str]:
        """Return where the PDF lies, and its SHA-256."""
        return await anyio.to_thread.run_sync(self._find_and_hash, source, revision_id)

    def _find_and_hash(self, source: str, revision_id: str) -> tuple[Path, str]:
        path = self._service.ingestion.files.locate(source, revision_id)
        try:
            status = path.stat()
        except FileNotFoundError as error:
            raise _make_missing_error(source, revision_id) from error
        return path, _hash_content(path, status.st_mtime_ns, status.st_size)


def _parse_page_path(uri: str, path: str) -> tuple[str, str, int]:
    """Return source, revision and page number of `/SOURCE/REVISION/PAGE`. Raise RecordNotFound."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if len(parts) != 3 or not re.fullmatch(r"[0-9]{1,6}", parts[2]):
        raise RecordNotFound(f"There is no page at {uri[:200]}")
    return parts[0], parts[1], int(parts[2])


@contextmanager
def _open_file(path: Path, source: str, revision_id: str, sha256: str) -> Iterator[StoredFile]:
    try:
        with path.open("rb", buffering=0) as file:
            yield StoredFile(file, path.name, sha256)
    except FileNotFoundError as error:
        raise _make_missing_error(source, revision_id) from error


@lru_cache(maxsize=200)
def _hash_content(path: Path, changed_at: int, size: int) -> str:
    """Return the SHA-256 of a file; when it was changed and its size tell it from an older one."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _make_missing_error(source: str, revision_id: str) -> FileNotFound:
    return FileNotFound(f"The PDF of {source}, {revision_id} is not kept here; ingest it again")
