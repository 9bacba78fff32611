"""Cursors of lists: opaque to the caller, the sort key of the last row to us."""

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any

from readingroom.core.errors import InvalidCursor


def encode(after: Sequence[Any] | None) -> str | None:
    """`next_cursor`: None at the end of a list."""
    if after is None:
        return None
    *key, id = after
    return base64.urlsafe_b64encode(json.dumps({"sort_key": key, "id": id}).encode()).decode()


def decode(cursor: str | None, *kinds: type | tuple[type, ...]) -> tuple[Any, ...] | None:
    """Where a list goes on; the parts of the key must be of these kinds."""
    if cursor is None:
        return None
    try:
        told = json.loads(base64.b64decode(cursor.encode(), altchars=b"-_", validate=True))
        after = (*told["sort_key"], told["id"])
        right = len(after) == len(kinds) and all(map(_fits, after, kinds))
    except (binascii.Error, ValueError, KeyError, TypeError):
        right = False
    if not right:
        raise InvalidCursor("This cursor is not one that this list gave out")
    return after


def _fits(part: Any, kind: type | tuple[type, ...]) -> bool:
    """Whether SQLite can take it: text that is text, numbers of 64 bits."""
    if isinstance(part, str):
        part.encode()  # a lone surrogate is a ValueError
    elif isinstance(part, int) and not -(2**63) <= part < 2**63:
        return False
    return isinstance(part, kind) and not isinstance(part, bool)
