"""Merges what several files say of a record whose own source is not loaded."""

from typing import Any, get_args

from readingroom.bases.federal.schema.records import BillStage

_BILL_STAGES = get_args(BillStage)
_MERGED_LIST_FIELDS = ("short_titles",)
"""Fields to which another file adds."""


def merge_fields(stored_fields: dict[str, Any], other_fields: dict[str, Any]) -> dict[str, Any]:
    """Return the stored fields of a record, with what another file knows and they do not.

    Of two stages the later one counts, of two dates of files the newer.
    """
    merged_fields = dict(stored_fields)
    for field_name, field_value in other_fields.items():
        if field_name in _MERGED_LIST_FIELDS:
            merged_fields[field_name] = list(
                dict.fromkeys((*(stored_fields.get(field_name) or ()), *(field_value or ())))
            )
        elif not stored_fields.get(field_name) and field_value:
            merged_fields[field_name] = field_value
    merged_fields["as_of"] = max(
        filter(None, (stored_fields.get("as_of"), other_fields.get("as_of"))), default=None
    )
    merged_fields["cosponsor_count"] = max(
        stored_fields.get("cosponsor_count") or 0, other_fields.get("cosponsor_count") or 0
    )
    if _rank_stage(other_fields.get("stage")) > _rank_stage(stored_fields.get("stage")):
        merged_fields |= {"stage": other_fields["stage"], "stage_at": other_fields.get("stage_at")}
    return merged_fields


def _rank_stage(stage: str | None) -> int:
    return _BILL_STAGES.index(stage) if stage in _BILL_STAGES else -1
