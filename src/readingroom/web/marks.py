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


def render_marked_page(
    picture_address: str,
    picture_description: str,
    marked_areas: Sequence[MarkedArea],
    has_sought_passage: bool = False,
) -> Markup:
    """Return the HTML of a page's picture with its marks drawn over it.

    With `has_sought_passage` a page without marks says why: there are words to be marked.
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
    overlay_markup = Markup(
        '<svg viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
    ).format(rectangle_markup)
    caption_markup = Markup("")
    if has_sought_passage and marked_areas:
        caption_markup = Markup('<p class="meta">{} marked.</p>').format(
            f"{len(marked_areas)} line{'s are' if len(marked_areas) != 1 else ' is'}"
        )
    elif has_sought_passage:
        caption_markup = Markup(
            '<p class="meta">Nothing is marked: less than half of the words could be located on '
            "this page.</p>"
        )
    return Markup('<div class="sheet"><img src="{}" alt="{}">{}</div>{}').format(
        picture_address,
        picture_description,
        overlay_markup if marked_areas else Markup(""),
        caption_markup,
    )
