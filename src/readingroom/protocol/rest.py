"""What the REST surfaces of all bases share: the prefix of their paths, and the error model."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

API_PATH_PREFIX = "/api/v1"
"""The prefix of the paths of the bases made of files."""


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


def make_problem_responses(
    meaning_by_status: Mapping[int | str, str],
) -> dict[int | str, dict[str, Any]]:
    """Return error `responses` for FastAPI: `make_problem_responses({404: "No such record"})`."""
    return {
        status_code: {"model": Problems, "description": status_meaning}
        for status_code, status_meaning in meaning_by_status.items()
    }


ERROR_RESPONSES_BY_STATUS = make_problem_responses(
    {"4XX": "It was refused; the error says why", "5XX": "It failed on our side"}
)
