"""A submitted file as ingestion sees it: for which application, and inside which other files."""

from dataclasses import dataclass, field, replace
from pathlib import PurePath

from readingroom.ingest.errors import ExtractionFailed

MAX_CONTAINER_DEPTH = 2
"""Messages and archives around a file; deeper ones are not opened."""
MAX_SUBMITTED_FILES = 500
"""Files inside one submitted file, whatever they are inside of there."""

_CONTAINER_SUFFIXES = (".eml", ".msg", ".zip")


@dataclass(slots=True)
class _OpenedFileCount:
    """How many files of a submission have been opened."""

    opened_count: int = 0


@dataclass(frozen=True, slots=True)
class Submission:
    """What is known of a file besides its content."""

    application_ref: str
    file_path: str | None = None
    """Where it came from, as the registry says; None for a file of which only our copy exists."""
    document_type: str | None = None
    container_id: str = ""
    """The document of the message or archive that it was inside."""
    container_suffixes: tuple[str, ...] = ()
    """Of the files that it was inside, outermost first."""
    _file_count: _OpenedFileCount = field(default_factory=_OpenedFileCount)

    def make_inner_submission(self, file_name: str, document_id: str) -> "Submission":
        """Return the submission of a file inside this one, which has become a document."""
        file_suffix = PurePath(file_name).suffix.lower()
        return replace(
            self,
            file_path=None,
            document_type=None,
            container_id=document_id,
            container_suffixes=(*self.container_suffixes, file_suffix),
        )

    def check_nesting_and_count(self, file_name: str) -> None:
        """Raise `ExtractionFailed` for a file too deep inside others, or one of too many."""
        file_suffix = PurePath(file_name).suffix.lower()
        is_archive_in_archive = file_suffix == ".zip" and ".zip" in self.container_suffixes
        is_nested_too_deeply = (
            file_suffix in _CONTAINER_SUFFIXES
            and len(self.container_suffixes) >= MAX_CONTAINER_DEPTH
        )
        if is_archive_in_archive or is_nested_too_deeply:
            raise ExtractionFailed(
                "Archives inside archives, and messages deep inside others, are not opened. "
                "Unpack it yourself, and ingest its files"
            )
        self._file_count.opened_count += 1
        if self._file_count.opened_count > MAX_SUBMITTED_FILES + 1:
            raise ExtractionFailed(
                f"There are more than {MAX_SUBMITTED_FILES} files inside the one that was "
                "submitted. Unpack it yourself, and ingest its files"
            )
