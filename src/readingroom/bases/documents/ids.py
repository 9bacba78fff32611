"""References of applications, and ids of documents and pages: `doc:25_01178_REM_a1b2c3#page=14`."""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from readingroom.core.errors import UnrecognizedId
from readingroom.core.text import fold_dashes
from readingroom.protocol.tool import NonBlankText, clean_reference

# Long enough for any reference of 100 characters, with the digits of its file's hash.
DOCUMENT_ID_REGEX = r"[A-Za-z0-9_-]{1,200}_[0-9a-f]{6,64}"
_PREFIXED_DOCUMENT_ID_PATTERN = re.compile(
    rf"doc:({DOCUMENT_ID_REGEX})(?:#page=([1-9][0-9]{{0,4}}))?", re.ASCII
)

ApplicationRef = Annotated[
    NonBlankText,
    Field(max_length=100, description="Planning application reference, such as `25/01178/REM`."),
    AfterValidator(clean_reference),
]
StoredDocumentId = Annotated[str, Field(pattern=f"^{DOCUMENT_ID_REGEX}$")]
"""An id that an ingestion has given; it names a folder too, so it must be nothing else."""


@dataclass(frozen=True, slots=True)
class DocumentRef:
    """A document, or one page of it."""

    document_id: str
    page_number: int | None


def format_doc_id(document_id: str, page_number: int | None = None) -> str:
    """Return `doc:25_01178_REM_a1b2c3` for a document, with `#page=14` for a page of it."""
    return f"doc:{document_id}" + (f"#page={page_number}" if page_number else "")


def parse_doc_id(id_text: str) -> DocumentRef:
    """Return what `format_doc_id` was given. Raise `UnrecognizedId` for anything else."""
    id_match = _PREFIXED_DOCUMENT_ID_PATTERN.fullmatch(fold_dashes(id_text).strip())
    if id_match is None:
        raise UnrecognizedId(
            f"{id_text[:100]!r} is not the id of a document", valid_prefixes=["doc:<document_id>"]
        )
    return DocumentRef(id_match[1], int(id_match[2]) if id_match[2] else None)


def parse_document_ref(document_id: str) -> DocumentRef:
    """Parse a document's own id, or the id of a page as search results have it."""
    return (
        parse_doc_id(document_id)
        if document_id.lower().startswith("doc:")
        else DocumentRef(document_id, None)
    )
