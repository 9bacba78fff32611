"""Functions that are called once for all threads, and whose value is then remembered."""

import threading
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

Value = TypeVar("Value")


def call_once(function: Callable[[], Value]) -> Callable[[], Value]:
    """Return a function that calls the given one at its first call and remembers the value.

    `functools.cache` lets threads that come meanwhile call it as well: the three bases of a first
    question would each load what they share. A call that raises is made again.
    """
    call_lock = threading.Lock()
    remembered_values: list[Value] = []

    @wraps(function)
    def get_remembered_value() -> Value:
        if not remembered_values:
            with call_lock:
                # Checked again inside the lock: another thread may have called it meanwhile.
                if not remembered_values:
                    remembered_values.append(function())
        return remembered_values[0]

    return get_remembered_value
