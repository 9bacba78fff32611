"""Compares a parsed record with the stored one: the same, older, or a newer revision."""

from pydantic_core import from_json

from readingroom.bases.federal.schema.entries import ParsedRecord
from readingroom.storage.database import Row


def is_same(stored: Row, record_json: str) -> bool:
    """Whether a record is as stored, apart from when it was read and the date of its file."""
    before, after = from_json(stored["record"]), from_json(record_json)
    same = {"retrieved_at": None, "as_of": None}
    return stored["status"] == "active" and bool(before | same == after | same)


def format_writer_mark(entry: ParsedRecord, format_id: str) -> str:
    """Return what is stored of a record's writer: loader, version and the source's revision."""
    return "partial" if entry.partial else f"{format_id}@{entry.revision or ''}"


def is_older(stored: Row, entry: ParsedRecord, format_id: str) -> bool:
    """Whether the stored record is the same, or a newer revision."""
    if stored["loader"] == "partial" or stored["status"] != "active":
        return False
    if (
        stored["loader"] == format_writer_mark(entry, format_id)
        and stored["raw_sha256"] == entry.record.raw_sha256
    ):
        return True
    return is_newer(stored, entry, format_id)


def is_newer(stored: Row | None, entry: ParsedRecord, format_id: str) -> bool:
    """Whether the stored record is a newer revision of the same source."""
    writer, _, revision = (stored["loader"] if stored else "").partition("@")
    return writer == format_id and revision > (entry.revision or "")
