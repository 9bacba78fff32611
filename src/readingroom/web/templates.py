"""HTML from Jinja2 templates: those in `web/templates`, and those beside a base's pages."""

import datetime as dt
import json
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from readingroom import __version__
from readingroom.core.dates import format_day_in_words
from readingroom.web.assets import get_asset_address

_MIN_FULL_LINE_CHARS = 45
"""A shorter line ended because its author ended it."""
_SINGLE_LINE_END_PATTERN = re.compile(r"(?<!\n)\n(?!\n)")
_ABBREVIATIONS = {"cbo", "cfr", "crs", "ocr", "sap"}
_TEMPLATES_FOLDER = Path(__file__).parent / "templates"


_DIRECTION_CONTROLS_PATTERN = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Characters that turn the order of those after them: `exe.fdp` would read as `pdf.exe`."""


def render_template(
    template_name: str, template_folder: Path = _TEMPLATES_FOLDER, **template_values: Any
) -> Markup:
    """Return the HTML that a template makes of the values, all of them escaped.

    It is looked for in `template_folder`, then in `web/templates`.
    """
    jinja_template = _make_environment(template_folder).get_template(template_name)
    return Markup(jinja_template.render(version=__version__, **template_values))


def format_day(day: dt.date | str | None) -> str:
    """Return a day as people write it, `14 April 2025`, and anything else as it is."""
    if isinstance(day, str):
        try:
            parsed_day = dt.date.fromisoformat(day[:10])
        except ValueError:
            return day
        return format_day(parsed_day)
    return format_day_in_words(day) if day else ""


def format_date_input(written_day: dt.date | str) -> str:
    """Return a day as an `<input type="date">` takes it; empty for anything that is no day."""
    try:
        return dt.date.fromisoformat(str(written_day)[:10]).isoformat()
    except ValueError:
        return ""


def format_seconds(duration_seconds: float) -> str:
    """Return a length of time in the unit that suits it: `40 s`, `12 min`, `5 h`, `3 days`."""
    minute_count = duration_seconds / 60
    if minute_count < 2:
        return f"{duration_seconds:.0f} s"
    if minute_count < 120:
        return f"{minute_count:.0f} min"
    return (
        f"{minute_count / 60:.0f} h"
        if minute_count < 48 * 60
        else f"{minute_count / 1440:.0f} days"
    )


def format_number(number: float) -> str:
    """Return a number with commas between its thousands."""
    return f"{number:,}"


def format_count(number: int, noun: str) -> str:
    """Return how many there are of something: `1 page`, `1,204 pages`."""
    return f"{number:,} {noun}{'s' if number != 1 else ''}"


def format_ordinal(number: int) -> str:
    """Return a place as people write it: `1st`, `2nd`, `13th`."""
    ordinal_ending = (
        "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number:,}{ordinal_ending}"


def format_identifier(identifier_text: str) -> str:
    """Return a name from a program as people write it: `transport_assessment` in plain words."""
    identifier_words = (
        identifier_text.replace("_", " ").replace("-", " ").strip().capitalize().split(" ")
    )
    return " ".join(
        identifier_word.upper() if identifier_word.lower() in _ABBREVIATIONS else identifier_word
        for identifier_word in identifier_words
    )


def join_single_line_ends(passage_text: str) -> str:
    """Return a piece of a passage without the line ends of its page; paragraphs and rows stay."""
    return passage_text if "|" in passage_text else _SINGLE_LINE_END_PATTERN.sub(" ", passage_text)


def join_broken_lines(passage_text: str) -> str:
    """Return a passage whose lines were broken at the edge of a page, with its paragraphs joined.

    Short lines, and rows of tables, stay as they are.
    """
    passage_lines = passage_text.split("\n")
    joined_lines = passage_lines[:1]
    for previous_line, passage_line in pairwise(passage_lines):
        is_line_broken = (
            len(previous_line) >= _MIN_FULL_LINE_CHARS
            and passage_line.strip()
            and "|" not in previous_line + passage_line
        )
        if is_line_broken:
            joined_lines[-1] = f"{joined_lines[-1].rstrip()} {passage_line.lstrip()}"
        else:
            joined_lines.append(passage_line)
    return "\n".join(joined_lines)


def quote_for_url(url_part: object) -> str:
    """Return a value as one part of an address."""
    return quote(str(url_part), safe="")


def format_json(json_value: Any) -> str:
    """Return a value as JSON for people to read."""
    return json.dumps(json_value, ensure_ascii=False, indent=2, default=str)


class _UnchangedMarkup(Markup):
    """HTML in which every character stays what it is, such as the stored value of a field."""


def _keep_unchanged(template_value: object) -> _UnchangedMarkup:
    return _UnchangedMarkup(escape(template_value))


def _show_direction_controls(template_value: Any) -> Any:
    """Return a value with the characters that would turn its order shown by their numbers."""
    if (
        not isinstance(template_value, str)
        or isinstance(template_value, _UnchangedMarkup)
        or template_value.isascii()
    ):
        return template_value
    shown_text = _DIRECTION_CONTROLS_PATTERN.sub(
        lambda control_match: f"[U+{ord(control_match[0]):04X}]", template_value
    )
    return Markup(shown_text) if isinstance(template_value, Markup) else shown_text


@cache
def _make_environment(template_folder: Path) -> Environment:
    jinja_environment = Environment(
        loader=ChoiceLoader(
            [FileSystemLoader(template_folder), FileSystemLoader(_TEMPLATES_FOLDER)]
        ),
        autoescape=True,  # always: no template here makes anything but HTML
        # A misspelt name in a template is an error, and not a gap in the page.
        undefined=StrictUndefined,
        # They do not change while a server runs; each page would look at each of its files.
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_show_direction_controls,
    )
    jinja_environment.filters.update(
        date_input=format_date_input,
        day=format_day,
        duration=format_seconds,
        counted=format_count,
        number=format_number,
        ordinal=format_ordinal,
        plain_words=format_identifier,
        url_part=quote_for_url,
        as_json=format_json,
        joined=join_single_line_ends,
        unchanged=_keep_unchanged,
    )
    # A function, so that the address changes with the file and no template has to know how.
    jinja_environment.globals["asset"] = get_asset_address
    return jinja_environment
