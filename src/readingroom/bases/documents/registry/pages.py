"""Pages of a document: selected as `1,4-6`, and cut out of its text."""

from collections.abc import Sequence

from readingroom.bases.documents.errors import PageNotFound
from readingroom.bases.documents.registry.records import DocumentRecord
from readingroom.core.pages import find_page_runs
from readingroom.core.text import fold_dashes


def parse_pages(selection: str | None, record: DocumentRecord) -> list[int] | None:
    """Return `1,4-6` as page numbers, in order and each once; None for all pages.

    Raises:
        PageNotFound: the document does not have one of them.
    """
    if selection is None:
        return None
    pages: set[int] = set()
    for page_range in fold_dashes(selection).split(","):
        first, _, last = page_range.strip().partition("-")
        start, end = int(first), int(last or first)
        # Refused, not clipped: an answer from other pages than asked for would be cited wrongly.
        if not 1 <= start <= end <= record.page_count:
            raise PageNotFound(
                f"{record.document_id} has pages 1 to {record.page_count}, "
                f"not {page_range.strip()}",
                page_count=record.page_count,
            )
        pages.update(range(start, end + 1))
    return sorted(pages)


def cut_pages(text: str, pages: Sequence[int], record: DocumentRecord) -> str:
    """Return the text of some pages, with a blank line where others are left out."""
    page_bounds = (*record.page_starts, len(text))
    page_texts = [
        text[page_bounds[first - 1] : page_bounds[last]].rstrip()
        for first, last in find_page_runs(pages)
    ]
    return "\n\n".join(page_texts)
