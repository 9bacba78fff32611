"""Computes the share of a PDF page that images cover."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import pypdfium2
import pypdfium2.raw as pdfium

# A hostile page can nest forms without end and repeat objects by the million. These bounds are far
# beyond real pages, and keep the time for each in check.
_MAX_FORM_DEPTH = 8
_MAX_PAGE_OBJECTS = 50_000
_MAX_RECTANGLES_IN_UNION = 1_000


class Matrix(NamedTuple):
    """An affine transformation, in the order in which PDF writes it."""

    a: float = 1.0
    b: float = 0.0
    c: float = 0.0
    d: float = 1.0
    e: float = 0.0
    f: float = 0.0

    def combine_with(self, outer_matrix: "Matrix") -> "Matrix":
        """Return the transformation that applies this one, then the other."""
        return Matrix(
            self.a * outer_matrix.a + self.b * outer_matrix.c,
            self.a * outer_matrix.b + self.b * outer_matrix.d,
            self.c * outer_matrix.a + self.d * outer_matrix.c,
            self.c * outer_matrix.b + self.d * outer_matrix.d,
            self.e * outer_matrix.a + self.f * outer_matrix.c + outer_matrix.e,
            self.e * outer_matrix.b + self.f * outer_matrix.d + outer_matrix.f,
        )

    def place_unit_square(self) -> "Rectangle":
        """Return where an image lies: every image is drawn as the unit square."""
        corner_xs = (self.e, self.e + self.a, self.e + self.c, self.e + self.a + self.c)
        corner_ys = (self.f, self.f + self.b, self.f + self.d, self.f + self.b + self.d)
        return Rectangle(min(corner_xs), min(corner_ys), max(corner_xs), max(corner_ys))

    def place_rectangle(self, rectangle: "Rectangle") -> "Rectangle":
        """Return where a rectangle lies after the transformation, as an upright rectangle."""
        if self == _IDENTITY_MATRIX:
            return rectangle
        placed_corners = [
            (
                self.a * corner_x + self.c * corner_y + self.e,
                self.b * corner_x + self.d * corner_y + self.f,
            )
            for corner_x in (rectangle.left, rectangle.right)
            for corner_y in (rectangle.bottom, rectangle.top)
        ]
        corner_xs, corner_ys = (
            [corner_x for corner_x, _ in placed_corners],
            [corner_y for _, corner_y in placed_corners],
        )
        return Rectangle(min(corner_xs), min(corner_ys), max(corner_xs), max(corner_ys))


_IDENTITY_MATRIX = Matrix()


class Rectangle(NamedTuple):
    """An upright rectangle."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def area(self) -> float:
        return max(0.0, self.right - self.left) * max(0.0, self.top - self.bottom)

    def clip_to_rectangle(self, clip_rectangle: "Rectangle") -> "Rectangle":
        return Rectangle(
            max(self.left, clip_rectangle.left),
            max(self.bottom, clip_rectangle.bottom),
            min(self.right, clip_rectangle.right),
            min(self.top, clip_rectangle.top),
        )

    def unite_with(self, other_rectangle: "Rectangle") -> "Rectangle":
        """Return the smallest rectangle that holds both."""
        return Rectangle(
            min(self.left, other_rectangle.left),
            min(self.bottom, other_rectangle.bottom),
            max(self.right, other_rectangle.right),
            max(self.top, other_rectangle.top),
        )


def measure_image_ratio(pdf_page: pypdfium2.PdfPage) -> float:
    """Return the share of the page that images cover, from 0 to 1; overlaps count once."""
    image_rectangles = [
        image_matrix.place_unit_square()
        for page_object, object_type, image_matrix in iterate_page_objects(pdf_page)
        if object_type == pdfium.FPDF_PAGEOBJ_IMAGE
    ]
    return compute_image_ratio(image_rectangles, Rectangle(*pdf_page.get_bbox()))


def compute_image_ratio(image_rectangles: Iterable[Rectangle], page_rectangle: Rectangle) -> float:
    """Return the share of a page that its images cover, from 0 to 1; overlaps count once."""
    if not page_rectangle.area:
        return 0.0
    visible_rectangles = (
        image_rectangle.clip_to_rectangle(page_rectangle) for image_rectangle in image_rectangles
    )
    return min(
        1.0,
        compute_union_area(
            [image_rectangle for image_rectangle in visible_rectangles if image_rectangle.area]
        )
        / page_rectangle.area,
    )


def compute_union_area(rectangles: Sequence[Rectangle]) -> float:
    """Return the area that the rectangles cover together."""
    largest_rectangles = sorted(
        rectangles, key=lambda covered_rectangle: covered_rectangle.area, reverse=True
    )[:_MAX_RECTANGLES_IN_UNION]
    rectangles_from_bottom = sorted(
        largest_rectangles, key=lambda covered_rectangle: covered_rectangle.bottom
    )
    vertical_edges = sorted(
        {
            vertical_edge
            for covered_rectangle in largest_rectangles
            for vertical_edge in (covered_rectangle.left, covered_rectangle.right)
        }
    )
    return sum(
        (right_edge - left_edge)
        * _measure_covered_height(
            covered_rectangle
            for covered_rectangle in rectangles_from_bottom
            if covered_rectangle.left <= left_edge < covered_rectangle.right
        )
        for left_edge, right_edge in pairwise(vertical_edges)
    )


def _measure_covered_height(rectangles_from_bottom: Iterable[Rectangle]) -> float:
    """Return the height that the rectangles of one vertical strip cover."""
    covered_height, highest_top = 0.0, float("-inf")
    for covered_rectangle in rectangles_from_bottom:
        covered_height += max(
            0.0, covered_rectangle.top - max(covered_rectangle.bottom, highest_top)
        )
        highest_top = max(highest_top, covered_rectangle.top)
    return covered_height


def iterate_page_objects(
    pdf_page: pypdfium2.PdfPage,
) -> Iterator[tuple[pdfium.FPDF_PAGEOBJECT, int, Matrix]]:
    """Yield the images, paths and blends of colours of a page, with their type and matrix.

    Those of nested forms too. The matrix of an image is its own and that of the forms around it;
    that of a path or a blend, whose bounds follow its own, is that of the forms alone.
    """
    object_count = pdfium.FPDFPage_CountObjects(pdf_page)
    page_objects = (
        pdfium.FPDFPage_GetObject(pdf_page, object_index) for object_index in range(object_count)
    )
    remaining_object_count = _MAX_PAGE_OBJECTS
    form_stack: list[tuple[Iterator[pdfium.FPDF_PAGEOBJECT], Matrix]] = [
        (page_objects, _IDENTITY_MATRIX)
    ]
    while form_stack and remaining_object_count:
        sibling_objects, outer_matrix = form_stack[-1]
        page_object = next(sibling_objects, None)
        if page_object is None:
            form_stack.pop()
            continue
        remaining_object_count -= 1
        object_type = pdfium.FPDFPageObj_GetType(page_object)
        if object_type in (pdfium.FPDF_PAGEOBJ_PATH, pdfium.FPDF_PAGEOBJ_SHADING):
            yield page_object, object_type, outer_matrix
        elif object_type == pdfium.FPDF_PAGEOBJ_IMAGE:
            yield page_object, object_type, _read_matrix(page_object).combine_with(outer_matrix)
        elif object_type == pdfium.FPDF_PAGEOBJ_FORM and len(form_stack) < _MAX_FORM_DEPTH:
            form_stack.append(
                (
                    _iterate_form_objects(page_object),
                    _read_matrix(page_object).combine_with(outer_matrix),
                )
            )


def _iterate_form_objects(form_object: pdfium.FPDF_PAGEOBJECT) -> Iterator[pdfium.FPDF_PAGEOBJECT]:
    for object_index in range(pdfium.FPDFFormObj_CountObjects(form_object)):
        yield pdfium.FPDFFormObj_GetObject(form_object, object_index)


def _read_matrix(page_object: pdfium.FPDF_PAGEOBJECT) -> Matrix:
    pdfium_matrix = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(page_object, pdfium_matrix):
        return Matrix()
    return Matrix(
        pdfium_matrix.a,
        pdfium_matrix.b,
        pdfium_matrix.c,
        pdfium_matrix.d,
        pdfium_matrix.e,
        pdfium_matrix.f,
    )
