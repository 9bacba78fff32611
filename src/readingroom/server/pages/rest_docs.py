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
        api_operations = sorted(
            _read_operations(describe_api()), key=lambda operation: operation.tag
        )
        tags_with_operations = [
            (operation_tag, list(tagged_operations))
            for operation_tag, tagged_operations in groupby(
                api_operations, lambda operation: operation.tag
            )
        ]
        body_html = render_template("rest_docs.html", groups=tags_with_operations, is_open=is_open)
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
        return self.method == "GET" and not any(
            operation_parameter.required for operation_parameter in self.parameters
        )


def _read_operations(openapi_schema: Schema) -> Iterator[_Operation]:
    """Yield every operation of an OpenAPI document, in the order of the routes."""
    component_schemas = openapi_schema["components"]["schemas"]
    for route_path, operations_by_method in openapi_schema["paths"].items():
        for http_method, api_operation in operations_by_method.items():
            # A summary that nobody wrote is the name of a function.
            operation_description = api_operation.get("description") or api_operation["summary"]
            summary_text, _, details_text = operation_description.partition(". ")
            yield _Operation(
                tag=api_operation.get("tags", ["other"])[0],
                method=http_method.upper(),
                path=route_path,
                summary=summary_text.removesuffix("."),
                details=details_text,
                parameters=[
                    _Parameter(
                        operation_parameter["name"],
                        _format_type(operation_parameter["schema"], component_schemas),
                        operation_parameter["required"],
                        operation_parameter.get("description", ""),
                    )
                    for operation_parameter in api_operation.get("parameters", [])
                ],
                body_types=list(api_operation.get("requestBody", {}).get("content", {})),
            )


def _format_type(json_schema: Schema, component_schemas: Schema) -> str:
    """Return a parameter's type, or the values it may have."""
    if "anyOf" in json_schema:
        member_schemas = [
            member_schema
            for member_schema in json_schema["anyOf"]
            if member_schema.get("type") != "null"
        ]
        return " or ".join(
            _format_type(member_schema, component_schemas) for member_schema in member_schemas
        )
    if "$ref" in json_schema:
        return _format_type(
            component_schemas[json_schema["$ref"].rpartition("/")[2]], component_schemas
        )
    if "enum" in json_schema:
        return " | ".join(map(str, json_schema["enum"]))
    return str(
        json_schema.get("const") or json_schema.get("format") or json_schema.get("type", "any")
    )
