"""Answers whose length nobody asked for can be read; the rest is a page away."""

import json
from pathlib import Path

import pytest

from readingroom.bases.federal.query.aggregate_models import QueryCost, Series, TimeBucket
from readingroom.bases.federal.query.cards import MAX_ANSWER_BYTES, fit_series
from tests.support.federal.base import load_files, serve_in_process, write_world

pytestmark = pytest.mark.anyio

MAX_CHARS = 16_000


def make_series(value_by_group: dict[str, tuple[int, int]], years: range) -> Series:
    """A series in which each group has numbers between two years and 0 outside of them."""
    buckets = [
        TimeBucket(
            key=str(year),
            start=f"{year}-01-01",
            end=f"{year}-12-31",
            group=group,
            value=1 if first <= year <= last else 0,
        )
        for year in years
        for group, (first, last) in value_by_group.items()
    ]
    return Series(
        resource="saps",
        interval="year",
        buckets=buckets,
        total_buckets=len(buckets),
        truncated=False,
        undated=0,
        query_cost=QueryCost(rows=1, most_rows=1, took_ms=1.0),
    )


def test_a_long_series_leaves_out_zeros_before_and_after_its_numbers() -> None:
    groups = {f"President {place}": (1900 + 8 * place, 1908 + 8 * place) for place in range(10)}
    series = make_series(groups, range(1900, 1990))
    fitted = fit_series(series)
    assert len(json.dumps(fitted.model_dump(mode="json")["buckets"])) < MAX_CHARS
    assert [one for one in fitted.buckets if one.value] == [
        one for one in series.buckets if one.value
    ]
    assert all(bucket.value for bucket in fitted.buckets)
    assert fitted.note is not None and "0 and left out" in fitted.note
    assert fitted.total_buckets == series.total_buckets


def test_a_series_too_long_even_so_says_where_it_goes_on() -> None:
    series = make_series({"all": (1000, 1900)}, range(1000, 1900))
    fitted = fit_series(series)
    assert len(fitted.buckets) < 900
    next_start = series.buckets[len(fitted.buckets)].start
    assert fitted.note is not None and f"where {next_start} follows" in fitted.note
    short = make_series({"all": (2000, 2010)}, range(2000, 2020))
    assert fit_series(short) is short
    assert MAX_ANSWER_BYTES < MAX_CHARS


async def test_a_piece_of_a_long_text_can_be_read_and_leads_to_the_next(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=3, votes=1)
    path = next((tmp_path / "files").glob("BILLS-*.xml"))
    content = path.read_text("utf-8")
    sections = "".join(
        f"<section><num>Sec. {number}.</num><heading>Heading {number}</heading>"
        f"<content>{'The Secretary shall report. ' * 20}</content></section>"
        for number in range(2, 300)
    )
    path.write_text(content.replace("</section>", f"</section>{sections}", 1), "utf-8")
    load_files(tmp_path, tmp_path / "files", embed=False)
    async with serve_in_process(tmp_path) as ask:
        bills = (await ask.record("/bills"))["results"]
        lengths = {bill["id"]: (await ask.answer("fetch", id=bill["id"]))["total_chars"]
                   for bill in bills}  # fmt: skip
        bill_id = max(lengths, key=lengths.__getitem__)
        assert lengths[bill_id] > 50_000
        for name, arguments in (
            ("fetch", {"id": bill_id}),
            ("get_bill_text", {"bill_id": bill_id}),
            ("get_bill_text", {"bill_id": bill_id, "section": "outline"}),
        ):
            answer = await ask.answer(name, **arguments)
            text = answer["text"]
            assert len(json.dumps(answer, ensure_ascii=False)) < MAX_CHARS, (name, arguments)
            while answer["next_offset"]:
                answer = await ask.answer(name, **arguments, offset=answer["next_offset"])
                text += answer["text"]
            assert len(text) == answer["total_chars"]
