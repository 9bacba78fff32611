"""Completes arguments in a shell from what the data directory holds: slugs, sections, ids."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from readingroom.console.options import get_sample_folder, run_command
from readingroom.core.errors import KnowledgeError
from readingroom.core.progress import no_progress
from readingroom.core.settings import RoomSettings, read_shell_variable
from readingroom.protocol.command import Command
from readingroom.protocol.spec import BaseSpec

_MAX_COMPLETIONS = 200
_NOT_PLAIN_CHARACTER_PATTERN = re.compile(r"[^\w./:@%+,-]")

ListValues = Callable[[RoomSettings, Mapping[str, Any]], Iterable[str]]
"""Returns what an argument may be, given the settings and the arguments typed before it."""
CompleteArgument = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def complete_with(list_values: ListValues) -> CompleteArgument:
    """Return a completion for `shell_complete=`. Where nothing can be read it offers nothing."""

    def list_completions(
        context: click.Context, parameter: click.Parameter, prefix: str
    ) -> list[CompletionItem]:
        try:
            settings = _load_completion_settings(context)
            if not settings.data.is_dir():
                return []
            completion_values = [
                completion_value
                for completion_value in dict.fromkeys(list_values(settings, context.params))
                if completion_value.lower().startswith(prefix.lower())
            ]
        except (KnowledgeError, OSError):  # a line that is being typed is no place for errors
            return []
        return [
            CompletionItem(_quote_for_shell(completion_value))
            for completion_value in completion_values[:_MAX_COMPLETIONS]
        ]

    return list_completions


def run_quietly(command: Command, base_spec: BaseSpec, settings: RoomSettings) -> dict[str, Any]:
    """Return the result of a command that reads, without a word about how far it has come."""
    return run_command(command, base_spec, settings, no_progress)


def _load_completion_settings(context: click.Context) -> RoomSettings:
    data_option = context.params.get("data")
    if context.params.get("demo"):
        data_option = str(get_sample_folder(data_option, may_create=False))
    settings: RoomSettings = context.find_root().obj({"data": data_option})
    return settings


def _quote_for_shell(completion_value: str) -> str:
    # Bash takes what it is given as it stands; the other shells quote it themselves.
    is_bash = read_shell_variable("_READINGROOM_COMPLETE").startswith("bash")
    return (
        _NOT_PLAIN_CHARACTER_PATTERN.sub(r"\\\g<0>", completion_value)
        if is_bash
        else completion_value
    )
