"""The root of all errors that callers see, and the errors that every base shares.

KnowledgeError                 code                  http
├── InvalidArguments           invalid_arguments     422   an argument is missing or invalid
│   ├── InvalidRequest           validation_error    422   the same over REST
│   └── RecordChanged            record_changed      409   others changed the same field meanwhile
├── UnrecognizedId             unrecognized_id_format 422  no base has ids of that form
├── RecordNotFound             record_not_found      404   a well-formed id without a record
├── UnknownSource              unknown_source        422   there is no such source
├── InvalidCursor              invalid_cursor        422   a cursor that this list did not issue
├── InvalidDate                invalid_date          422   a date is not YYYY-MM-DD
├── FileTooLarge               file_too_large        422   the file is over the limit
├── NotConfirmed               not_confirmed         409   the person who was asked did not agree
├── InvalidSetting             invalid_setting       500   a setting has an invalid value
└── Internal                   internal              500   our fault; the log has the reason

Services raise them. `server/mcp` renders them for tools and resources, `server/http/errors.py` for
HTTP, `server/http/admin.py` and `commands/console.py` for commands, and nobody else does.
"""

from collections.abc import Container, Mapping
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound=BaseModel)

_KIND_BY_HTTP_STATUS = {
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
    """An error that callers see as it is: a stable code, a sentence, and what to do next."""

    code: str
    http_status: int

    def __init__(self, message: str, **hint: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint: Mapping[str, Any] = hint

    @property
    def kind(self) -> str:
        """The category of the error, for programs that do not know its code."""
        return _KIND_BY_HTTP_STATUS.get(self.http_status, "invalid_request")


class InvalidArguments(KnowledgeError):
    """An argument is missing, unknown, of the wrong type or out of bounds; the error names each."""

    code = "invalid_arguments"
    http_status = 422

    def __init__(self, field_errors: list[dict[str, str]]) -> None:
        self.summary = "; ".join(
            f"{field_error['field']}: {field_error['message']}" for field_error in field_errors
        )
        super().__init__(f"Invalid arguments: {self.summary}", errors=field_errors)
        self.errors = field_errors

    @classmethod
    def from_validation_error(
        cls, validation_error: ValidationError, arguments: Any = None
    ) -> Self:
        """Return the error for what a model refused, field by field.

        Where a field has a union type, Pydantic reports a problem for each member of the union, at
        a location that includes the member's name. With `arguments`, those names are recognised
        and the problems are joined into one for the field.
        """
        # Without the input: an error is logged and shown, and arguments may be confidential.
        validation_problems = validation_error.errors(
            include_url=False, include_input=False, include_context=False
        )
        messages_by_field: dict[str, list[str]] = {}
        for validation_problem in validation_problems[:_MAX_REPORTED_PROBLEMS]:
            field_location = validation_problem["loc"]
            # A missing field is not among the arguments, so its own name must not be removed.
            if arguments is not None and validation_problem["type"] != "missing":
                field_location = _remove_union_members(field_location, arguments)
            messages_by_field.setdefault(_format_field_location(field_location), []).append(
                validation_problem["msg"]
            )
        field_errors = [
            {"field": field_name, "message": "; or: ".join(field_messages)}
            for field_name, field_messages in messages_by_field.items()
        ]
        if len(validation_problems) > _MAX_REPORTED_PROBLEMS:
            overflow_message = (
                f"{len(validation_problems) - _MAX_REPORTED_PROBLEMS} more do not fit"
            )
            field_errors.append({"field": "arguments", "message": overflow_message})
        return cls(field_errors)


class InvalidRequest(InvalidArguments):
    """A parameter, a field or the body of a REST request is invalid; the error names each."""

    code = "validation_error"


class RecordChanged(InvalidArguments):
    """Somebody else changed a field after its form was shown; the error names each."""

    code = "record_changed"
    http_status = 409

    def __init__(self, field_errors: list[dict[str, str]]) -> None:
        super().__init__(field_errors)
        self.message = (
            f"Somebody else changed this after you opened it: {self.summary}. "
            "What you typed is kept here; save it again to replace theirs"
        )


def validate_model(
    model_class: type[Model],
    field_values: Mapping[str, Any],
    error_class: type[InvalidArguments] = InvalidArguments,
) -> Model:
    """Return the model that the values make; raise `error_class`, which names what does not fit."""
    try:
        return model_class.model_validate(field_values)
    except ValidationError as error:
        raise error_class.from_validation_error(error) from error


# An error is read by a person or a model; neither wants thousands of fields.
_MAX_REPORTED_PROBLEMS = 20


def _remove_union_members(
    field_location: tuple[int | str, ...], arguments: Any
) -> tuple[int | str, ...]:
    """Return a location without the steps that the arguments do not have: names of types."""
    location_steps: list[int | str] = []
    for location_step in field_location:
        list_indexes: Container[Any] = range(len(arguments)) if isinstance(arguments, list) else ()
        if location_step in (arguments if isinstance(arguments, Mapping) else list_indexes):
            location_steps.append(location_step)
            arguments = arguments[location_step]
    return tuple(location_steps)


def _format_field_location(field_location: tuple[int | str, ...]) -> str:
    # Keys of the caller's own may be part of it, of any length.
    return ".".join(map(str, field_location))[:100] or "arguments"


class UnrecognizedId(KnowledgeError):
    """The text is not an id in any known form; `hint.valid_prefixes` lists the forms there are."""

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
    """This list did not issue the cursor; leave it out to start again."""

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


class NotConfirmed(KnowledgeError):
    """The person who was asked first did not agree, so nothing was done."""

    code = "not_confirmed"
    http_status = 409


class InvalidSetting(KnowledgeError):
    """A flag, a variable or a line of readingroom.toml has an invalid value."""

    code = "invalid_setting"
    http_status = 500


class InternalError(KnowledgeError):
    """Something unexpected failed; the server's log has the reason under the request id."""

    code = "internal"
    http_status = 500
