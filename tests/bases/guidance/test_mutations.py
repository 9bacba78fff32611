"""Real pages with markup that they do not have yet: no word is lost, no digit changed.

The markup is put in by lxml, which the converter's own tree knows nothing of.
"""

import copy
import json
import random
import re
from collections.abc import Callable
from typing import Any

import lxml.html
import pytest
from lxml.html import HtmlElement

from tests.bases.guidance.test_fidelity import EXAMPLES, find_losses, list_html_fields
from tests.requirements import requirement

_NUMBER_AT_END = re.compile(r"\d$")
_SKIPPED_TAGS = frozenset(["script", "style", "svg", "template", "noscript", "pre", "code"])


def make_element(tag: str, text: str, **attributes: str) -> HtmlElement:
    element = lxml.html.Element(tag, attributes)
    element.text = text
    return element


def split_text(element: HtmlElement, chance: random.Random) -> tuple[str, str]:
    """Return the element's text in two: up to a word, and what follows it."""
    words = (element.text or "").split(" ")
    # After a number if there is one: that is where a mark would change it.
    numbers = [place for place, word in enumerate(words, 1) if _NUMBER_AT_END.search(word)]
    place = chance.choice(
        numbers or [i for i, word in enumerate(words, 1) if re.search(r"\w", word)]
    )
    return " ".join(words[:place]), " ".join(["", *words[place:]])


def put_inside(element: HtmlElement, new: HtmlElement, chance: random.Random) -> None:
    before, after = split_text(element, chance)
    element.text, new.tail = before, after
    element.insert(0, new)


def add_footnote(element: HtmlElement, chance: random.Random) -> None:
    number = str(chance.randint(1, 99))
    mark = make_element("sup", "", id=f"fnref:{number}", role="doc-noteref")
    mark.append(make_element("a", number, href=f"#fn:{number}", rel="footnote"))
    put_inside(element, mark, chance)


def add_superscript(element: HtmlElement, chance: random.Random) -> None:
    put_inside(element, make_element(chance.choice(["sup", "sub"]), "2"), chance)


def add_revision(element: HtmlElement, chance: random.Random) -> None:
    put_inside(element, make_element("ins", f"{chance.randint(100, 999)},000"), chance)
    put_inside(element, make_element("del", f"{chance.randint(100, 999)},500"), chance)


def add_abbreviation(element: HtmlElement, chance: random.Random) -> None:
    put_inside(element, make_element("abbr", "SORP", title="Statement of Practice"), chance)


def add_break(element: HtmlElement, chance: random.Random) -> None:
    # Not before a mark of the page's own: see `mutate_html`.
    if not len(element):
        put_inside(element, lxml.html.Element("br"), chance)


def add_list(element: HtmlElement, chance: random.Random) -> None:
    """A list in a list, and one more level."""
    outer = make_element("ol", "", start=str(chance.randint(2, 40)))
    outer.append(make_element("li", "Outer 7"))
    inner = make_element("ul", "")
    inner.append(make_element("li", "Inner 8"))
    outer[0].append(inner)
    element.append(outer)


def add_table(element: HtmlElement, chance: random.Random) -> None:
    cells = "".join(f"<td>{number}<sup>{number}</sup></td>" for number in range(2, 5))
    table = lxml.html.fromstring(
        '<table><tr><th rowspan="2">Year 2026</th><th colspan="2">Sums</th></tr>'
        f"<tr><td>£1</td><td><ul><li>£20</li><li>£30</li></ul></td></tr><tr>{cells}</tr></table>"
    )
    element.addnext(table)
    table.tail, element.tail = element.tail, None


def add_span(element: HtmlElement, chance: random.Random) -> None:
    for cell in element.iter("td", "th"):
        if chance.random() < 0.3:
            cell.set(chance.choice(["rowspan", "colspan"]), str(chance.randint(2, 3)))


def add_start(element: HtmlElement, chance: random.Random) -> None:
    element.set("start", str(chance.randint(2, 90)))


Mutation = Callable[[HtmlElement, random.Random], None]
MUTATIONS: dict[str, tuple[Mutation, ...]] = {
    **dict.fromkeys(
        ("p", "li", "td", "strong", "a", "h2", "h3"),
        (add_footnote, add_superscript, add_revision, add_abbreviation, add_break),
    ),
    "ol": (add_start,),
    "table": (add_span,),
}
BLOCK_MUTATIONS: dict[str, tuple[Mutation, ...]] = {"li": (add_list,), "p": (add_table,)}


def mutate_html(html: str, chance: random.Random) -> str:
    tree = lxml.html.fromstring(f"<div>{html}</div>")
    for element in list(tree.iter()):
        if not isinstance(element.tag, str) or element.tag in _SKIPPED_TAGS:
            continue
        if any(parent.tag in _SKIPPED_TAGS for parent in element.iterancestors()):
            continue
        mutations = MUTATIONS.get(element.tag, ())
        if element.tag in BLOCK_MUTATIONS and chance.random() < 0.1:
            mutations = BLOCK_MUTATIONS[element.tag]
        # A mark without a word before it is none; and a note's label at the start of a line is
        # what the check takes for the note.
        has_words = bool(re.search(r"\w", element.text or "")) or element.tag in ("ol", "table")
        if element.get("role") == "doc-backlink" or "reversefootnote" in element.classes:
            continue
        if mutations and has_words and chance.random() < 0.5:
            chance.choice(mutations)(element, chance)
    return lxml.html.tostring(tree, encoding="unicode").removeprefix("<div>").removesuffix("</div>")


def mutate_item(value: Any, chance: random.Random, html: frozenset[str]) -> Any:
    if isinstance(value, str):
        return mutate_html(value, chance) if value in html else value
    if isinstance(value, dict):
        return {key: mutate_item(inner, chance, html) for key, inner in value.items()}
    if isinstance(value, list):
        return [mutate_item(inner, chance, html) for inner in value]
    return value


def find_losses_of_mutated_items(seed: int, step: int = 1) -> tuple[int, list[Any]]:
    """Return how many fields of every `step`th page were mutated, and what was lost of them."""
    mutated_count = 0
    losses = []
    for file in sorted(EXAMPLES.glob("*/frontend/*.json"))[::step]:
        item = json.loads(file.read_text("utf-8"))
        if item["schema_name"] in ("redirect", "gone"):
            continue
        html = frozenset(list_html_fields(item["details"]))
        mutated = copy.copy(item)
        mutated["details"] = mutate_item(
            item["details"], random.Random(f"{seed} {file.name}"), html
        )
        fields = zip(
            list_html_fields(item["details"]), list_html_fields(mutated["details"]), strict=True
        )
        mutated_count += sum(before != after for before, after in fields)
        losses += [(file.name, loss) for loss in find_losses(mutated)]
    return mutated_count, losses


@pytest.mark.data
@requirement("guidance:fidelity")
def test_real_pages_with_more_markup_lose_no_word_and_change_no_digit() -> None:
    mutated_count, losses = find_losses_of_mutated_items(1, step=4)
    assert losses == []
    assert mutated_count > 40


@pytest.mark.full
@pytest.mark.data
@requirement("guidance:fidelity")
def test_real_pages_with_much_other_markup_lose_no_word_and_change_no_digit() -> None:
    for seed in range(1, 21):
        mutated_count, losses = find_losses_of_mutated_items(seed)
        assert losses == [], seed
        assert mutated_count > 200
