"""Cursors of lists: opaque to the caller, the sort key of the last row inside."""

import base64
import binascii
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from readingroom.core.errors import InvalidCursor


def build_list_name(list_name: str, list_filters: Mapping[str, Any]) -> str:
    """Return the name of a list under filters: each combination of filters has its own."""
    filter_names_and_values = sorted(
        (filter_name, str(filter_value).strip().casefold())
        for filter_name, filter_value in list_filters.items()
        if filter_value is not None
    )
    if not filter_names_and_values:
        return list_name
    return f"{list_name}?{zlib.crc32(json.dumps(filter_names_and_values).encode()):08x}"


def encode(list_name: str, after_key: Sequence[Any] | None) -> str | None:
    """Return the cursor for the rows of a list after a sort key; None at the end of the list.

    What belongs to a record is a list of its own for each record: `bill_actions:hr:119:1`; so is
    what passes filters, see `build_list_name`.
    """
    if after_key is None:
        return None
    *sort_key, last_id = after_key
    cursor_fields = {"list": list_name, "sort_key": sort_key, "id": last_id}
    return base64.urlsafe_b64encode(json.dumps(cursor_fields).encode()).decode()


def decode(
    list_name: str,
    page_cursor: str | None,
    *key_value_types: type | tuple[type, ...],
    wider_list_name: str | None = None,
) -> tuple[Any, ...] | None:
    """Return the sort key in a cursor, or None without one.

    A cursor of `wider_list_name` is taken too: that list has passed over nothing of this one. Raise
    InvalidCursor if another list gave it out, or its parts are not of these types.
    """
    if page_cursor is None:
        return None
    try:
        # Validated: else characters outside the alphabet would be passed over.
        cursor_fields = json.loads(
            base64.b64decode(page_cursor.encode(), altchars=b"-_", validate=True)
        )
        after_key = (*cursor_fields["sort_key"], cursor_fields["id"])
        is_cursor_valid = (
            cursor_fields["list"] in (list_name, wider_list_name or list_name)
            and len(after_key) == len(key_value_types)
            and all(map(_is_of_type, after_key, key_value_types))
        )
    except (binascii.Error, ValueError, KeyError, TypeError):
        is_cursor_valid = False
    if not is_cursor_valid:
        raise InvalidCursor(
            "This cursor is not one that this list gave out with these filters: repeat the filters "
            "it was given out with, or leave the cursor out to begin again"
        )
    return after_key


def _is_of_type(key_value: Any, expected_type: type | tuple[type, ...]) -> bool:
    """Return whether a part has its type and SQLite can store it."""
    if isinstance(key_value, str):
        key_value.encode()  # raises ValueError for a lone surrogate
    elif isinstance(key_value, int) and not -(2**63) <= key_value < 2**63:
        return False
    # True is an int in Python, but in no cursor of ours.
    return isinstance(key_value, expected_type) and not isinstance(key_value, bool)
