"""Charts: each names its finding, has the table it was drawn from, and runs nothing it shows."""

import datetime as dt
from typing import Any
from xml.etree import ElementTree

import pytest

from readingroom.web.charts import (
    Chart,
    ChartBar,
    GanttRow,
    GanttSpan,
    GraphEdge,
    StackedRow,
    TimeBin,
    draw_bars,
    draw_gantt,
    draw_histogram,
    draw_link_graph,
    draw_sparkline,
    draw_stacked,
)
from readingroom.web.templates import render_template
from tests.requirements import requirement

HOSTILE = '"><script>alert(1)</script>‮' + "w" * 10_000 + "🙂"
FINDING = f"A finding {HOSTILE[:30]}"
DAY = dt.date(2025, 4, 14)
HEADERS = ("What", "How many")

CHARTS = {
    "bars": draw_bars([ChartBar(HOSTILE, 3, "/x"), ChartBar("b", 0)], FINDING, HEADERS),
    "gantt": draw_gantt(
        [
            GanttRow(
                HOSTILE,
                [
                    GanttSpan(
                        "old", dt.date(2012, 3, 27), dt.date(2018, 7, 24), "superseded", "/old"
                    ),
                    GanttSpan(HOSTILE, dt.date(2019, 2, 19), None, "active"),
                ],
            )
        ],
        DAY,
        FINDING,
    ),
    "histogram": draw_histogram([TimeBin(HOSTILE, 3, "/x"), TimeBin("none", 0)], FINDING, HEADERS),
    "stacked": draw_stacked([StackedRow(HOSTILE, [1, 2])], ["yes", HOSTILE], FINDING, "Party", 3),
    "sparkline": draw_sparkline([0, 3, 1.5], FINDING, HEADERS),
    "graph": draw_link_graph(HOSTILE, [GraphEdge("cites", HOSTILE, "/x", HOSTILE)], FINDING),
}


@requirement("room:console")
@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_named_by_its_finding_and_shows_hostile_text_as_text(name: str) -> None:
    chart: Chart = CHARTS[name]
    root = ElementTree.fromstring(str(chart.svg_markup))
    assert root.get("aria-label") == FINDING
    elements = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert "script" not in elements
    # Links inside an image could not be reached.
    assert root.get("role") == ("group" if "a" in elements else "img")
    assert all(len(row) == len(chart.headers) for row in chart.rows) and chart.rows


def test_a_timeline_shows_the_gap_and_the_day() -> None:
    root = ElementTree.fromstring(str(CHARTS["gantt"].svg_markup))
    kinds = [element.get("class") for element in root.iter()]
    assert kinds.count("gap") == 1 and kinds.count("day") == 1
    assert kinds.count("span active") == kinds.count("span superseded") == 1


def test_one_odd_date_does_not_spoil_the_scale_of_a_timeline() -> None:
    usual = GanttRow("usual", [GanttSpan("u", dt.date(2012, 1, 1), dt.date(2018, 1, 1), "active")])
    odd = [
        GanttRow("odd", [GanttSpan("o", first, None, "active")])
        for first in (dt.date.min, dt.date(9999, 12, 31))
    ]

    def measure_bars(rows: list[GanttRow]) -> list[float]:
        root = ElementTree.fromstring(str(draw_gantt(rows, DAY, FINDING).svg_markup))
        bars = [bar for bar in root.iter() if bar.get("class") == "span active"]
        return [float(bar.get("width", "0")) for bar in bars]

    assert measure_bars([usual, *odd])[0] == pytest.approx(measure_bars([usual])[0], rel=0.1)


def test_characters_that_turn_the_order_of_others_are_shown_by_their_numbers() -> None:
    name = "statement\u202efdp.exe\u2067"
    shown = render_template("error.html", **ERROR_PAGE | {"message": name})
    assert "statement[U+202E]fdp.exe[U+2067]" in shown
    chart = render_template("error.html", **ERROR_PAGE | {"message": CHARTS["bars"].svg_markup})
    assert "\u202e" not in chart and "[U+202E]" in chart and "<svg" in chart


ERROR_PAGE: dict[str, Any] = {
    "title": "",
    "status": 404,
    "message": "",
    "code": "",
    "hints": [],
    "form_address": None,
    "request_id": "1",
}


@pytest.mark.parametrize("count", [0, 1, 400])
def test_charts_of_nothing_and_of_much_can_be_drawn(count: int) -> None:
    draw_bars([ChartBar(str(number), number) for number in range(count)], FINDING, HEADERS)
    draw_histogram([TimeBin(str(number), number) for number in range(count)], FINDING, HEADERS)
    draw_sparkline([float(number) for number in range(count)], FINDING, HEADERS)
    draw_stacked([StackedRow("x", [number]) for number in range(count)], ["n"], FINDING, "x")
    draw_link_graph(
        "x", [GraphEdge("cites", str(number), None, "") for number in range(count)], FINDING
    )
    first, last = dt.date.min, dt.date.max
    spans = [GanttSpan(str(number), first, last, "active") for number in range(count)]
    draw_gantt([GanttRow("x", spans)], DAY, FINDING)


def test_short_labels_leave_the_width_of_a_phone_to_the_bars() -> None:
    for labels, first_bar in ((["R", "D"], 48.0), (["w" * 100], 260.0)):
        chart = draw_bars([ChartBar(label, 1) for label in labels], FINDING, HEADERS)
        root = ElementTree.fromstring(str(chart.svg_markup))
        bars = [element for element in root.iter() if element.get("class") == "bar"]
        assert float(bars[0].get("x", "")) == first_bar
