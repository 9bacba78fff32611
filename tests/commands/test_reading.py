"""Commands that only read: nothing is made, emptiness and a missing model are said."""

from pathlib import Path

import pytest

from readingroom.commands.ask import _format_answer
from tests.requirements import requirement
from tests.support.govuk import reserve_dead_address
from tests.support.kit import invoke, run

READING = [
    (("policy", "list"), 0, "There are no policies yet"),
    (("policy", "show", "NPPF"), 1, "There is no policy 'NPPF'"),
    (("policy", "search", "cycle parking"), 0, "There are no policies yet"),
    (("policy", "section", "NPPF", "Para 1"), 1, "There is no policy 'NPPF'"),
    (("policy", "sections", "NPPF"), 1, "There is no policy 'NPPF'"),
    (("policy", "effective", "2024-01-01"), 0, "There are no policies yet"),
    (("policy", "snapshot", "2024-01-01"), 0, "There are no policies yet"),
    (("documents", "list"), 0, "There are no documents yet"),
    (("documents", "text", "doc_1"), 1, "doc_1"),
    (("federal", "status"), 0, "Nothing is loaded yet"),
    (("federal", "changes", "--since", "2024-01-01"), 0, "Nothing came"),
    (("keys", "list"), 0, "There are no keys"),
    (("guidance", "status"), 0, "There is no offline copy yet"),
]


@requirement("room:cli")
@pytest.mark.parametrize(("args", "code", "told"), READING, ids=lambda value: str(value)[:40])
def test_a_command_that_reads_makes_nothing_and_says_that_nothing_is_there(
    args: tuple[str, ...], code: int, told: str, tmp_path: Path
) -> None:
    result = invoke(*args, "--data", str(tmp_path / "data"))
    assert result.returncode == code, result.stderr
    assert told in result.stdout + result.stderr
    assert list(tmp_path.iterdir()) == []


@requirement("room:cli")
def test_ask_makes_nothing_and_says_what_is_empty_and_that_there_is_no_model(
    tmp_path: Path,
) -> None:
    with reserve_dead_address() as url:
        result = run(
            *("ask", "cycle parking", "--data", str(tmp_path / "data")),
            env={"GOVUK_BASE_URL": url, "EMBEDDING_MODEL_DIR": str(tmp_path / "no-model")},
        )
    assert result.returncode == 1, result.stderr
    assert "Nothing here answers that" in result.stdout
    assert "nothing in documents, federal, policy yet" in result.stdout
    assert "Searched by words alone" in result.stdout
    assert "This is guidance, not legal advice." in result.stdout
    assert list(tmp_path.iterdir()) == []


@requirement("room:cli")
def test_a_search_of_no_documents_says_so(tmp_path: Path) -> None:
    result = run(
        *("documents", "search", "cycle parking", "--data", str(tmp_path / "data")),
        env={"EMBEDDING_MODEL_DIR": str(tmp_path / "no-model")},
    )
    assert (result.returncode, list(tmp_path.iterdir())) == (0, [])
    assert "There are no documents yet" in result.stdout


def test_ask_says_when_nothing_is_close() -> None:
    hit = {
        "snippet": "Keep some money.",
        "base": "guidance",
        "id": "guidance:/x",
        "url": "https://www.gov.uk/x",
        "in_force": None,
        "citation": {"citation_string": "Charity Commission, Reserves"},
        "attribution": "Source: GOV.UK.",
    }
    reason = "Nothing here is close to the question."
    answer = {"results": [hit], "confidence": "none", "confidence_reason": reason, "notes": []}
    assert _format_answer(answer).startswith(reason)


@requirement("room:cli")
@pytest.mark.parametrize(
    ("args", "option"),
    [
        (("policy", "effective", "soon"), "DAY"),
        (("policy", "snapshot", "soon"), "DAY"),
        (("policy", "search", "x", "--on", "soon"), "--on"),
        (("policy", "verify", "NPPF", "some words", "--on", "soon"), "--on"),
        (("policy", "compare", "NPPF", "2024-01-01", "soon"), "TO_DATE"),
        (("federal", "changes", "--since", "soon"), "--since"),
        (("federal", "changes", "--since", "2024-01-01", "--source", "nowhere"), "--source"),
        (("documents", "search", "x", "--limit", "0"), "--limit"),
        (("policy", "search", ""), "QUERY"),
        (("guidance", "get", "not a path"), "PATH"),
        (("keys", "add", "not a name"), "NAME"),
    ],
)
def test_a_wrong_value_ends_with_2_and_names_the_option(
    args: tuple[str, ...], option: str, tmp_path: Path
) -> None:
    result = invoke(*args, "--data", str(tmp_path / "data"))
    assert result.returncode == 2, result.stderr
    assert option in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_host_is_told_in_words(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "readingroom.toml").write_text('govuk_base_url = "nonsense"\n', "utf-8")
    result = invoke("guidance", "get", "/x", "--data", str(data))
    assert result.returncode == 2
    assert "govuk_base_url: must be the address of a host alone, such as" in result.stderr


def test_the_words_of_a_check_of_our_own_have_nothing_before_them(tmp_path: Path) -> None:
    result = invoke("ask", "   ", "--data", str(tmp_path / "data"))
    assert "QUESTION: must hold a word" in result.stderr


def test_a_backup_that_is_not_there_is_told_before_the_directory_is_looked_at(
    tmp_path: Path,
) -> None:
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "something").touch()
    result = invoke("restore", str(tmp_path / "nowhere.tar"), "--data", str(tmp_path))
    assert result.returncode == 2
    assert "'FILE'" in result.stderr
    assert "There is no file" in result.stderr
