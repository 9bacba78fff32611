"""The faces under which bases are served: each alone, and all of them as one."""

from dataclasses import dataclass, replace

from readingroom.protocol.errors import Dialect
from readingroom.protocol.quoting import QUOTED_MATTER
from readingroom.protocol.spec import KnowledgeBase
from readingroom.protocol.tool import Tool

ROOM_SERVER_NAME = "reading-room"


@dataclass(frozen=True)
class Face:
    """A server as clients see it: a name, a place in the URL space, the tools of some bases."""

    server_name: str
    title: str
    path: str
    """What stands before `/mcp`: empty for the whole process, `/text` for one base of several."""
    instructions: str
    bases: tuple[KnowledgeBase, ...]
    stateful: bool
    sse: bool

    @property
    def tools(self) -> dict[str, tuple[Tool, Dialect]]:
        """Every tool by name, sorted, with the dialect in which its errors are rendered."""
        tools_with_dialects = [(tool, base.dialect) for base in self.bases for tool in base.tools]
        # Sorted, so that a client which caches `tools/list` sees the same listing at every start.
        tools_by_name = {
            tool.name: (tool, dialect)
            for tool, dialect in sorted(tools_with_dialects, key=_get_tool_name)
        }
        if len(tools_by_name) < len(tools_with_dialects):
            raise ValueError(f"Two tools of the face {self.server_name} have the same name")
        return tools_by_name


def make_face(base: KnowledgeBase, path: str = "") -> Face:
    """Return the face of one base, as its contract names it."""
    return Face(
        server_name=base.server_name,
        title=base.title,
        path=path,
        instructions=f"{base.instructions}\n\n{QUOTED_MATTER}",
        bases=(base,),
        stateful=base.stateful,
        sse=base.sse,
    )


def make_faces(
    bases: tuple[KnowledgeBase, ...], desk: KnowledgeBase | None = None
) -> tuple[Face, ...]:
    """Return the face of all tools together, and one of each base under its own name beside it.

    Where the desk has a tool of a base's name, the desk's takes its place under the roof: it asks
    that base and the others.
    """
    desk_bases = (desk,) if desk else ()
    desk_tool_names = {tool.name for base in desk_bases for tool in base.tools}
    other_bases = tuple(
        replace(base, tools=tuple(tool for tool in base.tools if tool.name not in desk_tool_names))
        for base in bases
    )
    introductions = [f"{base.title}: {base.instructions}" for base in (*desk_bases, *bases)]
    room_face = Face(
        server_name=ROOM_SERVER_NAME,
        title="Reading Room",
        path="",
        instructions="\n\n".join([*introductions, QUOTED_MATTER]),
        bases=(*desk_bases, *other_bases),
        stateful=True,
        sse=False,
    )
    return (room_face, *(make_face(base, f"/{base.name}") for base in bases))


def _get_tool_name(tool_with_dialect: tuple[Tool, Dialect]) -> str:
    return tool_with_dialect[0].name
