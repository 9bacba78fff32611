"""The log: one JSON object a line, on standard error, with no payloads and no secrets."""

import json
import logging
import sys
from dataclasses import asdict, dataclass
from typing import Literal

from readingroom.core import clock
from readingroom.core.settings import LogLevel

_calls = logging.getLogger("readingroom.calls")

# These libraries write whole messages into their lower levels, and a message is a payload.
_CHATTY = ("mcp", "sse_starlette", "uvicorn", "httpx2", "httpcore2", "asyncio")


@dataclass(slots=True)
class CallRecord:
    """What is remembered of one tool call."""

    tool_name: str
    request_id: str
    caller_kind: str
    duration_ms: float = 0.0
    result_status: Literal["ok", "error"] = "ok"
    error_code: str | None = None
    answer_chars: int = 0


def configure(level: LogLevel) -> None:
    """Send every logger of the process to standard error as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


def log_call(record: CallRecord) -> None:
    """The one line a call leaves behind."""
    if _calls.isEnabledFor(logging.INFO):
        fields = {key: value for key, value in asdict(record).items() if value is not None}
        _calls.info("tool call", extra={"fields": fields})


class JsonLines(logging.Formatter):
    """A record as one JSON object: time, level, logger, message, and what the caller added."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": clock.moment(record.created).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["error"] = self._failure(record)
        return json.dumps(line, ensure_ascii=False, default=str)

    def _failure(self, record: logging.LogRecord) -> str:
        """Our own tracebacks whole; of a library only the kind, whose text may quote a payload."""
        assert record.exc_info is not None
        if record.name.startswith("readingroom"):
            return self.formatException(record.exc_info)
        kind = record.exc_info[0]
        return kind.__name__ if kind else "unknown"
