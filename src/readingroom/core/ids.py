"""The ids that pass through our hands: how they are made and which we accept."""

import os
import re

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)


def request_id(offered: str | None = None) -> str:
    """The caller's own request id when it is a safe one, else a new one."""
    if offered is not None and _REQUEST_ID.fullmatch(offered):
        return offered
    return os.urandom(16).hex()
