"""Bytes of one file to a document, start to end. Runs inside the sandbox, where it may fail."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from readingroom.core.progress import ReportProgressSync
from readingroom.engine.chunking import Span, pages_of, split
from readingroom.ingest.document import (
    Chunk,
    Document,
    ImageSkip,
    Method,
    Options,
    Page,
    Refusal,
    Section,
    Skipped,
)
from readingroom.ingest.read.formats.detect import HEAD, sniff
from readingroom.ingest.read.page import PageUnreadable, Sheet
from readingroom.ingest.structure import classify, layout

if TYPE_CHECKING:
    from PIL.Image import Image

PROBE_PAGES = 2
PROBE_WORDS = 30
"""A document of pictures is worth reading when a probe of its pages finds this many words."""

_PAGES_A_REPORT = 20
_OFF = "The page has no text layer, and OCR is off (ENABLE_OCR)"
_RENDERING = "The page has no text layer, and the file is named like a rendering"


def read(
    data: bytes, name: str, options: Options, report: ReportProgressSync
) -> Document | Skipped:
    """What a file holds, by what it really is."""
    reader = _read_pdf if sniff(data[:HEAD], name) == "pdf" else _read_image
    found = reader(data, name, options, report)
    return found if isinstance(found, Skipped) else assemble(found, name, options)


def picture(data: bytes, name: str, page: int, dpi: int, options: Options) -> bytes:
    """One page of a file as a PNG."""
    shown = _page_of_pdf if sniff(data[:HEAD], name) == "pdf" else _frame
    try:
        image = shown(data, page - 1, dpi, options)
    except PageUnreadable as failure:
        raise Refusal("extraction_failed", f"Page {page} cannot be shown: {failure}") from failure
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def assemble(sheets: Sequence[Sheet], name: str, options: Options) -> Document:
    """Pages to a document: text, sections, chunks, type."""
    flow = layout.flow(sheets)
    if not flow.text.strip():
        raise Refusal("no_content", _why_nothing(sheets))
    found = _sections(flow) if options.find_sections else ()
    chunks = tuple(_chunks(flow, found))
    if not chunks:
        raise Refusal("no_chunks", "There is text, but no chunk could be made of it")
    classification = classify.classify(name, flow.text)
    pictured = any(sheet.image_ratio > options.image_ratio_threshold for sheet in sheets)
    return Document(
        text=flow.text,
        pages=tuple(_page(sheet, index, flow) for index, sheet in enumerate(sheets)),
        sections=found,
        chunks=chunks,
        method=_method(sheets),
        image_ratio=round(sum(sheet.image_ratio for sheet in sheets) / len(sheets), 3),
        contains_drawings=pictured or classify.is_drawing(name, classification.document_type),
        classification=classification,
    )


# What only some documents need is imported where it is needed: every document has a process of its
# own, and each would pay for PDFium, Pillow, pytesseract and the patterns of sections.


def _sections(flow: layout.Flow) -> tuple[Section, ...]:
    from readingroom.ingest.structure import sections

    return sections.find(flow)


def _read_pdf(
    data: bytes, name: str, options: Options, report: ReportProgressSync
) -> list[Sheet] | Skipped:
    from readingroom.ingest.read.formats import pdf

    with pdf.opened(data, options.most_pages) as document:
        count = len(document)
        sheets = []
        for index in range(count):
            sheets.append(pdf.read_sheet(document, index))
            if (index + 1) % _PAGES_A_REPORT == 0 or index + 1 == count:
                report(index + 1, count, f"page {index + 1} of {count}")

        def picture(sheet: Sheet) -> Image:
            return pdf.render(document, sheet.number - 1, options.most_pixels)

        blank = [sheet for sheet in sheets if sheet.is_blank]
        scans = _Scans(blank, picture, name, options, report, after=count)
        ratio = _skip_ratio(sheets, options)
        if ratio > options.image_ratio_threshold and scans.are_pictures(options.image_skip):
            return Skipped(ratio, count)
        scans.read_all()
        return sheets


def _read_image(
    data: bytes, name: str, options: Options, report: ReportProgressSync
) -> list[Sheet] | Skipped:
    from readingroom.ingest.read import ocr

    with ocr.opened(data, options.most_pages) as image:
        sheets = [
            Sheet(number, str(number), height=0.0, image_ratio=1.0)
            for number in range(1, image.count + 1)
        ]
        scans = _Scans(sheets, lambda sheet: image.frame(sheet.number - 1), name, options, report)
        if scans.is_rendering:
            return Skipped(1.0, image.count)
        scans.read_all()
        return sheets


def _page_of_pdf(data: bytes, index: int, dpi: int, options: Options) -> Image:
    from readingroom.ingest.read.formats import pdf

    with pdf.opened(data, options.most_pages) as document:
        if index >= len(document):
            raise PageUnreadable(f"there are {len(document)}")
        return pdf.render(document, index, options.most_pixels, dpi, grey=False)


def _frame(data: bytes, index: int, dpi: int, options: Options) -> Image:
    from readingroom.ingest.read import ocr

    with ocr.opened(data, options.most_pages) as image:
        if index >= image.count:
            raise PageUnreadable(f"there are {image.count}")
        frame = image.frame(index).convert("RGB")
    pixels = frame.width * frame.height
    scale = min(1.0, (options.most_pixels / pixels) ** 0.5)
    frame.thumbnail((max(1, int(frame.width * scale)), max(1, int(frame.height * scale))))
    return frame


def _skip_ratio(sheets: Sequence[Sheet], options: Options) -> float:
    """The average that decides; by the letter every page counts, else only those without text."""
    literal = options.image_skip == "ratio"
    counted = [sheet.image_ratio for sheet in sheets if literal or sheet.is_blank]
    return round(sum(counted) / len(sheets), 3)


class _Scans:
    """The pages without a text layer, read by OCR."""

    def __init__(
        self,
        sheets: Sequence[Sheet],
        picture_of: Callable[[Sheet], Image],
        name: str,
        options: Options,
        report: ReportProgressSync,
        after: int = 0,
    ) -> None:
        self.is_rendering = classify.is_rendering(name)
        self._sheets = sheets
        self._picture_of = picture_of
        self._options = options
        self._report = report
        self._after = after
        """Steps that were reported before the first page here."""
        self._words: dict[int, int | None] = {}

    def are_pictures(self, rule: ImageSkip) -> bool:
        """Whether pages that are images, by their ratio, are pictures of anything but words."""
        if rule == "ratio" or self.is_rendering:
            return True
        probed = [self._read(sheet) for sheet in self._sheets[:PROBE_PAGES]]
        # None: nobody could look, so nobody can say that there is nothing.
        return None not in probed and sum(filter(None, probed)) < PROBE_WORDS

    def read_all(self) -> None:
        """Fill every sheet that has words in its picture."""
        for sheet in self._sheets:
            self._read(sheet)

    def _read(self, sheet: Sheet) -> int | None:
        if sheet.number not in self._words:
            self._words[sheet.number] = self._fill(sheet)
            done, count = len(self._words), len(self._sheets)
            message = f"OCR of page {sheet.number}, {done} of {count}"
            self._report(self._after + done, self._after + count, message)
        return self._words[sheet.number]

    def _fill(self, sheet: Sheet) -> int | None:
        """How many words were found, or None when OCR could not be had."""
        if sheet.note:  # the page itself is damaged
            return None
        if self.is_rendering or not self._options.enable_ocr:
            sheet.note = _RENDERING if self.is_rendering else _OFF
            return None
        from readingroom.ingest.read import ocr

        try:
            reading = ocr.read(self._picture_of(sheet), self._options.most_pixels)
        except PageUnreadable as failure:
            sheet.note = f"The page has no text layer, and {failure}"
            return None
        if reading.characters > sheet.characters:
            sheet.lines, sheet.confidence = reading.lines, reading.confidence
            sheet.height, sheet.method = reading.height, "ocr"
        return reading.words


def _why_nothing(sheets: Sequence[Sheet]) -> str:
    notes = [sheet.note for sheet in sheets if sheet.note]
    return notes[0] if notes else "No text was found on any page"


def _method(sheets: Sequence[Sheet]) -> Method:
    """How the text came about; a page without any has no say."""
    used = {sheet.method for sheet in sheets if sheet.lines}
    return used.pop() if len(used) == 1 else "mixed"


def _page(sheet: Sheet, index: int, flow: layout.Flow) -> Page:
    return Page(
        number=sheet.number,
        label=sheet.label,
        start=flow.page_starts[index],
        end=flow.page_ends[index],
        text=flow.page_texts[index],
        method=sheet.method,
        image_ratio=round(sheet.image_ratio, 3),
        confidence=sheet.confidence,
        note=sheet.note,
    )


def _chunks(flow: layout.Flow, found: Sequence[Section]) -> Iterator[Chunk]:
    """Each section is split by itself, so that no chunk crosses a section's start."""
    index = 0
    for start, end, section in _stretches(len(flow.text), found):
        for span in split(flow.text[start:end]):
            whole = Span(start + span.start, start + span.end)
            yield Chunk(
                index=index,
                start=whole.start,
                end=whole.end,
                pages=tuple(pages_of(whole, flow.page_starts)),
                section_ref=section.ref if section else None,
                section_path=section.path if section else (),
            )
            index += 1


def _stretches(length: int, found: Sequence[Section]) -> Iterator[tuple[int, int, Section | None]]:
    first = found[0].start if found else length
    if first:
        yield 0, first, None
    for section in found:
        yield section.start, section.end, section
