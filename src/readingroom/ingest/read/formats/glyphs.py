"""Letters of a PDF page: where each stands, how large it is, and whether it is bold or italic."""

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass

import pypdfium2
import pypdfium2.raw as pdfium

# Of the font size: how far the boxes of letters reach below the row, and their height.
_USUAL_DESCENT, _USUAL_HEIGHT = 0.22, 1.15
_BOLD_FONT_NAME_PATTERN = re.compile("bold|black|heavy|semib|demi", re.IGNORECASE)
_ITALIC_FONT_NAME_PATTERN = re.compile("italic|oblique", re.IGNORECASE)


@dataclass(slots=True)
class LetterBox:
    left: float
    bottom: float
    height: float
    right: float


BoxTransform = Callable[[pdfium.FS_RECTF], LetterBox]


def make_box_transform(pdf_page: pypdfium2.PdfPage) -> BoxTransform:
    """Return a function that rotates boxes as the page is rotated when it is displayed."""
    page_left, page_bottom, page_right, page_top = pdf_page.get_bbox()
    match pdf_page.get_rotation():
        case 90:
            return lambda box: LetterBox(
                box.bottom - page_bottom,
                page_right - box.right,
                box.right - box.left,
                box.top - page_bottom,
            )
        case 180:
            return lambda box: LetterBox(
                page_right - box.right,
                page_top - box.top,
                box.top - box.bottom,
                page_right - box.left,
            )
        case 270:
            return lambda box: LetterBox(
                page_top - box.top,
                box.left - page_left,
                box.right - box.left,
                page_top - box.bottom,
            )
    return lambda box: LetterBox(
        box.left - page_left, box.bottom - page_bottom, box.top - box.bottom, box.right - page_left
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
        are_indexes_equal: bool,
        rotate_box: BoxTransform,
    ) -> None:
        self._textpage = text_page
        self._last_index = character_count - 1
        self._is_exact = are_indexes_equal
        self._to_box = rotate_box
        self._rectangle = pdfium.FS_RECTF()
        self._font_name = ctypes.create_string_buffer(128)
        self._font_flags = ctypes.c_int()
        self._matrix = pdfium.FS_MATRIX()
        self._origin = ctypes.c_double(), ctypes.c_double()
        self._styles: dict[bytes, FontStyle] = {}

    def get_box(self, glyph_index: int) -> LetterBox:
        pdfium.FPDFText_GetLooseCharBox(
            self._textpage, self._to_pdfium_index(glyph_index), self._rectangle
        )
        return self._to_box(self._rectangle)

    def estimate_box(self, glyph_index: int) -> LetterBox:
        """Return the box that a letter would have in a usual font; `get_box` where it is turned.

        Where a font has no heights, as in all files of some programs, PDFium gives the box of the
        mere letter, which is another for each.
        """
        pdfium_index = self._to_pdfium_index(glyph_index)
        pdfium.FPDFText_GetLooseCharBox(self._textpage, pdfium_index, self._rectangle)
        pdfium.FPDFText_GetMatrix(self._textpage, pdfium_index, self._matrix)
        pdfium.FPDFText_GetCharOrigin(self._textpage, pdfium_index, *self._origin)
        font_size = self._matrix.d * pdfium.FPDFText_GetFontSize(self._textpage, pdfium_index)
        if font_size > 0 and self._matrix.b == self._matrix.c == 0:
            self._rectangle.bottom = self._origin[1].value - _USUAL_DESCENT * font_size
            self._rectangle.top = self._rectangle.bottom + _USUAL_HEIGHT * font_size
        return self._to_box(self._rectangle)

    def read_style(self, glyph_index: int) -> FontStyle:
        pdfium_index = self._to_pdfium_index(glyph_index)
        self._font_name.value = b""
        pdfium.FPDFText_GetFontInfo(
            self._textpage,
            pdfium_index,
            self._font_name,
            len(self._font_name),
            self._font_flags,
        )
        font_name = self._font_name.value
        if font_name not in self._styles:
            name_text = font_name.decode("latin-1")
            self._styles[font_name] = FontStyle(
                is_bold=_BOLD_FONT_NAME_PATTERN.search(name_text) is not None,
                is_italic=_ITALIC_FONT_NAME_PATTERN.search(name_text) is not None,
                states_letter_heights=self._states_letter_heights(pdfium_index),
            )
        return self._styles[font_name]

    def _states_letter_heights(self, pdfium_index: int) -> bool:
        text_object = pdfium.FPDFText_GetTextObject(self._textpage, pdfium_index)
        pdf_font = pdfium.FPDFTextObj_GetFont(text_object) if text_object else None
        font_descent = ctypes.c_float()
        is_known = pdf_font is not None and pdfium.FPDFFont_GetDescent(pdf_font, 1.0, font_descent)
        return not is_known or font_descent.value < 0

    def _to_pdfium_index(self, glyph_index: int) -> int:
        if not self._is_exact:  # PDFium left some characters out of the text, or added some
            glyph_index = pdfium.FPDFText_GetCharIndexFromTextIndex(self._textpage, glyph_index)
        return min(max(glyph_index, 0), self._last_index)
