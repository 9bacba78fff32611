"""Which guard stands before which path: the keys, the federal base's own posture, or nobody."""

from collections.abc import Iterable

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from readingroom.protocol.spec import KnowledgeBase
from readingroom.server.auth.keys import MALFORMED, MISSING, Gate, Guard, Open
from readingroom.server.errors import Unauthorized
from readingroom.server.faces import Face
from readingroom.server.http.addresses import address_of
from readingroom.server.mcp.transports import wants_page
from readingroom.server.settings import ServerSettings

WELL_KNOWN = "/.well-known/oauth-protected-resource"
MANIFEST = "/server.json"


class Guards:
    """The guards of one process, by path."""

    def __init__(self, faces: tuple[Face, ...], settings: ServerSettings, gate: Gate) -> None:
        self.gate = gate
        self._public_url = settings.public_url
        josh = [face for face in faces if any(base.josh_auth for base in face.bases)]
        self._josh = _josh_guard(settings, gate) if josh else gate
        self._pages = {f"{face.path}/mcp": face for face in josh}
        """The faces whose page, like what tells of them, is for everybody to read."""
        self._documents = {MANIFEST, *_metadata_paths(self._pages)} if josh else set()
        self._places = dict(self._places_of(faces))
        bases = {base.name: base for face in faces for base in face.bases}.values()
        self._routers = tuple(self._routers_of(bases))
        self.rest = _stricter(gate, self._strictest(bases))
        """Who guards what belongs to no face: the index, /docs, /metrics."""

    def of_face(self, face: Face) -> Guard:
        """Who guards a face: the strictest of its bases' guards."""
        return self._strictest(face.bases)

    async def user(self, scope: Scope) -> AuthenticatedUser | None:
        """The caller; None for anybody. Raises Unauthorized."""
        if self._is_public(scope):
            return None
        guard = self._before(scope["path"])
        try:
            return await guard.user(scope)
        except Unauthorized as refusal:
            if guard.posture != "oauth":
                raise
            challenge = self._challenge(refusal.message, scope)
            raise Unauthorized(refusal.message, **refusal.hint, challenge=challenge) from refusal

    def routes(self) -> list[BaseRoute]:
        """The RFC 9728 documents: of this address, and of each face that has one."""
        paths = _metadata_paths(self._pages) if self._pages else ()
        return [Route(path, self._metadata) for path in paths]

    async def _metadata(self, request: Request) -> Response:
        """What is protected, and by whose tokens; an empty list says that none are asked for."""
        resource = request.url.path.removeprefix(WELL_KNOWN)
        face = self._pages.get(resource)
        guard = self.of_face(face) if face else self.rest
        told = {
            "resource": address_of(request, self._public_url) + resource,
            "resource_name": face.title if face else "Reading Room",
            "authorization_servers": list(guard.issuers),
            "bearer_methods_supported": ["header"],
        }
        return JSONResponse(told)

    def _challenge(self, message: str, scope: Scope) -> str:
        """How a client finds out where tokens come from (RFC 6750, RFC 9728)."""
        path = scope["path"] if scope["path"] in self._pages else ""
        address = address_of(Request(scope), self._public_url)
        told = [f'resource_metadata="{address}{WELL_KNOWN}{path}"']
        if message not in (MISSING, MALFORMED):
            told = ['error="invalid_token"', f'error_description="{message}"', *told]
        return "Bearer " + ", ".join(told)

    def _is_public(self, scope: Scope) -> bool:
        path = scope["path"]
        return path in self._documents or (path in self._pages and wants_page(scope))

    def _before(self, path: str) -> Guard:
        if path in self._places:
            return self._places[path]
        for prefix, guard in self._routers:
            if path.startswith(prefix):
                return guard
        return self.rest

    def _places_of(self, faces: Iterable[Face]) -> Iterable[tuple[str, Guard]]:
        for face in faces:
            for endpoint in ("/mcp", "/sse", "/messages/"):
                yield face.path + endpoint, self.of_face(face)

    def _routers_of(self, bases: Iterable[KnowledgeBase]) -> Iterable[tuple[str, Guard]]:
        for base in bases:
            for router in base.routers():
                yield f"{router.prefix}/", self._strictest((base,))

    def _strictest(self, bases: Iterable[KnowledgeBase]) -> Guard:
        return _stricter(*(self._josh if base.josh_auth else self.gate for base in bases))


def _josh_guard(settings: ServerSettings, gate: Gate) -> Guard:
    if settings.josh_auth == "oauth":
        # Loaded only where it is asked for: its cryptography is slow to import.
        from readingroom.server.auth.oauth import resource_server

        return resource_server(settings, gate.ring)
    return Open() if settings.josh_auth == "disabled" else gate


def _stricter(*guards: Guard) -> Guard:
    return max(guards, key=lambda guard: guard.strictness)


def _metadata_paths(pages: Iterable[str]) -> list[str]:
    return [WELL_KNOWN, *(WELL_KNOWN + page for page in pages)]
