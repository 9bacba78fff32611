"""`readingroom stdio`: one base over standard input and output, for a client that starts us."""

import os
import signal
from functools import partial

import click

from readingroom.commands.console import common, log_level
from readingroom.commands.sample import sample_upstream
from readingroom.core.settings import load
from readingroom.server.catalogue import STDIO


@click.command()
@click.argument("base", type=click.Choice(STDIO))
@click.option("--file", "kb_file", type=click.Path(), help="The text base's file [KB_FILE].")
@click.option("--read-only", is_flag=True, default=None, help="List no tool that writes.")
@log_level
@partial(common, makes_sample=True)
def stdio(base: str, as_json: bool, **flags: str | bool | None) -> None:
    """Serve BASE over standard input and output.

    This is what a client's configuration names as its command; standard output belongs to the
    protocol and the log goes to standard error.

    \b
      readingroom stdio text --file notes.txt
    """
    import anyio

    from readingroom.server.catalogue import open_bases
    from readingroom.server.observe.logging import configure
    from readingroom.server.stdio import serve_stdio

    settings = load(flags)
    configure(settings.log_level, waiting=False)
    with sample_upstream(settings) as settings:
        (opened,) = open_bases([base], settings)
        for wish in (signal.SIGINT, signal.SIGTERM):
            signal.signal(wish, _leave)
        anyio.run(serve_stdio, opened, settings.sample)


def _leave(*signal_and_frame: object) -> None:
    """End at once: a thread that waits for the client's next line cannot be called back."""
    os._exit(0)
