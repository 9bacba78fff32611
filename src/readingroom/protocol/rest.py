"""What the bases that have REST say alike: where they are, and how an error looks."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

API = "/api/v1"
"""Where the bases made of files are."""


class Problem(BaseModel):
    """What went wrong."""

    type: str | None = None
    code: str
    message: str
    request_id: str | None = None
    hint: dict[str, Any] | None = None


class Problems(BaseModel):
    """Every error has this shape; 401 and 429 hold just code and message."""

    error: Problem


def problems(told: Mapping[int | str, str]) -> dict[int | str, dict[str, Any]]:
    """Answers other than success, as FastAPI takes them: `problems({404: "No such record"})`."""
    return {status: {"model": Problems, "description": meaning} for status, meaning in told.items()}


REFUSALS = problems({"4XX": "It was refused; the error says why", "5XX": "It failed on our side"})
