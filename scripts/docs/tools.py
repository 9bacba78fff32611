"""docs/tools.md: every tool of every base, as a client sees it."""

import atexit
import json
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from readingroom.core.settings import Settings
from readingroom.protocol.base import KnowledgeBase
from readingroom.protocol.tool import Schema, Tool
from readingroom.server.catalogue import OFFERS, STDIO, desk_of
from readingroom.server.faces import Face, faces_of_all
from scripts.docs.markdown import as_json, code, page, slug, table, wrapped


def tools_page() -> str:
    intro = """\
Every tool of every base, as a client sees it. The `/mcp` address of
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


@cache
def bases() -> tuple[KnowledgeBase, ...]:
    """Every base there is, opened with the default settings on an empty data directory."""
    # There until we end: a base may read its folder whenever it describes a tool.
    data = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, data, ignore_errors=True)
    settings = Settings(data=Path(data))
    opened = tuple(offer.open(settings) for offer in OFFERS.values())
    return (*opened, desk_of(opened, settings))


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
            (code(face.server_name), str(len(face.tools)), f"{tokens(face):,}")
            for face in faces_of_all(tuple(own), desk)
        ),
    )


def tokens(face: Face) -> int:
    said = [(tool.name, tool.describe(), tool.input_schema) for tool, _ in face.tools.values()]
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
