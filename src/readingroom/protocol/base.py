"""A knowledge base as the server sees it: its contract's names, its transports, its tools."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from readingroom.protocol.errors import Dialect
from readingroom.protocol.resources import Library, Prompt
from readingroom.protocol.tool import Tool


@dataclass(frozen=True)
class KnowledgeBase:
    """One base, open and ready to be served under any face."""

    name: str
    """Its folder in the tree, in the data directory and in URLs: `text`."""
    server_name: str
    """The name its contract gives the server: `kb-mcp`."""
    title: str
    instructions: str
    """What a model is told of the whole base before it sees a tool."""
    dialect: Dialect
    tools: tuple[Tool, ...]
    service: Any
    """What its commands are run against."""
    stateful: bool = False
    """Whether sessions are kept (progress during long calls); else each call stands alone."""
    sse: bool = False
    """Whether the older HTTP+SSE transport is offered too."""
    josh_auth: bool = False
    """Whether JOSH_AUTH says who may ask it, where it is set; else the keys do, as for the rest."""
    furnish: Callable[[Any], None] | None = None
    """Adds to the protocol server what nothing else here can say."""
    prompts: tuple[Prompt, ...] = ()
    library: Library | None = None
    """Its resources, where it has some that a client can attach."""
    routers: tuple[Any, ...] = ()
    """Its REST surface: FastAPI routers that carry their whole prefix, such as `/api/v1`."""
    running: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    """Entered for as long as the base is served: what it starts there, it stops there."""
    collectors: tuple[Any, ...] = ()
    """Prometheus collectors of its own, shown at `/metrics` beside the server's."""
