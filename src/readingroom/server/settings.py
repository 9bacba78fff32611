"""Settings of the server: where it listens, who may call it, how much."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, SecretStr

from readingroom.core.settings import CommaSeparatedNames, RoomSettings, declare_setting, strip_key

# The keys that decide who may call travel over TLS, or do not leave this machine.
ISSUER_URL_PATTERN = (
    r"^(https://[^\s/?#@]+|http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?)(/[^\s?#]*)?$"
)
# The address of a key set may have a query. An issuer may not (RFC 8414, section 2).
TRUSTED_URL_PATTERN = ISSUER_URL_PATTERN.removesuffix("$") + r"(\?[^\s#]*)?$"


MIN_KEY_CHARS = 20
"""A shorter MCP_API_KEY can be guessed; `serve` and `doctor` say so."""


class ServerSettings(RoomSettings):
    """What an operator can choose for the server."""

    host: str = declare_setting("127.0.0.1", "READINGROOM_HOST", "The address to listen on.")
    port: int | None = declare_setting(
        None,
        "READINGROOM_PORT",
        "The port to listen on; by default 8000 for all bases, else the port of the contract.",
        ge=0,
        le=65535,
    )
    insecure: bool = declare_setting(
        False,
        "READINGROOM_INSECURE",
        "Serve without any key on an address that other machines can reach.",
    )
    api_key: Annotated[SecretStr, BeforeValidator(strip_key)] | None = declare_setting(
        None,
        "MCP_API_KEY",
        "The key every request but /health and /ready must carry; empty means none.",
    )
    josh_auth: Literal["disabled", "oauth"] | None = declare_setting(
        None,
        "JOSH_AUTH",
        "Who may ask the federal base: `disabled` opens it and /v1 to everybody, `oauth` asks for "
        "a token; by default the keys decide, as for every base.",
    )
    josh_oauth_issuer: str | None = declare_setting(
        None,
        "JOSH_OAUTH_ISSUER",
        "The authorization server whose tokens are taken, exactly as their `iss` names it.",
        pattern=ISSUER_URL_PATTERN,
    )
    josh_oauth_audience: CommaSeparatedNames = declare_setting(
        (),
        "JOSH_OAUTH_AUDIENCE",
        "What a token's `aud` must name, one of them if there are several; usually the address of "
        "/mcp as clients know it.",
    )
    josh_oauth_jwks_url: str | None = declare_setting(
        None,
        "JOSH_OAUTH_JWKS_URL",
        "Where the issuer's signing keys are; by default found through its metadata.",
        pattern=TRUSTED_URL_PATTERN,
    )
    connectors: bool = declare_setting(
        True,
        "READINGROOM_CONNECTORS",
        "Let apps such as Claude and ChatGPT connect by a sign-in here (OAuth) where a key is "
        "asked for; `false` leaves the keys as the only way in.",
    )
    face_tools: CommaSeparatedNames = declare_setting(
        ("all",),
        "READINGROOM_FACE_TOOLS",
        "Whose tools /mcp lists where all bases are served: bases by name, `desk` for search, "
        "fetch and assess alone, or `all`. /mcp?bases=policy,documents chooses for one client.",
    )
    registry_org: str = declare_setting(
        "reading-room",
        "READINGROOM_REGISTRY_ORG",
        "The GitHub organisation under which the MCP Registry lists the federal server.",
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9-]{0,37}[A-Za-z0-9])?$",
    )
    allowed_hosts: CommaSeparatedNames = declare_setting(
        (),
        "READINGROOM_ALLOWED_HOSTS",
        "Host names this server answers to, besides its own address and loopback.",
    )
    allowed_origins: CommaSeparatedNames = declare_setting(
        (),
        "READINGROOM_ALLOWED_ORIGINS",
        "Origins of web pages that may call this server, besides loopback.",
    )
    public_url: str | None = declare_setting(
        None,
        "READINGROOM_PUBLIC_URL",
        "The address clients use when a proxy stands in front, such as https://room.example.org.",
        pattern=r"^https?://[^/\s]+$",
    )
    tls_cert: Path | None = declare_setting(
        None,
        "READINGROOM_TLS_CERT",
        "A certificate chain (PEM): HTTPS is spoken, with no proxy in front. Needs the key too.",
    )
    tls_key: Path | None = declare_setting(
        None, "READINGROOM_TLS_KEY", "The private key of that certificate (PEM, no password)."
    )
    trusted_proxies: CommaSeparatedNames = declare_setting(
        (),
        "READINGROOM_TRUSTED_PROXIES",
        "Addresses of proxies whose X-Forwarded-For is believed.",
    )
    rate_limit: int = declare_setting(
        600,
        "READINGROOM_RATE_LIMIT",
        "Requests a minute for one caller; 0 means no limit.",
        ge=0,
        le=10**9,
    )
    max_body_bytes: int = declare_setting(
        4 * 1024 * 1024,
        "READINGROOM_MAX_BODY_BYTES",
        "The largest request body that is read.",
        ge=1024,
    )
    max_sessions: int = declare_setting(
        1000, "READINGROOM_MAX_SESSIONS", "Sessions open at once on one face.", ge=1
    )
    max_sessions_per_caller: int = declare_setting(
        100,
        "READINGROOM_MAX_SESSIONS_PER_CALLER",
        "Sessions that one key, or without a key one address, may have open at once on one face.",
        ge=1,
    )
    session_idle_seconds: float = declare_setting(
        1800.0,
        "READINGROOM_SESSION_IDLE_SECONDS",
        "A session without a request for this long is ended.",
        gt=0,
        allow_inf_nan=False,
    )
    otel_endpoint: str | None = declare_setting(
        None,
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "Where OpenTelemetry spans are sent (OTLP over HTTP); needs the `otel` extra.",
    )
