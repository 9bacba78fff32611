"""Pages as they are cited."""

from collections.abc import Sequence


def runs(pages: Sequence[int]) -> list[tuple[int, int]]:
    """Pages in order as first and last of each unbroken run."""
    found: list[tuple[int, int]] = []
    for page in pages:
        first = page
        if found and page == found[-1][1] + 1:
            first, _ = found.pop()
        found.append((first, page))
    return found


def cited(pages: Sequence[int]) -> str:
    """`p. 14–15, 17`, and nothing for no pages."""
    told = [f"{first}–{last}" if last > first else f"{first}" for first, last in runs(pages)]
    return f"p. {', '.join(told)}" if told else ""
