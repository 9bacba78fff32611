"""What kind of document a file is by what is in it, with its name hidden."""

import io
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from reportlab.lib.pagesizes import A3, landscape
from reportlab.pdfgen.canvas import Canvas

from readingroom.ingest.document import Document, ReadOptions
from readingroom.ingest.kinds.subjects import find_kind_by_subject
from readingroom.ingest.kinds.titles import TYPE_BY_KIND
from readingroom.ingest.read.reader import read_file
from tests.requirements import requirement
from tests.support.papers import Paper

FIXTURES = Path(__file__).parents[1] / "fixtures" / "kinds"
HIDDEN_NAME = "scan0001.pdf"
SIZES = {"!!": 24.0, "!": 16.0}


class Specimen(NamedTuple):
    half: str
    kind: str
    lines: list[str]


def load_specimens(file_name: str) -> Iterator[Specimen]:
    blocks = (FIXTURES / file_name).read_text("utf-8").split("== ")[1:]
    for block in blocks:
        head, *lines = block.strip().splitlines()
        half, kind = head.split()
        yield Specimen(half, kind, lines)


def typeset(specimen: Specimen) -> bytes:
    made = Paper()
    for line in specimen.lines:
        mark, _, rest = line.partition(" ")
        if mark in SIZES:
            made.write(rest, size=SIZES[mark], bold=True)
        else:
            made.write(line)
    return made.done()


def draw(specimen: Specimen) -> bytes:
    """A drawing of some hundred lines, with its labels spread over it and a title block."""
    spread = random.Random(specimen.lines[0])
    file = io.BytesIO()
    width, height = landscape(A3)
    canvas = Canvas(file, pagesize=(width, height))
    for _ in range(spread.randint(60, 400)):
        x, y = spread.uniform(40, width - 300), spread.uniform(60, height - 60)
        canvas.line(x, y, x + spread.uniform(-60, 60), y + spread.uniform(-60, 60))
    title, *labels = [label.strip() for label in specimen.lines[0].split("|")]
    for row, label in enumerate(labels):
        in_block = any(mark in label.lower() for mark in ("1:", "rev", "drawn", "dwg", "draw"))
        canvas.setFont("Helvetica", 8)
        if in_block:
            canvas.drawString(width - 230, 180 - 12 * row, label)
        else:
            canvas.drawString(spread.uniform(50, width - 350), spread.uniform(80, 700), label)
    canvas.setFont("Helvetica-Bold", 13)
    canvas.drawString(width - 230, 220, title)
    canvas.save()
    return file.getvalue()


def read(content: bytes) -> Document:
    document = read_file(content, HIDDEN_NAME, ReadOptions(), lambda *progress: None)
    assert isinstance(document, Document)
    return document


def find_mistakes(specimens: list[Specimen], drawn: bool) -> list[tuple[str, str, str]]:
    mistakes = []
    for specimen in specimens:
        document = read(draw(specimen) if drawn else typeset(specimen))
        kind = document.classification.document_kind
        assert document.classification.document_type == TYPE_BY_KIND.get(kind, "other")
        if kind != specimen.kind:
            mistakes.append((specimen.kind, kind, specimen.lines[0]))
    return mistakes


@requirement("documents:kinds")
@pytest.mark.parametrize("half", ["tune", "test"])
@pytest.mark.parametrize(("file_name", "drawn"), [("texts.txt", False), ("drawings.txt", True)])
def test_most_kinds_are_found_with_the_names_hidden(file_name: str, drawn: bool, half: str) -> None:
    specimens = [one for one in load_specimens(file_name) if one.half == half]

    mistakes = find_mistakes(specimens, drawn)

    assert 1 - len(mistakes) / len(specimens) >= 0.85, mistakes


@requirement("documents:kinds")
@pytest.mark.parametrize("file_name", ["printed.zip", "printed_later.zip", "printed_third.zip"])
@pytest.mark.parametrize("folder", ["texts", "drawings"])
def test_most_kinds_are_found_in_what_another_program_printed(file_name: str, folder: str) -> None:
    mistakes = []
    with zipfile.ZipFile(FIXTURES / file_name) as archive:
        names = [name for name in archive.namelist() if name.startswith(f"{folder}/")]
        for name in names:
            _, kind, _ = name.split("/")
            found_kind = read(archive.read(name)).classification.document_kind
            if found_kind != kind:
                mistakes.append((kind, found_kind))

    assert 1 - len(mistakes) / len(names) >= 0.85, mistakes


@requirement("documents:kinds")
def test_a_subject_is_told_only_where_its_words_lead_clearly() -> None:
    assert find_kind_by_subject("bats left the roost at dusk and a licence is needed") == (
        "ecology_report"
    )
    assert find_kind_by_subject("the minutes of the allotment society for june") is None
    assert (
        find_kind_by_subject("bats nest at dusk beside a flood in zone 3 of the greenfield") is None
    )


@requirement("documents:kinds", "documents:drawings")
def test_a_drawing_of_lines_is_a_drawing_and_a_report_with_a_table_is_none() -> None:
    (plan, *_) = load_specimens("drawings.txt")
    assert read(draw(plan)).contains_drawings

    made = Paper()
    made.write("Schedule of trees with girths and categories, as surveyed in May.")
    for row in range(30):
        for column in range(5):
            made.canvas.rect(72 + 90 * column, 600 - 15 * row, 90, 15)
            made.canvas.drawString(74 + 90 * column, 604 - 15 * row, f"T{row} {column} cm")
    assert not read(made.done()).contains_drawings
