"""Reading PDFs: text as a person would copy it, pages, pictures, chunks."""

import io

import pypdfium2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pypdf import PdfWriter
from reportlab.pdfgen.canvas import Canvas

from readingroom.core.progress import no_progress
from readingroom.engine.chunking import CHUNK_SIZE
from readingroom.ingest import pipeline
from readingroom.ingest.document import Document, ReadOptions, Refusal, SkippedFile
from readingroom.ingest.errors import ExtractionFailed
from readingroom.ingest.pipeline import Pipeline
from readingroom.ingest.read.formats.images import (
    Rectangle,
    compute_union_area,
    measure_image_ratio,
)
from readingroom.ingest.read.page import BROKEN_WORD_MARK, Line, RawPage, normalize_text
from readingroom.ingest.read.reader import assemble_document, read_file
from readingroom.ingest.read.sandbox import ConfinedReader
from readingroom.ingest.structure import layout
from tests.requirements import requirement
from tests.support.papers import (
    HEIGHT,
    LEFT,
    WIDTH,
    Paper,
    make_drawn_pdf,
    make_paper,
    open_private_copy,
)

NO_OCR = ReadOptions(enable_ocr=False)
PROSE = "The quick brown fox jumps over the lazy dog, and the dog does not mind it at all. "


def read_text(data: bytes, name: str = "paper.pdf", options: ReadOptions = NO_OCR) -> Document:
    document = read_file(data, name, options, lambda *_: None)
    assert isinstance(document, Document)
    return document


@requirement("ingest:text:furniture")
def test_headers_and_footers_are_in_the_page_but_not_in_the_text() -> None:
    made = Paper(header="Borough of Example – Local Plan", footer="Page # of 5")
    for page in range(5):
        if page:
            made.turn()
        made.write(f"What page {page + 1} says. {PROSE}")

    document = read_text(made.done())

    assert "Borough" not in document.text
    assert "of 5" not in document.text
    assert all(f"What page {page} says." in document.text for page in range(1, 6))
    for page in document.pages:
        assert "Borough of Example – Local Plan" in page.text
        assert f"Page {page.number} of 5" in page.text


@requirement("ingest:text:furniture")
def test_a_line_that_stands_at_the_edge_once_is_text() -> None:
    made = Paper(footer="Printed on recycled paper")
    made.write(PROSE)

    assert "Printed on recycled paper" in read_text(made.done()).text


@requirement("ingest:text:paragraphs")
def test_paragraphs_are_parted_by_a_blank_line_and_lines_by_a_break() -> None:
    made = Paper()
    for _ in range(3):
        made.write(PROSE * 3)

    paragraphs = read_text(made.done()).text.split("\n\n")

    assert len(paragraphs) == 3
    assert all(" ".join(paragraph.split()) == (PROSE * 3).strip() for paragraph in paragraphs)


@requirement("ingest:text:paragraphs")
def test_a_sentence_goes_on_over_a_page_and_a_paragraph_does_not() -> None:
    document = read_text(make_paper("It goes on over", "the page. It ends.", "Another begins."))

    assert document.text == "It goes on over\nthe page. It ends.\n\nAnother begins."


@requirement("ingest:text:hyphens")
def test_a_broken_word_is_mended_the_way_the_document_writes_it() -> None:
    raw_page = RawPage(1, "1", 800.0, make_lines("Good infrastructure and plan-making help."))
    raw_page.lines += make_lines(
        f"More infra{BROKEN_WORD_MARK}structure, more plan{BROKEN_WORD_MARK}making,", 700
    )
    raw_page.lines += make_lines("more up-", 680) + make_lines("to-date and sustain-", 660)
    raw_page.lines += make_lines("able A- roads", 640)

    layout.rejoin_words([raw_page])

    assert " ".join(line.text for line in raw_page.lines) == (
        "Good infrastructure and plan-making help. More infrastructure, more plan-making, "
        "more up-to-date and sustainable A- roads"
    )


def make_lines(text: str, bottom: float = 720.0) -> list[Line]:
    return [Line(text, 72.0, bottom, 11.0, is_bold=False, last_bottom=bottom)]


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("e\ufb03cient \ufb02oor", "efficient floor"),
        ("10\u00bd m\u00b2", "10½ m²"),
        ("a\u00a0b\u00ad\u200bc", "a bc"),
        ("cafe\u0301", "café"),
        ("a\x00\x1fb\ud800", "ab"),
        ("plain text", "plain text"),
    ],
)
@requirement("ingest:text:normal")
def test_text_is_normalised_without_losing_its_meaning(written: str, read_as: str) -> None:
    assert normalize_text(written) == read_as


@pytest.mark.parametrize("turn", [90, 180, 270])
@requirement("ingest:text:turned")
def test_a_turned_page_reads_like_an_upright_one(turn: int) -> None:
    made = Paper(header="A header on every page", footer="Page #")
    for page in range(4):
        if page:
            made.turn()
        made.write(f"Page {page + 1}. {PROSE * 2}")
        made.write(PROSE)
    upright = made.done()

    assert read_text(turn_pages(upright, turn)).text == read_text(upright).text


def turn_pages(data: bytes, degrees: int) -> bytes:
    """The same as displayed, with the page turned one way and its content the other."""
    writer = PdfWriter(clone_from=io.BytesIO(data))
    for page in writer.pages:
        page.rotate(-degrees)
        page.transfer_rotation_to_content()
        page.rotate(degrees)
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


@requirement("ingest:text:labels")
def test_pages_have_the_labels_they_are_printed_with() -> None:
    writer = PdfWriter(clone_from=io.BytesIO(make_paper(*[PROSE] * 4)))
    writer.set_page_label(0, 1, style="/r")
    writer.set_page_label(2, 3, style="/D", prefix="A-")
    file = io.BytesIO()
    writer.write(file)

    pages = read_text(file.getvalue()).pages

    assert [page.label for page in pages] == ["i", "ii", "A-1", "A-2"]
    assert [page.number for page in pages] == [1, 2, 3, 4]


@pytest.mark.parametrize("password", ["", "sesame"])
@requirement("ingest:text:encrypted")
def test_an_encrypted_file_opens_without_a_password_or_says_what_is_wrong(password: str) -> None:
    writer = PdfWriter(clone_from=io.BytesIO(make_paper(PROSE)))
    writer.encrypt(user_password=password, owner_password="owner", algorithm="AES-256")
    file = io.BytesIO()
    writer.write(file)

    if not password:
        assert read_text(file.getvalue()).text.startswith("The quick brown fox")
        return
    with pytest.raises(Refusal, match="encrypted and does not open without its password") as told:
        read_text(file.getvalue())
    assert told.value.code == "extraction_failed"


def measure_ratio(data: bytes) -> float:
    with pypdfium2.PdfDocument(data) as document:
        return measure_image_ratio(document[0])


BLACK = Image.new("L", (8, 8))


@requirement("ingest:images:ratio")
def test_the_image_ratio_counts_overlaps_once_and_only_what_is_on_the_page() -> None:
    made = Paper()
    made.picture(BLACK, (0, 0, WIDTH / 2, HEIGHT))
    made.picture(BLACK, (0, 0, WIDTH / 2, HEIGHT / 2))
    made.picture(BLACK, (-WIDTH, 0, WIDTH / 4, HEIGHT))
    made.picture(BLACK, (WIDTH / 2, HEIGHT / 2, WIDTH * 2, HEIGHT * 2))

    assert measure_ratio(made.done()) == pytest.approx(0.75, abs=1e-3)


@requirement("ingest:images:ratio")
def test_an_image_inside_forms_is_placed_through_their_matrices() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.beginForm("inner")
        canvas.drawInlineImage(BLACK, 0, 0, 1, 1)
        canvas.endForm()
        canvas.beginForm("outer")
        canvas.scale(WIDTH, 1)
        canvas.doForm("inner")
        canvas.endForm()
        canvas.translate(0, HEIGHT / 4)
        canvas.scale(1, HEIGHT / 2)
        canvas.doForm("outer")

    assert measure_ratio(make_drawn_pdf(draw)) == pytest.approx(0.5, abs=1e-3)


@given(
    st.lists(
        st.tuples(*[st.integers(0, 12)] * 4).map(
            lambda edges: Rectangle(
                min(edges[0], edges[2]),
                min(edges[1], edges[3]),
                max(edges[0], edges[2]),
                max(edges[1], edges[3]),
            )
        ),
        max_size=12,
    )
)
@requirement("ingest:images:ratio")
def test_the_area_of_a_union_is_that_of_its_cells(rectangles: list[Rectangle]) -> None:
    cells = {
        (x, y)
        for one in rectangles
        for x in range(int(one.left), int(one.right))
        for y in range(int(one.bottom), int(one.top))
    }

    assert compute_union_area(rectangles) == pytest.approx(len(cells))


def report_of(pages: int, pictures: int) -> bytes:
    """So many pages of text, then so many of pictures."""
    made = Paper()
    for page in range(pages + pictures):
        if page:
            made.turn()
        if page < pages:
            made.write(PROSE)
        else:
            made.picture(BLACK, (0, 0, WIDTH, HEIGHT))
    return made.done()


@requirement("documents:drawings", "ingest:images:drawings")
def test_a_document_contains_drawings_by_a_page_or_by_its_name() -> None:
    assert read_text(report_of(9, 1)).contains_drawings
    assert not read_text(report_of(9, 0)).contains_drawings
    assert read_text(report_of(9, 0), name="Proposed Floor Plans.pdf").contains_drawings
    assert read_text(report_of(9, 0), name="Perspective 2.pdf").contains_drawings


@requirement("ingest:images:skip")
def test_pages_with_text_speak_against_skipping_unless_the_rule_is_literal() -> None:
    made = Paper()
    for page in range(4):
        if page:
            made.turn()
        made.picture(BLACK, (0, 0, WIDTH, HEIGHT))
        made.write(PROSE)
    searchable_scan = made.done()

    assert read_text(searchable_scan).method == "text_layer"
    by_ratio = ReadOptions(enable_ocr=False, image_skip_rule="ratio")
    assert read_file(searchable_scan, "scan.pdf", by_ratio, lambda *_: None) == SkippedFile(1.0, 4)


@requirement("ingest:images:skip")
def test_a_rendering_is_skipped_without_a_look() -> None:
    skipped = read_file(report_of(1, 9), "Street_Scene_CGI_03.pdf", ReadOptions(), lambda *_: None)

    assert skipped == SkippedFile(0.9, 10)


@requirement("documents:ocr:off", "ingest:ocr:notes")
def test_without_ocr_pages_without_text_say_so() -> None:
    pages = read_text(report_of(2, 1)).pages

    assert [page.reading_note is not None for page in pages] == [False, False, True]
    assert "OCR is off (ENABLE_OCR)" in (pages[2].reading_note or "")
    with pytest.raises(Refusal, match="OCR is off") as told:
        read_file(report_of(0, 2), "scan.pdf", NO_OCR, lambda *_: None)
    assert told.value.code == "no_content"


WORDS = st.text("abcdefgh", min_size=1, max_size=9)
SENTENCES = st.lists(WORDS, min_size=1, max_size=30).map(lambda words: " ".join(words) + ".")
HEADINGS = st.integers(1, 4).map(lambda number: f"Policy AB{number}: Title")


@st.composite
def raw_pages(draw: st.DrawFn) -> list[RawPage]:
    found = []
    for number in range(1, draw(st.integers(1, 5)) + 1):
        raw_page = RawPage(number, str(number), HEIGHT)
        at = HEIGHT - 100
        for text in draw(st.lists(st.one_of(SENTENCES, HEADINGS), max_size=12)):
            bold = text.startswith("Policy")
            at -= draw(st.sampled_from([14.0, 28.0]))
            raw_page.lines.append(Line(text, LEFT, at, 11.0, bold, at))
        found.append(raw_page)
    return found


@settings(deadline=None)
@given(raw_pages())
@requirement("ingest:chunks")
def test_chunks_cover_the_text_know_their_pages_and_never_cross_a_section(
    read_raw_pages: list[RawPage],
) -> None:
    try:
        document = assemble_document(read_raw_pages, "a.pdf", ReadOptions(find_sections=True))
    except Refusal as refusal:
        assert refusal.code == "no_content"
        assert not any(raw_page.lines for raw_page in read_raw_pages)
        return

    covered = bytearray(len(document.text))
    for chunk in document.chunks:
        covered[chunk.start_offset : chunk.end_offset] = b"x" * (
            chunk.end_offset - chunk.start_offset
        )
        assert 0 < chunk.end_offset - chunk.start_offset <= CHUNK_SIZE
        assert chunk.start_offset <= chunk.own_start_offset < chunk.end_offset
        assert chunk.pages == list_pages_between(document, chunk.own_start_offset, chunk.end_offset)
        section = find_section_at(document, chunk.own_start_offset)
        assert (chunk.section_ref, chunk.section_path) == section
        assert find_section_at(document, chunk.end_offset - 1) == section
    assert not any(
        sign.strip() and not mark for sign, mark in zip(document.text, covered, strict=True)
    )
    assert [chunk.index for chunk in document.chunks] == [*range(len(document.chunks))]
    starts = {section.start_offset for section in document.sections}
    for chunk in document.chunks:
        assert not any(chunk.own_start_offset < start < chunk.end_offset for start in starts)


def list_pages_between(document: Document, start: int, end: int) -> tuple[int, ...]:
    return tuple(
        page.number
        for page in document.pages
        if page.start_offset < page.end_offset
        and page.start_offset < end
        and start < page.end_offset
    )


def find_section_at(document: Document, place: int) -> tuple[str | None, tuple[str, ...]]:
    for section in document.sections:
        if section.start_offset <= place < section.end_offset:
            return section.ref, section.path
    return None, ()


@requirement("ingest:chunks")
def test_each_page_lies_where_it_says_in_the_text() -> None:
    document = read_text(make_paper("First page here.", "", "Third page here.", ""))

    parts = [document.text[page.start_offset : page.end_offset] for page in document.pages]

    assert parts == ["First page here.", "", "Third page here.", ""]
    assert document.chunks[0].pages == (1, 3)


@pytest.mark.anyio
@requirement("ingest:chunks:cap")
async def test_a_document_of_too_many_chunks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "MAX_DOCUMENT_CHUNKS", 3)
    pages = [f"Page {number} with enough words on it. " * 20 for number in range(8)]

    with open_private_copy(make_paper(*pages), "long.pdf") as private_copy:
        with pytest.raises(ExtractionFailed, match=r"chunks of text; at most 3 .* Split it"):
            await Pipeline(ConfinedReader()).read_document(private_copy, no_progress)
        monkeypatch.setattr(pipeline, "MAX_DOCUMENT_CHUNKS", 300)
        assert isinstance(
            await Pipeline(ConfinedReader()).read_document(private_copy, no_progress), Document
        )
