"""The size of request bodies: one over a limit is refused before anything parses it."""

from collections.abc import Callable, Iterable

from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from readingroom.server.auth.bearer import identify_caller
from readingroom.server.errors import RequestTooLarge
from readingroom.server.http.held_bytes import MIN_CHARGE_BYTES, ByteCharge, MemoryCharges

_UPLOAD_CONTENT_TYPE = "multipart/form-data"
_FORM_CONTENT_TYPE = b"application/x-www-form-urlencoded"


class BodyLimitMiddleware:
    """ASGI middleware: reads a body of at most `max_bytes` and passes it on whole.

    Until the request is answered the body counts as held by its caller, from the moment that it
    is announced. Its size is in `scope["state"]["body_bytes"]`. Requests for which
    `exempts_request` holds pass as they are, such as uploads: `web/uploads.py` counts their bytes
    as they arrive.
    """

    def __init__(
        self,
        app: ASGIApp,
        max_bytes: int,
        memory_charges: MemoryCharges,
        exempts_request: Callable[[Scope], bool] = lambda scope: False,
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._memory_charges = memory_charges
        self._exempts_request = exempts_request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(scope) or self._exempts_request(scope):
            await self._app(scope, receive, send)
            return
        content_length_header = dict(scope["headers"]).get(b"content-length", b"")
        declared_byte_count = int(content_length_header) if content_length_header.isdigit() else 0
        self._check_body_size(declared_byte_count)
        caller_id = identify_caller(scope)
        with self._memory_charges.charge_bytes(
            caller_id, max(declared_byte_count, MIN_CHARGE_BYTES)
        ) as byte_charge:
            request_body = await self._read_body(receive, byte_charge)
            if request_body is not None:
                scope["state"]["body_bytes"] = len(request_body)
                await self._app(scope, _replay_messages(request_body, receive), send)

    async def _read_body(self, receive: Receive, byte_charge: ByteCharge) -> bytes | None:
        """Return the body, or None when the caller has left. Raise what a body too large does."""
        request_body = bytearray()
        while True:
            asgi_message = await receive()
            if asgi_message["type"] != "http.request":
                return None
            request_body += asgi_message.get("body", b"")
            self._check_body_size(len(request_body))
            byte_charge.grow_to(len(request_body))
            if not asgi_message.get("more_body", False):
                return bytes(request_body)

    def _check_body_size(self, byte_count: int) -> None:
        if byte_count > self._max_bytes:
            raise RequestTooLarge(
                f"The body of a request may have {self._max_bytes} bytes; send less at once, or "
                "files as multipart/form-data where the operation takes uploads"
            )


def make_upload_test(http_routes: Iterable[BaseRoute]) -> Callable[[Scope], bool]:
    """Return a function that tells whether a request is an upload to a route that takes them."""
    upload_routes = [http_route for http_route in http_routes if _accepts_uploads(http_route)]

    def is_upload(scope: Scope) -> bool:
        content_type = dict(scope["headers"]).get(b"content-type", b"").lower()
        # The header alone proves nothing: every other route would read the form into memory.
        return content_type.startswith(_UPLOAD_CONTENT_TYPE.encode()) and any(
            http_route.matches(scope)[0] is Match.FULL for http_route in upload_routes
        )

    return is_upload


def is_not_small_form(scope: Scope) -> bool:
    """Whether a request is anything but a form without files, as the pages have them."""
    return (
        not dict(scope["headers"]).get(b"content-type", b"").lower().startswith(_FORM_CONTENT_TYPE)
    )


def _accepts_uploads(http_route: BaseRoute) -> bool:
    """Whether a FastAPI route documents a form with a file (`make_upload_form_openapi`)."""
    openapi_description = getattr(http_route, "openapi_extra", None) or {}
    return _UPLOAD_CONTENT_TYPE in openapi_description.get("requestBody", {}).get("content", {})


def _has_body(scope: Scope) -> bool:
    return any(
        header_name == b"transfer-encoding"
        or (header_name == b"content-length" and header_value != b"0")
        for header_name, header_value in scope["headers"]
    )


def _replay_messages(request_body: bytes, receive: Receive) -> Receive:
    asgi_messages: list[Message] = [
        {"type": "http.request", "body": request_body, "more_body": False}
    ]

    async def receive_replayed() -> Message:
        return asgi_messages.pop() if asgi_messages else await receive()

    return receive_replayed
