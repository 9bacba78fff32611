"""Query parameters that a route does not know: refused, for an ignored one widens what is asked."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel

from readingroom.core.errors import InvalidRequest


class OnlyKnown(APIRoute):
    """The `route_class` of a router whose routes refuse parameters that they do not take.

    Not a dependency, which every request would pay for, though most have no parameters at all.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()
        taken = self.dependant.query_params
        if any(_is_model(field.field_info.annotation) for field in taken):
            return answer  # the model refuses what it does not know
        known = [field.alias for field in taken]

        async def checked(request: Request) -> Response:
            if request.scope["query_string"]:
                _refuse_others(request, known)
            return await answer(request)

        return checked


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _refuse_others(request: Request, known: Sequence[str]) -> None:
    told = f"unknown; this takes {', '.join(known)}" if known else "unknown; this takes none"
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        raise InvalidRequest([{"field": name[:100], "message": told} for name in unknown[:20]])
