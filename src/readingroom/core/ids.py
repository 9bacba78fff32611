"""Ids: of requests, and of the caller on whose behalf code runs."""

import os
import re
from contextvars import ContextVar

current_caller_id: ContextVar[str] = ContextVar("current_caller_id", default="local")
"""Set by the server for each request: `key:NAME` or `ip:ADDRESS`."""

_REQUEST_ID_PATTERN = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)


def make_request_id(offered_request_id: str | None = None) -> str:
    """Return the caller's own request id when it is a safe one, else a new one."""
    if offered_request_id is not None and _REQUEST_ID_PATTERN.fullmatch(offered_request_id):
        return offered_request_id
    return os.urandom(16).hex()
