"""Refuses query parameters that a route does not take: ignoring a filter would widen the answer."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel

from readingroom.core.errors import InvalidRequest


class StrictQueryRoute(APIRoute):
    """The `route_class` of a router whose routes refuse parameters that they do not take.

    Not a dependency: every request would pay for it, though most have no parameters at all.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        query_fields = self.dependant.query_params
        if any(_is_model(query_field.field_info.annotation) for query_field in query_fields):
            return handle  # the model itself refuses unknown fields
        parameter_names = [query_field.alias for query_field in query_fields]

        async def check_and_handle(request: Request) -> Response:
            if request.scope["query_string"]:
                _refuse_unknown(request, parameter_names)
            return await handle(request)

        return check_and_handle


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _refuse_unknown(request: Request, known_parameters: Sequence[str]) -> None:
    problem_message = (
        f"unknown; this takes {', '.join(known_parameters)}"
        if known_parameters
        else "unknown; this takes none"
    )
    unknown = [
        parameter_name
        for parameter_name in request.query_params
        if parameter_name not in known_parameters
    ]
    if unknown:
        # Cut: the answer repeats what the caller wrote.
        raise InvalidRequest(
            [
                {"field": parameter_name[:100], "message": problem_message}
                for parameter_name in unknown[:20]
            ]
        )
