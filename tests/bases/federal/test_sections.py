"""Sections of texts: one by its number, all as an outline, two versions compared."""

from contextlib import closing
from pathlib import Path

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.query.sections import (
    compare_versions,
    format_outline,
    get_section,
    list_sections,
)
from readingroom.bases.federal.store import get_database_path
from readingroom.core.errors import InvalidArguments
from tests.support.federal.base import load_files, serve_in_process, write_world

pytestmark = pytest.mark.anyio

BILL = """AN ACT

SECTION 1. SHORT TITLE; TABLE OF CONTENTS.

Sec. 1. Short title; table of contents.

Sec. 2. Findings.

SEC. 2. FINDINGS. Congress finds that canals are long.

SEC. 501. GRANTS. The Secretary may make grants of $5 for each lock.

DIVISION B

SEC. 501. REPORTS. The Secretary shall report.
"""


def test_a_section_is_the_words_under_its_own_heading_not_its_line_in_the_contents() -> None:
    assert [section.label for section in list_sections(BILL)] == ["1", "2", "501", "501#2"]
    for written in ("2", "Sec. 2", "section 2.", "§ 2"):
        found = get_section(BILL, written)
        assert BILL[found.start_offset : found.end_offset].strip() == (
            "SEC. 2. FINDINGS. Congress finds that canals are long."
        )
    assert "REPORTS" in get_section(BILL, "501#2").heading
    outline = format_outline(BILL).splitlines()
    assert len(outline) == 4
    assert f"[offset {BILL.index('SEC. 501')}]" in outline[2]


APPROPRIATIONS = """SECTION 1 SHORT TITLE. This Act may be cited as the Canal Money Act.

SEC. 2. TABLE OF CONTENTS.

Sec. 1. Short title.

Sec. 2. Table of contents.

Sec. 3. Reports of the commissioners.

Sec. 4 Lock keepers.

DIVISION A—LOCKS

SEC. 3. REPORTS OF THE COMMISSIONERS. {long}

Sec. 101. None of the funds may be used for weirs. {long}

Sec. 102. The commissioners may transfer funds. {long}

Sec. 103. No lock may be closed. {long}

Sec. 104. Weirs are not locks. {long}

DIVISION B—BRIDGES

SECTION 1. SHORT TITLE. This division may be cited as the Bridges Act.
"""


def test_a_short_section_in_capitals_is_no_line_of_the_contents_even_without_a_full_stop() -> None:
    text = APPROPRIATIONS.format(long="Canals are long. " * 20)
    labels = ["1", "2", "3", "101", "102", "103", "104", "1#2"]
    assert [section.label for section in list_sections(text)] == labels
    assert get_section(text, "1").start_offset == 0
    assert "Canals" in text[get_section(text, "3").start_offset :][:60]


OLD_LAW = """AN ACT

Section 1. This Act may be cited as the Canal Act.

CONTENTS

Sec. 2. Findings.

TITLE I—LOCKS

Sec. 3. Locks.

findings

Sec. 2.

(a) The Congress finds that canals are long, that locks are many, that boats wait before them for
days on end, and that whoever keeps a lock is owed a house beside it by those who pass through.

Sec. 3. Repealed.
"""


def test_the_contents_of_an_old_law_are_no_sections_of_it() -> None:
    assert [section.label for section in list_sections(OLD_LAW)] == ["1", "2", "3"]
    second = get_section(OLD_LAW, "2")
    assert "canals are long" in OLD_LAW[second.start_offset : second.end_offset]


@pytest.mark.data
def test_compiled_laws_have_the_sections_that_their_files_have(official: Path) -> None:
    with closing(store.connect(get_database_path(official))) as db:
        bodies = dict(
            db.execute(
                "SELECT record_id, body FROM texts WHERE record_id LIKE 'comps:%'"
            ).fetchall()
        )
    labels = {id: [section.label for section in list_sections(body)] for id, body in bodies.items()}
    assert labels["comps:1565"] == [str(number) for number in range(1, 30)]
    assert labels["comps:1656"] == [str(number) for number in range(2, 9)]  # 1 has no heading
    assert labels["comps:9748"] == ["1", "2", "3", "101", "104", "106", "108"]
    assert (len(labels["comps:1649"]), len(set(labels["comps:1649"]))) == (28, 28)


def test_a_section_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(InvalidArguments, match="there are 1, 2, 501, 501#2"):
        get_section(BILL, "77")


def test_two_versions_are_compared_section_by_section() -> None:
    newer = BILL.replace("$5", "$9").replace(
        "SEC. 2. FINDINGS. Congress finds that canals are long.", ""
    )
    newer += "\nSEC. 502. SUNSET. This Act ends.\n"
    told = compare_versions(BILL, newer)
    assert "[-$5-] {+$9+}" in told
    assert "Sec. 502. SUNSET. This Act ends.: added" in told
    assert "Sec. 2. FINDINGS. Congress finds that canals are long.: removed." in told
    assert told.startswith("2 sections are equal.")
    assert compare_versions(BILL, BILL) == "4 sections are equal."


AMENDING = """AN ACT

SEC. 101. DRUG PRICES. The Act is amended by adding at the end the following:

\u201cSEC. 102. NEGOTIATION. The Secretary shall negotiate.

\u201cSEC. 1192. DRUGS. Each drug is selected.\u201d.

(b) Effective date.\u2014This section takes effect at once.

SEC. 102. PENALTIES. Who does not negotiate pays.
"""


def test_a_section_holds_the_sections_that_it_writes_into_another_law() -> None:
    whole = get_section(AMENDING, "101")
    words = AMENDING[whole.start_offset : whole.end_offset]
    assert "shall negotiate" in words and "takes effect at once" in words
    assert "PENALTIES" not in words
    # The bill's own section goes before one of the same number that it quotes.
    assert get_section(AMENDING, "102").heading.startswith("PENALTIES")
    assert get_section(AMENDING, "102#2").heading.startswith("NEGOTIATION")
    quoted = get_section(AMENDING, "1192")
    assert "pays" not in AMENDING[quoted.start_offset : quoted.end_offset]
    changed = compare_versions(AMENDING, AMENDING.replace("Each drug", "Every drug"))
    assert changed.count("[-Each-] {+Every+}") == 1
    assert changed.startswith("3 sections are equal.")


def test_words_above_the_first_section_are_compared_too() -> None:
    told = compare_versions(BILL, BILL.replace("AN ACT", "AN ACT to dig canals", 1))
    assert "Above the first section" in told
    assert "{+to dig canals+}" in told
    whole = compare_versions("Resolved, That canals be dug.", BILL)
    assert "[-Resolved, That canals be dug.-]" in whole


def test_texts_without_sections_are_told_to_be_equal() -> None:
    text = "Resolved, That canals be dug."
    assert compare_versions(text, f"{text}\n") == "The two texts are equal, word for word."
    assert compare_versions(text, text.replace("be", "not be")) == (
        "Resolved, That canals {+not+} be dug."
    )


def test_a_word_is_marked_in_a_section_of_thousands() -> None:
    """By the policy base's diff, which compares sentences where words would be too many."""
    clauses = [f"The keeper of lock {number} may open it." for number in range(1_000)]
    older = f"SEC. 7. LOCKS.\n{' '.join(clauses)}"
    told = compare_versions(older, older.replace("lock 500 may", "lock 500 shall"))
    assert "[-may-] {+shall+}" in told or (
        "[-The keeper of lock 500 may open it.-] {+The keeper of lock 500 shall open it.+}" in told
    )
    assert len(told) < 2_000 < len(older)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("sections")
    write_world(data / "files", bills=2, votes=1)
    (text,) = (data / "files").glob("BILLS-*.xml")
    body = text.read_text("utf-8").replace("<num>", "<num>SEC. ")
    text.write_text(body, "utf-8")
    later = body.replace("Introduced", "Engrossed").replace("agency", "bureau")
    for code, new in (("ih", "eh"), ("is", "es")):
        later = later.replace(f"{code}</citableAs>", f"{new}</citableAs>")
    name = text.name.replace("ih.", "eh.").replace("is.", "es.")
    (data / "files" / name).write_text(later, "utf-8")
    load_files(data, data / "files", embed=False)
    return data


async def test_a_section_and_a_comparison_are_one_call(world: Path) -> None:
    async with serve_in_process(world) as ask:
        (bill,) = {
            row["id"]
            for row in (await ask.record("/bills"))["results"]
            if (await ask.get(f"/bills/{row['id']}/body")).status_code == 200
        }
        whole = await ask.answer("get_bill_text", bill_id=bill)
        older = next(version for version in whole["versions"] if version.startswith("i"))
        newer = next(version for version in whole["versions"] if version.startswith("e"))
        section = await ask.answer("get_bill_text", bill_id=bill, version=newer, section="2")
        assert section["text"].startswith("SEC. 2.")
        assert section["section"] == "2"
        assert (
            section["text"]
            in (await ask.answer("get_bill_text", bill_id=bill, version=newer))["text"]
        )
        over_rest = await ask.record(f"/bills/{bill}/body", version=newer, section="2")
        assert over_rest == section
        compared = await ask.answer(
            "get_bill_text", bill_id=bill, version=newer, compare_with=older
        )
        assert compared["compared_with"] == older
        assert "bureau" in compared["text"]
        refused = await ask.get(f"/bills/{bill}/body", section="99")
        assert refused.status_code == 422
        assert "there are 1, 2, 3" in refused.json()["error"]["message"]


# --- a law between two compilations of it ---

EDITION = """<?xml version="1.0"?>
<statuteCompilation xmlns="http://schemas.gpo.gov/xml/uslm"
    xmlns:dc="http://purl.org/dc/elements/1.1/"><meta>
<dc:title>Canal Act</dc:title><citableAs>Public Law 95–604</citableAs>
<property role="fileId">1649</property><congress>95</congress>
<approvedDate>1978-11-08</approvedDate></meta>
<preface><editionNote>[Amended through <currentThroughPublicLaw>Public Law {law}
</currentThroughPublicLaw>, Enacted <date date="{day}">{day}</date>]</editionNote></preface>
<main><section identifier="/us/pl/95/604/s1"><num value="1">Sec. 1.</num>
<content>This Act may be cited as the Canal Act.</content></section>
<section identifier="/us/pl/95/604/s2"><num value="2">Sec. 2.</num>
<content>The Secretary may make grants of {grant} for each lock that is kept by
a keeper who lives beside it, and who opens it for boats of every kind.</content></section>
</main></statuteCompilation>
"""


@pytest.fixture(scope="module")
def compiled_law(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base with two editions of a law, of which the older one was loaded last."""
    data = tmp_path_factory.mktemp("compiled")
    for number, (law, day, grant) in enumerate(
        [("116–260", "2020-12-27", "$9"), ("109–58", "2005-08-08", "$5")]
    ):
        folder = data / f"files{number}"
        folder.mkdir()
        edition = EDITION.format(law=law, day=day, grant=grant)
        (folder / "COMPS-1649.xml").write_text(edition, "utf-8")
        load_files(data, folder, embed=False)
    return data


@pytest.mark.parametrize("id", ["comps:1649", "COMPS-1649", "pl:95-604"])
async def test_the_amendments_of_a_law_are_what_differs_between_two_compilations(
    compiled_law: Path, id: str
) -> None:
    async with serve_in_process(compiled_law) as ask:
        newest = await ask.answer("get_bill_text", bill_id=id)
        changed = await ask.answer("get_bill_text", bill_id=id, compare_with="109-58")
        section = await ask.answer("get_bill_text", bill_id=id, version="109-58", section="2")
    assert (newest["version"], newest["versions"]) == ("116-260", ["116-260", "109-58"])
    assert newest["stage"] == "As amended through P.L. 116-260"
    assert "$9" in newest["text"]
    assert "[-$5-] {+$9+}" in changed["text"]
    assert "1 sections are equal" in changed["text"]
    assert (changed["version"], changed["compared_with"]) == ("116-260", "109-58")
    assert "$5" in section["text"]
    assert "may be cited" not in section["text"]


async def test_an_older_compilation_that_comes_later_does_not_take_the_place_of_a_newer_one(
    compiled_law: Path,
) -> None:
    async with serve_in_process(compiled_law) as ask:
        fetched = await ask.answer("fetch", id="comps:1649")
        found = await ask.answer("lexical_search", query="grants for each lock")
    assert fetched["record"]["amended_through"] == "pl:116-260"
    assert "$9" in fetched["text"]
    assert "$9" in found["results"][0]["snippet"]


async def test_a_text_of_no_versions_says_so(compiled_law: Path) -> None:
    async with serve_in_process(compiled_law) as ask:
        missing = await ask.call("get_bill_text", bill_id="pl:114-94")
        other = await ask.call("get_bill_text", bill_id="sap:119:2025-03-03:s9")
    assert "No compilation of pl:114-94 is loaded" in missing["content"][0]["text"]
    assert "versions are kept of bills" in other["content"][0]["text"]


async def test_a_hit_says_where_its_passage_begins_in_the_text(compiled_law: Path) -> None:
    async with serve_in_process(compiled_law) as ask:
        found = await ask.answer("lexical_search", query="grants for each lock")
        hit = found["results"][0]
        fetched = await ask.answer("fetch", id=hit["id"], offset=hit["offset"])
        whole = await ask.answer("fetch", id=hit["id"])
    assert fetched["text"] == whole["text"][hit["offset"] :]
    assert "grants of $9 for each lock" in fetched["text"]


async def test_a_hit_far_into_a_long_text_can_be_read_from_there(tmp_path: Path) -> None:
    filler = " ".join(f"Word {number} of a very long section on canals." for number in range(400))
    edition = EDITION.format(law="116–260", day="2020-12-27", grant="$9")
    edition = edition.replace("This Act may be cited as the Canal Act.", filler)
    (tmp_path / "COMPS-1649.xml").write_text(edition, "utf-8")
    load_files(tmp_path / "data", tmp_path / "COMPS-1649.xml", embed=False)
    async with serve_in_process(tmp_path / "data") as ask:
        found = await ask.answer("lexical_search", query="Secretary grants lock")
        hit = found["results"][0]
        fetched = await ask.answer("fetch", id=hit["id"], offset=hit["offset"])
        by_title = await ask.answer("lexical_search", query="Public Law 95-604 as amended through")
    assert hit["offset"] > 10_000
    assert "grants of $9 for each lock" in fetched["text"][:1_000]
    # A title is no passage of the text.
    assert by_title["results"][0]["offset"] in (None, 0)
