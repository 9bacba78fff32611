"""docs/errors.md: every code, and how each base and REST render an error."""

import importlib
import json
import pkgutil
import re
from collections.abc import Iterator

import readingroom
from readingroom.bases.text.errors import TextUnreadable
from readingroom.core.errors import InvalidArguments, KnowledgeError
from readingroom.protocol.errors import (
    ErrorDialect,
    FederalDialect,
    GuidanceDialect,
    StatusDialect,
    TextDialect,
)
from scripts.docs.markdown import as_json, code, page, slug, table, wrapped
from scripts.docs.pages import PACKAGE
from scripts.docs.tools import open_bases

ENVELOPE = """\
Every error over HTTP, REST included, is one object:

```json
{
  "error": {
    "type": "not_found",
    "code": "path_not_found",
    "message": "GET /nothing: Not Found",
    "request_id": "23305d31106b4d058bc6711efb3464da"
  }
}
```

Some errors have a `hint` too. The bodies of 401 and 429 hold only `code` and `message`.
`request_id` is also sent as the header `X-Request-ID`. On the command line an error is one line
on standard error, or with `--json` an object with `code`, `message` and `hint`; the exit code is 2
for `invalid_setting` and for a wrong option or value, else 1.

A malformed request to the MCP endpoint is answered by the SDK in its own format: plain text with
413 for a body over `READINGROOM_MAX_BODY_BYTES`, else a JSON-RPC error such as -32700 (not JSON),
-32600 (no such session, or an id of more than 256 characters) or -32601 (no such method), and
-32603 with 503 when every session of Streamable HTTP is in use."""

# Codes that are sent or logged without an error class of their own.
OTHER_CODES = {
    "path_not_found": "HTTP 404. There is nothing at this path.",
    "method_not_allowed": "HTTP 405. The path takes other methods: the header `Allow` lists them.",
    "bad_request": "HTTP 4xx. The router refused the request; the message says why.",
    "unknown_tool": (
        "The server has no tool of that name. The client receives JSON-RPC error -32602; the log "
        "and the metrics have this code, and call the tool `unknown`."
    ),
    "protocol": (
        "A tool raised a protocol error itself, and the client receives that error. The log and "
        "the metrics have this code. No tool of ours does so."
    ),
    "cancelled": (
        "The caller disconnected before the answer was ready. Only the log and the metrics have "
        "this code."
    ),
}


def render_errors_page() -> str:
    intro = """\
A code is stable: programs may act on it. Its message is for people and may change. A tool's error
is a result with `isError: true`, in the dialect of the tool's base. It stands in the text item and
never in `structuredContent`, which is for answers: those alone fit the tool's output schema."""
    rows = [
        (f"[{code(error.code)}](#{slug(error.code)})", str(error.http_status))
        for error in list_all_errors()
    ]
    rendered = [render_dialect(dialect) for dialect in list_dialects()]
    sections = [render_error(error) for error in list_all_errors()]
    other = [f"### {code(name)}\n\n{wrapped(text)}" for name, text in OTHER_CODES.items()]
    return page(
        "Errors",
        intro,
        table(("code", "HTTP status"), *rows),
        *("## How a tool's error is rendered", *rendered),
        *("## How an HTTP error is rendered", ENVELOPE),
        *("## Codes", *sections),
        *("## Codes without an error of their own", *other),
    )


def list_codes() -> set[str]:
    """Every code that the page must have a heading for."""
    return {error.code for error in list_all_errors()} | OTHER_CODES.keys() | list_logged_codes()


def list_all_errors() -> tuple[type[KnowledgeError], ...]:
    """Return every error class of the project, sorted by code."""
    for module in pkgutil.walk_packages(readingroom.__path__, "readingroom."):
        if module.name.endswith(".errors"):
            importlib.import_module(module.name)
    return tuple(sorted(descendants(KnowledgeError), key=lambda error: error.code))


def descendants(parent: type[KnowledgeError]) -> Iterator[type[KnowledgeError]]:
    for error in parent.__subclasses__():
        if error.__module__.startswith("readingroom."):  # a test may define errors of its own
            yield error
        yield from descendants(error)


def render_error(error: type[KnowledgeError]) -> str:
    kind = error.__new__(error).kind
    facts = f"HTTP {error.http_status}, type `{kind}`, class `{error.__name__}`."
    return "\n\n".join([f"### {code(error.code)}", facts, wrapped(error.__doc__ or "")])


def list_dialects() -> tuple[ErrorDialect, ...]:
    guidance = GuidanceDialect(attribution="(who is quoted)", disclaimer="(what it is not)")
    return (TextDialect(), StatusDialect(), FederalDialect(), guidance)


def render_dialect(dialect: ErrorDialect) -> str:
    users = [base.name for base in open_bases() if type(base.error_dialect) is type(dialect)]
    used = f"Used by: {', '.join(users)}."
    missing = TextUnreadable("The file 'kb.txt' does not exist.")
    extra = InvalidArguments([{"field": "limit", "message": "Extra inputs are not permitted"}])
    how = ", as a JSON-RPC error" if dialect.bad_arguments_are_protocol_errors else ""
    parts = [
        f"### {type(dialect).__name__}",
        wrapped(f"{type(dialect).__doc__} {used}"),
        *("An error, here `text_unreadable`:", as_json(render(dialect, missing))),
        f"A bad argument{how}:",
        as_json(render(dialect, extra)),
    ]
    return "\n\n".join(parts)


def render(dialect: ErrorDialect, error: KnowledgeError) -> object:
    """What a client gets: the JSON in the text item, the texts and meta, or a protocol error."""
    if dialect.bad_arguments_are_protocol_errors and isinstance(error, InvalidArguments):
        message = f"Invalid params: {error.summary}"
        return {"code": -32602, "message": message, "data": {"errors": error.errors}}
    result = dialect.render_error(error, "4b19150c")
    if not result.meta:
        return json.loads(result.texts[0])
    return {"content": result.texts, "_meta": result.meta}


def list_logged_codes() -> set[str]:
    """Return the codes that only the log and the metrics have, as no error class carries them."""
    sources = (path.read_text("utf-8") for path in PACKAGE.glob("server/**/*.py"))
    return {code for text in sources for code in re.findall(r'error_code ?= ?"(\w+)"', text)}
