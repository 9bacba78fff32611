"""How each base tells an error: one family of errors, five contracts that render it differently."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from readingroom.core.errors import KnowledgeError


@dataclass(frozen=True, slots=True)
class ToldError:
    """An error as a tool result carries it: texts, and a body or meta beside them."""

    texts: tuple[str, ...]
    body: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)


class Dialect(Protocol):
    """A base's way of telling errors."""

    @property
    def arguments_are_params(self) -> bool:
        """Whether a bad argument is a protocol error (-32602) rather than a tool result."""

    def tell(self, error: KnowledgeError, request_id: str) -> ToldError: ...


@dataclass(frozen=True, slots=True)
class StatusDialect:
    """policy, documents: `{"status": "error", "error_type": code, "message": …}`."""

    arguments_are_params: bool = False

    def tell(self, error: KnowledgeError, request_id: str) -> ToldError:
        body = {"status": "error", "error_type": error.code, "message": error.message}
        return _object(body | _hint(error))


@dataclass(frozen=True, slots=True)
class TextDialect:
    """text: `{"status": "error", "error": message}`."""

    arguments_are_params: bool = False

    def tell(self, error: KnowledgeError, request_id: str) -> ToldError:
        return _object({"status": "error", "error": error.message})


@dataclass(frozen=True, slots=True)
class FederalDialect:
    """federal: a sentence and a machine's line, the rest in `_meta`."""

    arguments_are_params: bool = True

    def tell(self, error: KnowledgeError, request_id: str) -> ToldError:
        said = f"{error.message} (code={error.code}, request_id={request_id})"
        meta = {
            "error_code": error.code,
            "error_type": error.kind,
            "request_id": request_id,
        }
        return ToldError((said, f"{error.code} {request_id}"), meta=meta | _hint(error))


@dataclass(frozen=True, slots=True)
class GuidanceDialect:
    """guidance: the code in capitals, and the attribution and disclaimer of every answer."""

    attribution: str
    disclaimer: str
    arguments_are_params: bool = False

    def tell(self, error: KnowledgeError, request_id: str) -> ToldError:
        told = {"code": error.code.upper(), "message": error.message} | _hint(error)
        legal = {"attribution": self.attribution, "disclaimer": self.disclaimer}
        return _object({"error": told, **legal})


def _object(body: Mapping[str, Any]) -> ToldError:
    return ToldError((json.dumps(body, ensure_ascii=False),), body)


def _hint(error: KnowledgeError) -> dict[str, Any]:
    return {"hint": dict(error.hint)} if error.hint else {}
