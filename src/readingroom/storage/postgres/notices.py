"""Notices of what other processes have written: one connection that listens, for all who wait.

A notice only wakes. Whoever is woken reads a generation, which decides whether anything changed;
so a notice that is lost costs a moment, never an answer.
"""

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from readingroom.storage.errors import DatabaseFailed

logger = logging.getLogger(__name__)

NOTICE_CHANNEL_NAME = "readingroom"
_SECONDS_BETWEEN_LOOKS = 1.0
"""How often the thread looks whether anybody still waits."""
_RETRY_SECONDS = 1.0

WakeSubscriber = Callable[[], None]


class NoticeListener:
    """Calls those who wait for a store whenever any process has written to it."""

    def __init__(self, open_connection: Callable[[], Any]) -> None:
        self._connect = open_connection
        self._lock = threading.Lock()
        self._wake_subscribers_by_store: dict[str, list[WakeSubscriber]] = defaultdict(list)
        self._thread: threading.Thread | None = None
        self._end_event = threading.Event()

    def subscribe(self, store_name: str, wake_subscriber: WakeSubscriber) -> None:
        """Call `wake_subscriber`, from another thread, after each write to a store, and whenever
        some may have been missed. The first subscriber starts the thread.
        """
        with self._lock:
            if wake_subscriber not in self._wake_subscribers_by_store[store_name]:
                self._wake_subscribers_by_store[store_name].append(wake_subscriber)
            if self._thread is None:
                # A new one for each thread: the thread before may not have looked at its own yet.
                self._end_event = threading.Event()
                self._thread = threading.Thread(
                    target=self._run_listener, args=(self._end_event,), name="notices", daemon=True
                )
                self._thread.start()

    def unsubscribe(self, store_name: str, wake_subscriber: WakeSubscriber) -> None:
        """Call `wake_subscriber` no more; with the last subscriber the thread ends."""
        with self._lock:
            if wake_subscriber in self._wake_subscribers_by_store[store_name]:
                self._wake_subscribers_by_store[store_name].remove(wake_subscriber)
            if any(self._wake_subscribers_by_store.values()):
                return
        self.close()

    def close(self) -> None:
        """Forget all subscribers, who then look for themselves, and end the thread."""
        with self._lock:
            self._wake_subscribers_by_store.clear()
            self._end_event.set()
            self._thread = None

    def _run_listener(self, end_event: threading.Event) -> None:
        is_failing = False
        while not end_event.is_set():
            try:
                self._follow_notices(end_event)
                is_failing = False
            except DatabaseFailed as error:
                if not is_failing:  # once, not at every attempt
                    logger.warning("Nothing is heard of other processes: %s", error.message)
                is_failing = True
                end_event.wait(_RETRY_SECONDS)

    def _follow_notices(self, end_event: threading.Event) -> None:
        connection = self._connect()
        try:
            connection.execute(f"LISTEN {NOTICE_CHANNEL_NAME}")
            # Whatever was written before this connection heard of it.
            with self._lock:
                store_names = list(self._wake_subscribers_by_store)
            self._wake_subscribers_of_stores(store_names)
            while not end_event.is_set():
                self._wake_subscribers_of_stores(
                    connection.wait_for_notices(_SECONDS_BETWEEN_LOOKS)
                )
        finally:
            connection.close()

    def _wake_subscribers_of_stores(self, store_names: Sequence[str]) -> None:
        for store_name in dict.fromkeys(store_names):
            with self._lock:
                wake_subscribers = list(self._wake_subscribers_by_store.get(store_name, ()))
            # Outside of the lock: a subscriber that is called may want to leave, which takes the
            # lock.
            for wake_subscriber in wake_subscribers:
                try:
                    wake_subscriber()
                except Exception as error:  # one subscriber must not make the others deaf
                    logger.warning("A change of %s was not followed: %s", store_name, error)
