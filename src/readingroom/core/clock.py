"""The one place that asks what time it is."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    """The current moment, in UTC."""
    return datetime.now(UTC)


def seconds() -> float:
    """The current moment as seconds since 1970: what processes and machines have in common."""
    return time.time()


def moment(seconds: float) -> datetime:
    """A file's or a log record's timestamp as a moment in UTC, whole seconds kept."""
    return datetime.fromtimestamp(seconds, UTC)
