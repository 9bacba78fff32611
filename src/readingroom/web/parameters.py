"""Refuses query parameters that a route does not take: ignoring a filter would widen the answer."""

from collections.abc import Callable, Coroutine, Iterable, Sequence
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
        handle_request = super().get_route_handler()
        parameter_names = [
            parameter_name
            for query_field in self.dependant.query_params
            for parameter_name in _list_parameter_names(
                query_field.alias, query_field.field_info.annotation
            )
        ]

        async def check_and_handle(request: Request) -> Response:
            if request.scope["query_string"]:
                _raise_for_unknown_parameters(request, parameter_names)
            return await handle_request(request)

        return check_and_handle


def _list_parameter_names(parameter_name: str, type_annotation: Any) -> Iterable[str]:
    """Return the name of a parameter, or those of all that its model takes."""
    if isinstance(type_annotation, type) and issubclass(type_annotation, BaseModel):
        return type_annotation.model_fields
    return (parameter_name,)


def _raise_for_unknown_parameters(request: Request, known_parameter_names: Sequence[str]) -> None:
    problem_message = (
        f"unknown; this takes {', '.join(known_parameter_names)}"
        if known_parameter_names
        else "unknown; this takes none"
    )
    unknown_parameter_names = [
        parameter_name
        for parameter_name in request.query_params
        if parameter_name not in known_parameter_names
    ]
    if unknown_parameter_names:
        # Cut: the answer repeats what the caller wrote.
        raise InvalidRequest(
            [
                {"field": parameter_name[:100], "message": problem_message}
                for parameter_name in unknown_parameter_names[:20]
            ]
        )
