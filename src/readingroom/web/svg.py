"""Shapes of SVG charts: rectangles, lines, words and links. Sizes are pixels."""

from collections.abc import Sequence

from markupsafe import Markup, escape

_BAR_HEIGHT = 18
_MAX_LABEL_WIDTH = 260
_MIN_LABEL_WIDTH = 48
LETTER_WIDTH = 7.4
_MAX_LABEL_CHARS = 36


def make_svg(shapes: Sequence[Markup], width: float, height: float, accessible_name: str) -> Markup:
    """Return the shapes as one picture, named by what it shows."""
    shapes_markup = Markup("").join(shapes)
    # Links inside something that is named an image could not be reached by a screen reader.
    aria_role = "group" if "<a " in shapes_markup else "img"
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" role="{aria_role}" '
        f'aria-label="{escape(accessible_name)}" '
        f'width="{width:.0f}" height="{height:.0f}">{shapes_markup}</svg>'
    )


def wrap_in_link(shape: Markup, href: str | None, link_description: str | None = None) -> Markup:
    """Return a shape as a link; `link_description` says where to, unless the shape is words."""
    if href is None:
        return shape
    aria_label = f' aria-label="{escape(link_description)}"' if link_description is not None else ""
    return Markup(f'<a href="{escape(href)}"{aria_label}>{shape}</a>')


def make_rect(
    css_class: str,
    left: float,
    top: float,
    width: float,
    tooltip_text: str | None = None,
    height: float = _BAR_HEIGHT,
) -> Markup:
    title_markup = f"<title>{escape(tooltip_text)}</title>" if tooltip_text else ""
    return Markup(
        f'<rect class="{escape(css_class)}" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="2">{title_markup}</rect>'
    )


def make_line(css_class: str, left: float, top: float, right: float, bottom: float) -> Markup:
    return Markup(
        f'<line class="{escape(css_class)}" x1="{left:.1f}" y1="{top:.1f}" x2="{right:.1f}" '
        f'y2="{bottom:.1f}"/>'
    )


def make_text(shown_text: str, left: float, baseline_y: float, css_class: str = "") -> Markup:
    class_attribute = f' class="{escape(css_class)}"' if css_class else ""
    return Markup(
        f'<text{class_attribute} x="{left:.1f}" y="{baseline_y:.1f}">{escape(shown_text)}</text>'
    )


def measure_labels(label_texts: Sequence[str]) -> float:
    """Return the width that the longest label takes: on a phone, every pixel of it hides a bar."""
    longest_label_chars = max(
        (len(shorten_label(label_text)) for label_text in label_texts), default=0
    )
    return min(_MAX_LABEL_WIDTH, max(_MIN_LABEL_WIDTH, 12 + LETTER_WIDTH * longest_label_chars))


def make_label(label_text: str, top: float) -> Markup:
    return make_text(shorten_label(label_text), 0, top + 14, "label")


def shorten_label(label_text: str, max_chars: int = _MAX_LABEL_CHARS) -> str:
    return (
        label_text if len(label_text) <= max_chars else label_text[: max_chars - 1].rstrip() + "…"
    )
