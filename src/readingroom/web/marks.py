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
    picture_address: str, picture_description: str, marks: Sequence[MarkedArea]
) -> Markup:
    """Return the HTML of a page's picture with its marks drawn over it."""
    rectangles = Markup("").join(
        Markup('<rect x="{:.4f}" y="{:.4f}" width="{:.4f}" height="{:.4f}"/>').format(
            mark.left, mark.top, mark.right - mark.left, mark.bottom - mark.top
        )
        for mark in marks
    )
    # The picture's own shape decides; the marks are stretched over it.
    overlay = Markup(
        '<svg viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
    ).format(rectangles)
    return Markup('<div class="sheet"><img src="{}" alt="{}">{}</div>').format(
        picture_address, picture_description, overlay if marks else Markup("")
    )
