"""Sections of texts: one by its number, all as an outline, two versions compared."""

from pathlib import Path

import pytest

from readingroom.bases.federal.query.sections import (
    compare_versions,
    find_section,
    format_outline,
    list_sections,
)
from readingroom.core.errors import InvalidArguments
from tests.support.federal.base import asked, loaded, write_world

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
        found = find_section(BILL, written)
        assert BILL[found.start : found.end].strip() == (
            "SEC. 2. FINDINGS. Congress finds that canals are long."
        )
    assert "REPORTS" in find_section(BILL, "501#2").heading
    outline = format_outline(BILL).splitlines()
    assert len(outline) == 4
    assert f"[offset {BILL.index('SEC. 501')}]" in outline[2]


def test_a_section_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(InvalidArguments, match="there are 1, 2, 501, 501#2"):
        find_section(BILL, "77")


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
    loaded(data, data / "files", embed=False)
    return data


async def test_a_section_and_a_comparison_are_one_call(world: Path) -> None:
    async with asked(world) as ask:
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
