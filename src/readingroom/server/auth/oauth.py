"""An OAuth 2.1 resource server: accepts the tokens of one issuer whose subject has a key here."""

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
from readingroom.server.auth.bearer import (
    INVALID_TOKEN_MESSAGE,
    AccessKind,
    UsersByKeyHolder,
    read_bearer_token,
)
from readingroom.server.errors import IssuerUnreachable, Unauthorized
from readingroom.server.settings import TRUSTED_URL_PATTERN, ServerSettings
from readingroom.storage.keys import Holder, KeyRing

logger = logging.getLogger(__name__)

UNKNOWN_SUBJECT_MESSAGE = (
    "The token is valid, but its subject has no key here; the operator can add one with "
    "`readingroom keys add NAME --subject SUBJECT`"
)

KEYS_FRESH_SECONDS = 600  # a key that the issuer withdrew is refused after this at the latest
KEYS_GRACE_SECONDS = 3600  # with the issuer down its keys outlive most tokens, and no longer
FETCH_RETRY_SECONDS = 10
# A flood of forged tokens must not become a flood of requests to the issuer.
UNKNOWN_KEY_FETCH_INTERVAL_SECONDS = 60

_CLOCK_LEEWAY_SECONDS = 30  # clocks differ
_FETCH_TIMEOUT_SECONDS = 5
# What a caller who is not verified yet, or a wrong address, can make us read.
_MAX_TOKEN_BYTES = 8192
_MAX_DOCUMENT_BYTES = 256 * 1024
_MAX_SIGNING_KEYS = 100

# Signatures only, by key type and curve: with no shared secret in the list, a public key can never
# be taken for one.
_ALGORITHMS_BY_KEY_TYPE = {
    ("RSA", ""): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
_ALLOWED_ALGORITHMS = frozenset(
    signing_algorithm
    for signing_algorithms in _ALGORITHMS_BY_KEY_TYPE.values()
    for signing_algorithm in signing_algorithms
)

# An access token, by RFC 9068 or by those who came before it; no logout or proof token.
_TOKEN_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
_REQUIRED_CLAIMS = ["exp", "iss", "aud", "sub"]

KeysByIdAndAlgorithm = Mapping[tuple[str | None, str], jwt.PyJWK]


class ResourceServer:
    """Accepts a token of the issuer, or a named key."""

    access: AccessKind = "oauth"
    strictness = 2

    def __init__(
        self,
        key_ring: KeyRing,
        issuer_url: str,
        allowed_audiences: Iterable[str],
        signing_keys: "SigningKeys",
    ) -> None:
        self.issuer_urls: tuple[str, ...] = (issuer_url,)
        self._issuer_url = issuer_url
        self._key_ring = key_ring
        self._audiences = list(allowed_audiences)
        self._signing_keys = signing_keys
        self._users = UsersByKeyHolder()

    async def authenticate(self, scope: Scope) -> AuthenticatedUser:
        """Return the caller. Raise Unauthorized, or IssuerUnreachable while no key can be had."""
        bearer_token = read_bearer_token(scope)
        # Our own keys first: for a token the issuer's keys may have to be fetched.
        return self._users[
            self._key_ring.find_holder(bearer_token) or await self._get_token_holder(bearer_token)
        ]

    async def _get_token_holder(self, token_bytes: bytes) -> Holder:
        key_holder = self._key_ring.find_subject_holder(await self._verify_token(token_bytes))
        if key_holder is None:
            raise Unauthorized(UNKNOWN_SUBJECT_MESSAGE)
        return key_holder

    async def _verify_token(self, token_bytes: bytes) -> str:
        """Return the subject of a token after checking everything about it. Raise Unauthorized."""
        try:
            signing_algorithm, signing_key_id = _read_token_header(token_bytes)
            signing_key = await self._signing_keys.find_key(signing_key_id, signing_algorithm)
            if signing_key is None:
                raise jwt.InvalidKeyError("the issuer has no such key")
            return str(self._decode_token(token_bytes, signing_key, signing_algorithm)["sub"])
        # JSON nested too deep and a time out of range are errors, but not PyJWT's own.
        except (jwt.PyJWTError, RecursionError, OverflowError, ValueError) as error:
            raise Unauthorized(
                _describe_token_failure(error), reason=type(error).__name__
            ) from error

    def _decode_token(
        self, token_bytes: bytes, signing_key: jwt.PyJWK, signing_algorithm: str
    ) -> dict[str, Any]:
        return jwt.decode(
            token_bytes,
            signing_key,
            # Only this one: it is on our list, and the key was looked up for it.
            algorithms=[signing_algorithm],
            audience=self._audiences,
            issuer=self._issuer_url,
            leeway=_CLOCK_LEEWAY_SECONDS,
            options={"require": _REQUIRED_CLAIMS, "enforce_minimum_key_length": True},
        )


def make_resource_server(settings: ServerSettings, key_ring: KeyRing) -> ResourceServer:
    """Return what JOSH_AUTH=oauth needs. Raise InvalidSetting when a setting is missing."""
    issuer_url, allowed_audiences = settings.josh_oauth_issuer, settings.josh_oauth_audience
    if issuer_url is None or not allowed_audiences:
        missing_setting_name = "JOSH_OAUTH_AUDIENCE" if issuer_url else "JOSH_OAUTH_ISSUER"
        raise InvalidSetting(f"JOSH_AUTH=oauth needs {missing_setting_name}")
    signing_keys = SigningKeys(issuer_url, settings.josh_oauth_jwks_url)
    return ResourceServer(key_ring, issuer_url, allowed_audiences, signing_keys)


def _read_token_header(token_bytes: bytes) -> tuple[str, str | None]:
    """Return the algorithm and the key id that a token names; nothing is verified yet."""
    if len(token_bytes) > _MAX_TOKEN_BYTES:
        raise jwt.DecodeError("too long")
    token_header = jwt.get_unverified_header(token_bytes)
    signing_algorithm = str(token_header.get("alg"))
    if signing_algorithm not in _ALLOWED_ALGORITHMS:
        raise jwt.InvalidAlgorithmError("not on the list")
    if str(token_header.get("typ", "JWT")).lower() not in _TOKEN_TYPES:
        raise jwt.InvalidTokenError("not an access token")
    return signing_algorithm, token_header.get("kid")


def _describe_token_failure(jwt_error: Exception) -> str:
    """Return what the caller may learn: only an expiry, which it can fix. The log has the rest."""
    return (
        "The token has expired"
        if isinstance(jwt_error, jwt.ExpiredSignatureError)
        else INVALID_TOKEN_MESSAGE
    )


class SigningKeys:
    """The issuer's public keys: fetched when first needed, when they age, and for an unknown id."""

    def __init__(
        self,
        issuer_url: str,
        jwks_url: str | None = None,
        read_clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuer_url = issuer_url
        self._jwks_url = jwks_url
        self._read_clock = read_clock
        self._lock = anyio.Lock()
        self._keys_by_id: KeysByIdAndAlgorithm = {}
        self._fetched_at = self._tried_at = self._unknown_key_at = -float("inf")
        """When keys last arrived, when they were last requested, and when for an unknown id."""

    async def find_key(
        self, signing_key_id: str | None, signing_algorithm: str
    ) -> jwt.PyJWK | None:
        """Return the key of that id for that algorithm, or None when the issuer has no such key.

        Raise IssuerUnreachable while there are no usable keys.
        """
        await self._refresh_keys()
        key_id_and_algorithm = (signing_key_id, signing_algorithm)
        return self._keys_by_id.get(key_id_and_algorithm) or await self._find_new_key(
            key_id_and_algorithm
        )

    async def _refresh_keys(self) -> None:
        # While one request fetches keys, the others go on with those that are still usable.
        if self._get_keys_age_seconds() > KEYS_FRESH_SECONDS and not (
            self._has_usable_keys() and self._lock.locked()
        ):
            async with self._lock:
                if (
                    self._get_keys_age_seconds() > KEYS_FRESH_SECONDS
                    and self._measure_seconds_since(self._tried_at) >= FETCH_RETRY_SECONDS
                ):
                    await self._try_fetch_keys()
        if not self._has_usable_keys():
            raise IssuerUnreachable(
                "Tokens cannot be checked: the authorization server gives no keys",
                retry_after=FETCH_RETRY_SECONDS,
            )

    async def _find_new_key(self, key_id_and_algorithm: tuple[str | None, str]) -> jwt.PyJWK | None:
        """Fetch again, for the issuer may have a new key; at most once a minute for all callers."""
        async with self._lock:  # whoever comes while keys are fetched waits for them
            if (
                key_id_and_algorithm not in self._keys_by_id
                and self._measure_seconds_since(self._unknown_key_at)
                >= UNKNOWN_KEY_FETCH_INTERVAL_SECONDS
            ):
                self._unknown_key_at = self._read_clock()
                await self._try_fetch_keys()
        return self._keys_by_id.get(key_id_and_algorithm)

    async def _try_fetch_keys(self) -> None:
        """Replace the keys; when that fails, keep the old ones and log the reason."""
        # Before the attempt: one that its caller breaks off counts as well.
        self._tried_at = self._read_clock()
        try:
            with anyio.fail_after(_FETCH_TIMEOUT_SECONDS):
                self._keys_by_id = await _fetch_keys(self._issuer_url, self._jwks_url)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, ValueError) as error:
            failure_reason = str(error) or type(error).__name__
            logger.warning(
                "The signing keys of %s cannot be fetched: %s", self._issuer_url, failure_reason
            )
        else:
            self._fetched_at = self._read_clock()

    def _has_usable_keys(self) -> bool:
        return self._get_keys_age_seconds() <= KEYS_FRESH_SECONDS + KEYS_GRACE_SECONDS

    def _get_keys_age_seconds(self) -> float:
        return self._measure_seconds_since(self._fetched_at)

    def _measure_seconds_since(self, earlier_time: float) -> float:
        return self._read_clock() - earlier_time


async def _fetch_keys(issuer_url: str, jwks_url: str | None) -> KeysByIdAndAlgorithm:
    async with make_async_client(timeout=_FETCH_TIMEOUT_SECONDS) as http_client:
        return _parse_key_set(
            await _fetch_json_document(
                http_client, jwks_url or await _discover_keys_url(http_client, issuer_url)
            )
        )


async def _discover_keys_url(http_client: httpx2.AsyncClient, issuer_url: str) -> str:
    """Return the jwks_uri of the issuer's own metadata. Raise ValueError when there is none."""
    for metadata_url in list_metadata_urls(issuer_url):
        try:
            issuer_metadata = await _fetch_json_document(http_client, metadata_url)
        except ValueError:
            continue  # not every server has all three
        jwks_url = issuer_metadata.get("jwks_uri")
        # Metadata that names another issuer must not be used (RFC 8414, section 3.3).
        if issuer_metadata.get("issuer") == issuer_url and isinstance(jwks_url, str):
            # An issuer elsewhere must not send us to a port of this machine.
            is_https_downgrade = issuer_url.startswith("https:") and not jwks_url.startswith(
                "https:"
            )
            if is_https_downgrade or not re.fullmatch(TRUSTED_URL_PATTERN, jwks_url):
                raise ValueError("the jwks_uri in its metadata is not an https address")
            return jwks_url
    raise ValueError("no metadata of this issuer with a jwks_uri was found")


def list_metadata_urls(issuer_url: str) -> list[str]:
    """Return where an issuer's metadata may be: RFC 8414, and both forms of OpenID Connect."""
    issuer_url_parts = urlsplit(issuer_url)
    issuer_origin, issuer_path = (
        f"{issuer_url_parts.scheme}://{issuer_url_parts.netloc}",
        issuer_url_parts.path.rstrip("/"),
    )
    return list(
        dict.fromkeys(
            (
                f"{issuer_origin}/.well-known/oauth-authorization-server{issuer_path}",
                f"{issuer_origin}/.well-known/openid-configuration{issuer_path}",
                f"{issuer_origin}{issuer_path}/.well-known/openid-configuration",
            )
        )
    )


async def _fetch_json_document(http_client: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    """Return a JSON object. Redirects are not followed, for they may lead anywhere."""
    body_bytes = b""
    async with http_client.stream("GET", url, headers={"Accept": "application/json"}) as response:
        if response.status_code != 200:
            raise ValueError(f"{url} answered {response.status_code}")
        async for body_block in response.aiter_bytes():
            body_bytes += body_block
            if len(body_bytes) > _MAX_DOCUMENT_BYTES:
                raise ValueError(f"{url} answered more than {_MAX_DOCUMENT_BYTES} bytes")
    json_document = from_json(body_bytes)
    if not isinstance(json_document, dict):
        raise ValueError(f"{url} did not answer a JSON object")
    return json_document


def _parse_key_set(key_set_json: Mapping[str, Any]) -> KeysByIdAndAlgorithm:
    """Return every signing key, by its id and by each algorithm it can be used with."""
    keys_as_json = key_set_json.get("keys")
    if not isinstance(keys_as_json, list):
        raise ValueError("the key set holds no list of keys")
    keys_by_id_and_algorithm: dict[tuple[str | None, str], jwt.PyJWK] = {}
    for jwk_fields in keys_as_json[:_MAX_SIGNING_KEYS]:
        for signing_algorithm in _list_algorithms(jwk_fields):
            try:
                keys_by_id_and_algorithm[jwk_fields.get("kid"), signing_algorithm] = jwt.PyJWK(
                    jwk_fields, signing_algorithm
                )
            except jwt.PyJWTError as error:
                logger.warning("A signing key is skipped: %s", type(error).__name__)
    if (
        not keys_by_id_and_algorithm
    ):  # no issuer withdraws them all: this is a fault, and the old keys are better
        raise ValueError("the key set holds no key that signs")
    if len(keys_as_json) == 1:  # then a token need not name its key
        keys_by_id_and_algorithm |= {
            (None, signing_algorithm): signing_key
            for (_, signing_algorithm), signing_key in keys_by_id_and_algorithm.items()
        }
    return keys_by_id_and_algorithm


def _list_algorithms(jwk_fields: Any) -> Iterable[str]:
    """Return the algorithms of a public signing key; none for any other, private ones included."""
    if (
        not isinstance(jwk_fields, dict)
        or jwk_fields.get("use", "sig") != "sig"
        or "d" in jwk_fields
    ):
        return ()
    if not isinstance(jwk_fields.get("kid"), str | None):
        return ()
    algorithms_of_type = _ALGORITHMS_BY_KEY_TYPE.get(
        (str(jwk_fields.get("kty")), str(jwk_fields.get("crv", ""))), ()
    )
    return [
        signing_algorithm
        for signing_algorithm in algorithms_of_type
        if jwk_fields.get("alg", signing_algorithm) == signing_algorithm
    ]
