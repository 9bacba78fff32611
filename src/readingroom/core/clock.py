"""The one place that asks what time it is."""

import time
from datetime import UTC, datetime

_EARLIEST = datetime.min.replace(tzinfo=UTC).timestamp()
_LATEST = datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp()


def now() -> datetime:
    """The current moment, in UTC."""
    return datetime.now(UTC)


def stamp() -> str:
    """The current moment as records and logs keep it, to the second."""
    return now().isoformat(timespec="seconds")


def seconds() -> float:
    """The current moment as seconds since 1970: what processes and machines have in common."""
    return time.time()


def moment(seconds: float) -> datetime:
    """A file's or a log record's timestamp as a moment in UTC, between the years 1 and 9999."""
    return datetime.fromtimestamp(min(max(seconds, _EARLIEST), _LATEST), UTC)
