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

_SURE_CONFIDENCE = 70.0
"""Below this confidence a page may lie on its side; checking takes as long as reading it."""
# About 480 megabytes in colour once decoded, which the sandbox's memory limit still allows.
_MAX_FILE_PIXELS = 160_000_000
_TIMEOUT_SECONDS = 90
"""Seconds per run. A page takes three runs at most, which stay below the sandbox's limit."""
_POINTS_PER_PIXEL = 72 / OCR_DPI
"""Also for pages that were scaled down: only proportions matter."""
_MIN_INK_PIXELS = 50
"""Pixels of another shade than the paper's; at 300 DPI a single letter has more."""
_LEGIBLE_WORD = re.compile(r"[^\W\d_]{2}|\d{2}")
_WORD_LEVEL = 5
"""The level of words in tesseract's table."""


@dataclass(frozen=True, slots=True)
class OcrResult:
    """The lines that OCR found in one picture."""

    lines: list[Line]
    confidence: float | None
    height: float
    """Height of the page, in points."""
    legible_word_count: int = 0
    """Words that tesseract is sure of: in a photograph it finds others."""
    words: tuple[PageWord, ...] = ()
    """Every word with its place on the page, in reading order."""

    @property
    def character_count(self) -> int:
        return sum(len(line.text) for line in self.lines)

    @property
    def word_count(self) -> int:
        return sum(len(line.text.split()) for line in self.lines)


def recognize_text(picture: Image.Image, max_pixels: int) -> OcrResult:
    """Return the lines of a picture; raise `PageUnreadable` when tesseract fails."""
    picture = _prepare_picture(picture, max_pixels)
    if _is_blank(picture):
        return OcrResult([], None, picture.height * _POINTS_PER_PIXEL)
    upright_result = _run_tesseract(picture)
    if upright_result.confidence is not None and upright_result.confidence >= _SURE_CONFIDENCE:
        return upright_result
    degrees = _detect_rotation(picture)
    if not degrees:
        return upright_result
    rotated_result = _run_tesseract(picture.rotate(-degrees, expand=True))
    upright_words = tuple(_turn_back(word, degrees) for word in rotated_result.words)
    rotated_result = replace(rotated_result, words=upright_words)
    # Detection may be wrong, so both readings are kept and the one with more sure words wins.
    return max(
        upright_result,
        rotated_result,
        key=lambda result: (result.confidence or 0.0) * result.word_count,
    )


@dataclass(frozen=True, slots=True)
class ImageFile:
    """An image file, whose frames are pages; most have one."""

    image: Image.Image
    frame_count: int

    def get_frame(self, index: int) -> Image.Image:
        """Return one frame, the right way up."""
        with _damage_as_refusal():
            self.image.seek(index)
            _check_size(self.image)
            return ImageOps.exif_transpose(self.image)


@contextmanager
def open_image(content: bytes, max_frames: int) -> Iterator[ImageFile]:
    """Open an image; raise a `Refusal` that says what is wrong with it."""
    # Our own check has a message for users; Pillow's would only warn.
    Image.MAX_IMAGE_PIXELS = None
    if content[4:8] == b"ftyp":  # the only format of ours that begins so
        _register_heic()
    with _damage_as_refusal():
        image = Image.open(io.BytesIO(content))
        _check_size(image)
        frame_count = getattr(image, "n_frames", 1)
    with image:
        if frame_count > max_frames:
            raise Refusal(
                "extraction_failed",
                f"The image has {frame_count:,} frames; at most {max_frames:,} are read",
            )
        yield ImageFile(image, frame_count)


@contextmanager
def _damage_as_refusal() -> Iterator[None]:
    try:
        yield
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


def _register_heic() -> None:
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


def _check_size(image: Image.Image) -> None:
    width, height = image.size
    if width * height > _MAX_FILE_PIXELS:
        max_million_pixels = _MAX_FILE_PIXELS // 1_000_000
        raise Refusal(
            "extraction_failed",
            f"The image has {width:,} by {height:,} pixels; at most {max_million_pixels} million "
            "are read",
        )


def _prepare_picture(picture: Image.Image, max_pixels: int) -> Image.Image:
    """Return the picture in grey, on white where it is transparent, and not too large."""
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        white_page = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(white_page, picture)
    grey = picture.convert("L")
    pixel_count = grey.width * grey.height
    if pixel_count > max_pixels:
        # By a whole number, which averages blocks of pixels: fast, and letters stay legible.
        grey = grey.reduce(int((pixel_count / max_pixels) ** 0.5) + 1)
    return grey


def _is_blank(grey_picture: Image.Image) -> bool:
    """Whether a picture has no ink for a single letter, so that tesseract need not look at it."""
    # A thousand blank pages are a small file, and tesseract takes long for each.
    shade_counts = grey_picture.histogram()
    return sum(shade_counts) - max(shade_counts) < _MIN_INK_PIXELS


def _run_tesseract(picture: Image.Image) -> OcrResult:
    picture.format = "PPM"  # the format in which it is passed on; compressing PNG takes time
    try:
        table_columns = pytesseract.image_to_data(
            picture,
            config=f"--psm 3 --dpi {OCR_DPI}",
            timeout=_TIMEOUT_SECONDS,
            output_type=pytesseract.Output.DICT,
        )
    except pytesseract.TesseractNotFoundError as error:
        raise PageUnreadable("tesseract is not installed") from error
    except (pytesseract.TesseractError, RuntimeError, OSError) as error:
        raise PageUnreadable("tesseract could not read it") from error
    return _parse_result(table_columns, picture.width, picture.height)


def _detect_rotation(picture: Image.Image) -> int:
    """Return the degrees by which to turn a page clockwise; 0 where that cannot be determined."""
    try:
        orientation = pytesseract.image_to_osd(
            picture,
            config=f"--dpi {OCR_DPI}",
            timeout=_TIMEOUT_SECONDS,
            output_type=pytesseract.Output.DICT,
        )
    except (pytesseract.TesseractError, RuntimeError, OSError):
        return 0  # too few letters to judge by, most often
    return int(orientation["rotate"])


def _turn_back(word: PageWord, degrees: int) -> PageWord:
    """Return a word of a page that was turned clockwise, where it stands before it was turned."""
    match degrees:
        case 90:
            return PageWord(word.text, word.top, 1 - word.right, word.bottom, 1 - word.left)
        case 180:
            return PageWord(word.text, 1 - word.right, 1 - word.bottom, 1 - word.left, 1 - word.top)
        case 270:
            return PageWord(word.text, 1 - word.bottom, word.left, 1 - word.top, word.right)
    return word


def _parse_result(
    table_columns: dict[str, list[Any]], page_width: int, page_height: int
) -> OcrResult:
    table_rows = [
        dict(zip(table_columns, row, strict=True))
        for row in zip(*table_columns.values(), strict=True)
    ]
    words = [row for row in table_rows if row["level"] == _WORD_LEVEL and str(row["text"]).strip()]
    lines: list[Line] = []
    last_paragraph = None
    for (block, number, _), line_words in groupby(words, key=_get_line_key):
        line = _make_line(list(line_words), page_height)
        line.has_gap_above = (block, number) != last_paragraph
        last_paragraph = (block, number)
        lines.append(line)
    confidences = [float(word["conf"]) for word in words]
    confidence = round(sum(confidences) / len(confidences), 1) if confidences else None
    legible_words = [
        word
        for word in words
        if float(word["conf"]) >= _SURE_CONFIDENCE and _LEGIBLE_WORD.search(str(word["text"]))
    ]
    return OcrResult(
        lines,
        confidence,
        page_height * _POINTS_PER_PIXEL,
        len(legible_words),
        tuple(_make_word(word, page_width, page_height) for word in words),
    )


def _make_word(word: dict[str, Any], page_width: int, page_height: int) -> PageWord:
    return PageWord(
        normalize_text(str(word["text"]).strip()),
        round(word["left"] / page_width, 5),
        round(word["top"] / page_height, 5),
        round((word["left"] + word["width"]) / page_width, 5),
        round((word["top"] + word["height"]) / page_height, 5),
    )


def _get_line_key(word: dict[str, Any]) -> tuple[int, int, int]:
    return word["block_num"], word["par_num"], word["line_num"]


def _make_line(words: list[dict[str, Any]], page_height: int) -> Line:
    text = normalize_text(" ".join(str(word["text"]).strip() for word in words))
    lowest_pixel = max(word["top"] + word["height"] for word in words)
    bottom = (page_height - lowest_pixel) * _POINTS_PER_PIXEL
    size = max(word["height"] for word in words) * _POINTS_PER_PIXEL
    return Line(
        text, words[0]["left"] * _POINTS_PER_PIXEL, bottom, size, is_bold=False, last_bottom=bottom
    )
