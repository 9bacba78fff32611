"""Errors of a command that another process runs."""

from collections.abc import Mapping
from typing import Any

from readingroom.core.errors import KnowledgeError


class OwnerUnreachable(KnowledgeError):
    """The process that owns the folder holds its lock but does not answer."""

    code = "owner_unreachable"
    http_status = 503


class OwnerRefused(KnowledgeError):
    """The process that ran the command raised an error; its code and message are passed on."""

    code = "owner_refused"
    http_status = 500

    def __init__(self, error_code: str, message: str, hint_fields: Mapping[str, Any]) -> None:
        super().__init__(message, **hint_fields)
        self.code = error_code
