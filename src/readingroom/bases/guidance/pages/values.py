"""Values of content items, read with suspicion: what is not of the expected kind is left out."""

import re
from collections.abc import Mapping
from typing import Any

from readingroom.bases.guidance.pages.links import resolve_link

WEBSITE = "https://www.gov.uk"

JsonObject = Mapping[str, Any]

# The form of GOV.UK's own paths. No scheme, host, escape, query or empty segment matches, and no
# segment can be `.` or `..`, because each begins with a letter or a digit.
_PLAIN_PATH = re.compile(r"/|(?:/[A-Za-z0-9][A-Za-z0-9._~-]*)+", re.ASCII)
_WEB_ADDRESS = re.compile(r"https?://", re.ASCII)
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d)[\d:.]*(Z|[+-]\d\d:?\d\d)?)?", re.ASCII)


def is_plain_path(text: str) -> bool:
    """Whether a text is the plain path of a GOV.UK page, such as `/guidance/charity-reporting`."""
    return _PLAIN_PATH.fullmatch(text) is not None


def make_website_url(target: str) -> str | None:
    """Return the address at which people read a page, or None where the target leads to none.

    `target` is a path on GOV.UK or the full address of another site. It comes from upstream: joined
    to the website by mere concatenation, `@evil.example` would be another host.
    """
    is_path = target.startswith("/")
    return resolve_link(target, WEBSITE) if is_path or _WEB_ADDRESS.match(target) else None


def read_text(value: Any) -> str | None:
    """Return a text that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def read_list(value: Any) -> list[Any]:
    """Return a list, or an empty one in place of anything else."""
    return value if isinstance(value, list) else []


def read_objects(value: Any) -> list[JsonObject]:
    """Return the objects in a list."""
    return [entry for entry in read_list(value) if isinstance(entry, Mapping)]


def read_html(value: Any) -> str:
    """Return a text itself, or the HTML among several renderings of it."""
    if isinstance(value, str):
        return value
    renderings = [entry for entry in read_objects(value) if "content_type" in entry]
    html = [entry for entry in renderings if entry["content_type"] == "text/html"]
    return read_text(html[0].get("content")) or "" if html else ""


def is_renderings(value: Any) -> bool:
    """Whether a value is a list of renderings of one text: as HTML, as Govspeak."""
    entries = read_list(value)
    return bool(entries) and all(
        isinstance(entry, Mapping) and {"content_type", "content"} <= entry.keys()
        for entry in entries
    )


def format_moment(text: str) -> str | None:
    """Return a timestamp as a day and a time, in GOV.UK's own digits; None for any other text."""
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        return None
    day, time_of_day, offset = match.groups()
    if time_of_day in (None, "00:00"):
        return str(day)
    return f"{day} {time_of_day}{' UTC' if offset in ('Z', '+00:00') else ''}"
