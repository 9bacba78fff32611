"""Markup that GOV.UK may send and no stored page has: every word and digit is in the text."""

import itertools
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readingroom.bases.guidance.pages.page import GovukPage
from tests.bases.guidance.test_fidelity import find_losses, strip_own_numbers
from tests.requirements import requirement

INLINE_TAGS = ["strong", "em", "b", "i", "u", "small", "span", "code", "q", "cite", "mark", "kbd"]
CALLOUTS = [
    "application-notice info-notice",
    "call-to-action",
    "advisory",
    "example",
    "information",
]
VOID_MARKUP = ["<br>", "<br/>", "<wbr>", "<!-- a remark -->", "&nbsp;", "&#8203;", "\n  "]


class Writer:
    """Writes random markup around words that are each there once."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = itertools.count(10)

    def word(self) -> str:
        number = next(self.numbers)
        return self.random.choice([f"w{number}x", f"£{number},000", f"{number}%", f"{number}.5"])

    def words(self) -> str:
        return " ".join(self.word() for _ in range(self.random.randint(1, 3)))

    def inline(self, depth: int = 0) -> str:
        """Return a few words, some of them marked up."""
        choose = self.random.choice
        pieces = []
        for _ in range(self.random.randint(1, 4)):
            kind = self.random.randint(0, 9) if depth < 3 else 0
            inner = self.words() if depth >= 2 else None
            match kind:
                case 1 | 2:
                    tag = choose(INLINE_TAGS)
                    pieces.append(f"<{tag}>{inner or self.inline(depth + 1)}</{tag}>")
                case 3:
                    href = choose(["/a", "https://x.example/a b(c)", "#top", "mailto:a@b.c", ""])
                    pieces.append(f'<a href="{href}">{inner or self.inline(depth + 1)}</a>')
                case 4:
                    pieces.append(
                        f"{self.word()}<{(tag := choose(['sup', 'sub']))}>{self.word()}</{tag}>"
                    )
                case 5:
                    pieces.append(f"<del>{self.words()}</del><ins>{self.words()}</ins>")
                case 6:
                    pieces.append(f'<abbr title="A name">{self.word()}</abbr>')
                case 7:
                    pieces.append(choose(VOID_MARKUP))
                case _:
                    pieces.append(self.words())
        return " ".join(pieces)

    def blocks(self, depth: int = 0) -> str:
        return "".join(self.block(depth) for _ in range(self.random.randint(1, 3)))

    def block(self, depth: int = 0) -> str:
        if depth > 3:
            return f"<p>{self.words()}</p>"
        kind = self.random.randint(0, 11)
        match kind:
            case 0:
                level = self.random.randint(2, 6)
                return f'<h{level} id="h{level}">{self.inline(2)}</h{level}>'
            case 1 | 2:
                return self.list_of_items(depth)
            case 3 | 4:
                return self.table(depth)
            case 5:
                return f"<blockquote>{self.blocks(depth + 1)}</blockquote>"
            case 6:
                css_class = self.random.choice(CALLOUTS)
                return f'<div class="{css_class}" role="note">{self.blocks(depth + 1)}</div>'
            case 7:
                items = "".join(
                    f"<dt>{self.inline(1)}</dt><dd>{self.blocks(depth + 1)}</dd>" for _ in range(2)
                )
                return f"<dl>{items}</dl>"
            case 8:
                return f"<pre>{self.words()}\n  {self.words()}</pre>"
            case 9:
                summary = f"<summary>{self.inline(2)}</summary>"
                return f"<details>{summary}{self.blocks(depth + 1)}</details>"
            case 10:
                return (
                    f'<figure><img src="/i.png" alt=""><figcaption>{self.inline(2)}</figcaption>'
                    "</figure>"
                )
            case _:
                return f"<p>{self.inline()}</p>"

    def list_of_items(self, depth: int) -> str:
        opening = self.random.choice(
            ["<ul>", "<ol>", '<ol start="7">', '<ol class="legislative-list">', "<ol reversed>"]
        )
        items = []
        for _ in range(self.random.randint(1, 3)):
            inner = self.inline(1)
            if self.random.random() < 0.4:
                inner += self.block(depth + 1)
            items.append(f"<li>{inner}</li>")
        return f"{opening}{''.join(items)}</{opening[1:3]}>"

    def table(self, depth: int) -> str:
        rows = []
        for number in range(self.random.randint(1, 4)):
            tag = "th" if number == 0 else "td"
            cells = []
            for _ in range(self.random.randint(1, 4)):
                spans = "".join(
                    f' {name}="{self.random.randint(2, 3)}"'
                    for name in ("rowspan", "colspan")
                    if self.random.random() < 0.25
                )
                inner = self.inline(1) if self.random.random() < 0.6 else self.blocks(depth + 2)
                cells.append(f"<{tag}{spans}>{inner}</{tag}>")
            rows.append(f"<tr>{''.join(cells)}</tr>")
        caption = f"<caption>{self.inline(2)}</caption>" if self.random.random() < 0.3 else ""
        return f"<table>{caption}<thead>{rows[0]}</thead><tbody>{''.join(rows[1:])}</tbody></table>"


def make_item(html: str) -> dict[str, object]:
    return {"schema_name": "detailed_guide", "title": "T", "details": {"body": html}}


def check(seed: int) -> None:
    html = Writer(seed).blocks()
    item = make_item(html)
    assert find_losses(item) == [], html
    # Each number is there once, and as often in the text.
    text = strip_own_numbers(GovukPage(item).text.partition("## Abbreviations")[0])
    numbers = re.findall(r"\d{2,}", re.sub(r"<[^>]*>|&#\d+;", " ", html))
    assert re.findall(r"\d{2,}", text) == numbers, html


@requirement("guidance:fidelity")
@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32))
def test_no_word_and_no_digit_of_generated_markup_is_lost_doubled_or_moved(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p><code>24.5<sup>25</sup></code></p>", "`24.5^25^`"),
        ("<p><code><del>£23,000</del><ins>24</ins></code></p>", "`~~£23,000~~++24++`"),
        (
            '<p>Wales<a class="footnote" href="#fn:1">1<del>255</del><ins>453</ins></a></p>',
            "Wales[1~~255~~++453++]",
        ),
        ("<pre>10<sup>6</sup><br>20</pre>", "```\n10^6^\n20\n```"),
        ("<pre><p>10</p><p>20</p></pre>", "10\n\n20"),
        ("<ol reversed><li>c</li><li>b</li><li>a</li></ol>", "3. c\n2. b\n1. a"),
        ('<ol reversed start="9"><li>c</li><li>b</li></ol>', "9. c\n8. b"),
    ],
)
def test_numbers_in_code_and_in_lists_are_those_that_readers_see(html: str, text: str) -> None:
    assert text in GovukPage(make_item(html)).text


@pytest.mark.full
@requirement("guidance:fidelity")
def test_no_word_and_no_digit_of_much_generated_markup_is_lost_doubled_or_moved() -> None:
    for seed in range(5000):
        check(seed)
