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

from readingroom.web.svg import (
    LETTER_WIDTH,
    make_label,
    make_line,
    make_rect,
    make_svg,
    make_text,
    measure_labels,
    shorten_label,
    wrap_in_link,
)

_CHART_WIDTH = 1020
_ROW_HEIGHT = 30
_MAX_YEARS_AWAY = 150  # from the day that is asked for, on the scale of a timeline
_AXIS_HEIGHT = 24
_DAY_LABEL_HEIGHT = 20
_MIN_BAR_WIDTH = 2.0
_MAX_SLOT_WIDTH = 64.0


@dataclass(frozen=True, slots=True)
class ChartCell:
    """A cell of a table, with the page that it leads to."""

    text: str
    href: str | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing and the table it was drawn from."""

    svg_markup: Markup
    finding: str
    """What the drawing shows, in a sentence."""
    headers: tuple[str, ...]
    rows: tuple[tuple[ChartCell, ...], ...]


# --- bars ---


@dataclass(frozen=True, slots=True)
class ChartBar:
    """A label and its number."""

    label: str
    value: float
    href: str | None = None


def draw_bars(chart_bars: Sequence[ChartBar], finding: str, headers: tuple[str, str]) -> Chart:
    """Return horizontal bars, one below the other, each with its number at the end."""
    largest_value = max((chart_bar.value for chart_bar in chart_bars), default=0) or 1
    label_width = measure_labels([chart_bar.label for chart_bar in chart_bars])
    # The number behind the longest bar needs its place too.
    max_bar_width = _CHART_WIDTH - label_width - 80
    shapes = []
    for bar_index, chart_bar in enumerate(chart_bars):
        top = bar_index * _ROW_HEIGHT + 6
        bar_width = max(_MIN_BAR_WIDTH, max_bar_width * chart_bar.value / largest_value)
        bar_title = f"{chart_bar.label}: {_format_number(chart_bar.value)}"
        shapes.append(make_label(chart_bar.label, top))
        shapes.append(
            wrap_in_link(
                make_rect("bar", label_width, top, bar_width, bar_title), chart_bar.href, bar_title
            )
        )
        shapes.append(
            make_text(_format_number(chart_bar.value), label_width + bar_width + 6, top + 14)
        )
    table_rows = tuple(
        (ChartCell(chart_bar.label, chart_bar.href), ChartCell(_format_number(chart_bar.value)))
        for chart_bar in chart_bars
    )
    height = len(chart_bars) * _ROW_HEIGHT + 6
    return Chart(make_svg(shapes, _CHART_WIDTH, height, finding), finding, headers, table_rows)


# --- bars over time ---


@dataclass(frozen=True, slots=True)
class GanttSpan:
    """A time during which something held; `end` is its last day, None while it still holds."""

    label: str
    start: dt.date
    end: dt.date | None
    status: str
    """A class of the style sheet: `active`, `coming`, `superseded`, `processing`, `failed` …"""
    href: str | None = None
    note: str = ""
    """What the table says of it, where that is not its status."""
    open_end_label: str = ""
    """What the table says in place of a last day, where it does not hold until now."""


@dataclass(frozen=True, slots=True)
class GanttRow:
    """One line of a chart over time."""

    label: str
    spans: Sequence[GanttSpan]
    href: str | None = None


def draw_gantt(
    chart_rows: Sequence[GanttRow],
    marked_day: dt.date,
    finding: str,
    row_and_span_headers: tuple[str, str] = ("Policy", "Revision"),
    open_end_label: str = "still in force",
    make_day_address: Callable[[dt.date], str] | None = None,
) -> Chart:
    """Return a line for each row with its spans as bars, the gaps between them, and the day.

    With `make_day_address` each year is a link to the page for its first day.
    """
    label_width = measure_labels([chart_row.label for chart_row in chart_rows])
    time_scale = _TimeScale.make_scale(
        [gantt_span for chart_row in chart_rows for gantt_span in chart_row.spans],
        marked_day,
        label_width,
    )
    floor_y = _AXIS_HEIGHT + len(chart_rows) * _ROW_HEIGHT + 10
    shapes = [time_scale.draw_axis(floor_y, make_day_address)]
    for row_index, chart_row in enumerate(chart_rows):
        top = _AXIS_HEIGHT + row_index * _ROW_HEIGHT + 6
        shapes.append(wrap_in_link(make_label(chart_row.label, top), chart_row.href))
        gantt_spans = sorted(chart_row.spans, key=lambda gantt_span: gantt_span.start)
        for earlier_span, later_span in pairwise(gantt_spans):
            if earlier_span.end and (later_span.start - earlier_span.end).days > 1:
                shapes.append(time_scale.draw_gap(earlier_span.end, later_span.start, top))
        shapes.extend(time_scale.draw_span(gantt_span, top) for gantt_span in gantt_spans)
    shapes.append(time_scale.draw_marked_day(marked_day, floor_y))
    table_rows = tuple(
        (
            ChartCell(chart_row.label, chart_row.href),
            ChartCell(gantt_span.label, gantt_span.href),
            ChartCell(gantt_span.start.isoformat()),
            ChartCell(
                gantt_span.end.isoformat()
                if gantt_span.end
                else gantt_span.open_end_label or open_end_label
            ),
            ChartCell(gantt_span.note or gantt_span.status),
        )
        for chart_row in chart_rows
        for gantt_span in sorted(chart_row.spans, key=lambda gantt_span: gantt_span.start)
    )
    headers = (*row_and_span_headers, "From", "Last day", "Status")
    svg_markup = make_svg(shapes, _CHART_WIDTH, floor_y + _DAY_LABEL_HEIGHT, finding)
    return Chart(svg_markup, finding, headers, table_rows)


@dataclass(frozen=True, slots=True)
class _TimeScale:
    """Days from left to right."""

    first_day: dt.date
    last_day: dt.date
    label_width: float

    @classmethod
    def make_scale(
        cls, gantt_spans: Sequence[GanttSpan], marked_day: dt.date, label_width: float
    ) -> "_TimeScale":
        all_days = [
            marked_day,
            *(gantt_span.start for gantt_span in gantt_spans),
            *(gantt_span.end for gantt_span in gantt_spans if gantt_span.end),
        ]
        # One odd date must not press all the others into a line: it is drawn at the edge.
        days_near_marked_day = [
            chart_day
            for chart_day in all_days
            if abs(chart_day.year - marked_day.year) <= _MAX_YEARS_AWAY
        ]
        first_day, last_day = min(days_near_marked_day), max(days_near_marked_day)
        margin_days = max(60, (last_day - first_day).days // 25)
        # A day before the year 1 or after 9999 is none.
        left_ordinal = max(dt.date.min.toordinal(), first_day.toordinal() - margin_days)
        right_ordinal = min(dt.date.max.toordinal(), last_day.toordinal() + margin_days)
        return cls(
            dt.date.fromordinal(left_ordinal), dt.date.fromordinal(right_ordinal), label_width
        )

    def compute_x(self, placed_day: dt.date) -> float:
        shown_day = min(max(placed_day, self.first_day), self.last_day)
        day_count = max(1, (self.last_day - self.first_day).days)
        share_of_scale = (shown_day - self.first_day).days / day_count
        return self.label_width + share_of_scale * (_CHART_WIDTH - self.label_width - 8)

    def draw_axis(
        self, floor_y: float, make_day_address: Callable[[dt.date], str] | None
    ) -> Markup:
        # The first of January of the first year lies before the chart begins.
        axis_years = range(self.first_day.year + 1, self.last_day.year + 1)
        years_per_label = max(1, math.ceil(len(axis_years) / 12))
        shapes = []
        for axis_year in axis_years:
            if axis_year % years_per_label == 0:
                year_start = dt.date(axis_year, 1, 1)
                left = self.compute_x(year_start)
                year_label = make_text(str(axis_year), left + 3, 13)
                if make_day_address:
                    year_label = wrap_in_link(
                        year_label, make_day_address(year_start), f"On 1 January {axis_year}"
                    )
                shapes.append(make_line("axis", left, 18, left, floor_y) + year_label)
        return Markup("").join(shapes)

    def draw_span(self, gantt_span: GanttSpan, top: float) -> Markup:
        left, right = (
            self.compute_x(gantt_span.start),
            self.compute_x(gantt_span.end or self.last_day),
        )
        open_period = (
            f"from {gantt_span.start}" if gantt_span.open_end_label else f"since {gantt_span.start}"
        )
        period_text = f"{gantt_span.start} to {gantt_span.end}" if gantt_span.end else open_period
        span_title = f"{gantt_span.label}, {gantt_span.note or gantt_span.status}, {period_text}"
        bar_width = max(_MIN_BAR_WIDTH, right - left - 1)
        return wrap_in_link(
            make_rect(f"span {gantt_span.status}", left, top, bar_width, span_title),
            gantt_span.href,
            span_title,
        )

    def draw_gap(self, last_day_before: dt.date, first_day_after: dt.date, top: float) -> Markup:
        left, right = self.compute_x(last_day_before), self.compute_x(first_day_after)
        gap_title = f"Nothing in force after {last_day_before} until {first_day_after}"
        return make_rect("gap", left, top + 3, max(_MIN_BAR_WIDTH, right - left - 1), gap_title, 12)

    def draw_marked_day(self, marked_day: dt.date, floor_y: float) -> Markup:
        left = self.compute_x(marked_day)
        # Near the right edge the words would leave the drawing.
        is_near_end = left > _CHART_WIDTH - 60
        css_class = "day end" if is_near_end else "day"
        day_label = make_text(f"{marked_day.day} {marked_day:%B %Y}", left, floor_y + 15, css_class)
        return make_line("day", left, 18, left, floor_y) + day_label


# --- histogram ---


@dataclass(frozen=True, slots=True)
class TimeBin:
    """How many there were in an interval, and the page that lists them."""

    label: str
    count: int
    href: str | None = None
    is_chosen: bool = False


def draw_histogram(time_bins: Sequence[TimeBin], finding: str, headers: tuple[str, str]) -> Chart:
    """Return upright bars from left to right; each is a link to what it counts."""
    height, floor_y = 150, 122
    largest_count = max((time_bin.count for time_bin in time_bins), default=0) or 1
    slot_width = min(_MAX_SLOT_WIDTH, (_CHART_WIDTH - 40) / max(1, len(time_bins)))
    # Where bars are narrower than the longest label, some go without.
    longest_chars = max((len(shorten_label(time_bin.label)) for time_bin in time_bins), default=0)
    label_step = max(1, math.ceil(LETTER_WIDTH * longest_chars / slot_width))
    shapes = [
        make_line("axis", 34, floor_y, _CHART_WIDTH, floor_y),
        make_text(_format_number(largest_count), 0, 20),
    ]
    for bin_index, time_bin in enumerate(time_bins):
        bar_left = 36 + bin_index * slot_width
        bar_height = (
            0.0
            if time_bin.count == 0
            else max(_MIN_BAR_WIDTH, 108 * time_bin.count / largest_count)
        )
        bar_title = f"{time_bin.label}: {_format_number(time_bin.count)}"
        bar_class = "bar chosen" if time_bin.is_chosen else "bar"
        bar_shape = make_rect(
            bar_class,
            bar_left,
            floor_y - bar_height,
            max(1.0, slot_width - 2),
            bar_title,
            bar_height,
        )
        shapes.append(wrap_in_link(bar_shape, time_bin.href if time_bin.count else None, bar_title))
        if bin_index % label_step == 0:
            shapes.append(make_text(shorten_label(time_bin.label), bar_left, floor_y + 17))
    table_rows = tuple(
        (ChartCell(time_bin.label, time_bin.href), ChartCell(_format_number(time_bin.count)))
        for time_bin in time_bins
    )
    return Chart(make_svg(shapes, _CHART_WIDTH, height, finding), finding, headers, table_rows)


# --- stacked bars ---


@dataclass(frozen=True, slots=True)
class StackedRow:
    """A label, and the numbers of which its bar is made."""

    label: str
    counts: Sequence[int]


def draw_stacked(
    chart_rows: Sequence[StackedRow],
    part_names: Sequence[str],
    finding: str,
    row_header: str,
    threshold_count: int | None = None,
) -> Chart:
    """Return a bar for each row, cut into its parts; `threshold_count` is a line across all."""
    largest_sum = (
        max([*(sum(chart_row.counts) for chart_row in chart_rows), threshold_count or 0], default=0)
        or 1
    )
    label_width = measure_labels([chart_row.label for chart_row in chart_rows])
    max_bar_width = _CHART_WIDTH - label_width - 60
    height = _AXIS_HEIGHT + len(chart_rows) * _ROW_HEIGHT + 10
    shapes = [_draw_legend(part_names, label_width)]
    for row_index, chart_row in enumerate(chart_rows):
        top = _AXIS_HEIGHT + row_index * _ROW_HEIGHT + 6
        shapes.append(make_label(chart_row.label, top))
        left = label_width
        for part_index, (part_name, part_count) in enumerate(
            zip(part_names, chart_row.counts, strict=True)
        ):
            part_width = max_bar_width * part_count / largest_sum
            if part_count:
                part_title = f"{chart_row.label}, {part_name}: {_format_number(part_count)}"
                shapes.append(
                    make_rect(
                        f"part-{part_index % 6}", left, top, max(1.0, part_width - 1), part_title
                    )
                )
                # Three digits with their margins.
                if part_width > 28:
                    shapes.append(
                        make_text(_format_number(part_count), left + 5, top + 14, "inside")
                    )
            left += part_width
        shapes.append(make_text(_format_number(sum(chart_row.counts)), left + 6, top + 14))
    if threshold_count:
        left = label_width + max_bar_width * threshold_count / largest_sum
        shapes.append(make_line("day", left, _AXIS_HEIGHT, left, height))
    table_rows = tuple(
        (
            ChartCell(chart_row.label),
            *(ChartCell(_format_number(part_count)) for part_count in chart_row.counts),
        )
        for chart_row in chart_rows
    )
    headers = (row_header, *part_names)
    return Chart(make_svg(shapes, _CHART_WIDTH, height, finding), finding, headers, table_rows)


def _draw_legend(part_names: Sequence[str], left: float) -> Markup:
    shapes = []
    for part_index, part_name in enumerate(part_names):
        shapes.append(make_rect(f"part-{part_index % 6}", left, 4, 12, None, 12))
        shapes.append(make_text(part_name, left + 17, 14))
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
    polyline_markup = Markup(f'<polyline class="spark" points="{points_text}"/>')
    table_rows = tuple(
        (ChartCell(str(point_index)), ChartCell(_format_number(point_value)))
        for point_index, point_value in enumerate(point_values)
    )
    return Chart(make_svg([polyline_markup], width, height, finding), finding, headers, table_rows)


# --- a time beside others ---


def draw_period_bar(
    start: dt.date,
    end: dt.date | None,
    first_day: dt.date,
    last_day: dt.date,
    marked_day: dt.date | None,
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
        make_rect("track", 0, 1, width, None, height - 2),
        make_rect("bar", left, 1, max(_MIN_BAR_WIDTH, right - left), None, height - 2),
    ]
    if marked_day:
        shapes.append(make_line("day", compute_x(marked_day), 0, compute_x(marked_day), height))
    svg_body = Markup("").join(shapes)
    return Markup(f'<svg width="{width}" height="{height}" aria-hidden="true">{svg_body}</svg>')


# --- graph ---


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """A link to another record, and the words that it rests on."""

    kind: str
    label: str
    href: str | None
    evidence: str


def draw_link_graph(centre_label: str, graph_edges: Sequence[GraphEdge], finding: str) -> Chart:
    """Return a record with its links of one hop: a column to the right, grouped by kind."""
    ordered_edges = sorted(graph_edges, key=lambda graph_edge: (graph_edge.kind, graph_edge.label))
    height = max(120, len(ordered_edges) * _ROW_HEIGHT + 20)
    centre_y, record_x = height / 2, 480
    shapes = []
    for edge_index, graph_edge in enumerate(ordered_edges):
        edge_y = edge_index * _ROW_HEIGHT + 24.0
        curve_path = (
            f"M 190 {centre_y:.0f} C 300 {centre_y:.0f}, 300 {edge_y:.0f}, 350 {edge_y:.0f}"
        )
        shapes.append(Markup(f'<path class="edge" d="{curve_path}"/>'))
        shapes.append(make_text(shorten_label(graph_edge.kind), 356, edge_y + 4, "kind"))
        shapes.append(
            Markup(
                f'<circle class="node" cx="{record_x}" cy="{edge_y}" r="5">'
                f"<title>{escape(graph_edge.evidence)}</title></circle>"
            )
        )
        shapes.append(
            wrap_in_link(
                make_text(shorten_label(graph_edge.label, 60), record_x + 12, edge_y + 4),
                graph_edge.href,
            )
        )
    shapes.append(Markup(f'<circle class="node centre" cx="180" cy="{centre_y:.0f}" r="9"/>'))
    shapes.append(make_text(shorten_label(centre_label, 22), 8, centre_y - 16, "centre"))
    table_rows = tuple(
        (
            ChartCell(graph_edge.kind),
            ChartCell(graph_edge.label, graph_edge.href),
            ChartCell(graph_edge.evidence),
        )
        for graph_edge in ordered_edges
    )
    headers = ("Link", "Record", "Evidence")
    return Chart(make_svg(shapes, _CHART_WIDTH, height, finding), finding, headers, table_rows)


# --- what they are drawn with ---
# Each escapes every text it is given. `Markup.format` would do so too, at many times the cost: a
# page of policies has some hundred shapes.


def _format_number(shown_number: float) -> str:
    return f"{shown_number:,.0f}" if float(shown_number).is_integer() else f"{shown_number:,.2f}"
