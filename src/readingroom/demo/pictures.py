"""Draws the pictures of a planning application: a scan, a site plan, a street scene."""

import io
import math
from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

_SCAN_DPI = 200
_PAGE_PIXELS = (1654, 2339)  # A4 at that resolution
_INK_GREY = 40
_SKY_COLOUR, _GRASS_COLOUR, _BRICK_COLOUR, _ROOF_COLOUR = (
    (178, 205, 230),
    (120, 160, 90),
    (165, 85, 65),
    (90, 60, 55),
)


def draw_scan(scan_text: str, tilt: float = 0.3) -> Image.Image:
    """Return a typed page as a scanner sees it: grey, and not quite straight."""
    page_image = Image.new("L", _PAGE_PIXELS, 250)
    draw = ImageDraw.Draw(page_image)
    font = ImageFont.load_default(44)
    for line_index, text_line in enumerate(scan_text.splitlines()):
        draw.text((200, 220 + 66 * line_index), text_line, fill=_INK_GREY, font=font)
    return page_image.rotate(tilt, fillcolor=250, resample=Image.Resampling.BICUBIC)


def draw_site_plan() -> Image.Image:
    """Return plots along a looping street: lines, and hardly a word."""
    plan_image = Image.new("L", (_PAGE_PIXELS[1], _PAGE_PIXELS[0]), 255)
    draw = ImageDraw.Draw(plan_image)
    draw.rounded_rectangle((300, 300, 2000, 1350), 200, outline=0, width=6)
    draw.rounded_rectangle((420, 420, 1880, 1230), 140, outline=0, width=6)
    for plot in range(14):
        plot_left = 360 + plot * 115
        draw.rectangle((plot_left, 140, plot_left + 85, 260), outline=0, width=3)
        draw.rectangle((plot_left, 1390, plot_left + 85, 1510), outline=0, width=3)
    for tree in range(24):
        angle = tree * math.tau / 24
        x, y = 1150 + 600 * math.cos(angle), 825 + 300 * math.sin(angle)
        draw.ellipse((x - 22, y - 22, x + 22, y + 22), outline=120, width=3)
    draw.text((1650, 1560), "Site plan  1:500  sample", fill=0, font=ImageFont.load_default(40))
    return plan_image


def draw_street_scene() -> Image.Image:
    """Return a row of houses under a sky, as an architect would show them."""
    scene_image = Image.new("RGB", (1600, 900), _SKY_COLOUR)
    draw = ImageDraw.Draw(scene_image)
    draw.rectangle((0, 620, 1600, 900), fill=_GRASS_COLOUR)
    for house in range(6):
        house_left = 60 + house * 255
        draw.rectangle((house_left, 360, house_left + 220, 640), fill=_BRICK_COLOUR)
        draw.polygon(
            ((house_left - 15, 360), (house_left + 110, 240), (house_left + 235, 360)),
            fill=_ROOF_COLOUR,
        )
        for window in range(2):
            corner = house_left + 35 + 95 * window
            draw.rectangle((corner, 420, corner + 55, 490), fill=(235, 235, 220))
    return scene_image


def save_pdf(pictures: Sequence[Image.Image]) -> bytes:
    """Return a PDF with the pictures as its pages, without a text layer."""
    # Without dates: a document is identified by its bytes, and the same one is loaded only once.
    return _save(pictures, "PDF", resolution=_SCAN_DPI, creationDate=None, modDate=None)


def save_tiff(pictures: Sequence[Image.Image]) -> bytes:
    """Return a TIFF with the pictures as its frames."""
    return _save(pictures, "TIFF", dpi=(_SCAN_DPI, _SCAN_DPI), compression="tiff_lzw")


def save_png(picture: Image.Image) -> bytes:
    """Return the picture as a PNG."""
    return _save([picture], "PNG")


def _save(pictures: Sequence[Image.Image], format: str, **options: object) -> bytes:
    image_buffer = io.BytesIO()
    first_picture, *other_pictures = pictures
    save_options = {"save_all": True, "append_images": other_pictures} if format != "PNG" else {}
    first_picture.save(image_buffer, format, **save_options, **options)
    return image_buffer.getvalue()
