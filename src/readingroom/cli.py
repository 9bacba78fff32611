"""The `readingroom` command."""

import click

from readingroom import __version__
from readingroom.commands.ask import ask
from readingroom.commands.backup import backup
from readingroom.commands.connect import connect
from readingroom.commands.doctor import doctor
from readingroom.commands.documents import documents
from readingroom.commands.federal import federal
from readingroom.commands.guidance import guidance
from readingroom.commands.keys import keys
from readingroom.commands.model import model
from readingroom.commands.policy import policy
from readingroom.commands.restore import restore
from readingroom.commands.serve import serve
from readingroom.commands.stdio import stdio


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="readingroom")
def main() -> None:
    """Official knowledge that AI agents can cite, over MCP.

    \b
      readingroom serve                         every base on http://127.0.0.1:8000
      readingroom ask "…" --on 2024-03-15       a question over every base, with citations
      readingroom stdio text --file notes.txt   one base for a client that starts us
      readingroom federal load PATH…            official bulk files into the federal base
      readingroom guidance search "reserves"    Charity Commission guidance, from the shell
      readingroom policy add NPPF …             a policy; `policy revise` adds its text
      readingroom documents ingest FOLDER …     the documents of a planning application
      readingroom doctor                        what is wrong in the data directory, if anything
      readingroom keys add NAME                 a key for one caller
      readingroom connect claude-code           the configuration a client needs
      readingroom backup FILE                   everything in one file; `restore` reads it

    Every setting is also an environment variable and a line of readingroom.toml in the data
    directory; docs/settings.md lists them.
    """


for _verb in (
    serve,
    ask,
    stdio,
    policy,
    documents,
    federal,
    guidance,
    keys,
    model,
    connect,
    backup,
    restore,
    doctor,
):
    main.add_command(_verb)
