"""Every word and number of a page is in its text, as another reader of the HTML finds them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lxml.html
import pytest

from readingroom.bases.guidance.pages.page import GovukPage
from tests.conftest import SHARED
from tests.requirements import requirement

FIXTURES = Path(__file__).parents[2] / "fixtures" / "govuk"
EXAMPLES = SHARED / "guidance" / "examples"
_TAG = re.compile(r"</?[a-zA-Z][^>]*>")


@requirement("guidance:fidelity")
@pytest.mark.parametrize("file", sorted(FIXTURES.glob("*.json")), ids=lambda file: file.stem)
def test_no_word_and_no_digit_of_a_written_page_is_lost_or_changed(file: Path) -> None:
    assert find_losses(json.loads(file.read_text("utf-8"))) == []


TYPES = json.loads((FIXTURES.parent / "govuk_types.json").read_text("utf-8"))
"""Items of types and fields that no stored page has, each with its text as a person checked it."""


@requirement("guidance:fidelity")
@pytest.mark.parametrize("document_type", TYPES)
def test_every_field_of_a_type_that_no_stored_page_has_is_shown_in_order(
    document_type: str,
) -> None:
    item = TYPES[document_type]["item"]
    assert GovukPage(item).text.split("\n") == TYPES[document_type]["text"]
    assert find_losses(item) == []


@pytest.mark.parametrize(
    "details",
    [
        {"sections": [{"hidden": "<p>Prose in a field that is never shown.</p>"}]},
        {"groups": [{"name": "Group", "unheard_of": "<p>Prose beside what is known.</p>"}]},
        {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": "<p>Prose far inside.</p>"}}}}}}}},
    ],
)
def test_prose_in_a_field_that_is_not_known_is_in_the_text_once(details: dict[str, Any]) -> None:
    item = {"schema_name": "brand_new", "title": "T", "details": details}
    assert find_losses(item) == []
    assert GovukPage(item).text.count("Prose") == 1


@pytest.mark.data
@requirement("guidance:fidelity")
def test_no_word_and_no_digit_of_any_real_page_is_lost_or_changed() -> None:
    field_count = 0
    losses = []
    for file in sorted(EXAMPLES.glob("*/frontend/*.json")):
        item = json.loads(file.read_text("utf-8"))
        if item["schema_name"] not in ("redirect", "gone"):
            losses += [(file.name, loss) for loss in find_losses(item)]
            field_count += len(list(list_html_fields(item["details"])))
    assert losses == []
    assert field_count > 250


def test_the_check_itself_sees_a_lost_word_a_glued_number_and_a_hidden_field() -> None:
    """The three faults it is there for, in a page whose text is given by hand."""
    item = {"details": {"body": "<p>Over £500,000<sup>1</sup> a year.</p>"}}
    assert find_losses(item, "Over £500,000^1^ a year.") == []
    assert find_losses(item, "Over £500,0001 a year.") != []
    assert find_losses(item, "Over £500,000^1^ year.") != []
    assert find_losses(item, "") != []


def find_losses(item: dict[str, Any], text: str | None = None) -> list[str]:
    """Return what is wrong with the text of an item; `text` stands for the one that is made."""
    text = GovukPage(item).text if text is None else text
    words = "".join(split_markdown_words(text))
    losses = [
        f"not in the text: {html[:60]}"
        for html in list_html_fields(item["details"])
        if "".join(split_html_words(html)) not in words
    ]
    # The whole item too: some numbers are numbers there, and no text.
    known_runs = set(re.findall(r"\d+", " ".join([*list_plain_texts(item), json.dumps(item)])))
    own_runs = re.findall(r"\d+", strip_own_numbers(text))
    return losses + [f"digits: {run}" for run in own_runs if run not in known_runs]


def list_html_fields(value: Any) -> Iterator[str]:
    """Yield every HTML text in the details of an item; of several renderings, the HTML."""
    return (text for text in list_strings(value) if _TAG.search(text))


def list_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from list_strings(inner)
    elif isinstance(value, list):
        kinds = [inner.get("content_type") for inner in value if isinstance(inner, dict)]
        has_renderings = "text/html" in kinds
        for inner in value:
            if not has_renderings or inner["content_type"] == "text/html":
                yield from list_strings(inner)


def list_plain_texts(item: dict[str, Any]) -> Iterator[str]:
    for text in list_strings(item):
        yield " ".join(list_html_texts(text)) if _TAG.search(text) else text
        yield text  # for numbers in attributes


def list_html_texts(html: str) -> list[str]:
    tree = lxml.html.fromstring(f"<div>{html}</div>")
    for hidden in tree.xpath("//script|//style|//svg|//template|//noscript"):
        hidden.drop_tree()
    return [str(text) for text in tree.itertext()]


def split_html_words(html: str) -> list[str]:
    return re.findall(r"\w+", " ".join(list_html_texts(html)))


def split_markdown_words(markdown: str) -> list[str]:
    return re.findall(r"\w+", strip_own_numbers(markdown))


def strip_own_numbers(markdown: str) -> str:
    """Remove what Markdown adds: addresses, the numbers of lists, the labels of notes."""
    markdown = re.sub(r"!\[[^\]\n]*\]\([^)\s]*\)", " ", markdown)
    markdown = re.sub(r"(?<!\\)\]\([^)\s]*\)", "] ", markdown)
    markdown = re.sub(r"(?m)^[ >|-]*\[\^\w+\] ", " ", markdown)
    return re.sub(r"(?m)^[ >-]*(?:\d+\. )+", " ", markdown)
