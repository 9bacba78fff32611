"""`readingroom` with four more bases, one for each dialect, whose one tool raises any error."""

import sys

from pydantic import Field

from readingroom.bases import BASES
from readingroom.core.errors import InvalidArguments, KnowledgeError
from readingroom.core.settings import RoomSettings
from readingroom.protocol.errors import (
    ErrorDialect,
    FederalDialect,
    GuidanceDialect,
    StatusDialect,
    TextDialect,
)
from readingroom.protocol.spec import BaseSpec, KnowledgeBase, LazyImport
from readingroom.protocol.tool import Answer, ToolArguments, ToolContext, make_tool
from scripts.docs.errors import list_all_errors

DIALECTS: dict[str, ErrorDialect] = {
    "status": StatusDialect(),
    "text": TextDialect(),
    "federal": FederalDialect(),
    "guidance": GuidanceDialect("Source: nobody", "Not advice."),
}


def make_message(code: str) -> str:
    return f"This is what {code} says"


class WhichError(ToolArguments):
    code: str = Field(max_length=100, description="The code of the error to raise.")


class Never(Answer):
    """An answer that is never given, with fields that an error does not have."""

    warnings: list[str]
    passages: list[str]


def make_error(code: str) -> KnowledgeError:
    (error_class,) = (error for error in list_all_errors() if error.code == code)
    if issubclass(error_class, InvalidArguments):
        return error_class([{"field": "code", "message": make_message(code)}])
    # Some errors make their message from other arguments; here only the class matters.
    error = error_class.__new__(error_class)
    KnowledgeError.__init__(error, make_message(code), use_tool="search", retry_after=3)
    return error


def make_base(name: str) -> KnowledgeBase:
    async def raise_error(question: WhichError, call: ToolContext) -> Never:
        """Raise an error, for tests."""
        raise make_error(question.code)

    raise_error.__name__ = f"raise_{name}_error"
    return KnowledgeBase(
        name=f"{name}-errors",
        server_name=f"{name}-errors",
        title="Errors",
        instructions="For tests.",
        error_dialect=DIALECTS[name],
        tools=(make_tool(raise_error, title="Raise an error"),),
        service=None,
    )


def open_status(settings: RoomSettings) -> KnowledgeBase:
    return make_base("status")


def open_text(settings: RoomSettings) -> KnowledgeBase:
    return make_base("text")


def open_federal(settings: RoomSettings) -> KnowledgeBase:
    return make_base("federal")


def open_guidance(settings: RoomSettings) -> KnowledgeBase:
    return make_base("guidance")


if __name__ == "__main__":
    for number, name in enumerate(DIALECTS):
        BASES[f"{name}-errors"] = BaseSpec(
            name=f"{name}-errors",
            port=3990 + number,
            open=LazyImport(f"tests.clients.server:open_{name}"),
        )
    # Imported after the bases are in the list: the command's choices are made from it.
    from readingroom.cli import main

    sys.exit(main())
