"""Dialects: one family of errors, which the contracts of the bases render differently."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from readingroom.core.errors import KnowledgeError


@dataclass(frozen=True, slots=True)
class ErrorResult:
    """An error as a tool result carries it: its text items, and meta beside them.

    There is no structured content: a tool's output schema describes its answers only, and clients
    on the TypeScript SDK v1 discard an error whose structured content does not fit that schema.
    """

    texts: tuple[str, ...]
    meta: Mapping[str, Any] = field(default_factory=dict)


class ErrorDialect(Protocol):
    """How the contract of a base renders errors."""

    @property
    def bad_arguments_are_protocol_errors(self) -> bool:
        """Whether a bad argument is a protocol error (-32602) rather than a tool result."""

    def render_error(self, error: KnowledgeError, request_id: str) -> ErrorResult:
        """Return the error as the result of a tool."""


@dataclass(frozen=True, slots=True)
class StatusDialect:
    """policy, documents: `{"status": "error", "error_type": code, "message": …}`."""

    bad_arguments_are_protocol_errors: bool = False

    def render_error(self, error: KnowledgeError, request_id: str) -> ErrorResult:
        error_body = {"status": "error", "error_type": error.code, "message": error.message}
        return _make_json_result(error_body | _make_hint_field(error))


@dataclass(frozen=True, slots=True)
class TextDialect:
    """text: `{"status": "error", "error": message}`."""

    bad_arguments_are_protocol_errors: bool = False

    def render_error(self, error: KnowledgeError, request_id: str) -> ErrorResult:
        return _make_json_result({"status": "error", "error": error.message})


@dataclass(frozen=True, slots=True)
class FederalDialect:
    """federal: a sentence and a machine's line, the rest in `_meta`."""

    bad_arguments_are_protocol_errors: bool = True

    def render_error(self, error: KnowledgeError, request_id: str) -> ErrorResult:
        error_text = f"{error.message} (code={error.code}, request_id={request_id})"
        error_meta = {
            "error_code": error.code,
            "error_type": error.kind,
            "request_id": request_id,
        }
        return ErrorResult(
            (error_text, f"{error.code} {request_id}"), meta=error_meta | _make_hint_field(error)
        )


@dataclass(frozen=True, slots=True)
class GuidanceDialect:
    """guidance: the code in capitals, and the attribution and disclaimer of every answer."""

    attribution: str
    disclaimer: str
    bad_arguments_are_protocol_errors: bool = False

    def render_error(self, error: KnowledgeError, request_id: str) -> ErrorResult:
        error_details = {"code": error.code.upper(), "message": error.message} | _make_hint_field(
            error
        )
        legal_fields = {"attribution": self.attribution, "disclaimer": self.disclaimer}
        return _make_json_result({"error": error_details, **legal_fields})


def _make_json_result(error_body: Mapping[str, Any]) -> ErrorResult:
    return ErrorResult((json.dumps(error_body, ensure_ascii=False),))


def _make_hint_field(error: KnowledgeError) -> dict[str, Any]:
    return {"hint": dict(error.hint)} if error.hint else {}


class RoomUnreachable(KnowledgeError):
    """The room that a worker embeds for does not answer; it is asked again for a while."""

    code = "room_unreachable"
    http_status = 503


class WorkRefused(KnowledgeError):
    """The room refused a worker: its key, its model or its vectors."""

    code = "work_refused"
    http_status = 403
