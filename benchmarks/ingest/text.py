"""Text pages per second of the processor, beside pypdf and pdfplumber on the same files."""

import gc
import io
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pdfplumber
import pypdf
import pypdfium2

from benchmarks.table import Ratio, Table
from readingroom.ingest.read.formats import pdf
from readingroom.ingest.structure import layout
from tests.support.papers import Paper

TARGET = 1 / 6
_MAX_PAGES = 10_000
_SHARED = Path(__file__).parents[3] / "shared" / "data"
_REAL_FILES = (
    "policy/NPPF_Draft_December_2025.pdf",
    "documents/pypdf/GeoBase_NHNC1_Data_Model_UML_EN.pdf",
    "documents/pikepdf/form_dd0293.pdf",
)
_PROSE = "A path is wide enough when two riders can pass each other and a third can overtake. "
_NOTE = (
    "Processor time of this process for {pages} pages of {files} files. Ours is the whole "
    "extraction: text, a box and a font for each line, the images of every page, words mended, "
    "paragraphs and furniture told apart. The others give text alone. Median of {rounds} rounds "
    "in which all take turns. Ratio: time to pypdf's in the same round, median "
    "(lowest to highest); the target is six times its speed."
)


@dataclass(frozen=True)
class Reader:
    """A way to read a PDF."""

    name: str
    read: Callable[[bytes], int]
    """Gives the number of characters, so that nothing is left unread."""
    target: float | None = None


def measure(rounds: int, with_real_files: bool = True) -> Table:
    """Read every file with every reader, so many times."""
    files = _collect_files(with_real_files)
    pages = sum(len(pypdfium2.PdfDocument(data)) for data in files)
    seconds: dict[str, list[float]] = {reader.name: [] for reader in _READERS}
    for _ in range(rounds):
        for reader in _READERS:
            seconds[reader.name].append(_measure_seconds(reader, files))
    return Table(
        "Reading text from PDF",
        ("reader", "pages a second", "ratio", "target"),
        tuple(_render_row(reader, seconds, pages) for reader in _READERS),
        _NOTE.format(pages=pages, files=len(files), rounds=rounds),
    )


def _collect_files(with_real_files: bool) -> list[bytes]:
    generated_pdf = Paper(header="Guide to paths", footer="Page #")
    for number in range(1, 120):
        generated_pdf.write(_PROSE * 4, number=f"{number}.")
    paths = [
        _SHARED / name for name in _REAL_FILES if with_real_files and (_SHARED / name).exists()
    ]
    return [generated_pdf.done(), *(path.read_bytes() for path in paths)]


def _measure_seconds(reader: Reader, files: list[bytes]) -> float:
    gc.collect()
    began = time.process_time()
    characters = sum(reader.read(data) for data in files)
    took = time.process_time() - began
    assert characters > 10_000, f"{reader.name} found {characters} characters"
    return took


def _read_with_pdfium(data: bytes) -> int:
    with pypdfium2.PdfDocument(data) as document:
        return sum(len(page.get_textpage().get_text_range()) for page in document)


def _read_with_ours(data: bytes) -> int:
    with pdf.open_pdf(data, _MAX_PAGES) as document:
        raw_pages = [pdf.read_raw_page(document, index) for index in range(len(document))]
        return len(layout.make_text_flow(raw_pages).text)


def _read_with_pypdf(data: bytes) -> int:
    return sum(len(page.extract_text()) for page in pypdf.PdfReader(io.BytesIO(data)).pages)


def _read_with_pdfplumber(data: bytes) -> int:
    with pdfplumber.open(io.BytesIO(data)) as document:
        return sum(len(page.extract_text()) for page in document.pages)


_PEER = Reader("pypdf", _read_with_pypdf)
_READERS = (
    Reader("PDFium, text alone (the floor)", _read_with_pdfium),
    Reader("Reading Room", _read_with_ours, TARGET),
    _PEER,
    Reader("pdfplumber", _read_with_pdfplumber),
)


def _render_row(reader: Reader, seconds: dict[str, list[float]], pages: int) -> tuple[str, ...]:
    took = seconds[reader.name]
    ratio = Ratio(took, seconds[_PEER.name])
    verdict = ratio.against(reader.target) if reader.target else ""
    return (reader.name, f"{pages / median(took):.0f}", str(ratio), verdict)
