"""Every setting, with where it may come from: a flag, the environment, readingroom.toml, a default.

A flag beats the environment, which beats `readingroom.toml` in the data directory, which beats the
default. This is the only module that reads the environment.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
)
from pydantic.fields import FieldInfo

from readingroom.core.errors import InvalidSetting

LogLevel = Literal["debug", "info", "warning", "error"]

CONFIGURATION = "readingroom.toml"
MODELS = "models"
SAMPLE_MARK = "sample.json"
"""The file that makes a data directory the sample's."""

# What would mix the sample with something of the user's own.
_NOT_FOR_SAMPLE = (
    *("redis_url", "kb_file", "kb_description", "policy_roots", "document_roots"),
    "chroma_persist_dir",
)


def _split(value: object) -> object:
    """A list written the way an environment variable can hold it: `a, b`."""
    if isinstance(value, str):
        return tuple(item.strip() for item in value.split(",") if item.strip())
    return value


def _stripped(value: object) -> object:
    """A key as a header can carry it: a file's last line break is no part of it."""
    text = value.strip() if isinstance(value, str) else value
    if text == "":
        raise ValueError("a key of blanks cannot be sent")
    return text


Names = Annotated[tuple[str, ...], BeforeValidator(_split)]
Paths = Annotated[tuple[Path, ...], BeforeValidator(_split)]

# Keys that decide who comes in travel over TLS, or do not leave this machine.
_ISSUER = (
    r"^(https://[^\s/?#@]+|http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?)(/[^\s?#]*)?$"
)
TRUSTED_URL = _ISSUER.removesuffix("$") + r"(\?[^\s#]*)?$"
_HOST = r"^https?://[A-Za-z0-9.:\[\]-]+$"

# What a confined process may know: how to find its programs and files, and no secret of ours.
_BARE = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TESSDATA_PREFIX", "LD_LIBRARY_PATH"),
    *("PYTHONPATH", "PYTHONHASHSEED", "SYSTEMROOT", "TEMP", "TMP"),
)


def _setting(
    default: Any, env: str, description: str, empty_counts: bool = False, **bounds: Any
) -> Any:
    """`empty_counts`: an empty variable is a value of its own, and not the same as none."""
    extra: dict[str, Any] = {"env": env} | ({"empty_counts": True} if empty_counts else {})
    return Field(default, description=description, json_schema_extra=extra, **bounds)


class Settings(BaseModel):
    """What an operator can choose. Field names are the keys of `readingroom.toml`."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    data: Path = _setting(
        Path(),
        "READINGROOM_DATA",
        "Where everything is kept; by default the user's data directory.",
    )
    host: str = _setting("127.0.0.1", "READINGROOM_HOST", "The address to listen on.")
    port: int | None = _setting(
        None,
        "READINGROOM_PORT",
        "The port to listen on; by default 8000 for all bases, else the port of the contract.",
        ge=0,
        le=65535,
    )
    insecure: bool = _setting(
        False,
        "READINGROOM_INSECURE",
        "Serve without any key on an address that other machines can reach.",
    )
    read_only: bool = _setting(False, "READINGROOM_READ_ONLY", "List no tool that writes.")
    log_level: LogLevel = _setting(
        "info", "READINGROOM_LOG_LEVEL", "How much to log: debug, info, warning or error."
    )
    api_key: Annotated[SecretStr, BeforeValidator(_stripped)] | None = _setting(
        None, "MCP_API_KEY", "The key every request but /health must carry; empty means none."
    )
    josh_auth: Literal["disabled", "oauth"] | None = _setting(
        None,
        "JOSH_AUTH",
        "Who may ask the federal base: `disabled` opens it and /v1 to everybody, `oauth` asks for "
        "a token; by default the keys decide, as for every base.",
    )
    josh_oauth_issuer: str | None = _setting(
        None,
        "JOSH_OAUTH_ISSUER",
        "The authorization server whose tokens are taken, exactly as their `iss` names it.",
        pattern=_ISSUER,
    )
    josh_oauth_audience: Names = _setting(
        (),
        "JOSH_OAUTH_AUDIENCE",
        "What a token's `aud` must name, one of them if there are several; usually the address of "
        "/mcp as clients know it.",
    )
    josh_oauth_jwks_url: str | None = _setting(
        None,
        "JOSH_OAUTH_JWKS_URL",
        "Where the issuer's signing keys are; by default found through its metadata.",
        pattern=TRUSTED_URL,
    )
    registry_org: str = _setting(
        "reading-room",
        "READINGROOM_REGISTRY_ORG",
        "The GitHub organisation under which the MCP Registry lists the federal server.",
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9-]{0,37}[A-Za-z0-9])?$",
    )
    allowed_hosts: Names = _setting(
        (),
        "READINGROOM_ALLOWED_HOSTS",
        "Host names this server answers to, besides its own address and loopback.",
    )
    allowed_origins: Names = _setting(
        (),
        "READINGROOM_ALLOWED_ORIGINS",
        "Origins of web pages that may call this server, besides loopback.",
    )
    public_url: str | None = _setting(
        None,
        "READINGROOM_PUBLIC_URL",
        "The address clients use when a proxy stands in front, such as https://room.example.org.",
        pattern=r"^https?://[^/\s]+$",
    )
    tls_cert: Path | None = _setting(
        None,
        "READINGROOM_TLS_CERT",
        "A certificate chain (PEM): HTTPS is spoken, with no proxy in front. Needs the key too.",
    )
    tls_key: Path | None = _setting(
        None, "READINGROOM_TLS_KEY", "The private key of that certificate (PEM, no password)."
    )
    trusted_proxies: Names = _setting(
        (),
        "READINGROOM_TRUSTED_PROXIES",
        "Addresses of proxies whose X-Forwarded-For is believed.",
    )
    rate_limit: int = _setting(
        600,
        "READINGROOM_RATE_LIMIT",
        "Requests a minute for one caller; 0 means no limit.",
        ge=0,
        le=10**9,
    )
    max_body_bytes: int = _setting(
        4 * 1024 * 1024,
        "READINGROOM_MAX_BODY_BYTES",
        "The largest request body that is read.",
        ge=1024,
    )
    max_sessions: int = _setting(
        1000, "READINGROOM_MAX_SESSIONS", "Sessions open at once on one face.", ge=1
    )
    session_idle_seconds: float = _setting(
        1800.0,
        "READINGROOM_SESSION_IDLE_SECONDS",
        "A session without a request for this long is ended.",
        gt=0,
        allow_inf_nan=False,
    )
    otel_endpoint: str | None = _setting(
        None,
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "Where OpenTelemetry spans are sent (OTLP over HTTP); needs the `otel` extra.",
    )
    kb_file: Annotated[Path, AfterValidator(Path.expanduser)] | None = _setting(
        None, "KB_FILE", "The text base's file; by default the packaged sample."
    )
    kb_description: str | None = _setting(
        None,
        "READINGROOM_KB_DESCRIPTION",
        "What the text base says it holds.",
        max_length=500,
    )
    redis_url: SecretStr | None = _setting(
        None,
        "REDIS_URL",
        "A Redis or Valkey server that several processes share; by default each has its own state.",
    )
    govuk_base_url: str = _setting(
        "https://www.gov.uk",
        "GOVUK_BASE_URL",
        "Where the guidance base asks; the one host it ever calls.",
        pattern=_HOST,
    )
    govuk_timeout_seconds: float = _setting(
        10.0,
        "READINGROOM_GOVUK_TIMEOUT_SECONDS",
        "How long the guidance base waits for GOV.UK in one call, retries included.",
        gt=0,
        le=120,
        allow_inf_nan=False,
    )
    govinfo_url: str = _setting(
        "https://www.govinfo.gov",
        "READINGROOM_GOVINFO_URL",
        "Where `federal sync` finds the bulk data of the Government Publishing Office.",
        pattern=_HOST,
    )
    federal_register_url: str = _setting(
        "https://www.federalregister.gov",
        "READINGROOM_FEDERAL_REGISTER_URL",
        "Where `federal sync` asks for the documents of the Federal Register.",
        pattern=_HOST,
    )
    legislators_url: str = _setting(
        "https://unitedstates.github.io/congress-legislators",
        "READINGROOM_LEGISLATORS_URL",
        "Where `federal sync` finds the files of congress-legislators.",
        pattern=r"^https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._-]+)*$",
    )
    house_clerk_url: str = _setting(
        "https://clerk.house.gov",
        "READINGROOM_HOUSE_CLERK_URL",
        "Where `federal sync` finds the roll call votes of the House.",
        pattern=_HOST,
    )
    senate_url: str = _setting(
        "https://www.senate.gov",
        "READINGROOM_SENATE_URL",
        "Where `federal sync` finds the roll call votes of the Senate.",
        pattern=_HOST,
    )
    sync_pause_seconds: float = _setting(
        0.5,
        "READINGROOM_SYNC_PAUSE_SECONDS",
        "How long `federal sync` waits between two requests.",
        ge=0,
        le=60,
        allow_inf_nan=False,
    )
    cache_ttl_search_seconds: float = _setting(
        30.0,
        "CACHE_TTL_SEARCH_SECONDS",
        "How long a search of the guidance base is fresh; GOV.UK's max-age can shorten it.",
        ge=0,
        le=86_400,
    )
    cache_ttl_content_seconds: float = _setting(
        60.0,
        "CACHE_TTL_CONTENT_SECONDS",
        "How long a page of the guidance base is fresh; GOV.UK's max-age can shorten it.",
        ge=0,
        le=86_400,
    )
    cache_stale_seconds: float = _setting(
        86_400.0,
        "CACHE_STALE_SECONDS",
        "How long past its time a page may still be served while GOV.UK fails; 0 means never.",
        ge=0,
        le=30 * 86_400,
    )
    rate_limit_per_second: int = _setting(
        10,
        "RATE_LIMIT_PER_SECOND",
        "Guidance calls a second for one client, and requests a second to GOV.UK, which allows 10: "
        "more is for an upstream of one's own.",
        ge=1,
        le=1000,
    )
    embedding_model_dir: Path | None = _setting(
        None,
        "EMBEDDING_MODEL_DIR",
        "A folder with the embedding model (model.safetensors, tokenizer.json, config.json); "
        "by default the installed weights package, else what `readingroom model install` fetched.",
    )
    models_dir: Path | None = _setting(
        None,
        "READINGROOM_MODELS_DIR",
        "Where the model is kept as it is run; by default `models` in the data directory.",
    )
    embedding_precision: Literal["float32", "int8"] = _setting(
        "float32",
        "READINGROOM_EMBEDDING_PRECISION",
        "int8 embeds about twice as fast with slightly other vectors; an index keeps the one it "
        "was built with.",
    )
    embedding_threads: int | None = _setting(
        None,
        "READINGROOM_EMBEDDING_THREADS",
        "Threads that embed; by default one for each core.",
        ge=1,
    )
    model_url: str = _setting(
        "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main",
        "READINGROOM_MODEL_URL",
        "Where `readingroom model install` fetches the embedding model; its files are pinned.",
        pattern=r"^https?://\S+$",
    )
    policy_kb_port: int = _setting(
        3003,
        "POLICY_KB_PORT",
        "The port of the policy base when it is served alone; READINGROOM_PORT beats it.",
        ge=0,
        le=65535,
    )
    document_store_port: int = _setting(
        3002,
        "DOCUMENT_STORE_PORT",
        "The port of the documents base when it is served alone; READINGROOM_PORT beats it.",
        ge=0,
        le=65535,
    )
    chroma_persist_dir: str | None = _setting(
        None,
        "CHROMA_PERSIST_DIR",
        "Where the documents base keeps its chunks; by default in the data directory. "
        "Set to the empty string, it keeps everything in memory and forgets it at the end.",
        empty_counts=True,
    )
    document_roots: Paths | None = _setting(
        None,
        "DOCUMENT_ROOTS",
        "Folders that documents may be ingested from; by default the documents inbox and uploads.",
    )
    policy_roots: Paths | None = _setting(
        None,
        "POLICY_ROOTS",
        "Folders that policies may be ingested from; by default the policy inbox and uploads.",
    )
    max_document_bytes: int = _setting(
        256 * 1024 * 1024,
        "READINGROOM_MAX_DOCUMENT_BYTES",
        "The largest file that is ingested.",
        ge=1024,
    )
    ingest_seconds: float = _setting(
        1800.0,
        "READINGROOM_INGEST_SECONDS",
        "Reading one file may take this long, OCR included.",
        gt=0,
        allow_inf_nan=False,
    )
    enable_ocr: bool = _setting(
        True, "ENABLE_OCR", "Read pages without a text layer by OCR, where tesseract is installed."
    )
    image_ratio_threshold: float = _setting(
        0.7,
        "IMAGE_RATIO_THRESHOLD",
        "A document whose pages are pictures to more than this share may be skipped.",
        ge=0,
        le=1,
    )
    image_skip: Literal["probe", "ratio"] = _setting(
        "probe",
        "IMAGE_SKIP",
        "`probe` reads two pages of a document of pictures by OCR before it is skipped; "
        "`ratio` skips it by the average image ratio of all its pages alone.",
    )

    @property
    def models(self) -> Path:
        """Where the model is kept: what `readingroom model` fetched, and the graph it is run as."""
        return self.models_dir or self.data / MODELS

    @property
    def sample(self) -> bool:
        """Whether the data directory is the sample's: then every answer says so."""
        return is_sample(self.data)


def is_sample(data: Path) -> bool:
    return (data / SAMPLE_MARK).exists()


def revealed(secret: SecretStr | None) -> str | None:
    """A secret as it is used; it hides itself from logs until then."""
    return secret.get_secret_value() if secret else None


def sample_directory() -> Path:
    """Where the sample lives when no directory is named: beside the user's own data."""
    return Path(platformdirs.user_data_path("readingroom-demo", appauthor=False))


def load(flags: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Settings:
    """The settings in force. A flag that is None was not given; an empty variable is not set,
    unless its setting gives the empty string a meaning.
    """
    variables = os.environ if environment is None else environment
    given = {name: value for name, value in flags.items() if value is not None}
    chosen = _from_environment(variables) | given
    data = _data_directory(chosen.get("data"))
    written = _from_file(data / CONFIGURATION)
    if is_sample(data):
        if mixed := [name for name in _NOT_FOR_SAMPLE if name in given]:
            raise InvalidSetting(f"{_flag(mixed[0])} does not go with the sample; leave it out")
        chosen = {name: value for name, value in chosen.items() if name not in _NOT_FOR_SAMPLE}
    try:
        return Settings.model_validate(written | chosen | {"data": data})
    except ValidationError as error:
        raise InvalidSetting(_told(error, written, given)) from error


def _data_directory(chosen: str | Path | None) -> Path:
    path = Path(chosen or platformdirs.user_data_path("readingroom", appauthor=False))
    try:
        return path.expanduser().absolute()
    except (OSError, RuntimeError) as error:
        raise InvalidSetting(f"{path} cannot be the data directory: {error}") from error


def bare_environment(**more: str) -> dict[str, str]:
    """The environment of a process that handles untrusted bytes."""
    return {name: os.environ[name] for name in _BARE if name in os.environ} | more


def variable(field: FieldInfo) -> str:
    """The environment variable of a setting."""
    extra = field.json_schema_extra
    assert isinstance(extra, dict)
    return str(extra["env"])


def _empty_counts(field: FieldInfo) -> bool:
    return isinstance(field.json_schema_extra, dict) and "empty_counts" in field.json_schema_extra


def _from_environment(variables: Mapping[str, str]) -> dict[str, Any]:
    fields = Settings.model_fields
    names = {name: variable(field) for name, field in fields.items()}
    return {
        name: variables[env]
        for name, env in names.items()
        if variables.get(env) or (env in variables and _empty_counts(fields[name]))
    }


def _from_file(path: Path) -> dict[str, Any]:
    try:
        written = tomllib.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidSetting(f"{path}: cannot be read as TOML: {error}") from error
    if "data" in written:
        raise InvalidSetting(f"{path}: `data` cannot be set here: this file lies inside it")
    return written


def _told(error: ValidationError, written: Mapping[str, Any], flags: Mapping[str, Any]) -> str:
    """Each bad value, named the way its author wrote it."""
    return "; ".join(
        f"{_origin(str(problem['loc'][0]), written, flags)}: {problem['msg']}"
        for problem in error.errors()
    )


def _origin(name: str, written: Mapping[str, Any], flags: Mapping[str, Any]) -> str:
    if name in flags:
        return _flag(name)
    if name in written:
        return f"readingroom.toml: {name}"
    return variable(Settings.model_fields[name])


def _flag(name: str) -> str:
    return "--file" if name == "kb_file" else "--" + name.replace("_", "-")
