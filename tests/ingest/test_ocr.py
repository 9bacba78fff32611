"""OCR with the real tesseract: scans are read, doubts are told, and its absence harms nothing."""

import logging
import tempfile
from collections import Counter
from pathlib import Path

import pypdfium2
import pytest
from PIL import Image

from readingroom.core.progress import no_progress
from readingroom.ingest.document import Document, ReadOptions, SkippedFile
from readingroom.ingest.errors import ExtractionFailed
from readingroom.ingest.pipeline import Pipeline
from readingroom.ingest.read import ocr
from readingroom.ingest.read.reader import read_file
from readingroom.ingest.read.sandbox import ConfinedReader
from readingroom.ingest.setup import make_pipeline
from readingroom.settings import load_settings
from tests.requirements import requirement
from tests.support.papers import (
    HEIGHT,
    LEFT,
    WIDTH,
    Paper,
    encode_image,
    make_paper,
    open_private_copy,
)

pytestmark = pytest.mark.anyio

TEXT = """The proposed development provides covered cycle parking for every dwelling, close to the
entrance and overlooked from the street. Access for larger vehicles is taken from the north, where
the existing hedge is set back to give a visibility splay of 43 metres in both directions. Surface
water drains to a basin in the lowest corner of the site, which holds the runoff of a storm expected
once in a hundred years with an allowance for climate change. The oak by the southern boundary is
retained, and no trench comes nearer to its trunk than twelve metres. Noise from the railway was
measured over seven days; with the glazing described in the schedule all bedrooms are unheard at
night. The council was asked for its opinion in March, and its officers agreed that the scale of
the buildings follows the ridge of the terrace opposite. """.replace("\n", " ")
SENTENCE = "Covered cycle parking is provided for every dwelling."


async def read(data: bytes, name: str, **options: object) -> Document | SkippedFile:
    with open_private_copy(data, name) as private_copy:
        return await Pipeline(ConfinedReader(), ReadOptions(**options)).read_document(
            private_copy, no_progress
        )  # type: ignore[arg-type]


async def read_text(data: bytes, name: str, **options: object) -> Document:
    document = await read(data, name, **options)
    assert isinstance(document, Document)
    return document


def make_scan(text: str, turn: int = 0) -> Image.Image:
    """A clean page of this text as a scanner would give it, at 300 DPI."""
    with pypdfium2.PdfDocument(make_paper(text)) as document:
        picture = document[0].render(scale=300 / 72, grayscale=True).to_pil()
    return picture.rotate(turn, expand=True)


def make_scanned_pdf(*pictures: Image.Image, words: str = "") -> bytes:
    """A PDF whose pages are pictures, after one of words if any are given."""
    made = Paper()
    if words:
        made.write(words)
    for index, picture in enumerate(pictures):
        if index or words:
            made.turn()
        made.picture(picture, (0, 0, WIDTH, HEIGHT))
    return made.done()


def measure_recall(found: str, truth: str) -> float:
    """The share of the true words that were found, each as often as it is there."""
    wanted = Counter(truth.lower().split())
    return sum((wanted & Counter(found.lower().split())).values()) / wanted.total()


@requirement("ingest:ocr:recall", "documents:textlayer")
async def test_clean_renders_are_read_almost_perfectly() -> None:
    document = await read_text(make_scanned_pdf(make_scan(TEXT * 3)), "scan.pdf")

    assert document.method == "ocr"
    assert measure_recall(document.text, TEXT * 3) >= 0.98
    (page,) = document.pages
    assert page.confidence is not None
    assert page.confidence > 85


@pytest.mark.data
@requirement("ingest:ocr:recall")
async def test_the_real_scan_is_read_well(shared_data: Path) -> None:
    folder = shared_data / "documents" / "ocrmypdf"

    document = await read_text((folder / "linn.pdf").read_bytes(), "linn.pdf")

    assert measure_recall(document.text, (folder / "linn.txt").read_text("utf-8")) > 0.9


@requirement("documents:method", "ingest:ocr:method")
async def test_a_document_with_a_scanned_page_is_mixed() -> None:
    document = await read_text(make_scanned_pdf(make_scan(SENTENCE), words=TEXT), "scan.pdf")

    assert document.method == "mixed"
    assert [page.method for page in document.pages] == ["text_layer", "ocr"]


@pytest.mark.parametrize(
    ("format", "name"),
    [("PNG", "a.png"), ("JPEG", "a.jpg"), ("JPEG", "a.jpeg"), ("TIFF", "a.tif"), ("BMP", "a.BMP")],
)
@requirement("ingest:ocr:formats")
async def test_image_files_are_read(format: str, name: str) -> None:
    document = await read_text(encode_image(make_scan(SENTENCE), format), name)

    assert document.method == "ocr"
    assert document.text == SENTENCE


@requirement("ingest:ocr:formats")
async def test_the_frames_of_a_tiff_are_pages() -> None:
    first, second = make_scan("First page of the letter."), make_scan("Second page of the letter.")
    tiff = encode_image(first, "TIFF", save_all=True, append_images=[second])

    document = await read_text(tiff, "letter.tiff")

    assert [page.text.split()[0] for page in document.pages] == ["First", "Second"]


@requirement("ingest:ocr:formats")
async def test_a_file_is_what_its_bytes_say_not_what_its_name_says() -> None:
    document = await read_text(encode_image(make_scan(SENTENCE), "PNG"), "really-a-picture.pdf")

    assert document.method == "ocr"


@requirement("ingest:ocr:turned")
async def test_a_page_on_its_side_is_turned() -> None:
    document = await read_text(encode_image(make_scan(TEXT, turn=90), "PNG"), "sideways.png")

    assert measure_recall(document.text, TEXT) > 0.9


def draw_photograph() -> Image.Image:
    return Image.effect_mandelbrot((800, 1130), (-2, -1.5, 1, 1.5), 60).convert("RGB")


SHORT_LETTER = (
    "I object to the garage. It is too tall, it stands on the boundary, and it takes the light "
    "from our kitchen."
)


@requirement("ingest:images:skip")
async def test_a_picture_has_the_same_outcome_whether_it_is_a_pdf_or_an_image() -> None:
    for picture, is_read in ((draw_photograph(), False), (make_scan(SHORT_LETTER), True)):
        in_pdf = await read(make_scanned_pdf(picture), "a.pdf")
        as_image = await read(encode_image(picture, "PNG"), "a.png")
        assert isinstance(in_pdf, Document) == isinstance(as_image, Document) == is_read
        if isinstance(in_pdf, Document) and isinstance(as_image, Document):
            assert measure_recall(in_pdf.text, SHORT_LETTER) > 0.9
            assert measure_recall(as_image.text, SHORT_LETTER) > 0.9
        else:
            assert in_pdf == as_image == SkippedFile(1.0, 1)


@requirement("documents:ratio", "ingest:images:skip")
async def test_a_scan_is_read_and_a_photograph_is_skipped() -> None:
    assert await read(make_scanned_pdf(draw_photograph()), "photo.pdf") == SkippedFile(1.0, 1)
    scanned = await read_text(make_scanned_pdf(make_scan(TEXT)), "letter.pdf")
    assert scanned.method == "ocr"
    assert scanned.contains_drawings


@requirement("documents:render", "ingest:renderings")
async def test_a_rendering_never_goes_to_ocr() -> None:
    picture = encode_image(make_scan(SENTENCE), "PNG")
    mixed = make_scanned_pdf(make_scan(SENTENCE), words=TEXT)

    assert await read(picture, "Street_Scene_CGI_03.png") == SkippedFile(1.0, 1)
    document = await read_text(mixed, "Perspective.pdf")
    assert document.method == "text_layer"
    assert "named like a rendering" in (document.pages[1].reading_note or "")


@requirement("documents:confidence", "ingest:ocr:confidence")
async def test_a_page_of_low_confidence_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    blurred = make_scan(TEXT).resize((300, 424)).resize((2480, 3508))

    document = await read_text(encode_image(blurred, "PNG"), "faint.png")

    (page,) = document.pages
    assert page.confidence is not None
    assert page.confidence < 70
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert record.fields["page"] == 1  # type: ignore[attr-defined]
    assert record.fields["confidence"] == page.confidence  # type: ignore[attr-defined]
    assert "faint.png" not in str(record.__dict__)


@requirement("ingest:ocr:notes")
async def test_without_tesseract_pages_say_so_and_nothing_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tempfile.TemporaryDirectory() as nothing:
        monkeypatch.setenv("PATH", nothing)

        document = await read_text(make_scanned_pdf(make_scan(TEXT), words=TEXT), "scan.pdf")

    assert document.method == "text_layer"
    assert (
        document.pages[1].reading_note
        == "The page has no text layer, and tesseract is not installed"
    )


@requirement("ingest:sandbox:progress")
async def test_ocr_tells_its_progress_after_the_text_pages() -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def listen(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))

    with open_private_copy(
        make_scanned_pdf(make_scan("A word."), words=TEXT), "scan.pdf"
    ) as private_copy:
        await Pipeline(ConfinedReader()).read_document(private_copy, listen)

    assert heard == [(2, 2, "page 2 of 2"), (3, 3, "OCR of page 2, 1 of 1")]


@requirement("ingest:ocr:lines")
async def test_a_paragraph_in_a_scan_is_a_paragraph_in_the_text() -> None:
    made = Paper()
    made.write(TEXT)
    made.write(TEXT, left=LEFT)
    with pypdfium2.PdfDocument(made.done()) as document:
        picture = document[0].render(scale=300 / 72, grayscale=True).to_pil()

    read_back = await read_text(encode_image(picture, "PNG"), "scan.png")

    assert len(read_back.text.split("\n\n")) == 2


@requirement("ingest:settings")
async def test_the_settings_reach_the_pipeline(tmp_path: Path) -> None:
    scan_of_words = make_scanned_pdf(make_scan(SENTENCE), words=TEXT)
    literal = {"ENABLE_OCR": "false", "IMAGE_SKIP": "ratio", "IMAGE_RATIO_THRESHOLD": "0.4"}
    hasty = {"READINGROOM_INGEST_SECONDS": "0.01"}

    with open_private_copy(scan_of_words, "scan.pdf") as private_copy:
        by_ratio = make_pipeline(load_settings({"data": tmp_path}, literal))
        assert await by_ratio.read_document(private_copy, no_progress) == SkippedFile(0.5, 2)
        without_ocr = make_pipeline(load_settings({"data": tmp_path}, {"ENABLE_OCR": "false"}))
        found = await without_ocr.read_document(private_copy, no_progress)
        assert isinstance(found, Document)
        assert found.method == "text_layer"
        with pytest.raises(ExtractionFailed, match=r"more than 0\.01 seconds"):
            await make_pipeline(load_settings({"data": tmp_path}, hasty)).read_document(
                private_copy, no_progress
            )


@requirement("ingest:ocr:blank")
async def test_a_blank_page_is_not_given_to_tesseract(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Image.Image] = []
    really = ocr._run_tesseract

    def note(picture: Image.Image) -> ocr.OcrResult:
        seen.append(picture)
        return really(picture)

    monkeypatch.setattr(ocr, "_run_tesseract", note)
    blank = Image.new("L", (1200, 1600), 255)
    speckled = blank.copy()
    speckled.putpixel((600, 800), 0)
    frames = [
        blank,
        speckled,
        Image.new("L", (1200, 1600), 128),
        make_scan("A few more words stand here."),
        blank,
    ]
    tiff = encode_image(frames[0], "TIFF", save_all=True, append_images=frames[1:])

    document = read_file(tiff, "pages.tiff", ReadOptions(), lambda *progress: None)

    assert isinstance(document, Document)
    assert [page.text for page in document.pages] == [
        "",
        "",
        "",
        "A few more words stand here.",
        "",
    ]
    assert len(seen) == 1


@requirement("ingest:ocr:blank")
def test_faint_words_are_not_blank() -> None:
    faint = make_scan("A few more words stand here.").point(lambda shade: 255 - (255 - shade) // 60)

    assert [line.text for line in ocr.recognize_text(faint, 40_000_000).lines] == [
        "A few more words stand here."
    ]
