"""The current time: the only module that reads the system clock."""

import time
from datetime import UTC, datetime

# A file's timestamp can be any number, and `datetime` raises an error outside of these years.
_EARLIEST_TIMESTAMP = datetime.min.replace(tzinfo=UTC).timestamp()
_LATEST_TIMESTAMP = datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp()


def now() -> datetime:
    """Return the current time, in UTC."""
    return datetime.now(UTC)


def format_now() -> str:
    """Return the current time as records and logs write it, to the second."""
    return now().isoformat(timespec="seconds")


def read_unix_seconds() -> float:
    """Return the seconds since 1970, a clock that processes and machines share."""
    return time.time()


def from_timestamp(unix_time: float) -> datetime:
    """Return a timestamp as a time in UTC, moved into the years 1 to 9999 if it is outside."""
    return datetime.fromtimestamp(min(max(unix_time, _EARLIEST_TIMESTAMP), _LATEST_TIMESTAMP), UTC)
