"""Ids that more than one layer knows: of requests, and of what the desk's `fetch` takes."""

import os
import re
from dataclasses import dataclass

from readingroom.core.errors import UnrecognizedId

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)

DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
"""All that is read as a dash; as it stands, the inside of a character class too."""
_DASHES = dict.fromkeys(map(ord, DASHES), "-")


def request_id(offered: str | None = None) -> str:
    """The caller's own request id when it is a safe one, else a new one."""
    if offered is not None and _REQUEST_ID.fullmatch(offered):
        return offered
    return os.urandom(16).hex()


def fold_dashes(text: str) -> str:
    """Every Unicode dash as `-`: the Federal Register's own XML writes its numbers with U+2013."""
    return text if text.isascii() else text.translate(_DASHES)


# --- ids across the bases ---
#
# The first word says whose record it is; what begins with none of these is a federal id.

TEXT_ID = "text:kb"
ROOM_PREFIXES = (
    "policy: (policy:NPPF@rev_NPPF_2024_12#Para 116)",
    "doc: (doc:25_01178_REM_a1b2c3#page=4)",
    "guidance: (guidance:/guidance/charity-reporting)",
    TEXT_ID,
)

_BASES = {"policy": "policy", "doc": "documents", "guidance": "guidance", "text": "text"}
_SECTION = re.compile(r"policy:([A-Za-z0-9_-]{1,80})@([A-Za-z0-9_-]{1,120})#(.{1,120})", re.ASCII)
_DOCUMENT_ID = r"[A-Za-z0-9_-]{1,200}_[0-9a-f]{6,64}"
_DOC = re.compile(rf"doc:({_DOCUMENT_ID})(?:#page=([1-9][0-9]{{0,4}}))?", re.ASCII)


def base_of(id: str) -> str:
    """Whose record an id names."""
    prefix, colon, _ = id.strip().partition(":")
    return _BASES.get(prefix.lower(), "federal") if colon else "federal"


def guidance_id(path: str) -> str:
    return f"guidance:{path}"


def policy_section_id(source: str, revision_id: str, section_ref: str) -> str:
    return f"policy:{source}@{revision_id}#{section_ref}"


def policy_passage_id(chunk_id: str) -> str:
    return f"policy:{chunk_id}"


def policy_section(id: str) -> tuple[str, str, str] | None:
    """Policy, revision and section, when that is what an id names; else it names a passage."""
    match = _SECTION.fullmatch(id)
    return (match[1], match[2], match[3]) if match else None


@dataclass(frozen=True, slots=True)
class DocumentRef:
    """A document, or one page of it."""

    document_id: str
    page: int | None


def doc_id(document_id: str, page: int | None = None) -> str:
    """`doc:25_01178_REM_a1b2c3` is a document, `doc:25_01178_REM_a1b2c3#page=14` a page of it."""
    return f"doc:{document_id}" + (f"#page={page}" if page else "")


def document_ref(text: str) -> DocumentRef:
    """What `doc_id` named."""
    match = _DOC.fullmatch(fold_dashes(text).strip())
    if match is None:
        raise UnrecognizedId(
            f"{text[:100]!r} is not the id of a document", valid_prefixes=["doc:<document_id>"]
        )
    return DocumentRef(match[1], int(match[2]) if match[2] else None)
