"""Prints the commands, settings and error codes of the interpreter's own Reading Room as JSON.

Run as a script by the interpreter of any version, so it knows the modules of all of them.
"""

import importlib
import json
import pkgutil
from pathlib import Path
from typing import Any

import click

import readingroom
from readingroom.cli import main as readingroom_command
from readingroom.core.errors import KnowledgeError

# Where the settings are, in the newest version first.
_SETTINGS_MODULES = ("readingroom.settings", "readingroom.core.settings")
# Keys of a setting's schema that are for our own code, or stand beside it already.
_NOT_PUBLIC = ("title", "default", "env", "flag", "not_for_sample", "empty_counts")
_PARAMETER_KEYS = (
    *("name", "param_type_name", "opts", "secondary_opts", "required", "nargs", "multiple"),
    *("default", "envvar", "help", "hidden", "is_flag", "flag_value", "count", "type"),
)


def main() -> None:
    context = click.Context(readingroom_command, info_name="readingroom")
    parts = {
        "cli": describe_command(readingroom_command, context),
        "settings": describe_settings(),
        "errors": describe_errors(),
    }
    print(json.dumps(parts, default=repr))


def describe_command(command: click.Command, context: click.Context) -> dict[str, Any]:
    described: dict[str, Any] = {
        "help": command.help,
        "epilog": command.epilog,
        "parameters": [describe_parameter(parameter) for parameter in command.params],
    }
    if isinstance(command, click.Group):
        described["commands"] = {}
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            inner_context = click.Context(inner, info_name=name, parent=context)
            described["commands"][name] = describe_command(inner, inner_context)
    return described


def describe_parameter(parameter: click.Parameter) -> dict[str, Any]:
    described = parameter.to_info_dict()
    kind = {key: described["type"].get(key) for key in ("param_type", "choices", "min", "max")}
    described["type"] = {key: value for key, value in kind.items() if value is not None}
    return {key: described[key] for key in _PARAMETER_KEYS if described.get(key)}


def describe_settings() -> dict[str, Any]:
    module = next(filter(None, map(import_if_present, _SETTINGS_MODULES)))
    schema = module.Settings.model_json_schema()
    return {
        name: {
            "variable": field.json_schema_extra["env"],
            "default": repr(field.get_default(call_default_factory=True)).replace(
                str(Path.home()), "~"
            ),
            "schema": {
                key: value
                for key, value in schema["properties"][name].items()
                if key not in _NOT_PUBLIC
            },
        }
        for name, field in module.Settings.model_fields.items()
    }


def import_if_present(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def describe_errors() -> dict[str, Any]:
    for module in pkgutil.walk_packages(readingroom.__path__, "readingroom."):
        if module.name.endswith(".errors"):
            importlib.import_module(module.name)
    return {
        error.code: {"status": error.http_status, "type": error.__new__(error).kind}
        for error in descendants(KnowledgeError)
    }


def descendants(parent: type[Any]) -> Any:
    for child in parent.__subclasses__():
        yield child
        yield from descendants(child)


main()
