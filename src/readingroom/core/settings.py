"""How settings are declared and read, and those that every base shares.

A flag beats the environment, which beats `readingroom.toml` in the data directory, which beats the
default. This is the only module that reads the environment.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import platformdirs
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo

from readingroom.core.errors import InvalidSetting

# Pydantic would look for plugins in every package that is installed, at each start. What accepts
# our input must not depend on them anyway.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

LogLevel = Literal["debug", "info", "warning", "error"]

CONFIGURATION_FILE_NAME = "readingroom.toml"
MODELS_FOLDER_NAME = "models"
SAMPLE_MARK_FILE_NAME = "sample.json"
"""The file that makes a data directory the sample's."""

HOST_URL_PATTERN = r"^https?://[A-Za-z0-9.:\[\]-]+$"
"""Pattern of a setting that names a host to call."""

# What a sandboxed process needs to find its programs and files, and no secret of ours.
_SANDBOX_ENVIRONMENT_NAMES = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TESSDATA_PREFIX", "LD_LIBRARY_PATH"),
    *("PYTHONPATH", "PYTHONHASHSEED", "SYSTEMROOT", "TEMP", "TMP"),
)


def _split_commas(setting_value: object) -> object:
    """Split a list written the way an environment variable can hold it: `a, b`."""
    if isinstance(setting_value, str):
        return tuple(
            list_item.strip() for list_item in setting_value.split(",") if list_item.strip()
        )
    return setting_value


def strip_key(setting_value: object) -> object:
    """Return a key as a header can carry it: without the line break at the end of a file.

    Raise `ValueError` for a key of blanks, which cannot be sent.
    """
    stripped_key = setting_value.strip() if isinstance(setting_value, str) else setting_value
    if stripped_key == "":
        raise ValueError("a key of blanks cannot be sent")
    return stripped_key


def _strip_database_url(setting_value: object) -> object:
    """Return the URL of a database without blanks around it; None for an empty one.

    Raise `ValueError` for one of blanks alone: the driver would go to any database of this machine.
    """
    if not isinstance(setting_value, str):
        return setting_value
    stripped_url = setting_value.strip()
    if setting_value and not stripped_url:
        raise ValueError(
            "there are only blanks in it; write postgresql://user:password@host/name, or leave it "
            "out to keep everything in the data directory"
        )
    return stripped_url or None


CommaSeparatedNames = Annotated[tuple[str, ...], BeforeValidator(_split_commas)]
DatabaseUrl = Annotated[SecretStr | None, BeforeValidator(_strip_database_url)]
CommaSeparatedPaths = Annotated[tuple[Path, ...], BeforeValidator(_split_commas)]


def declare_setting(
    default: Any,
    variable_name: str,
    description: str,
    *,
    accepts_empty: bool = False,
    is_used_by_sample: bool = True,
    flag_name: str | None = None,
    **bounds: Any,
) -> Any:
    """Declare a setting with its environment variable.

    `accepts_empty`: an empty variable is a value of its own, and not the same as none.
    `is_used_by_sample`: whether the sample takes it; not so where it would mix in a user's data.
    `flag_name`: the command-line option, where it is not the field's name.
    """
    schema_extra: dict[str, Any] = {"env": variable_name}
    if accepts_empty:
        schema_extra["empty_counts"] = True
    if not is_used_by_sample:
        schema_extra["not_for_sample"] = True
    if flag_name:
        schema_extra["flag"] = flag_name
    return Field(default, description=description, json_schema_extra=schema_extra, **bounds)


class RoomSettings(BaseModel):
    """What an operator can choose for every base. The server and the bases add their own."""

    # Built when first used: of the classes below it, a process uses the composed one alone.
    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True
    )

    data: Path = declare_setting(
        Path(),
        "READINGROOM_DATA",
        "Where everything is kept; by default the user's data directory.",
    )
    read_only: bool = declare_setting(False, "READINGROOM_READ_ONLY", "List no tool that writes.")
    log_level: LogLevel = declare_setting(
        "info", "READINGROOM_LOG_LEVEL", "How much to log: debug, info, warning or error."
    )
    redis_url: SecretStr | None = declare_setting(
        None,
        "REDIS_URL",
        "A Redis or Valkey server that several processes share; by default each has its own state.",
        is_used_by_sample=False,
    )
    database_url: DatabaseUrl = declare_setting(
        None,
        "READINGROOM_DATABASE_URL",
        "A PostgreSQL database with pgvector that several processes share "
        "(`postgresql://…`, with `readingroom[postgres]`); by default each base keeps its data in "
        "the data directory, for one process.",
        is_used_by_sample=False,
    )
    embedding_model_dir: Path | None = declare_setting(
        None,
        "EMBEDDING_MODEL_DIR",
        "A folder with the embedding model (model.safetensors, tokenizer.json, config.json); "
        "by default the installed weights package, else what `readingroom model install` fetched.",
    )
    embedder: Path | None = declare_setting(
        None,
        "READINGROOM_EMBEDDER",
        "A folder with another encoder (model.onnx, tokenizer.json); an index keeps the one it was "
        "built with, and is built anew for another.",
    )
    reranker: Path | None = declare_setting(
        None,
        "READINGROOM_RERANKER",
        "A folder with a cross-encoder (model.onnx, tokenizer.json) that reads the first results "
        "of a search once more; by default the installed package's.",
    )
    second_look: bool = declare_setting(
        True,
        "READINGROOM_SECOND_LOOK",
        "Whether a cross-encoder reads the first results of a search by words and meaning once "
        "more: better answers, for some 0.1 s of two cores each.",
    )
    models_dir: Path | None = declare_setting(
        None,
        "READINGROOM_MODELS_DIR",
        "Where the model is kept as it is run; by default `models` in the data directory.",
    )
    embedding_precision: Literal["float32", "int8"] = declare_setting(
        "float32",
        "READINGROOM_EMBEDDING_PRECISION",
        "int8 embeds about twice as fast with slightly other vectors; an index keeps the one it "
        "was built with.",
    )
    embedding_threads: int | None = declare_setting(
        None,
        "READINGROOM_EMBEDDING_THREADS",
        "Threads that embed; by default one for each core.",
        ge=1,
    )
    worker_key: SecretStr | None = declare_setting(
        None,
        "READINGROOM_WORKER_KEY",
        "The key with which `readingroom embed-worker` embeds for a room elsewhere.",
    )
    embedding_device: Literal["cpu", "cuda", "auto"] = declare_setting(
        "cpu",
        "READINGROOM_EMBEDDING_DEVICE",
        "Where many texts are embedded: cpu, cuda (a graphics card, with `readingroom[gpu]`), or "
        "auto, which takes a card if there is one.",
        flag_name="--device",
    )
    model_url: str = declare_setting(
        "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main",
        "READINGROOM_MODEL_URL",
        "Where `readingroom model install` fetches the embedding model; its files are pinned.",
        pattern=r"^https?://\S+$",
    )
    max_document_bytes: int = declare_setting(
        256 * 1024 * 1024,
        "READINGROOM_MAX_DOCUMENT_BYTES",
        "The largest file that is ingested.",
        ge=1024,
    )
    ingest_seconds: float = declare_setting(
        300.0,
        "READINGROOM_INGEST_SECONDS",
        "Reading one file may take this long, OCR included.",
        gt=0,
        allow_inf_nan=False,
    )
    enable_ocr: bool = declare_setting(
        True, "ENABLE_OCR", "Read pages without a text layer by OCR, where tesseract is installed."
    )
    image_ratio_threshold: float = declare_setting(
        0.7,
        "IMAGE_RATIO_THRESHOLD",
        "A document whose pages are pictures to more than this share may be skipped.",
        ge=0,
        le=1,
    )
    image_skip: Literal["probe", "ratio"] = declare_setting(
        "probe",
        "IMAGE_SKIP",
        "`probe` reads two pages of a document of pictures by OCR before it is skipped; "
        "`ratio` skips it by the average image ratio of all its pages alone.",
    )

    @property
    def models_folder(self) -> Path:
        """Where the model is kept: what `readingroom model` fetched, and the graph it runs as."""
        return self.models_dir or self.data / MODELS_FOLDER_NAME

    @property
    def is_sample(self) -> bool:
        """Whether the data directory is the sample's: then every answer says so."""
        return is_sample(self.data)


AnySettings = TypeVar("AnySettings", bound=RoomSettings)


def is_sample(data_directory: Path) -> bool:
    """Return whether a data directory is the sample's."""
    return (data_directory / SAMPLE_MARK_FILE_NAME).exists()


def reveal_secret(secret_setting: SecretStr | None) -> str | None:
    """Return a secret as text; until then it hides itself from logs."""
    return secret_setting.get_secret_value() if secret_setting else None


def get_default_sample_directory() -> Path:
    """Return where the sample lives when no directory is named: beside the user's own data."""
    return Path(platformdirs.user_data_path("readingroom-demo", appauthor=False))


def read_settings(
    settings_class: type[AnySettings],
    flag_setting_values: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
) -> AnySettings:
    """Return settings of this kind, merged from flags, environment, file and defaults.

    Raise `InvalidSetting` with a line for each bad value.
    """
    environment_variables = os.environ if environment is None else environment
    flag_setting_values = {
        setting_name: setting_value
        for setting_name, setting_value in flag_setting_values.items()
        if setting_value is not None
    }
    chosen_setting_values = (
        _read_environment(settings_class, environment_variables) | flag_setting_values
    )
    # Before the file is read, because the file is inside the directory.
    data_directory = _choose_data_directory(chosen_setting_values.get("data"))
    file_setting_values = _read_configuration_file(data_directory / CONFIGURATION_FILE_NAME)
    if is_sample(data_directory):
        excluded_setting_names = [
            setting_name
            for setting_name, setting_field in settings_class.model_fields.items()
            if _find_field_extra(setting_field, "not_for_sample")
        ]
        if forbidden_setting_names := [
            setting_name
            for setting_name in excluded_setting_names
            if setting_name in flag_setting_values
        ]:
            flag_text = _format_flag(settings_class, forbidden_setting_names[0])
            raise InvalidSetting(f"{flag_text} does not go with the sample; leave it out")
        chosen_setting_values = {
            setting_name: setting_value
            for setting_name, setting_value in chosen_setting_values.items()
            if setting_name not in excluded_setting_names
        }
    try:
        return settings_class.model_validate(
            file_setting_values | chosen_setting_values | {"data": data_directory}
        )
    except ValidationError as error:
        raise InvalidSetting(
            _describe_errors(settings_class, error, file_setting_values, flag_setting_values)
        ) from error


def get_variable_name(setting_field: FieldInfo) -> str:
    """Return the environment variable of a setting."""
    return str(_find_field_extra(setting_field, "env"))


def read_shell_variable(
    variable_name: Literal["NO_COLOR", "TERM", "_READINGROOM_COMPLETE"],
) -> str:
    """Return what a shell says of its terminal; "" where it says nothing. These are no settings."""
    return os.environ.get(variable_name, "")


def make_sandbox_environment(**extra_variables: str) -> dict[str, str]:
    """Return the environment of a process that handles untrusted bytes."""
    inherited_variables = {
        variable_name: os.environ[variable_name]
        for variable_name in _SANDBOX_ENVIRONMENT_NAMES
        if variable_name in os.environ
    }
    return inherited_variables | extra_variables


def _find_field_extra(setting_field: FieldInfo, extra_name: str) -> Any:
    assert isinstance(setting_field.json_schema_extra, dict)
    return setting_field.json_schema_extra.get(extra_name)


def _choose_data_directory(chosen_path: str | Path | None) -> Path:
    data_path = Path(chosen_path or platformdirs.user_data_path("readingroom", appauthor=False))
    try:
        return data_path.expanduser().absolute()
    except (OSError, RuntimeError) as error:
        raise InvalidSetting(f"{data_path} cannot be the data directory: {error}") from error


def _read_environment(
    settings_class: type[RoomSettings], environment_variables: Mapping[str, str]
) -> dict[str, Any]:
    return {
        setting_name: environment_variables[get_variable_name(setting_field)]
        for setting_name, setting_field in settings_class.model_fields.items()
        if environment_variables.get(get_variable_name(setting_field))
        or (
            get_variable_name(setting_field) in environment_variables
            and _find_field_extra(setting_field, "empty_counts")
        )
    }


def _read_configuration_file(file_path: Path) -> dict[str, Any]:
    try:
        file_setting_values = tomllib.loads(file_path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidSetting(f"{file_path}: cannot be read as TOML: {error}") from error
    if "data" in file_setting_values:
        raise InvalidSetting(f"{file_path}: `data` cannot be set here: this file lies inside it")
    return file_setting_values


def _describe_errors(
    settings_class: type[RoomSettings],
    error: ValidationError,
    file_setting_values: Mapping[str, Any],
    flag_setting_values: Mapping[str, Any],
) -> str:
    """Return each bad value, named the way its author wrote it."""
    problem_texts = []
    for validation_problem in error.errors():
        origin_text = _describe_origin(
            settings_class,
            str(validation_problem["loc"][0]),
            file_setting_values,
            flag_setting_values,
        )
        problem_message = validation_problem["msg"].removeprefix("Value error, ")
        if validation_problem.get("ctx", {}).get("pattern") == HOST_URL_PATTERN:
            problem_message = "must be the address of a host alone, such as https://www.gov.uk"
        problem_texts.append(f"{origin_text}: {problem_message}")
    return "; ".join(problem_texts)


def _describe_origin(
    settings_class: type[RoomSettings],
    setting_name: str,
    file_setting_values: Mapping[str, Any],
    flag_setting_values: Mapping[str, Any],
) -> str:
    if setting_name in flag_setting_values:
        return _format_flag(settings_class, setting_name)
    if setting_name in file_setting_values:
        return f"readingroom.toml: {setting_name}"
    return get_variable_name(settings_class.model_fields[setting_name])


def _format_flag(settings_class: type[RoomSettings], setting_name: str) -> str:
    flag_name = _find_field_extra(settings_class.model_fields[setting_name], "flag")
    return str(flag_name) if flag_name else "--" + setting_name.replace("_", "-")
