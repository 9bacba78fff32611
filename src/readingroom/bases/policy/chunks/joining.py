"""Texts of chunks that follow one another, put together again."""

from collections.abc import Iterable, Sequence

from readingroom.bases.policy.chunks.store import StoredChunk


def join_chunk_texts(chunks: Sequence[StoredChunk]) -> str:
    """Return the text of chunks in order: overlaps stand once, gaps become blank lines."""
    return "".join(own_text for _, _, own_text in iterate_chunks_and_own_texts(chunks))


def iterate_chunks_and_own_texts(
    chunks: Sequence[StoredChunk],
) -> Iterable[tuple[StoredChunk, int, str]]:
    """Yield each chunk with the part of its text that no chunk before it has, and its offset."""
    covered_end_offset: int | None = None
    for chunk in sorted(chunks, key=lambda chunk: chunk.chunk_index):
        if covered_end_offset is None:
            yield chunk, chunk.start_offset, chunk.text
        elif chunk.start_offset < covered_end_offset:
            yield chunk, covered_end_offset, chunk.text[covered_end_offset - chunk.start_offset :]
        else:
            # A cut drops at most the one space it falls on; a wider gap ends a paragraph.
            separator_text = (
                ""
                if chunk.start_offset == covered_end_offset
                else " "
                if chunk.start_offset == covered_end_offset + 1
                else "\n\n"
            )
            yield chunk, chunk.start_offset, separator_text + chunk.text
        covered_end_offset = max(covered_end_offset or 0, chunk.end_offset)


def list_printed_page_labels(
    chunks: Sequence[StoredChunk], page_numbers: Sequence[int]
) -> list[str]:
    """Return the numbers printed on these pages; none where one of them is not known."""
    labels_by_page_number = {
        page_number: page_label
        for chunk in chunks
        for page_number, page_label in zip(chunk.pages, chunk.printed_pages, strict=False)
    }
    return (
        [labels_by_page_number[page_number] for page_number in page_numbers]
        if all(page_number in labels_by_page_number for page_number in page_numbers)
        else []
    )
