"""How much of a page is pictures."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import pypdfium2
import pypdfium2.raw as pdfium

_DEEPEST = 8
_MOST_OBJECTS = 50_000
_MOST_RECTANGLES = 1_000


class Matrix(NamedTuple):
    """An affine map, in the order PDF writes it."""

    a: float = 1.0
    b: float = 0.0
    c: float = 0.0
    d: float = 1.0
    e: float = 0.0
    f: float = 0.0

    def then(self, outer: "Matrix") -> "Matrix":
        return Matrix(
            self.a * outer.a + self.b * outer.c,
            self.a * outer.b + self.b * outer.d,
            self.c * outer.a + self.d * outer.c,
            self.c * outer.b + self.d * outer.d,
            self.e * outer.a + self.f * outer.c + outer.e,
            self.e * outer.b + self.f * outer.d + outer.f,
        )

    def unit_square(self) -> "Rectangle":
        """Where an image lies: every image is drawn as the unit square."""
        xs = (self.e, self.e + self.a, self.e + self.c, self.e + self.a + self.c)
        ys = (self.f, self.f + self.b, self.f + self.d, self.f + self.b + self.d)
        return Rectangle(min(xs), min(ys), max(xs), max(ys))


class Rectangle(NamedTuple):
    """An upright rectangle."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def area(self) -> float:
        return max(0.0, self.right - self.left) * max(0.0, self.top - self.bottom)

    def clipped_to(self, frame: "Rectangle") -> "Rectangle":
        return Rectangle(
            max(self.left, frame.left),
            max(self.bottom, frame.bottom),
            min(self.right, frame.right),
            min(self.top, frame.top),
        )


def image_ratio(page: pypdfium2.PdfPage) -> float:
    """The share of the page that images cover, from 0 to 1, overlaps counted once."""
    frame = Rectangle(*page.get_bbox())
    if not frame.area:
        return 0.0
    shown = (image.clipped_to(frame) for image in _images(page))
    return min(1.0, union_area([image for image in shown if image.area]) / frame.area)


def union_area(rectangles: Sequence[Rectangle]) -> float:
    """The area that rectangles cover together."""
    largest = sorted(rectangles, key=lambda one: one.area, reverse=True)[:_MOST_RECTANGLES]
    by_bottom = sorted(largest, key=lambda one: one.bottom)
    edges = sorted({edge for one in largest for edge in (one.left, one.right)})
    return sum(
        (right - left) * _covered(one for one in by_bottom if one.left <= left < one.right)
        for left, right in pairwise(edges)
    )


def _covered(sorted_by_bottom: Iterable[Rectangle]) -> float:
    """The height that rectangles over one vertical strip cover."""
    total, reached = 0.0, float("-inf")
    for one in sorted_by_bottom:
        total += max(0.0, one.top - max(one.bottom, reached))
        reached = max(reached, one.top)
    return total


def _images(page: pypdfium2.PdfPage) -> Iterator[Rectangle]:
    """Every image, placed through the forms that contain it: otherwise some would score nothing."""
    count = pdfium.FPDFPage_CountObjects(page)
    objects = (pdfium.FPDFPage_GetObject(page, index) for index in range(count))
    left = _MOST_OBJECTS
    stack: list[tuple[Iterator[pdfium.FPDF_PAGEOBJECT], Matrix]] = [(objects, Matrix())]
    while stack and left:
        inner, outer = stack[-1]
        drawn = next(inner, None)
        if drawn is None:
            stack.pop()
            continue
        left -= 1
        kind = pdfium.FPDFPageObj_GetType(drawn)
        if kind == pdfium.FPDF_PAGEOBJ_IMAGE:
            yield _matrix(drawn).then(outer).unit_square()
        elif kind == pdfium.FPDF_PAGEOBJ_FORM and len(stack) < _DEEPEST:
            stack.append((_inside(drawn), _matrix(drawn).then(outer)))


def _inside(form: pdfium.FPDF_PAGEOBJECT) -> Iterator[pdfium.FPDF_PAGEOBJECT]:
    for index in range(pdfium.FPDFFormObj_CountObjects(form)):
        yield pdfium.FPDFFormObj_GetObject(form, index)


def _matrix(drawn: pdfium.FPDF_PAGEOBJECT) -> Matrix:
    matrix = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(drawn, matrix):
        return Matrix()
    return Matrix(matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f)
