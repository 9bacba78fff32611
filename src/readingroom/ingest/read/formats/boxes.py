"""Finds the boxes drawn on a PDF page: shaded panels, frames and the grids of tables; and rules."""

import ctypes
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import pypdfium2.raw as pdfium

from readingroom.ingest.read.formats.images import Matrix, Rectangle
from readingroom.ingest.read.page import Box, DrawnRule

# A page with more drawn paths is a map or a drawing, on which no boxes are looked for.
_MAX_PATHS_ON_EXAMINED_PAGE = 3_000
_MAX_BOX_PIECES = 200

# Share of the page's width below which a rectangle is a cell or an ornament, not a box.
_MIN_WIDTH_SHARE = 0.3
# A rectangle that covers more of the page is its background.
_MAX_AREA_SHARE = 0.9
_MIN_BOX_HEIGHT = 6.0
_MAX_RULE_WIDTH = 3.5
# Points within which two pieces of a box touch.
_TOUCH_TOLERANCE = 4.0
# Points within which two pieces of a box have the same left or right edge.
_EDGE_TOLERANCE = 14.0
# Points between two columns of a page.
_MAX_GUTTER_WIDTH = 36.0
_MIN_WHITE_LEVEL = 253
# Of a panel that blends several; above all others.
_BLENDED_COLOUR = 1 << 24


class DrawnBoxFinder:
    """Collects the paths of one page that boxes are drawn with; most others are let go at once."""

    def __init__(self, page_frame: Rectangle) -> None:
        self._page_frame = page_frame
        self._min_width = _MIN_WIDTH_SHARE * (page_frame.right - page_frame.left)
        self._panels: list[Rectangle] = []
        self._panel_colours: list[int] = []
        self._rules: list[Rectangle] = []
        self._cross_rules: list[Rectangle] = []
        self._paths_left = _MAX_PATHS_ON_EXAMINED_PAGE
        # Made once: a page may have thousands of paths.
        self._edges = tuple(ctypes.c_float() for _ in range(4))
        self._channels = tuple(ctypes.c_uint() for _ in range(4))
        self._fill_mode, self._stroke_mode = ctypes.c_int(), ctypes.c_int()

    def add_path(self, path_object: pdfium.FPDF_PAGEOBJECT, placing_matrix: Matrix) -> None:
        """Take a path; the matrix is that of the forms around it."""
        self._paths_left -= 1
        if self._paths_left < 0 or not pdfium.FPDFPageObj_GetBounds(path_object, *self._edges):
            return
        path_left, path_bottom, path_right, path_top = (edge.value for edge in self._edges)
        path_bounds = placing_matrix.place_rectangle(
            Rectangle(path_left, path_bottom, path_right, path_top)
        )
        path_width, path_height = (
            path_bounds.right - path_bounds.left,
            path_bounds.top - path_bounds.bottom,
        )
        if path_width <= _MAX_RULE_WIDTH:
            if path_height >= _TOUCH_TOLERANCE:
                self._rules.append(path_bounds)
        elif path_width >= self._min_width and (
            path_height >= _MIN_BOX_HEIGHT or path_height <= _MAX_RULE_WIDTH
        ):
            colour = self._read_colour(path_object)
            if colour is not None and path_height <= _MAX_RULE_WIDTH:
                self._cross_rules.append(path_bounds)
            elif colour is not None:
                self._panels.append(path_bounds)
                self._panel_colours.append(colour)

    def add_blend(self, blend_object: pdfium.FPDF_PAGEOBJECT, placing_matrix: Matrix) -> None:
        """Take a blend of colours, which fills what it is clipped to."""
        self._paths_left -= 1
        if self._paths_left < 0 or not pdfium.FPDFPageObj_GetBounds(blend_object, *self._edges):
            return
        blend_bounds = placing_matrix.place_rectangle(
            Rectangle(*(edge.value for edge in self._edges))
        )
        is_wide = blend_bounds.right - blend_bounds.left >= self._min_width
        if is_wide and blend_bounds.top - blend_bounds.bottom >= _MIN_BOX_HEIGHT:
            self._panels.append(blend_bounds)
            self._panel_colours.append(_BLENDED_COLOUR)

    def find_boxes(self) -> list[Box]:
        """Return the boxes from the top down; on a map, with its many paths, there are none."""
        if self._paths_left < 0:
            return []
        vertical_rules = _join_vertical_rules(self._rules)
        max_area = _MAX_AREA_SHARE * self._page_frame.area
        box_pieces = [
            box_piece
            for box_piece in (*self._panels, *_find_frames(vertical_rules, self._min_width))
            if box_piece.area < max_area
        ]
        # A hostile page could have thousands, and each is compared with each.
        largest_pieces = sorted(box_pieces, key=lambda box_piece: box_piece.area, reverse=True)[
            :_MAX_BOX_PIECES
        ]
        return [
            self._make_box(rectangle, vertical_rules)
            for rectangle in _unite_box_pieces(largest_pieces)
        ]

    def find_rules(self, boxes: Sequence[Box]) -> list[DrawnRule]:
        """Return the lines drawn across the page from the top down, but for those of its boxes."""
        if not 0 < len(self._cross_rules) <= _MAX_BOX_PIECES or self._paths_left < 0:
            return []
        drawn_rules = [
            DrawnRule(
                cross_rule.left - self._page_frame.left,
                cross_rule.right - self._page_frame.left,
                (cross_rule.bottom + cross_rule.top) / 2 - self._page_frame.bottom,
            )
            for cross_rule in self._cross_rules
        ]
        return sorted(
            (
                drawn_rule
                for drawn_rule in drawn_rules
                if not any(_is_rule_of_box(box, drawn_rule) for box in boxes)
            ),
            key=lambda drawn_rule: -drawn_rule.vertical_position,
        )

    def _make_box(self, rectangle: Rectangle, vertical_rules: Sequence[Rectangle]) -> Box:
        low_edge, high_edge = (
            rectangle.bottom + _TOUCH_TOLERANCE,
            rectangle.top - _TOUCH_TOLERANCE,
        )
        return Box(
            left=rectangle.left - self._page_frame.left,
            bottom=rectangle.bottom - self._page_frame.bottom,
            right=rectangle.right - self._page_frame.left,
            top=rectangle.top - self._page_frame.bottom,
            is_grid=_has_inner_rules(rectangle, vertical_rules),
            top_colours=self._list_colours(rectangle, rectangle.top, high_edge),
            bottom_colours=self._list_colours(rectangle, low_edge, rectangle.bottom),
        )

    def _read_colour(self, path_object: pdfium.FPDF_PAGEOBJECT) -> int | None:
        """Return a number for the colour of a panel, or else of its outline; None without either.

        White paper is no colour.
        """
        pdfium.FPDFPath_GetDrawMode(path_object, self._fill_mode, self._stroke_mode)
        if self._fill_mode.value:
            pdfium.FPDFPageObj_GetFillColor(path_object, *self._channels)
            red, green, blue = (channel.value for channel in self._channels[:3])
            if min(red, green, blue) < _MIN_WHITE_LEVEL:
                return red << 16 | green << 8 | blue
        if self._stroke_mode.value:
            pdfium.FPDFPageObj_GetStrokeColor(path_object, *self._channels)
            red, green, blue = (channel.value for channel in self._channels[:3])
            return -1 - (red << 16 | green << 8 | blue)
        return None

    def _list_colours(self, box: Rectangle, edge_bottom: float, edge_top: float) -> frozenset[int]:
        """Return the colours of the panels of a box that lie behind one of its edges."""
        return frozenset(
            colour
            for panel, colour in zip(self._panels, self._panel_colours, strict=True)
            if box.left <= panel.left
            and panel.right <= box.right
            and box.bottom <= panel.bottom <= edge_bottom
            and edge_top <= panel.top <= box.top
        )


def _join_vertical_rules(rule_rectangles: Iterable[Rectangle]) -> list[Rectangle]:
    """Return the vertical rules, each joined from the pieces that its rows drew."""
    rules_by_column: defaultdict[int, list[Rectangle]] = defaultdict(list)
    for rectangle in rule_rectangles:
        if rectangle.right - rectangle.left <= _MAX_RULE_WIDTH:
            rules_by_column[round(rectangle.left / 2)].append(rectangle)
    joined_rules: list[Rectangle] = []
    for column_rules in rules_by_column.values():
        column_rules.sort(key=lambda rectangle: rectangle.bottom)
        joined_rule = column_rules[0]
        for next_rule in column_rules[1:]:
            if next_rule.bottom <= joined_rule.top + _TOUCH_TOLERANCE:
                joined_rule = joined_rule.unite_with(next_rule)
            else:
                joined_rules.append(joined_rule)
                joined_rule = next_rule
        joined_rules.append(joined_rule)
    return [
        joined_rule
        for joined_rule in joined_rules
        if joined_rule.top - joined_rule.bottom >= 2 * _MIN_BOX_HEIGHT
    ]


def _find_frames(vertical_rules: Sequence[Rectangle], min_width: float) -> Iterator[Rectangle]:
    """Yield the frames whose left and right sides are rules of about the same height."""
    rules_by_height: defaultdict[tuple[int, int], list[Rectangle]] = defaultdict(list)
    for vertical_rule in vertical_rules:
        rules_by_height[
            round(vertical_rule.bottom / _EDGE_TOLERANCE),
            round(vertical_rule.top / _EDGE_TOLERANCE),
        ].append(vertical_rule)
    for frame_sides in rules_by_height.values():
        frame_sides.sort(key=lambda vertical_rule: vertical_rule.left)
        frame_groups = (
            [frame_sides[:2], frame_sides[2:]] if _are_two_frames(frame_sides) else [frame_sides]
        )
        for facing_rules in frame_groups:
            if facing_rules[-1].left - facing_rules[0].left >= min_width:
                yield facing_rules[0].unite_with(facing_rules[-1])


def _are_two_frames(frame_sides: Sequence[Rectangle]) -> bool:
    """Whether four rules of one height are frames in two columns, with a gutter between them."""
    if len(frame_sides) != 4:
        return False
    side_distances = [
        right_side.left - left_side.left for left_side, right_side in pairwise(frame_sides)
    ]
    return (
        side_distances[1] <= _MAX_GUTTER_WIDTH
        and abs(side_distances[0] - side_distances[2]) < _EDGE_TOLERANCE
    )


def _unite_box_pieces(box_pieces: Iterable[Rectangle]) -> list[Rectangle]:
    """Return the boxes that pieces make up: those that touch and have the same sides are one."""
    united_boxes: list[Rectangle] = []
    for box_piece in sorted(box_pieces, key=lambda rectangle: -rectangle.top):
        for box_index, united_box in enumerate(united_boxes):
            if _is_piece_of_box(united_box, box_piece):
                united_boxes[box_index] = united_box.unite_with(box_piece)
                break
        else:
            united_boxes.append(box_piece)
    return united_boxes


def _is_piece_of_box(united_box: Rectangle, box_piece: Rectangle) -> bool:
    """Whether a piece touches the box above it, or lies in it, and their sides agree."""
    if box_piece.top < united_box.bottom - _TOUCH_TOLERANCE:
        return False
    lies_inside = box_piece.left >= united_box.left - _EDGE_TOLERANCE and (
        box_piece.right <= united_box.right + _EDGE_TOLERANCE
    )
    lies_around = united_box.left >= box_piece.left - _EDGE_TOLERANCE and (
        united_box.right <= box_piece.right + _EDGE_TOLERANCE
    )
    # A table across both columns of a page may hang below the box of one.
    hangs_below = box_piece.top < united_box.bottom + _TOUCH_TOLERANCE
    return (lies_inside and lies_around) if hangs_below else (lies_inside or lies_around)


def _has_inner_rules(rectangle: Rectangle, vertical_rules: Sequence[Rectangle]) -> bool:
    """Whether vertical rules divide a box into columns."""
    return any(
        rectangle.left + _EDGE_TOLERANCE < vertical_rule.left < rectangle.right - _EDGE_TOLERANCE
        and vertical_rule.bottom >= rectangle.bottom - _EDGE_TOLERANCE
        and vertical_rule.top <= rectangle.top + _EDGE_TOLERANCE
        for vertical_rule in vertical_rules
    )


def _is_rule_of_box(box: Box, drawn_rule: DrawnRule) -> bool:
    """Whether a rule lies in a box or on its edge."""
    return (
        box.bottom - _TOUCH_TOLERANCE <= drawn_rule.vertical_position <= box.top + _TOUCH_TOLERANCE
        and box.left - _EDGE_TOLERANCE <= drawn_rule.left
        and drawn_rule.right <= box.right + _EDGE_TOLERANCE
    )
