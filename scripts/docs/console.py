"""What pages show of the command line: commands that would be refused, and answers that are run."""

import contextlib
import io
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from readingroom.cli import main as readingroom
from readingroom.server.catalogue import OFFERS
from scripts.docs.pages import by_hand
from scripts.docs.settings import variables

SAMPLE_ADDRESS = "http://127.0.0.1:8000"
_TARGET = re.compile(r"^([\w-]+):(?!=)", re.MULTILINE)
_ASSIGNED = re.compile(r"[A-Z][A-Z0-9_]*=.*", re.DOTALL)
_TYPED = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def commands(root: Path) -> Iterator[str]:
    """Commands in `console` blocks that would be refused as they stand."""
    makefile = (root / "Makefile").read_text("utf-8")
    for page in by_hand(root):
        for _, text, first in page.blocks("console"):
            for line, typed, _ in console(text):
                if objection := refused(typed, makefile):
                    yield f"{page.name}:{first + line}: {typed}: {objection}"


def console(text: str) -> Iterator[tuple[int, str, str]]:
    """What a person types in a console block, after `$`: its line, the command, its output."""
    joined = re.sub(r"\\\n", " \0", text)  # a line that goes on stays one, and is still counted
    for found in _TYPED.finditer(joined):
        line = len(re.findall("[\n\0]", joined[: found.start()]))
        yield line, found[1].replace("\0", ""), found[2]


def refused(typed: str, makefile: str) -> str | None:
    """What is wrong with a command line; None when it is right, or not one of ours."""
    assigned, words = split(typed)
    match words:
        case ["readingroom" | ".venv/bin/readingroom", *rest]:
            unknown = {word.partition("=")[0] for word in assigned} - variables()
            told = [f"there is no setting {name}" for name in sorted(unknown)]
            return told[0] if told else refused_by_click(rest)
        case ["make", *rest]:
            return refused_by_make(rest, makefile)
    return None


def split(typed: str) -> tuple[list[str], list[str]]:
    """The variables set before a command, and its words up to the first pipe or redirection."""
    reader = shlex.shlex(typed, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    words = list(reader)
    end = next((at for at, word in enumerate(words) if word[0] in "|&;<>"), len(words))
    start = next((at for at, word in enumerate(words) if not _ASSIGNED.fullmatch(word)), end)
    return words[:start], words[start:end]


def refused_by_click(words: Sequence[str]) -> str | None:
    """Parse as the command itself would, but run nothing."""
    command: click.Command = readingroom
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if name not in command.commands:
            return f"there is no command {name}"
        command = command.commands[name]
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # --help prints
            command.make_context(command.name, rest, **readingroom.context_settings)
    except click.exceptions.Exit:
        return None
    except click.UsageError as error:
        return error.format_message().splitlines()[0]
    return None


def refused_by_make(words: Sequence[str], makefile: str) -> str | None:
    for word in words:
        name, assigned, given = word.partition("=")
        if not assigned and name not in _TARGET.findall(makefile):
            return f"the Makefile has no target {name}"
        if assigned and f"$({name})" not in makefile:
            return f"the Makefile has no variable {name}"
        if name == "ARGS" and "serve" in words:  # these are flags of `readingroom serve`
            return refused_by_click(["serve", *shlex.split(given)])
    return None


@dataclass(frozen=True)
class Worked:
    """A command that a page shows with its output, where `…` stands for what was left out."""

    place: str
    typed: str
    output: str

    def __str__(self) -> str:
        return self.place

    def is_told_by(self, said: str) -> bool:
        """Whether this is what was really said."""
        parts = map(re.escape, re.split(r"\s*…\s*", self.output.strip()))
        return re.fullmatch(".*?".join(parts), said.strip(), re.DOTALL) is not None


def worked_examples(root: Path) -> Iterator[Worked]:
    """Every command of a page that is shown with what it printed."""
    for page in by_hand(root):
        for _, text, first in page.blocks("console"):
            for line, typed, output in console(text):
                if output.strip():
                    yield Worked(f"{page.name}:{first + line}", typed, output)


def worked(root: Path) -> Iterator[str]:
    """Examples that nobody could run on the sample, and pages that should have one and do not."""
    found = list(worked_examples(root))
    for example in found:
        if "--demo" not in example.typed and SAMPLE_ADDRESS not in example.typed:
            yield f"{example.place}: shows an answer, and does not ask the sample: add --demo"
    pages = {example.place.partition(":")[0] for example in found}
    for name in ("README.md", "docs/desk.md", *(f"docs/{base}.md" for base in sorted(OFFERS))):
        if name not in pages:
            yield f"{name}: shows no command with its answer"
