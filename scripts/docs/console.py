"""Commands in the pages: those that would be refused, and those shown with their output."""

import contextlib
import io
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from readingroom.bases import BASES
from readingroom.cli import main as readingroom
from scripts.docs.cli import subcommands
from scripts.docs.pages import list_handwritten_pages
from scripts.docs.settings import list_variables

SAMPLE_ADDRESS = "http://127.0.0.1:8000"
_TARGET = re.compile(r"^([\w-]+):(?!=)", re.MULTILINE)
_ASSIGNED = re.compile(r"[A-Z][A-Z0-9_]*=.*", re.DOTALL)
_PROMPT = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def find_refused_commands(root: Path) -> Iterator[str]:
    """Yield the commands in `console` blocks that would be refused as they stand."""
    makefile = (root / "Makefile").read_text("utf-8")
    for page in list_handwritten_pages(root):
        for _, text, first in page.blocks("console"):
            for line, command, _ in parse_console(text):
                if reason := refusal(command, makefile):
                    yield f"{page.name}:{first + line}: {command}: {reason}"


def parse_console(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line number, command and output of each prompt (`$`) in a console block."""
    # A continued line becomes one command, and NUL keeps its line break countable.
    joined = re.sub(r"\\\n", " \0", text)
    for match in _PROMPT.finditer(joined):
        line = len(re.findall("[\n\0]", joined[: match.start()]))
        yield line, match[1].replace("\0", ""), match[2]


def refusal(command: str, makefile: str) -> str | None:
    """Return what is wrong with a command line; None when it is right, or not one of ours."""
    assigned, words = split(command)
    match words:
        case ["readingroom" | ".venv/bin/readingroom", *rest]:
            unknown = {word.partition("=")[0] for word in assigned} - list_variables()
            if unknown:
                return f"there is no setting {min(unknown)}"
            return click_refusal(rest)
        case ["make", *rest]:
            return make_refusal(rest, makefile)
    return None


def split(command: str) -> tuple[list[str], list[str]]:
    """Return the variables set before a command, and its words up to a pipe or redirection."""
    reader = shlex.shlex(command, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    words = list(reader)
    end = next((i for i, word in enumerate(words) if word[0] in "|&;<>"), len(words))
    start = next((i for i, word in enumerate(words) if not _ASSIGNED.fullmatch(word)), end)
    return words[:start], words[start:end]


def click_refusal(words: Sequence[str]) -> str | None:
    """Return what click says against these arguments; nothing is run."""
    command: click.Command = readingroom
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if name not in (commands := subcommands(command)):
            return f"there is no command {name}"
        command = commands[name]
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # --help prints
            command.make_context(command.name, rest, **readingroom.context_settings)
    except click.exceptions.Exit:
        return None
    except click.UsageError as error:
        return error.format_message().splitlines()[0]
    return None


def make_refusal(words: Sequence[str], makefile: str) -> str | None:
    for word in words:
        name, assigned, value = word.partition("=")
        if not assigned and name not in _TARGET.findall(makefile):
            return f"the Makefile has no target {name}"
        if assigned and f"$({name})" not in makefile:
            return f"the Makefile has no variable {name}"
        if name == "ARGS" and "serve" in words:  # these are flags of `readingroom serve`
            return click_refusal(["serve", *shlex.split(value)])
    return None


@dataclass(frozen=True)
class WorkedExample:
    """A command that a page shows with its output, where `…` stands for what was left out."""

    location: str
    command: str
    output: str

    def __str__(self) -> str:
        return self.location

    def matches(self, output: str) -> bool:
        """Tell whether the real output is the one that is shown."""
        parts = map(re.escape, re.split(r"\s*…\s*", self.output.strip()))
        return re.fullmatch(".*?".join(parts), output.strip(), re.DOTALL) is not None


def find_worked_examples(root: Path) -> Iterator[WorkedExample]:
    """Yield every command of a page that is shown with its output."""
    for page in list_handwritten_pages(root):
        for _, text, first in page.blocks("console"):
            for line, command, output in parse_console(text):
                if output.strip():
                    yield WorkedExample(f"{page.name}:{first + line}", command, output)


def find_unchecked_answers(root: Path) -> Iterator[str]:
    """Yield examples that cannot be run on the sample, and pages that lack an example."""
    examples = list(find_worked_examples(root))
    for example in examples:
        if "--demo" not in example.command and SAMPLE_ADDRESS not in example.command:
            yield f"{example.location}: shows an answer that is not the sample's: add --demo"
    pages = {example.location.partition(":")[0] for example in examples}
    for name in (
        "README.md",
        "docs/desk.md",
        *(f"docs/{base}.md" for base in sorted(BASES)),
    ):
        if name not in pages:
            yield f"{name}: shows no command with its answer"
