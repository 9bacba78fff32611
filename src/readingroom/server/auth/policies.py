"""Which policy protects which path: the keys, the federal base's own setting, or none."""

from collections.abc import Iterable

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from readingroom.bases import BASES
from readingroom.protocol.embedding_work import EMBEDDING_PATH_PREFIX
from readingroom.protocol.spec import KnowledgeBase
from readingroom.server.auth import connectors
from readingroom.server.auth.bearer import (
    MALFORMED_HEADER_MESSAGE,
    MCP_ENDPOINT_PATHS,
    MISSING_HEADER_MESSAGE,
    AuthPolicy,
    KeyAuth,
    OpenAccess,
    WorkerAuth,
    is_mcp_path,
)
from readingroom.server.errors import Unauthorized
from readingroom.server.faces import Face
from readingroom.server.http.addresses import get_server_address
from readingroom.server.mcp.transports import is_page_request
from readingroom.server.settings import ServerSettings
from readingroom.storage.keys import WorkerKeys

RESOURCE_METADATA_PATH = "/.well-known/oauth-protected-resource"
MANIFEST_PATH = "/server.json"


def is_josh_base(knowledge_base: KnowledgeBase) -> bool:
    """Return whether JOSH_AUTH, where it is set, decides who may call a base; else the keys do."""
    base_spec = BASES.get(knowledge_base.name)  # the desk, among others, has none
    return base_spec is not None and base_spec.follows_josh_auth


class AuthPolicies:
    """The policies of one process, by path."""

    def __init__(
        self, server_faces: tuple[Face, ...], settings: ServerSettings, key_auth: KeyAuth
    ) -> None:
        self.key_auth = key_auth
        self._worker_auth = WorkerAuth(WorkerKeys(settings.data))
        self._public_url = settings.public_url
        josh_faces = [
            server_face for server_face in server_faces if any(map(is_josh_base, server_face.bases))
        ]
        self._josh_policy = _make_josh_policy(settings, key_auth) if josh_faces else key_auth
        self._faces_by_josh_path = {
            f"{server_face.path}/mcp": server_face for server_face in josh_faces
        }
        """The faces whose page, like the documents about them, anybody may read."""
        # Clients read these before they have a token.
        self._public_documents = (
            {MANIFEST_PATH, *_list_metadata_paths(self._faces_by_josh_path)}
            if josh_faces
            else set()
        )
        self._faces_by_resource = {
            f"{server_face.path}/mcp": server_face for server_face in server_faces
        }
        if key_auth.grants:
            self._public_documents |= {
                *connectors.PUBLIC_PATHS,
                *_list_metadata_paths(self._faces_by_resource),
            }
        self._policies_by_path = {
            server_face.path + endpoint_path: self.get_face_policy(server_face)
            for server_face in server_faces
            for endpoint_path in MCP_ENDPOINT_PATHS
        }
        distinct_bases = {
            knowledge_base.name: knowledge_base
            for server_face in server_faces
            for knowledge_base in server_face.bases
        }.values()
        josh_bases = [
            knowledge_base for knowledge_base in distinct_bases if is_josh_base(knowledge_base)
        ]
        self._josh_prefixes = (
            *(
                f"{server_face.path}/"
                for server_face in josh_faces
                if all(map(is_josh_base, server_face.bases))
            ),
            *(
                f"{base_router.prefix}/"
                for knowledge_base in josh_bases
                for base_router in knowledge_base.get_routers()
            ),
        )
        self._prefixes_and_policies = tuple(
            (f"{base_router.prefix}/", self._get_strictest_policy((knowledge_base,)))
            for knowledge_base in distinct_bases
            for base_router in knowledge_base.get_routers()
        )
        self.default_policy = _choose_strictest_policy(
            key_auth, self._get_strictest_policy(distinct_bases)
        )
        """Protects what belongs to no face: the index, /docs, /metrics."""

    def get_face_policy(self, server_face: Face) -> AuthPolicy:
        """Return the strictest of the policies of a face's bases."""
        return self._get_strictest_policy(server_face.bases)

    def is_josh_path(self, request_path: str) -> bool:
        """Whether a path belongs to bases that JOSH_AUTH decides about, and to no others."""
        return request_path.startswith(self._josh_prefixes)

    def can_connect_apps(self, request: Request) -> bool:
        """Whether apps can connect by a sign-in at the address that this request came to."""
        return bool(self._list_issuer_urls(self.key_auth, request))

    async def authenticate(self, scope: Scope) -> AuthenticatedUser | None:
        """Return the caller, or None where anybody may call. Raise Unauthorized."""
        if self._is_public_path(scope):
            return None
        path_policy = self._get_path_policy(scope["path"])
        try:
            return await path_policy.authenticate(scope)
        except Unauthorized as refusal:
            # Where keys come from the operator only, there is nothing that a client could discover.
            is_issuer_discoverable = path_policy.access == "oauth" or is_mcp_path(scope["path"])
            if not is_issuer_discoverable or not self._list_issuer_urls(
                path_policy, Request(scope)
            ):
                raise
            challenge_header = self._make_challenge_header(refusal.message, scope)
            raise Unauthorized(
                refusal.message, **refusal.hint, challenge=challenge_header
            ) from refusal

    def make_routes(self) -> list[BaseRoute]:
        """Return the routes of the RFC 9728 documents: of this address, and of each face that
        takes tokens.
        """
        faces_by_resource_path = (
            self._faces_by_resource if self.key_auth.grants else self._faces_by_josh_path
        )
        metadata_paths = (
            _list_metadata_paths(faces_by_resource_path) if faces_by_resource_path else ()
        )
        return [
            Route(metadata_path, self._show_resource_metadata) for metadata_path in metadata_paths
        ]

    async def _show_resource_metadata(self, request: Request) -> Response:
        """What is protected, and by whose tokens; an empty list says that none are required."""
        resource_path = request.url.path.removeprefix(RESOURCE_METADATA_PATH)
        server_face = self._faces_by_resource.get(resource_path)
        face_policy = self.get_face_policy(server_face) if server_face else self.default_policy
        resource_metadata = {
            "resource": get_server_address(request, self._public_url) + resource_path,
            "resource_name": server_face.title if server_face else "Reading Room",
            "authorization_servers": self._list_issuer_urls(face_policy, request),
            "bearer_methods_supported": ["header"],
        }
        return JSONResponse(resource_metadata)

    def _list_issuer_urls(self, auth_policy: AuthPolicy, request: Request) -> list[str]:
        """Return who issues the tokens that a policy takes: others, this very server, or nobody."""
        if (
            auth_policy is not self.key_auth
            or not self.key_auth.grants
            or auth_policy.access != "key"
        ):
            return list(auth_policy.issuer_urls)
        server_url = get_server_address(request, self._public_url)
        return [server_url] if connectors.can_issue_tokens(server_url) else []

    def _make_challenge_header(self, refusal_message: str, scope: Scope) -> str:
        """Return how a client finds out where tokens come from (RFC 6750, RFC 9728)."""
        resource_path = scope["path"] if scope["path"] in self._faces_by_resource else ""
        server_url = get_server_address(Request(scope), self._public_url)
        challenge_parameters = [
            f'resource_metadata="{server_url}{RESOURCE_METADATA_PATH}{resource_path}"'
        ]
        # A request without credentials gets no error code (RFC 6750, section 3.1).
        if refusal_message not in (MISSING_HEADER_MESSAGE, MALFORMED_HEADER_MESSAGE):
            challenge_parameters = [
                'error="invalid_token"',
                f'error_description="{refusal_message}"',
                *challenge_parameters,
            ]
        return "Bearer " + ", ".join(challenge_parameters)

    def _is_public_path(self, scope: Scope) -> bool:
        request_path = scope["path"]
        return request_path in self._public_documents or (
            request_path in self._faces_by_josh_path and is_page_request(scope)
        )

    def _get_path_policy(self, request_path: str) -> AuthPolicy:
        if request_path.startswith(f"{EMBEDDING_PATH_PREFIX}/"):
            return self._worker_auth
        if request_path in self._policies_by_path:
            return self._policies_by_path[request_path]
        for path_prefix, prefix_policy in self._prefixes_and_policies:
            if request_path.startswith(path_prefix):
                return prefix_policy
        return self.default_policy

    def _get_strictest_policy(self, knowledge_bases: Iterable[KnowledgeBase]) -> AuthPolicy:
        return _choose_strictest_policy(
            *(
                self._josh_policy if is_josh_base(knowledge_base) else self.key_auth
                for knowledge_base in knowledge_bases
            )
        )


def _make_josh_policy(settings: ServerSettings, key_auth: KeyAuth) -> AuthPolicy:
    if settings.josh_auth == "oauth":
        # Imported only where it is needed: its cryptography is slow to import.
        from readingroom.server.auth.oauth import make_resource_server

        return make_resource_server(settings, key_auth.key_ring)
    return OpenAccess() if settings.josh_auth == "disabled" else key_auth


def _choose_strictest_policy(*auth_policies: AuthPolicy) -> AuthPolicy:
    return max(auth_policies, key=lambda auth_policy: auth_policy.strictness)


def _list_metadata_paths(resource_paths: Iterable[str]) -> list[str]:
    return [
        RESOURCE_METADATA_PATH,
        *(RESOURCE_METADATA_PATH + resource_path for resource_path in resource_paths),
    ]
