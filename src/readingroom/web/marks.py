"""A page of a document as a picture, with a passage marked on it."""

from collections.abc import Sequence
from typing import Protocol

from markupsafe import Markup


class MarkedArea(Protocol):
    """A rectangle in shares of the page's width and height, from its upper left."""

    @property
    def left(self) -> float: ...
    @property
    def top(self) -> float: ...
    @property
    def right(self) -> float: ...
    @property
    def bottom(self) -> float: ...


def show_marked_page(
    picture_address: str,
    picture_description: str,
    marked_areas: Sequence[MarkedArea],
    is_sought: bool = False,
) -> Markup:
    """Return the HTML of a page's picture with its marks drawn over it.

    `is_sought` says that there are words to be marked, so that a page without marks says why.
    """
    rectangle_markup = Markup("").join(
        Markup(
            f'<rect x="{marked_area.left:.4f}" y="{marked_area.top:.4f}" '
            f'width="{marked_area.right - marked_area.left:.4f}" '
            f'height="{marked_area.bottom - marked_area.top:.4f}"/>'
        )
        for marked_area in marked_areas
    )
    # The picture's own shape decides; the marks are stretched over it.
    overlay_svg = Markup(
        '<svg viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
    ).format(rectangle_markup)
    caption_markup = Markup("")
    if is_sought and marked_areas:
        caption_markup = Markup('<p class="meta">{} marked.</p>').format(
            f"{len(marked_areas)} line{'s are' if len(marked_areas) != 1 else ' is'}"
        )
    elif is_sought:
        caption_markup = Markup(
            '<p class="meta">Nothing is marked: less than half of the words could be located on '
            "this page.</p>"
        )
    return Markup('<div class="sheet"><img src="{}" alt="{}">{}</div>{}').format(
        picture_address,
        picture_description,
        overlay_svg if marked_areas else Markup(""),
        caption_markup,
    )
