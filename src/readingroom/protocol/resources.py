"""What a base offers besides tools: prompts for common jobs, and resources a client can attach."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

from pydantic import Field

from readingroom.protocol.tool import Answer, NonBlankText, ToolContext

RESOURCE_SCHEME = "readingroom://"


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """A part of a prompt that its user fills in."""

    name: str
    description: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class Prompt:
    """A job that people have, as a message that starts a model on it."""

    name: str
    title: str
    description: str
    arguments: tuple[PromptArgument, ...]
    render: Callable[[Mapping[str, str]], str]


@dataclass(frozen=True, slots=True)
class ListedResource:
    """A text that can be read by its URI."""

    uri: str
    name: str
    title: str
    description: str


@dataclass(frozen=True, slots=True)
class ResourceTemplate:
    """A URI template: `readingroom://policy/{source}`."""

    uri: str
    name: str
    title: str
    description: str


Passage = Annotated[
    NonBlankText,
    Field(
        min_length=1, max_length=10_000, description="The words to mark, as an answer quotes them."
    ),
]


class PageMark(Answer):
    """A rectangle around words of one line, in shares of the page from its upper left."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class PageImage:
    """A page as a picture, for views, and the rectangles that mark a passage on it."""

    content: bytes
    media_type: str
    mark_rectangles: Sequence[tuple[float, float, float, float]]
    """Left, top, width and height, as shares of the page."""


ReadPageImage = Callable[[str], Awaitable[PageImage]]
"""Returns the picture at a URI. Raises `RecordNotFound` when there is none."""


class ResourceProvider(Protocol):
    """Resources by URI, and completion of what a template or a prompt asks for."""

    templates: tuple[ResourceTemplate, ...]

    async def list_resources(
        self, page_cursor: str | None
    ) -> tuple[Sequence[ListedResource], str | None]:
        """Return one page of the resources, and the cursor of the next page."""

    async def read_resource(self, resource_uri: str, tool_context: ToolContext) -> str:
        """Return the text at a URI. Raise `RecordNotFound` when there is none."""

    async def complete_argument(
        self, argument_name: str, typed_prefix: str, earlier_arguments: Mapping[str, str]
    ) -> list[str]:
        """Return what an argument may be, given how it begins and the arguments before it."""
