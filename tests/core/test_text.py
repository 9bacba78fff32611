"""Texts that are printed have no commands to a terminal, and two are compared by their words."""

import json
import logging

import pytest

from readingroom.console.options import print_result
from readingroom.core.text import compare_words, escape_control_characters
from readingroom.server.observe.logging import JsonLineFormatter
from tests.requirements import requirement

HOSTILE = "Plan\x1b[2J\x9b31m\x7f\r\x00\u202eend"


@requirement("room:cli")
def test_what_would_command_a_terminal_is_escaped() -> None:
    escaped = escape_control_characters(HOSTILE)
    assert escaped == "Plan\\u001b[2J\\u009b31m\\u007f\\u000d\\u0000\\u202eend"
    assert (
        escape_control_characters("Überbauung\n\tZürich – 10½ m²")
        == "Überbauung\n\tZürich – 10½ m²"
    )


@requirement("room:cli")
@pytest.mark.parametrize("as_json", [True, False])
def test_a_title_cannot_command_the_terminal(
    as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    print_result(as_json, {"title": HOSTILE}, f"NPPF  {HOSTILE}")
    printed = capsys.readouterr().out
    assert printed.endswith("\n")
    assert printed[:-1].isprintable()
    if as_json:
        assert json.loads(printed) == {"title": HOSTILE}


@requirement("room:cli")
def test_a_log_line_cannot_command_the_terminal() -> None:
    record = logging.LogRecord("x", logging.INFO, "", 0, HOSTILE, None, None)
    line = JsonLineFormatter().format(record)
    assert line.isprintable()
    assert json.loads(line)["message"] == HOSTILE


def test_two_texts_are_compared_by_words_whatever_their_lines() -> None:
    runs = compare_words("The keeper\nopens the lock at  six.", "The keeper opens a lock at six.")
    assert [(run.operation, run.text) for run in runs] == [
        ("equal", "The keeper opens"),
        ("delete", "the"),
        ("insert", "a"),
        ("equal", "lock at six."),
    ]
    assert [run.operation for run in compare_words("a b", "a  b")] == ["equal"]
    assert compare_words("", "") == []


def test_a_long_run_is_shortened_to_its_ends() -> None:
    (run,) = compare_words("one two three four five six", "one two three four five six")
    assert run.shorten(2, "…") == "one two … five six"
    assert run.shorten(3, "…") == "one two three four five six"
