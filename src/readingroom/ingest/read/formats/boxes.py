"""Finds the boxes drawn on a PDF page: shaded panels, frames and the grids of tables; and rules."""

import ctypes
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product

import pypdfium2.raw as pdfium

from readingroom.ingest.read.formats.images import Matrix, Rectangle
from readingroom.ingest.read.page import Box, DrawnRule

# A page with more drawn paths is a map or a drawing, on which no boxes are looked for.
_MAX_EXAMINED_PATHS = 3_000
_MAX_BOX_PIECES = 200

# Share of the page's width below which a rectangle is a cell or an ornament, not a box.
_MIN_BOX_WIDTH_SHARE = 0.3
# A rectangle that covers more of the page is its background.
_MAX_BOX_AREA_SHARE = 0.9
_MIN_BOX_HEIGHT = 6.0
_MAX_RULE_THICKNESS = 3.5
# Points within which two pieces of a box touch.
_TOUCH_TOLERANCE = 4.0
# Points within which two pieces of a box have the same left or right edge.
_SAME_EDGE_TOLERANCE = 14.0
# Points between two columns of a page.
_MAX_GUTTER_WIDTH = 36.0
_MIN_WHITE_CHANNEL_VALUE = 253
# Of a panel that blends several; above all others.
_BLENDED_COLOUR_NUMBER = 1 << 24


class DrawnBoxFinder:
    """Collects the paths of one page that boxes are drawn with; most others are let go at once."""

    def __init__(self, page_frame: Rectangle) -> None:
        self._page_frame = page_frame
        self._min_box_width = _MIN_BOX_WIDTH_SHARE * (page_frame.right - page_frame.left)
        self._panel_rectangles: list[Rectangle] = []
        self._panel_colour_numbers: list[int] = []
        self._vertical_rule_rectangles: list[Rectangle] = []
        self._horizontal_rule_rectangles: list[Rectangle] = []
        self._remaining_path_count = _MAX_EXAMINED_PATHS
        # Made once: a page may have thousands of paths.
        self._edge_buffers = tuple(ctypes.c_float() for _ in range(4))
        self._colour_channel_buffers = tuple(ctypes.c_uint() for _ in range(4))
        self._fill_mode, self._stroke_mode = ctypes.c_int(), ctypes.c_int()

    def add_path(self, path_object: pdfium.FPDF_PAGEOBJECT, placing_matrix: Matrix) -> None:
        """Take a path; the matrix is that of the forms around it."""
        self._remaining_path_count -= 1
        if self._remaining_path_count < 0 or not pdfium.FPDFPageObj_GetBounds(
            path_object, *self._edge_buffers
        ):
            return
        path_left, path_bottom, path_right, path_top = (
            edge_buffer.value for edge_buffer in self._edge_buffers
        )
        path_bounds = placing_matrix.place_rectangle(
            Rectangle(path_left, path_bottom, path_right, path_top)
        )
        path_width, path_height = (
            path_bounds.right - path_bounds.left,
            path_bounds.top - path_bounds.bottom,
        )
        if path_width <= _MAX_RULE_THICKNESS:
            if path_height >= _TOUCH_TOLERANCE:
                self._vertical_rule_rectangles.append(path_bounds)
        elif path_width >= self._min_box_width and (
            path_height >= _MIN_BOX_HEIGHT or path_height <= _MAX_RULE_THICKNESS
        ):
            colour_number = self._find_colour_number(path_object)
            if colour_number is not None and path_height <= _MAX_RULE_THICKNESS:
                self._horizontal_rule_rectangles.append(path_bounds)
            elif colour_number is not None:
                self._panel_rectangles.append(path_bounds)
                self._panel_colour_numbers.append(colour_number)

    def add_blend(self, blend_object: pdfium.FPDF_PAGEOBJECT, placing_matrix: Matrix) -> None:
        """Take a blend of colours, which fills what it is clipped to."""
        self._remaining_path_count -= 1
        if self._remaining_path_count < 0 or not pdfium.FPDFPageObj_GetBounds(
            blend_object, *self._edge_buffers
        ):
            return
        blend_bounds = placing_matrix.place_rectangle(
            Rectangle(*(edge_buffer.value for edge_buffer in self._edge_buffers))
        )
        is_wide_enough = blend_bounds.right - blend_bounds.left >= self._min_box_width
        if is_wide_enough and blend_bounds.top - blend_bounds.bottom >= _MIN_BOX_HEIGHT:
            self._panel_rectangles.append(blend_bounds)
            self._panel_colour_numbers.append(_BLENDED_COLOUR_NUMBER)

    def find_boxes(self) -> list[Box]:
        """Return the boxes from the top down; on a map, with its many paths, there are none."""
        if self._remaining_path_count < 0:
            return []
        vertical_rules = _join_vertical_rules(self._vertical_rule_rectangles)
        max_box_area = _MAX_BOX_AREA_SHARE * self._page_frame.area
        box_pieces = [
            box_piece
            for box_piece in (
                *self._panel_rectangles,
                *(
                    _widen_frame_to_rules(frame, self._horizontal_rule_rectangles, vertical_rules)
                    for frame in _iterate_frames(vertical_rules, self._min_box_width)
                ),
            )
            if box_piece.area < max_box_area
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
        if (
            not 0 < len(self._horizontal_rule_rectangles) <= _MAX_BOX_PIECES
            or self._remaining_path_count < 0
        ):
            return []
        drawn_rules = [
            DrawnRule(
                horizontal_rule.left - self._page_frame.left,
                horizontal_rule.right - self._page_frame.left,
                (horizontal_rule.bottom + horizontal_rule.top) / 2 - self._page_frame.bottom,
            )
            for horizontal_rule in self._horizontal_rule_rectangles
        ]
        return sorted(
            (
                drawn_rule
                for drawn_rule in drawn_rules
                if not any(_is_rule_of_box(box, drawn_rule) for box in boxes)
            ),
            key=lambda drawn_rule: -drawn_rule.vertical_position,
        )

    def _make_box(self, box_rectangle: Rectangle, vertical_rules: Sequence[Rectangle]) -> Box:
        bottom_edge_top, top_edge_bottom = (
            box_rectangle.bottom + _TOUCH_TOLERANCE,
            box_rectangle.top - _TOUCH_TOLERANCE,
        )
        return Box(
            left=box_rectangle.left - self._page_frame.left,
            bottom=box_rectangle.bottom - self._page_frame.bottom,
            right=box_rectangle.right - self._page_frame.left,
            top=box_rectangle.top - self._page_frame.bottom,
            is_grid=_has_inner_vertical_rules(box_rectangle, vertical_rules),
            top_colours=self._list_colour_numbers_at_edge(
                box_rectangle, box_rectangle.top, top_edge_bottom
            ),
            bottom_colours=self._list_colour_numbers_at_edge(
                box_rectangle, bottom_edge_top, box_rectangle.bottom
            ),
        )

    def _find_colour_number(self, path_object: pdfium.FPDF_PAGEOBJECT) -> int | None:
        """Return a number for the colour of a panel, or else of its outline; None without either.

        White paper is no colour.
        """
        pdfium.FPDFPath_GetDrawMode(path_object, self._fill_mode, self._stroke_mode)
        if self._fill_mode.value:
            pdfium.FPDFPageObj_GetFillColor(path_object, *self._colour_channel_buffers)
            red, green, blue = (
                channel_buffer.value for channel_buffer in self._colour_channel_buffers[:3]
            )
            if min(red, green, blue) < _MIN_WHITE_CHANNEL_VALUE:
                return red << 16 | green << 8 | blue
        if self._stroke_mode.value:
            pdfium.FPDFPageObj_GetStrokeColor(path_object, *self._colour_channel_buffers)
            red, green, blue = (
                channel_buffer.value for channel_buffer in self._colour_channel_buffers[:3]
            )
            return -1 - (red << 16 | green << 8 | blue)
        return None

    def _list_colour_numbers_at_edge(
        self, box_rectangle: Rectangle, max_panel_bottom: float, min_panel_top: float
    ) -> frozenset[int]:
        """Return the colours of the panels of a box that lie behind one of its edges."""
        return frozenset(
            colour_number
            for panel_rectangle, colour_number in zip(
                self._panel_rectangles, self._panel_colour_numbers, strict=True
            )
            if box_rectangle.left <= panel_rectangle.left
            and panel_rectangle.right <= box_rectangle.right
            and box_rectangle.bottom <= panel_rectangle.bottom <= max_panel_bottom
            and min_panel_top <= panel_rectangle.top <= box_rectangle.top
        )


def _join_vertical_rules(rule_rectangles: Iterable[Rectangle]) -> list[Rectangle]:
    """Return the vertical rules, each joined from the pieces that its rows drew."""
    rectangles_by_column: defaultdict[int, list[Rectangle]] = defaultdict(list)
    for rectangle in rule_rectangles:
        if rectangle.right - rectangle.left <= _MAX_RULE_THICKNESS:
            rectangles_by_column[round(rectangle.left / 2)].append(rectangle)
    joined_rules: list[Rectangle] = []
    for rectangles_of_column in rectangles_by_column.values():
        rectangles_of_column.sort(key=lambda rectangle: rectangle.bottom)
        joined_rule = rectangles_of_column[0]
        for next_rectangle in rectangles_of_column[1:]:
            if next_rectangle.bottom <= joined_rule.top + _TOUCH_TOLERANCE:
                joined_rule = joined_rule.unite_with(next_rectangle)
            else:
                joined_rules.append(joined_rule)
                joined_rule = next_rectangle
        joined_rules.append(joined_rule)
    return [
        joined_rule
        for joined_rule in joined_rules
        if joined_rule.top - joined_rule.bottom >= 2 * _MIN_BOX_HEIGHT
    ]


def _iterate_frames(
    vertical_rules: Sequence[Rectangle], min_frame_width: float
) -> Iterator[Rectangle]:
    """Yield the frames whose left and right sides are rules of about the same height."""
    for frame_sides in _group_rules_of_one_height(vertical_rules):
        frame_sides.sort(key=lambda vertical_rule: vertical_rule.left)
        side_groups = (
            [frame_sides[:2], frame_sides[2:]] if _are_two_frames(frame_sides) else [frame_sides]
        )
        for sides_of_frame in side_groups:
            if sides_of_frame[-1].left - sides_of_frame[0].left >= min_frame_width:
                yield sides_of_frame[0].unite_with(sides_of_frame[-1])


def _group_rules_of_one_height(vertical_rules: Sequence[Rectangle]) -> list[list[Rectangle]]:
    """Return the rules in groups that begin and end at about the height of their first."""
    groups_by_place: defaultdict[tuple[int, int], list[list[Rectangle]]] = defaultdict(list)
    for vertical_rule in vertical_rules:
        bottom_place, top_place = (
            round(edge / _SAME_EDGE_TOLERANCE) for edge in (vertical_rule.bottom, vertical_rule.top)
        )
        # A rule a little higher may be counted to the next place.
        nearby_groups = (
            rule_group
            for place in product(
                (bottom_place - 1, bottom_place, bottom_place + 1),
                (top_place - 1, top_place, top_place + 1),
            )
            for rule_group in groups_by_place.get(place, ())
            if abs(rule_group[0].bottom - vertical_rule.bottom) < _SAME_EDGE_TOLERANCE / 2
            and abs(rule_group[0].top - vertical_rule.top) < _SAME_EDGE_TOLERANCE / 2
        )
        if (rule_group := next(nearby_groups, None)) is not None:
            rule_group.append(vertical_rule)
        else:
            groups_by_place[bottom_place, top_place].append([vertical_rule])
    return [rule_group for rule_groups in groups_by_place.values() for rule_group in rule_groups]


def _widen_frame_to_rules(
    frame: Rectangle, horizontal_rules: Sequence[Rectangle], vertical_rules: Sequence[Rectangle]
) -> Rectangle:
    """Return a frame as wide as the rule along its top, which ends at rules that reach beyond it.

    So the outer side of a table reaches on where it is also the side of a box below or above.
    """
    # A hostile page could have thousands, and each is compared with each.
    if len(horizontal_rules) > _MAX_BOX_PIECES or len(vertical_rules) > _MAX_BOX_PIECES:
        return frame
    rules_along_top = [
        horizontal_rule
        for horizontal_rule in horizontal_rules
        if abs(horizontal_rule.top - frame.top) < _TOUCH_TOLERANCE
        and horizontal_rule.left < frame.left + _TOUCH_TOLERANCE
        and horizontal_rule.right > frame.right - _TOUCH_TOLERANCE
        and (
            horizontal_rule.left < frame.left - _SAME_EDGE_TOLERANCE
            or horizontal_rule.right > frame.right + _SAME_EDGE_TOLERANCE
        )
    ]
    for horizontal_rule in rules_along_top:
        do_sides_reach_beyond = all(
            any(
                min(abs(vertical_rule.left - edge), abs(vertical_rule.right - edge))
                < _TOUCH_TOLERANCE
                and vertical_rule.bottom < frame.bottom + _TOUCH_TOLERANCE
                and vertical_rule.top > frame.top - _TOUCH_TOLERANCE
                for vertical_rule in vertical_rules
            )
            for edge in (horizontal_rule.left, horizontal_rule.right)
        )
        if do_sides_reach_beyond:
            frame = frame.unite_with(
                Rectangle(horizontal_rule.left, frame.bottom, horizontal_rule.right, frame.top)
            )
    return frame


def _are_two_frames(frame_sides: Sequence[Rectangle]) -> bool:
    """Whether four rules of one height are frames in two columns, with a gutter between them."""
    if len(frame_sides) != 4:
        return False
    side_distances = [
        right_side.left - left_side.left for left_side, right_side in pairwise(frame_sides)
    ]
    return (
        side_distances[1] <= _MAX_GUTTER_WIDTH
        and abs(side_distances[0] - side_distances[2]) < _SAME_EDGE_TOLERANCE
    )


def _unite_box_pieces(box_pieces: Iterable[Rectangle]) -> list[Rectangle]:
    """Return the boxes that pieces make up: those that touch and have the same sides are one."""
    united_boxes: list[Rectangle] = []
    for box_piece in sorted(box_pieces, key=lambda unsorted_piece: -unsorted_piece.top):
        for box_index, united_box in enumerate(united_boxes):
            if _belongs_to_box_above(united_box, box_piece):
                united_boxes[box_index] = united_box.unite_with(box_piece)
                break
        else:
            united_boxes.append(box_piece)
    return united_boxes


def _belongs_to_box_above(united_box: Rectangle, box_piece: Rectangle) -> bool:
    """Whether a piece touches the box above it, or lies in it, and their sides agree."""
    if box_piece.top < united_box.bottom - _TOUCH_TOLERANCE:
        return False
    is_inside_sides = box_piece.left >= united_box.left - _SAME_EDGE_TOLERANCE and (
        box_piece.right <= united_box.right + _SAME_EDGE_TOLERANCE
    )
    is_around_sides = united_box.left >= box_piece.left - _SAME_EDGE_TOLERANCE and (
        united_box.right <= box_piece.right + _SAME_EDGE_TOLERANCE
    )
    # A table across both columns of a page may hang below the box of one.
    is_below_box = box_piece.top < united_box.bottom + _TOUCH_TOLERANCE
    return (
        (is_inside_sides and is_around_sides)
        if is_below_box
        else (is_inside_sides or is_around_sides)
    )


def _has_inner_vertical_rules(
    box_rectangle: Rectangle, vertical_rules: Sequence[Rectangle]
) -> bool:
    """Whether vertical rules divide a box into columns."""
    return any(
        box_rectangle.left + _SAME_EDGE_TOLERANCE
        < vertical_rule.left
        < box_rectangle.right - _SAME_EDGE_TOLERANCE
        and vertical_rule.bottom >= box_rectangle.bottom - _SAME_EDGE_TOLERANCE
        and vertical_rule.top <= box_rectangle.top + _SAME_EDGE_TOLERANCE
        for vertical_rule in vertical_rules
    )


def _is_rule_of_box(box: Box, drawn_rule: DrawnRule) -> bool:
    """Whether a rule lies in a box or on its edge."""
    return (
        box.bottom - _TOUCH_TOLERANCE <= drawn_rule.vertical_position <= box.top + _TOUCH_TOLERANCE
        and box.left - _SAME_EDGE_TOLERANCE <= drawn_rule.left
        and drawn_rule.right <= box.right + _SAME_EDGE_TOLERANCE
    )
