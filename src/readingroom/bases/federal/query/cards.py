"""Records made short for lists: without provenance, long texts and empty fields."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic_core import to_json

from readingroom.bases.federal.query.aggregate_models import Series

ItemT = TypeVar("ItemT")

MAX_ANSWER_BYTES = 14_400
"""How long an answer's items may be where nobody said how many: with the rest 4,000 tokens."""
_MAX_TEXT_LENGTH, _MAX_SHOWN_ITEMS = 180, 5
_PROVENANCE_FIELDS = frozenset(
    ("citation", "citation_string", "loaded_up_to", "raw_sha256", "retrieved_at", "source_org")
)
_IDENTITY_FIELDS = ("id", "source", "title", "url", "published_at")
_SUMMARY_FIELDS = (
    *("congress", "type", "stage", "outcome", "latest_action", "policy_area", "laws", "party"),
    *("state", "chamber", "district", "current", "name", "role", "side", "rank", "committee_id"),
    *("bioguide_id", "bill_id", "bills", "purpose", "question", "result", "totals", "agencies"),
    *("action", "president", "position", "client", "registrant", "year", "period", "amount_cents"),
    *(
        "held_at",
        "location",
        "fr_citation",
        "law_id",
        "amended_through",
        "phone",
        "address",
        "city",
    ),
    *("agency", "rin", "vocabulary", "parent_id", "evidence", "loaded", "committee", "kind"),
)
"""The fields that tell a reader of a list what a record is and how far it has come."""


def make_card(record_fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return what identifies a record and tells how far it has come, its texts and lists cut.

    What is no record is only rid of provenance and empty fields. `fetch` has the whole record.
    """
    field_names: Iterable[str] = record_fields
    if "citation_string" in record_fields or "raw_sha256" in record_fields:
        field_names = (*_IDENTITY_FIELDS, *_SUMMARY_FIELDS)
    record_card = {
        field_name: _shorten_value(record_fields[field_name])
        for field_name in field_names
        if field_name not in _PROVENANCE_FIELDS
        and record_fields.get(field_name) not in (None, [], {}, "")
    }
    if sponsors := record_fields.get("sponsors"):
        record_card["sponsor"] = _describe_person(sponsors[0])
    if speakers := record_fields.get("speakers"):
        record_card["speakers"] = _shorten_value(
            [_describe_person(speaker_fields) for speaker_fields in speakers]
        )
    if committees := record_fields.get("committees"):
        record_card["committees"] = _shorten_value(
            [
                committee_fields["id"]
                if isinstance(committee_fields, Mapping)
                else committee_fields
                for committee_fields in committees
            ]
        )
    return record_card


def _describe_person(person_fields: Mapping[str, Any]) -> str:
    party_and_state_text = "-".join(
        filter(None, (person_fields.get("party"), person_fields.get("state")))
    )
    bioguide_id = person_fields.get("bioguide_id") or ""
    parenthesized_party = f"({party_and_state_text})" if party_and_state_text else ""
    return " ".join(filter(None, (person_fields.get("name"), parenthesized_party, bioguide_id)))


def _shorten_value(field_value: Any) -> Any:
    if isinstance(field_value, str) and len(field_value) > _MAX_TEXT_LENGTH:
        return field_value[: _MAX_TEXT_LENGTH - 1].rstrip() + "…"
    if isinstance(field_value, list):
        shown_items = [_shorten_value(list_item) for list_item in field_value[:_MAX_SHOWN_ITEMS]]
        return (
            [*shown_items, f"… {len(field_value)} in all"]
            if len(field_value) > _MAX_SHOWN_ITEMS
            else shown_items
        )
    if isinstance(field_value, Mapping):
        return {
            inner_field_name: _shorten_value(inner_value)
            for inner_field_name, inner_value in field_value.items()
            if inner_value not in (None, [])
        }
    return field_value


def shorten_fields(
    record_fields: Mapping[str, Any], max_items: int = 5, max_text_length: int = 700
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a record with long lists and texts cut, and what was cut, by field.

    Unlike a card it still has every field of its model.
    """
    shortened_fields, cut_note_by_field = dict(record_fields), {}
    for field_name, field_value in record_fields.items():
        if isinstance(field_value, list) and len(field_value) > max_items:
            shortened_fields[field_name] = field_value[:max_items]
            cut_note_by_field[field_name] = f"{max_items} of {len(field_value)}"
        elif (
            isinstance(field_value, Mapping)
            and len(str(field_value.get("text", ""))) > max_text_length
        ):
            nested_text = field_value["text"]
            shortened_fields[field_name] = {
                **field_value,
                "text": nested_text[:max_text_length].rstrip() + "…",
            }
            cut_note_by_field[field_name] = f"{max_text_length} of {len(nested_text)} characters"
    return shortened_fields, cut_note_by_field


def shorten_records(whole_records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return records cut by `shorten_fields`, each with what was cut in `shortened`."""
    return [
        shown_fields | {"shortened": cut_note_by_field or None}
        for shown_fields, cut_note_by_field in map(shorten_fields, whole_records)
    ]


def shorten_record_to_fit(
    record_fields: Mapping[str, Any], other_fields: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a record cut as by `shorten_fields`, and shorter where the rest of the answer is long.

    `other_fields` is what the answer has besides the record.
    """
    remaining_bytes = MAX_ANSWER_BYTES - _count_json_bytes(other_fields)
    for max_items, max_text_length in ((5, 700), (3, 400), (1, 200)):
        shown_fields, cut_note_by_field = shorten_fields(record_fields, max_items, max_text_length)
        if _count_json_bytes(shown_fields) <= remaining_bytes:
            break
    return shown_fields, cut_note_by_field


def fit_items(answer_items: Sequence[ItemT], max_bytes: int = MAX_ANSWER_BYTES) -> Sequence[ItemT]:
    """Return the first items that fit into an answer, at least one."""
    total_bytes = 0
    for item_index, item_bytes in enumerate(map(_count_json_bytes, answer_items)):
        total_bytes += item_bytes
        if total_bytes > max_bytes and item_index:
            return answer_items[:item_index]
    return answer_items


def fit_series(series: Series) -> Series:
    """Return a series that fits into an answer; `note` says what was left out of one that did not.

    First go the zeros before a group's first number and after its last, then the last intervals.
    """
    if _count_json_bytes(series.buckets) <= MAX_ANSWER_BYTES:
        return series
    starts_by_group: dict[Any, list[str]] = {}
    for time_bucket in series.buckets:
        if time_bucket.value:
            starts_by_group.setdefault(time_bucket.group, []).append(time_bucket.start)
    kept_buckets = [
        time_bucket
        for time_bucket in series.buckets
        if (group_starts := starts_by_group.get(time_bucket.group))
        and min(group_starts) <= time_bucket.start <= max(group_starts)
    ]
    fitting_buckets = fit_items(kept_buckets)
    note_texts = [series.note] if series.note else []
    if len(kept_buckets) < len(series.buckets):
        note_texts.append("What is before a first number or after a last one is 0 and left out.")
    if len(fitting_buckets) < len(kept_buckets):
        # An interval is shown with all of its groups, or on the next page.
        next_start = kept_buckets[len(fitting_buckets)].start
        fitting_buckets = [
            time_bucket for time_bucket in fitting_buckets if time_bucket.start < next_start
        ] or fitting_buckets
        note_texts.append(
            f"Shown is what fits, up to {fitting_buckets[-1].end}, where {next_start} follows: "
            "narrow it with `since` and `until`, or say `top` to have all."
        )
    return series.model_copy(
        update={"buckets": list(fitting_buckets), "note": " ".join(note_texts) or None}
    )


def _count_json_bytes(list_item: Any) -> int:
    return len(to_json(list_item))
