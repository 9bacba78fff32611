"""How the GOV.UK emulator misbehaves on demand: a fault takes the answer it would have given."""

import json
from collections.abc import AsyncIterator

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from readingroom.demo.govuk import ApplyFault


def slow(seconds: float) -> ApplyFault:
    async def fault(request: Request, given: Response) -> Response:
        await anyio.sleep(seconds)
        return given

    return fault


def failing(status: int, **headers: str) -> ApplyFault:
    """Every answer is this status; `retry_after="2"` becomes a header."""
    told = {name.replace("_", "-"): value for name, value in headers.items()}

    async def fault(request: Request, given: Response) -> Response:
        return JSONResponse({"error": status}, status, told)

    return fault


def first(times: int, other: ApplyFault) -> ApplyFault:
    """Another fault, so many times; then none."""
    left = times

    async def fault(request: Request, given: Response) -> Response:
        nonlocal left
        left -= 1
        return await other(request, given) if left >= 0 else given

    return fault


def every_other(other: ApplyFault) -> ApplyFault:
    """Another fault at the first, third, fifth request: a host that flaps."""
    turn = 0

    async def fault(request: Request, given: Response) -> Response:
        nonlocal turn
        turn += 1
        return await other(request, given) if turn % 2 else given

    return fault


async def truncated(request: Request, given: Response) -> Response:
    """JSON that ends in the middle."""
    raw = bytes(given.body)
    return Response(raw[: len(raw) // 2], media_type="application/json")


async def cut_off(request: Request, given: Response) -> Response:
    """A body that ends before the length it announced."""

    async def half() -> AsyncIterator[bytes]:
        yield bytes(given.body)[: len(given.body) // 2]

    headers = {"Content-Length": str(len(given.body)), "Content-Type": "application/json"}
    return StreamingResponse(half(), headers=headers)


async def as_html(request: Request, given: Response) -> Response:
    """The page of a proxy, with a good status."""
    return Response("<html><p>Welcome</p></html>", media_type="text/html")


async def huge(request: Request, given: Response) -> Response:
    """Ten megabytes of JSON."""
    return Response(json.dumps({"x": "x" * 10_000_000}), media_type="application/json")


def drip(seconds: float) -> ApplyFault:
    """A byte at a time."""

    async def fault(request: Request, given: Response) -> Response:
        async def bytes_of() -> AsyncIterator[bytes]:
            for byte in bytes(given.body):
                yield bytes([byte])
                await anyio.sleep(seconds)

        return StreamingResponse(bytes_of(), media_type="application/json")

    return fault
