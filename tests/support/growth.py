"""Tells work that grows with its input from work that grows with the square of it."""

import gc
import time
from collections.abc import Callable

FACTOR = 4
"""How much larger the large input is: four times the work if it is linear, sixteen if not."""
ATTEMPTS = 6


def assert_grows_linearly(work: Callable[[int], object], count: int) -> None:
    """Assert that work on this many takes at most eight times as long as on a quarter of them.

    Other processes on the machine can only make a measurement longer, so the shortest of several
    counts, and a further one is taken only where those so far are not convincing.
    """
    small = large = float("inf")
    for _ in range(ATTEMPTS):
        small = min(small, measure_processor_time(work, count // FACTOR))
        large = min(large, measure_processor_time(work, count))
        # What takes next to nothing is left out of the ratio, which is then noise.
        if large < 2 * FACTOR * small + 0.05:
            return
    raise AssertionError(
        f"{count} took {large:.3f} s of processor time and {count // FACTOR} took {small:.3f} s: "
        f"more than {2 * FACTOR} times as much"
    )


def measure_processor_time(work: Callable[[int], object], count: int) -> float:
    """Return the seconds of processor time that the work takes, without garbage collection."""
    gc.collect()
    gc.disable()
    try:
        began = time.process_time()
        work(count)
        return time.process_time() - began
    finally:
        gc.enable()
