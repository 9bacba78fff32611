"""Request ids."""

import os
import re

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)


def make_request_id(offered: str | None = None) -> str:
    """Return the caller's own request id when it is a safe one, else a new one."""
    if offered is not None and _REQUEST_ID.fullmatch(offered):
        return offered
    return os.urandom(16).hex()
