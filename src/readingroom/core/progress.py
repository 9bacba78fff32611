"""How far a piece of work has come, and who is told."""

from collections.abc import Awaitable, Callable

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Hears how much is done, of how much if that is known, and what is being done."""

Count = Callable[[int, int], None]
"""Hears how many are done, and of how many, from work that waits for nobody."""

WHOLE = 100.0


async def unheard(done: float, total: float | None, message: str | None) -> None:
    """For work whose steps nobody follows."""


def part(report: Report, start: float, end: float) -> Report:
    """Steps of the part from `start` to `end` of a hundred; a step back is told as standing."""
    reached = start

    async def told(done: float, total: float | None, message: str | None) -> None:
        nonlocal reached
        share = min(1.0, done / total) if total else 0.0
        reached = max(reached, start + (end - start) * share)
        await report(reached, WHOLE, message)

    return told
