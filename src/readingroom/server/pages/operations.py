"""`GET /docs`: every operation of REST on one page, which loads nothing and runs nothing."""

from collections.abc import Callable, Iterator
from functools import cache
from html import escape
from itertools import groupby
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from readingroom.server.pages.layout import html_page

Schema = dict[str, Any]


def operations_page(describe: Callable[[], Schema]) -> Callable[[Request], Response]:
    """An endpoint that shows what `describe`, the app's `openapi`, says; made when first asked."""

    @cache
    def page() -> Response:
        return html_page("REST", _body(describe()))

    def docs(request: Request) -> Response:
        return page()

    return docs


def _body(api: Schema) -> str:
    found = sorted(_operations(api["paths"]), key=lambda one: one[0])
    known = api["components"]["schemas"]
    groups = [
        f"<h2>{escape(tag)}</h2>" + "".join(_operation(*one[1:], known) for one in listed)
        for tag, listed in groupby(found, key=lambda one: one[0])
    ]
    return f"""
<p>What agents reach over <a href="/mcp">MCP</a>, for programs. Programs that write clients read
<a href="/openapi.json">openapi.json</a>. Errors come as
<code>{{"error": {{"type", "code", "message", "request_id", "hint"?}}}}</code>.</p>
{"".join(groups)}
"""


def _operations(paths: Schema) -> Iterator[tuple[str, str, str, Schema]]:
    """Tag, method, path and description of each, in the order of the routes."""
    for path, methods in paths.items():
        for method, told in methods.items():
            yield told.get("tags", ["other"])[0], method.upper(), path, told


def _operation(method: str, path: str, told: Schema, known: Schema) -> str:
    parameters = told.get("parameters", [])
    line = f"{method} {path}"
    # A summary that nobody wrote is the name of a function.
    first, _, rest = (told.get("description") or told["summary"]).partition(". ")
    said = f"<p>{escape(rest)}</p>" if rest else ""
    can_open = method == "GET" and not any(one["required"] for one in parameters)
    return f"""
<details><summary><code>{escape(line)}</code> {escape(first.removesuffix("."))}</summary>
{said}{_table(parameters, known)}{_sent(told.get("requestBody"))}
{f'<p><a href="{escape(path)}">Open it</a></p>' if can_open else ""}
</details>"""


def _table(parameters: list[Schema], known: Schema) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(one['name'])}</code></td>"
        f"<td>{escape(_kind(one['schema'], known))}{', required' if one['required'] else ''}</td>"
        f"<td>{escape(one.get('description', ''))}</td></tr>"
        for one in parameters
    )
    return f"<table>{rows}</table>" if rows else ""


def _kind(schema: Schema, known: Schema) -> str:
    """A parameter's type, or the values it may have."""
    if "anyOf" in schema:
        arms = [one for one in schema["anyOf"] if one.get("type") != "null"]
        return " or ".join(_kind(one, known) for one in arms)
    if "$ref" in schema:
        return _kind(known[schema["$ref"].rpartition("/")[2]], known)
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    return str(schema.get("const") or schema.get("format") or schema.get("type", "any"))


def _sent(body: Schema | None) -> str:
    if body is None:
        return ""
    kinds = ", ".join(f"<code>{escape(kind)}</code>" for kind in body["content"])
    return f"<p>Takes a body: {kinds}; its fields are in <code>openapi.json</code>.</p>"
