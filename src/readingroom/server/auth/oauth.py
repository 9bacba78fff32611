"""An OAuth 2.1 resource server: takes the tokens of one issuer whose subject has a key here."""

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import jwt
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from pydantic_core import from_json
from starlette.types import Scope

from readingroom.core.errors import InvalidSetting
from readingroom.net.http import make_async_client
from readingroom.server.auth.keys import INVALID, Posture, Users, bearer
from readingroom.server.errors import IssuerUnreachable, Unauthorized
from readingroom.server.settings import TRUSTED_URL, ServerSettings
from readingroom.storage.keys import Holder, KeyRing

logger = logging.getLogger(__name__)

UNKNOWN_SUBJECT = (
    "The token is valid, but its subject has no key here; the operator can add one with "
    "`readingroom keys add NAME --subject SUBJECT`"
)

FRESH_SECONDS = 600  # a key that the issuer withdrew is refused after this at the latest
STALE_SECONDS = 3600  # with the issuer down its keys outlive most tokens, and no longer
RETRY_SECONDS = 10
UNKNOWN_KEY_SECONDS = 60

_LEEWAY_SECONDS = 30  # clocks differ
_PATIENCE_SECONDS = 5
_LONGEST_TOKEN = 8192
_LARGEST_DOCUMENT = 256 * 1024
_MOST_KEYS = 100

# Signatures only, by key type and curve: with no shared secret in the list, a public key can never
# be taken for one.
_ALGORITHMS = {
    ("RSA", ""): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
_ALLOWED = frozenset(name for names in _ALGORITHMS.values() for name in names)

# An access token, by RFC 9068 or by those who came before it; no logout or proof token.
_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
_CLAIMS = ["exp", "iss", "aud", "sub"]

Keys = Mapping[tuple[str | None, str], jwt.PyJWK]


class ResourceServer:
    """Lets a request in by a token of the issuer, or by a named key."""

    posture: Posture = "oauth"
    strictness = 2

    def __init__(
        self, ring: KeyRing, issuer: str, audiences: Iterable[str], keys: "SigningKeys"
    ) -> None:
        self.issuers: tuple[str, ...] = (issuer,)
        self._issuer = issuer
        self._ring = ring
        self._audiences = list(audiences)
        self._keys = keys
        self._users = Users()

    async def user(self, scope: Scope) -> AuthenticatedUser:
        """The caller. Raises Unauthorized, or IssuerUnreachable while nothing can be checked."""
        token = bearer(scope)
        return self._users[self._ring.holder(token) or await self._holder(token)]

    async def _holder(self, token: bytes) -> Holder:
        holder = self._ring.holder_of_subject(await self._subject(token))
        if holder is None:
            raise Unauthorized(UNKNOWN_SUBJECT)
        return holder

    async def _subject(self, token: bytes) -> str:
        """Whose token it is, after everything about it was checked."""
        try:
            algorithm, kid = _header(token)
            key = await self._keys.find(kid, algorithm)
            if key is None:
                raise jwt.InvalidKeyError("the issuer has no such key")
            return str(self._claims(token, key, algorithm)["sub"])
        # JSON that is nested too deep and a time that no clock shows are not PyJWT's own errors.
        except (jwt.PyJWTError, RecursionError, OverflowError, ValueError) as error:
            raise Unauthorized(_told(error), reason=type(error).__name__) from error

    def _claims(self, token: bytes, key: jwt.PyJWK, algorithm: str) -> dict[str, Any]:
        return jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=self._audiences,
            issuer=self._issuer,
            leeway=_LEEWAY_SECONDS,
            options={"require": _CLAIMS, "enforce_minimum_key_length": True},
        )


def resource_server(settings: ServerSettings, ring: KeyRing) -> ResourceServer:
    """What JOSH_AUTH=oauth asks for, or an error that names the missing setting."""
    issuer, audiences = settings.josh_oauth_issuer, settings.josh_oauth_audience
    if issuer is None or not audiences:
        missing = "JOSH_OAUTH_AUDIENCE" if issuer else "JOSH_OAUTH_ISSUER"
        raise InvalidSetting(f"JOSH_AUTH=oauth needs {missing}")
    keys = SigningKeys(issuer, settings.josh_oauth_jwks_url)
    return ResourceServer(ring, issuer, audiences, keys)


def _header(token: bytes) -> tuple[str, str | None]:
    """The algorithm and the key that a token names, before anything of it is believed."""
    if len(token) > _LONGEST_TOKEN:
        raise jwt.DecodeError("too long")
    header = jwt.get_unverified_header(token)
    algorithm = str(header.get("alg"))
    if algorithm not in _ALLOWED:
        raise jwt.InvalidAlgorithmError("not on the list")
    if str(header.get("typ", "JWT")).lower() not in _TYPES:
        raise jwt.InvalidTokenError("no access token")
    return algorithm, header.get("kid")


def _told(error: Exception) -> str:
    """Said to the caller: what its holder can mend. The log has the reason for the others."""
    return "The token has expired" if isinstance(error, jwt.ExpiredSignatureError) else INVALID


class SigningKeys:
    """The issuer's public keys: fetched when first needed, again as they age, or for a new one."""

    def __init__(
        self,
        issuer: str,
        jwks_url: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._clock = clock
        self._lock = anyio.Lock()
        self._keys: Keys = {}
        self._fetched = self._tried = self._sought = -float("inf")
        """When keys last came, when they were last asked for, when for an unknown one."""

    async def find(self, kid: str | None, algorithm: str) -> jwt.PyJWK | None:
        """The key of that name for that algorithm; None when the issuer has no such key."""
        await self._freshen()
        named = (kid, algorithm)
        return self._keys.get(named) or await self._look_again(named)

    async def _freshen(self) -> None:
        if self._age() > FRESH_SECONDS and not (self._usable() and self._lock.locked()):
            async with self._lock:
                if self._age() > FRESH_SECONDS and self._since(self._tried) >= RETRY_SECONDS:
                    await self._fetch()
        if not self._usable():
            raise IssuerUnreachable(
                "Tokens cannot be checked: the authorization server gives no keys",
                retry_after=RETRY_SECONDS,
            )

    async def _look_again(self, named: tuple[str | None, str]) -> jwt.PyJWK | None:
        """Ask the issuer for a key it may have made since; at most once a minute, for anybody."""
        async with self._lock:  # whoever comes while keys are fetched waits for them
            if named not in self._keys and self._since(self._sought) >= UNKNOWN_KEY_SECONDS:
                self._sought = self._clock()
                await self._fetch()
        return self._keys.get(named)

    async def _fetch(self) -> None:
        """New keys, or the old ones and a line in the log that says why."""
        self._tried = self._clock()
        try:
            with anyio.fail_after(_PATIENCE_SECONDS):
                self._keys = await _fetched(self._issuer, self._jwks_url)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, ValueError) as error:
            reason = str(error) or type(error).__name__
            logger.warning("The signing keys of %s cannot be had: %s", self._issuer, reason)
        else:
            self._fetched = self._clock()

    def _usable(self) -> bool:
        return self._age() <= FRESH_SECONDS + STALE_SECONDS

    def _age(self) -> float:
        return self._since(self._fetched)

    def _since(self, moment: float) -> float:
        return self._clock() - moment


async def _fetched(issuer: str, jwks_url: str | None) -> Keys:
    async with make_async_client(timeout=_PATIENCE_SECONDS) as web:
        return _keys(await _document(web, jwks_url or await _discovered(web, issuer)))


async def _discovered(web: httpx2.AsyncClient, issuer: str) -> str:
    """Where the issuer's metadata says its keys are; metadata of another issuer says nothing."""
    for url in metadata_urls(issuer):
        try:
            metadata = await _document(web, url)
        except ValueError:
            continue  # not every server has all three
        jwks_url = metadata.get("jwks_uri")
        if metadata.get("issuer") == issuer and isinstance(jwks_url, str):
            if not re.fullmatch(TRUSTED_URL, jwks_url):
                raise ValueError("the jwks_uri in its metadata is no https address")
            return jwks_url
    raise ValueError("no metadata of this issuer with a jwks_uri was found")


def metadata_urls(issuer: str) -> list[str]:
    """Where an issuer's metadata may be: by RFC 8414, and by OpenID Connect in both its forms."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    return list(
        dict.fromkeys(
            (
                f"{origin}/.well-known/oauth-authorization-server{path}",
                f"{origin}/.well-known/openid-configuration{path}",
                f"{origin}{path}/.well-known/openid-configuration",
            )
        )
    )


async def _document(web: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    """A JSON object. A redirect is not followed: it may lead anywhere."""
    body = b""
    async with web.stream("GET", url, headers={"Accept": "application/json"}) as response:
        if response.status_code != 200:
            raise ValueError(f"{url} answered {response.status_code}")
        async for part in response.aiter_bytes():
            body += part
            if len(body) > _LARGEST_DOCUMENT:
                raise ValueError(f"{url} answered more than {_LARGEST_DOCUMENT} bytes")
    document = from_json(body)
    if not isinstance(document, dict):
        raise ValueError(f"{url} did not answer a JSON object")
    return document


def _keys(document: Mapping[str, Any]) -> Keys:
    """Every key that signs, by its name and each algorithm it suits."""
    listed = document.get("keys")
    if not isinstance(listed, list):
        raise ValueError("the key set holds no list of keys")
    keys: dict[tuple[str | None, str], jwt.PyJWK] = {}
    for jwk in listed[:_MOST_KEYS]:
        for algorithm in _suited(jwk):
            try:
                keys[jwk.get("kid"), algorithm] = jwt.PyJWK(jwk, algorithm)
            except jwt.PyJWTError as error:
                logger.warning("A signing key is passed over: %s", type(error).__name__)
    if not keys:  # nobody withdraws them all: this is a fault, and the old ones are better
        raise ValueError("the key set holds no key that signs")
    if len(listed) == 1:  # then a token need not name it
        keys |= {(None, algorithm): key for (_, algorithm), key in keys.items()}
    return keys


def _suited(jwk: Any) -> Iterable[str]:
    """The algorithms of a public key that signs; none for any other, a private one included."""
    if not isinstance(jwk, dict) or jwk.get("use", "sig") != "sig" or "d" in jwk:
        return ()
    if not isinstance(jwk.get("kid"), str | None):
        return ()
    suited = _ALGORITHMS.get((str(jwk.get("kty")), str(jwk.get("crv", ""))), ())
    return [name for name in suited if jwk.get("alg", name) == name]
