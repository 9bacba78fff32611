"""Page numbers as a citation writes them."""

from collections.abc import Sequence


def find_page_runs(pages: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and last page of each unbroken run; `pages` must be in order."""
    runs: list[tuple[int, int]] = []
    for page in pages:
        first = page
        if runs and page == runs[-1][1] + 1:
            first, _ = runs.pop()
        runs.append((first, page))
    return runs


def cite_pages(pages: Sequence[int]) -> str:
    """Return `p. 14–15, 17`; an empty string for no pages."""
    ranges = [
        f"{first}–{last}" if last > first else f"{first}" for first, last in find_page_runs(pages)
    ]
    return f"p. {', '.join(ranges)}" if ranges else ""
