"""Letters of a PDF page: where each stands, how large it is, and whether it is bold or italic."""

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass

import pypdfium2
import pypdfium2.raw as pdfium

# Of the font size: how far the boxes of letters reach below the row, and their height.
_USUAL_DESCENT_RATIO, _USUAL_HEIGHT_RATIO = 0.22, 1.15
_BOLD_FONT_NAME_PATTERN = re.compile("bold|black|heavy|semib|demi", re.IGNORECASE)
_ITALIC_FONT_NAME_PATTERN = re.compile("italic|oblique", re.IGNORECASE)


@dataclass(slots=True)
class LetterBox:
    left: float
    bottom: float
    height: float
    right: float


LetterBoxTransform = Callable[[pdfium.FS_RECTF], LetterBox]


def make_box_transform(pdf_page: pypdfium2.PdfPage) -> LetterBoxTransform:
    """Return a function that rotates boxes as the page is rotated when it is displayed."""
    page_left, page_bottom, page_right, page_top = pdf_page.get_bbox()
    match pdf_page.get_rotation():
        case 90:
            return lambda pdfium_rectangle: LetterBox(
                pdfium_rectangle.bottom - page_bottom,
                page_right - pdfium_rectangle.right,
                pdfium_rectangle.right - pdfium_rectangle.left,
                pdfium_rectangle.top - page_bottom,
            )
        case 180:
            return lambda pdfium_rectangle: LetterBox(
                page_right - pdfium_rectangle.right,
                page_top - pdfium_rectangle.top,
                pdfium_rectangle.top - pdfium_rectangle.bottom,
                page_right - pdfium_rectangle.left,
            )
        case 270:
            return lambda pdfium_rectangle: LetterBox(
                page_top - pdfium_rectangle.top,
                pdfium_rectangle.left - page_left,
                pdfium_rectangle.right - pdfium_rectangle.left,
                page_top - pdfium_rectangle.bottom,
            )
    return lambda pdfium_rectangle: LetterBox(
        pdfium_rectangle.left - page_left,
        pdfium_rectangle.bottom - page_bottom,
        pdfium_rectangle.top - pdfium_rectangle.bottom,
        pdfium_rectangle.right - page_left,
    )


@dataclass(frozen=True, slots=True)
class FontStyle:
    is_bold: bool
    is_italic: bool
    states_letter_heights: bool
    """Whether the file says how far letters reach above and below their row."""


class Glyphs:
    """Boxes and fonts of single characters. Each call is slow, so a line needs one or two."""

    def __init__(
        self,
        text_page: pypdfium2.PdfTextPage,
        character_count: int,
        are_indexes_of_pdfium: bool,
        transform_box: LetterBoxTransform,
    ) -> None:
        self._text_page = text_page
        self._last_pdfium_index = character_count - 1
        self._are_indexes_of_pdfium = are_indexes_of_pdfium
        self._transform_box = transform_box
        self._rectangle = pdfium.FS_RECTF()
        self._font_name = ctypes.create_string_buffer(128)
        self._font_flags = ctypes.c_int()
        self._matrix = pdfium.FS_MATRIX()
        self._origin = ctypes.c_double(), ctypes.c_double()
        self._styles_by_font_name: dict[bytes, FontStyle] = {}

    def get_box(self, glyph_index: int) -> LetterBox:
        pdfium.FPDFText_GetLooseCharBox(
            self._text_page, self._get_pdfium_index(glyph_index), self._rectangle
        )
        return self._transform_box(self._rectangle)

    def estimate_box(self, glyph_index: int) -> LetterBox:
        """Return the box that a letter would have in a usual font; `get_box` where it is turned.

        Where a font has no heights, as in all files of some programs, PDFium gives the box of the
        mere letter, which is another for each.
        """
        pdfium_index = self._get_pdfium_index(glyph_index)
        pdfium.FPDFText_GetLooseCharBox(self._text_page, pdfium_index, self._rectangle)
        pdfium.FPDFText_GetMatrix(self._text_page, pdfium_index, self._matrix)
        pdfium.FPDFText_GetCharOrigin(self._text_page, pdfium_index, *self._origin)
        font_size = self._matrix.d * pdfium.FPDFText_GetFontSize(self._text_page, pdfium_index)
        if font_size > 0 and self._matrix.b == self._matrix.c == 0:
            self._rectangle.bottom = self._origin[1].value - _USUAL_DESCENT_RATIO * font_size
            self._rectangle.top = self._rectangle.bottom + _USUAL_HEIGHT_RATIO * font_size
        return self._transform_box(self._rectangle)

    def read_style(self, glyph_index: int) -> FontStyle:
        pdfium_index = self._get_pdfium_index(glyph_index)
        self._font_name.value = b""
        pdfium.FPDFText_GetFontInfo(
            self._text_page,
            pdfium_index,
            self._font_name,
            len(self._font_name),
            self._font_flags,
        )
        font_name = self._font_name.value
        if font_name not in self._styles_by_font_name:
            font_name_text = font_name.decode("latin-1")
            self._styles_by_font_name[font_name] = FontStyle(
                is_bold=_BOLD_FONT_NAME_PATTERN.search(font_name_text) is not None,
                is_italic=_ITALIC_FONT_NAME_PATTERN.search(font_name_text) is not None,
                states_letter_heights=self._states_letter_heights(pdfium_index),
            )
        return self._styles_by_font_name[font_name]

    def _states_letter_heights(self, pdfium_index: int) -> bool:
        text_object = pdfium.FPDFText_GetTextObject(self._text_page, pdfium_index)
        pdf_font = pdfium.FPDFTextObj_GetFont(text_object) if text_object else None
        font_descent = ctypes.c_float()
        is_descent_known = pdf_font is not None and pdfium.FPDFFont_GetDescent(
            pdf_font, 1.0, font_descent
        )
        return not is_descent_known or font_descent.value < 0

    def _get_pdfium_index(self, glyph_index: int) -> int:
        if (
            not self._are_indexes_of_pdfium
        ):  # PDFium left some characters out of the text, or added some
            glyph_index = pdfium.FPDFText_GetCharIndexFromTextIndex(self._text_page, glyph_index)
        return min(max(glyph_index, 0), self._last_pdfium_index)
