"""What can go wrong, once: every error a caller may be told.

KnowledgeError                 code                  http
├── InvalidArguments           invalid_arguments     422   an argument does not fit its question
│   └── InvalidRequest           validation_error    422   the same over REST
├── UnrecognizedId             unrecognized_id_format 422  no id of ours has that form
├── RecordNotFound             record_not_found      404   a well-formed id without a record
├── UnknownSource              unknown_source        422   no source of that name
├── InvalidCursor              invalid_cursor        422   a cursor that no list gave out
├── InvalidDate                invalid_date          422   a date is not YYYY-MM-DD
├── FileTooLarge               file_too_large        422   the file is over the limit
├── InvalidSetting             invalid_setting       500   a setting's value does not fit
└── Internal                   internal              500   our fault; the log has the reason

Services raise them. `server/mcp` renders them for tools and resources, `server/http/errors.py` for
HTTP, `server/http/admin.py` and `commands/console.py` for commands, and nobody else does.
"""

from collections.abc import Container, Mapping
from typing import Any, Self

from pydantic import ValidationError

_KINDS = {
    200: "warning",
    401: "authentication",
    403: "permission",
    404: "not_found",
    409: "conflict",
    410: "gone",
    429: "rate_limit",
    500: "internal",
    503: "unavailable",
}


class KnowledgeError(Exception):
    """An error told to the caller as it is: a stable code, a sentence, and what to do next."""

    code: str
    http_status: int

    def __init__(self, message: str, **hint: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint: Mapping[str, Any] = hint

    @property
    def kind(self) -> str:
        """The family a program may act on when it does not know the code."""
        return _KINDS.get(self.http_status, "invalid_request")


class InvalidArguments(KnowledgeError):
    """An argument is missing, unknown, of the wrong type or out of bounds; each one is named."""

    code = "invalid_arguments"
    http_status = 422

    def __init__(self, errors: list[dict[str, str]]) -> None:
        self.named = "; ".join(f"{error['field']}: {error['message']}" for error in errors)
        super().__init__(f"Invalid arguments: {self.named}", errors=errors)
        self.errors = errors

    @classmethod
    def of(cls, failure: ValidationError, sent: Any = None) -> Self:
        """What a model refused, field by field, without repeating what was sent.

        Where one of several kinds was wanted, Pydantic complains once for each, at a place that
        names the kind. `sent` tells kinds from fields: one complaint then, of the field.
        """
        problems = failure.errors(include_url=False, include_input=False, include_context=False)
        told: dict[str, list[str]] = {}
        for problem in problems[:_MOST_NAMED]:
            place = problem["loc"]
            if sent is not None and problem["type"] != "missing":
                place = _sent_at(place, sent)
            told.setdefault(_place(place), []).append(problem["msg"])
        named = [{"field": field, "message": "; or: ".join(said)} for field, said in told.items()]
        if len(problems) > _MOST_NAMED:
            more = f"{len(problems) - _MOST_NAMED} more do not fit"
            named.append({"field": "arguments", "message": more})
        return cls(named)


class InvalidRequest(InvalidArguments):
    """A parameter, a field or the body of a REST request does not fit; each one is named."""

    code = "validation_error"


_MOST_NAMED = 20  # an error is read by a person or a model; neither wants thousands of fields


def _sent_at(location: tuple[int | str, ...], sent: Any) -> tuple[int | str, ...]:
    """A complaint's place without the kinds in it: nothing was sent under their names."""
    place: list[int | str] = []
    for step in location:
        held: Container[Any] = range(len(sent)) if isinstance(sent, list) else ()
        if step in (sent if isinstance(sent, Mapping) else held):
            place.append(step)
            sent = sent[step]
    return tuple(place)


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location))[:100] or "arguments"


class UnrecognizedId(KnowledgeError):
    """The text is no id of any federal record; `hint.valid_prefixes` lists the forms there are."""

    code = "unrecognized_id_format"
    http_status = 422


class RecordNotFound(KnowledgeError):
    """The id is well formed, but no record of that id has been loaded."""

    code = "record_not_found"
    http_status = 404


class UnknownSource(KnowledgeError):
    """There is no federal source of that name; `hint.valid_sources` lists those there are."""

    code = "unknown_source"
    http_status = 422


class InvalidCursor(KnowledgeError):
    """The cursor is not one that this list gave out; leave it away to start again."""

    code = "invalid_cursor"
    http_status = 422


class InvalidDate(KnowledgeError):
    """A date is written YYYY-MM-DD and nothing else."""

    code = "invalid_date"
    http_status = 422


class FileTooLarge(KnowledgeError):
    """The file is larger than is accepted."""

    code = "file_too_large"
    http_status = 422


class InvalidSetting(KnowledgeError):
    """A flag, a variable or a line of readingroom.toml has a value that does not fit."""

    code = "invalid_setting"
    http_status = 500


class Internal(KnowledgeError):
    """Something unexpected failed; the server's log has the reason under the request id."""

    code = "internal"
    http_status = 500
