"""In a shell: arguments completed from the data, tables that fit, colour in terminals alone."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete, ShellComplete

from readingroom.cli import main
from readingroom.console import layout
from readingroom.console.layout import format_table, make_bold
from tests.requirements import requirement
from tests.support.kit import clean_environment, invoke, make_command, run
from tests.support.model import link_model
from tests.support.policy.base import make_policy_pdf

REFERENCE = "25/01178/REM"
QUOTED = "Each home has one covered cycle space."


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy with a section, a document of an application, and a key."""
    data = link_model(tmp_path_factory.mktemp("shell") / "data")
    paper = data.parent / "Transport_Statement.pdf"
    paper.write_bytes(make_policy_pdf([("Promoting sustainable transport", [QUOTED])]))
    for args in (
        ("policy", "add", "NPPF", "--title", "The Framework", "--category", "national_policy"),
        ("policy", "revise", "NPPF", str(paper), "--label", "Spring", "--from", "2024-03-01"),
        ("documents", "ingest", str(paper), "--application", REFERENCE),
        ("keys", "add", "a-clerk"),
    ):
        ended = invoke(*args, "--data", str(data))
        assert ended.returncode == 0, ended.stderr
    return data


def complete(data: Path, *args: str, prefix: str = "", shell: type[ShellComplete]) -> list[str]:
    """Return what is offered for the word after these arguments."""
    completer = shell(main, {}, "readingroom", "_READINGROOM_COMPLETE")
    words = [*args[:2], "--data", str(data), *args[2:]]
    return [item.value for item in completer.get_completions(words, prefix)]


@requirement("room:cli")
def test_slugs_sections_revisions_references_and_ids_are_completed(data: Path) -> None:
    def offer(*args: str, prefix: str = "") -> list[str]:
        return complete(data, *args, prefix=prefix, shell=BashComplete)

    assert offer("policy", "show", prefix="n") == ["NPPF"]
    assert offer("policy", "show", prefix="x") == []
    assert offer("policy", "section", "NPPF", prefix="chap") == ["Chapter 1"]
    assert offer("policy", "delete", "NPPF") == ["rev_NPPF_2024_03"]
    assert offer("policy", "search", "x", "--source") == ["NPPF"]
    assert offer("documents", "list", "--application", prefix="25") == [REFERENCE]
    (document_id,) = offer("documents", "text")
    assert document_id.startswith("25_01178_REM_")
    assert offer("keys", "revoke") == ["a-clerk"]
    assert "bills" in offer("federal", "sync", prefix="b")


def test_bash_gets_blanks_escaped(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_READINGROOM_COMPLETE", "bash_complete")
    offered = complete(data, "policy", "section", "NPPF", prefix="Chap", shell=BashComplete)
    assert offered == ["Chapter\\ 1"]


def test_what_cannot_be_read_is_not_completed_and_not_made(tmp_path: Path) -> None:
    absent = tmp_path / "data"
    assert complete(absent, "policy", "show", shell=BashComplete) == []
    absent.mkdir()
    assert complete(absent, "policy", "section", "NPPF", shell=BashComplete) == []
    assert list(absent.iterdir()) == []


@requirement("room:cli")
def test_a_shell_gets_the_completion_that_the_documentation_names() -> None:
    page = Path(__file__).parents[2] / "docs" / "running.md"
    assert "_READINGROOM_COMPLETE=bash_source readingroom" in page.read_text("utf-8")
    variables = {"_READINGROOM_COMPLETE": "zsh_source"}
    script = subprocess.run(
        [Path(sys.executable).with_name("readingroom")],
        env=clean_environment(variables),
        capture_output=True,
        text=True,
    )
    assert script.returncode == 0, script.stderr
    assert "_READINGROOM_COMPLETE=zsh_complete readingroom" in script.stdout


@requirement("room:cli")
def test_a_search_without_a_model_says_so(data: Path, tmp_path: Path) -> None:
    for base in ("policy", "documents"):
        result = run(
            *(base, "search", "cycle parking", "--data", str(data)),
            env={"EMBEDDING_MODEL_DIR": str(tmp_path / "no-model")},
        )
        assert result.returncode == 0, result.stderr
        assert QUOTED in result.stdout
        assert "model" in result.stdout


TABLES = [
    ("policy", "list"),
    ("policy", "show", "NPPF"),
    ("policy", "effective", "2024-05-01"),
    ("policy", "snapshot", "2024-05-01"),
    ("documents", "list"),
    ("documents", "list", "--application", REFERENCE),
    ("federal", "status"),
    ("keys", "list"),
]


@requirement("room:cli")
@pytest.mark.parametrize("args", TABLES, ids=" ".join)
def test_a_table_fits_40_columns(
    args: tuple[str, ...], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = invoke(*args, "--data", str(data)).stdout
    monkeypatch.setattr(layout, "measure_terminal_width", lambda: 40)
    narrow = invoke(*args, "--data", str(data)).stdout
    table_lines = [line for line in narrow.splitlines() if not line.startswith("Nothing is loaded")]
    assert max(map(len, table_lines)) <= 40
    assert {*narrow.split(), "source"} >= {word for word in wide.split() if len(word) < 30}


def test_every_word_of_a_narrow_table_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("a" * 50, "second cell", "7"), (make_bold("short"), "", "12,345")]
    monkeypatch.setattr(layout, "measure_terminal_width", lambda: 40)
    table = format_table(rows, ("name", "what", "count"))
    assert "a" * 50 in table.replace("\n", "")
    assert "what second cell" in table
    assert "count 12,345" in table


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """A pseudo-terminal: the end that is read, and the end that a program writes to."""
    reading_end, writing_end = os.openpty()
    try:
        yield reading_end, writing_end
    finally:
        os.close(reading_end)


@requirement("room:cli")
def test_there_is_colour_in_a_terminal_and_never_in_a_pipe(
    data: Path, terminal: tuple[int, int]
) -> None:
    reading_end, writing_end = terminal
    args = make_command("keys", "list", "--data", str(data))
    piped = run("keys", "list", "--data", str(data))
    assert "\x1b" not in piped.stdout
    environment = clean_environment({"TERM": "xterm"})
    environment.pop("NO_COLOR", None)
    shown = subprocess.run(args, stdout=writing_end, env=environment)
    os.close(writing_end)
    assert shown.returncode == 0
    assert b"\x1b[1ma-clerk\x1b[0m" in os.read(reading_end, 4096)


def test_a_name_commands_no_terminal_whatever_it_holds() -> None:
    assert make_bold("\ufdd1x\ufdd3") == make_bold("x")
    with click.Context(main):
        assert "\x1b" not in invoke("policy", "show", "\x1b[31mred").stderr
