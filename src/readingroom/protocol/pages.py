"""A page for people that a base adds to the server."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BasePage:
    """One address below `/{base}` and the coroutine that renders it.

    `render` receives the parameters of the path and the query, and returns the page's title and the
    HTML of its body. The server adds the frame, the headers and the sign-in.
    """

    path: str
    """Below the base's own path, as Starlette writes it: `/plan/{source}`."""
    render: Callable[[Mapping[str, str]], Awaitable[tuple[str, str]]]
