"""Charts as SVG: each with the finding it shows as its name, and the table it was drawn from.

Colours come from classes in the style sheet, so that dark mode and print follow. Sizes are pixels
that never scale: a wide chart scrolls, and its letters stay readable.
"""

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

_WIDTH = 1020
_LABEL_WIDTH = 260
_ROW_HEIGHT = 30
_BAR_HEIGHT = 18
_AXIS_HEIGHT = 24
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
    longest = max((bar.value for bar in bars), default=0) or 1
    room = _WIDTH - _LABEL_WIDTH - 80
    shapes = []
    for number, bar in enumerate(bars):
        top = number * _ROW_HEIGHT + 6
        width = max(_MIN_BAR_WIDTH, room * bar.value / longest)
        name = f"{bar.label}: {_format(bar.value)}"
        shapes.append(_label(bar.label, top))
        shapes.append(_link(_rect("bar", _LABEL_WIDTH, top, width, name), bar.href, name))
        shapes.append(_text(_format(bar.value), _LABEL_WIDTH + width + 6, top + 14))
    rows = tuple((Cell(bar.label, bar.href), Cell(_format(bar.value))) for bar in bars)
    height = len(bars) * _ROW_HEIGHT + 6
    return Chart(_svg(shapes, _WIDTH, height, finding), finding, headers, rows)


# --- bars over time ---


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A time during which something held; `end` is its last day, None while it still holds."""

    label: str
    start: dt.date
    end: dt.date | None
    status: str
    """`active`, `superseded`, `processing`, `failed` or `emerging`: a class of the style sheet."""
    href: str | None = None


@dataclass(frozen=True, slots=True)
class GanttRow:
    """One line of a chart over time."""

    label: str
    spans: Sequence[TimeSpan]
    href: str | None = None


def draw_gantt(rows: Sequence[GanttRow], day: dt.date, finding: str) -> Chart:
    """Return a line for each row with its spans as bars, the gaps between them, and the day."""
    scale = _TimeScale.make([span for row in rows for span in row.spans], day)
    height = _AXIS_HEIGHT + len(rows) * _ROW_HEIGHT + 10
    shapes = [scale.draw_axis(height)]
    for number, row in enumerate(rows):
        top = _AXIS_HEIGHT + number * _ROW_HEIGHT + 6
        shapes.append(_link(_label(row.label, top), row.href))
        spans = sorted(row.spans, key=lambda span: span.start)
        for earlier, later in pairwise(spans):
            if earlier.end and (later.start - earlier.end).days > 1:
                shapes.append(scale.draw_gap(earlier.end, later.start, top))
        shapes.extend(scale.draw_span(span, top) for span in spans)
    shapes.append(scale.draw_day(day, height))
    table = tuple(
        (
            Cell(row.label, row.href),
            Cell(span.label, span.href),
            Cell(span.start.isoformat()),
            Cell(span.end.isoformat() if span.end else "still in force"),
            Cell(span.status),
        )
        for row in rows
        for span in sorted(row.spans, key=lambda span: span.start)
    )
    headers = ("Policy", "Revision", "From", "Last day", "Status")
    return Chart(_svg(shapes, _WIDTH, height, finding), finding, headers, table)


@dataclass(frozen=True, slots=True)
class _TimeScale:
    """Days from left to right."""

    first: dt.date
    last: dt.date

    @classmethod
    def make(cls, spans: Sequence[TimeSpan], day: dt.date) -> "_TimeScale":
        days = [day, *(span.start for span in spans), *(span.end for span in spans if span.end)]
        first, last = min(days), max(days)
        margin = max(60, (last - first).days // 25)
        # A day before the year 1 or after 9999 is none.
        left = max(dt.date.min.toordinal(), first.toordinal() - margin)
        right = min(dt.date.max.toordinal(), last.toordinal() + margin)
        return cls(dt.date.fromordinal(left), dt.date.fromordinal(right))

    def place(self, day: dt.date) -> float:
        share = (day - self.first).days / max(1, (self.last - self.first).days)
        return _LABEL_WIDTH + share * (_WIDTH - _LABEL_WIDTH - 8)

    def draw_axis(self, height: float) -> Markup:
        years = range(self.first.year + 1, self.last.year + 1)
        step = max(1, math.ceil(len(years) / 12))
        shapes = []
        for year in years:
            if year % step == 0:
                left = self.place(dt.date(year, 1, 1))
                shapes.append(
                    _line("axis", left, 18, left, height) + _text(str(year), left + 3, 13)
                )
        return Markup("").join(shapes)

    def draw_span(self, span: TimeSpan, top: float) -> Markup:
        left, right = self.place(span.start), self.place(span.end or self.last)
        period = f"{span.start} to {span.end}" if span.end else f"since {span.start}"
        name = f"{span.label}, {span.status}, {period}"
        width = max(_MIN_BAR_WIDTH, right - left - 1)
        return _link(_rect(f"span {span.status}", left, top, width, name), span.href, name)

    def draw_gap(self, after: dt.date, until: dt.date, top: float) -> Markup:
        left, right = self.place(after), self.place(until)
        name = f"Nothing in force after {after} until {until}"
        return _rect("gap", left, top + 3, max(_MIN_BAR_WIDTH, right - left - 1), name, 12)

    def draw_day(self, day: dt.date, height: float) -> Markup:
        left = self.place(day)
        return _line("day", left, 18, left, height)


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
    height, floor = 150, 122
    highest = max((item.count for item in bins), default=0) or 1
    slot = min(_MAX_SLOT_WIDTH, (_WIDTH - 40) / max(1, len(bins)))
    label_step = max(1, math.ceil(52 / slot))
    shapes = [_line("axis", 34, floor, _WIDTH, floor), _text(_format(highest), 0, 20)]
    for number, item in enumerate(bins):
        left = 36 + number * slot
        size = 0.0 if item.count == 0 else max(_MIN_BAR_WIDTH, 108 * item.count / highest)
        name = f"{item.label}: {_format(item.count)}"
        kind = "bar chosen" if item.is_chosen else "bar"
        bar = _rect(kind, left, floor - size, max(1.0, slot - 2), name, size)
        shapes.append(_link(bar, item.href if item.count else None, name))
        if number % label_step == 0:
            shapes.append(_text(item.label, left, floor + 17))
    rows = tuple((Cell(item.label, item.href), Cell(_format(item.count))) for item in bins)
    return Chart(_svg(shapes, _WIDTH, height, finding), finding, headers, rows)


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
    longest = max([*(sum(row.counts) for row in rows), threshold or 0], default=0) or 1
    room = _WIDTH - _LABEL_WIDTH - 60
    height = _AXIS_HEIGHT + len(rows) * _ROW_HEIGHT + 10
    shapes = [_draw_legend(part_names)]
    for number, row in enumerate(rows):
        top = _AXIS_HEIGHT + number * _ROW_HEIGHT + 6
        shapes.append(_label(row.label, top))
        left = float(_LABEL_WIDTH)
        for index, (part_name, count) in enumerate(zip(part_names, row.counts, strict=True)):
            width = room * count / longest
            if count:
                name = f"{row.label}, {part_name}: {_format(count)}"
                shapes.append(_rect(f"part-{index % 6}", left, top, max(1.0, width - 1), name))
                if width > 28:
                    shapes.append(_text(_format(count), left + 5, top + 14, "inside"))
            left += width
        shapes.append(_text(_format(sum(row.counts)), left + 6, top + 14))
    if threshold:
        left = _LABEL_WIDTH + room * threshold / longest
        shapes.append(_line("day", left, _AXIS_HEIGHT, left, height))
    table = tuple(
        (Cell(row.label), *(Cell(_format(count)) for count in row.counts)) for row in rows
    )
    headers = (row_header, *part_names)
    return Chart(_svg(shapes, _WIDTH, height, finding), finding, headers, table)


def _draw_legend(part_names: Sequence[str]) -> Markup:
    shapes = []
    left = float(_LABEL_WIDTH)
    for index, part_name in enumerate(part_names):
        shapes.append(_rect(f"part-{index % 6}", left, 4, 12, None, 12))
        shapes.append(_text(part_name, left + 17, 14))
        left += 34 + 7.5 * len(part_name)
    return Markup("").join(shapes)


# --- sparkline ---


def draw_sparkline(values: Sequence[float], finding: str, headers: tuple[str, str]) -> Chart:
    """Return a small line of numbers over time, the newest at the right."""
    width, height = 160, 28
    highest = max(values, default=0) or 1
    step = (width - 4) / max(1, len(values) - 1)
    points = " ".join(
        f"{2 + number * step:.1f},{height - 3 - (height - 6) * value / highest:.1f}"
        for number, value in enumerate(values)
    )
    shape = Markup('<polyline class="spark" points="{}"/>').format(points)
    rows = tuple((Cell(str(number)), Cell(_format(value))) for number, value in enumerate(values))
    return Chart(_svg([shape], width, height, finding), finding, headers, rows)


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
    ordered = sorted(edges, key=lambda edge: (edge.kind, edge.label))
    height = max(120, len(ordered) * _ROW_HEIGHT + 20)
    middle, right = height / 2, 480
    shapes = []
    for number, edge in enumerate(ordered):
        line_top = number * _ROW_HEIGHT + 24.0
        curve = f"M 190 {middle:.0f} C 300 {middle:.0f}, 300 {line_top:.0f}, 350 {line_top:.0f}"
        shapes.append(Markup('<path class="edge" d="{}"/>').format(curve))
        shapes.append(_text(_shorten(edge.kind), 356, line_top + 4, "kind"))
        circle = '<circle class="node" cx="{}" cy="{}" r="5"><title>{}</title></circle>'
        shapes.append(Markup(circle).format(right, line_top, edge.evidence))
        shapes.append(_link(_text(_shorten(edge.label, 60), right + 12, line_top + 4), edge.href))
    shapes.append(Markup('<circle class="node centre" cx="180" cy="{:.0f}" r="9"/>').format(middle))
    shapes.append(_text(_shorten(centre, 22), 8, middle - 16, "centre"))
    rows = tuple(
        (Cell(edge.kind), Cell(edge.label, edge.href), Cell(edge.evidence)) for edge in ordered
    )
    headers = ("Link", "Record", "Evidence")
    return Chart(_svg(shapes, _WIDTH, height, finding), finding, headers, rows)


# --- what they are drawn with ---


def _svg(shapes: Sequence[Markup], width: float, height: float, finding: str) -> Markup:
    drawing = Markup("").join(shapes)
    # Links inside something that is named an image could not be reached by a screen reader.
    role = "group" if "<a " in drawing else "img"
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" role="{}" aria-label="{}" '
        'width="{:.0f}" height="{:.0f}">{}</svg>'
    ).format(role, finding, width, height, drawing)


def _link(shape: Markup, href: str | None, name: str | None = None) -> Markup:
    """Return a shape as a link; `name` says where it leads, unless the shape is words."""
    if href is None:
        return shape
    if name is None:
        return Markup('<a href="{}">{}</a>').format(href, shape)
    return Markup('<a href="{}" aria-label="{}">{}</a>').format(href, name, shape)


def _rect(
    kind: str,
    left: float,
    top: float,
    width: float,
    name: str | None = None,
    height: float = _BAR_HEIGHT,
) -> Markup:
    title = Markup("<title>{}</title>").format(name) if name else Markup("")
    return Markup(
        '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="2">{}</rect>'
    ).format(kind, left, top, width, height, title)


def _line(kind: str, left: float, top: float, right: float, bottom: float) -> Markup:
    return Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(
        kind, left, top, right, bottom
    )


def _text(words: str, left: float, baseline: float, kind: str = "") -> Markup:
    attribute = Markup(' class="{}"').format(kind) if kind else Markup("")
    return Markup('<text{} x="{:.1f}" y="{:.1f}">{}</text>').format(
        attribute, left, baseline, words
    )


def _label(words: str, top: float) -> Markup:
    return _text(_shorten(words), 0, top + 14, "label")


def _shorten(words: str, max_chars: int = _MAX_LABEL_CHARS) -> str:
    return words if len(words) <= max_chars else words[: max_chars - 1].rstrip() + "…"


def _format(number: float) -> str:
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.2f}"
