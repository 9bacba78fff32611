"""docs/cli.md: the `--help` text of every command."""

from collections.abc import Iterator

import click

from readingroom.cli import main as readingroom
from scripts.docs.markdown import block, code, page


def render_cli_page() -> str:
    intro = """\
What `--help` prints. `make serve` installs the command as `.venv/bin/readingroom`. Exit codes: 0
for success (also when a server is stopped), 2 for a wrong option or setting, 130 after Ctrl-C, 1
for any other error."""
    parts = [f"## {code(path)}\n\n{block('text', render_help(path))}" for path, _ in walk()]
    return page("Command line", intro, *parts)


def walk(
    command: click.Command = readingroom, path: str = "readingroom"
) -> Iterator[tuple[str, click.Command]]:
    """Yield every command with the words that call it."""
    yield path, command
    for name, inner in sorted(subcommands(command).items()):
        yield from walk(inner, f"{path} {name}")


def subcommands(command: click.Command) -> dict[str, click.Command]:
    """Return the commands of a group by name; groups load them when they are asked for."""
    if not isinstance(command, click.Group):
        return {}
    context = click.Context(command)
    names = command.list_commands(context)
    return {name: inner for name in names if (inner := command.get_command(context, name))}


def render_help(path: str) -> str:
    name, *words = path.split()
    command: click.Command = readingroom
    context = click.Context(command, info_name=name, terminal_width=98, **command.context_settings)
    for word in words:
        command = subcommands(command)[word]
        context = click.Context(command, info_name=word, parent=context)
    return command.get_help(context)
