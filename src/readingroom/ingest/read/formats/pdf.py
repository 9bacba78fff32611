"""Reads a PDF's pages with pypdfium2: lines with geometry and typography, images, renderings.

Runs inside the sandbox: if PDFium crashes or hangs on a hostile file, only that process is lost.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

import pypdfium2
import pypdfium2.raw as pdfium

from readingroom.ingest.document import PageWord, Refusal
from readingroom.ingest.read.formats.annotations import (
    insert_line_beside_label,
    read_annotation_lines,
)
from readingroom.ingest.read.formats.boxes import DrawnBoxFinder
from readingroom.ingest.read.formats.glyphs import Glyphs, make_box_transform
from readingroom.ingest.read.formats.images import (
    Rectangle,
    compute_image_ratio,
    iterate_page_objects,
)
from readingroom.ingest.read.formats.order import put_in_reading_order
from readingroom.ingest.read.page import (
    BROKEN_WORD_MARK,
    OCR_DPI,
    Line,
    PageUnreadable,
    RawPage,
    normalize_text,
)

if TYPE_CHECKING:  # slow to import, and most PDFs never need a picture
    from PIL.Image import Image

# Pieces of a row are joined up to this length.
_MAX_ROW_CHARS = 5_000
# Of the letters of a row, those further right are no more times as tall as the first.
_MAX_LETTER_SIZE_GROWTH = 2.5
# Letters of a raised mark are at most this many times as tall as those of its row.
_MAX_MARK_SIZE_RATIO = 0.8
_NOTE_MARK_PATTERN = re.compile(r"\d{1,3}")
_BoxAsPageShares = tuple[float, float, float, float]
"""Left, top, right and bottom as shares of the page, from its upper left."""
# Of one page whose words are placed; no real page has as many.
_MAX_POSITIONED_PAGE_CHARS = 100_000
# Paths of a page whose lines are counted; any further one counts as one line.
_MAX_PATHS_WITH_COUNTED_LINES = 200
CUT_OFF_MESSAGE = "The PDF ends early, so its download was probably cut off: fetch it again"
_LINEARIZED_LENGTH_PATTERN = re.compile(rb"/Linearized\b[^>]{0,200}?/L\s+(\d{1,12})\b")
_LINEARIZED_SEARCH_BYTES = 2048
# A clause's letter or number, and the mark of a footnote.
_MARK_AFTER_LABEL_PATTERN = re.compile(
    r"\s(?P<label>\(?(?:[A-Za-z]|[ivx]{1,4}|\d{1,2})[.)]?)\s+(?P<mark>\d{1,3})$"
)
_BLANKS_BETWEEN_WORDS_PATTERN = re.compile(r"(?<=\S)\s+(?=\S)")


@contextmanager
def open_pdf(file_bytes: bytes, max_pages: int) -> Iterator[pypdfium2.PdfDocument]:
    """Open a PDF; raise a `Refusal` that says what is wrong with it."""
    try:
        pdf_document = pypdfium2.PdfDocument(file_bytes)
    except pypdfium2.PdfiumError as error:
        refusal_message = CUT_OFF_MESSAGE if is_cut_off(file_bytes) else _explain_open_error(error)
        raise Refusal("extraction_failed", refusal_message) from error
    with pdf_document:
        if pdf_document.get_formtype() != pdfium.FORMTYPE_NONE:
            pdf_document.init_forms()  # so that answers are read, and drawn with their pages
        page_count = len(pdf_document)
        if page_count > max_pages:
            raise Refusal(
                "extraction_failed",
                f"The PDF claims {page_count:,} pages; at most {max_pages:,} are read",
            )
        yield pdf_document


def is_cut_off(file_bytes: bytes) -> bool:
    """Whether a PDF lacks its end, as after a download that broke off."""
    length_match = _LINEARIZED_LENGTH_PATTERN.search(file_bytes[:_LINEARIZED_SEARCH_BYTES])
    # A file made for the web says its length at its start; any other has a mark at its end.
    return int(length_match[1]) > len(file_bytes) if length_match else b"%%EOF" not in file_bytes


def _explain_open_error(error: pypdfium2.PdfiumError) -> str:
    if error.err_code == pdfium.FPDF_ERR_PASSWORD:
        return "The PDF is encrypted and does not open without its password"
    if error.err_code == pdfium.FPDF_ERR_SECURITY:
        return "The PDF is encrypted in a way that is not supported"
    if error.err_code == pdfium.FPDF_ERR_SUCCESS:
        return "The PDF has no pages"
    return "The PDF is damaged and cannot be opened"


def read_raw_page(pdf_document: pypdfium2.PdfDocument, page_index: int) -> RawPage:
    """Return a page's text layer and image ratio; for a damaged page, a raw_page with a note."""
    page_number = page_index + 1
    page_label = normalize_text(pdf_document.get_page_label(page_index)).strip() or str(page_number)
    try:
        with closing(pdf_document[page_index]) as pdf_page:
            raw_page = RawPage(
                page_number, page_label, pdf_page.get_height(), _read_lines(pdf_page)
            )
            _add_page_graphics(pdf_page, raw_page)
            return raw_page
    except pypdfium2.PdfiumError:
        return RawPage(
            page_number, page_label, 0.0, reading_note="The page is damaged and cannot be read"
        )


def render_page(
    pdf_document: pypdfium2.PdfDocument,
    page_index: int,
    max_pixels: int,
    dpi: int = OCR_DPI,
    is_grey: bool = True,
) -> "Image":
    """Return a page as a picture, at a lower resolution where it would be too large."""
    try:
        with closing(pdf_document[page_index]) as pdf_page:
            page_width, page_height = pdf_page.get_size()
            pixel_count = page_width * page_height * (dpi / 72) ** 2
            render_scale = dpi / 72 * min(1.0, (max_pixels / max(pixel_count, 1)) ** 0.5)
            page_picture: Image = pdf_page.render(scale=render_scale, grayscale=is_grey).to_pil()
            return page_picture
    except pypdfium2.PdfiumError as error:
        raise PageUnreadable("it cannot be rendered") from error


def read_page_words(pdf_document: pypdfium2.PdfDocument, page_index: int) -> tuple[PageWord, ...]:
    """Return the words of a page's text layer with their places on the page as it is shown."""
    try:
        with (
            closing(pdf_document[page_index]) as pdf_page,
            closing(pdf_page.get_textpage()) as text_page,
        ):
            convert_to_shares = _make_share_transform(pdf_page)
            page_words: list[PageWord] = []
            word_letters: list[str] = []
            letter_boxes: list[_BoxAsPageShares] = []
            pdfium_rectangle = pdfium.FS_RECTF()
            for char_index in range(min(text_page.count_chars(), _MAX_POSITIONED_PAGE_CHARS)):
                letter = chr(pdfium.FPDFText_GetUnicode(text_page, char_index))
                is_blank = letter.isspace() or letter == "\x00"
                pdfium.FPDFText_GetLooseCharBox(text_page, char_index, pdfium_rectangle)
                letter_box = convert_to_shares(pdfium_rectangle)
                # PDFium joins the halves of a broken word; the second begins on a line below.
                if is_blank or (letter_boxes and letter_box[1] > letter_boxes[-1][3]):
                    page_words += _join_letters_into_words(word_letters, letter_boxes)
                    word_letters, letter_boxes = [], []
                if not is_blank:
                    word_letters.append(letter)
                    letter_boxes.append(letter_box)
            page_words += _join_letters_into_words(word_letters, letter_boxes)
            return tuple(page_words)
    except pypdfium2.PdfiumError as error:
        raise PageUnreadable("it is damaged") from error


def _join_letters_into_words(
    word_letters: Sequence[str], letter_boxes: Sequence[_BoxAsPageShares]
) -> list[PageWord]:
    """Return the word that letters make up; none where there are no letters."""
    if not word_letters:
        return []
    word_text = normalize_text(
        "".join(word_letters).replace("\ufffe", "-").replace(BROKEN_WORD_MARK, "-")
    )
    letter_lefts, letter_tops, letter_rights, letter_bottoms = zip(*letter_boxes, strict=True)
    return (
        [
            PageWord(
                word_text,
                min(letter_lefts),
                min(letter_tops),
                max(letter_rights),
                max(letter_bottoms),
            )
        ]
        if word_text
        else []
    )


def _make_share_transform(
    pdf_page: pypdfium2.PdfPage,
) -> Callable[[pdfium.FS_RECTF], _BoxAsPageShares]:
    """Return a function that turns boxes into shares of the page, from its upper left."""
    page_left, page_bottom, page_right, page_top = pdf_page.get_bbox()
    page_width, page_height = max(page_right - page_left, 1e-6), max(page_top - page_bottom, 1e-6)
    page_rotation = pdf_page.get_rotation()

    def convert_to_shares(pdfium_rectangle: pdfium.FS_RECTF) -> _BoxAsPageShares:
        left_share, right_share = (
            (pdfium_rectangle.left - page_left) / page_width,
            (pdfium_rectangle.right - page_left) / page_width,
        )
        top_share, bottom_share = (
            (page_top - pdfium_rectangle.top) / page_height,
            (page_top - pdfium_rectangle.bottom) / page_height,
        )
        match page_rotation:
            case 90:
                left_share, top_share, right_share, bottom_share = (
                    1 - bottom_share,
                    left_share,
                    1 - top_share,
                    right_share,
                )
            case 180:
                left_share, top_share, right_share, bottom_share = (
                    1 - right_share,
                    1 - bottom_share,
                    1 - left_share,
                    1 - top_share,
                )
            case 270:
                left_share, top_share, right_share, bottom_share = (
                    top_share,
                    1 - right_share,
                    bottom_share,
                    1 - left_share,
                )
        return (
            round(left_share, 5),
            round(top_share, 5),
            round(right_share, 5),
            round(bottom_share, 5),
        )

    return convert_to_shares


def _add_page_graphics(pdf_page: pypdfium2.PdfPage, raw_page: RawPage) -> None:
    """Add a page's image ratio, boxes, rules and number of drawn lines, in one walk over it."""
    page_frame = Rectangle(*pdf_page.get_bbox())
    image_rectangles: list[Rectangle] = []
    box_finder = DrawnBoxFinder(page_frame)
    path_count = 0
    for page_object, object_type, object_matrix in iterate_page_objects(pdf_page):
        if object_type == pdfium.FPDF_PAGEOBJ_IMAGE:
            image_rectangles.append(object_matrix.place_unit_square())
        elif object_type == pdfium.FPDF_PAGEOBJ_SHADING:
            box_finder.add_blend(page_object, object_matrix)
        else:
            box_finder.add_path(page_object, object_matrix)
            path_count += 1
            # Some programs draw a whole plan as one path. Asking each of thousands takes long.
            are_lines_counted = path_count <= _MAX_PATHS_WITH_COUNTED_LINES
            raw_page.drawn_line_count += (
                pdfium.FPDFPath_CountSegments(page_object) if are_lines_counted else 1
            )
    # A turned page has its boxes elsewhere than its lines, which are where they are displayed.
    if pdf_page.get_rotation() == 0:
        raw_page.boxes = box_finder.find_boxes()
        raw_page.rules = box_finder.find_rules(raw_page.boxes)
    raw_page.image_ratio = compute_image_ratio(image_rectangles, page_frame)


def _read_lines(pdf_page: pypdfium2.PdfPage) -> list[Line]:
    page_width, page_height = pdf_page.get_size()
    # Two printed pages side by side: a row does not go on from one to the other.
    fold_position = page_width / 2 if page_width > page_height else None
    annotation_lines = _read_annotation_lines(pdf_page)
    row_pieces = put_in_reading_order(
        _read_row_pieces(pdf_page, bool(annotation_lines), fold_position), page_height
    )
    for annotation_line in annotation_lines:
        insert_line_beside_label(row_pieces, annotation_line)
    page_lines: list[Line] = []
    for row_piece in row_pieces:
        if page_lines and _is_same_row(page_lines[-1], row_piece, fold_position):
            _append_line_to_row(page_lines[-1], row_piece)
        else:
            page_lines.append(row_piece)
    return page_lines


def _read_annotation_lines(pdf_page: pypdfium2.PdfPage) -> list[Line]:
    """Return answers in a form and notes; most pages have none, but many have links."""
    if pdfium.FPDFPage_GetAnnotCount(pdf_page) <= 0:
        return []
    transform_box = make_box_transform(pdf_page)

    def place_box(pdfium_rectangle: pdfium.FS_RECTF) -> tuple[float, float, float]:
        annotation_box = transform_box(pdfium_rectangle)
        return annotation_box.left, annotation_box.bottom, annotation_box.height

    return read_annotation_lines(pdf_page, place_box)


def _read_row_pieces(
    pdf_page: pypdfium2.PdfPage, is_split_at_gaps: bool, fold_position: float | None
) -> list[Line]:
    """Return the text layer in pieces of rows, as PDFium separates them, or at all wide gaps."""
    with closing(pdf_page.get_textpage()) as text_page:
        character_count = text_page.count_chars()
        if character_count <= 0:
            return []
        page_text = text_page.get_text_range(errors="surrogatepass")
        page_glyphs = Glyphs(
            text_page,
            character_count,
            are_indexes_of_pdfium=len(page_text) == character_count,
            transform_box=make_box_transform(pdf_page),
        )
        page_row_pieces: list[Line] = []
        line_start_offset = 0
        for raw_line in page_text.split("\r\n"):
            cut_offsets = (
                _list_wide_gap_offsets(raw_line, line_start_offset, page_glyphs)
                if is_split_at_gaps
                else []
            )
            cut_offsets = (
                cut_offsets
                or _list_left_jump_offsets(raw_line, line_start_offset, page_glyphs)
                or _list_fold_offsets(raw_line, line_start_offset, page_glyphs, fold_position)
            )
            pieces_of_row = [
                row_piece
                for piece_start_offset, piece_end_offset in pairwise(
                    [0, *cut_offsets, len(raw_line)]
                )
                if (
                    row_piece := _parse_line(
                        raw_line[piece_start_offset:piece_end_offset],
                        line_start_offset + piece_start_offset,
                        page_glyphs,
                    )
                )
            ]
            if len(pieces_of_row) > 2 and _is_raised_footnote_mark(
                pieces_of_row[0], pieces_of_row[-1]
            ):
                # The mark belongs to the text, not to the label that is written between them.
                _append_line_to_row(pieces_of_row[0], pieces_of_row.pop())
            page_row_pieces += pieces_of_row
            line_start_offset += len(raw_line) + 2
        return page_row_pieces


def _list_wide_gap_offsets(raw_line: str, line_start_offset: int, page_glyphs: Glyphs) -> list[int]:
    """Return where words of a line are so far apart that a box of a form may be between them."""
    gap_offsets = []
    for blank_match in _BLANKS_BETWEEN_WORDS_PATTERN.finditer(raw_line):
        letter_box_before = page_glyphs.get_box(line_start_offset + blank_match.start() - 1)
        letter_box_after = page_glyphs.get_box(line_start_offset + blank_match.end())
        if letter_box_after.left - letter_box_before.right > letter_box_before.height:
            gap_offsets.append(blank_match.end())
    return gap_offsets


def _list_left_jump_offsets(
    raw_line: str, line_start_offset: int, page_glyphs: Glyphs
) -> list[int]:
    """Return where the last words of a row begin if they stand left of its first.

    So a label or a code is set beside a title that is written before it, and the letter of a clause
    before the raised mark that ends its row. Only rows that end in a capital or a number are looked
    at, because each look is slow.
    """
    last_letter = raw_line.rstrip()[-1:]
    if not (last_letter.isupper() or last_letter.isdigit()) or "\ufffe" in raw_line:
        return []
    row_left_edge = page_glyphs.get_box(
        line_start_offset + len(raw_line) - len(raw_line.lstrip())
    ).left
    label_end_offset = len(raw_line.rstrip())
    if page_glyphs.get_box(line_start_offset + label_end_offset - 1).left >= row_left_edge:
        mark_match = _MARK_AFTER_LABEL_PATTERN.search(raw_line)
        if mark_match is None or (
            page_glyphs.get_box(line_start_offset + mark_match.start("label")).left >= row_left_edge
        ):
            return []
        label_end_offset = mark_match.start("mark")
    return [
        blank_match.end()
        for blank_match in _BLANKS_BETWEEN_WORDS_PATTERN.finditer(raw_line)
        if blank_match.end() == label_end_offset
        or page_glyphs.get_box(line_start_offset + blank_match.end()).left
        < page_glyphs.get_box(line_start_offset + blank_match.start() - 1).left
    ]


def _list_fold_offsets(
    raw_line: str, line_start_offset: int, page_glyphs: Glyphs, fold_position: float | None
) -> list[int]:
    """Return where the second of two lines begins that stand side by side on printed pages."""
    last_letter_offset = len(raw_line.rstrip()) - 1
    if (
        fold_position is None
        or last_letter_offset < 1
        or page_glyphs.get_box(line_start_offset + last_letter_offset).left < fold_position
    ):
        return []
    # Letters stand from left to right, so the first one right of the fold is found by halving.
    right_line_offset = bisect_left(
        range(last_letter_offset),
        fold_position,
        key=lambda letter_offset: page_glyphs.get_box(line_start_offset + letter_offset).left,
    )
    while right_line_offset and raw_line[right_line_offset - 1] != " ":
        right_line_offset -= 1
    return [right_line_offset] if right_line_offset else []


def _parse_line(raw_line: str, line_start_offset: int, page_glyphs: Glyphs) -> Line | None:
    stripped_line = raw_line.strip()
    # PDFium joins words across line ends and leaves one of two characters for the hyphen.
    line_text = normalize_text(stripped_line.replace("\ufffe", BROKEN_WORD_MARK)).strip()
    if not line_text:
        return None
    first_glyph_index = line_start_offset + raw_line.index(stripped_line[0])
    # A footnote begins with a raised number, whose size is not that of the line.
    letter_offset = _find_first_letter_offset(stripped_line) if stripped_line[0].isdigit() else 0
    typical_glyph_index = first_glyph_index + letter_offset
    font_style = page_glyphs.read_style(typical_glyph_index)
    get_letter_box = (
        page_glyphs.get_box if font_style.states_letter_heights else page_glyphs.estimate_box
    )
    first_letter_box = get_letter_box(first_glyph_index)
    letter_size = (
        get_letter_box(typical_glyph_index).height if letter_offset else first_letter_box.height
    )
    last_bottom = (
        get_letter_box(first_glyph_index + len(stripped_line) - 1).bottom
        if BROKEN_WORD_MARK in line_text
        else first_letter_box.bottom
    )
    return Line(
        line_text,
        first_letter_box.left,
        first_letter_box.bottom,
        letter_size,
        font_style.is_bold,
        last_bottom,
        is_italic=font_style.is_italic,
    )


def _find_first_letter_offset(line_text: str) -> int:
    return next(
        (
            char_index
            for char_index, line_character in enumerate(line_text[:16])
            if line_character.isalpha()
        ),
        0,
    )


def _is_same_row(page_line: Line, following_line: Line, fold_position: float | None) -> bool:
    """Whether a line goes on after a raised footnote mark or a wide gap."""
    if len(page_line.text) > _MAX_ROW_CHARS:
        return False
    if fold_position is not None and page_line.left < fold_position <= following_line.left:
        are_both_equally_bold = page_line.is_bold == following_line.is_bold
        if (
            not are_both_equally_bold
            or abs(page_line.letter_height - following_line.letter_height) > 0.5
        ):
            return False
    # A word written across the page, such as DRAFT, is no part of the row that it crosses.
    if following_line.letter_height > _MAX_LETTER_SIZE_GROWTH * page_line.letter_height:
        return False
    is_level = abs(page_line.last_bottom - following_line.bottom) < 0.5 * max(
        page_line.letter_height, following_line.letter_height
    )
    return is_level and following_line.left > page_line.left


def _append_line_to_row(page_line: Line, following_line: Line) -> None:
    is_joined_without_blank = following_line.text[0] in ".,;:)]’”" or _is_raised_footnote_mark(
        page_line, following_line
    )
    page_line.text += ("" if is_joined_without_blank else " ") + following_line.text
    page_line.last_bottom = following_line.last_bottom


def _is_raised_footnote_mark(page_line: Line, following_line: Line) -> bool:
    """Whether what follows is only the mark of a footnote, which touches the word before it."""
    return (
        _NOTE_MARK_PATTERN.fullmatch(following_line.text) is not None
        and following_line.letter_height < _MAX_MARK_SIZE_RATIO * page_line.letter_height
        and following_line.bottom > page_line.last_bottom
    )
