"""The faces under which bases are served: each alone, and all of them as one."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from readingroom.core.errors import InvalidArguments, InvalidSetting
from readingroom.protocol.errors import ErrorDialect
from readingroom.protocol.quoting import QUOTED_MATTER_INSTRUCTION
from readingroom.protocol.spec import KnowledgeBase
from readingroom.protocol.tool import Tool

ROOM_SERVER_NAME = "reading-room"
ALL_TOOLS_CHOICE = "all"
DESK_TOOLS_CHOICE = "desk"
BASES_PARAMETER_NAME = "bases"
"""`/mcp?bases=policy,documents` lists the tools of the desk and of these bases."""


@dataclass(frozen=True)
class Face:
    """A server as clients see it: a name, a place in the URL space, the tools of some bases."""

    server_name: str
    title: str
    path: str
    """What stands before `/mcp`: empty for the whole process, `/text` for one base of several."""
    instructions: str
    bases: tuple[KnowledgeBase, ...]
    keeps_sessions: bool
    serves_sse: bool
    listed_base_names: tuple[str, ...] = (ALL_TOOLS_CHOICE,)
    """Whose tools it lists when an address does not say: bases by name, `desk`, or `all`."""
    can_choose_bases: bool = False
    """Whether an address may name other bases. The face of one base lists its whole contract."""

    def list_tool_names(self, chosen_base_names: Sequence[str] = ()) -> Collection[str]:
        """Return the names of the tools that are listed. All can be called, listed or not.

        Raise InvalidArguments for a base that this face does not have.
        """
        if not self.can_choose_bases:
            chosen_base_names = ()
        self.check_base_names(chosen_base_names)
        base_names_to_list = chosen_base_names or self.listed_base_names
        if ALL_TOOLS_CHOICE in base_names_to_list:
            return self.tools_and_dialects_by_name.keys()
        # The desk is the first of the bases, and asks all the others.
        desk_base, *other_bases = self.bases
        listed_bases = [
            desk_base,
            *(
                knowledge_base
                for knowledge_base in other_bases
                if knowledge_base.name in base_names_to_list
            ),
        ]
        return {
            base_tool.name for knowledge_base in listed_bases for base_tool in knowledge_base.tools
        }

    def check_base_names(self, base_names: Iterable[str]) -> None:
        """Raise InvalidArguments for the name of a base that this face does not have."""
        known_base_choices = {
            ALL_TOOLS_CHOICE,
            DESK_TOOLS_CHOICE,
            *(knowledge_base.name for knowledge_base in self.bases),
        }
        if unknown_base_choices := sorted(set(base_names) - known_base_choices):
            choices_text = ", ".join(sorted(known_base_choices))
            refusal_message = (
                f"there is no base {unknown_base_choices[0][:50]!r}; choose from {choices_text}"
            )
            raise InvalidArguments([{"field": BASES_PARAMETER_NAME, "message": refusal_message}])

    @property
    def tools_and_dialects_by_name(self) -> dict[str, tuple[Tool, ErrorDialect]]:
        """Every tool by name, sorted, with the dialect in which its errors are rendered."""
        tools_with_dialects = [
            (base_tool, knowledge_base.error_dialect)
            for knowledge_base in self.bases
            for base_tool in knowledge_base.tools
        ]
        # Sorted, so that a client which caches `tools/list` sees the same listing at every start.
        tools_and_dialects_by_name = {
            base_tool.name: (base_tool, error_dialect)
            for base_tool, error_dialect in sorted(tools_with_dialects, key=_get_tool_sort_key)
        }
        if len(tools_and_dialects_by_name) < len(tools_with_dialects):
            raise ValueError(f"Two tools of the face {self.server_name} have the same name")
        return tools_and_dialects_by_name


def make_face(knowledge_base: KnowledgeBase, url_path: str = "") -> Face:
    """Return the face of one base, as its contract names it."""
    return Face(
        server_name=knowledge_base.server_name,
        title=knowledge_base.title,
        path=url_path,
        instructions=f"{knowledge_base.instructions}\n\n{QUOTED_MATTER_INSTRUCTION}",
        bases=(knowledge_base,),
        keeps_sessions=knowledge_base.keeps_sessions,
        serves_sse=knowledge_base.serves_sse,
    )


def make_faces(
    knowledge_bases: tuple[KnowledgeBase, ...],
    desk_base: KnowledgeBase | None = None,
    listed_base_names: tuple[str, ...] = (ALL_TOOLS_CHOICE,),
) -> tuple[Face, ...]:
    """Return the face of all tools together, and beside it that of the desk alone and one of each
    base under its own name.

    Where the desk has a tool of a base's name, the desk's takes its place under the roof: it asks
    that base and the others. `listed_base_names` are those whose tools the common face lists. Raise
    InvalidSetting for one that is not served.
    """
    desk_bases = (desk_base,) if desk_base else ()
    desk_tool_names = {
        base_tool.name for knowledge_base in desk_bases for base_tool in knowledge_base.tools
    }
    other_bases = tuple(
        replace(
            knowledge_base,
            tools=tuple(
                base_tool
                for base_tool in knowledge_base.tools
                if base_tool.name not in desk_tool_names
            ),
        )
        for knowledge_base in knowledge_bases
    )
    base_introductions = [
        f"{knowledge_base.title}: {knowledge_base.instructions}"
        for knowledge_base in (*desk_bases, *knowledge_bases)
    ]
    room_face = Face(
        server_name=ROOM_SERVER_NAME,
        title="Reading Room",
        path="",
        instructions="\n\n".join([*base_introductions, QUOTED_MATTER_INSTRUCTION]),
        bases=(*desk_bases, *other_bases),
        keeps_sessions=True,
        serves_sse=False,
        listed_base_names=listed_base_names,
        can_choose_bases=desk_base is not None,
    )
    try:
        room_face.check_base_names(listed_base_names)
    except InvalidArguments as error:
        raise InvalidSetting(f"READINGROOM_FACE_TOOLS: {error.summary}") from error
    desk_faces = [
        replace(
            make_face(knowledge_base, f"/{DESK_TOOLS_CHOICE}"),
            server_name=f"{ROOM_SERVER_NAME}-desk",
            title="Reading Room: search, fetch and assess",
        )
        for knowledge_base in desk_bases
    ]
    return (
        room_face,
        *desk_faces,
        *(
            make_face(knowledge_base, f"/{knowledge_base.name}")
            for knowledge_base in knowledge_bases
        ),
    )


def _get_tool_sort_key(tool_with_dialect: tuple[Tool, ErrorDialect]) -> str:
    return tool_with_dialect[0].name
