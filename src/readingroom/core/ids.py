"""The ids that pass through our hands: how they are made and which we accept."""

import os
import re

# What GOV.UK's own paths are made of: no scheme, host, escape, query or empty segment fits it, and
# no segment can be `.` or `..`, because each begins with a letter or a digit.
_GUIDANCE_PATH = re.compile(r"/|(?:/[A-Za-z0-9][A-Za-z0-9._~-]*)+", re.ASCII)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)


def request_id(offered: str | None = None) -> str:
    """The caller's own request id when it is a safe one, else a new one."""
    if offered is not None and _REQUEST_ID.fullmatch(offered):
        return offered
    return os.urandom(16).hex()


def is_guidance_path(text: str) -> bool:
    """Whether a text is a plain path of a GOV.UK page, such as `/guidance/charity-reporting`."""
    return _GUIDANCE_PATH.fullmatch(text) is not None


def guidance_id(path: str) -> str:
    """A page's id across all bases, which the desk's `fetch` takes."""
    return f"guidance:{path}"
