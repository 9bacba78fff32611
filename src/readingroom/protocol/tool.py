"""A tool: arguments in, an answer out, one coroutine between; no word of MCP in it."""

import copy
import datetime as dt
import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
)
from pydantic_core import PydanticSerializationError, to_json

from readingroom.core.errors import InvalidArguments, NotConfirmed
from readingroom.core.progress import ReportProgress
from readingroom.protocol.quoting import QUOTED_FIELD_DESCRIPTION

Schema = dict[str, Any]


def _check_not_blank(argument_text: str) -> str:
    if not argument_text.strip():
        raise ValueError("must hold a word")
    return argument_text


NonBlankText = Annotated[str, AfterValidator(_check_not_blank)]
"""A text that is not blank."""

# Lone surrogates cannot be encoded as UTF-8, which every store needs.
_CONTROL_CHARACTERS_PATTERN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def clean_reference(reference_text: str) -> str:
    """Return a reference without surrounding blanks; it is compared exactly otherwise.

    Raise ValueError when it is blank or holds control characters.
    """
    if _CONTROL_CHARACTERS_PATTERN.search(reference_text):
        raise ValueError("must not contain control characters")
    return _check_not_blank(reference_text).strip()


# A date stays text until the service parses it: the contract wants `invalid_date` for a bad one.
DayText = Annotated[
    str,
    Field(description="A day, YYYY-MM-DD.", json_schema_extra={"format": "date", "maxLength": 40}),
]


def _check_calendar_day(day_text: str) -> str:
    dt.date.fromisoformat(day_text)
    return day_text


Day = Annotated[
    str,
    Field(pattern=r"^\d{4}-\d{2}-\d{2}$", json_schema_extra={"format": "date"}),
    AfterValidator(_check_calendar_day),
]
"""A day that must be on the calendar: `2024-02-30` is an invalid argument."""
ShortText = Annotated[str, Field(min_length=1, max_length=100)]


class ToolArguments(BaseModel):
    """The arguments of a tool: unknown ones are refused, and nothing is coerced."""

    # Built when first used: every start of the program imports the models of every base's commands.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class Body(ToolArguments):
    """The same as REST is sent it. FastAPI has parsed the JSON before us, so strictness is per
    field.
    """

    # FastAPI looks into a body's model early, and warns of one that is not built.
    model_config = ConfigDict(strict=False, defer_build=False)

    @field_validator("*")
    @classmethod
    def _check_unicode(cls, field_value: Any) -> Any:
        """JSON can spell half a character, which nothing can store or send back."""
        if isinstance(field_value, str) and not field_value.isascii():
            try:
                field_value.encode()
            except UnicodeEncodeError as error:
                raise ValueError("is not Unicode text: it holds a lone surrogate") from error
        return field_value


class Answer(BaseModel):
    """What a tool answers: this model is its output schema, its documentation and its JSON."""

    model_config = ConfigDict(
        frozen=True,
        serialize_by_alias=True,
        validate_by_name=True,
        json_schema_serialization_defaults_required=True,  # a default is always sent, too
        # Built when first used: a shell command opens every base and uses few of their models.
        defer_build=True,
    )


AskPerson = Callable[[str], Awaitable[bool]]
"""Asks the person at the client for leave; returns whether they gave it."""


async def assume_consent(consent_question: str) -> bool:
    """Return that the person agrees, where the client cannot ask them."""
    return True


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may know about the call it answers, and how it reports progress."""

    request_id: str
    caller_id: str
    report_progress: ReportProgress
    client: str = "stdio"
    """The client whose calls are counted together: a key, an address, or the one of stdio."""
    correlation_id: str = ""
    """The caller's own id for a chain of calls, else the request id; passed on upstream."""
    trace_headers: Mapping[str, str] = field(default_factory=dict)
    """Headers that make requests to other servers part of the caller's trace, if there is one."""
    request_bytes: int | None = None
    """The length of the HTTP request's body, as its header states it."""
    log_facts: dict[str, Any] = field(default_factory=dict)
    """Additional fields for the log line of this call: numbers and words, never payloads."""
    ask_person: AskPerson = assume_consent
    """Asks for leave before something is removed, where the client can show the question."""

    async def require_consent(self, consent_question: str) -> None:
        """Raise NotConfirmed unless the person agrees to what the message says."""
        # The error speaks to the model, which otherwise would call the tool once more.
        if not await self.ask_person(consent_question):
            raise NotConfirmed(
                "Nothing was removed: the person who was asked did not agree. Do not try again "
                "unless they ask for it."
            )


@dataclass(frozen=True, slots=True)
class ToolHints:
    """What a client may assume before it calls: the annotations of the protocol."""

    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    open_world: bool = False


@dataclass(frozen=True, slots=True)
class ResourceLink:
    """A resource that an answer speaks of, which a host can attach or open."""

    path: str
    """Its URI without the scheme: `policy/NPPF/rev_NPPF_2024_12`."""
    title: str


RunTool = Callable[[Any, ToolContext], Awaitable[Any]]
ListLinks = Callable[[Any], Sequence[ResourceLink]]


MAX_RESOURCE_LINKS = 10
"""Of one answer: they are to be opened by people, who read no more."""


def _list_no_links(tool_answer: Any) -> Sequence[ResourceLink]:
    return ()


@dataclass(frozen=True)
class Tool:
    """One tool of a base; `describe` is called at every listing, so it may name live values."""

    name: str
    title: str
    describe: Callable[[], str]
    arguments_type: type[ToolArguments]
    answer_type: Any
    """An `Answer` or a union of them; another type for one that returns the protocol's content."""
    run: RunTool
    hints: ToolHints = field(default_factory=ToolHints)
    meta: Mapping[str, Any] = field(default_factory=dict)
    """What its listing and each of its results carry in `_meta`, such as a schema version."""
    list_choices: Callable[[], Mapping[str, Sequence[str]]] | None = None
    """The values that some arguments may have now, asked for at every listing."""
    view: str = ""
    """The name of the view that draws its answers inside a chat, where a host can."""
    list_links: ListLinks = _list_no_links
    """Returns the resources that an answer speaks of."""
    has_outlined_answer: bool = False
    """Whether the listing names the fields of the answer only, not what is inside them."""

    @cached_property
    def answer_adapter(self) -> TypeAdapter[Any] | None:
        """Serializes answers; None for a tool that returns content such as an image."""
        return TypeAdapter(self.answer_type) if _is_answer_model(self.answer_type) else None

    @property
    def input_schema(self) -> Schema:
        """The schema of the arguments, with the values they may have now."""
        if self.list_choices is None:
            return self._static_schema
        # A copy, because the static schema is cached and the choices change with the data.
        argument_schema = copy.deepcopy(self._static_schema)
        for argument_name, allowed_values in self.list_choices().items():
            _set_allowed_values(argument_schema["properties"][argument_name], list(allowed_values))
        return argument_schema

    @cached_property
    def _static_schema(self) -> Schema:
        return _remove_schema_titles(self.arguments_type.model_json_schema())

    @cached_property
    def output_schema(self) -> Schema | None:
        """The answer's schema; a union of answers is still an object, as the protocol asks."""
        if self.answer_adapter is None:
            return None
        answer_schema = {"type": "object", **self.answer_adapter.json_schema(mode="serialization")}
        return (
            _make_schema_outline(answer_schema)
            if self.has_outlined_answer
            else _remove_schema_titles(answer_schema)
        )

    def prepare_schemas(self) -> None:
        """Build now what the first listing and the first call would build, and keep it."""
        visited_models: set[type[BaseModel]] = set()
        _build_pydantic_models(self.arguments_type, visited_models)
        _build_pydantic_models(self.answer_type, visited_models)
        _ = self._static_schema, self.output_schema

    def parse_arguments(self, arguments: dict[str, Any]) -> ToolArguments:
        """Return the arguments, validated.

        Raise `InvalidArguments`, which names every field that does not fit. The arguments pass
        through JSON so that strictness is JSON's: a date may be written as a string, a number may
        not.
        """
        try:
            return self.arguments_type.model_validate_json(to_json(arguments))
        except ValidationError as error:
            raise InvalidArguments.from_validation_error(error, arguments) from error
        except PydanticSerializationError as error:
            error_message = "cannot be read: nested too deep, or not Unicode text"
            raise InvalidArguments([{"field": "arguments", "message": error_message}]) from error


def make_tool(
    run: RunTool,
    *,
    title: str,
    hints: ToolHints | None = None,
    make_description: Callable[[], str] | None = None,
    meta: Mapping[str, Any] | None = None,
    list_choices: Callable[[], Mapping[str, Sequence[str]]] | None = None,
    has_outlined_answer: bool = False,
    view: str = "",
    list_links: ListLinks = _list_no_links,
) -> Tool:
    """Make a tool of a coroutine, whose name, annotations and docstring become the tool's."""
    type_hints = typing.get_type_hints(run)
    docstring = inspect.cleandoc(run.__doc__ or "")
    arguments_type, _tool_context_type, answer_type = type_hints.values()
    return Tool(
        name=run.__name__,
        title=title,
        describe=make_description or (lambda: docstring),
        arguments_type=arguments_type,
        answer_type=answer_type,
        run=run,
        hints=hints or ToolHints(),
        meta=meta or {},
        list_choices=list_choices,
        has_outlined_answer=has_outlined_answer,
        view=view,
        list_links=list_links,
    )


def _is_answer_model(type_annotation: Any) -> bool:
    answer_types = typing.get_args(type_annotation) or (type_annotation,)
    return all(
        isinstance(answer_type, type) and issubclass(answer_type, Answer)
        for answer_type in answer_types
    )


def _set_allowed_values(argument_schema: Schema, allowed_values: list[str]) -> None:
    """Set which strings an argument may be, also where it may be null."""
    for alternative_schema in argument_schema.get("anyOf", [argument_schema]):
        if alternative_schema.get("type") == "string":
            alternative_schema["enum"] = allowed_values


def _make_schema_outline(json_schema: Schema) -> Schema:
    """Return the schema of an answer's fields, each with its types; an agent reads every byte."""
    schema_definitions = json_schema.get("$defs", {})
    if "anyOf" in json_schema:
        alternative_schemas = [
            _resolve_schema_reference(alternative_schema, schema_definitions)
            for alternative_schema in json_schema["anyOf"]
        ]
        schema_outlines = [
            _make_schema_outline({"$defs": schema_definitions} | alternative_schema)
            for alternative_schema in alternative_schemas
        ]
        return {"type": "object", "anyOf": schema_outlines}
    outlined_fields = {
        field_name: _make_field_outline(field_schema, schema_definitions)
        for field_name, field_schema in json_schema["properties"].items()
    }
    return {
        "type": "object",
        "properties": outlined_fields,
        "required": json_schema.get("required", []),
    }


def _make_field_outline(field_schema: Schema, schema_definitions: Schema) -> Schema:
    json_types = list(
        dict.fromkeys(
            json_type
            for alternative_schema in field_schema.get("anyOf", [field_schema])
            for json_type in [
                _resolve_schema_reference(alternative_schema, schema_definitions).get("type")
            ]
            if json_type
        )
    )
    schema_outline: Schema = (
        {"type": json_types[0] if len(json_types) == 1 else json_types} if json_types else {}
    )
    # The one thing a model must be told beside the text itself.
    if field_schema.get("description", "").endswith(QUOTED_FIELD_DESCRIPTION):
        schema_outline["description"] = QUOTED_FIELD_DESCRIPTION
    return schema_outline


def _resolve_schema_reference(json_schema: Schema, schema_definitions: Schema) -> Schema:
    """Return what a schema refers to, or the schema itself."""
    schema_reference = json_schema.get("$ref")
    return (
        schema_definitions[schema_reference.rpartition("/")[2]] if schema_reference else json_schema
    )


def _build_pydantic_models(annotation: Any, visited_models: set[type[BaseModel]]) -> None:
    """Build the models that a type is made of, the inner ones first: the outer ones use them."""
    for inner_annotation in typing.get_args(annotation):
        _build_pydantic_models(inner_annotation, visited_models)
    is_pydantic_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    if is_pydantic_model and annotation not in visited_models:
        visited_models.add(annotation)
        for model_field in annotation.model_fields.values():
            _build_pydantic_models(model_field.annotation, visited_models)
        annotation.model_rebuild()


def _remove_schema_titles(json_schema: Schema) -> Schema:
    """Return a schema without the titles that Pydantic adds: an agent reads every byte."""
    untitled_schema = {
        schema_keyword: keyword_value
        for schema_keyword, keyword_value in json_schema.items()
        if schema_keyword != "title"
    }
    if "properties" in untitled_schema:
        untitled_schema["properties"] = {
            property_name: _remove_schema_titles(keyword_value)
            for property_name, keyword_value in untitled_schema["properties"].items()
        }
    for schema_keyword in ("anyOf", "oneOf", "allOf"):
        if schema_keyword in untitled_schema:
            untitled_schema[schema_keyword] = [
                _remove_schema_titles(subschema) for subschema in untitled_schema[schema_keyword]
            ]
    if isinstance(untitled_schema.get("items"), dict):
        untitled_schema["items"] = _remove_schema_titles(untitled_schema["items"])
    if "$defs" in untitled_schema:
        untitled_schema["$defs"] = {
            property_name: _remove_schema_titles(subschema)
            for property_name, subschema in untitled_schema["$defs"].items()
        }
    return untitled_schema
