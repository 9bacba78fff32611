"""What people added to a PDF's page: answers typed into its form, and the text of annotations."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pypdfium2
import pypdfium2.raw as pdfium

from readingroom.ingest.read.page import Line, normalize_text

# Of one page; a form has some hundreds.
_MAX_ANNOTATIONS = 5_000
_MAX_ANNOTATION_TEXT_BYTES = 200_000
# A field that is higher than this holds several lines, of which the first is at its top.
_ASSUMED_LINE_HEIGHT = 14.0
_ASSUMED_LETTER_SIZE = 9.0
# A field belongs to a line that is no more than so many letter heights above or below.
_SAME_ROW_TOLERANCE = 0.8
_CHECKED_BOX_TEXT = "[x]"

_TEXT_FIELD_TYPES = (
    pdfium.FPDF_FORMFIELD_TEXTFIELD,
    pdfium.FPDF_FORMFIELD_COMBOBOX,
    pdfium.FPDF_FORMFIELD_LISTBOX,
)
_CHECKABLE_FIELD_TYPES = (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
# A pop-up repeats the note it belongs to, and a link has no words of its own.
_WORDLESS_ANNOTATION_TYPES = (pdfium.FPDF_ANNOT_POPUP, pdfium.FPDF_ANNOT_LINK)

BoxPlacer = Callable[[pdfium.FS_RECTF], tuple[float, float, float]]
"""Returns the left, the bottom and the height of a box on the page as it is shown."""


def read_annotation_lines(pdf_page: pypdfium2.PdfPage, place_box: BoxPlacer) -> list[Line]:
    """Return the answers and notes on a page as lines, each where it stands."""
    annotation_count = min(pdfium.FPDFPage_GetAnnotCount(pdf_page), _MAX_ANNOTATIONS)
    annotation_lines: list[Line] = []
    for annotation_index in range(annotation_count):
        with _open_annotation(pdf_page, annotation_index) as pdf_annotation:
            annotation_text = (
                _read_annotation_text(pdf_page, pdf_annotation) if pdf_annotation else ""
            )
            if not annotation_text:
                continue
            pdfium_rectangle = pdfium.FS_RECTF()
            pdfium.FPDFAnnot_GetRect(pdf_annotation, pdfium_rectangle)
            box_left, box_bottom, box_height = place_box(pdfium_rectangle)
            first_row_bottom = box_bottom + max(0.0, box_height - _ASSUMED_LINE_HEIGHT)
            for row_index, row_text in enumerate(annotation_text.splitlines()):
                row_bottom = first_row_bottom - row_index * _ASSUMED_LINE_HEIGHT
                if clean_text := normalize_text(row_text).strip():
                    annotation_lines.append(
                        Line(
                            clean_text,
                            box_left,
                            row_bottom,
                            _ASSUMED_LETTER_SIZE,
                            False,
                            row_bottom,
                        )
                    )
    return annotation_lines


def insert_line_beside_label(page_lines: list[Line], annotation_line: Line) -> None:
    """Insert a line after the one that it belongs to: its label, else the nearest line above."""
    label_line_index, label_left = None, float("-inf")
    nearest_line_index, nearest_distance = -1, float("inf")
    for line_index, page_line in enumerate(page_lines):
        line_distance = page_line.bottom - annotation_line.bottom
        is_in_same_row = abs(line_distance) < _SAME_ROW_TOLERANCE * max(
            page_line.letter_height, annotation_line.letter_height
        )
        if is_in_same_row and label_left < page_line.left <= annotation_line.left:
            label_line_index, label_left = line_index, page_line.left
        if 0 <= line_distance <= nearest_distance:
            nearest_line_index, nearest_distance = line_index, line_distance
    if label_line_index is None:
        page_lines.insert(nearest_line_index + 1, annotation_line)
        return
    # Exactly level, so that both become one row.
    annotation_line.bottom = annotation_line.last_bottom = page_lines[label_line_index].last_bottom
    annotation_line.left = max(annotation_line.left, label_left + 1)
    page_lines.insert(label_line_index + 1, annotation_line)


@contextmanager
def _open_annotation(
    pdf_page: pypdfium2.PdfPage, annotation_index: int
) -> Iterator[pdfium.FPDF_ANNOTATION | None]:
    pdf_annotation = pdfium.FPDFPage_GetAnnot(pdf_page, annotation_index)
    try:
        yield pdf_annotation
    finally:
        if pdf_annotation:
            pdfium.FPDFPage_CloseAnnot(pdf_annotation)


def _read_annotation_text(
    pdf_page: pypdfium2.PdfPage, pdf_annotation: pdfium.FPDF_ANNOTATION
) -> str:
    annotation_subtype = pdfium.FPDFAnnot_GetSubtype(pdf_annotation)
    # Links first: a page may have hundreds.
    if annotation_subtype in _WORDLESS_ANNOTATION_TYPES:
        return ""
    if pdfium.FPDFAnnot_GetFlags(pdf_annotation) & pdfium.FPDF_ANNOT_FLAG_HIDDEN:
        return ""
    if annotation_subtype == pdfium.FPDF_ANNOT_WIDGET:
        return _read_form_answer(pdf_page, pdf_annotation)
    annotation_text = _read_pdfium_string(
        lambda buffer, buffer_length: pdfium.FPDFAnnot_GetStringValue(
            pdf_annotation, b"Contents", buffer, buffer_length
        )
    ).strip()
    # Free text stands on the page as it is; a note is seen only when it is opened.
    return (
        annotation_text
        if not annotation_text or annotation_subtype == pdfium.FPDF_ANNOT_FREETEXT
        else f"[Note: {annotation_text}]"
    )


def _read_form_answer(pdf_page: pypdfium2.PdfPage, pdf_annotation: pdfium.FPDF_ANNOTATION) -> str:
    form_environment = pdf_page.formenv
    if form_environment is None:
        return ""
    field_type = pdfium.FPDFAnnot_GetFormFieldType(form_environment, pdf_annotation)
    if field_type in _CHECKABLE_FIELD_TYPES:
        return (
            _CHECKED_BOX_TEXT
            if pdfium.FPDFAnnot_IsChecked(form_environment, pdf_annotation)
            else ""
        )
    if field_type not in _TEXT_FIELD_TYPES:
        return ""
    return _read_pdfium_string(
        lambda buffer, buffer_length: pdfium.FPDFAnnot_GetFormFieldValue(
            form_environment, pdf_annotation, buffer, buffer_length
        )
    ).strip()


def _read_pdfium_string(write_to_buffer: Callable[[object, int], int]) -> str:
    """Return a string that PDFium writes to a buffer, of which it first tells the size."""
    byte_length = min(write_to_buffer(None, 0), _MAX_ANNOTATION_TEXT_BYTES)
    if byte_length <= 2:
        return ""
    text_buffer = ctypes.create_string_buffer(byte_length)
    write_to_buffer(ctypes.cast(text_buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), byte_length)
    return text_buffer.raw.decode("utf-16-le", "replace").rstrip("\x00").replace("\r", "\n")
