"""How long values may be that records are found by: bounded by PostgreSQL, alike on every engine.

A record is stored whole whatever its length. But the words of a passage must fit into a megabyte
there, and what an index holds of a row into a third of a page.
"""

from readingroom.bases.federal.schema.columns import ComputedColumnValues, list_computed_columns
from readingroom.bases.federal.schema.tables import CITATION_FIELDS

MAX_SEARCHED_CHARS = 100_000
"""Of a title or an action: both fit, even with all words different, of one letter of four bytes."""
MAX_FACET_BYTES = 2_000
MAX_ID_BYTES = 500
MAX_FILTER_COLUMNS_BYTES = 1_800
"""Of all texts together that lists are filtered by: one index has them all, and the id."""
_FIRST_FILTER_COLUMN_INDEX = len(CITATION_FIELDS)
_DATE_COLUMN_INDEX = CITATION_FIELDS.index("published_at")


class ValueTooLong(ValueError):
    """A value that is looked up whole is too long for that; the message names it."""


def check_value_lengths(
    record_id: str, source_name: str, column_values: ComputedColumnValues
) -> None:
    """Raise `ValueTooLong` for an id, or for values to filter by, that no index could hold."""
    check_id_length(record_id, record_id, "its id")
    indexed_values = (
        column_values[_DATE_COLUMN_INDEX],
        *column_values[_FIRST_FILTER_COLUMN_INDEX:],
    )
    indexed_texts = [
        column_value for column_value in indexed_values if isinstance(column_value, str)
    ]
    # Letters are counted first: of nearly all records there are too few to look at their bytes.
    if 4 * sum(map(len, indexed_texts)) <= MAX_FILTER_COLUMNS_BYTES:
        return
    byte_count = sum(len(indexed_text.encode()) for indexed_text in indexed_texts)
    if byte_count > MAX_FILTER_COLUMNS_BYTES:
        column_names = (
            "published_at",
            *list_computed_columns(source_name)[_FIRST_FILTER_COLUMN_INDEX:],
        )
        longest_column_name = column_names[indexed_values.index(max(indexed_texts, key=len))]
        raise ValueTooLong(
            f"{record_id}: {longest_column_name} and the other values that lists are filtered by "
            f"have {byte_count:,} bytes; {MAX_FILTER_COLUMNS_BYTES:,} are taken"
        )


def check_id_length(checked_id: str, record_id: str, id_description: str) -> None:
    """Raise `ValueTooLong` for an id, of a record or of what it names, that no index could hold."""
    if (
        4 * len(checked_id) > MAX_ID_BYTES
        and (byte_count := len(checked_id.encode())) > MAX_ID_BYTES
    ):
        raise ValueTooLong(
            f"{record_id[:60]}: {id_description} has {byte_count:,} bytes; {MAX_ID_BYTES} are taken"
        )


def cut_facet_value(facet_value: str) -> str:
    """Return as much of a value as searches are filtered by."""
    if 4 * len(facet_value) <= MAX_FACET_BYTES:
        return facet_value
    return facet_value.encode()[:MAX_FACET_BYTES].decode(errors="ignore")
