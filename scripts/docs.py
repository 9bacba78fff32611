"""Writes the generated pages of docs/, and checks that every page tells the truth.

    python scripts/docs.py            write docs/cli.md, errors.md, settings.md and tools.md anew
    python scripts/docs.py --check    compare them with the code, and check the other pages

Of the pages written by hand it checks what a machine can: links, anchors, commands and their
options, settings and files that are named, and that examples parse. A command that is shown with
its output is a worked example: it is asked of the sample, and `tests/test_demo.py` runs it.
"""

import argparse
import ast
import atexit
import contextlib
import io
import json
import re
import shlex
import shutil
import sys
import tempfile
import textwrap
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import click
from pydantic.fields import FieldInfo

from readingroom.cli import main as readingroom
from readingroom.core.errors import InvalidArguments, KnowledgeError, TextUnreadable
from readingroom.core.settings import Settings, variable
from readingroom.protocol.dialects import (
    Dialect,
    FederalDialect,
    GuidanceDialect,
    StatusDialect,
    TextDialect,
)
from readingroom.protocol.knowledge import KnowledgeBase
from readingroom.protocol.tool import Schema, Tool
from readingroom.server.catalogue import OFFERS, STDIO, Face, desk_of, faces_of_all

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "readingroom"
WIDTH = 100
MARK = "<!-- Written by `make docs` from the code; a change made here by hand is lost. -->"


def main(argv: Sequence[str], root: Path = ROOT) -> int:
    """Write the pages, or tell everything that is wrong with them; 0 when nothing is."""
    parser = argparse.ArgumentParser(description="Write or check the documentation.")
    parser.add_argument("--check", action="store_true", help="change nothing, say what is wrong")
    if not parser.parse_args(argv).check:
        write(root)
        return 0
    problems = check(root)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(pages(root))} pages, {len(problems)} problems")
    return 1 if problems else 0


def write(root: Path) -> None:
    """Write every generated page."""
    for name, text in generated().items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def check(root: Path) -> list[str]:
    """One line for each thing that is not as it should be."""
    checks = (stale, headings, links, commands, examples, worked, names, modules)
    return [problem for look in checks for problem in look(root)]


def generated() -> dict[str, str]:
    """The pages that come from the code, by their paths."""
    return {
        "docs/cli.md": cli_page(),
        "docs/errors.md": errors_page(),
        "docs/settings.md": settings_page(),
        "docs/tools.md": tools_page(),
    }


# --- Markdown ---


def page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", MARK, *(part for part in parts if part)]) + "\n"


def wrapped(text: str, indent: str = "") -> str:
    """A paragraph in lines of the project's width; code and links stay in one piece."""
    whole = re.sub(r"\[`[^`]*`\]|`[^`]*`", lambda match: match[0].replace(" ", "\0"), text)
    lines = textwrap.fill(
        whole, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return lines.replace("\0", " ")


def table(*rows: Sequence[str]) -> str:
    """A table whose first row is its head; nothing when there are no others."""
    if len(rows) < 2:
        return ""
    head, *body = (" | ".join(cell.replace("|", r"\|") for cell in row) for row in rows)
    rule = " | ".join("---" for _ in rows[0])
    return "\n".join(f"| {row} |" for row in (head, rule, *body))


def block(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def as_json(value: object) -> str:
    return block("json", json.dumps(value, indent=2, ensure_ascii=False))


def code(text: object) -> str:
    return f"`{text}`"


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


# --- docs/tools.md ---


@cache
def bases() -> tuple[KnowledgeBase, ...]:
    """Every base there is, opened with the default settings on an empty data directory."""
    # There until we end: a base may read its folder whenever it describes a tool.
    data = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, data, ignore_errors=True)
    settings = Settings(data=Path(data))
    opened = tuple(offer.open(settings) for offer in OFFERS.values())
    return (*opened, desk_of(opened, settings))


def tools_page() -> str:
    intro = """\
Every tool of every base that is built, as a client sees it. The `/mcp` address of
`readingroom serve` lists all of them; `/{base}/mcp` those of one base. Arguments that are not
listed here are refused. An answer with an output schema comes twice, and both are the same: as
`structuredContent` and as the JSON of the one text item. How an error is told is in
[errors.md](errors.md)."""
    rows = sorted(
        (f"[{code(tool.name)}](#{slug(tool_heading(base, tool))})", base.name, tool.title)
        for base in bases()
        for tool in base.tools
    )
    sections = [part for base in bases() for part in base_sections(base)]
    listed = table(("tool", "base", "title"), *rows)
    return page("Tools", intro, listed, *listing_sizes(), *sections)


def listing_sizes() -> Iterator[str]:
    """What a client's model has to read before it has asked anything."""
    yield "## What a listing costs"
    yield wrapped(
        "Names, descriptions and input schemas of `tools/list`, in tokens: bytes divided by four. "
        "No base may cost more than 8,000; connect to one base where that of all is too much."
    )
    *own, desk = bases()
    yield table(
        ("server", "tools", "tokens"),
        *(
            (code(face.server_name), str(len(face.shelf)), f"{tokens(face):,}")
            for face in faces_of_all(tuple(own), desk)
        ),
    )


def tokens(face: Face) -> int:
    said = [(tool.name, tool.describe(), tool.input_schema) for tool, _ in face.shelf.values()]
    return len(json.dumps(said).encode()) // 4


def base_sections(base: KnowledgeBase) -> Iterator[str]:
    yield "## The desk" if base.name == "desk" else f"## The {base.name} base"
    alone = f"- Port when served alone: {OFFERS[base.name].port}" if base.name in OFFERS else ""
    yield "\n".join(
        [
            f"- Server name: {code(base.server_name)}",
            alone or "- Served at `/mcp` of all bases, never alone",
            f"- Transports: {', '.join(transports(base))}",
            f"- Sessions over Streamable HTTP: {'kept' if base.stateful else 'none'}",
        ]
    )
    yield wrapped(f"What a model is told of it: {base.instructions}")
    for tool in sorted(base.tools, key=lambda tool: tool.name):
        yield f"### {tool_heading(base, tool)}"
        yield from tool_sections(tool)


def tool_heading(base: KnowledgeBase, tool: Tool) -> str:
    """Its name; what the desk has in place of a base's tool of that name says so."""
    others = (one for other in bases() if other is not base for one in other.tools)
    if base.name == "desk" and any(one.name == tool.name for one in others):
        return f"{code(tool.name)} at the desk"
    return code(tool.name)


def transports(base: KnowledgeBase) -> Iterator[str]:
    yield "Streamable HTTP"
    yield from ["SSE"] if base.sse else []
    yield from ["stdio"] if base.name in STDIO else []


def tool_sections(tool: Tool) -> Iterator[str]:
    hints = tool.hints
    yield f"**{tool.title}.**"
    yield wrapped(tool.describe())
    yield table(
        ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"),
        [
            yes_or_no(hint)
            for hint in (hints.read_only, hints.destructive, hints.idempotent, hints.open_world)
        ],
    )
    yield arguments(tool.input_schema)
    for shape in shapes(tool.output_schema or {}):
        yield f"Answer: {shape.get('description', '')}"
        yield fields(shape)
    yield from ("Input schema:", as_json(tool.input_schema))
    if tool.output_schema is not None:
        yield from ("Output schema:", as_json(tool.output_schema))


def yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def arguments(schema: Schema) -> str:
    required = schema.get("required", ())
    rows = [
        (code(name), kind(field), yes_or_no(name in required), field.get("description", ""))
        for name, field in schema.get("properties", {}).items()
    ]
    return table(("argument", "type", "required", "meaning"), *rows) or "It takes no arguments."


def shapes(schema: Schema) -> list[Schema]:
    """The shapes an answer may have: one, or each arm of a union."""
    known = schema.get("$defs", {})
    arms = schema.get("anyOf", [schema])
    return [known.get(arm.get("$ref", "").rpartition("/")[2], arm) for arm in arms]


def fields(schema: Schema) -> str:
    rows = [
        (code(name), kind(field), field.get("description", ""))
        for name, field in schema.get("properties", {}).items()
    ]
    return table(("field", "type", "meaning"), *rows)


def kind(schema: Schema) -> str:
    """A schema's type in a word or two."""
    match schema:
        case {"const": value}:
            return code(value)
        case {"enum": values}:
            return " or ".join(map(code, values))
        case {"anyOf": arms}:
            return " or ".join(map(kind, arms))
        case {"$ref": reference}:
            return str(reference).rpartition("/")[2]
        case {"type": "array"}:
            return f"list of {kind(schema.get('items', {}))}"
        case {"type": str(name), "format": str(form)}:
            return f"{name} ({form})"
    return str(schema.get("type", "any"))


# --- docs/settings.md ---

# What the default is, where its value would say nothing or would be this machine's.
DEFAULTS_IN_WORDS = {
    "data": (
        "`readingroom` in the user's data directory: `~/.local/share` on Linux (or "
        "`XDG_DATA_HOME`), `~/Library/Application Support` on macOS"
    ),
    "port": "8000 for all bases, the port of its contract for one base",
    "kb_file": "the sample that comes with the package",
    "kb_description": "a sentence about the sample, or a general one for a file of your own",
}


def settings_page() -> str:
    intro = """\
A flag beats the environment, which beats `readingroom.toml` in the data directory, which beats the
default. An empty variable is one that is not set. Flags are options of the commands in
[cli.md](cli.md). A key or a value that does not fit stops the command with exit code 2 and a line
that names it."""
    example = """\
port = 8080
allowed_hosts = ["room.example.org"]
kb_file = "/srv/notes.txt"
log_level = "warning\""""
    lists = """\
A list is written `a, b` in a variable and `["a", "b"]` in the file. A switch is `true` or `false`.
`readingroom.toml` may look like this:"""
    rows = [
        (f"[{code(variable(field))}](#{slug(variable(field))})", toml_key(name))
        for name, field in Settings.model_fields.items()
    ]
    overview = table(("variable", "key in `readingroom.toml`"), *rows)
    sections = [setting(name, field) for name, field in Settings.model_fields.items()]
    return page("Settings", intro, lists, block("toml", example), overview, *sections)


def setting(name: str, field: FieldInfo) -> str:
    schema = Settings.model_json_schema()["properties"][name]
    facts = [
        f"- Key in `readingroom.toml`: {toml_key(name)}",
        f"- Value: {value(schema)}",
        f"- Default: {default(name, field)}",
        f"- Flag: {', '.join(flags(name)) or 'none'}",
    ]
    lines = "\n".join(wrapped(fact, "  ") for fact in facts)
    return "\n\n".join([f"## {code(variable(field))}", str(field.description), lines])


def toml_key(name: str) -> str:
    return "none: the file lies inside this directory" if name == "data" else code(name)


def value(schema: Schema) -> str:
    """What a setting may hold, in words."""
    arms = [arm for arm in schema.get("anyOf", [schema]) if arm.get("type") != "null"]
    return " or ".join(f"{kind(arm)}{bounds(arm)}" for arm in arms)


def bounds(schema: Schema) -> str:
    told = {
        "minimum": "at least {}",
        "exclusiveMinimum": "more than {}",
        "maximum": "at most {}",
        "maxLength": "at most {} characters",
        "pattern": "of the form `{}`",
    }
    return "".join(f", {text.format(schema[key])}" for key, text in told.items() if key in schema)


def default(name: str, field: FieldInfo) -> str:
    if name in DEFAULTS_IN_WORDS:
        return DEFAULTS_IN_WORDS[name]
    if field.default is None or field.default == ():
        return "not set"
    return code(json.dumps(field.default))


def flags(name: str) -> Iterator[str]:
    """Every command's option that sets this setting."""
    for path, command in walk():
        for option in command.params:
            if isinstance(option, click.Option) and option.name == name:
                yield f"{code(option.opts[0])} of [{code(path)}](cli.md#{slug(path)})"


# --- docs/errors.md ---

ENVELOPE = """\
A refusal over HTTP, and later every REST error, is one object:

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
        "stands in the log and the metrics. No tool that is built does so."
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
        (f"[{code(error.code)}](#{slug(error.code)})", str(status(error))) for error in family()
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


def family() -> tuple[type[KnowledgeError], ...]:
    """Every error of the project, parents before children."""
    return tuple(descendants(KnowledgeError))


def descendants(parent: type[KnowledgeError]) -> Iterator[type[KnowledgeError]]:
    for error in parent.__subclasses__():
        if error.__module__.startswith("readingroom."):  # a test may define errors of its own
            yield error
        yield from descendants(error)


def status(error: type[KnowledgeError]) -> int:
    return error.http_status


def error_section(error: type[KnowledgeError]) -> str:
    facts = f"HTTP {status(error)}, type `{error.__new__(error).kind}`, class `{error.__name__}`."
    return "\n\n".join([f"### {code(error.code)}", facts, wrapped(error.__doc__ or "")])


def dialects() -> tuple[Dialect, ...]:
    guidance = GuidanceDialect(attribution="(who is quoted)", disclaimer="(what it is not)")
    return (TextDialect(), StatusDialect(), FederalDialect(), guidance)


def dialect_section(dialect: Dialect) -> str:
    users = [base.name for base in bases() if type(base.dialect) is type(dialect)]
    used = f"Used by: {', '.join(users)}." if users else "No base that is built uses it yet."
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


# --- docs/cli.md ---


def cli_page() -> str:
    intro = """\
What `--help` prints. `make serve` installs the command as `.venv/bin/readingroom`. Exit codes: 0
when it did what was asked (also when a server is stopped), 2 when an option or a setting is wrong,
else 1."""
    parts = [f"## {code(path)}\n\n{block('text', help_of(path))}" for path, _ in walk()]
    return page("Command line", intro, *parts)


def walk(
    command: click.Command = readingroom, path: str = "readingroom"
) -> Iterator[tuple[str, click.Command]]:
    """Every command with the words that call it."""
    yield path, command
    if isinstance(command, click.Group):
        for name, inner in sorted(command.commands.items()):
            yield from walk(inner, f"{path} {name}")


def help_of(path: str) -> str:
    name, *words = path.split()
    command: click.Command = readingroom
    context = click.Context(command, info_name=name, terminal_width=98, **command.context_settings)
    for word in words:
        assert isinstance(command, click.Group)
        command = command.commands[word]
        context = click.Context(command, info_name=word, parent=context)
    return command.get_help(context)


# --- the checks ---

FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
INLINE_CODE = re.compile(r"`([^`\n]+)`")
TARGET = re.compile(r"^([\w-]+):(?!=)", re.MULTILINE)
ASSIGNED = re.compile(r"[A-Z][A-Z0-9_]*=.*", re.DOTALL)
OUR_VARIABLES = ("READINGROOM_", "KB_", "MCP_", "OTEL_")
TYPED = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
SAMPLE_ADDRESS = "http://127.0.0.1:8000"
A_FILE = re.compile(r"[\w.-]+(/[\w.-]+)+\.(py|md|toml|yml|lock|txt|json)")


@dataclass(frozen=True)
class Page:
    """One Markdown file of the project."""

    path: Path
    name: str

    @cached_property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @cached_property
    def prose(self) -> str:
        """The text without its blocks, every line where it was."""
        return FENCE.sub(lambda match: "\n" * match[0].count("\n"), self.text)

    def blocks(self, *languages: str) -> Iterator[tuple[str, str, int]]:
        """Language, text and first line of the blocks in one of these languages."""
        for match in FENCE.finditer(self.text):
            if match[1] in languages:
                yield match[1], match[2], self.line(match.start()) + 1

    def line(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1

    @cached_property
    def anchors(self) -> set[str]:
        """Every anchor a link may name; a heading that comes again gets a number."""
        slugs = [slug(heading) for heading in HEADING.findall(self.prose)]
        seen: Counter[str] = Counter()
        for number, name in enumerate(slugs):
            slugs[number] = f"{name}-{seen[name]}" if seen[name] else name
            seen[name] += 1
        return set(slugs)


def pages(root: Path) -> list[Page]:
    folders = ("*.md", "docs/**/*.md", "benchmarks/*.md")
    found = sorted(path for folder in folders for path in root.glob(folder))
    return [Page(path, path.relative_to(root).as_posix()) for path in found]


def by_hand(root: Path) -> list[Page]:
    return [page for page in pages(root) if MARK not in page.text]


def stale(root: Path) -> Iterator[str]:
    """Generated pages that are not what the code says today."""
    for name, text in generated().items():
        path = root / name
        if not path.exists() or path.read_text("utf-8") != text:
            yield f"{name}: is stale; run make docs"


def headings(root: Path) -> Iterator[str]:
    """Tools, settings, codes and commands without a heading, and headings without one of them."""
    for name, wanted in subjects().items():
        path = root / name
        text = path.read_text("utf-8") if path.exists() else ""
        titles = HEADING.findall(text)
        there = {found[1] for title in titles if (found := only_code(title))}
        twice = [title for title, count in Counter(titles).items() if count > 1]
        yield from (f"{name}: {title} is the heading of two" for title in twice)
        yield from (f"{name}: no heading for {missing}" for missing in sorted(wanted - there))
        yield from (f"{name}: there is no {extra}" for extra in sorted(there - wanted))


def only_code(title: str) -> re.Match[str] | None:
    return INLINE_CODE.fullmatch(title)


def subjects() -> dict[str, set[str]]:
    """What each generated page must have a heading for."""
    return {
        "docs/cli.md": {path for path, _ in walk()},
        "docs/errors.md": {error.code for error in family()} | OTHER_CODES.keys() | logged_codes(),
        "docs/settings.md": variables(),
        "docs/tools.md": {tool.name for base in bases() for tool in base.tools},
    }


def logged_codes() -> set[str]:
    """Codes that the dispatcher puts into the log without an error of the family."""
    source = (PACKAGE / "server" / "mcp.py").read_text("utf-8")
    return set(re.findall(r'error_code ?= ?"(\w+)"', source))


def variables() -> set[str]:
    return {variable(field) for field in Settings.model_fields.values()}


def links(root: Path) -> Iterator[str]:
    """Links to files and anchors that are not there."""
    known = {page.path.resolve(): page for page in pages(root)}
    for page in pages(root):
        # Code is blanked, not cut, so that a link keeps its place.
        text = INLINE_CODE.sub(lambda match: " " * len(match[0]), page.prose)
        for match in LINK.finditer(text):
            if not re.match(r"[a-z]+:", match[1]) and not leads(page, match[1], root, known):
                line = text.count("\n", 0, match.start()) + 1
                yield f"{page.name}:{line}: {match[1]} leads nowhere"


def leads(page: Page, target: str, root: Path, known: Mapping[Path, Page]) -> bool:
    name, _, anchor = target.partition("#")
    path = (page.path.parent / name).resolve() if name else page.path.resolve()
    if not path.exists() or not path.is_relative_to(root.resolve()):
        return False
    return not anchor or (path in known and anchor in known[path].anchors)


def commands(root: Path) -> Iterator[str]:
    """Commands in `console` blocks that would be refused as they stand."""
    makefile = (root / "Makefile").read_text("utf-8")
    for page in by_hand(root):
        for _, text, first in page.blocks("console"):
            for line, typed in typed_lines(text):
                if objection := refused(typed, makefile):
                    yield f"{page.name}:{first + line}: {typed}: {objection}"


def typed_lines(text: str) -> Iterator[tuple[int, str]]:
    """What a person types in a console block: the lines after `$`, continued by a backslash."""
    return ((line, typed) for line, typed, _ in console(text))


def console(text: str) -> Iterator[tuple[int, str, str]]:
    """The line, the command and the output of everything that is typed in a console block."""
    joined = re.sub(r"\\\n", " \0", text)  # a line that goes on stays one, and is still counted
    for found in TYPED.finditer(joined):
        line = len(re.findall("[\n\0]", joined[: found.start()]))
        yield line, found[1].replace("\0", ""), found[2]


def refused(typed: str, makefile: str) -> str | None:
    """What is wrong with a command line; None when it is right, or not one of ours."""
    assigned, words = split(typed)
    for name in (word.partition("=")[0] for word in assigned):
        if name.startswith(OUR_VARIABLES) and name not in variables():
            return f"there is no setting {name}"
    match words:
        case ["readingroom" | ".venv/bin/readingroom", *rest]:
            return refused_by_click(rest)
        case ["make", *rest]:
            return refused_by_make(rest, makefile)
    return None


def split(typed: str) -> tuple[list[str], list[str]]:
    """The variables set before a command, and its words up to the first pipe or redirection."""
    reader = shlex.shlex(typed, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    words = list(reader)
    end = next((at for at, word in enumerate(words) if word[0] in "|&;<>"), len(words))
    start = next((at for at, word in enumerate(words) if not ASSIGNED.fullmatch(word)), end)
    return words[:start], words[start:end]


def refused_by_click(words: Sequence[str]) -> str | None:
    """Parse as the command itself would, but run nothing."""
    command: click.Command = readingroom
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if name not in command.commands:
            return f"there is no command {name}"
        command = command.commands[name]
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # --help prints
            command.make_context(command.name, rest, **readingroom.context_settings)
    except click.exceptions.Exit:
        return None
    except click.UsageError as error:
        return error.format_message().splitlines()[0]
    return None


def refused_by_make(words: Sequence[str], makefile: str) -> str | None:
    for word in words:
        name, assigned, given = word.partition("=")
        if not assigned and name not in TARGET.findall(makefile):
            return f"the Makefile has no target {name}"
        if assigned and f"$({name})" not in makefile:
            return f"the Makefile has no variable {name}"
        if name == "ARGS" and "serve" in words:  # these are flags of `readingroom serve`
            return refused_by_click(["serve", *shlex.split(given)])
    return None


def examples(root: Path) -> Iterator[str]:
    """Blocks that are not what they say they are."""
    parsers: dict[str, Callable[[str], Any]] = {
        "json": json.loads,
        "python": ast.parse,
        "toml": settings_file,
    }
    for page in pages(root):
        for language, text, line in page.blocks(*parsers):
            try:
                parsers[language](textwrap.dedent(text))
            except (ValueError, SyntaxError) as error:
                yield f"{page.name}:{line}: not {language}: {error}"


@dataclass(frozen=True)
class Worked:
    """A command that a page shows with its output, where `…` stands for what was left out."""

    place: str
    typed: str
    output: str

    def __str__(self) -> str:
        return self.place

    def is_told_by(self, said: str) -> bool:
        """Whether this is what was really said."""
        parts = map(re.escape, re.split(r"\s*…\s*", self.output.strip()))
        return re.fullmatch(".*?".join(parts), said.strip(), re.DOTALL) is not None


def worked_examples(root: Path) -> Iterator[Worked]:
    """Every command of a page that is shown with what it printed."""
    for page in by_hand(root):
        for _, text, first in page.blocks("console"):
            for line, typed, output in console(text):
                if output.strip():
                    yield Worked(f"{page.name}:{first + line}", typed, output)


def worked(root: Path) -> Iterator[str]:
    """Examples that nobody could run on the sample, and pages that should have one and do not."""
    found = list(worked_examples(root))
    for example in found:
        if "--demo" not in example.typed and SAMPLE_ADDRESS not in example.typed:
            yield f"{example.place}: shows an answer, and does not ask the sample: add --demo"
    pages = {example.place.partition(":")[0] for example in found}
    for name in ("README.md", "docs/desk.md", *(f"docs/{base}.md" for base in sorted(OFFERS))):
        if name not in pages:
            yield f"{name}: shows no command with its answer"


def settings_file(text: str) -> None:
    """Read a block as `readingroom.toml` would be read."""
    for key in tomllib.loads(text):
        if key not in Settings.model_fields or key == "data":
            raise ValueError(f"readingroom.toml has no key {key}")


def names(root: Path) -> Iterator[str]:
    """Settings and files that a page written by hand names and that are not there."""
    for page in by_hand(root):
        for found in INLINE_CODE.finditer(page.prose):
            line = page.prose.count("\n", 0, found.start()) + 1
            for name in re.findall(r"\bREADINGROOM_[A-Z_]+\b", found[1]):
                if name not in variables():
                    yield f"{page.name}:{line}: there is no setting {name}"
            if A_FILE.fullmatch(found[1]) and is_missing(found[1]):
                yield f"{page.name}:{line}: there is no file {found[1]}"


def is_missing(name: str) -> bool:
    """Whether a file of one of our folders, named from the top or the package, is not there."""
    folder = Path(name).parts[0]
    if folder == "build":  # what make makes there comes and goes
        return False
    places = [place for place in (ROOT, PACKAGE) if (place / folder).is_dir()]
    return bool(places) and not any((place / name).exists() for place in places)


def modules(root: Path) -> Iterator[str]:
    """Modules that the tree in ARCHITECTURE.md leaves out, and those it makes up."""
    page = Page(root / "ARCHITECTURE.md", "ARCHITECTURE.md")
    tree = next((text for _, text, _ in page.blocks("text")), "")
    there = {path for path in PACKAGE.rglob("*.py") if not path.stem.startswith("__")}
    for path in sorted(there):
        if not re.search(rf"\b{path.stem}\b", tree):
            yield f"{page.name}: the tree does not name {path.relative_to(PACKAGE)}"
    known = {path.name for path in there | {*ROOT.glob("tests/*.py"), *ROOT.glob("scripts/*.py")}}
    for name in sorted({*re.findall(r"\b\w+\.py\b", tree)} - known):
        yield f"{page.name}: the tree names {name}, which is not there"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
