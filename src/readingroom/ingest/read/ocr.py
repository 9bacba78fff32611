"""Reads pictures of text with tesseract: words, positions and confidence in one pass."""

import importlib
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import pytesseract
from PIL import Image, ImageOps

from readingroom.ingest.document import PageWord, Refusal
from readingroom.ingest.read.page import OCR_DPI, Line, PageUnreadable, normalize_text

# Below this confidence a page may lie on its side; checking takes as long as reading it.
_MIN_SURE_CONFIDENCE = 70.0
# About 480 megabytes in colour once decoded, which the sandbox's memory limit still allows.
_MAX_IMAGE_FILE_PIXELS = 160_000_000
# Seconds per run. A page takes three runs at most, which stay below the sandbox's limit.
_TESSERACT_TIMEOUT_SECONDS = 90
# Also for pages that were scaled down: only proportions matter.
_POINTS_PER_PIXEL = 72 / OCR_DPI
# Pixels of another shade than the paper's; at 300 DPI a single letter has more.
_MIN_INK_PIXELS = 50
_LEGIBLE_WORD_PATTERN = re.compile(r"[^\W\d_]{2}|\d{2}")
# The level of words in tesseract's table.
_TESSERACT_WORD_LEVEL = 5


@dataclass(frozen=True, slots=True)
class OcrResult:
    """The lines that OCR found in one picture."""

    lines: list[Line]
    confidence: float | None
    page_height: float
    """Height of the page, in points."""
    legible_word_count: int = 0
    """Words that tesseract is sure of: in a photograph it finds others."""
    words: tuple[PageWord, ...] = ()
    """Every word with its place on the page, in reading order."""

    @property
    def character_count(self) -> int:
        return sum(len(page_line.text) for page_line in self.lines)

    @property
    def word_count(self) -> int:
        return sum(len(page_line.text.split()) for page_line in self.lines)


def recognize_text(page_picture: Image.Image, max_pixels: int) -> OcrResult:
    """Return the lines of a picture; raise `PageUnreadable` when tesseract fails."""
    page_picture = _prepare_picture(page_picture, max_pixels)
    if _is_blank_picture(page_picture):
        return OcrResult([], None, page_picture.height * _POINTS_PER_PIXEL)
    unrotated_result = _run_tesseract(page_picture)
    if (
        unrotated_result.confidence is not None
        and unrotated_result.confidence >= _MIN_SURE_CONFIDENCE
    ):
        return unrotated_result
    rotation_degrees = _detect_rotation(page_picture)
    if not rotation_degrees:
        return unrotated_result
    rotated_result = _run_tesseract(page_picture.rotate(-rotation_degrees, expand=True))
    words_rotated_back = tuple(
        _rotate_word_back(rotated_word, rotation_degrees) for rotated_word in rotated_result.words
    )
    rotated_result = replace(rotated_result, words=words_rotated_back)
    # Detection may be wrong, so both readings are kept and the one with more sure words wins.
    return max(
        unrotated_result,
        rotated_result,
        key=lambda ocr_result: (ocr_result.confidence or 0.0) * ocr_result.word_count,
    )


@dataclass(frozen=True, slots=True)
class ImageFile:
    """An image file, whose frames are pages; most have one."""

    image: Image.Image
    frame_count: int

    def get_frame(self, frame_index: int) -> Image.Image:
        """Return one frame, the right way up."""
        with _translate_damage_to_refusal():
            self.image.seek(frame_index)
            _check_image_size(self.image)
            return ImageOps.exif_transpose(self.image)


@contextmanager
def open_image(file_bytes: bytes, max_frames: int) -> Iterator[ImageFile]:
    """Open an image; raise a `Refusal` that says what is wrong with it."""
    # Our own check has a message for users; Pillow's would only warn.
    Image.MAX_IMAGE_PIXELS = None
    if file_bytes[4:8] == b"ftyp":  # the only format of ours that begins so
        _register_heic_opener()
    with _translate_damage_to_refusal():
        pillow_image = Image.open(io.BytesIO(file_bytes))
        _check_image_size(pillow_image)
        frame_count = getattr(pillow_image, "n_frames", 1)
    with pillow_image:
        if frame_count > max_frames:
            raise Refusal(
                "extraction_failed",
                f"The image has {frame_count:,} frames; at most {max_frames:,} are read",
            )
        yield ImageFile(pillow_image, frame_count)


@contextmanager
def _translate_damage_to_refusal() -> Iterator[None]:
    try:
        yield
    # Memory that runs out is no damage of the image; the worker has a message of its own for it.
    except (Refusal, MemoryError):
        raise
    except Exception as error:  # Pillow's decoders raise errors of any class
        # Pillow says so of files that end before their last pixel.
        is_cut_off = "truncated" in str(error) or isinstance(error, EOFError)
        raise Refusal(
            "extraction_failed",
            "The image ends early, so its download was probably cut off: fetch it again"
            if is_cut_off
            else "The image is damaged and cannot be read",
        ) from error


def _register_heic_opener() -> None:
    """Teach Pillow to open pictures of phones; raise a `Refusal` where nothing can."""
    try:
        pi_heif = importlib.import_module("pi_heif")
    except ImportError as error:
        raise Refusal(
            "unsupported_file_type",
            "HEIC pictures are read only where the extra is installed: "
            "pip install 'readingroom[heic]'. Or save it as JPEG",
        ) from error
    pi_heif.register_heif_opener()


def _check_image_size(pillow_image: Image.Image) -> None:
    image_width, image_height = pillow_image.size
    if image_width * image_height > _MAX_IMAGE_FILE_PIXELS:
        max_million_pixels = _MAX_IMAGE_FILE_PIXELS // 1_000_000
        raise Refusal(
            "extraction_failed",
            f"The image has {image_width:,} by {image_height:,} pixels; "
            f"at most {max_million_pixels} million are read",
        )


def _prepare_picture(page_picture: Image.Image, max_pixels: int) -> Image.Image:
    """Return the picture in grey, on white where it is transparent, and not too large."""
    # A transparent ground may become black without this, and black letters invisible on it.
    if page_picture.mode in ("RGBA", "LA", "PA") or "transparency" in page_picture.info:
        page_picture = page_picture.convert("RGBA")
        white_page = Image.new("RGBA", page_picture.size, "white")
        page_picture = Image.alpha_composite(white_page, page_picture)
    grey_picture = page_picture.convert("L")
    pixel_count = grey_picture.width * grey_picture.height
    if pixel_count > max_pixels:
        # By a whole number, which averages blocks of pixels: fast, and letters stay legible.
        grey_picture = grey_picture.reduce(int((pixel_count / max_pixels) ** 0.5) + 1)
    return grey_picture


def _is_blank_picture(grey_picture: Image.Image) -> bool:
    """Whether a picture has no ink for a single letter, so that tesseract need not look at it."""
    # A thousand blank pages are a small file, and tesseract takes long for each.
    shade_counts = grey_picture.histogram()
    return sum(shade_counts) - max(shade_counts) < _MIN_INK_PIXELS


def _run_tesseract(page_picture: Image.Image) -> OcrResult:
    page_picture.format = "PPM"  # the format in which it is passed on; compressing PNG takes time
    try:
        table_columns = pytesseract.image_to_data(
            page_picture,
            config=f"--psm 3 --dpi {OCR_DPI}",
            timeout=_TESSERACT_TIMEOUT_SECONDS,
            output_type=pytesseract.Output.DICT,
        )
    except pytesseract.TesseractNotFoundError as error:
        raise PageUnreadable("tesseract is not installed") from error
    # pytesseract raises a bare RuntimeError when its time is up.
    except (pytesseract.TesseractError, RuntimeError, OSError) as error:
        raise PageUnreadable("tesseract could not read it") from error
    return _parse_tesseract_table(table_columns, page_picture.width, page_picture.height)


def _detect_rotation(page_picture: Image.Image) -> int:
    """Return the degrees by which to turn a page clockwise; 0 where that cannot be determined."""
    try:
        orientation_fields = pytesseract.image_to_osd(
            page_picture,
            config=f"--dpi {OCR_DPI}",
            timeout=_TESSERACT_TIMEOUT_SECONDS,
            output_type=pytesseract.Output.DICT,
        )
    except (pytesseract.TesseractError, RuntimeError, OSError):
        return 0  # too few letters to judge by, most often
    return int(orientation_fields["rotate"])


def _rotate_word_back(rotated_word: PageWord, rotation_degrees: int) -> PageWord:
    """Return a word of a page that was turned clockwise, where it stands before it was turned."""
    match rotation_degrees:
        case 90:
            return PageWord(
                rotated_word.text,
                rotated_word.top,
                1 - rotated_word.right,
                rotated_word.bottom,
                1 - rotated_word.left,
            )
        case 180:
            return PageWord(
                rotated_word.text,
                1 - rotated_word.right,
                1 - rotated_word.bottom,
                1 - rotated_word.left,
                1 - rotated_word.top,
            )
        case 270:
            return PageWord(
                rotated_word.text,
                1 - rotated_word.bottom,
                rotated_word.left,
                1 - rotated_word.top,
                rotated_word.right,
            )
    return rotated_word


def _parse_tesseract_table(
    columns_by_name: dict[str, list[Any]], page_width: int, page_height: int
) -> OcrResult:
    tesseract_rows = [
        dict(zip(columns_by_name, row_values, strict=True))
        for row_values in zip(*columns_by_name.values(), strict=True)
    ]
    word_rows = [
        row_values
        for row_values in tesseract_rows
        if row_values["level"] == _TESSERACT_WORD_LEVEL and str(row_values["text"]).strip()
    ]
    text_lines: list[Line] = []
    last_paragraph_key = None
    for (block_number, paragraph_number, _), line_word_rows in groupby(
        word_rows, key=_make_line_key
    ):
        text_line = _make_line_of_words(list(line_word_rows), page_height)
        text_line.has_gap_above = (block_number, paragraph_number) != last_paragraph_key
        last_paragraph_key = (block_number, paragraph_number)
        text_lines.append(text_line)
    word_confidences = [float(word_row["conf"]) for word_row in word_rows]
    mean_confidence = (
        round(sum(word_confidences) / len(word_confidences), 1) if word_confidences else None
    )
    legible_word_rows = [
        word_row
        for word_row in word_rows
        if float(word_row["conf"]) >= _MIN_SURE_CONFIDENCE
        and _LEGIBLE_WORD_PATTERN.search(str(word_row["text"]))
    ]
    return OcrResult(
        text_lines,
        mean_confidence,
        page_height * _POINTS_PER_PIXEL,
        len(legible_word_rows),
        tuple(_make_page_word(word_row, page_width, page_height) for word_row in word_rows),
    )


def _make_page_word(word_row: dict[str, Any], page_width: int, page_height: int) -> PageWord:
    return PageWord(
        normalize_text(str(word_row["text"]).strip()),
        round(word_row["left"] / page_width, 5),
        round(word_row["top"] / page_height, 5),
        round((word_row["left"] + word_row["width"]) / page_width, 5),
        round((word_row["top"] + word_row["height"]) / page_height, 5),
    )


def _make_line_key(word_row: dict[str, Any]) -> tuple[int, int, int]:
    return word_row["block_num"], word_row["par_num"], word_row["line_num"]


def _make_line_of_words(word_rows: list[dict[str, Any]], page_height: int) -> Line:
    line_text = normalize_text(" ".join(str(word_row["text"]).strip() for word_row in word_rows))
    lowest_pixel_row = max(word_row["top"] + word_row["height"] for word_row in word_rows)
    line_bottom = (page_height - lowest_pixel_row) * _POINTS_PER_PIXEL
    letter_size = max(word_row["height"] for word_row in word_rows) * _POINTS_PER_PIXEL
    return Line(
        line_text,
        word_rows[0]["left"] * _POINTS_PER_PIXEL,
        line_bottom,
        letter_size,
        is_bold=False,
        last_bottom=line_bottom,
    )
