"""The log: one JSON object per line on standard error, without payloads and secrets."""

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
from readingroom.core.text import escape_control_characters

_call_logger = logging.getLogger("readingroom.calls")

# These libraries write whole messages into their lower levels, and a message is a payload.
_CHATTY_LOGGER_NAMES = ("mcp", "sse_starlette", "uvicorn", "httpx2", "httpcore2", "asyncio")


@dataclass(slots=True)
class CallRecord:
    """What is logged and counted of one tool call."""

    tool_name: str
    request_id: str
    caller_kind: str
    duration_ms: float = 0.0
    result_status: Literal["ok", "error"] = "ok"
    error_code: str | None = None
    answer_chars: int = 0
    facts: dict[str, object] = field(default_factory=dict)
    """What the tool itself adds, such as whether a cache answered."""

    def make_log_fields(self) -> dict[str, object]:
        """Return the record as the fields of a log line."""
        log_fields: dict[str, object] = {
            "tool_name": self.tool_name,
            "request_id": self.request_id,
            "caller_kind": self.caller_kind,
            "duration_ms": self.duration_ms,
            "result_status": self.result_status,
        }
        if self.error_code is not None:
            log_fields["error_code"] = self.error_code
        log_fields["answer_chars"] = self.answer_chars
        log_fields.update(self.facts)
        return log_fields


def configure_logging(log_level: LogLevel, should_block: bool = True) -> None:
    """Send every logger of the process to standard error as JSON lines.

    Without `should_block`, lines are dropped when nobody reads them: a client that starts a stdio
    server may never look at its standard error.
    """
    # No line of ours has these, and finding them out costs as much as writing the line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # as the logging documentation recommends
    log_handler: logging.Handler = logging.StreamHandler(sys.stderr)
    log_handler.setFormatter(JsonLineFormatter())
    if not should_block:
        log_handler = _make_threaded_handler(log_handler)
    logging.basicConfig(level=log_level.upper(), handlers=[log_handler], force=True)
    for logger_name in _CHATTY_LOGGER_NAMES:
        logging.getLogger(logger_name).setLevel(logging.WARNING)


def log_call(call_record: CallRecord) -> None:
    """Log a tool call in one line."""
    if _call_logger.isEnabledFor(logging.INFO):
        log_record = logging.LogRecord(
            _call_logger.name, logging.INFO, "", 0, "tool call", None, None
        )
        log_record.fields = call_record.make_log_fields()
        _call_logger.handle(log_record)


def _make_threaded_handler(log_handler: logging.Handler) -> logging.Handler:
    """Return a handler that never blocks: a thread writes its lines with the given one."""
    record_queue: queue.Queue[logging.LogRecord | None] = queue.Queue(1000)

    def write_queued_records() -> None:
        while (log_record := record_queue.get()) is not None:
            log_handler.handle(log_record)

    def finish_writing() -> None:
        with contextlib.suppress(queue.Full):
            record_queue.put_nowait(None)
        # Not for ever: when nobody reads standard error, the thread cannot finish.
        writer_thread.join(timeout=1)

    writer_thread = threading.Thread(target=write_queued_records, daemon=True)
    writer_thread.start()
    atexit.register(finish_writing)
    return _DroppingHandler(record_queue)


class _DroppingHandler(logging.Handler):
    """Passes records to the thread that writes them, and drops them when it lags behind."""

    def __init__(self, record_queue: "queue.Queue[logging.LogRecord | None]") -> None:
        super().__init__()
        self._waiting_records = record_queue

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(queue.Full):
            self._waiting_records.put_nowait(record)


class JsonLineFormatter(logging.Formatter):
    """Formats a record as a JSON object: time, level, logger, message, and the caller's fields."""

    def __init__(self) -> None:
        super().__init__()
        self._second = -1
        self._second_text = ""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if not message.isascii():  # the name of a file may hold bytes that are not Unicode
            message = message.encode("utf-8", "backslashreplace").decode()
        json_fields = {
            "time": self._format_time(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": message,
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            json_fields["error"] = self._format_exception(record)
        return escape_control_characters(to_json(json_fields, fallback=str).decode())

    def _format_time(self, created_seconds: float) -> str:
        """Return `2026-01-31T09:30:00.123+00:00`; the calendar is computed once a second."""
        whole_second = int(created_seconds)
        if whole_second != self._second:
            self._second = whole_second
            self._second_text = clock.from_timestamp(whole_second).strftime("%Y-%m-%dT%H:%M:%S")
        return f"{self._second_text}.{int((created_seconds - whole_second) * 1000):03d}+00:00"

    def _format_exception(self, log_record: logging.LogRecord) -> str:
        """Return our own traceback; for a library the type only: its text may quote a payload."""
        assert log_record.exc_info is not None
        if log_record.name.startswith("readingroom"):
            return self.formatException(log_record.exc_info)
        error_type = log_record.exc_info[0]
        return error_type.__name__ if error_type else "unknown"
