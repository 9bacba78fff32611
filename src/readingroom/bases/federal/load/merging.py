"""Merges what several files say of a record whose own source is not loaded."""

from typing import Any, get_args

from readingroom.bases.federal.schema.records import BillStage

_STAGES = get_args(BillStage)
_LISTS = ("short_titles",)
"""Fields to which another file adds."""


def merge_fields(stored: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return the stored fields of a record, with what another file knows and they do not.

    Of two stages the later one counts, of two dates of files the newer.
    """
    merged = dict(stored)
    for name, value in other.items():
        if name in _LISTS:
            merged[name] = list(dict.fromkeys((*(stored.get(name) or ()), *(value or ()))))
        elif not stored.get(name) and value:
            merged[name] = value
    merged["as_of"] = max(filter(None, (stored.get("as_of"), other.get("as_of"))), default=None)
    merged["cosponsor_count"] = max(
        stored.get("cosponsor_count") or 0, other.get("cosponsor_count") or 0
    )
    if _rank_stage(other.get("stage")) > _rank_stage(stored.get("stage")):
        merged |= {"stage": other["stage"], "stage_at": other.get("stage_at")}
    return merged


def _rank_stage(stage: str | None) -> int:
    return _STAGES.index(stage) if stage in _STAGES else -1
