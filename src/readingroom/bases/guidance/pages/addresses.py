"""Addresses of pages as people have them: paths, full addresses, anchors and CC numbers."""

import re
from dataclasses import dataclass

from readingroom.bases.guidance.pages.values import is_plain_path
from readingroom.net.errors import InvalidPath

_WEBSITE_HOST_PATTERN = re.compile(r"(?:https?://)?(?:www\.)?gov\.uk(?=[/?#]|$)", re.IGNORECASE)
_CONTENT_API_PATH = "/api/content"
_CC_NUMBER_PATTERN = re.compile(r"cc[\s-]?(\d{1,2}[a-z]?)", re.IGNORECASE)
_QUERY_OR_ANCHOR_PATTERN = re.compile(r"[\w.~!$&'()*+,;=:@/%-]*", re.ASCII)
_PATH_WITHOUT_SLASH_PATTERN = re.compile(r"[a-z0-9-]+/[a-z0-9]", re.ASCII)


@dataclass(frozen=True, slots=True)
class PageAddress:
    """Where a page is: its path, or the number of a publication (`cc3`) whose path is not known."""

    path: str = ""
    anchor: str | None = None
    cc_number: str | None = None


def parse_page_address(typed_address: str) -> PageAddress:
    """Return the page that an address, a path or a CC number names; raise `InvalidPath`."""
    trimmed_address = typed_address.strip().removeprefix("guidance:")
    cc_match = _CC_NUMBER_PATTERN.fullmatch(trimmed_address)
    if cc_match:
        return PageAddress(cc_number=f"cc{cc_match[1].lower()}")
    host_match = _WEBSITE_HOST_PATTERN.match(trimmed_address)
    if host_match:
        trimmed_address = trimmed_address[host_match.end() :] or "/"
    elif _PATH_WITHOUT_SLASH_PATTERN.match(trimmed_address):
        trimmed_address = f"/{trimmed_address}"
    path_and_query, _, section_anchor = trimmed_address.partition("#")
    # Copied from a browser an address may have a query; a path with one is a mistake.
    page_path, _, url_query = (
        path_and_query.partition("?") if host_match else (path_and_query, "", "")
    )
    if page_path.startswith(f"{_CONTENT_API_PATH}/"):
        page_path = page_path.removeprefix(_CONTENT_API_PATH)
    # Not of `//`, which is no path at all.
    if len(page_path) > 2 and page_path.endswith("/"):
        page_path = page_path.removesuffix("/")
    has_plain_query_and_anchor = all(
        map(_QUERY_OR_ANCHOR_PATTERN.fullmatch, (url_query, section_anchor))
    )
    if not is_plain_path(page_path) or not has_plain_query_and_anchor:
        raise InvalidPath(
            "The path must be that of a GOV.UK page, such as /guidance/charity-annual-return, its "
            "address on www.gov.uk, or a number such as CC3: no other host, no escapes, no "
            "query after a path",
            **_make_path_hint(trimmed_address),
        )
    return PageAddress(page_path, section_anchor or None)


def is_page_address(typed_address: str) -> bool:
    """Whether a text is the address of a page on GOV.UK or a CC number, not just a path."""
    trimmed_address = typed_address.strip()
    return bool(
        _WEBSITE_HOST_PATTERN.match(trimmed_address)
        or _CC_NUMBER_PATTERN.fullmatch(trimmed_address)
    )


def is_publication_page(cc_number: str, page_title: str, page_path: str) -> bool:
    """Whether a page with this title and path is the publication with this number."""
    title_match = re.search(rf"\b{re.escape(cc_number)}\b", page_title, re.IGNORECASE)
    return bool(title_match) or page_path.lower().endswith(f"-{cc_number}")


def _make_path_hint(typed_address: str) -> dict[str, str]:
    suggested_path = f"/{typed_address}"
    return (
        {"path": suggested_path} if is_plain_path(suggested_path) and suggested_path != "/" else {}
    )
