"""Papers for tests to read: PDFs set line by line, as a word processor would, and pictures."""

import io
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader, simpleSplit
from reportlab.pdfgen.canvas import Canvas

from readingroom.ingest.private_copy import PrivateCopy, open_stored_file

WIDTH, HEIGHT = A4
LEFT, RIGHT = 72.0, WIDTH - 72
TOP, BOTTOM = HEIGHT - 90, 90.0


@contextmanager
def open_private_copy(data: bytes, name: str, largest: int = 2**28) -> Iterator[PrivateCopy]:
    """A private copy of these bytes, as of a file that somebody sent under this name."""
    with tempfile.NamedTemporaryFile(buffering=0) as file:
        file.write(data)
        with open_stored_file(Path(file.name), name, largest) as private_copy:
            yield private_copy


class Paper:
    """A PDF in the making; `header` and `footer` are drawn on every page, `#` being its number."""

    def __init__(self, header: str = "", footer: str = "") -> None:
        self._file = io.BytesIO()
        self.canvas = Canvas(self._file, pagesize=A4)
        self._furniture = header, footer
        self._pages = 0
        self._at = TOP
        self._begin()

    def write(
        self,
        text: str,
        size: float = 11,
        bold: bool = False,
        left: float = LEFT,
        number: str = "",
        before: float = 0.8,
        italic: bool = False,
    ) -> None:
        """A paragraph; its number hangs in the margin. `before` is the gap above, in sizes."""
        font = "Helvetica-Bold" if bold else "Helvetica-Oblique" if italic else "Helvetica"
        indent = left + 36 if number else left
        self._at -= before * size
        for index, line in enumerate(simpleSplit(text, font, size, RIGHT - indent)):
            if self._at < BOTTOM:
                self.turn()
            self._at -= 1.2 * size
            self.canvas.setFont(font, size)
            if number and not index:
                self.canvas.drawString(left, self._at, number)
            self.canvas.drawString(indent, self._at, line)

    def move_to(self, height: float) -> None:
        """Go on writing at this height of the page."""
        self._at = height

    def turn(self) -> None:
        """Go to the next page."""
        self.canvas.showPage()
        self._begin()

    def picture(self, image: Image.Image, box: tuple[float, float, float, float]) -> None:
        left, bottom, right, top = box
        self.canvas.drawImage(ImageReader(image), left, bottom, right - left, top - bottom)

    def done(self) -> bytes:
        self.canvas.save()
        return self._file.getvalue()

    def _begin(self) -> None:
        self._pages += 1
        self._at = TOP
        header, footer = (text.replace("#", str(self._pages)) for text in self._furniture)
        self.canvas.setFont("Helvetica", 9)
        self.canvas.drawString(LEFT, HEIGHT - 40, header)
        self.canvas.drawCentredString(WIDTH / 2, 40, footer)


def make_paper(*texts: str) -> bytes:
    """A PDF with one page for each text."""
    made = Paper()
    for index, text in enumerate(texts):
        if index:
            made.turn()
        if text:
            made.write(text)
    return made.done()


def make_drawn_pdf(draw: Callable[[Canvas], None]) -> bytes:
    """A PDF of one page that a function draws."""
    made = Paper()
    draw(made.canvas)
    return made.done()


def encode_image(picture: Image.Image, format: str, **options: object) -> bytes:
    file = io.BytesIO()
    picture.save(file, format, **options)
    return file.getvalue()


def typeset_framework(markdown: str) -> bytes:
    """The Framework of December 2024, set the way the department sets it."""
    # In the transcript one heading has slipped behind a footnote, together with the next.
    mended = markdown.replace(
        "# Annex 1: Implementation For the", "\n# Annex 1: Implementation\n# For the"
    )
    made = Paper(footer="#")
    made.write("National Planning Policy Framework", size=24, bold=True)
    made.turn()
    for line in mended.splitlines():
        _set(made, re.sub(r"\[\^(\d+)\]", r"\1", line.strip()))
    return made.done()


def _set(made: Paper, line: str) -> None:
    if match := re.fullmatch(r"# ((?:\d+\.|Annex \d:) .*)", line):
        made.turn()
        made.write(match[1], size=20, bold=True)
    elif match := re.fullmatch(r"#+ (.*)", line):
        made.write(match[1], size=14, bold=True)
    elif match := re.fullmatch(r"(\d+\.) (\D.*)", line):
        made.write(match[2], number=match[1])
    elif match := re.fullmatch(r"([a-z]\)) (.*)", line):
        made.write(match[2], number=match[1], left=LEFT + 36, before=0.4)
    elif match := re.fullmatch(r"(\d+): (.*)", line):
        made.write(f"{match[1]} {match[2]}", size=8)
    elif line:
        made.write(line, before=0.2)
