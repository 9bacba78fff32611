"""Page numbers as a citation writes them."""

from collections.abc import Sequence


def find_page_runs(page_numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and last page of each unbroken run; `page_numbers` must be in order."""
    page_runs: list[tuple[int, int]] = []
    for page_number in page_numbers:
        first_page = page_number
        if page_runs and page_number == page_runs[-1][1] + 1:
            first_page, _ = page_runs.pop()
        page_runs.append((first_page, page_number))
    return page_runs


def cite_pages(page_numbers: Sequence[int]) -> str:
    """Return `p. 14–15, 17`; an empty string for no pages."""
    range_texts = [
        f"{first_page}–{last_page}" if last_page > first_page else f"{first_page}"
        for first_page, last_page in find_page_runs(page_numbers)
    ]
    return f"p. {', '.join(range_texts)}" if range_texts else ""
