"""Pages of a document: selected as `1,4-6`, and cut out of its text."""

from collections.abc import Sequence

from readingroom.bases.documents.errors import PageNotFound
from readingroom.bases.documents.registry.records import DocumentRecord
from readingroom.core.text import find_page_runs, fold_dashes


def parse_page_selection(
    page_selection: str | None, document_record: DocumentRecord
) -> list[int] | None:
    """Return `1,4-6` as page numbers, in order and each once; None for all pages.

    Raises:
        PageNotFound: the document does not have one of them.
    """
    if page_selection is None:
        return None
    page_numbers: set[int] = set()
    for page_range_text in fold_dashes(page_selection).split(","):
        first_page_text, _, last_page_text = page_range_text.strip().partition("-")
        first_page_number, last_page_number = (
            int(first_page_text),
            int(last_page_text or first_page_text),
        )
        # Refused, not clipped: an answer from other pages than asked for would be cited wrongly.
        if not 1 <= first_page_number <= last_page_number <= document_record.page_count:
            raise PageNotFound(
                f"{document_record.document_id} has pages 1 to {document_record.page_count}, "
                f"not {page_range_text.strip()}",
                page_count=document_record.page_count,
            )
        page_numbers.update(range(first_page_number, last_page_number + 1))
    return sorted(page_numbers)


def join_page_texts(
    document_text: str, page_numbers: Sequence[int], document_record: DocumentRecord
) -> str:
    """Return the text of some pages, with a blank line where others are left out."""
    page_bound_offsets = (*document_record.page_starts, len(document_text))
    page_run_texts = [
        document_text[
            page_bound_offsets[first_page_number - 1] : page_bound_offsets[last_page_number]
        ].rstrip()
        for first_page_number, last_page_number in find_page_runs(page_numbers)
    ]
    return "\n\n".join(page_run_texts)
