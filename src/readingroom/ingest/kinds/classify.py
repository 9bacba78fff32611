"""Determines the type and the kind of a planning document: by its name, else by its content."""

from collections.abc import Sequence

from readingroom.ingest.document import Classification
from readingroom.ingest.kinds.content import determine_kind_by_content, is_drawing_page
from readingroom.ingest.kinds.names import (
    DRAWING_TYPES,
    find_kind_by_name,
    find_type_by_name,
    is_named_like_rendering,
)
from readingroom.ingest.kinds.titles import OTHER_KIND, TYPE_BY_KIND
from readingroom.ingest.read.page import RawPage


def classify_document(
    file_name: str, document_text: str = "", raw_pages: Sequence[RawPage] = ()
) -> Classification:
    """Return the type and the kind of a file by its name or, where that says nothing, by its pages.

    A file that could not be read has no pages, so its name has to do.
    """
    type_from_name = find_type_by_name(file_name)
    kind_from_name = find_kind_by_name(file_name)
    if kind_from_name is not None and type_from_name in (None, _get_type_of_kind(kind_from_name)):
        return Classification(_get_type_of_kind(kind_from_name), "filename", "high", kind_from_name)
    kind_from_content = determine_kind_by_content(raw_pages, document_text)
    # A name that tells the contract's type is followed; its kind must be one of that type.
    if type_from_name is not None:
        is_kind_of_type = _get_type_of_kind(kind_from_content) == type_from_name
        kind_of_named_type = kind_from_content if is_kind_of_type else type_from_name
        return Classification(type_from_name, "filename", "high", kind_of_named_type)
    if kind_from_content != OTHER_KIND:
        return Classification(
            _get_type_of_kind(kind_from_content), "content", "medium", kind_from_content
        )
    return Classification(OTHER_KIND, "fallback", "low", OTHER_KIND)


def has_drawings(
    file_name: str, document_type: str, raw_pages: Sequence[RawPage], image_ratio_threshold: float
) -> bool:
    """Whether a file is named like a plan, an elevation or a rendering, or a page is a drawing."""
    return (
        document_type in DRAWING_TYPES
        or is_named_like_rendering(file_name)
        or any(
            raw_page.image_ratio > image_ratio_threshold or is_drawing_page(raw_page)
            for raw_page in raw_pages
        )
    )


def _get_type_of_kind(document_kind: str) -> str:
    return TYPE_BY_KIND.get(document_kind, OTHER_KIND)
