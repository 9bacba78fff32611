"""`GET /docs`: every REST operation on one page, which loads nothing and runs nothing."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from readingroom.protocol.pages import RenderedPage
from readingroom.server.pages.frame import get_frame
from readingroom.web.templates import render_template

Schema = dict[str, Any]


def make_operations_page(describe_api: Callable[[], Schema]) -> Callable[[Request], Response]:
    """Return an endpoint that shows the OpenAPI document, which `describe_api` makes once."""

    @cache
    def render_operations(is_open: bool) -> RenderedPage:
        operations = sorted(_read_operations(describe_api()), key=lambda operation: operation.tag)
        operations_by_tag = [
            (tag, list(tagged_operations))
            for tag, tagged_operations in groupby(operations, lambda item: item.tag)
        ]
        body_html = render_template("rest_docs.html", groups=operations_by_tag, is_open=is_open)
        return RenderedPage("REST", body_html)

    def show_operations(request: Request) -> Response:
        # A session opens pages only: who has signed in gets no links to what programs use.
        rest_page = render_operations("user" not in request.scope)
        return get_frame(request.scope).make_response(request.scope, rest_page)

    return show_operations


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    type: str
    required: bool
    description: str


@dataclass(frozen=True, slots=True)
class _Operation:
    tag: str
    method: str
    path: str
    summary: str
    details: str
    parameters: list[_Parameter]
    body_types: list[str]

    @property
    def can_open(self) -> bool:
        """Whether a browser can call it as it is."""
        return self.method == "GET" and not any(parameter.required for parameter in self.parameters)


def _read_operations(api: Schema) -> Iterator[_Operation]:
    """Yield every operation of an OpenAPI document, in the order of the routes."""
    schemas = api["components"]["schemas"]
    for route_path, methods in api["paths"].items():
        for method, operation in methods.items():
            # A summary that nobody wrote is the name of a function.
            operation_text = operation.get("description") or operation["summary"]
            summary, _, details = operation_text.partition(". ")
            yield _Operation(
                tag=operation.get("tags", ["other"])[0],
                method=method.upper(),
                path=route_path,
                summary=summary.removesuffix("."),
                details=details,
                parameters=[
                    _Parameter(
                        parameter["name"],
                        _format_type(parameter["schema"], schemas),
                        parameter["required"],
                        parameter.get("description", ""),
                    )
                    for parameter in operation.get("parameters", [])
                ],
                body_types=list(operation.get("requestBody", {}).get("content", {})),
            )


def _format_type(schema: Schema, schemas: Schema) -> str:
    """Return a parameter's type, or the values it may have."""
    if "anyOf" in schema:
        member_schemas = [
            member_schema
            for member_schema in schema["anyOf"]
            if member_schema.get("type") != "null"
        ]
        return " or ".join(_format_type(member_schema, schemas) for member_schema in member_schemas)
    if "$ref" in schema:
        return _format_type(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    return str(schema.get("const") or schema.get("format") or schema.get("type", "any"))
