"""How far a piece of work has come, told as a part of a larger one that never goes back."""

from readingroom.ingest.sandbox import Report

WHOLE = 100.0


def part(report: Report, start: float, end: float) -> Report:
    """Steps of the part from `start` to `end` of a hundred; a step back is told as standing."""
    reached = start

    async def told(done: float, total: float | None, message: str | None) -> None:
        nonlocal reached
        share = min(1.0, done / total) if total else 0.0
        reached = max(reached, start + (end - start) * share)
        await report(reached, WHOLE, message)

    return told
