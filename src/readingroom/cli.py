"""The `readingroom` command: the names of its verbs; a verb is imported when it is run."""

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from readingroom import __version__
from readingroom.core.imports import import_reference
from readingroom.interrupts import (
    begin_command,
    end_command,
    report_interruption,
    was_interrupted,
)

_COMMAND_NAMES = (
    "serve",
    "ask",
    "eval",
    "embed-worker",
    "stdio",
    "keys",
    "model",
    "connect",
    "backup",
    "restore",
    "migrate",
    "doctor",
)
"""Each is a click command of its own name in the module of that name in `commands/`, whose name
has `_` for `-`.
"""


class _LazyGroup(click.Group):
    """Imports a verb when it is run, and the list of bases when a verb may be one of theirs."""

    def main(self, *arguments: Any, standalone_mode: bool = True, **options: Any) -> Any:
        """Run a command line and exit; the one place where an interrupt ends, however it came."""
        run_to_end: Callable[..., Any] = partial(super().main, standalone_mode=False)
        if not standalone_mode:
            return run_to_end(*arguments, **options)
        begin_command()
        try:
            exit_status = run_to_end(*arguments, **options)
        except BaseException as error:
            exit_status = _tell_end(error)
        sys.exit(exit_status if isinstance(exit_status, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb. Raise `_Interrupted`: click would print an empty line for the interrupt."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise _Interrupted from interrupt
        finally:
            end_command()

    def list_commands(self, ctx: click.Context) -> list[str]:
        base_group_names = [
            base_spec.name
            for base_spec in import_reference("readingroom.bases:BASES").values()
            if base_spec.cli
        ]
        return sorted([*_COMMAND_NAMES, *base_group_names])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _COMMAND_NAMES:
            module_name = cmd_name.replace("-", "_")
            command: click.Command = import_reference(
                f"readingroom.commands.{module_name}:{module_name}"
            )
            return command
        base_spec = import_reference("readingroom.bases:BASES").get(cmd_name)
        return base_spec.cli.import_value() if base_spec and base_spec.cli else None


class _Interrupted(Exception):
    """Ctrl-C, on its way through click."""


def _tell_end(error: BaseException) -> int:
    """Return the status of a command that raised; raise what is not for its reader."""
    end_command()
    # After an interrupt, whatever fails does so because something of it was broken off.
    if was_interrupted() or isinstance(error, _Interrupted | KeyboardInterrupt):
        return report_interruption()
    if isinstance(error, click.Abort):
        if isinstance(error.__cause__, KeyboardInterrupt):
            return report_interruption()
        click.echo("Nothing was changed.", err=True)  # a question was declined, or nobody answers
        return 1
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    raise error


@click.group(
    cls=_LazyGroup,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        # Here and not in the function below, which is not called when a line is completed.
        "obj": lambda flags: import_reference("readingroom.settings:load_settings")(flags),
    },
)
@click.version_option(__version__, prog_name="readingroom")
def main() -> None:
    """Official knowledge that AI agents can cite, over MCP.

    \b
      readingroom serve                         every base on http://127.0.0.1:8000
      readingroom ask "…" --on 2024-03-15       a question over every base, with citations
      readingroom eval questions.tsv            how often the right answer comes first
      readingroom stdio text --file notes.txt   one base for a client that starts us
      readingroom federal load PATH…            official bulk files into the federal base
      readingroom guidance search "reserves"    Charity Commission guidance, from the shell
      readingroom policy add NPPF …             a policy; `policy revise` adds its text
      readingroom documents ingest FOLDER …     the documents of a planning application
      readingroom doctor                        what is wrong in the data directory, if anything
      readingroom keys add NAME                 a key for one caller
      readingroom embed-worker --url …          this machine embeds for a room elsewhere
      readingroom connect claude-code           the configuration a client needs
      readingroom backup FILE                   everything in one file; `restore` reads it

    Every setting is also an environment variable and a line of readingroom.toml in the data
    directory; docs/settings.md lists them.
    """
    # Whatever is made from here on is its owner's alone: most of a data directory is documents.
    os.umask(0o077)
