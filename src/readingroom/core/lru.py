"""A cache of bounded size, which forgets what was used least recently."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def _weigh_as_one(cache_key: object, cached_value: object) -> int:
    return 1


class LRUCache(Generic[Key, Value]):
    """Entries by key, at most `max_size` of them; safe to share between threads.

    `weigh_entry` gives the size of an entry where entries are not simply counted. A value must not
    be None, because `get` returns None for a key that is not in the cache.
    """

    def __init__(
        self, max_size: int, weigh_entry: Callable[[Key, Value], int] = _weigh_as_one
    ) -> None:
        self._max_size = max_size
        self._weigh_entry = weigh_entry
        self._total_weight = 0
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        # Callers are threads, and moving an entry while another is evicted would break the order.
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, cache_key: Key) -> Value | None:
        """Return the value and mark it as used now; None when the key is not in the cache."""
        with self._lock:
            cached_value = self._entries.get(cache_key)
            if cached_value is not None:
                self._entries.move_to_end(cache_key)
            return cached_value

    def list_values(self) -> list[Value]:
        """Return every value, the most recently used first; none is marked as used by that."""
        with self._lock:
            return list(reversed(self._entries.values()))

    def put(self, cache_key: Key, cached_value: Value) -> None:
        """Add or replace a value, and discard others until the size is within its bound."""
        with self._lock:
            self._remove_entry(cache_key)
            self._entries[cache_key] = cached_value
            self._total_weight += self._weigh_entry(cache_key, cached_value)
            while self._total_weight > self._max_size:
                self._remove_entry(next(iter(self._entries)))

    def discard(self, cache_key: Key) -> None:
        """Remove a key if it is there."""
        with self._lock:
            self._remove_entry(cache_key)

    def _remove_entry(self, cache_key: Key) -> None:
        cached_value = self._entries.pop(cache_key, None)
        if cached_value is not None:
            self._total_weight -= self._weigh_entry(cache_key, cached_value)
