"""Values of content items, read with suspicion: what is not of the expected kind is left out."""

import re
from collections.abc import Mapping
from typing import Any

from readingroom.bases.guidance.pages.links import resolve_link

WEBSITE_URL = "https://www.gov.uk"

JsonObject = Mapping[str, Any]

# The form of GOV.UK's own paths. No scheme, host, escape, query or empty segment matches, and no
# segment can be `.` or `..`, because each begins with a letter or a digit.
_PLAIN_PATH_PATTERN = re.compile(r"/|(?:/[A-Za-z0-9][A-Za-z0-9._~-]*)+", re.ASCII)
_WEB_ADDRESS_PATTERN = re.compile(r"https?://", re.ASCII)
_TIMESTAMP_PATTERN = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d)[\d:.]*(Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)


def is_plain_path(path_text: str) -> bool:
    """Whether a text is the plain path of a GOV.UK page, such as `/guidance/charity-reporting`."""
    return _PLAIN_PATH_PATTERN.fullmatch(path_text) is not None


def make_website_url(link_target: str) -> str | None:
    """Return the address at which people read a page, or None where the target leads to none.

    `link_target` is a path on GOV.UK or the full address of another site. It comes from upstream:
    joined to the website by mere concatenation, `@evil.example` would be another host.
    """
    is_path = link_target.startswith("/")
    return (
        resolve_link(link_target, WEBSITE_URL)
        if is_path or _WEB_ADDRESS_PATTERN.match(link_target)
        else None
    )


def find_text(json_value: Any) -> str | None:
    """Return a text that is not empty, else None."""
    return json_value if isinstance(json_value, str) and json_value else None


def read_list(json_value: Any) -> list[Any]:
    """Return a list, or an empty one in place of anything else."""
    return json_value if isinstance(json_value, list) else []


def read_objects(json_value: Any) -> list[JsonObject]:
    """Return the objects in a list."""
    return [list_entry for list_entry in read_list(json_value) if isinstance(list_entry, Mapping)]


def read_html(json_value: Any) -> str:
    """Return a text itself, or the HTML among several renderings of it."""
    if isinstance(json_value, str):
        return json_value
    renderings = [
        rendering for rendering in read_objects(json_value) if "content_type" in rendering
    ]
    html_renderings = [
        rendering for rendering in renderings if rendering["content_type"] == "text/html"
    ]
    return find_text(html_renderings[0].get("content")) or "" if html_renderings else ""


def is_list_of_renderings(json_value: Any) -> bool:
    """Whether a value is a list of renderings of one text: as HTML, as Govspeak."""
    list_entries = read_list(json_value)
    return bool(list_entries) and all(
        isinstance(list_entry, Mapping) and {"content_type", "content"} <= list_entry.keys()
        for list_entry in list_entries
    )


def format_moment(timestamp_text: str) -> str | None:
    """Return a timestamp as a day and a time, in GOV.UK's own digits; None for any other text."""
    timestamp_match = _TIMESTAMP_PATTERN.fullmatch(timestamp_text.strip())
    if timestamp_match is None:
        return None
    day_text, time_of_day, zone_offset = timestamp_match.groups()
    if time_of_day in (None, "00:00"):
        return str(day_text)
    return f"{day_text} {time_of_day}{' UTC' if zone_offset in ('Z', '+00:00') else ''}"
