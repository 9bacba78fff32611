"""OAuth before the federal base: whose tokens come in, whose do not, and what stays open."""

import base64
import hashlib
import hmac
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from readingroom.core.errors import InvalidSetting
from readingroom.server.auth import oauth
from readingroom.server.auth.oauth import (
    FETCH_RETRY_SECONDS,
    KEYS_FRESH_SECONDS,
    KEYS_GRACE_SECONDS,
    UNKNOWN_KEY_FETCH_INTERVAL_SECONDS,
    UNKNOWN_SUBJECT_MESSAGE,
    SigningKeys,
    list_metadata_urls,
    make_resource_server,
)
from readingroom.server.errors import IssuerUnreachable
from readingroom.settings import load_settings
from readingroom.storage.errors import InvalidSubject
from readingroom.storage.keys import KeyRing
from tests.requirements import requirement
from tests.support.federal.base import make_base
from tests.support.issuer import AUDIENCE, OPENID, RFC_8414, SUBJECT, Issuer, run_issuer
from tests.support.kit import (
    LEGACY,
    MODERN,
    POST,
    Served,
    connect_http,
    make_app,
    make_rpc,
    run,
    serve_room,
)
from tests.support.processes import HANG_SECONDS

WELL_KNOWN = "/.well-known/oauth-protected-resource"
GUARDED = ("/mcp", "/federal/mcp", "/v1/bills")


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with run_issuer() as running:
        yield running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[Served]:
    """Every base, with tokens before the federal one; `ann` comes in by hers."""
    data = tmp_path_factory.mktemp("data")
    KeyRing(data).add_subject("ann", SUBJECT)
    with serve_room(data=data, env=issuer.settings(MCP_API_KEY="sesame")) as served:
        yield served


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Every base behind a key, and the federal one open to everybody."""
    env = {"JOSH_AUTH": "disabled", "MCP_API_KEY": "sesame"}
    with serve_room(data=tmp_path_factory.mktemp("data"), env=env) as served:
        yield served


class Ask:
    """Asks for a listing, by REST or over MCP."""

    def __init__(self, web: httpx2.Client) -> None:
        self._web = web

    def __call__(self, served: Served, path: str, token: str | None) -> httpx2.Response:
        bearer = f"Bearer {token}".encode("latin-1") if token else None
        headers = [(name.encode(), value.encode()) for name, value in POST.items()]
        headers += [(b"authorization", bearer)] if bearer else []
        if path.endswith("/mcp"):
            return self._web.post(served.url + path, json=make_rpc("tools/list"), headers=headers)
        return self._web.get(served.url + path, headers=headers)


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    with httpx2.Client(timeout=300, trust_env=False) as web:
        yield Ask(web)


def encode_part(document: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


def make_claims(issuer: Issuer, **more: Any) -> dict[str, Any]:
    whole = {"iss": issuer.url, "sub": SUBJECT, "aud": AUDIENCE, "exp": int(time.time()) + 600}
    return whole | more


# --- who comes in ---


@requirement("federal:AC-25", "federal:auth:oauth", "federal:AC-03", "federal:AC-26")
@pytest.mark.anyio
@pytest.mark.parametrize("wire", [LEGACY, MODERN])
@pytest.mark.parametrize("path", ["/mcp", "/federal/mcp"])
async def test_a_token_of_the_issuer_comes_in_and_is_logged_by_its_keys_name(
    guarded: Served, issuer: Issuer, wire: str, path: str
) -> None:
    async with connect_http(guarded.url + path, wire, key=issuer.token()) as client:
        answer = await client.call_tool("lexical_search", {"query": "broadband"})
    line = guarded.calls()[-1]
    assert not answer.is_error
    assert line["caller_kind"] == "api_key:ann"
    assert (line["tool_name"], line["result_status"]) == ("lexical_search", "ok")
    assert line["request_id"] and line["duration_ms"] > 0


@requirement("federal:AC-03", "federal:auth:oauth", "federal:shared-process")
def test_rest_takes_the_same_tokens(guarded: Served, issuer: Issuer, ask: Ask) -> None:
    assert ask(guarded, "/v1/bills", issuer.token()).status_code == 200
    assert ask(guarded, "/docs", issuer.token()).status_code == 200


@requirement("federal:AC-25", "federal:auth:oauth", "room:keys")
@pytest.mark.parametrize("path", GUARDED)
def test_an_opaque_token_is_a_named_key_and_is_refused_once_revoked(
    guarded: Served, path: str, ask: Ask
) -> None:
    ring = KeyRing(guarded.data)
    secret = ring.add_key("bob")
    assert ask(guarded, path, secret).status_code != 401
    ring.revoke_key("bob")
    assert ask(guarded, path, secret).status_code == 401


@requirement("federal:AC-25", "room:keys")
def test_a_good_token_is_refused_once_the_key_of_its_subject_is_revoked(
    guarded: Served, issuer: Issuer, ask: Ask
) -> None:
    ring, token = KeyRing(guarded.data), issuer.token(sub="user-7")
    assert ask(guarded, "/v1/bills", token).status_code == 401
    ring.add_subject("seven", "user-7")
    assert ask(guarded, "/v1/bills", token).status_code == 200
    ring.revoke_key("seven")
    refused = ask(guarded, "/v1/bills", token)
    error = refused.json()["error"]
    assert (error["code"], error["message"]) == ("unauthorized", UNKNOWN_SUBJECT_MESSAGE)


@requirement("federal:auth:oauth")
@pytest.mark.parametrize("more", [{"aud": ["other", AUDIENCE]}, {"nbf": None}, {"iat": None}])
def test_tokens_of_every_ordinary_form_come_in(
    guarded: Served, issuer: Issuer, more: dict[str, Any], ask: Ask
) -> None:
    assert ask(guarded, "/v1/bills", issuer.token(**more)).status_code == 200
    access = issuer.token(header={"typ": "at+jwt"}, **more)
    assert ask(guarded, "/v1/bills", access).status_code == 200


@requirement("federal:auth:oauth")
@pytest.mark.parametrize("seconds", [-20, 20])
def test_clocks_may_differ_by_half_a_minute(
    guarded: Served, issuer: Issuer, seconds: int, ask: Ask
) -> None:
    moment = int(time.time()) + seconds
    claim = {"exp": moment} if seconds < 0 else {"nbf": moment, "iat": moment}
    assert ask(guarded, "/v1/bills", issuer.token(**claim)).status_code == 200


# --- who does not ---


def _read_public_key(issuer: Issuer, encoding: Encoding) -> bytes:
    key = jwt.PyJWK(issuer.public_keys()[0]).key
    return bytes(key.public_bytes(encoding, PublicFormat.SubjectPublicKeyInfo))


def _sign_with_public_key(issuer: Issuer, encoding: Encoding) -> str:
    """Signed by HMAC, with the public key that everybody has for a secret. PyJWT makes no such."""
    kid = issuer.public_keys()[0]["kid"]
    header = encode_part({"alg": "HS256", "typ": "JWT", "kid": kid})
    signed = f"{header}.{encode_part(make_claims(issuer))}"
    secret = _read_public_key(issuer, encoding)
    signature = hmac.digest(secret, signed.encode(), hashlib.sha256)
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def _sign_with_forged_key(issuer: Issuer, **header: Any) -> str:
    """Signed with a key of the forger's own, under the issuer's name."""
    own = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return jwt.encode(make_claims(issuer), own, "RS256", headers={"kid": issuer.kid} | header)


def _sign_with_own_key(issuer: Issuer) -> str:
    """Brings the key it was signed with in its header."""
    own = ec.generate_private_key(ec.SECP256R1())
    jwk = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(own.public_key()))
    header = {"jwk": jwk, "jku": "http://127.0.0.1:1/jwks", "x5u": "http://127.0.0.1:1/cert"}
    return jwt.encode(make_claims(issuer), own, "ES256", headers=header)


def _change_subject(issuer: Issuer) -> str:
    """Another subject under a signature that was made for ann."""
    head, _, signature = issuer.token(sub="user-8").split(".")
    return f"{head}.{encode_part(make_claims(issuer))}.{signature}"


def _leave_unsigned(issuer: Issuer, algorithm: object) -> str:
    header = {"alg": algorithm, "typ": "JWT", "kid": issuer.kid}
    return f"{encode_part(header)}.{encode_part(make_claims(issuer))}."


def _nest_token(issuer: Issuer) -> str:
    deep = base64.urlsafe_b64encode(b"[" * 5000).rstrip(b"=").decode()
    return f"{deep}.{encode_part(make_claims(issuer))}.AAAA"


def _make_header_writer(**header: Any) -> Callable[[Issuer], str]:
    return lambda issuer: f"{encode_part(header)}.{encode_part(make_claims(issuer))}.AAAA"


HOSTILE: dict[str, Callable[[Issuer], str]] = {
    "alg none": lambda issuer: _leave_unsigned(issuer, "none"),
    "alg NONE": lambda issuer: _leave_unsigned(issuer, "NonE"),
    "alg of another type": lambda issuer: _leave_unsigned(issuer, ["RS256"]),
    "alg null": lambda issuer: _leave_unsigned(issuer, None),
    "no signature": lambda issuer: _leave_unsigned(issuer, "RS256"),
    "HMAC with the public key, PEM": lambda issuer: _sign_with_public_key(issuer, Encoding.PEM),
    "HMAC with the public key, DER": lambda issuer: _sign_with_public_key(issuer, Encoding.DER),
    "a forger's key": _sign_with_forged_key,
    "a forger's key, unknown name": lambda issuer: _sign_with_forged_key(issuer, kid="unheard-of"),
    "a forger's key, brought along": _sign_with_own_key,
    "another subject put in": _change_subject,
    "another audience": lambda issuer: issuer.token(aud="https://elsewhere.example.org"),
    "an audience that only begins alike": lambda issuer: issuer.token(aud=AUDIENCE + "/x"),
    "no audience": lambda issuer: issuer.token(aud=None),
    "another issuer": lambda issuer: issuer.token(iss="https://elsewhere.example.org"),
    "an issuer with one slash more": lambda issuer: issuer.token(iss=issuer.url + "/"),
    "no issuer": lambda issuer: issuer.token(iss=None),
    "expired": lambda issuer: issuer.token(exp=int(time.time()) - 120),
    "without expiry": lambda issuer: issuer.token(exp=None),
    "expiry that is no time": lambda issuer: issuer.token(exp="never"),
    "not yet valid": lambda issuer: issuer.token(nbf=int(time.time()) + 120),
    "issued tomorrow": lambda issuer: issuer.token(iat=int(time.time()) + 86_400),
    "no subject": lambda issuer: issuer.token(sub=None),
    "a subject that is no text": lambda issuer: issuer.token(sub={"$ne": ""}),
    "a subject nobody knows": lambda issuer: issuer.token(sub="user-9"),
    "a proof, not a token": lambda issuer: issuer.token(header={"typ": "dpop+jwt"}),
    "a logout, not a token": lambda issuer: issuer.token(header={"typ": "logout+jwt"}),
    "huge": lambda issuer: issuer.token(padding="x" * 20_000),
    "a header nested too deep": _nest_token,
    "a header that is no object": lambda issuer: f"{encode_part([])}.{encode_part({})}.AAAA",
    "an extension that must be known": _make_header_writer(alg="RS256", crit=["exp"], exp=1),
    "kid: a path": _make_header_writer(alg="RS256", kid="../../../../dev/null"),
    "kid: a statement": _make_header_writer(alg="RS256", kid="x' UNION SELECT 'ann"),
    "kid: an address": _make_header_writer(alg="RS256", kid="http://127.0.0.1:1/key"),
    "kid: an object": _make_header_writer(alg="RS256", kid={"$gt": ""}),
    "kid: a NUL": _make_header_writer(alg="RS256", kid="a\0b"),
    "kid: huge": _make_header_writer(alg="RS256", kid="k" * 5000),
    "two dots": lambda issuer: "..",
    "not base64": lambda issuer: "é.é.é",
    "five parts": lambda issuer: "a.b.c.d.e",
    "the environment's key": lambda issuer: "sesame",
    "nothing of the kind": lambda issuer: "rr_" + "x" * 43,
}


@requirement("federal:AC-25", "federal:auth:oauth")
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_tokens_are_refused_on_rest_and_mcp(
    guarded: Served, issuer: Issuer, ask: Ask, kind: str
) -> None:
    token = HOSTILE[kind](issuer)
    for path in GUARDED:
        refused = ask(guarded, path, token)
        assert refused.status_code == 401, (path, refused.text)
        error = refused.json()["error"]
        assert error["code"] == "unauthorized"
        if path != "/mcp":  # other bases are there too, whose contracts have less
            assert set(error) == {"type", "code", "message", "request_id"}
            assert error["request_id"] == refused.headers["x-request-id"]
        challenge = refused.headers["www-authenticate"]
        assert challenge.startswith('Bearer error="invalid_token"')
    line = [line for line in guarded.lines() if line["level"] == "WARNING"][-1]
    assert line["logger"] == "readingroom.server.auth.bearer", line
    assert token not in guarded.log.read_text("utf-8")


@requirement("federal:auth:oauth", "room:log")
def test_why_a_token_was_refused_is_in_the_log_and_only_its_age_is_told(
    guarded: Served, issuer: Issuer, ask: Ask
) -> None:
    expired = ask(guarded, "/v1/bills", issuer.token(exp=int(time.time()) - 120))
    astray = ask(guarded, "/v1/bills", issuer.token(aud="https://elsewhere.example.org"))
    reasons = [line["reason"] for line in guarded.lines() if "reason" in line]
    assert expired.json()["error"]["message"] == "The token has expired"
    assert astray.json()["error"]["message"] == "Invalid bearer token"
    assert reasons[-2:] == ["ExpiredSignatureError", "InvalidAudienceError"]


# --- how a client finds out ---


@requirement("federal:AC-25", "federal:auth:oauth")
@pytest.mark.parametrize(
    ("path", "document"),
    [("/mcp", "/mcp"), ("/federal/mcp", "/federal/mcp"), ("/v1/bills", ""), ("/metrics", "")],
)
def test_a_refusal_names_the_document_that_names_the_issuer(
    guarded: Served, issuer: Issuer, path: str, document: str, ask: Ask
) -> None:
    refused = ask(guarded, path, None)
    described = f"{guarded.url}{WELL_KNOWN}{document}"
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == f'Bearer resource_metadata="{described}"'
    metadata = guarded.get(f"{WELL_KNOWN}{document}")
    assert metadata.headers["content-type"] == "application/json"
    assert metadata.json()["resource"] == guarded.url + document
    assert metadata.json()["authorization_servers"] == [issuer.url]
    assert metadata.json()["bearer_methods_supported"] == ["header"]


@requirement("federal:auth:oauth", "room:origin")
def test_a_client_in_a_browser_can_read_the_challenge(guarded: Served) -> None:
    refused = guarded.get("/v1/bills", Origin="http://localhost:6274")
    assert refused.status_code == 401
    assert "resource_metadata" in refused.headers["www-authenticate"]
    assert "WWW-Authenticate" in refused.headers["access-control-expose-headers"]


@requirement("federal:AC-25", "federal:auth:oauth", "room:clients")
@pytest.mark.anyio
async def test_the_sdks_client_finds_its_way_from_the_refusal_to_a_token(
    tmp_path: Path, issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    """RFC 9728, the issuer's metadata, a code with PKCE, a token for this resource: all of it."""
    caplog.set_level("INFO", "readingroom.calls")
    address = "http://127.0.0.1"
    KeyRing(tmp_path).add_subject("john", "johndoe")
    app = make_app(
        make_base(tmp_path),
        data=tmp_path,
        josh_auth="oauth",
        josh_oauth_issuer=issuer.url,
        josh_oauth_audience=(f"{address}/mcp",),
    )
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app, client=("127.0.0.1", 50000)),
            mounts={issuer.url: httpx2.AsyncHTTPTransport()},
            auth=_make_client_provider(f"{address}/mcp"),
        ) as web,
        Client(streamable_http_client(f"{address}/mcp", http_client=web)) as client,
    ):
        assert not (await client.call_tool("search", {"query": "rail"})).is_error
    (called,) = [record.fields for record in caplog.records if record.name == "readingroom.calls"]
    assert called["caller_kind"] == "api_key:john"


def _make_client_provider(url: str) -> OAuthClientProvider:
    """A client that is known to the issuer, and a person who agrees at once."""
    agreed: list[str] = []

    async def agree(address: str) -> None:
        async with httpx2.AsyncClient(timeout=HANG_SECONDS, trust_env=False) as web:
            agreed.append((await web.get(address)).headers["location"])

    async def come_back() -> AuthorizationCodeResult:
        query = parse_qs(urlsplit(agreed[-1]).query)
        return AuthorizationCodeResult(code=query["code"][0], state=query["state"][0])

    metadata = OAuthClientMetadata(
        redirect_uris=["http://localhost:3030/callback"], token_endpoint_auth_method="none"
    )
    known = OAuthClientInformationFull(client_id="test", **metadata.model_dump())
    return OAuthClientProvider(url, metadata, _Memory(known), agree, come_back)


class _Memory:
    """What a client remembers between two requests."""

    def __init__(self, client: OAuthClientInformationFull) -> None:
        self._client = client
        self._tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


# --- the issuer's keys ---


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def rotating() -> Iterator[Issuer]:
    """One whose keys change: servers that know the other need not notice within the minute."""
    with run_issuer() as running:
        yield running


@pytest.fixture
def keys(rotating: Issuer, clock: Clock) -> SigningKeys:
    rotating.asked()
    return SigningKeys(rotating.url, read_clock=clock)


@requirement("federal:auth:oauth")
@pytest.mark.anyio
async def test_keys_are_fetched_once_for_many_tokens(rotating: Issuer, keys: SigningKeys) -> None:
    for _ in range(20):
        assert await keys.find_key(rotating.kid, "RS256")
    assert rotating.asked()["/jwks"] == 1


@requirement("federal:auth:oauth")
@pytest.mark.anyio
async def test_a_new_key_of_any_listed_kind_is_found_at_once() -> None:
    with run_issuer() as issuer:
        before = ("RS256", issuer.kid)
        for algorithm in ("PS512", "ES256", "ES384", "ES512", "EdDSA"):
            keys = SigningKeys(issuer.url)
            assert await keys.find_key(before[1], before[0])
            before = (algorithm, issuer.rotate(algorithm))
            key = await keys.find_key(issuer.kid, algorithm)
            assert key
            assert jwt.decode(issuer.token(), key, [algorithm], audience=AUDIENCE)["sub"] == SUBJECT


@requirement("federal:auth:oauth")
@pytest.mark.anyio
async def test_a_flood_of_unknown_names_asks_the_issuer_once_a_minute(
    rotating: Issuer, keys: SigningKeys, clock: Clock
) -> None:
    async def flood() -> int:
        async with anyio.create_task_group() as crowd:
            for number in range(200):
                crowd.start_soon(keys.find_key, f"unheard-of-{number}", "RS256")
        assert await keys.find_key(rotating.kid, "RS256")
        return rotating.asked()["/jwks"]

    assert await flood() == 2  # the keys themselves, and one look for a new one
    clock.now += UNKNOWN_KEY_FETCH_INTERVAL_SECONDS - 1
    assert await keys.find_key("unheard-of", "RS256") is None
    assert rotating.asked() == {}
    clock.now += 1
    assert await flood() == 1


@requirement("federal:auth:oauth")
@pytest.mark.anyio
async def test_whoever_comes_while_a_new_key_is_fetched_waits_for_it(
    rotating: Issuer, keys: SigningKeys
) -> None:
    found = []

    async def find() -> None:
        found.append(await keys.find_key(rotating.kid, "RS256"))

    assert await keys.find_key(rotating.kid, "RS256")
    rotating.rotate()
    async with anyio.create_task_group() as crowd:
        for _ in range(10):
            crowd.start_soon(find)
    assert len(found) == 10 and all(found)


@requirement("federal:auth:oauth")
@pytest.mark.anyio
async def test_a_withdrawn_key_is_forgotten_when_the_keys_have_aged(
    rotating: Issuer, keys: SigningKeys, clock: Clock
) -> None:
    old = rotating.kid
    assert await keys.find_key(old, "RS256")
    rotating.rotate()
    rotating.withdraw(old)
    clock.now += KEYS_FRESH_SECONDS + 1
    assert await keys.find_key(old, "RS256") is None


@requirement("federal:auth:oauth")
@pytest.mark.anyio
async def test_with_the_issuer_down_known_keys_last_an_hour_and_no_longer(
    rotating: Issuer, keys: SigningKeys, clock: Clock
) -> None:
    assert await keys.find_key(rotating.kid, "RS256")
    with rotating.down():
        clock.now += KEYS_FRESH_SECONDS + KEYS_GRACE_SECONDS
        assert await keys.find_key(rotating.kid, "RS256")
        clock.now += 1
        with pytest.raises(IssuerUnreachable) as told:
            await keys.find_key(rotating.kid, "RS256")
    assert told.value.hint["retry_after"] == FETCH_RETRY_SECONDS
    clock.now += FETCH_RETRY_SECONDS
    assert await keys.find_key(rotating.kid, "RS256")


@requirement("federal:auth:oauth")
@pytest.mark.anyio
async def test_a_key_set_without_a_key_does_not_take_away_those_we_have(
    rotating: Issuer, keys: SigningKeys, clock: Clock
) -> None:
    assert await keys.find_key(rotating.kid, "RS256")
    with rotating.publishing([]):
        clock.now += KEYS_FRESH_SECONDS + 1
        assert await keys.find_key(rotating.kid, "RS256")


@requirement("federal:auth:oauth")
@pytest.mark.anyio
async def test_keys_that_can_check_nothing_are_passed_over(
    rotating: Issuer, keys: SigningKeys
) -> None:
    (good, *_) = rotating.public_keys()
    odd: list[Any] = [
        {"kty": "oct", "kid": "shared", "k": "c2VjcmV0", "alg": "HS256"},
        {**good, "kid": "encrypts", "use": "enc"},
        {**good, "kid": "private", "d": "AQAB"},
        {**good, "kid": "broken", "n": "!"},
        {**good, "kid": ["a", "list"]},
        {"kty": "EC", "crv": "P-256", "kid": "half", "x": "AA"},
        "no key at all",
    ]
    with rotating.publishing([*odd, good]):
        assert await keys.find_key(good["kid"], "RS256")
        for kid in ("shared", "encrypts", "private", "broken", "half"):
            for algorithm in ("HS256", "RS256", "ES256"):
                assert await keys.find_key(kid, algorithm) is None, kid


@requirement("federal:auth:oauth")
@pytest.mark.anyio
async def test_a_silent_issuer_is_asked_every_few_seconds_not_by_every_caller(
    rotating: Issuer, keys: SigningKeys, clock: Clock
) -> None:
    with rotating.down():
        for _ in range(20):
            with pytest.raises(IssuerUnreachable):
                await keys.find_key(rotating.kid, "RS256")
        assert max(rotating.asked().values()) == 1
    clock.now += FETCH_RETRY_SECONDS
    assert await keys.find_key(rotating.kid, "RS256")


@requirement("federal:auth:oauth")
def test_an_issuer_that_is_down_is_no_reason_to_throw_a_token_away(
    tmp_path: Path, rotating: Issuer, ask: Ask
) -> None:
    token = rotating.token()
    with (
        rotating.down(),
        serve_room("federal", data=tmp_path / "data", env=rotating.settings()) as served,
    ):
        refused = ask(served, "/v1/bills", token)
        assert served.get("/health").status_code == 200
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "issuer_unreachable"
    assert refused.headers["retry-after"] == str(FETCH_RETRY_SECONDS)
    assert "x-ratelimit-remaining" in refused.headers  # it was counted


@requirement("federal:auth:oauth")
@pytest.mark.anyio
@pytest.mark.parametrize("path", [OPENID, RFC_8414])
async def test_keys_are_found_through_the_issuers_metadata(path: str) -> None:
    with run_issuer(path) as issuer:
        assert await SigningKeys(issuer.url).find_key(issuer.kid, "RS256")


@requirement("federal:auth:oauth")
@pytest.mark.anyio
async def test_a_named_address_of_the_keys_needs_no_metadata(rotating: Issuer) -> None:
    rotating.asked()
    assert await SigningKeys(rotating.url, f"{rotating.url}/jwks").find_key(rotating.kid, "RS256")
    assert rotating.asked() == {"/jwks": 1}


@requirement("federal:auth:oauth")
@pytest.mark.parametrize("url", ["https://id.example.org/keys?p=signin", "http://[::1]:9/jwks"])
def test_the_address_of_the_keys_may_have_a_query(url: str) -> None:
    settings = load_settings({}, {"JOSH_OAUTH_JWKS_URL": url})
    assert settings.josh_oauth_jwks_url == url


@requirement("federal:auth:oauth")
@pytest.mark.anyio
async def test_metadata_that_names_another_issuer_is_not_believed(rotating: Issuer) -> None:
    with pytest.raises(IssuerUnreachable):
        await SigningKeys(rotating.url.replace("127.0.0.1", "localhost")).find_key(
            rotating.kid, "RS256"
        )


@requirement("federal:auth:oauth")
@pytest.mark.anyio
async def test_an_issuer_elsewhere_cannot_send_us_to_a_port_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    async def fetch_document(web: httpx2.AsyncClient, url: str) -> dict[str, Any]:
        asked.append(url)
        return {"issuer": "https://id.example.org", "jwks_uri": "http://127.0.0.1:9/keys"}

    monkeypatch.setattr(oauth, "_fetch_json_document", fetch_document)
    with pytest.raises(IssuerUnreachable):
        await SigningKeys("https://id.example.org").find_key("key", "RS256")
    assert not [url for url in asked if "127.0.0.1" in url]


@requirement("federal:auth:oauth")
def test_where_metadata_is_looked_for() -> None:
    assert list_metadata_urls("https://id.example.org/tenant/") == [
        "https://id.example.org/.well-known/oauth-authorization-server/tenant",
        "https://id.example.org/.well-known/openid-configuration/tenant",
        "https://id.example.org/tenant/.well-known/openid-configuration",
    ]
    assert len(list_metadata_urls("https://id.example.org")) == 2


# --- the posture of each face ---


@requirement("federal:AC-24", "federal:auth:disabled", "federal:AC-03", "federal:AC-26")
@pytest.mark.anyio
@pytest.mark.parametrize("wire", [LEGACY, MODERN])
async def test_disabled_takes_calls_of_anybody_and_logs_them(opened: Served, wire: str) -> None:
    async with connect_http(f"{opened.url}/federal/mcp", wire) as client:
        assert not (await client.call_tool("search", {"query": "rail"})).is_error
        assert (await client.call_tool("get_bill", {"bill_id": "hr:119:1"})).is_error
    found, missing = opened.calls()[-2:]
    assert (found["tool_name"], found["result_status"]) == ("search", "ok")
    assert (missing["tool_name"], missing["result_status"]) == ("get_bill", "error")
    assert found["caller_kind"] == missing["caller_kind"] == "anonymous"
    assert all(call["request_id"] and call["duration_ms"] >= 0 for call in (found, missing))


@requirement("federal:AC-24", "federal:auth:disabled", "federal:AC-03")
def test_disabled_opens_the_federal_base_and_nothing_else(opened: Served, ask: Ask) -> None:
    for token in (None, "whatever"):
        assert ask(opened, "/v1/bills", token).status_code == 200
    for path in ("/mcp", "/text/mcp", "/policy/mcp", "/api/v1/policies", "/docs", "/metrics"):
        assert ask(opened, path, None).status_code == 401, path
        assert ask(opened, path, "sesame").status_code not in (401, 404), path
    assert opened.get(f"{WELL_KNOWN}/federal/mcp").json()["authorization_servers"] == []
    # Where a key is asked for, this server itself gives tokens to apps.
    for path in (WELL_KNOWN, f"{WELL_KNOWN}/mcp"):
        assert opened.get(path).json()["authorization_servers"] == [opened.url]


@requirement("federal:auth:oauth")
def test_oauth_guards_the_federal_and_the_common_face_and_keys_the_others(
    guarded: Served, issuer: Issuer, ask: Ask
) -> None:
    """The face of all bases takes the strictest posture among them."""
    for path in (*GUARDED, "/docs", "/metrics", "/"):
        assert ask(guarded, path, "sesame").status_code == 401, path
        assert ask(guarded, path, issuer.token()).status_code not in (401, 404), path
    for path in ("/text/mcp", "/policy/mcp", "/guidance/mcp", "/api/v1/policies"):
        assert ask(guarded, path, "sesame").status_code not in (401, 404), path
        refused = ask(guarded, path, issuer.token())
        challenge = refused.headers["www-authenticate"]
        assert (refused.status_code, challenge.split()[0].rstrip(",")) == (401, "Bearer")
        assert issuer.url not in challenge
        assert ("resource_metadata" in challenge) == path.endswith("/mcp")


@requirement("room:auth:open-paths", "federal:landing")
def test_what_tells_of_the_federal_base_is_open_and_nothing_beside_it(guarded: Served) -> None:
    for path in ("/mcp", "/federal/mcp"):
        page = guarded.get(path, Accept="text/html")
        assert (page.status_code, page.headers["content-type"][:9]) == (200, "text/html")
        assert guarded.get(path, Accept="text/event-stream").status_code == 401
        assert "get_bill_dossier" in page.text
        for hidden in ("remove_document", "get_policy_section", "get_kb_content", "assess_against"):
            assert hidden not in page.text
    assert guarded.get("/server.json").json()["name"].endswith("/josh")
    for path in ("/server.json/", "/text/server.json", "/federal/server.json"):
        assert guarded.get(path).status_code == 401, path
    for path in ("/text/mcp", "/policy/mcp", "/mcp/", "//mcp", f"{WELL_KNOWN}/", "/v1", "/v1/"):
        assert guarded.get(path, Accept="text/html").status_code == 401, path
    assert guarded.get("/.well-known/").status_code == 401
    assert guarded.get(f"{WELL_KNOWN}/text/mcp").json()["authorization_servers"] == [guarded.url]
    assert (
        httpx2.post(guarded.url + WELL_KNOWN, timeout=HANG_SECONDS, trust_env=False).status_code
        == 405
    )


@requirement("federal:auth:disabled", "federal:auth:oauth")
def test_the_index_says_the_posture_of_each_face(
    locked_room: Served, opened: Served, guarded: Served, issuer: Issuer, ask: Ask
) -> None:
    def access(served: Served, token: str) -> dict[str, str]:
        listed = ask(served, "/", token).json()["servers"]
        return {server["name"]: server["access"] for server in listed}

    keys_alone = access(locked_room, "sesame")
    assert set(keys_alone.values()) == {"key"}
    assert access(opened, "sesame") == keys_alone | {"josh": "open"}
    with_tokens = {"josh": "oauth", "reading-room": "oauth"}
    assert access(guarded, issuer.token()) == keys_alone | with_tokens


NEEDED = {"JOSH_OAUTH_ISSUER": "https://id.example.org", "JOSH_OAUTH_AUDIENCE": AUDIENCE}


@requirement("federal:auth:oauth")
@pytest.mark.parametrize(
    "wrong",
    [
        {"JOSH_OAUTH_ISSUER": ""},
        {"JOSH_OAUTH_AUDIENCE": ""},
        {"JOSH_OAUTH_ISSUER": "http://id.example.org"},
        {"JOSH_OAUTH_ISSUER": "https://id.example.org?tenant=1"},
        {"JOSH_OAUTH_ISSUER": "http://localhost.example.org"},
        {"JOSH_OAUTH_JWKS_URL": "ftp://id.example.org/jwks"},
    ],
)
def test_oauth_without_what_it_needs_is_refused_by_name(
    tmp_path: Path, wrong: dict[str, str]
) -> None:
    with pytest.raises(InvalidSetting, match=next(iter(wrong))):
        make_resource_server(
            load_settings({}, {"JOSH_AUTH": "oauth", **NEEDED, **wrong}), KeyRing(tmp_path)
        )


@requirement("federal:auth:oauth")
def test_a_server_that_lacks_a_setting_does_not_start(tmp_path: Path) -> None:
    env = {"JOSH_AUTH": "oauth"}
    result = run("serve", "federal", "--port", "0", "--data", str(tmp_path), env=env)
    assert result.returncode == 2
    assert "JOSH_OAUTH_ISSUER" in result.stderr
    assert "Traceback" not in result.stderr


@requirement("room:keys", "federal:auth:oauth")
def test_a_key_for_a_subject_is_made_and_listed_without_a_secret(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path), "--json")
    made = json.loads(run("keys", "add", "ann", "--subject", SUBJECT, *data).stdout)
    (listed,) = json.loads(run("keys", "list", *data).stdout)["keys"]
    again = run("keys", "add", "eve", "--subject", SUBJECT, *data)
    assert made == {"name": "ann", "subject": SUBJECT}
    assert (listed["name"], listed["subject"]) == ("ann", SUBJECT)
    assert again.returncode == 1 and "for that subject already" in again.stderr
    assert not KeyRing(tmp_path).has_keys()  # nobody can send it, so it closes no other face


@requirement("room:keys")
def test_a_table_from_before_subjects_is_brought_up_to_date(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "keys.db") as db:
        db.execute(
            "CREATE TABLE api_keys (name TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, "
            "created_at TEXT NOT NULL) STRICT"
        )
        digest = hashlib.sha256(b"old").digest()
        db.execute("INSERT INTO api_keys VALUES ('old', ?, '2026-01-01')", (digest,))
    ring = KeyRing(tmp_path)
    ring.add_subject("ann", SUBJECT)
    old, ann = ring.find_holder(b"old"), ring.find_subject_holder(SUBJECT)
    assert old and ann and (old.name, ann.name) == ("old", "ann")


@requirement("room:keys")
@pytest.mark.parametrize("subject", ["", "  ", "a\nb", "x" * 256])
def test_what_can_be_no_subject_is_refused(tmp_path: Path, subject: str) -> None:
    with pytest.raises(InvalidSubject):
        KeyRing(tmp_path).add_subject("ann", subject)


@requirement("room:auth:bind", "federal:auth:oauth")
def test_tokens_before_everything_let_it_listen_to_other_machines(
    tmp_path: Path, issuer: Issuer, ask: Ask
) -> None:
    with serve_room(
        "federal", "--host", "0.0.0.0", data=tmp_path / "data", env=issuer.settings()
    ) as served:
        assert ask(served, "/v1/bills", None).status_code == 401
    partly = run("serve", "--host", "0.0.0.0", "--data", str(tmp_path), env=issuer.settings())
    disabled = {"JOSH_AUTH": "disabled"}
    openly = run("serve", "federal", "--host", "0.0.0.0", "--data", str(tmp_path), env=disabled)
    assert (partly.returncode, openly.returncode) == (1, 1)
    assert "--insecure" in partly.stderr and "--insecure" in openly.stderr
