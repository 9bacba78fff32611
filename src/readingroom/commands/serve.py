"""`readingroom serve`: one base or all of them over HTTP."""

from functools import partial

import click

from readingroom.bases import BASES
from readingroom.commands.options import BASE_SETTING_NAMES, add_base_options
from readingroom.commands.sample import reset_outdated_sample
from readingroom.console.options import add_common_options, add_device_option, add_log_level_option
from readingroom.console.sample import open_sample_settings
from readingroom.core.imports import import_reference
from readingroom.server.observe.logging import configure_logging
from readingroom.server.settings import ServerSettings

_SERVE_SETTING_NAMES = (
    "host",
    "port",
    "tls_cert",
    "tls_key",
    "insecure",
    "read_only",
    "log_level",
    "embedding_device",
)


@click.command()
@click.argument("base", type=click.Choice(sorted(BASES)), required=False)
@click.option("--host", help="Address to listen on [127.0.0.1].")
@click.option("--port", type=int, help="Port to listen on [8000, or the base's own].")
@click.option("--tls-cert", type=click.Path(), help="Speak HTTPS: certificate chain, PEM.")
@click.option("--tls-key", type=click.Path(), help="The private key of that certificate, PEM.")
@click.option("--insecure", is_flag=True, default=None, help="Allow a public address with no key.")
@click.option("--read-only", is_flag=True, default=None, help="List no tool that writes.")
@add_base_options
@click.option("--reset", is_flag=True, help="With --demo: load the sample anew.")
@add_device_option
@add_log_level_option
@partial(
    add_common_options,
    common_setting_names=(*_SERVE_SETTING_NAMES, *BASE_SETTING_NAMES),
    makes_sample=True,
)
def serve(base: str | None, reset: bool, settings: ServerSettings, as_json: bool) -> None:
    """Serve BASE, or every base in one process.

    \b
      readingroom serve          all bases: /mcp has every tool, /text/mcp one base, and so on
      readingroom serve text     that base alone, at /mcp, on the port of its contract
      readingroom serve --demo   the sample corpus: every answer is marked as such

    Without a key the server answers this machine only. Set MCP_API_KEY, or add keys with
    `readingroom keys add`, before you serve others. JOSH_AUTH opens the federal base to everybody
    or asks for OAuth tokens there.
    """
    configure_logging(settings.log_level)
    base_names = [base] if base else sorted(BASES)
    with open_sample_settings(settings, map(BASES.__getitem__, base_names)) as chosen_settings:
        if chosen_settings.is_sample:
            reset_outdated_sample(chosen_settings.data, reset)
        elif reset:
            raise click.UsageError("--reset empties the sample only: add --demo")
        # It imports the server, which nobody should wait for who asks for help.
        start_server = import_reference("readingroom.commands.start_server:start_server")
        start_server(BASES[base] if base else None, chosen_settings, as_json)
