"""The log: one JSON object a line, on standard error, with no payloads and no secrets."""

import atexit
import contextlib
import logging
import queue
import sys
import threading
from dataclasses import dataclass, field
from typing import Literal

from pydantic_core import to_json

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
    facts: dict[str, object] = field(default_factory=dict)
    """What the tool itself has to say of the call, such as whether a cache answered."""

    def fields(self) -> dict[str, object]:
        """The record as a log line carries it."""
        told: dict[str, object] = {name: getattr(self, name) for name in self.__slots__}
        told |= self.facts
        del told["facts"]
        if self.error_code is None:
            del told["error_code"]
        return told


def configure(level: LogLevel, waiting: bool = True) -> None:
    """Send every logger of the process to standard error as JSON lines.

    Without `waiting`, lines are dropped rather than waited for when nobody reads them: a client
    that starts a stdio server may never look at its standard error.
    """
    # No line of ours tells these, and finding them out costs as much as writing the line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # the way that the logging documentation gives
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    if not waiting:
        handler = _through_a_thread(handler)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


def log_call(record: CallRecord) -> None:
    """The one line a call leaves behind."""
    if _calls.isEnabledFor(logging.INFO):
        line = logging.LogRecord(_calls.name, logging.INFO, "", 0, "tool call", None, None)
        line.fields = record.fields()
        _calls.handle(line)


def _through_a_thread(handler: logging.Handler) -> logging.Handler:
    lines: queue.Queue[logging.LogRecord | None] = queue.Queue(1000)

    def write() -> None:
        while (record := lines.get()) is not None:
            handler.handle(record)

    def finish() -> None:
        with contextlib.suppress(queue.Full):
            lines.put_nowait(None)
        writer.join(timeout=1)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    atexit.register(finish)
    return _Dropping(lines)


class _Dropping(logging.Handler):
    """Hands lines to the thread that writes them, as long as it keeps up."""

    def __init__(self, lines: "queue.Queue[logging.LogRecord | None]") -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(record)


class JsonLines(logging.Formatter):
    """A record as one JSON object: time, level, logger, message, and what the caller added."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": clock.moment(record.created).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            # A file's name may hold bytes that are no Unicode.
            "message": record.getMessage().encode("utf-8", "backslashreplace").decode(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["error"] = self._failure(record)
        return to_json(line, fallback=str).decode()

    def _failure(self, record: logging.LogRecord) -> str:
        """Our own tracebacks whole; of a library only the kind, whose text may quote a payload."""
        assert record.exc_info is not None
        if record.name.startswith("readingroom"):
            return self.formatException(record.exc_info)
        kind = record.exc_info[0]
        return kind.__name__ if kind else "unknown"
