"""Addresses of pages as people have them: paths, full addresses, anchors and CC numbers."""

import re
from dataclasses import dataclass

from readingroom.bases.guidance.pages.values import is_plain_path
from readingroom.net.errors import InvalidPath

_WEBSITE_HOST = re.compile(r"(?:https?://)?(?:www\.)?gov\.uk(?=[/?#]|$)", re.IGNORECASE)
_CONTENT_API = "/api/content"
_CC_NUMBER = re.compile(r"cc[\s-]?(\d{1,2}[a-z]?)", re.IGNORECASE)
_QUERY_OR_ANCHOR = re.compile(r"[\w.~!$&'()*+,;=:@/%-]*", re.ASCII)
_WITHOUT_SLASH = re.compile(r"[a-z0-9-]+/[a-z0-9]", re.ASCII)


@dataclass(frozen=True, slots=True)
class PageAddress:
    """Where a page is: its path, or the number of a publication (`cc3`) whose path is not known."""

    path: str = ""
    anchor: str | None = None
    cc_number: str | None = None


def parse_address(text: str) -> PageAddress:
    """Return the page that an address, a path or a CC number names; raise `InvalidPath`."""
    address = text.strip().removeprefix("guidance:")
    number = _CC_NUMBER.fullmatch(address)
    if number:
        return PageAddress(cc_number=f"cc{number[1].lower()}")
    host = _WEBSITE_HOST.match(address)
    if host:
        address = address[host.end() :] or "/"
    elif _WITHOUT_SLASH.match(address):
        address = f"/{address}"
    location, _, anchor = address.partition("#")
    # Copied from a browser an address may have a query; a path with one is a mistake.
    path, _, query = location.partition("?") if host else (location, "", "")
    if path.startswith(f"{_CONTENT_API}/"):
        path = path.removeprefix(_CONTENT_API)
    # Not of `//`, which is no path at all.
    if len(path) > 2 and path.endswith("/"):
        path = path.removesuffix("/")
    is_clean = all(map(_QUERY_OR_ANCHOR.fullmatch, (query, anchor)))
    if not is_plain_path(path) or not is_clean:
        raise InvalidPath(
            "The path must be that of a GOV.UK page, such as /guidance/charity-annual-return, its "
            "address on www.gov.uk, or a number such as CC3: no other host, no escapes, no "
            "query after a path",
            **_suggest_path(address),
        )
    return PageAddress(path, anchor or None)


def is_address(text: str) -> bool:
    """Whether a text is the address of a page on GOV.UK or a CC number, not just a path."""
    address = text.strip()
    return bool(_WEBSITE_HOST.match(address) or _CC_NUMBER.fullmatch(address))


def names_publication(cc_number: str, title: str, path: str) -> bool:
    """Whether a page with this title and path is the publication with this number."""
    in_title = re.search(rf"\b{re.escape(cc_number)}\b", title, re.IGNORECASE)
    return bool(in_title) or path.lower().endswith(f"-{cc_number}")


def _suggest_path(address: str) -> dict[str, str]:
    path = f"/{address}"
    return {"path": path} if is_plain_path(path) and path != "/" else {}
