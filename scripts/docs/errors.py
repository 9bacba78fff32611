"""docs/errors.md: every code, and how each base and REST tell one."""

import re
from collections.abc import Iterator

from readingroom.bases.text.errors import TextUnreadable
from readingroom.core.errors import InvalidArguments, KnowledgeError
from readingroom.protocol.errors import (
    Dialect,
    FederalDialect,
    GuidanceDialect,
    StatusDialect,
    TextDialect,
)
from scripts.docs.markdown import as_json, code, page, slug, table, wrapped
from scripts.docs.pages import PACKAGE
from scripts.docs.tools import bases

ENVELOPE = """\
A refusal over HTTP, and every REST error, is one object:

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

`hint` joins them when there is more to say. The bodies of 401 and 429 hold just `code` and
`message`. `request_id` is also the header `X-Request-ID`. On the command line an error is one line
on standard error, or with `--json` an object with `code`, `message` and `hint`; the exit code is 2
for `invalid_setting` and for a wrong option, else 1.

Where a request reaches the MCP endpoint but is not one it can take, the SDK answers in its own
words: plain text with 413 for a body over `READINGROOM_MAX_BODY_BYTES`, else a JSON-RPC error such
as -32700 (not JSON), -32600 (no such session) or -32601 (no such method), and -32603 with 503 when
every session of Streamable HTTP is in use."""

# Codes that are told or logged without an error of the family.
OTHER_CODES = {
    "path_not_found": "HTTP 404. There is nothing at this path.",
    "method_not_allowed": "HTTP 405. The path is right, the method is not; `Allow` names those.",
    "bad_request": "HTTP 4xx. The router refused the request for another reason, which it says.",
    "unknown_tool": (
        "The face has no tool of that name. The client is told JSON-RPC -32602; the code stands in "
        "the log and the metrics, where the tool is called `unknown`."
    ),
    "protocol": (
        "A tool answered with a protocol error of its own, and the client is told that. The code "
        "stands in the log and the metrics. None of ours does so."
    ),
    "cancelled": (
        "The caller left before the answer. Nobody is told; the code stands in the log and the "
        "metrics."
    ),
}


def errors_page() -> str:
    intro = """\
A code is stable: programs may act on it. Its message is for people and may change. A tool's error
is a result with `isError: true`, in the dialect of the tool's base."""
    rows = [
        (f"[{code(error.code)}](#{slug(error.code)})", str(error.http_status)) for error in family()
    ]
    told = [dialect_section(dialect) for dialect in dialects()]
    known = [error_section(error) for error in family()]
    other = [f"### {code(name)}\n\n{wrapped(text)}" for name, text in OTHER_CODES.items()]
    return page(
        "Errors",
        intro,
        table(("code", "HTTP status"), *rows),
        *("## How a tool's error is told", *told),
        *("## How a refusal is told", ENVELOPE),
        *("## Codes", *known),
        *("## Codes without an error of their own", *other),
    )


def codes() -> set[str]:
    """Every code that the page must have a heading for."""
    return {error.code for error in family()} | OTHER_CODES.keys() | logged_codes()


def family() -> tuple[type[KnowledgeError], ...]:
    """Every error of the project, parents before children."""
    return tuple(descendants(KnowledgeError))


def descendants(parent: type[KnowledgeError]) -> Iterator[type[KnowledgeError]]:
    for error in parent.__subclasses__():
        if error.__module__.startswith("readingroom."):  # a test may define errors of its own
            yield error
        yield from descendants(error)


def error_section(error: type[KnowledgeError]) -> str:
    kind = error.__new__(error).kind
    facts = f"HTTP {error.http_status}, type `{kind}`, class `{error.__name__}`."
    return "\n\n".join([f"### {code(error.code)}", facts, wrapped(error.__doc__ or "")])


def dialects() -> tuple[Dialect, ...]:
    guidance = GuidanceDialect(attribution="(who is quoted)", disclaimer="(what it is not)")
    return (TextDialect(), StatusDialect(), FederalDialect(), guidance)


def dialect_section(dialect: Dialect) -> str:
    users = [base.name for base in bases() if type(base.dialect) is type(dialect)]
    used = f"Used by: {', '.join(users)}."
    missing = TextUnreadable("The file 'kb.txt' does not exist.")
    extra = InvalidArguments([{"field": "limit", "message": "Extra inputs are not permitted"}])
    parts = [
        f"### {type(dialect).__name__}",
        wrapped(f"{type(dialect).__doc__} {used}"),
        *("An error, here `text_unreadable`:", as_json(told_as(dialect, missing))),
        *(f"A bad argument{', as a JSON-RPC error' if dialect.arguments_are_params else ''}:",),
        as_json(told_as(dialect, extra)),
    ]
    return "\n\n".join(parts)


def told_as(dialect: Dialect, error: KnowledgeError) -> object:
    """What a client gets: the body of the result, its texts and meta, or a protocol error."""
    if dialect.arguments_are_params and isinstance(error, InvalidArguments):
        told = f"Invalid params: {error.named}"
        return {"code": -32602, "message": told, "data": {"errors": error.errors}}
    told = dialect.tell(error, "4b19150c")
    return told.body if told.body is not None else {"content": told.texts, "_meta": told.meta}


def logged_codes() -> set[str]:
    """Codes that the dispatcher puts into the log without an error of the family."""
    source = (PACKAGE / "server" / "mcp.py").read_text("utf-8")
    return set(re.findall(r'error_code ?= ?"(\w+)"', source))
