"""Charts as SVG: each with the finding it shows as its name, and the table it was drawn from.

Colours come from classes in the style sheet, so that dark mode and print follow. Sizes are pixels
that never scale: a wide chart scrolls, and its letters stay readable.
"""

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

_CHART_WIDTH = 1020
_MAX_LABEL_WIDTH = 260
_MIN_LABEL_WIDTH = 48
_LETTER_WIDTH = 7.4
_ROW_HEIGHT = 30
_BAR_HEIGHT = 18
_MAX_YEARS_AWAY = 150  # from the day that is asked for, on the scale of a timeline
_AXIS_HEIGHT = 24
_DAY_LABEL_HEIGHT = 20
_MAX_LABEL_CHARS = 36
_MIN_BAR_WIDTH = 2.0
_MAX_SLOT_WIDTH = 64.0


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table, with the page that it leads to."""

    text: str
    href: str | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing and the table it was drawn from."""

    svg: Markup
    finding: str
    """What the drawing shows, in a sentence."""
    headers: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


# --- bars ---


@dataclass(frozen=True, slots=True)
class Bar:
    """A label and its number."""

    label: str
    value: float
    href: str | None = None


def draw_bars(bars: Sequence[Bar], finding: str, headers: tuple[str, str]) -> Chart:
    """Return horizontal bars, one below the other, each with its number at the end."""
    largest_value = max((bar.value for bar in bars), default=0) or 1
    label_width = _measure_labels([bar.label for bar in bars])
    # The number behind the longest bar needs its place too.
    bar_space = _CHART_WIDTH - label_width - 80
    shapes = []
    for bar_index, bar in enumerate(bars):
        top = bar_index * _ROW_HEIGHT + 6
        bar_width = max(_MIN_BAR_WIDTH, bar_space * bar.value / largest_value)
        bar_name = f"{bar.label}: {_format_number(bar.value)}"
        shapes.append(_make_label(bar.label, top))
        shapes.append(
            _wrap_in_link(
                _make_rect("bar", label_width, top, bar_width, bar_name), bar.href, bar_name
            )
        )
        shapes.append(_make_text(_format_number(bar.value), label_width + bar_width + 6, top + 14))
    table_rows = tuple((Cell(bar.label, bar.href), Cell(_format_number(bar.value))) for bar in bars)
    height = len(bars) * _ROW_HEIGHT + 6
    return Chart(_make_svg(shapes, _CHART_WIDTH, height, finding), finding, headers, table_rows)


# --- bars over time ---


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A time during which something held; `end` is its last day, None while it still holds."""

    label: str
    start: dt.date
    end: dt.date | None
    status: str
    """A class of the style sheet: `active`, `coming`, `superseded`, `processing`, `failed` …"""
    href: str | None = None
    note: str = ""
    """What the table says of it, where that is not its status."""
    open_end: str = ""
    """What the table says in place of a last day, where it does not hold until now."""


@dataclass(frozen=True, slots=True)
class GanttRow:
    """One line of a chart over time."""

    label: str
    spans: Sequence[TimeSpan]
    href: str | None = None


def draw_gantt(
    rows: Sequence[GanttRow],
    day: dt.date,
    finding: str,
    row_and_span_headers: tuple[str, str] = ("Policy", "Revision"),
    open_end: str = "still in force",
    make_day_address: Callable[[dt.date], str] | None = None,
) -> Chart:
    """Return a line for each row with its spans as bars, the gaps between them, and the day.

    With `make_day_address` each year is a link to the page for its first day.
    """
    label_width = _measure_labels([row.label for row in rows])
    scale = _TimeScale.make([span for row in rows for span in row.spans], day, label_width)
    floor_y = _AXIS_HEIGHT + len(rows) * _ROW_HEIGHT + 10
    shapes = [scale.draw_axis(floor_y, make_day_address)]
    for row_index, row in enumerate(rows):
        top = _AXIS_HEIGHT + row_index * _ROW_HEIGHT + 6
        shapes.append(_wrap_in_link(_make_label(row.label, top), row.href))
        spans = sorted(row.spans, key=lambda span: span.start)
        for earlier, later in pairwise(spans):
            if earlier.end and (later.start - earlier.end).days > 1:
                shapes.append(scale.draw_gap(earlier.end, later.start, top))
        shapes.extend(scale.draw_span(span, top) for span in spans)
    shapes.append(scale.draw_day(day, floor_y))
    table_rows = tuple(
        (
            Cell(row.label, row.href),
            Cell(span.label, span.href),
            Cell(span.start.isoformat()),
            Cell(span.end.isoformat() if span.end else span.open_end or open_end),
            Cell(span.note or span.status),
        )
        for row in rows
        for span in sorted(row.spans, key=lambda span: span.start)
    )
    headers = (*row_and_span_headers, "From", "Last day", "Status")
    svg = _make_svg(shapes, _CHART_WIDTH, floor_y + _DAY_LABEL_HEIGHT, finding)
    return Chart(svg, finding, headers, table_rows)


@dataclass(frozen=True, slots=True)
class _TimeScale:
    """Days from left to right."""

    first_day: dt.date
    last_day: dt.date
    label_width: float

    @classmethod
    def make(cls, spans: Sequence[TimeSpan], day: dt.date, label_width: float) -> "_TimeScale":
        days = [day, *(span.start for span in spans), *(span.end for span in spans if span.end)]
        # One odd date must not press all the others into a line: it is drawn at the edge.
        usual_days = [each for each in days if abs(each.year - day.year) <= _MAX_YEARS_AWAY]
        first_day, last_day = min(usual_days), max(usual_days)
        margin_days = max(60, (last_day - first_day).days // 25)
        # A day before the year 1 or after 9999 is none.
        left_ordinal = max(dt.date.min.toordinal(), first_day.toordinal() - margin_days)
        right_ordinal = min(dt.date.max.toordinal(), last_day.toordinal() + margin_days)
        return cls(
            dt.date.fromordinal(left_ordinal), dt.date.fromordinal(right_ordinal), label_width
        )

    def compute_x(self, day: dt.date) -> float:
        shown_day = min(max(day, self.first_day), self.last_day)
        day_count = max(1, (self.last_day - self.first_day).days)
        share_of_span = (shown_day - self.first_day).days / day_count
        return self.label_width + share_of_span * (_CHART_WIDTH - self.label_width - 8)

    def draw_axis(
        self, floor_y: float, make_day_address: Callable[[dt.date], str] | None
    ) -> Markup:
        # The first of January of the first year lies before the chart begins.
        years = range(self.first_day.year + 1, self.last_day.year + 1)
        years_per_label = max(1, math.ceil(len(years) / 12))
        shapes = []
        for year in years:
            if year % years_per_label == 0:
                first_day = dt.date(year, 1, 1)
                left = self.compute_x(first_day)
                year_label = _make_text(str(year), left + 3, 13)
                if make_day_address:
                    year_label = _wrap_in_link(
                        year_label, make_day_address(first_day), f"On 1 January {year}"
                    )
                shapes.append(_make_line("axis", left, 18, left, floor_y) + year_label)
        return Markup("").join(shapes)

    def draw_span(self, span: TimeSpan, top: float) -> Markup:
        left, right = self.compute_x(span.start), self.compute_x(span.end or self.last_day)
        open_period = f"from {span.start}" if span.open_end else f"since {span.start}"
        period = f"{span.start} to {span.end}" if span.end else open_period
        span_name = f"{span.label}, {span.note or span.status}, {period}"
        bar_width = max(_MIN_BAR_WIDTH, right - left - 1)
        return _wrap_in_link(
            _make_rect(f"span {span.status}", left, top, bar_width, span_name), span.href, span_name
        )

    def draw_gap(self, last_day_before: dt.date, first_day_after: dt.date, top: float) -> Markup:
        left, right = self.compute_x(last_day_before), self.compute_x(first_day_after)
        gap_name = f"Nothing in force after {last_day_before} until {first_day_after}"
        return _make_rect("gap", left, top + 3, max(_MIN_BAR_WIDTH, right - left - 1), gap_name, 12)

    def draw_day(self, day: dt.date, floor_y: float) -> Markup:
        left = self.compute_x(day)
        # Near the right edge the words would leave the drawing.
        is_near_end = left > _CHART_WIDTH - 60
        css_class = "day end" if is_near_end else "day"
        day_label = _make_text(f"{day.day} {day:%B %Y}", left, floor_y + 15, css_class)
        return _make_line("day", left, 18, left, floor_y) + day_label


# --- histogram ---


@dataclass(frozen=True, slots=True)
class Bin:
    """How many there were in an interval, and the page that lists them."""

    label: str
    count: int
    href: str | None = None
    is_chosen: bool = False


def draw_histogram(bins: Sequence[Bin], finding: str, headers: tuple[str, str]) -> Chart:
    """Return upright bars from left to right; each is a link to what it counts."""
    height, floor_y = 150, 122
    largest_count = max((time_bin.count for time_bin in bins), default=0) or 1
    slot_width = min(_MAX_SLOT_WIDTH, (_CHART_WIDTH - 40) / max(1, len(bins)))
    # Where bars are narrower than the longest label, some go without.
    longest_chars = max((len(_shorten(time_bin.label)) for time_bin in bins), default=0)
    label_step = max(1, math.ceil(_LETTER_WIDTH * longest_chars / slot_width))
    shapes = [
        _make_line("axis", 34, floor_y, _CHART_WIDTH, floor_y),
        _make_text(_format_number(largest_count), 0, 20),
    ]
    for bin_index, time_bin in enumerate(bins):
        bar_left = 36 + bin_index * slot_width
        bar_height = (
            0.0
            if time_bin.count == 0
            else max(_MIN_BAR_WIDTH, 108 * time_bin.count / largest_count)
        )
        bar_name = f"{time_bin.label}: {_format_number(time_bin.count)}"
        bar_class = "bar chosen" if time_bin.is_chosen else "bar"
        bar = _make_rect(
            bar_class,
            bar_left,
            floor_y - bar_height,
            max(1.0, slot_width - 2),
            bar_name,
            bar_height,
        )
        shapes.append(_wrap_in_link(bar, time_bin.href if time_bin.count else None, bar_name))
        if bin_index % label_step == 0:
            shapes.append(_make_text(_shorten(time_bin.label), bar_left, floor_y + 17))
    table_rows = tuple(
        (Cell(time_bin.label, time_bin.href), Cell(_format_number(time_bin.count)))
        for time_bin in bins
    )
    return Chart(_make_svg(shapes, _CHART_WIDTH, height, finding), finding, headers, table_rows)


# --- stacked bars ---


@dataclass(frozen=True, slots=True)
class StackedRow:
    """A label, and the numbers of which its bar is made."""

    label: str
    counts: Sequence[int]


def draw_stacked(
    rows: Sequence[StackedRow],
    part_names: Sequence[str],
    finding: str,
    row_header: str,
    threshold: int | None = None,
) -> Chart:
    """Return a bar for each row, cut into its parts; `threshold` is a line across all of them."""
    largest_sum = max([*(sum(row.counts) for row in rows), threshold or 0], default=0) or 1
    label_width = _measure_labels([row.label for row in rows])
    bar_space = _CHART_WIDTH - label_width - 60
    height = _AXIS_HEIGHT + len(rows) * _ROW_HEIGHT + 10
    shapes = [_draw_legend(part_names, label_width)]
    for row_index, row in enumerate(rows):
        top = _AXIS_HEIGHT + row_index * _ROW_HEIGHT + 6
        shapes.append(_make_label(row.label, top))
        left = label_width
        for index, (part_name, part_count) in enumerate(zip(part_names, row.counts, strict=True)):
            part_width = bar_space * part_count / largest_sum
            if part_count:
                part_title = f"{row.label}, {part_name}: {_format_number(part_count)}"
                shapes.append(
                    _make_rect(f"part-{index % 6}", left, top, max(1.0, part_width - 1), part_title)
                )
                # Three digits with their margins.
                if part_width > 28:
                    shapes.append(
                        _make_text(_format_number(part_count), left + 5, top + 14, "inside")
                    )
            left += part_width
        shapes.append(_make_text(_format_number(sum(row.counts)), left + 6, top + 14))
    if threshold:
        left = label_width + bar_space * threshold / largest_sum
        shapes.append(_make_line("day", left, _AXIS_HEIGHT, left, height))
    table_rows = tuple(
        (Cell(row.label), *(Cell(_format_number(part_count)) for part_count in row.counts))
        for row in rows
    )
    headers = (row_header, *part_names)
    return Chart(_make_svg(shapes, _CHART_WIDTH, height, finding), finding, headers, table_rows)


def _draw_legend(part_names: Sequence[str], left: float) -> Markup:
    shapes = []
    for index, part_name in enumerate(part_names):
        shapes.append(_make_rect(f"part-{index % 6}", left, 4, 12, None, 12))
        shapes.append(_make_text(part_name, left + 17, 14))
        # The square, its margins, and the letters, whose width can only be guessed here.
        left += 34 + 7.5 * len(part_name)
    return Markup("").join(shapes)


# --- sparkline ---


def draw_sparkline(point_values: Sequence[float], finding: str, headers: tuple[str, str]) -> Chart:
    """Return a small line of numbers over time, the newest at the right."""
    width, height = 160, 28
    largest_value = max(point_values, default=0) or 1
    point_distance = (width - 4) / max(1, len(point_values) - 1)
    points_text = " ".join(
        f"{2 + point_index * point_distance:.1f},"
        f"{height - 3 - (height - 6) * point_value / largest_value:.1f}"
        for point_index, point_value in enumerate(point_values)
    )
    shape = Markup(f'<polyline class="spark" points="{points_text}"/>')
    table_rows = tuple(
        (Cell(str(point_index)), Cell(_format_number(point_value)))
        for point_index, point_value in enumerate(point_values)
    )
    return Chart(_make_svg([shape], width, height, finding), finding, headers, table_rows)


# --- a time beside others ---


def draw_period(
    start: dt.date, end: dt.date | None, first_day: dt.date, last_day: dt.date, day: dt.date | None
) -> Markup:
    """Return a small bar for a time within a longer one, with a line at the day.

    It is drawn beside words that say the same, so it has no name of its own.
    """
    width, height = 120, 10
    day_count = max(1, (last_day - first_day).days)

    def compute_x(shown_day: dt.date) -> float:
        share_of_time = (shown_day - first_day).days / day_count
        return width * min(1.0, max(0.0, share_of_time))

    left = compute_x(start)
    right = compute_x(end or last_day)
    shapes = [
        _make_rect("track", 0, 1, width, None, height - 2),
        _make_rect("bar", left, 1, max(_MIN_BAR_WIDTH, right - left), None, height - 2),
    ]
    if day:
        shapes.append(_make_line("day", compute_x(day), 0, compute_x(day), height))
    drawing = Markup("").join(shapes)
    return Markup(f'<svg width="{width}" height="{height}" aria-hidden="true">{drawing}</svg>')


# --- graph ---


@dataclass(frozen=True, slots=True)
class Edge:
    """A link to another record, and the words that it rests on."""

    kind: str
    label: str
    href: str | None
    evidence: str


def draw_graph(centre: str, edges: Sequence[Edge], finding: str) -> Chart:
    """Return a record with its links of one hop: a column to the right, grouped by kind."""
    ordered_edges = sorted(edges, key=lambda edge: (edge.kind, edge.label))
    height = max(120, len(ordered_edges) * _ROW_HEIGHT + 20)
    centre_y, record_left = height / 2, 480
    shapes = []
    for edge_index, edge in enumerate(ordered_edges):
        line_top = edge_index * _ROW_HEIGHT + 24.0
        curve = f"M 190 {centre_y:.0f} C 300 {centre_y:.0f}, 300 {line_top:.0f}, 350 {line_top:.0f}"
        shapes.append(Markup(f'<path class="edge" d="{curve}"/>'))
        shapes.append(_make_text(_shorten(edge.kind), 356, line_top + 4, "kind"))
        shapes.append(
            Markup(
                f'<circle class="node" cx="{record_left}" cy="{line_top}" r="5">'
                f"<title>{escape(edge.evidence)}</title></circle>"
            )
        )
        shapes.append(
            _wrap_in_link(
                _make_text(_shorten(edge.label, 60), record_left + 12, line_top + 4), edge.href
            )
        )
    shapes.append(Markup(f'<circle class="node centre" cx="180" cy="{centre_y:.0f}" r="9"/>'))
    shapes.append(_make_text(_shorten(centre, 22), 8, centre_y - 16, "centre"))
    table_rows = tuple(
        (Cell(edge.kind), Cell(edge.label, edge.href), Cell(edge.evidence))
        for edge in ordered_edges
    )
    headers = ("Link", "Record", "Evidence")
    return Chart(_make_svg(shapes, _CHART_WIDTH, height, finding), finding, headers, table_rows)


# --- what they are drawn with ---
# Each escapes every text it is given. `Markup.format` would do so too, at many times the cost: a
# page of policies has some hundred shapes.


def _make_svg(shapes: Sequence[Markup], width: float, height: float, finding: str) -> Markup:
    drawing = Markup("").join(shapes)
    # Links inside something that is named an image could not be reached by a screen reader.
    role = "group" if "<a " in drawing else "img"
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" role="{role}" aria-label="{escape(finding)}" '
        f'width="{width:.0f}" height="{height:.0f}">{drawing}</svg>'
    )


def _wrap_in_link(shape: Markup, href: str | None, link_name: str | None = None) -> Markup:
    """Return a shape as a link; `link_name` says where it leads, unless the shape is words."""
    if href is None:
        return shape
    label = f' aria-label="{escape(link_name)}"' if link_name is not None else ""
    return Markup(f'<a href="{escape(href)}"{label}>{shape}</a>')


def _make_rect(
    css_class: str,
    left: float,
    top: float,
    width: float,
    tooltip: str | None = None,
    height: float = _BAR_HEIGHT,
) -> Markup:
    title_element = f"<title>{escape(tooltip)}</title>" if tooltip else ""
    return Markup(
        f'<rect class="{escape(css_class)}" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="2">{title_element}</rect>'
    )


def _make_line(css_class: str, left: float, top: float, right: float, bottom: float) -> Markup:
    return Markup(
        f'<line class="{escape(css_class)}" x1="{left:.1f}" y1="{top:.1f}" x2="{right:.1f}" '
        f'y2="{bottom:.1f}"/>'
    )


def _make_text(shown_text: str, left: float, baseline: float, css_class: str = "") -> Markup:
    attribute = f' class="{escape(css_class)}"' if css_class else ""
    return Markup(f'<text{attribute} x="{left:.1f}" y="{baseline:.1f}">{escape(shown_text)}</text>')


def _measure_labels(label_texts: Sequence[str]) -> float:
    """Return the width that the longest label takes: on a phone, every pixel of it hides a bar."""
    longest_chars = max((len(_shorten(label_text)) for label_text in label_texts), default=0)
    return min(_MAX_LABEL_WIDTH, max(_MIN_LABEL_WIDTH, 12 + _LETTER_WIDTH * longest_chars))


def _make_label(label_text: str, top: float) -> Markup:
    return _make_text(_shorten(label_text), 0, top + 14, "label")


def _shorten(label_text: str, max_chars: int = _MAX_LABEL_CHARS) -> str:
    return (
        label_text if len(label_text) <= max_chars else label_text[: max_chars - 1].rstrip() + "…"
    )


def _format_number(number: float) -> str:
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.2f}"
