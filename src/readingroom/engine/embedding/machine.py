"""What the process asks of its machine: the number of cores, and memory handed back."""

import ctypes
import functools
import os
from collections.abc import Callable


def count_cores() -> int:
    """Return how many cores this process may use: in a container fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def return_free_memory() -> None:
    """Empty the C library's free lists (100 MB and more after a bulk run) on Linux with glibc."""
    malloc_trim = _find_malloc_trim()
    if malloc_trim is not None:
        malloc_trim(0)


@functools.cache
def _find_malloc_trim() -> Callable[[int], int] | None:
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
