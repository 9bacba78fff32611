"""No text makes reading it take longer than its length allows: twice as much, twice as long."""

from collections.abc import Callable, Sequence

import pytest

from readingroom.core.progress import no_progress
from readingroom.ingest.document import Document, ReadOptions
from readingroom.ingest.kinds.classify import classify_document
from readingroom.ingest.read.formats.web import add_html
from readingroom.ingest.read.page import Line, RawPage, normalize_text
from readingroom.ingest.read.reflow import PageBuilder
from readingroom.ingest.read.sandbox import ConfinedReader, ReadingLimits
from readingroom.ingest.structure import layout, sections
from tests.requirements import requirement
from tests.support.growth import assert_grows_linearly
from tests.support.papers import make_drawn_pdf, open_private_copy

MANY = 8_000


def read_lines(texts: Sequence[str], *, bold: bool = False, bottom: float = 750.0) -> None:
    """Find the text and the sections of a page with these lines."""
    lines = [
        Line(text, 72.0, bottom - 0.001 * index, 10.0, bold, bottom - 0.001 * index)
        for index, text in enumerate(texts)
    ]
    sections.find_sections(layout.make_text_flow([RawPage(1, "1", 842.0, lines)]))


HOSTILE: dict[str, Callable[[int], object]] = {
    "leaders": lambda count: read_lines([". " * count + "x"]),
    "dots": lambda count: read_lines(["." * count + "x"]),
    "spaces": lambda count: read_lines(["a" + " " * count + "x"]),
    "a page number": lambda count: read_lines(["1" + " " * count + "x"], bottom=10),
    "a decimal number": lambda count: read_lines(["Chapter 1" + ".1" * count + "\nx"]),
    "a long word": lambda count: read_lines(["a" * count + "\x02 b"]),
    "a word of hyphens": lambda count: read_lines(["a-" * count + "\x02 b"]),
    "a word on many lines": lambda count: read_lines(["a-"] * count),
    "a title on many lines": lambda count: read_lines(
        [f"Table {number % 99} Title" for number in range(count)], bold=True
    ),
    "accents": lambda count: normalize_text("a" + "\u0301\u0323" * count),
    "a tag of many attributes": lambda count: add_html(
        b"<p " + b" ".join(b"a%d" % number for number in range(5 * count)) + b">x", PageBuilder()
    ),
    "a file name": lambda count: classify_document("a" * count + ".pdf"),
}


@pytest.mark.parametrize("kind", HOSTILE)
@requirement("ingest:growth")
def test_four_times_the_text_takes_no_more_than_eight_times_as_long(kind: str) -> None:
    assert_grows_linearly(HOSTILE[kind], 2 * MANY)


@pytest.mark.anyio
@requirement("ingest:growth")
async def test_a_policy_that_is_one_row_of_dots_is_read() -> None:
    dots = make_drawn_pdf(lambda canvas: canvas.drawString(10, 400, ". " * 50_000 + "end"))
    limits = ReadingLimits(cpu_seconds=20, wall_seconds=300, silent_seconds=300)
    options = ReadOptions(find_sections=True)

    with open_private_copy(dots, "dots.pdf") as private_copy:
        document = await ConfinedReader(limits).read_document(
            private_copy.file, "dots.pdf", options, no_progress
        )

    assert isinstance(document, Document)
    assert document.total_chars > 30_000
