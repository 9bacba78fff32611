"""Query parameters that a route does not know: refused, for an ignored one widens what is asked."""

from fastapi import Request
from fastapi.routing import APIRoute

from readingroom.core.errors import InvalidRequest


async def only_known(request: Request) -> None:
    """A router's dependency: the request has no parameter that its route does not take."""
    if not request.query_params:
        return
    route: APIRoute = request.scope["route"]
    known = [field.alias for field in route.dependant.query_params]
    told = f"unknown; this takes {', '.join(known)}" if known else "unknown; this takes none"
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        raise InvalidRequest([{"field": name[:100], "message": told} for name in unknown[:20]])
