"""Reads pictures of text with tesseract: one pass gives words, their places and the confidence."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pytesseract
from PIL import Image, ImageOps

from readingroom.ingest.document import Refusal
from readingroom.ingest.read.page import DPI, Line, PageUnreadable, normal

_SURE = 70.0
"""Below this confidence a page may lie on its side; finding out takes as long as reading it."""
_MOST_PIXELS_IN_A_FILE = 160_000_000
_SECONDS_A_TRY = 90
"""There are three to a page at most, which together stay below the sandbox's patience."""
_POINTS = 72 / DPI
"""Of one pixel; a page scaled down says so nowhere, and only proportions matter."""
_WORD = 5
"""The level of words in tesseract's table."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What OCR made of one picture."""

    lines: list[Line]
    confidence: float | None
    height: float
    """Of the page, in points."""

    @property
    def characters(self) -> int:
        return sum(len(line.text) for line in self.lines)

    @property
    def words(self) -> int:
        return sum(len(line.text.split()) for line in self.lines)


def read(picture: Image.Image, most_pixels: int) -> Reading:
    """The lines of a picture."""
    picture = _prepared(picture, most_pixels)
    reading = _words_in(picture)
    if reading.confidence is not None and reading.confidence >= _SURE:
        return reading
    turn = _turn(picture)
    if not turn:
        return reading
    turned = _words_in(picture.rotate(-turn, expand=True))
    return max(reading, turned, key=lambda one: (one.confidence or 0.0) * one.words)


@dataclass(frozen=True, slots=True)
class ImageFile:
    """An image file whose frames are pages; most have one."""

    image: Image.Image
    count: int

    def frame(self, index: int) -> Image.Image:
        """One frame, the right way up."""
        with _told_as_refusal():
            self.image.seek(index)
            _check_size(self.image)
            return ImageOps.exif_transpose(self.image)


@contextmanager
def opened(data: bytes, most_frames: int) -> Iterator[ImageFile]:
    """The image, or a refusal that says what is wrong with it."""
    # We look at the size ourselves and refuse in our own words.
    Image.MAX_IMAGE_PIXELS = None
    with _told_as_refusal():
        image = Image.open(io.BytesIO(data))
        _check_size(image)
        count = getattr(image, "n_frames", 1)
    with image:
        if count > most_frames:
            raise Refusal(
                "extraction_failed",
                f"The image has {count:,} frames; at most {most_frames:,} are read",
            )
        yield ImageFile(image, count)


@contextmanager
def _told_as_refusal() -> Iterator[None]:
    try:
        yield
    except (Refusal, MemoryError):
        raise
    except Exception as error:  # Pillow's readers raise whatever they stumble over
        raise Refusal("extraction_failed", "The image is damaged and cannot be read") from error


def _check_size(image: Image.Image) -> None:
    width, height = image.size
    if width * height > _MOST_PIXELS_IN_A_FILE:
        most = _MOST_PIXELS_IN_A_FILE // 1_000_000
        raise Refusal(
            "extraction_failed",
            f"The image measures {width:,} by {height:,} pixels; at most {most} million are read",
        )


def _prepared(picture: Image.Image, most_pixels: int) -> Image.Image:
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        white = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(white, picture)
    grey = picture.convert("L")
    pixels = grey.width * grey.height
    if pixels > most_pixels:
        grey = grey.reduce(int((pixels / most_pixels) ** 0.5) + 1)
    return grey


def _words_in(picture: Image.Image) -> Reading:
    picture.format = "PPM"  # how it is handed over; PNG would spend time on compression
    try:
        found = pytesseract.image_to_data(
            picture,
            config=f"--psm 3 --dpi {DPI}",
            timeout=_SECONDS_A_TRY,
            output_type=pytesseract.Output.DICT,
        )
    except pytesseract.TesseractNotFoundError as error:
        raise PageUnreadable("tesseract is not installed") from error
    except (pytesseract.TesseractError, RuntimeError, OSError) as error:
        raise PageUnreadable("tesseract could not read it") from error
    return _reading(found, picture.height)


def _turn(picture: Image.Image) -> int:
    """How many degrees a page must be turned clockwise; 0 where nobody can tell."""
    try:
        found = pytesseract.image_to_osd(
            picture,
            config=f"--dpi {DPI}",
            timeout=_SECONDS_A_TRY,
            output_type=pytesseract.Output.DICT,
        )
    except (pytesseract.TesseractError, RuntimeError, OSError):
        return 0  # too few letters to judge by, most often
    return int(found["rotate"])


def _reading(found: dict[str, list[Any]], page_height: int) -> Reading:
    rows = [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
    words = [row for row in rows if row["level"] == _WORD and str(row["text"]).strip()]
    lines: list[Line] = []
    paragraph = None
    for place, in_line in groupby(words, key=_line_of):
        line = _line(list(in_line), page_height)
        line.gap = place[:2] != paragraph
        paragraph = place[:2]
        lines.append(line)
    sure = [float(word["conf"]) for word in words]
    confidence = round(sum(sure) / len(sure), 1) if sure else None
    return Reading(lines, confidence, page_height * _POINTS)


def _line_of(word: dict[str, Any]) -> tuple[int, int, int]:
    return word["block_num"], word["par_num"], word["line_num"]


def _line(words: list[dict[str, Any]], page_height: int) -> Line:
    text = normal(" ".join(str(word["text"]).strip() for word in words))
    foot = max(word["top"] + word["height"] for word in words)
    bottom = (page_height - foot) * _POINTS
    size = max(word["height"] for word in words) * _POINTS
    return Line(text, words[0]["left"] * _POINTS, bottom, size, bold=False, low=bottom)
