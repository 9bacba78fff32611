"""docs/tools.md: every tool of every base, as a client sees it."""

import atexit
import json
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from readingroom.bases import BASES
from readingroom.federation.room import make_federated_base
from readingroom.protocol.spec import KnowledgeBase
from readingroom.protocol.tool import Schema, Tool
from readingroom.server.faces import Face, make_faces
from readingroom.settings import Settings
from scripts.docs.markdown import as_json, code, page, slug, table, wrapped

# An answer's field with more values than this shows their number, not the values.
_MAX_VALUES = 8


def render_tools_page() -> str:
    intro = """\
Every tool of every base. The `/mcp` address of `readingroom serve` lists all of them, and
`/{base}/mcp` those of one base. Unknown arguments are refused. An answer comes twice, and both are
the same: as `structuredContent`, and as JSON in the one text item. [errors.md](errors.md) shows
what an error looks like. Examples are of the sample: try them with `readingroom serve --demo`. The
full JSON schemas are what `tools/list` answers; a copy is in `tests/contracts/current/`."""
    rows = sorted(
        (f"[{code(tool.name)}](#{slug(render_tool_heading(base, tool))})", base.name, tool.title)
        for base in open_bases()
        for tool in base.tools
    )
    sections = [part for base in open_bases() for part in render_base(base)]
    overview = table(("tool", "base", "title"), *rows)
    return page("Tools", intro, overview, *render_listing_sizes(), *sections)


@cache
def open_bases() -> tuple[KnowledgeBase, ...]:
    """Return every base, opened with the default settings on an empty data directory."""
    # Removed at exit only: a base may read its folder whenever it describes a tool.
    data = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, data, ignore_errors=True)
    settings = Settings(data=Path(data))
    opened = tuple(spec.open_base(settings) for spec in BASES.values())
    return (*opened, make_federated_base(opened, settings))


def render_listing_sizes() -> Iterator[str]:
    """Yield the section on what a client's model reads before its first call."""
    yield "## What a listing costs"
    yield wrapped(
        "The names, descriptions and input schemas of `tools/list` in tokens (bytes divided by "
        "four). No base may cost more than 8,000. Where all bases are too much, connect to one."
    )
    *own, desk = open_bases()
    yield table(
        ("server", "tools", "tokens"),
        *(
            (
                code(face.server_name),
                str(len(face.tools_and_dialects_by_name)),
                f"{count_tokens(face):,}",
            )
            for face in make_faces(tuple(own), desk)
        ),
    )


def count_tokens(face: Face) -> int:
    listing = [
        (tool.name, tool.describe(), tool.input_schema)
        for tool, _ in face.tools_and_dialects_by_name.values()
    ]
    return len(json.dumps(listing).encode()) // 4


def render_base(base: KnowledgeBase) -> Iterator[str]:
    yield "## The desk" if base.name == "desk" else f"## The {base.name} base"
    alone = f"- Port when served alone: {BASES[base.name].port}" if base.name in BASES else ""
    yield "\n".join(
        [
            f"- Server name: {code(base.server_name)}",
            alone or "- Served at `/mcp` with all bases, never alone",
            f"- Transports: {', '.join(list_transports(base))}",
            f"- Sessions over Streamable HTTP: {yes_or_no(base.keeps_sessions)}",
        ]
    )
    yield wrapped(f"Instructions to the model: {base.instructions}")
    for tool in sorted(base.tools, key=lambda tool: tool.name):
        yield f"### {render_tool_heading(base, tool)}"
        yield from render_tool(base, tool)


def render_tool_heading(base: KnowledgeBase, tool: Tool) -> str:
    """Return the tool's name, with "at the desk" where a base has a tool of that name too."""
    others = {own.name for other in open_bases() if other is not base for own in other.tools}
    if base.name == "desk" and tool.name in others:
        return f"{code(tool.name)} at the desk"
    return code(tool.name)


def list_transports(base: KnowledgeBase) -> Iterator[str]:
    yield "Streamable HTTP"
    yield from ["SSE"] if base.serves_sse else []
    yield from (["stdio"] if base.name in BASES and BASES[base.name].serves_stdio else [])


def render_tool(base: KnowledgeBase, tool: Tool) -> Iterator[str]:
    yield f"**{tool.title}.** {describe_hints(tool)}"
    yield wrapped(tool.describe())
    yield arguments(tool.input_schema)
    for shape in list_shapes(tool.output_schema or {}):
        yield wrapped(f"Answer: {shape.get('description', '')}")
        yield fields(shape)
    yield from ("Example:", as_json({"name": tool.name, "arguments": read_example(base, tool)}))


def describe_hints(tool: Tool) -> str:
    """Say what the tool's annotations let a client assume."""
    hints = tool.hints
    effect = "Reads only" if hints.read_only else "Deletes" if hints.destructive else "Writes"
    repeat = "" if hints.idempotent else ", not idempotent"
    world = ", asks a server elsewhere" if hints.open_world else ""
    return f"{effect}{repeat}{world}."


def read_example(base: KnowledgeBase, tool: Tool) -> dict[str, Any]:
    """Return the arguments of the tool's example; raise where they do not fit its schema."""
    arguments: dict[str, Any] = read_examples()[base.name][tool.name]
    tool.parse_arguments(arguments)
    return arguments


@cache
def read_examples() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("examples.toml").read_text("utf-8"))


def yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def arguments(schema: Schema) -> str:
    required = schema.get("required", ())
    rows = [
        (code(name), kind(field), yes_or_no(name in required), field.get("description", ""))
        for name, field in schema.get("properties", {}).items()
    ]
    return table(("argument", "type", "required", "meaning"), *rows) or "It takes no arguments."


def list_shapes(schema: Schema) -> list[Schema]:
    """Return the shapes an answer may have: one, or each arm of a union."""
    definitions = schema.get("$defs", {})
    arms = schema.get("anyOf", [schema])
    return [definitions.get(arm.get("$ref", "").rpartition("/")[2], arm) for arm in arms]


def fields(schema: Schema) -> str:
    rows = [
        (code(name), kind(field, _MAX_VALUES), field.get("description", ""))
        for name, field in schema.get("properties", {}).items()
    ]
    return table(("field", "type", "meaning"), *rows)


def kind(schema: Schema, max_values: int = 100) -> str:
    """Name a schema's type in a word or two."""
    match schema:
        case {"const": value}:
            return code(value)
        case {"enum": values} if len(values) > max_values:
            return f"one of {len(values)} words"
        case {"enum": values}:
            return " or ".join(map(code, values))
        case {"anyOf": arms}:
            return " or ".join(kind(arm, max_values) for arm in arms)
        case {"$ref": reference}:
            return str(reference).rpartition("/")[2]
        case {"type": "array"}:
            return f"list of {kind(schema.get('items', {}), max_values)}"
        case {"type": str(name), "format": str(form)}:
            return f"{name} ({form})"
    return str(schema.get("type", "any"))
