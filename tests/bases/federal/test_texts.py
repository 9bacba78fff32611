"""The body-bearing sources: each in its native format, found, fetched, listed and cited."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal.formats import Loader, cbo, cfr, compilations, crec, crs, reports
from readingroom.bases.federal.formats.parts.files import RawFile
from readingroom.bases.federal.schema.entries import FileStamp, ParsedRecord
from readingroom.bases.federal.schema.ids import parse_federal_id
from readingroom.bases.federal.schema.sources import (
    SOURCES_BY_NAME,
    Shape,
    list_source_names,
    list_sources_of_shape,
)
from readingroom.bases.federal.store import get_database_path
from tests.requirements import requirement
from tests.support.federal.base import MADE_UP, load_files, serve_in_process, write_world
from tests.support.federal.world import World, register_document
from tests.support.federal.world_texts import committee_reports, crs_reports, regulations

ORIGIN = FileStamp("2026-01-01T00:00:00+00:00", "0" * 64)
BODIES = list_source_names(list_sources_of_shape(Shape.BODY))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("bodies")
    write_world(data / "files", bills=5)
    load_files(data, data / "files")
    return data


def read_rows(data: Path, sql: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(get_database_path(data))) as db:
        return db.execute(sql, values).fetchall()


def read(loader: Loader, name: str, data: str | bytes) -> list[ParsedRecord]:
    raw = data.encode() if isinstance(data, str) else data
    return list(loader.parse(RawFile(name, raw, lambda other: None), ORIGIN))


# --- every source, every way ---


@requirement("federal:bodies")
def test_there_are_eleven_sources_with_a_body() -> None:
    assert sorted(BODIES) == [
        "amendments",
        "bills",
        "cbo_cost_estimates",
        "cfr_sections",
        "committee_reports",
        "congressional_record",
        "crs_reports",
        "federal_register",
        "presidential_documents",
        "public_laws",
        "statute_compilations",
    ]


@pytest.mark.anyio
@requirement("federal:bodies")
@pytest.mark.parametrize("source", BODIES)
async def test_a_body_source_answers_by_search_fetch_and_rest(world: Path, source: str) -> None:
    path = f"/{SOURCES_BY_NAME[source].slug}"
    async with serve_in_process(world) as ask:
        (listed, *_) = (await ask.record(path))["results"]
        assert parse_federal_id(listed["id"]).source == source
        assert await ask.record(f"{path}/{listed['id']}") == listed
        for tool in ("search", "lexical_search", "semantic_search"):
            found = await ask.answer(tool, query=listed["title"], source=source)
            assert listed["id"] in [one["id"] for one in found["results"]], tool
            assert {one["source"] for one in found["results"]} <= {
                source,
                *SOURCES_BY_NAME[source].included_source_names,
            }
        hit = next(one for one in found["results"] if one["id"] == listed["id"])
        assert hit["citation"]["citation_string"] == listed["citation_string"]
        fetched = await ask.answer("fetch", id=listed["id"])
        assert fetched["record"] == listed
        assert fetched["text"]
        assert fetched["citation"]["url"].startswith("https://")


@pytest.mark.anyio
@pytest.mark.data
@requirement("federal:bodies")
@pytest.mark.parametrize("source", sorted(set(BODIES) - MADE_UP))
async def test_official_bodies_are_found_by_words_of_theirs(official: Path, source: str) -> None:
    async with serve_in_process(official) as ask:
        (listed, *_) = (await ask.record(f"/{SOURCES_BY_NAME[source].slug}", limit=1))["results"]
        found = await ask.answer("lexical_search", query=listed["title"], source=source, limit=200)
        assert listed["id"] in [one["id"] for one in found["results"]]
        assert (await ask.answer("fetch", id=listed["id"]))["record"]["id"] == listed["id"]


# --- what the official files hold ---


@pytest.mark.data
def test_there_are_as_many_records_as_official_files_and_their_manifest_say(
    official: Path, shared_data: Path
) -> None:
    federal = shared_data / "federal"
    manifest = (federal / "MANIFEST.md").read_text("utf-8")
    counted = {
        name: read_rows(official, f"SELECT count(*) FROM {name}")[0][0]
        for name in ("saps", "statute_compilations", "congressional_record")
    }
    assert f"{counted['saps']:,} records" in manifest
    assert f"{counted['statute_compilations']} statute compilations" in manifest
    # The manifest counts an issue more than lies here; what lies here is loaded, page by page.
    assert counted["congressional_record"] == sum(1 for _ in federal.glob("crec/**/CREC-*.htm"))
    ((texts,),) = read_rows(official, "SELECT count(*) FROM texts WHERE record_id LIKE 'crec:%'")
    assert texts == counted["congressional_record"]


@pytest.mark.data
def test_a_speech_names_its_speaker_and_the_day_it_was_given(official: Path) -> None:
    id = "crec:CREC-2005-07-20-pt1-PgE1551-2"
    ((told,),) = read_rows(official, "SELECT record FROM congressional_record WHERE id = ?", id)
    speech = json.loads(told)
    assert [one["bioguide_id"] for one in speech["speakers"]] == ["G000410"]
    assert (speech["published_at"], speech["spoken_at"]) == ("2005-07-20", "2005-07-12")
    assert speech["citation_string"].startswith("151 Cong. Rec. E1551, ")
    ((words,),) = read_rows(official, "SELECT body FROM texts WHERE record_id = ?", id)
    assert words.startswith("IN MEMORY OF CONGRESSMAN JAKE PICKLE\n")
    links = "SELECT kind, to_id, evidence FROM links WHERE from_id = ?"
    assert read_rows(official, links, id) == [
        ("speech", "G000410", "congMember (speaking): Mr. GENE GREEN of Texas")
    ]


@pytest.mark.data
def test_who_is_only_counted_in_a_vote_did_not_speak(official: Path) -> None:
    most = "SELECT max(json_array_length(record, '$.speakers')) FROM congressional_record"
    assert read_rows(official, most) == [(67,)]


@pytest.mark.data
def test_an_amendment_printed_in_the_record_has_its_bill_and_its_words(official: Path) -> None:
    id = "amdt:109:samdt:1306"
    ((told,),) = read_rows(official, "SELECT record FROM amendments WHERE id = ?", id)
    amendment = json.loads(told)
    assert amendment["bill_id"] == "hr:109:3057"
    assert amendment["title"] == "S.Amdt. 1306 to H.R. 3057, 109th Congress"
    # Proposed by one Senator for another, whose it is.
    assert [one["name"] for one in amendment["sponsors"]] == ["Byrd"]
    ((words,),) = read_rows(official, "SELECT body FROM texts WHERE record_id = ?", id)
    assert words.startswith("Mr. McCONNELL (for Mr. Byrd) proposed")
    assert "SA 1307" not in words


@pytest.mark.data
@pytest.mark.parametrize(
    ("id", "law", "through", "day"),
    [
        # The dashes of all these numbers are U+2013 in the files.
        ("comps:1565", "pl:91-581", "pl:116-260", "2020-12-27"),
        # It names its law nowhere but in the numbers of its sections.
        ("comps:1649", "pl:95-604", "pl:116-260", "2020-12-27"),
        # Its metadata says 89-304, the note printed above the text says what is true.
        ("comps:1656", "pl:89-304", "pl:109-479", "2007-01-12"),
    ],
)
def test_a_compilation_says_which_law_it_is_and_how_far_amended(
    official: Path, id: str, law: str, through: str, day: str
) -> None:
    ((told,),) = read_rows(official, "SELECT record FROM statute_compilations WHERE id = ?", id)
    act = json.loads(told)
    assert (act["law_id"], act["amended_through"], act["published_at"]) == (law, through, day)


@pytest.mark.data
def test_a_section_numbered_with_a_letter_is_a_record_of_its_own(official: Path) -> None:
    found = "SELECT id, record->>'heading' FROM cfr_sections WHERE id LIKE 'cfr:27:478.25%'"
    assert read_rows(official, found) == [
        ("cfr:27:478.25", "Disclosure of information"),
        ("cfr:27:478.25a", "Responses to requests for information"),
    ]
    ((told,),) = read_rows(official, "SELECT record FROM cfr_sections WHERE id = 'cfr:27:478.25a'")
    section = json.loads(told)
    assert section["usc_references"] == ["5 U.S.C. 552", "18 U.S.C. 921-931", "44 U.S.C. 3504"]
    assert section["fr_citations"] == ["60 FR 17451", "63 FR 12646", "73 FR 57240"]
    assert section["agency"].startswith("Bureau of Alcohol, Tobacco")


@pytest.mark.data
def test_an_estimate_without_a_number_stays_with_its_bill(official: Path) -> None:
    ((told,),) = read_rows(official, "SELECT record FROM bills WHERE id = 'hr:117:5376'")
    estimates = json.loads(told)["cost_estimates"]
    assert [one["url"] for one in estimates if one["id"] is None] == [
        "https://www.cbo.gov/system/files/2021-12/sen_title%20IX_Indian_Affairs.pdf"
    ]
    named = {one["id"] for one in estimates if one["id"]}
    known = "SELECT id FROM cbo_cost_estimates WHERE bill_id = 'hr:117:5376'"
    assert {id for (id,) in read_rows(official, known)} == named


# --- files in every shape ---


def _page(granule: str, opening: str, words: str = "  Words.") -> tuple[str, str]:
    return (
        f"{granule}.htm",
        f"<html><body><pre>\n[Congressional Record Volume 151, Number 9 ({opening}\n"
        f"From the Congressional Record Online through GPO\n\n{words}\n</pre></body></html>",
    )


@pytest.mark.parametrize("first", ["mods.xml", "CREC-2025-03-04-pt1-PgH101.htm"])
def test_pages_and_their_mods_may_come_in_any_order(tmp_path: Path, first: str) -> None:
    write_world(tmp_path / "files", bills=0, votes=0)
    for data in (tmp_path / "all", tmp_path / "turns"):
        load_files(data, tmp_path / "files" / "legislators-current.yaml", embed=False)
    pages = sorted((tmp_path / "files").glob("CREC-*.htm"))
    mods = tmp_path / "files" / "mods.xml"
    load_files(tmp_path / "all", *pages, mods, embed=False)
    for path in (mods, *pages) if first == mods.name else (*pages, mods):
        load_files(tmp_path / "turns", path, embed=False)
    told = """SELECT id, json_remove(record, '$.retrieved_at'), body
              FROM congressional_record JOIN texts ON record_id = id ORDER BY id"""
    assert read_rows(tmp_path / "all", told) == read_rows(tmp_path / "turns", told)
    assert len(read_rows(tmp_path / "all", told)) == len(pages) == 5


def test_a_page_without_a_date_or_a_number_of_its_own_is_kept() -> None:
    name, page = _page("CREC-2005-07-20-pt1-Pgnull-2", ")]\n[]\n[Page ]", "[Lobby List]\n\n  A.")
    (entry,) = read(crec.RecordPageLoader(), name, page)
    assert entry.record.id == "crec:CREC-2005-07-20-pt1-Pgnull-2"
    assert entry.record.title == "Lobby List"
    assert entry.record.published_at is None
    assert entry.record.citation_string == "151 Cong. Rec. no. 9, Lobby List (n.d.)"


def test_a_page_that_is_none_of_the_record_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="header"):
        read(
            crec.RecordPageLoader(), "CREC-x.htm", "<pre>[Congressional Record Volume] nothing more"
        )


@pytest.mark.parametrize(
    ("printed", "number"),
    [
        ("\u00a7\u2009447.21", "447.21"),
        ("\u00a7 478.25a", "478.25a"),
        ("\u00a7\u00a7\u20091.1\u20131.5", "1.1-1.5"),
        ("\u00a7 301.6402-1T", "301.6402-1T"),
        ("Sec. without one", "990.1"),
    ],
)
def test_a_section_has_the_number_that_is_printed(printed: str, number: str) -> None:
    volume = regulations(World(), 2).replace("\u00a7\u2009990.1<", f"{printed}<")
    first, *_ = read(cfr.CfrLoader(), "CFR-2025-title7-vol1.xml", volume)
    assert first.record.id == f"cfr:7:{number.lower()}"
    assert parse_federal_id(first.record.id).id == first.record.id
    assert first.record.citation_string.startswith(f"7 CFR {number}, Upkeep of")


@pytest.mark.parametrize(
    ("appended", "id", "cite"),
    [
        (
            "<heading>Appendix A to Part 990\u2014Upkeep Forms</heading>",
            "cfr:7:990.appendix-a",
            "7 CFR Part 990, Appendix A, Upkeep Forms",
        ),
        (
            '<num value="B">APPENDIX B TO PART 990\u2014</num><heading>FORMS.</heading>',
            "cfr:7:990.appendix-b",
            "7 CFR Part 990, Appendix B, Forms",
        ),
        (
            "<heading>Appendix A\u20131 to Subpart C of Part 990</heading>",
            "cfr:7:990.appendix-a-1-to-subpart-c",
            "7 CFR Part 990, Appendix A-1 to Subpart C",
        ),
        (
            "<heading>Supplement No. 1 to Part 990\u2014Tables</heading>",
            "cfr:7:990.supplement-no-1",
            "7 CFR Part 990, Supplement No. 1, Tables",
        ),
        (
            "<heading>Appendix C to Part 990 [Reserved]</heading>",
            "cfr:7:990.appendix-c",
            "7 CFR Part 990, Appendix C",
        ),
        ("<p>Words alone.</p>", "cfr:7:990.appendix", "7 CFR Part 990, Appendix"),
    ],
)
def test_an_appendix_is_named_by_what_is_printed_above_it(
    appended: str, id: str, cite: str
) -> None:
    volume = regulations(World(), 2)
    opening, closing = volume.index("<heading>Appendix A"), volume.index("</appendix>")
    shaped = f"{volume[:opening]}{appended}<p>Words.</p>{volume[closing:]}"
    *_, last = read(cfr.CfrLoader(), "CFR-2025-title7-vol1.xml", shaped)
    assert last.record.id == id == parse_federal_id(id).id
    assert last.record.citation_string == f"{cite} (2025-01-01)"
    assert last.record.url == "https://www.govinfo.gov/link/cfr/7/990?year=2025"
    assert last.text is not None
    assert "Words" in last.text.body


def test_two_appendices_without_a_letter_are_two_records(tmp_path: Path) -> None:
    volume = regulations(World(), 1)
    plain = "<appendix><heading>Appendix to Part 990</heading><p>Words.</p></appendix>"
    chapter = plain.replace("Part 990", "Chapter I").replace("Words", "Of all its parts")
    volume = volume.replace("</part>", f"{plain}{plain}</part>{chapter}")
    entries = read(cfr.CfrLoader(), "CFR-2025-title7-vol1.xml", volume)
    assert [entry.record.id for entry in entries[1:]] == [
        "cfr:7:990.appendix-a",
        "cfr:7:990.appendix",
        "cfr:7:990.appendix-2",
        "cfr:7:appendix-to-chapter-i",
    ]
    assert entries[-1].record.url.endswith("/app/collection/cfr/2025/title7")


@pytest.mark.anyio
async def test_an_appendix_is_found_fetched_and_linked_like_a_section(world: Path) -> None:
    id = "cfr:7:990.appendix-a"
    async with serve_in_process(world) as ask:
        for tool in ("search", "lexical_search", "semantic_search"):
            found = await ask.answer(
                tool, query="upkeep forms", source="cfr", filters={"type": "appendix"}
            )
            assert [one["id"] for one in found["results"]] == [id]
        for written in (id, "7 CFR Part 990, Appendix A", "7 C.F.R. pt. 990, app. A"):
            fetched = await ask.answer("fetch", id=written)
            assert fetched["id"] == id
        assert fetched["record"]["type"] == "appendix"
        assert "As 7 CFR 990.1 requires." in fetched["text"]
        linked = (await ask.record(f"/cfr-sections/{id}/links"))["results"]
        words = {(one["kind"], one["id"]): one["evidence"][0]["words"] for one in linked}
        assert set(words) == {("authority", "pl:117-103"), ("mention", "cfr:7:990.1")}
        assert words["mention", "cfr:7:990.1"].startswith(
            "reference in 7 CFR Part 990, Appendix A: 7 CFR 990.1 requires."
        )


def test_a_newer_edition_replaces_an_older_one_and_never_the_other_way(tmp_path: Path) -> None:
    newer = regulations(World(), 2)
    older = newer.replace("2025-01-01", "2019-01-01").replace("Upkeep", "Neglect")
    for number, text in enumerate((older, newer, older)):
        (tmp_path / f"CFR-{number}.xml").write_text(text, "utf-8")
        load_files(tmp_path, tmp_path / f"CFR-{number}.xml", embed=False)
        if number:
            told = (
                "SELECT DISTINCT published_at, substr(record->>'heading', 1, 6) FROM cfr_sections"
            )
            assert read_rows(tmp_path, told) == [("2025-01-01", "Upkeep")]


@pytest.mark.parametrize(
    ("written", "id"),
    [
        ("2025\u201300001", "2025-00001"),
        ("E9\u20131234", "E9-1234"),
        ("C1-2024-12345", "C1-2024-12345"),
        ("94-125", "94-125"),
        ("r9-7", "R9-7"),
    ],
)
def test_a_document_of_the_register_has_its_number_however_irregular(
    tmp_path: Path, written: str, id: str
) -> None:
    told = register_document(written, "2025-02-03", "Airport noise")
    (tmp_path / "rule.json").write_text(json.dumps(told), "utf-8")
    assert load_files(tmp_path, tmp_path / "rule.json", embed=False).failed == 0
    assert read_rows(tmp_path, "SELECT id FROM federal_register") == [(id,)]
    assert parse_federal_id(f"fr:{written}").id == id


def test_a_report_without_a_date_is_listed_last_and_cited_as_such(tmp_path: Path) -> None:
    for name, text in crs_reports(World(), 3):
        undated = text.replace('"publishDate"', '"lost"') if name == "R99002.json" else text
        (tmp_path / name).write_text(undated, "utf-8")
    load_files(tmp_path, tmp_path, embed=False)
    listed = read_rows(tmp_path, "SELECT id FROM crs_reports ORDER BY published_at DESC, id")
    assert [id for (id,) in listed][-1] == "R99002"
    ((cite,),) = read_rows(
        tmp_path, "SELECT record->>'citation_string' FROM crs_reports WHERE id = 'R99002'"
    )
    assert cite.endswith("CRS R99002 (n.d.)")


def test_a_list_of_reports_never_replaces_what_is_known_of_one(tmp_path: Path) -> None:
    ((_, whole),) = crs_reports(World(), 1)
    told = json.loads(whole)["CRSReport"]
    short = {name: told[name] for name in ("id", "title", "publishDate")} | {"title": "Short"}
    other = short | {"id": "IF12345", "title": "Only listed"}
    (tmp_path / "R99001.json").write_text(whole, "utf-8")
    (tmp_path / "list.json").write_text(json.dumps({"CRSReports": [short, other]}), "utf-8")
    load_files(tmp_path, tmp_path / "R99001.json", tmp_path / "list.json", embed=False)
    titles = dict(read_rows(tmp_path, "SELECT id, record->>'title' FROM crs_reports"))
    assert titles == {"R99001": told["title"], "IF12345": "Only listed"}


def test_related_materials_are_bills_and_laws_public_and_private() -> None:
    told = {
        "id": "RL12345",
        "title": "A report",
        "relatedMaterials": [
            {"type": "SJRES", "congress": 118, "number": "7"},
            {"type": "PUB", "congress": 93, "number": "344"},
            {"type": "PRIV", "congress": 112, "number": "1"},
            {"type": "TREATY", "congress": 112, "number": "1"},
        ],
    }
    (entry,) = read(crs.CrsReportLoader(), "x.json", json.dumps({"CRSReport": told}))
    assert {link.id for link in entry.links} == {"sjres:118:7", "pl:93-344", "pvtl:112-1"}


@pytest.mark.parametrize(
    ("title", "date", "bills"),
    [
        ("H.R. 1, An Act", "Fri, 03 Jan 2025 17:00:00 -0500", ["hr:119:1"]),
        ("S. 2 and H.J. Res. 3", "Thu, 02 Jan 2025 17:00:00 -0500", ["s:118:2", "hjres:118:3"]),
        ("The week of September 14", "Fri, 11 Sep 2026 17:00:00 -0400", []),
        ("H.R. 1, undated", "", []),
        ("H.R. 1, dated in words", "last Friday", []),
    ],
)
def test_the_bills_of_an_estimate_are_those_of_the_congress_of_its_day(
    title: str, date: str, bills: list[str]
) -> None:
    feed = (
        f"<response><item><Title>{title}</Title><Date>{date}</Date>"
        "<Link>https://www.cbo.gov/publication/60001</Link></item></response>"
    )
    (entry,) = read(cbo.CostEstimateLoader(), "feed.xml", feed)
    assert entry.record.model_dump()["bills"] == bills
    assert (entry.record.published_at is None) == (date in ("", "last Friday"))


def test_the_parts_of_a_report_are_told_apart(tmp_path: Path) -> None:
    (_, described), (name, page) = committee_reports(World(), 1)
    told = json.loads(described)["committeeReports"][0]
    both = {"committeeReports": [told, told | {"part": 2, "title": "SUPPLEMENT"}]}
    first, second = read(reports.CommitteeReportLoader(), "x.json", json.dumps(both))
    assert (first.record.id, second.record.id) == ("crpt:119hrpt901", "crpt:119hrpt901-pt2")
    assert second.record.title == "H. Rept. 119-901, Part 2, SUPPLEMENT"
    (text,) = read(reports.CommitteeReportTextLoader(), name, page)
    assert (text.record.id, text.is_partial) == ("crpt:119hrpt901", True)
    named = page.replace("[House Report 119-901]", "[House Report 119-901, Part 2]")
    (text,) = read(reports.CommitteeReportTextLoader(), name, named)
    assert text.record.id == "crpt:119hrpt901-pt2"


def test_an_act_that_names_no_law_is_a_compilation_all_the_same() -> None:
    file = (
        '<statuteCompilation xmlns="http://schemas.gpo.gov/xml/uslm"><meta><title>AN ACT</title>'
        '<property role="fileId">7</property></meta><main><p>Words.</p></main>'
        "</statuteCompilation>"
    )
    (entry,) = read(compilations.CompilationLoader(), "COMPS-7.xml", file)
    assert (entry.record.id, entry.links, entry.record.published_at) == ("comps:7", (), None)
    assert entry.record.citation_string == "An Act, COMPS-7 (n.d.)"


# --- asking ---


@pytest.mark.anyio
@requirement("federal:bodies")
async def test_a_search_is_narrowed_to_a_speaker_and_to_a_bill(world: Path) -> None:
    async with serve_in_process(world) as ask:
        speeches = (await ask.record("/congressional-record"))["results"]
        speech = next(one for one in speeches if one["speakers"])
        speaker, bill = speech["speakers"][0]["bioguide_id"], speech["bills"][0]
        for tool in ("search", "lexical_search", "semantic_search"):
            for filters in ({"member": f"member:{speaker}"}, {"bill": bill}):
                found = await ask.answer(tool, query="in praise of", source="crec", filters=filters)
                assert speech["id"] in [one["id"] for one in found["results"]]
                assert len(found["results"]) == 1, "every speech here has its own speaker and bill"
        about = await ask.answer("search", query="federal act", filters={"bill": bill})
        assert {one["source"] for one in about["results"]} >= {"crs_reports", "cbo_cost_estimates"}
        refused = await ask.get("/search", q="x", bill="nonsense")
        assert refused.status_code == 422


@pytest.mark.anyio
@requirement("federal:bodies")
async def test_what_the_president_signed_is_found_once(world: Path) -> None:
    async with serve_in_process(world) as ask:
        for source in (None, "federal_register", "presidential_documents", "fr,presdocs"):
            for tool in ("search", "lexical_search", "semantic_search"):
                asked_for = {"source": source} if source else {}
                found = await ask.answer(tool, query="Order on passenger rail", **asked_for)
                orders = [one["id"] for one in found["results"] if "2025-00002" in one["id"]]
                assert orders == ["presdoc:2025-00002"], (tool, source)
        for id in ("2025-00002", "presdoc:2025-00002"):
            assert (await ask.answer("fetch", id=id))["id"] == "presdoc:2025-00002"


@pytest.mark.parametrize(
    ("written", "id"),
    [
        ("27 CFR 478.25a", "cfr:27:478.25a"),
        ("27 C.F.R. \u00a7\u2009447.21", "cfr:27:447.21"),
        ("H. Rept. 117\u2013118,Part 2", "crpt:117hrpt118-pt2"),
        ("s. rept. 114-283", "crpt:114srpt283"),
        ("CREC-2005-07-20-PT1-PGE1551-2", "crec:CREC-2005-07-20-pt1-PgE1551-2"),
        ("crec:crec-2005-07-20-pt1-pgh-frontmatter", "crec:CREC-2005-07-20-pt1-PgH-FrontMatter"),
        ("crec:CREC-2005-07-20-pt1-PgNULL-2", "crec:CREC-2005-07-20-pt1-Pgnull-2"),
    ],
)
def test_texts_are_named_as_people_cite_them(written: str, id: str) -> None:
    assert parse_federal_id(written).id == id
    assert parse_federal_id(id).id == id
