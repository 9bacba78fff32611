"""Values that are kept: in a cache of bounded size, or made once for all threads."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def _count_one(key: object, value: object) -> int:
    return 1


class LRUCache(Generic[Key, Value]):
    """Entries by key, at most `max_size` of them; safe to share between threads.

    `weigh` gives the size of an entry where entries are not simply counted. A value must not be
    None, because `get` returns None for a key that is not in the cache.
    """

    def __init__(self, max_size: int, weigh: Callable[[Key, Value], int] = _count_one) -> None:
        self._max_size = max_size
        self._weigh = weigh
        self._total_weight = 0
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        # Callers are threads, and moving an entry while another is evicted would break the order.
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Value | None:
        """Return the value and mark it as used now; None when the key is not in the cache."""
        with self._lock:
            value = self._entries.get(key)
            if value is not None:
                self._entries.move_to_end(key)
            return value

    def list_values(self) -> list[Value]:
        """Return every value, the most recently used first; none is marked as used by that."""
        with self._lock:
            return list(reversed(self._entries.values()))

    def put(self, key: Key, value: Value) -> None:
        """Add or replace a value, and discard others until the size is within its bound."""
        with self._lock:
            self._remove(key)
            self._entries[key] = value
            self._total_weight += self._weigh(key, value)
            while self._total_weight > self._max_size:
                self._remove(next(iter(self._entries)))

    def discard(self, key: Key) -> None:
        """Remove a key if it is there."""
        with self._lock:
            self._remove(key)

    def _remove(self, key: Key) -> None:
        value = self._entries.pop(key, None)
        if value is not None:
            self._total_weight -= self._weigh(key, value)


def call_once(function: Callable[[], Value]) -> Callable[[], Value]:
    """Return a function that calls the given one at its first call and remembers the value.

    `functools.cache` lets threads that come meanwhile call it as well: the three bases of a first
    question would each load what they share. A call that raises is made again.
    """
    lock = threading.Lock()
    values: list[Value] = []

    @wraps(function)
    def get_value() -> Value:
        if not values:
            with lock:
                # Checked again inside the lock: another thread may have called it meanwhile.
                if not values:
                    values.append(function())
        return values[0]

    return get_value
