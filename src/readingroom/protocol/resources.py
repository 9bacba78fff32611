"""What a base offers besides tools: prompts for common jobs, and resources a client can attach."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from readingroom.protocol.tool import Call


@dataclass(frozen=True, slots=True)
class Blank:
    """A place in a prompt that its user fills in."""

    name: str
    description: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class Prompt:
    """A job that people have, as a message that starts a model on it."""

    name: str
    title: str
    description: str
    blanks: tuple[Blank, ...]
    render: Callable[[Mapping[str, str]], str]


@dataclass(frozen=True, slots=True)
class Resource:
    """A text that can be read by its URI."""

    uri: str
    name: str
    title: str
    description: str


@dataclass(frozen=True, slots=True)
class Template:
    """A form of URI with places to fill in: `readingroom://policy/{source}`."""

    uri: str
    name: str
    title: str
    description: str


class Library(Protocol):
    """Resources by URI, and what may be filled into a template or a prompt."""

    templates: tuple[Template, ...]

    async def resources(self, after: str | None) -> tuple[Sequence[Resource], str | None]:
        """One page of what is there, and where the next one begins."""

    async def read(self, uri: str, call: Call) -> str:
        """The text that a URI names; an error says why there is none."""

    async def complete(self, blank: str, begun: str, filled: Mapping[str, str]) -> list[str]:
        """What a blank may be filled with, given its beginning and the blanks filled before."""
