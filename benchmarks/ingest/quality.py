"""How much of what is there ingest finds: words of scans, sections of policies."""

import re
from collections.abc import Iterable
from pathlib import Path

import pypdfium2
import pytesseract
from PIL import Image

from benchmarks.table import Table
from readingroom.ingest.document import Document, ReadOptions
from readingroom.ingest.read import ocr
from readingroom.ingest.read.reader import read_file
from tests.ingest.test_ocr import TEXT, measure_recall
from tests.ingest.test_sections import (
    list_draft_refs,
    list_expected_refs,
    list_guidance_refs,
    make_guidance_pdf,
)
from tests.support.papers import make_paper, typeset_framework

_SHARED = Path(__file__).parents[3] / "shared" / "data"
_MAX_PIXELS = 40_000_000
_OCR_NOTE = (
    "The share of the true words that were found, each as often as it is there. `linn` is a real "
    "scan with a transcript. The peer is tesseract's own text output."
)
_SECTIONS_NOTE = (
    "References found against those that are there, each counted once. The peer takes every line "
    "that begins like a heading or a numbered paragraph, without its look, its sequence or the "
    "table of contents."
)
_LINE_STARTS = re.compile(
    r"^(?:(Chapter|Section|Annex|Appendix|Table|Figure|Box|Policy) ([A-Z]{0,3}\d[\d.-]*|[A-Z])\b"
    r"|([A-Z]{1,3}\d{1,2}):|(\d{1,3}(?:\.\d+)*)\.? )",
    re.M,
)


def measure_ocr() -> Table:
    """Recall of our one pass beside tesseract's own text output."""
    rows = [
        _measure_ocr_row(
            "clean render of known text", _render_page(make_paper(TEXT * 3)), TEXT * 3, 0.98
        )
    ]
    folder = _SHARED / "documents" / "ocrmypdf"
    if folder.is_dir():
        truth = (folder / "linn.txt").read_text("utf-8")
        rows.append(
            _measure_ocr_row("`linn`", _render_page((folder / "linn.pdf").read_bytes()), truth)
        )
    return Table(
        "Words found by OCR",
        ("page", "`image_to_string`", "Reading Room", "target"),
        tuple(rows),
        _OCR_NOTE,
    )


def measure_sections() -> Table:
    """Precision and recall of section references, document by document."""
    rows = [
        _measure_sections_row(
            "a design guide, made by the tests", make_guidance_pdf(), list_guidance_refs()
        )
    ]
    folder = _SHARED / "policy"
    if folder.is_dir():
        markdown = (folder / "NPPF_December_2024.md").read_text("utf-8")
        draft = (folder / "NPPF_Draft_December_2025.pdf").read_bytes()
        title = "NPPF December 2024, set by the tests"
        rows.append(
            _measure_sections_row(title, typeset_framework(markdown), list_expected_refs(markdown))
        )
        rows.append(
            _measure_sections_row(
                "draft NPPF December 2025, the real PDF", draft, list_draft_refs()
            )
        )
    return Table(
        "Sections found",
        ("document", "sections", "precision", "recall", "line starts: precision", "recall"),
        tuple(rows),
        _SECTIONS_NOTE,
    )


def _render_page(data: bytes) -> Image.Image:
    with pypdfium2.PdfDocument(data) as document:
        picture: Image.Image = document[0].render(scale=300 / 72, grayscale=True).to_pil()
        return picture


def _measure_ocr_row(
    name: str, picture: Image.Image, truth: str, target: float | None = None
) -> tuple[str, ...]:
    peer = measure_recall(pytesseract.image_to_string(picture, config="--dpi 300"), truth)
    lines = ocr.recognize_text(picture, _MAX_PIXELS).lines
    ours = measure_recall("\n".join(line.text for line in lines), truth)
    verdict = f"{'met' if ours >= target else '**missed**'} (at least {target})" if target else ""
    return (name, f"{peer:.3f}", f"{ours:.3f}", verdict)


def _measure_sections_row(name: str, data: bytes, truth: Iterable[str]) -> tuple[str, ...]:
    document = read_file(data, "policy.pdf", ReadOptions(find_sections=True), lambda *_: None)
    assert isinstance(document, Document)
    expected = set(truth)
    ours = {section.ref for section in document.sections}
    peer = {_read_reference(match) for match in _LINE_STARTS.finditer(document.text)}
    return (
        name,
        str(len(expected)),
        *_render_scores(ours, expected),
        *_render_scores(peer, expected),
    )


def _read_reference(match: re.Match[str]) -> str:
    word, number, code, paragraph = match.groups()
    if word:
        return f"{word} {number}"
    return f"Policy {code}" if code else f"Para {paragraph}"


def _render_scores(recognized: set[str], expected: set[str]) -> tuple[str, str]:
    correct_count = len(recognized & expected)
    return f"{correct_count / len(recognized):.3f}", f"{correct_count / len(expected):.3f}"
