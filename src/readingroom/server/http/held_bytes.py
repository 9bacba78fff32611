"""Memory that callers make the server hold: bodies until they are answered, answers until sent."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from readingroom.server.errors import TooManyBytes

MIN_CHARGE_BYTES = 64 * 1024
"""What any request with a body counts for: its connection and buffers are memory too."""
_MAX_BODIES_PER_CALLER = 8
_CALLERS_WITH_FULL_SHARE = 4
_MAX_SMALL_BODY_BYTES = 2**20


class MemoryCharges:
    """Counts bytes by caller: no caller may have many, and all together not several times that.

    A caller that has next to nothing may always have more: one answer may be larger than all
    that is allowed, and whoever fills the memory must not shut out everybody else.
    """

    def __init__(self, max_body_bytes: int) -> None:
        self._max_bytes_per_caller = _MAX_BODIES_PER_CALLER * max(max_body_bytes, 4 * 2**20)
        self._max_total_bytes = _CALLERS_WITH_FULL_SHARE * self._max_bytes_per_caller
        self._bytes_by_caller: Counter[str] = Counter()
        self._total_bytes = 0

    @contextmanager
    def charge_bytes(self, caller_id: str, byte_count: int) -> Iterator["ByteCharge"]:
        """Count these bytes while this is entered. Raise TooManyBytes."""
        byte_charge = ByteCharge(self, caller_id)
        byte_charge.grow_to(byte_count)
        try:
            yield byte_charge
        finally:
            byte_charge.release_bytes()

    def add_bytes(self, caller_id: str, byte_count: int) -> None:
        """Count bytes that are already here, however many there are; `remove_bytes` ends it."""
        self._bytes_by_caller[caller_id] += byte_count
        self._total_bytes += byte_count

    def remove_bytes(self, caller_id: str, byte_count: int) -> None:
        """Count bytes no longer that were counted for a caller."""
        self._total_bytes -= byte_count
        self._bytes_by_caller[caller_id] -= byte_count
        if not self._bytes_by_caller[caller_id]:
            del self._bytes_by_caller[caller_id]

    def check_memory_limits(self, caller_id: str, byte_count: int) -> None:
        """Raise TooManyBytes unless a caller may have so many more."""
        held_byte_count = self._bytes_by_caller[caller_id]
        is_over_caller_limit = held_byte_count + byte_count > self._max_bytes_per_caller
        is_over_total_limit = self._total_bytes + byte_count > self._max_total_bytes
        if held_byte_count > _MAX_SMALL_BODY_BYTES and (
            is_over_caller_limit or is_over_total_limit
        ):
            raise TooManyBytes(
                f"Requests and answers of this caller already take {held_byte_count} bytes of "
                "memory; read your answers, let them finish, and send fewer at once",
                retry_after=1,
            )


class ByteCharge:
    """What one request is counted for; it may grow, and is released once."""

    def __init__(self, memory_charges: MemoryCharges, caller_id: str) -> None:
        self._memory_charges = memory_charges
        self._caller_id = caller_id
        self._byte_count = 0

    def grow_to(self, byte_count: int) -> None:
        """Count at least so many bytes from now on. Raise TooManyBytes."""
        added_byte_count = byte_count - self._byte_count
        if added_byte_count > 0:
            self._memory_charges.check_memory_limits(self._caller_id, added_byte_count)
            self._memory_charges.add_bytes(self._caller_id, added_byte_count)
            self._byte_count = byte_count

    def release_bytes(self) -> None:
        self._memory_charges.remove_bytes(self._caller_id, self._byte_count)
        self._byte_count = 0
