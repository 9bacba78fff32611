"""docs/settings.md: every setting, what it may hold, and which flag sets it."""

import json
import tomllib
from collections.abc import Iterator

import click
from pydantic.fields import FieldInfo

from readingroom.core.settings import get_variable_name
from readingroom.protocol.tool import Schema
from readingroom.settings import Settings
from scripts.docs.cli import walk
from scripts.docs.markdown import block, code, page, slug, table, wrapped
from scripts.docs.tools import kind

# Defaults that depend on the machine, or whose value would not explain itself.
DEFAULTS_IN_WORDS = {
    "data": (
        "`readingroom` in the user's data directory: `~/.local/share` on Linux (or "
        "`XDG_DATA_HOME`), `~/Library/Application Support` on macOS"
    ),
    "port": "8000 for all bases, the port of its contract for one base",
    "kb_file": "the sample that comes with the package",
    "kb_description": "a sentence about the sample, or a general one for a file of your own",
}


def render_settings_page() -> str:
    intro = """\
A flag beats the environment, which beats `readingroom.toml` in the data directory, which beats the
default. An empty variable counts as not set. Flags are options of the commands in
[cli.md](cli.md). An unknown key or a wrong value stops the command with exit code 2 and a line that
names it."""
    example = """\
port = 8080
allowed_hosts = ["room.example.org"]
kb_file = "/srv/notes.txt"
log_level = "warning\""""
    lists = """\
A list is written `a, b` in a variable and `["a", "b"]` in the file. A switch is `true` or `false`.
`readingroom.toml` may look like this:"""
    rows = [
        (f"[{code(get_variable_name(field))}](#{slug(get_variable_name(field))})", toml_key(name))
        for name, field in Settings.model_fields.items()
    ]
    overview = table(("variable", "key in `readingroom.toml`"), *rows)
    schemas = Settings.model_json_schema()["properties"]
    sections = [
        setting(name, field, schemas[name]) for name, field in Settings.model_fields.items()
    ]
    return page("Settings", intro, lists, block("toml", example), overview, *sections)


def setting(name: str, field: FieldInfo, schema: Schema) -> str:
    facts = [
        f"- Key in `readingroom.toml`: {toml_key(name)}",
        f"- Value: {value(schema)}",
        f"- Default: {default(name, field)}",
        f"- Flag: {', '.join(list_flags(name)) or 'none'}",
    ]
    lines = "\n".join(wrapped(fact, "  ") for fact in facts)
    return "\n\n".join([f"## {code(get_variable_name(field))}", str(field.description), lines])


def toml_key(name: str) -> str:
    return "none: the file is in this directory" if name == "data" else code(name)


def value(schema: Schema) -> str:
    """Describe in words what a setting may hold."""
    arms = [arm for arm in schema.get("anyOf", [schema]) if arm.get("type") != "null"]
    return " or ".join(f"{kind(arm)}{bounds(arm)}" for arm in arms)


def bounds(schema: Schema) -> str:
    phrases = {
        "minimum": "at least {}",
        "exclusiveMinimum": "more than {}",
        "maximum": "at most {}",
        "maxLength": "at most {} characters",
        "pattern": "of the form `{}`",
    }
    return "".join(
        f", {text.format(schema[key])}" for key, text in phrases.items() if key in schema
    )


def default(name: str, field: FieldInfo) -> str:
    if name in DEFAULTS_IN_WORDS:
        return DEFAULTS_IN_WORDS[name]
    if field.default is None or field.default == ():
        return "not set"
    return code(json.dumps(field.default))


def list_flags(name: str) -> Iterator[str]:
    """Yield every command's option that sets this setting."""
    for path, command in walk():
        for option in command.params:
            if isinstance(option, click.Option) and option.name == name:
                yield f"{code(option.opts[0])} of [{code(path)}](cli.md#{slug(path)})"


def list_variables() -> set[str]:
    return {get_variable_name(field) for field in Settings.model_fields.values()}


def check_settings_file(text: str) -> None:
    """Raise ValueError when a block would be refused as `readingroom.toml`."""
    for key in tomllib.loads(text):
        if key not in Settings.model_fields or key == "data":
            raise ValueError(f"readingroom.toml has no key {key}")
