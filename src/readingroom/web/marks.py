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
    marks: Sequence[MarkedArea],
    is_sought: bool = False,
) -> Markup:
    """Return the HTML of a page's picture with its marks drawn over it.

    `is_sought` says that there are words to be marked, so that a page without marks says why.
    """
    rectangles = Markup("").join(
        Markup(
            f'<rect x="{mark.left:.4f}" y="{mark.top:.4f}" '
            f'width="{mark.right - mark.left:.4f}" height="{mark.bottom - mark.top:.4f}"/>'
        )
        for mark in marks
    )
    # The picture's own shape decides; the marks are stretched over it.
    overlay = Markup(
        '<svg viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
    ).format(rectangles)
    caption = Markup("")
    if is_sought and marks:
        caption = Markup('<p class="meta">{} marked.</p>').format(
            f"{len(marks)} line{'s are' if len(marks) != 1 else ' is'}"
        )
    elif is_sought:
        caption = Markup(
            '<p class="meta">Nothing is marked: less than half of the words could be located on '
            "this page.</p>"
        )
    return Markup('<div class="sheet"><img src="{}" alt="{}">{}</div>{}').format(
        picture_address, picture_description, overlay if marks else Markup(""), caption
    )
