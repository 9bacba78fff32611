"""`readingroom stdio`: one base over standard input and output, for a client that starts us."""

import os
import signal
from functools import partial

import anyio
import click

from readingroom.bases import BASES
from readingroom.commands.options import BASE_SETTING_NAMES, add_base_options
from readingroom.console.options import add_common_options, add_log_level_option
from readingroom.console.sample import open_sample_settings
from readingroom.core.imports import import_reference
from readingroom.server.observe.logging import configure_logging
from readingroom.server.settings import ServerSettings

_STDIO_BASE_NAMES = tuple(
    base_name for base_name, base_spec in BASES.items() if base_spec.serves_stdio
)


@click.command()
@click.argument("base", type=click.Choice(_STDIO_BASE_NAMES))
@add_base_options
@click.option("--read-only", is_flag=True, default=None, help="List no tool that writes.")
@add_log_level_option
@partial(
    add_common_options,
    common_setting_names=(*BASE_SETTING_NAMES, "read_only", "log_level"),
    makes_sample=True,
)
def stdio(base: str, settings: ServerSettings, as_json: bool) -> None:
    """Serve BASE over standard input and output.

    This is what a client's configuration names as its command; standard output belongs to the
    protocol and the log goes to standard error.

    \b
      readingroom stdio text --file notes.txt
    """
    configure_logging(settings.log_level, should_block=False)
    with open_sample_settings(settings, [BASES[base]]) as chosen_settings:
        opened_base = BASES[base].open_base(chosen_settings)
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, _exit_at_once)
        # It imports the server, which nobody should wait for who asks for help.
        serve_stdio = import_reference("readingroom.server.stdio:serve_stdio")
        anyio.run(serve_stdio, opened_base, chosen_settings.is_sample)


def _exit_at_once(*signal_and_frame: object) -> None:
    """Exit without cleaning up: a thread that waits for the next line cannot be interrupted."""
    os._exit(0)
