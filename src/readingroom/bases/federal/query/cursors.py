"""Cursors of lists: opaque to the caller, the sort key of the last row inside."""

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any

from readingroom.core.errors import InvalidCursor


def encode(list_name: str, after: Sequence[Any] | None) -> str | None:
    """Return the cursor for the rows of a list after a sort key; None at the end of the list."""
    if after is None:
        return None
    *key, id = after
    body = {"list": list_name, "sort_key": key, "id": id}
    return base64.urlsafe_b64encode(json.dumps(body).encode()).decode()


def decode(
    list_name: str, cursor: str | None, *types: type | tuple[type, ...]
) -> tuple[Any, ...] | None:
    """Return the sort key in a cursor, or None without one.

    Raise InvalidCursor if another list gave it out, or its parts are not of these types.
    """
    if cursor is None:
        return None
    try:
        # Validated: else characters outside the alphabet would be passed over.
        body = json.loads(base64.b64decode(cursor.encode(), altchars=b"-_", validate=True))
        after = (*body["sort_key"], body["id"])
        # Cursors of 0.1.0 do not name their list.
        is_of_list = body.get("list", list_name) == list_name
        is_valid = is_of_list and len(after) == len(types) and all(map(_fits, after, types))
    except (binascii.Error, ValueError, KeyError, TypeError):
        is_valid = False
    if not is_valid:
        raise InvalidCursor(
            "This cursor is not one that this list gave out: leave it out to begin again"
        )
    return after


def _fits(part: Any, expected: type | tuple[type, ...]) -> bool:
    """Return whether a part has its type and SQLite can store it."""
    if isinstance(part, str):
        part.encode()  # raises ValueError for a lone surrogate
    elif isinstance(part, int) and not -(2**63) <= part < 2**63:
        return False
    # True is an int in Python, but in no cursor of ours.
    return isinstance(part, expected) and not isinstance(part, bool)
