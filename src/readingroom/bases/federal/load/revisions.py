"""Compares a parsed record with the stored one: the same, older, or a newer revision."""

from pydantic_core import from_json

from readingroom.bases.federal.schema.entries import ParsedRecord
from readingroom.storage.database import Row


def is_as_stored(stored_row: Row, record_json: str) -> bool:
    """Whether a record is as stored, apart from when it was read and the date of its file."""
    stored_fields, parsed_fields = from_json(stored_row["record"]), from_json(record_json)
    ignored_fields = {"retrieved_at": None, "as_of": None}
    return stored_row["status"] == "active" and bool(
        stored_fields | ignored_fields == parsed_fields | ignored_fields
    )


def format_writer_mark(parsed_record: ParsedRecord, format_id: str) -> str:
    """Return what is stored of a record's writer: loader, version and the source's revision."""
    return "partial" if parsed_record.partial else f"{format_id}@{parsed_record.revision or ''}"


def format_link_owner(parsed_record: ParsedRecord, format_id: str) -> str:
    """Return what is stored of a link's writer: the loader, and the part that it speaks for."""
    loader_name = format_id.partition("/")[0]
    # A file that knows only a part, such as one version of a text, speaks for that part alone.
    part_name = parsed_record.text.part if parsed_record.text else "listed"
    return f"{loader_name}#{part_name}" if parsed_record.partial else loader_name


def is_stored_current(stored_row: Row, parsed_record: ParsedRecord, format_id: str) -> bool:
    """Whether the stored record is the same, or a newer revision."""
    if stored_row["loader"] == "partial" or stored_row["status"] != "active":
        return False
    if (
        stored_row["loader"] == format_writer_mark(parsed_record, format_id)
        and stored_row["raw_sha256"] == parsed_record.record.raw_sha256
    ):
        return True
    return is_stored_newer(stored_row, parsed_record, format_id)


def is_stored_newer(stored_row: Row | None, parsed_record: ParsedRecord, format_id: str) -> bool:
    """Whether the stored record is a newer revision of the same source."""
    writer_format_id, _, revision = (stored_row["loader"] if stored_row else "").partition("@")
    return writer_format_id == format_id and revision > (parsed_record.revision or "")
