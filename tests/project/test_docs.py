"""The pages agree with the code, and the check that compares them can fail."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from readingroom.settings import Settings
from scripts.docs import checks, errors, settings
from scripts.docs.__main__ import main
from scripts.docs.console import WorkedExample, find_unchecked_answers
from scripts.docs.pages import ROOT
from tests.requirements import requirement
from tests.support.model import link_model


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of every page of the project and of what the pages link to, for a test to damage."""
    for path in [*ROOT.glob("*.md"), ROOT / "LICENSE", ROOT / "Makefile"]:
        shutil.copy(path, tmp_path)
    for folder in ("docs", "benchmarks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.py*"))
    return tmp_path


@requirement("room:docs")
def test_the_pages_of_the_project_agree_with_the_code() -> None:
    assert checks.check(ROOT) == []


@requirement("room:docs")
def test_a_stale_page_is_named_until_it_is_written_again(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = copy / "docs" / "cli.md"
    page.write_text(page.read_text("utf-8") + "Also by hand.\n", "utf-8")

    assert main(["--check"], copy) == 1
    assert capsys.readouterr().err == "docs/cli.md: is stale; run make docs\n"

    assert main([], copy) == 0
    assert main(["--check"], copy) == 0


@requirement("room:docs")
def test_a_setting_without_a_heading_fails(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class More(Settings):
        tea: bool = Field(False, description="Tea.", json_schema_extra={"env": "READINGROOM_TEA"})

    monkeypatch.setattr(settings, "Settings", More)

    assert checks.check(copy) == [
        "docs/settings.md: is stale; run make docs",
        "docs/settings.md: no heading for READINGROOM_TEA",
    ]


@requirement("room:docs")
@pytest.mark.parametrize(
    ("page", "subject"),
    [
        ("docs/tools.md", "get_kb_info"),
        ("docs/settings.md", "KB_FILE"),
        ("docs/errors.md", "text_unreadable"),
        ("docs/errors.md", "unknown_tool"),
        ("docs/cli.md", "readingroom keys add"),
    ],
)
def test_a_missing_heading_and_one_of_nothing_are_reported(
    copy: Path, page: str, subject: str
) -> None:
    path = copy / page
    path.write_text(path.read_text("utf-8").replace(f"# `{subject}`\n", "# `other`\n"), "utf-8")

    assert list(checks.find_heading_problems(copy)) == [
        f"{page}: no heading for {subject}",
        f"{page}: there is no other",
    ]


@requirement("room:docs")
def test_two_things_of_one_name_have_two_headings(copy: Path) -> None:
    page = copy / "docs" / "tools.md"
    text = page.read_text("utf-8")
    assert "[`search`](#search) | federal" in text
    assert "[`search`](#search-at-the-desk) | desk" in text

    page.write_text(text.replace("### `search` at the desk", "### `search`"), "utf-8")

    assert list(checks.find_heading_problems(copy)) == [
        "docs/tools.md: `search` is a heading twice"
    ]


@requirement("room:docs")
@pytest.mark.parametrize(
    ("written", "problem_text"),
    [
        ("[gone](docs/gone.md)", "docs/gone.md does not exist"),
        ("[gone](docs/settings.md#gone)", "docs/settings.md#gone does not exist"),
        ("[gone](#gone)", "#gone does not exist"),
        ("[`out`](../outside.md)", "../outside.md does not exist"),
        ("`READINGROOM_GONE`", "there is no setting READINGROOM_GONE"),
        ("`server/gone.py`", "there is no file server/gone.py"),
        ("```json\n{,}\n```", "not json"),
        ('```toml\ngone = "x"\n```', "not toml: readingroom.toml has no key gone"),
        ("```python\ndef\n```", "not python"),
    ],
)
def test_a_broken_link_or_name_or_block_is_reported(
    copy: Path, written: str, problem_text: str
) -> None:
    (copy / "MORE.md").write_text(f"# More\n\n{written}\n", "utf-8")

    (problem,) = checks.check(copy)

    assert problem.startswith("MORE.md:")
    assert problem_text in problem


@requirement("room:docs")
def test_a_tree_that_differs_from_the_docstrings_is_stale(copy: Path) -> None:
    page = copy / "ARCHITECTURE.md"
    page.write_text(page.read_text("utf-8").replace("telemetry.py", "bounds.py"), "utf-8")

    assert checks.check(copy) == ["ARCHITECTURE.md: is stale; run make docs"]


@requirement("room:docs")
@pytest.mark.parametrize(
    ("command", "problem_text"),
    [
        ("readingroom dance", "there is no command dance"),
        ("readingroom keys dance", "there is no command dance"),
        ("readingroom serve --loud", "No such option"),
        ("readingroom serve nothing", "'nothing' is not one of"),
        ("readingroom keys add", "Missing argument 'NAME'"),
        (".venv/bin/readingroom stdio text \\\n    --loud", "No such option"),
        ("READINGROOM_GONE=1 readingroom serve", "there is no setting READINGROOM_GONE"),
        ("make dance", "the Makefile has no target dance"),
        ("make serve LOUD=1", "the Makefile has no variable LOUD"),
        ('make serve ARGS="--loud"', "No such option"),
    ],
)
def test_a_command_that_would_be_refused_is_reported(
    copy: Path, command: str, problem_text: str
) -> None:
    (copy / "MORE.md").write_text(f"# More\n\n```console\n$ {command}\n```\n", "utf-8")

    (problem,) = checks.check(copy)

    assert problem.startswith("MORE.md:4: ")
    assert problem_text in problem


@requirement("room:docs")
@pytest.mark.parametrize(
    "command",
    [
        "readingroom serve --port 8080 | head -n 1",
        "KB_FILE=notes.txt readingroom stdio text",
        "readingroom --help",
        "readingroom keys add --help",
        'make serve ARGS="--port 8080 --read-only"',
        "ls --dance",
    ],
)
def test_a_command_that_works_is_not_reported(copy: Path, command: str) -> None:
    (copy / "MORE.md").write_text(f"# More\n\n```console\n$ {command}\n```\n", "utf-8")

    assert checks.check(copy) == []


@requirement("room:docs:worked")
def test_an_answer_that_cannot_be_checked_is_reported_and_so_is_a_base_without_one(
    copy: Path,
) -> None:
    (copy / "MORE.md").write_text("# More\n\n```console\n$ readingroom policy list\nNPPF\n```\n")
    page = copy / "docs" / "text.md"
    page.write_text(page.read_text("utf-8").replace("\n$ ", "\n"), "utf-8")

    assert list(find_unchecked_answers(copy)) == [
        "MORE.md:4: shows an answer that is not the sample's: add --demo",
        "docs/text.md: shows no command with its answer",
    ]


@requirement("room:docs:worked")
@pytest.mark.parametrize(
    ("shown", "output", "matches"),
    [
        ("one\ntwo", "one\ntwo\n", True),
        ("one\n…\nfour", "one\ntwo\nthree\nfour\n", True),
        ('{"a":1,…}', '{"a":1,"b":[2]}', True),
        ("one", "one more", False),
        ("o.e", "one", False),
        ("one…two", "two one", False),
    ],
)
def test_an_ellipsis_in_an_answer_stands_for_what_was_left_out(
    shown: str, output: str, matches: bool
) -> None:
    assert WorkedExample("PAGE.md:1", "", shown).matches(output) is matches


@requirement("room:docs")
def test_no_two_errors_share_a_code() -> None:
    codes = [error.code for error in errors.list_all_errors()]

    assert sorted(set(codes)) == codes


def test_the_example_of_the_engine_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "engine.md").read_text("utf-8")
    example = page.partition("```python\n")[2].partition("```")[0]
    link_model(tmp_path / "data")
    monkeypatch.chdir(tmp_path)

    namespace: dict[str, Any] = {}
    exec(example, namespace)

    (hit,) = namespace["index"].search("bicycle stands", 10, None, "semantic").hits
    assert hit.chunk_id == "NPPF-1"
    namespace["index"].close()
    namespace["store"].close()
