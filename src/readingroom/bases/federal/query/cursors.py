"""Cursors of lists: opaque to the caller, the sort key of the last row inside."""

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any

from readingroom.core.errors import InvalidCursor


def encode(list_name: str, after_key: Sequence[Any] | None) -> str | None:
    """Return the cursor for the rows of a list after a sort key; None at the end of the list.

    What belongs to a record is a list of its own for each record: `bill_actions:hr:119:1`.
    """
    if after_key is None:
        return None
    *sort_key, last_id = after_key
    cursor_fields = {"list": list_name, "sort_key": sort_key, "id": last_id}
    return base64.urlsafe_b64encode(json.dumps(cursor_fields).encode()).decode()


def decode(
    list_name: str, page_cursor: str | None, *value_types: type | tuple[type, ...]
) -> tuple[Any, ...] | None:
    """Return the sort key in a cursor, or None without one.

    Raise InvalidCursor if another list gave it out, or its parts are not of these types.
    """
    if page_cursor is None:
        return None
    try:
        # Validated: else characters outside the alphabet would be passed over.
        cursor_fields = json.loads(
            base64.b64decode(page_cursor.encode(), altchars=b"-_", validate=True)
        )
        after_key = (*cursor_fields["sort_key"], cursor_fields["id"])
        # Cursors of 0.1.0 do not name their list.
        is_of_list = cursor_fields.get("list", list_name) == list_name
        is_valid = (
            is_of_list
            and len(after_key) == len(value_types)
            and all(map(_is_of_type, after_key, value_types))
        )
    except (binascii.Error, ValueError, KeyError, TypeError):
        is_valid = False
    if not is_valid:
        raise InvalidCursor(
            "This cursor is not one that this list gave out: leave it out to begin again"
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
