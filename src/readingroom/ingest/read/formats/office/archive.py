"""Opens zip archives, and the office files that are such archives, within limits."""

import io
import zipfile
import zlib

from readingroom.ingest.document import Refusal

_MAX_ARCHIVE_ENTRIES = 10_000
_END_RECORD_MAGIC = b"PK\x05\x06"
# The end record is followed by a comment of at most 65,535 bytes.
_END_RECORD_WITHIN_BYTES = 66_000
_ENCRYPTED_FLAG = 1
_READABLE_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Archive:
    """A zip archive in memory that unpacks no more than a number of bytes in all."""

    def __init__(self, archive_bytes: bytes, max_unpacked_bytes: int) -> None:
        """Raise a `Refusal` that says what is wrong with the archive."""
        try:
            self._zip_file = zipfile.ZipFile(io.BytesIO(archive_bytes))
        except (zipfile.BadZipFile, ValueError, OSError, EOFError) as error:
            raise Refusal("extraction_failed", _explain_damaged_archive(archive_bytes)) from error
        self._bytes_left = max_unpacked_bytes
        self._max_unpacked_bytes = max_unpacked_bytes
        self.entries = self._zip_file.infolist()
        if len(self.entries) > _MAX_ARCHIVE_ENTRIES:
            raise Refusal(
                "extraction_failed",
                f"The archive has {len(self.entries):,} entries; "
                f"at most {_MAX_ARCHIVE_ENTRIES:,} are read",
            )

    def __contains__(self, entry_name: str) -> bool:
        return entry_name in self._zip_file.NameToInfo

    def read_member(self, archive_entry: str | zipfile.ZipInfo) -> bytes:
        """Return the unpacked bytes of an entry; raise a `Refusal`."""
        try:
            entry_info = (
                self._zip_file.getinfo(archive_entry)
                if isinstance(archive_entry, str)
                else archive_entry
            )
        except KeyError as error:
            raise Refusal(
                "extraction_failed", f"The file is damaged: it lacks its part {archive_entry}"
            ) from error
        if entry_info.flag_bits & _ENCRYPTED_FLAG:
            raise Refusal(
                "extraction_failed", "The archive is encrypted and does not open without a password"
            )
        if entry_info.compress_type not in _READABLE_COMPRESSIONS:
            raise Refusal(
                "extraction_failed", "The archive is compressed in a way that is not supported"
            )
        try:
            with self._zip_file.open(entry_info) as member_stream:
                # One byte more than allowed: what the archive says of its sizes may be a lie.
                unpacked_bytes = member_stream.read(self._bytes_left + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as error:
            raise Refusal("extraction_failed", "The archive is damaged") from error
        if len(unpacked_bytes) > self._bytes_left:
            raise Refusal(
                "extraction_failed",
                f"The archive unpacks to more than {self._max_unpacked_bytes // 2**20} MB. "
                "Unpack it yourself, and ingest its files",
            )
        self._bytes_left -= len(unpacked_bytes)
        return unpacked_bytes


def _explain_damaged_archive(archive_bytes: bytes) -> str:
    if _END_RECORD_MAGIC not in archive_bytes[-_END_RECORD_WITHIN_BYTES:]:
        return "The file ends early, so its download was probably cut off: fetch it again"
    return "The file is damaged and cannot be opened"
