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
_MOST_PAGES = 10_000
_SHARED = Path(__file__).parents[3] / "shared" / "data"
_REAL = (
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


def measure(rounds: int, real: bool = True) -> Table:
    """Read every file with every reader, so many times."""
    files = _files(real)
    pages = sum(len(pypdfium2.PdfDocument(data)) for data in files)
    seconds: dict[str, list[float]] = {reader.name: [] for reader in _READERS}
    for _ in range(rounds):
        for reader in _READERS:
            seconds[reader.name].append(_seconds(reader, files))
    return Table(
        "Reading text from PDF",
        ("reader", "pages a second", "ratio", "target"),
        tuple(_row(reader, seconds, pages) for reader in _READERS),
        _NOTE.format(pages=pages, files=len(files), rounds=rounds),
    )


def _files(real: bool) -> list[bytes]:
    made = Paper(header="Guide to paths", footer="Page #")
    for number in range(1, 120):
        made.write(_PROSE * 4, number=f"{number}.")
    there = [_SHARED / name for name in _REAL if real and (_SHARED / name).exists()]
    return [made.done(), *(path.read_bytes() for path in there)]


def _seconds(reader: Reader, files: list[bytes]) -> float:
    gc.collect()
    began = time.process_time()
    characters = sum(reader.read(data) for data in files)
    took = time.process_time() - began
    assert characters > 10_000, f"{reader.name} found {characters} characters"
    return took


def _bare(data: bytes) -> int:
    with pypdfium2.PdfDocument(data) as document:
        return sum(len(page.get_textpage().get_text_range()) for page in document)


def _ours(data: bytes) -> int:
    with pdf.open_pdf(data, _MOST_PAGES) as document:
        raw_pages = [pdf.read_raw_page(document, index) for index in range(len(document))]
        return len(layout.make_text_flow(raw_pages).text)


def _pypdf(data: bytes) -> int:
    return sum(len(page.extract_text()) for page in pypdf.PdfReader(io.BytesIO(data)).pages)


def _pdfplumber(data: bytes) -> int:
    with pdfplumber.open(io.BytesIO(data)) as document:
        return sum(len(page.extract_text()) for page in document.pages)


_PEER = Reader("pypdf", _pypdf)
_READERS = (
    Reader("PDFium, text alone (the floor)", _bare),
    Reader("Reading Room", _ours, TARGET),
    _PEER,
    Reader("pdfplumber", _pdfplumber),
)


def _row(reader: Reader, seconds: dict[str, list[float]], pages: int) -> tuple[str, ...]:
    took = seconds[reader.name]
    ratio = Ratio(took, seconds[_PEER.name])
    verdict = ratio.against(reader.target) if reader.target else ""
    return (reader.name, f"{pages / median(took):.0f}", str(ratio), verdict)
