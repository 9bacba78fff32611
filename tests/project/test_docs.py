"""The documentation tells the truth, and the check that says so can fail."""

import re
import shutil
from pathlib import Path

import pytest
from pydantic import Field

from readingroom.core import errors
from readingroom.core.settings import Settings
from scripts.docs import checks, settings
from scripts.docs.__main__ import main
from scripts.docs.console import Worked, worked
from scripts.docs.errors import family
from scripts.docs.pages import ROOT
from tests.requirements import requirement


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Every page of the project, and what the pages link to, where a test may spoil it."""
    for path in [*ROOT.glob("*.md"), ROOT / "LICENSE", ROOT / "Makefile"]:
        shutil.copy(path, tmp_path)
    for folder in ("docs", "benchmarks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.py*"))
    return tmp_path


@requirement("room:docs")
def test_the_pages_of_the_project_are_true() -> None:
    assert checks.check(ROOT) == []


@requirement("room:docs")
def test_a_stale_page_fails_by_name_until_it_is_written_anew(
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
def test_a_heading_is_missed_and_one_for_nothing_is_told(
    copy: Path, page: str, subject: str
) -> None:
    path = copy / page
    path.write_text(path.read_text("utf-8").replace(f"# `{subject}`\n", "# `other`\n"), "utf-8")

    assert list(checks.headings(copy)) == [
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

    assert list(checks.headings(copy)) == ["docs/tools.md: `search` is the heading of two"]


@requirement("room:docs")
@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("[gone](docs/gone.md)", "docs/gone.md leads nowhere"),
        ("[gone](docs/settings.md#gone)", "docs/settings.md#gone leads nowhere"),
        ("[gone](#gone)", "#gone leads nowhere"),
        ("[`out`](../outside.md)", "../outside.md leads nowhere"),
        ("`READINGROOM_GONE`", "there is no setting READINGROOM_GONE"),
        ("`server/gone.py`", "there is no file server/gone.py"),
        ("```json\n{,}\n```", "not json"),
        ('```toml\ngone = "x"\n```', "not toml: readingroom.toml has no key gone"),
        ("```python\ndef\n```", "not python"),
    ],
)
def test_what_leads_nowhere_or_does_not_parse_is_told(copy: Path, written: str, told: str) -> None:
    (copy / "MORE.md").write_text(f"# More\n\n{written}\n", "utf-8")

    (problem,) = checks.check(copy)

    assert problem.startswith("MORE.md:")
    assert told in problem


@requirement("room:docs")
def test_a_module_that_the_tree_leaves_out_or_makes_up_is_told(copy: Path) -> None:
    page = copy / "ARCHITECTURE.md"
    page.write_text(page.read_text("utf-8").replace("telemetry.py", "bounds.py"), "utf-8")

    assert checks.check(copy) == [
        "ARCHITECTURE.md: the tree does not name server/observe/telemetry.py",
        "ARCHITECTURE.md: the tree names bounds.py, which is not there",
    ]


@requirement("room:docs")
@pytest.mark.parametrize(
    ("typed", "told"),
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
def test_a_command_that_would_be_refused_is_told(copy: Path, typed: str, told: str) -> None:
    (copy / "MORE.md").write_text(f"# More\n\n```console\n$ {typed}\n```\n", "utf-8")

    (problem,) = checks.check(copy)

    assert problem.startswith("MORE.md:4: ")
    assert told in problem


@requirement("room:docs")
@pytest.mark.parametrize(
    "typed",
    [
        "readingroom serve --port 8080 | head -n 1",
        "KB_FILE=notes.txt readingroom stdio text",
        "readingroom --help",
        "readingroom keys add --help",
        'make serve ARGS="--port 8080 --read-only"',
        "ls --dance",
    ],
)
def test_a_command_that_works_is_not(copy: Path, typed: str) -> None:
    (copy / "MORE.md").write_text(f"# More\n\n```console\n$ {typed}\n```\n", "utf-8")

    assert checks.check(copy) == []


@requirement("room:docs:worked")
def test_an_answer_that_nobody_can_check_is_told_and_so_is_a_base_without_one(copy: Path) -> None:
    (copy / "MORE.md").write_text("# More\n\n```console\n$ readingroom policy list\nNPPF\n```\n")
    page = copy / "docs" / "text.md"
    page.write_text(page.read_text("utf-8").replace("\n$ ", "\n"), "utf-8")

    assert list(worked(copy)) == [
        "MORE.md:4: shows an answer, and does not ask the sample: add --demo",
        "docs/text.md: shows no command with its answer",
    ]


@requirement("room:docs:worked")
@pytest.mark.parametrize(
    ("shown", "said", "fits"),
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
    shown: str, said: str, fits: bool
) -> None:
    assert Worked("PAGE.md:1", "", shown).is_told_by(said) is fits


@requirement("room:docs")
def test_the_tree_of_errors_names_each_with_its_code_and_status() -> None:
    drawn = re.findall(r"[├└]── (\w+)\s+(\([^)]*\)|\w+)\s+(\d{3})?", errors.__doc__ or "")
    told = {name: (code, int(status or 0)) for name, code, status in drawn}

    assert told.keys() == {error.__name__ for error in family()}
    for error in family():
        code, status = told[error.__name__]
        assert code in (error.code, "(its children's)", "(the owner's code)")
        assert status in (error.http_status, 0)
