"""The order of a federal search: names first, then words and meaning in one ranking."""

import json
import math
from contextlib import closing
from pathlib import Path

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.models import SearchAnswer
from readingroom.bases.federal.search.evidence import (
    EVIDENCE_WEIGHTS,
    compute_bonuses,
    find_named_sources,
)
from readingroom.bases.federal.store import get_database_path
from tests.requirements import requirement
from tests.support.federal.base import load_files, serve_in_process
from tests.support.federal.world import register_document

pytestmark = pytest.mark.anyio

NOISE = "The agency limits the noise of airport traffic at night near homes and schools. "


def write_rule(
    folder: Path, number: str, title: str, abstract: str | None = None, day: str = "2025-02-03"
) -> Path:
    document = register_document(number, day, title, abstract=abstract)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number}.json"
    path.write_text(json.dumps(document), "utf-8")
    return path


async def search(data: Path, query: str, mode: str = "hybrid") -> SearchAnswer:
    async with serve_in_process(data) as ask:
        return SearchAnswer.model_validate(await ask.record("/search", q=query, mode=mode))


@requirement("engine:hybrid")
async def test_a_record_that_is_called_by_its_name_comes_first(tmp_path: Path) -> None:
    files = tmp_path / "files"
    write_rule(files, "2025-00001", "Airport Noise Act of 2025")
    for number in (2, 3, 4):
        write_rule(files, f"2025-0000{number}", f"Noise of an airport, act {number}", NOISE * 3)
    load_files(tmp_path, files)
    for query in ("airport noise act", "What does the Airport Noise Act say of schools at night?"):
        answer = await search(tmp_path, query)
        assert answer.results[0].id == "2025-00001"
        assert answer.results[0].score >= 0.95
        assert answer.confidence == "strong"


@requirement("engine:hybrid")
async def test_many_passages_of_one_record_leave_room_for_others(tmp_path: Path) -> None:
    files = tmp_path / "files"
    write_rule(files, "2025-00001", "A long rule on airport noise", NOISE * 60)
    for number in (2, 3, 4):
        write_rule(files, f"2025-0000{number}", f"Noise, rule {number}", NOISE)
    load_files(tmp_path, files)
    answer = await search(tmp_path, "airport noise at night")
    assert sorted(hit.id for hit in answer.results) == [f"2025-0000{n}" for n in (1, 2, 3, 4)]
    assert answer.total == 4


@requirement("engine:hybrid", "federal:degraded")
async def test_what_is_not_embedded_yet_is_not_behind_what_is(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for number in range(10, 30):
        write_rule(
            first, f"2025-000{number}", f"Rule {number} on airport fees", "Fees for landing."
        )
    load_files(tmp_path, first)
    write_rule(second, "2025-00001", "Quiet hours", NOISE)
    load_files(tmp_path, second, embed=False)
    answer = await search(tmp_path, "noise of airport traffic near schools")
    assert answer.results[0].id == "2025-00001"
    assert answer.results[0].parts is not None
    assert answer.results[0].parts.semantic is None


@requirement("engine:hybrid")
async def test_a_hit_says_what_its_score_is_made_of(tmp_path: Path) -> None:
    write_rule(tmp_path / "files", "2025-00001", "Quiet hours", NOISE)
    write_rule(tmp_path / "files", "2025-00002", "Landing fees", "Fees for landing at airports.")
    load_files(tmp_path, tmp_path / "files")
    for mode in ("hybrid", "lexical", "semantic"):
        answer = await search(tmp_path, "airport noise near schools", mode)
        scores = [hit.score for hit in answer.results]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)
        parts = answer.results[0].parts
        assert parts is not None
        assert parts.matched_terms == ("airport", "noise", "near", "schools")
        assert parts.rank_lexical == (None if mode == "semantic" else 1)
        assert answer.confidence_reason
    assert (await search(tmp_path, "zebra", "lexical")).confidence == "none"


@requirement("engine:hybrid")
async def test_the_year_that_a_question_names_counts(tmp_path: Path) -> None:
    files = tmp_path / "files"
    for year in range(2015, 2025):
        write_rule(files, f"{year}-00001", "Quiet hours", NOISE, day=f"{year}-02-03")
    load_files(tmp_path, files)
    for year in (2016, 2023):
        answer = await search(tmp_path, f"airport noise near schools in {year}")
        assert answer.results[0].id == f"{year}-00001"


@requirement("engine:hybrid")
async def test_a_record_is_weighed_by_its_length_its_date_and_its_kind(tmp_path: Path) -> None:
    files = tmp_path / "files"
    write_rule(files, "2025-00001", "Short rule", NOISE * 2)
    write_rule(files, "2025-00002", "Long rule", NOISE * 60)
    write_rule(files, "2025-00003", "Noise of airports")
    write_rule(files, "2019-00004", "Old rule", NOISE * 2, day="2019-02-03")
    load_files(tmp_path, files, embed=False)
    with closing(store.connect(get_database_path(tmp_path))) as db:
        firsts = db.execute(
            "SELECT d.id, min(c.chunk) FROM chunks c JOIN documents d USING (doc) GROUP BY d.id"
        )
        chunks = dict(map(tuple, firsts.fetchall()))
        (passages,) = db.execute(
            "SELECT count(*) FROM chunks JOIN documents USING (doc) WHERE id = '2025-00002'"
        ).fetchone()

        def weigh(query: str) -> dict[str, float]:
            by_chunk = compute_bonuses(db, query, list(chunks.values()))
            return {record_id: by_chunk[chunk] for record_id, chunk in chunks.items()}

        plain = weigh("airport noise")
        assert plain["2025-00001"] == plain["2019-00004"] == 0
        assert plain["2025-00002"] == pytest.approx(
            -EVIDENCE_WEIGHTS.length_weight * math.sqrt(math.log(passages))
        )
        assert plain["2025-00003"] == -EVIDENCE_WEIGHTS.bare_title_weight
        dated = weigh("airport noise, 2019")
        assert dated["2019-00004"] == EVIDENCE_WEIGHTS.year_weight
        assert dated["2025-00001"] == 0
        kind = weigh("the notice on airport noise in 2019")
        assert kind["2019-00004"] == pytest.approx(
            EVIDENCE_WEIGHTS.year_weight + EVIDENCE_WEIGHTS.kind_weight
        )
        assert kind["2025-00001"] == EVIDENCE_WEIGHTS.kind_weight


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("what is the White House view of clean water", {"saps"}),
        ("which bill was it", {"bills"}),
        ("which act cleans up old uranium works", {"public_laws", "statute_compilations"}),
        ("the billing of houses that are white", set()),
    ],
)
def test_a_question_may_name_the_kind_of_record(query: str, kinds: set[str]) -> None:
    assert find_named_sources(query) == kinds


@requirement("federal:AC-07")
async def test_a_record_that_an_older_version_loaded_can_be_fetched(tmp_path: Path) -> None:
    """It lacks the fields that records have got since."""
    write_rule(tmp_path / "files", "2025-00001", "Quiet hours", NOISE)
    load_files(tmp_path, tmp_path / "files", embed=False)
    with closing(store.connect(get_database_path(tmp_path), writing=True)) as db:
        db.execute("UPDATE federal_register SET record = json_remove(record, '$.as_of')")
    async with serve_in_process(tmp_path) as ask:
        fetched = await ask.answer("fetch", id="2025-00001")
    assert fetched["metadata"]["as_of"] is None
    assert fetched["text"]
