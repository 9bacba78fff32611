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


def make_scan(scan_text: str, tilt_degrees: float = 0.3) -> Image.Image:
    """Return a typed page as a scanner sees it: grey, and not quite straight."""
    page_image = Image.new("L", _PAGE_PIXELS, 250)
    image_draw = ImageDraw.Draw(page_image)
    text_font = ImageFont.load_default(44)
    for line_index, text_line in enumerate(scan_text.splitlines()):
        image_draw.text((200, 220 + 66 * line_index), text_line, fill=_INK_GREY, font=text_font)
    return page_image.rotate(tilt_degrees, fillcolor=250, resample=Image.Resampling.BICUBIC)


def make_site_plan() -> Image.Image:
    """Return plots along a looping street: lines, and hardly a word."""
    plan_image = Image.new("L", (_PAGE_PIXELS[1], _PAGE_PIXELS[0]), 255)
    image_draw = ImageDraw.Draw(plan_image)
    image_draw.rounded_rectangle((300, 300, 2000, 1350), 200, outline=0, width=6)
    image_draw.rounded_rectangle((420, 420, 1880, 1230), 140, outline=0, width=6)
    for plot_index in range(14):
        plot_left = 360 + plot_index * 115
        image_draw.rectangle((plot_left, 140, plot_left + 85, 260), outline=0, width=3)
        image_draw.rectangle((plot_left, 1390, plot_left + 85, 1510), outline=0, width=3)
    for tree_index in range(24):
        tree_angle = tree_index * math.tau / 24
        tree_x, tree_y = 1150 + 600 * math.cos(tree_angle), 825 + 300 * math.sin(tree_angle)
        image_draw.ellipse(
            (tree_x - 22, tree_y - 22, tree_x + 22, tree_y + 22), outline=120, width=3
        )
    image_draw.text(
        (1650, 1560), "Site plan  1:500  sample", fill=0, font=ImageFont.load_default(40)
    )
    return plan_image


def make_street_scene() -> Image.Image:
    """Return a row of houses under a sky, as an architect would show them."""
    scene_image = Image.new("RGB", (1600, 900), _SKY_COLOUR)
    image_draw = ImageDraw.Draw(scene_image)
    image_draw.rectangle((0, 620, 1600, 900), fill=_GRASS_COLOUR)
    for house_index in range(6):
        house_left = 60 + house_index * 255
        image_draw.rectangle((house_left, 360, house_left + 220, 640), fill=_BRICK_COLOUR)
        image_draw.polygon(
            ((house_left - 15, 360), (house_left + 110, 240), (house_left + 235, 360)),
            fill=_ROOF_COLOUR,
        )
        for window_index in range(2):
            window_left = house_left + 35 + 95 * window_index
            image_draw.rectangle((window_left, 420, window_left + 55, 490), fill=(235, 235, 220))
    return scene_image


def encode_pdf(page_pictures: Sequence[Image.Image]) -> bytes:
    """Return a PDF with the pictures as its pages, without a text layer."""
    # Without dates: a document is identified by its bytes, and the same one is loaded only once.
    return _encode_pictures(
        page_pictures, "PDF", resolution=_SCAN_DPI, creationDate=None, modDate=None
    )


def encode_tiff(page_pictures: Sequence[Image.Image]) -> bytes:
    """Return a TIFF with the pictures as its frames."""
    return _encode_pictures(
        page_pictures, "TIFF", dpi=(_SCAN_DPI, _SCAN_DPI), compression="tiff_lzw"
    )


def encode_png(page_picture: Image.Image) -> bytes:
    """Return the picture as a PNG."""
    return _encode_pictures([page_picture], "PNG")


def _encode_pictures(
    page_pictures: Sequence[Image.Image], image_format: str, **format_options: object
) -> bytes:
    image_buffer = io.BytesIO()
    first_picture, *other_pictures = page_pictures
    save_options = (
        {"save_all": True, "append_images": other_pictures} if image_format != "PNG" else {}
    )
    first_picture.save(image_buffer, image_format, **save_options, **format_options)
    return image_buffer.getvalue()
