"""Compares a parsed record with the stored one: the same, older, newer, or to be merged with it."""

from typing import Any, get_args

from pydantic_core import from_json

from readingroom.bases.federal.schema.entries import ParsedRecord
from readingroom.bases.federal.schema.records import BillStage
from readingroom.storage.database import Row

_BILL_STAGES = get_args(BillStage)
_MERGED_LIST_FIELDS = ("short_titles", "committee_reports", "report_ids")
"""Fields to which another file adds."""
_STAGE_FIELDS = ("stage", "stage_at")


def is_same_as_stored(stored_row: Row, record_json: str) -> bool:
    """Whether a record is as stored, apart from when it was read and the date of its file."""
    stored_fields, parsed_fields = from_json(stored_row["record"]), from_json(record_json)
    blanked_fields = {"retrieved_at": None, "as_of": None}
    return stored_row["status"] == "active" and bool(
        stored_fields | blanked_fields == parsed_fields | blanked_fields
    )


def format_loader_and_revision(parsed_record: ParsedRecord, format_id: str) -> str:
    """Return what is stored of a record's writer: loader, version and the source's revision."""
    return "partial" if parsed_record.is_partial else f"{format_id}@{parsed_record.revision or ''}"


def format_link_writer(parsed_record: ParsedRecord, format_id: str) -> str:
    """Return what is stored of a link's writer: the loader, and the part that it speaks for."""
    loader_name = format_id.partition("/")[0]
    # A file that knows only a part, such as one version of a text, speaks for that part alone.
    part_name = parsed_record.text.part if parsed_record.text else "listed"
    return f"{loader_name}#{part_name}" if parsed_record.is_partial else loader_name


def is_stored_up_to_date(stored_row: Row, parsed_record: ParsedRecord, format_id: str) -> bool:
    """Whether the stored record is the same, or a newer revision."""
    if stored_row["loader"] == "partial" or stored_row["status"] != "active":
        return False
    if (
        stored_row["loader"] == format_loader_and_revision(parsed_record, format_id)
        and stored_row["raw_sha256"] == parsed_record.record.raw_sha256
    ):
        return True
    return is_stored_newer(stored_row, parsed_record, format_id)


def is_stored_newer(stored_row: Row | None, parsed_record: ParsedRecord, format_id: str) -> bool:
    """Whether the stored record is a newer revision of the same source."""
    writer_format_id, _, stored_revision = (stored_row["loader"] if stored_row else "").partition(
        "@"
    )
    return writer_format_id == format_id and stored_revision > (parsed_record.revision or "")


def merge_fields(stored_fields: dict[str, Any], other_fields: dict[str, Any]) -> dict[str, Any]:
    """Return the stored fields of a record, with what another file knows and they do not.

    Of two stages the later one counts, and of two days on which it was reached the first; of two
    dates of files the newer.
    """
    merged_fields = dict(stored_fields)
    for field_name, field_value in other_fields.items():
        if field_name in _MERGED_LIST_FIELDS:
            merged_fields[field_name] = list(
                dict.fromkeys((*(stored_fields.get(field_name) or ()), *(field_value or ())))
            )
        elif field_name not in _STAGE_FIELDS and not stored_fields.get(field_name) and field_value:
            merged_fields[field_name] = field_value
    merged_fields["as_of"] = max(
        filter(None, (stored_fields.get("as_of"), other_fields.get("as_of"))), default=None
    )
    merged_fields["cosponsor_count"] = max(
        stored_fields.get("cosponsor_count") or 0, other_fields.get("cosponsor_count") or 0
    )
    return merged_fields | _merge_stages(stored_fields, other_fields)


def _merge_stages(
    stored_fields: dict[str, Any], other_fields: dict[str, Any]
) -> dict[str, str | None]:
    """Return the later of two stages with its own day: that of another stage is not its day."""
    stored_rank = _rank_bill_stage(stored_fields.get("stage"))
    other_rank = _rank_bill_stage(other_fields.get("stage"))
    if other_rank < stored_rank or other_rank < 0:
        return {}
    reached_days = [other_fields.get("stage_at")]
    if other_rank == stored_rank:
        reached_days.append(stored_fields.get("stage_at"))
    return {
        "stage": other_fields["stage"],
        "stage_at": min(filter(None, reached_days), default=None),
    }


def _rank_bill_stage(stage: str | None) -> int:
    return _BILL_STAGES.index(stage) if stage in _BILL_STAGES else -1
