"""Turns the bytes of one file into a document. Runs inside the sandbox, where it may crash."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from readingroom.core.imports import import_reference
from readingroom.core.progress import ReportProgressSync
from readingroom.engine.chunking import Span, find_page_numbers, split_into_spans
from readingroom.ingest.document import (
    Chunk,
    Document,
    DocumentSection,
    ExtractionMethod,
    ImageSkipRule,
    Page,
    PageWord,
    PictureFormat,
    ReadOptions,
    Refusal,
    SkippedFile,
)
from readingroom.ingest.kinds.classify import classify_document, has_drawings
from readingroom.ingest.kinds.names import is_named_like_rendering
from readingroom.ingest.read.formats import pdf
from readingroom.ingest.read.formats.detect import (
    DETECTION_BYTE_COUNT,
    IMAGE_FORMATS,
    FileFormat,
    detect_format,
)
from readingroom.ingest.read.page import MIN_TEXT_LAYER_CHARACTERS, PageUnreadable, RawPage
from readingroom.ingest.structure import layout
from readingroom.ingest.structure.page_edges import find_page_labels

if TYPE_CHECKING:
    from PIL.Image import Image

PROBED_PAGE_COUNT = 2
MIN_LEGIBLE_WORDS = 5
"""A file of pictures is read when OCR is sure of this many words on the probed pages."""

# Imported when they are needed: every file has a process of its own, which else would import all.
_READER_REFERENCES_BY_FORMAT: dict[FileFormat, str] = {
    "docx": "readingroom.ingest.read.formats.office.word:read_docx",
    "doc": "readingroom.ingest.read.formats.office.compound:read_doc",
    "odt": "readingroom.ingest.read.formats.office.opendocument:read_odt",
    "xlsx": "readingroom.ingest.read.formats.office.spreadsheet:read_xlsx",
    "csv": "readingroom.ingest.read.formats.plain:read_csv",
    "html": "readingroom.ingest.read.formats.web:read_html",
    "markdown": "readingroom.ingest.read.formats.plain:read_markdown",
    "text": "readingroom.ingest.read.formats.plain:read_text",
    "rtf": "readingroom.ingest.read.formats.rtf:read_rtf",
    "eml": "readingroom.ingest.read.formats.mail:read_eml",
    "msg": "readingroom.ingest.read.formats.outlook:read_msg",
    "zip": "readingroom.ingest.read.contained:read_zip",
}
# Imported for policies alone.
_SECTIONS_MODULE_NAME = "readingroom.ingest.structure.sections"
_PAGES_PER_REPORT = 20
_OCR_IS_OFF_NOTE = "The page has no text layer, and OCR is off (ENABLE_OCR)"
_RENDERING_NOTE = "The page has no text layer, and the file is named like a rendering"


def read_file(
    file_bytes: bytes,
    file_name: str,
    read_options: ReadOptions,
    report_progress: ReportProgressSync,
) -> Document | SkippedFile:
    """Return the document in a file, or `SkippedFile`; raise a `Refusal` if it cannot be read."""
    raw_pages = _read_raw_pages(file_bytes, file_name, read_options, report_progress)
    return (
        raw_pages
        if isinstance(raw_pages, SkippedFile)
        else assemble_document(raw_pages, file_name, read_options)
    )


def render_page(
    file_bytes: bytes,
    file_name: str,
    page_number: int,
    dpi: int,
    read_options: ReadOptions,
    picture_format: PictureFormat = "png",
) -> bytes:
    """Return one page of a file as a lossless picture; raise a `Refusal` if it cannot be shown."""
    render_page_image = (
        _render_pdf_page if _is_pdf_with_pages(file_bytes, file_name) else _render_image_file_page
    )
    try:
        page_image = render_page_image(file_bytes, page_number - 1, dpi, read_options)
    except PageUnreadable as failure:
        raise Refusal(
            "extraction_failed", f"Page {page_number} cannot be shown: {failure}"
        ) from failure
    picture_file = io.BytesIO()
    if picture_format == "webp":
        # Method 1: a tenth of the slowest one's time, for a tenth more bytes.
        page_image.save(picture_file, "WEBP", lossless=True, method=1, quality=50)
    else:
        page_image.save(picture_file, "PNG")
    return picture_file.getvalue()


def find_page_words(
    file_bytes: bytes, file_name: str, page_number: int, read_options: ReadOptions
) -> tuple[PageWord, ...]:
    """Return the words of one page with their places, by OCR where it has no text layer.

    Raise a `Refusal` if there is no such page, or it cannot be read.
    """
    try:
        if not _is_pdf_with_pages(file_bytes, file_name):
            return _recognize_words(
                _render_image_file_page(file_bytes, page_number - 1, 0, read_options), read_options
            )
        with pdf.open_pdf(file_bytes, read_options.max_pages) as pdf_document:
            if page_number > len(pdf_document):
                raise PageUnreadable(f"the file has {len(pdf_document)} pages")
            page_words = pdf.read_page_words(pdf_document, page_number - 1)
            if sum(len(page_word.text) for page_word in page_words) >= MIN_TEXT_LAYER_CHARACTERS:
                return page_words
            page_picture = pdf.render_page(pdf_document, page_number - 1, read_options.max_pixels)
            return _recognize_words(page_picture, read_options)
    except PageUnreadable as failure:
        raise Refusal(
            "extraction_failed", f"Page {page_number} cannot be read: {failure}"
        ) from failure


def _is_pdf_with_pages(file_bytes: bytes, file_name: str) -> bool:
    """Whether a file is a PDF, not an image; raise a `Refusal` for one without fixed pages."""
    file_format = detect_format(file_bytes[:DETECTION_BYTE_COUNT], file_name)
    if file_format != "pdf" and file_format not in IMAGE_FORMATS:
        raise Refusal(
            "unsupported_file_type",
            "The file has no pages that could be shown as pictures; read its text instead",
        )
    return file_format == "pdf"


def _recognize_words(page_picture: Image, read_options: ReadOptions) -> tuple[PageWord, ...]:
    if not read_options.enable_ocr:
        return ()
    recognize_text = import_reference("readingroom.ingest.read.ocr:recognize_text")
    page_words: tuple[PageWord, ...] = recognize_text(page_picture, read_options.max_pixels).words
    return page_words


def assemble_document(
    raw_pages: Sequence[RawPage], file_name: str, read_options: ReadOptions
) -> Document:
    """Return the document that the pages make up; raise a `Refusal` if it has no text."""
    text_flow = layout.make_text_flow(raw_pages)
    if not text_flow.text.strip():
        raise Refusal("no_content", _explain_no_text(raw_pages))
    document_sections: tuple[DocumentSection, ...] = (
        import_reference(f"{_SECTIONS_MODULE_NAME}:find_sections")(text_flow)
        if read_options.find_sections
        else ()
    )
    chunks = tuple(_make_chunks(text_flow, document_sections))
    if not chunks:
        raise Refusal("no_chunks", "There is text, but it could not be split into chunks")
    document_classification = classify_document(file_name, text_flow.text, raw_pages)
    return Document(
        text=text_flow.text,
        pages=tuple(
            _make_document_page(raw_page, page_label, page_index, text_flow)
            for page_index, (raw_page, page_label) in enumerate(
                zip(raw_pages, find_page_labels(raw_pages), strict=True)
            )
        ),
        sections=document_sections,
        chunks=chunks,
        method=_determine_extraction_method(raw_pages),
        image_ratio=round(sum(raw_page.image_ratio for raw_page in raw_pages) / len(raw_pages), 3),
        contains_drawings=has_drawings(
            file_name,
            document_classification.document_type,
            raw_pages,
            read_options.image_ratio_threshold,
        ),
        classification=document_classification,
    )


def _read_raw_pages(
    file_bytes: bytes,
    file_name: str,
    read_options: ReadOptions,
    report_progress: ReportProgressSync,
) -> list[RawPage] | SkippedFile:
    file_format = detect_format(file_bytes[:DETECTION_BYTE_COUNT], file_name)
    if file_format == "pdf":
        return _read_pdf(file_bytes, file_name, read_options, report_progress)
    if file_format in IMAGE_FORMATS:
        return _read_image(file_bytes, file_name, read_options, report_progress)
    read_pages = import_reference(_READER_REFERENCES_BY_FORMAT[file_format])
    raw_pages: list[RawPage] = read_pages(file_bytes, file_name, read_options)
    if len(raw_pages) > read_options.max_pages:
        raise Refusal(
            "extraction_failed",
            f"The file has {len(raw_pages):,} pages; at most {read_options.max_pages:,} are read",
        )
    report_progress(len(raw_pages), len(raw_pages), f"page {len(raw_pages)} of {len(raw_pages)}")
    return raw_pages


# OCR is imported inside functions: every document has a process of its own, and each would
# otherwise pay for Pillow and pytesseract, which only scans need.


def _read_pdf(
    file_bytes: bytes,
    file_name: str,
    read_options: ReadOptions,
    report_progress: ReportProgressSync,
) -> list[RawPage] | SkippedFile:
    with pdf.open_pdf(file_bytes, read_options.max_pages) as pdf_document:
        page_count = len(pdf_document)
        raw_pages = []
        for page_index in range(page_count):
            raw_pages.append(pdf.read_raw_page(pdf_document, page_index))
            if (page_index + 1) % _PAGES_PER_REPORT == 0 or page_index + 1 == page_count:
                report_progress(
                    page_index + 1, page_count, f"page {page_index + 1} of {page_count}"
                )

        def render_scanned_page(scanned_page: RawPage) -> Image:
            return pdf.render_page(pdf_document, scanned_page.number - 1, read_options.max_pixels)

        raw_pages_without_text = [raw_page for raw_page in raw_pages if raw_page.lacks_text]
        scan_reader = _ScanReader(
            raw_pages_without_text,
            render_scanned_page,
            file_name,
            read_options,
            report_progress,
            earlier_step_count=page_count,
        )
        average_image_ratio = _compute_average_image_ratio(raw_pages, read_options)
        if average_image_ratio > read_options.image_ratio_threshold and scan_reader.has_no_text(
            read_options.image_skip_rule
        ):
            return SkippedFile(average_image_ratio, page_count)
        scan_reader.recognize_all_pages()
        if pdf.is_cut_off(file_bytes):
            raw_pages[
                -1
            ].reading_note = f"{pdf.CUT_OFF_MESSAGE}. Pages after this one may be missing"
        return raw_pages


def _read_image(
    file_bytes: bytes,
    file_name: str,
    read_options: ReadOptions,
    report_progress: ReportProgressSync,
) -> list[RawPage] | SkippedFile:
    from readingroom.ingest.read import ocr

    with ocr.open_image(file_bytes, read_options.max_pages) as image_file:
        raw_pages = [
            RawPage(frame_number, str(frame_number), height=0.0, image_ratio=1.0)
            for frame_number in range(1, image_file.frame_count + 1)
        ]
        scan_reader = _ScanReader(
            raw_pages,
            lambda raw_page: image_file.get_frame(raw_page.number - 1),
            file_name,
            read_options,
            report_progress,
        )
        # By the same rule as pictures in a PDF, except that the contract has all frames read.
        if scan_reader.is_rendering or (
            read_options.image_skip_rule == "probe"
            and scan_reader.has_no_text("probe", probed_page_count=image_file.frame_count)
        ):
            return SkippedFile(1.0, image_file.frame_count)
        scan_reader.recognize_all_pages()
        return raw_pages


def _render_pdf_page(
    file_bytes: bytes, page_index: int, dpi: int, read_options: ReadOptions
) -> Image:
    with pdf.open_pdf(file_bytes, read_options.max_pages) as pdf_document:
        if page_index >= len(pdf_document):
            raise PageUnreadable(f"the file has {len(pdf_document)} pages")
        return pdf.render_page(
            pdf_document, page_index, read_options.max_pixels, dpi, is_grey=False
        )


def _render_image_file_page(
    file_bytes: bytes, frame_index: int, dpi: int, read_options: ReadOptions
) -> Image:
    from readingroom.ingest.read import ocr

    with ocr.open_image(file_bytes, read_options.max_pages) as image_file:
        if frame_index >= image_file.frame_count:
            raise PageUnreadable(f"the file has {image_file.frame_count} pages")
        frame_image = image_file.get_frame(frame_index).convert("RGB")
    pixel_count = frame_image.width * frame_image.height
    render_scale = min(1.0, (read_options.max_pixels / pixel_count) ** 0.5)
    frame_image.thumbnail(
        (
            max(1, int(frame_image.width * render_scale)),
            max(1, int(frame_image.height * render_scale)),
        )
    )
    return frame_image


def _compute_average_image_ratio(raw_pages: Sequence[RawPage], read_options: ReadOptions) -> float:
    """Return the average image ratio that decides whether a file is skipped."""
    # The contract's rule, `ratio`, counts every page; ours counts only those without text.
    counts_all_pages = read_options.image_skip_rule == "ratio"
    image_ratios = [
        raw_page.image_ratio for raw_page in raw_pages if counts_all_pages or raw_page.lacks_text
    ]
    return round(sum(image_ratios) / len(raw_pages), 3)


class _ScanReader:
    """Reads the pages without a text layer by OCR."""

    def __init__(
        self,
        raw_pages: Sequence[RawPage],
        render_page: Callable[[RawPage], Image],
        file_name: str,
        read_options: ReadOptions,
        report_progress: ReportProgressSync,
        earlier_step_count: int = 0,
    ) -> None:
        self.is_rendering = is_named_like_rendering(file_name)
        self._raw_pages = raw_pages
        self._render_page = render_page
        self._read_options = read_options
        self._report_progress = report_progress
        self._earlier_step_count = earlier_step_count
        """Steps that were reported before the first page here."""
        self._legible_word_counts_by_page: dict[int, int | None] = {}

    def has_no_text(
        self, skip_rule: ImageSkipRule, probed_page_count: int = PROBED_PAGE_COUNT
    ) -> bool:
        """Whether pages that consist of images show something other than text."""
        if skip_rule == "ratio" or self.is_rendering:
            return True
        legible_word_counts = [
            self._count_legible_words_and_report(raw_page)
            for raw_page in self._raw_pages[:probed_page_count]
        ]
        # None: OCR was not possible, so nobody knows that there are no words.
        return (
            None not in legible_word_counts
            and sum(filter(None, legible_word_counts)) < MIN_LEGIBLE_WORDS
        )

    def recognize_all_pages(self) -> None:
        """Add the words that OCR finds to every raw_page."""
        for raw_page in self._raw_pages:
            self._count_legible_words_and_report(raw_page)

    def _count_legible_words_and_report(self, raw_page: RawPage) -> int | None:
        if raw_page.number not in self._legible_word_counts_by_page:
            self._legible_word_counts_by_page[raw_page.number] = (
                self._recognize_and_count_legible_words(raw_page)
            )
            recognized_page_count, page_count = (
                len(self._legible_word_counts_by_page),
                len(self._raw_pages),
            )
            progress_message = (
                f"OCR of page {raw_page.number}, {recognized_page_count} of {page_count}"
            )
            done_step_count = self._earlier_step_count + recognized_page_count
            self._report_progress(
                done_step_count, self._earlier_step_count + page_count, progress_message
            )
        return self._legible_word_counts_by_page[raw_page.number]

    def _recognize_and_count_legible_words(self, raw_page: RawPage) -> int | None:
        """Add the words of a raw_page; return how many are legible, or None without OCR."""
        if raw_page.reading_note:  # the page itself is damaged
            return None
        if self.is_rendering or not self._read_options.enable_ocr:
            raw_page.reading_note = _RENDERING_NOTE if self.is_rendering else _OCR_IS_OFF_NOTE
            return None
        from readingroom.ingest.read import ocr

        try:
            ocr_result = ocr.recognize_text(
                self._render_page(raw_page), self._read_options.max_pixels
            )
        except PageUnreadable as failure:
            raw_page.reading_note = f"The page has no text layer, and {failure}"
            return None
        if ocr_result.character_count > raw_page.character_count:
            raw_page.lines, raw_page.confidence = ocr_result.lines, ocr_result.confidence
            raw_page.height, raw_page.method = ocr_result.page_height, "ocr"
            raw_page.words = ocr_result.words
        return ocr_result.legible_word_count


def _explain_no_text(raw_pages: Sequence[RawPage]) -> str:
    page_notes = [raw_page.reading_note for raw_page in raw_pages if raw_page.reading_note]
    return page_notes[0] if page_notes else "No text was found on any page"


def _determine_extraction_method(raw_pages: Sequence[RawPage]) -> ExtractionMethod:
    """Return how the text was extracted; pages without text do not count."""
    page_methods = {raw_page.method for raw_page in raw_pages if raw_page.lines}
    return page_methods.pop() if len(page_methods) == 1 else "mixed"


def _make_document_page(
    raw_page: RawPage, page_label: str, page_index: int, text_flow: layout.TextFlow
) -> Page:
    return Page(
        number=raw_page.number,
        label=page_label,
        start_offset=text_flow.page_start_offsets[page_index],
        end_offset=text_flow.page_end_offsets[page_index],
        text=text_flow.page_texts[page_index],
        method=raw_page.method,
        image_ratio=round(raw_page.image_ratio, 3),
        confidence=raw_page.confidence,
        reading_note=raw_page.reading_note,
        words=raw_page.words,
    )


def _make_chunks(
    text_flow: layout.TextFlow, document_sections: Sequence[DocumentSection]
) -> Iterator[Chunk]:
    """Yield the chunks of each section in turn, so that none crosses a section's start."""
    chunk_index = 0
    if document_sections:
        find_passage_kind = import_reference(f"{_SECTIONS_MODULE_NAME}:find_passage_kind")
    for section_start_offset, section_end_offset, document_section in _iterate_section_spans(
        len(text_flow.text), document_sections
    ):
        for chunk_span in split_into_spans(text_flow.text[section_start_offset:section_end_offset]):
            chunk_span = Span(
                section_start_offset + chunk_span.start_offset,
                section_start_offset + chunk_span.end_offset,
            )
            own_start_offset = (
                max(chunk_span.start_offset, document_section.start_offset)
                if document_section
                else chunk_span.start_offset
            )
            # A chunk of nothing but headings above a section is no part of it.
            is_in_section = (
                document_section is not None and own_start_offset < chunk_span.end_offset
            )
            own_start_offset = own_start_offset if is_in_section else chunk_span.start_offset
            yield Chunk(
                index=chunk_index,
                start_offset=chunk_span.start_offset,
                end_offset=chunk_span.end_offset,
                pages=tuple(
                    find_page_numbers(
                        Span(own_start_offset, chunk_span.end_offset), text_flow.page_start_offsets
                    )
                ),
                section_ref=document_section.ref if document_section and is_in_section else None,
                section_path=document_section.path if document_section and is_in_section else (),
                section_title=document_section.title if document_section and is_in_section else "",
                kind=find_passage_kind(text_flow, chunk_span, document_section)
                if document_section
                else "supporting",
                own_start_offset=own_start_offset,
            )
            chunk_index += 1


def _iterate_section_spans(
    text_length: int, document_sections: Sequence[DocumentSection]
) -> Iterator[tuple[int, int, DocumentSection | None]]:
    """Yield the sections, each from its headings on, and the stretches between them."""
    previous_end_offset = 0
    for document_section in document_sections:
        if document_section.lead_start_offset > previous_end_offset:
            yield previous_end_offset, document_section.lead_start_offset, None
        yield document_section.lead_start_offset, document_section.end_offset, document_section
        previous_end_offset = document_section.end_offset
    if previous_end_offset < text_length:
        yield previous_end_offset, text_length, None
