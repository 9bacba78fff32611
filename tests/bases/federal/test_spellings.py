"""Ids as people, records and official sites write them: 79 spellings, and citations by page."""

from pathlib import Path

import pytest

from readingroom.bases.federal.schema.ids import parse_federal_id
from tests.support.federal.base import load_files, serve_in_process, write_world
from tests.support.federal.world_texts import register_issue

pytestmark = pytest.mark.anyio

LDA = "1b1e0584-7e23-4f4d-a41d-141aa86190b8"
GRANULE = "CREC-2005-07-20-pt1-PgS8560"
BILL_PAGE = "https://www.congress.gov/bill/114th-congress"
SPELLINGS = {
    "hr:114:22": (
        *("hr:114:22", "HR:114:22", "bill:114-hr-22", "H.R. 22, 114th Congress", "H.R. 22 (114th)"),
        *("HR 22 114", "H.R.22, 114th Cong.", "H. R. 22 of the 114th Congress", "114hr22"),
        *("114th Congress, H.R. 22", "House Bill 22, 114th Congress", "BILLS-114hr22"),
        *("BILLS-114hr22enr", "BILLSTATUS-114hr22", "H.R. No. 22, 114th Congress"),
        *(f"{BILL_PAGE}/house-bill/22", f"{BILL_PAGE}/house-bill/22/text?format=txt"),
        *("congress.gov/bill/114th-congress/house-bill/22", "h.r. 22, 114th congress"),
        "https://www.govinfo.gov/app/details/BILLS-114hr22enr",
        "https://www.govinfo.gov/link/bills/114/hr/22",
        "https://www.govinfo.gov/content/pkg/BILLS-114hr22enr/pdf/BILLS-114hr22enr.pdf",
    ),
    "sconres:114:11": (
        *("S.Con.Res. 11 of the 114th Congress", "S. Con. Res. 11, 114th Congress"),
        *("Senate Concurrent Resolution 11, 114th Congress", "114sconres11"),
        f"{BILL_PAGE}/senate-concurrent-resolution/11",
    ),
    "hjres:114:3": ("House Joint Resolution 3, 114th Congress", "H.J.Res. 3 (114th Congress)"),
    "s:119:1": ("S. 1, 119th Congress", "Senate Bill 1, 119th Congress", "S.1 of the 119th"),
    "amdt:114:samdt:770": (
        *("amdt:114:samdt:770", "S.Amdt. 770, 114th Congress", "S.Amdt.770 (114th Congress)"),
        *("SA 770, 114th Congress", "Senate Amendment 770 of the 114th Congress"),
        "https://www.congress.gov/amendment/114th-congress/senate-amendment/770",
    ),
    "pl:115-16": (
        *("pl:115-16", "Pub. L. 115-16", "Pub.L. 115–16", "P.L. 115-16", "Public Law 115-16"),
        *("Public Law No. 115-16", "Pub. L. No. 115-16", "PLAW-115publ16", "PL 115-16"),
        *("https://www.govinfo.gov/app/details/PLAW-115publ16", "public law no. 115-16"),
        "https://www.congress.gov/115/plaws/publ16/PLAW-115publ16.htm",
        # As the last action of a bill prints it.
        *("Public Law No: 115-16", "https://www.govinfo.gov/link/plaw/115/public/16"),
    ),
    "pvtl:112-1": ("Private Law 112-1", "PLAW-112pvtl1", "Priv. L. 112-1"),
    "comps:1649": ("COMPS-1649", "https://www.govinfo.gov/app/details/COMPS-1649"),
    "2018-10199": (
        *("2018-10199", "fr:2018-10199", "FR Doc. 2018-10199", "FR Doc No. 2018-10199"),
        "https://www.federalregister.gov/d/2018-10199",
        "https://www.federalregister.gov/documents/2018/05/14/2018-10199/a-notice",
    ),
    f"crec:{GRANULE}": (
        GRANULE,
        f"https://www.govinfo.gov/app/details/CREC-2005-07-20/{GRANULE}",
    ),
    "S000033": (
        *("S000033", "member:s000033", "https://bioguide.congress.gov/search/bio/S000033"),
        "https://www.congress.gov/member/bernard-sanders/S000033",
    ),
    "HSAG": ("hsag00", "https://www.congress.gov/committee/house-agriculture/hsag00"),
    "R47892": ("R47892", "https://www.congress.gov/crs-product/R47892"),
    "house:118:1:37": (
        *("house:118:1:37", "https://clerk.house.gov/Votes/202337"),
        *("House Roll Call Vote 37, 2023", "House vote 37 in 2023"),
    ),
    "senate:108:2:213": (
        "https://www.senate.gov/legislative/LIS/roll_call_votes/vote1082/vote_108_2_00213.htm",
    ),
    "crpt:117hrpt118-pt2": (
        "H. Rept. 117-118, Part 2",
        "https://www.congress.gov/congressional-report/117th-congress/house-report/118/2",
    ),
    "crpt:117hrpt118": ("House Report 117-118", "H.Rept. 117-118", "House Report No. 117-118"),
    "crpt:117hrpt130-bk1": ("CRPT-117hrpt130-bk1",),
    "cbo:57625": ("https://www.cbo.gov/publication/57625",),
    "cfr:27:478.11": ("27 CFR 478.11", "27 C.F.R. § 478.11(a)", "27 CFR 478.11(b)(2)(iv)"),
    "cfr:27:479.35": ("https://www.govinfo.gov/link/cfr/27/479?sectionnum=35&year=2017",),
    f"lda:{LDA}": (f"https://lda.senate.gov/filings/public/filing/{LDA}/print/",),
    "hearing:house-102252": (
        "https://docs.house.gov/Committee/Calendar/ByEvent.aspx?EventID=102252",
    ),
}


def test_every_spelling_is_read() -> None:
    pairs = [(spelling, id) for id, spellings in SPELLINGS.items() for spelling in spellings]
    assert len(pairs) >= 79
    assert [parse_federal_id(spelling).id for spelling, _ in pairs] == [id for _, id in pairs]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("spellings")
    made = write_world(data / "files", bills=3, votes=1)
    # The same number in another Congress.
    name, text = next(made.bills(1, congress=118))
    (data / "files" / name).write_text(text, "utf-8")
    load_files(data, data / "files", embed=False)
    return data


async def test_a_bill_without_its_congress_is_answered_with_those_that_have_one(
    world: Path,
) -> None:
    async with serve_in_process(world) as ask:
        bills = (await ask.record("/bills", limit=200))["results"]
        kinds = {(bill["type"], bill["number"]) for bill in bills if bill["number"] == 1}
        for kind, number in kinds:
            having = sorted(bill["congress"] for bill in bills
                            if (bill["type"], bill["number"]) == (kind, number))  # fmt: skip
            for written in (f"{kind.upper()}{number}", f"{kind} {number}"):
                for tool, arguments in (
                    ("get_bill", {"bill_id": written}),
                    ("fetch", {"id": written}),
                ):
                    refused = await ask.call(tool, **arguments)
                    text = refused["content"][0]["text"]
                    assert refused["isError"]
                    assert "which Congress" in text
                    assert all(f"`{kind}:{congress}:{number}`" in text for congress in having)
                    assert refused["_meta"]["hint"]["congresses"] == having[::-1]
        unknown = await ask.call("get_bill", bill_id="H.R. 777")
        assert "None is loaded here" in unknown["content"][0]["text"]
        assert "hr:119:777" in unknown["content"][0]["text"]


async def test_what_a_record_prints_of_itself_fetches_it(world: Path) -> None:
    """Its citation and its official address, unless several records share that."""
    async with serve_in_process(world) as ask:
        tried = 0
        for source in ("bills", "public-laws", "federal-register", "congressional-record",
                       "roll-call-votes", "cbo-cost-estimates", "cfr-sections", "saps",
                       "statute-compilations", "committee-reports", "legislators"):  # fmt: skip
            for record in (await ask.record(f"/{source}", limit=3))["results"]:
                printed = {record["citation_string"]}
                if source not in ("roll-call-votes", "committee-reports"):
                    printed.add(record["url"])
                for text in printed:
                    answer = await ask.call("fetch", id=text)
                    said = answer["content"][0]["text"]
                    assert record["id"] in said, (text, said[:300])
                    tried += 1
        assert tried > 20


async def test_a_page_of_which_nothing_is_loaded_is_not_found_and_no_wrong_form(
    world: Path,
) -> None:
    async with serve_in_process(world) as ask:
        for page in ("143 Cong. Rec. S704", "82 Fed. Reg. 46121"):
            refused = await ask.call("fetch", id=page)
            text = refused["content"][0]["text"]
            assert "record_not_found" in text
            assert f"No record that begins on {page} is loaded here" in text


async def test_an_unknown_id_shows_valid_forms_in_its_text(world: Path) -> None:
    async with serve_in_process(world) as ask:
        refused = await ask.call("fetch", id="what is this")
        text = refused["content"][0]["text"]
        assert "unrecognized_id_format" in text
        assert all(form in text for form in ("hr:119:1", "S000033", "resolve_entity", "search"))


async def test_parts_orders_and_the_code_are_answered_with_what_is_loaded_of_them(
    tmp_path: Path,
) -> None:
    write_world(tmp_path / "files", bills=1)
    (tmp_path / "files/FR.xml").write_text(register_issue(), "utf-8")
    load_files(tmp_path, tmp_path / "files", embed=False)
    async with serve_in_process(tmp_path) as ask:
        for order in ("Executive Order 13999", "E.O. 13999", "EO 13999", "Exec. Order No. 13999"):
            assert (await ask.answer("fetch", id=order))["id"] == "presdoc:2018-90002", order
        part = await ask.call("fetch", id="7 CFR part 990")
        assert part["_meta"]["error_code"] == "unrecognized_id_format"
        assert '{"cfr_title": 7, "part": "990"}' in str(part)
        listed = await ask.answer(
            "list_records", source="cfr_sections", filters={"cfr_title": 7, "part": "990"}
        )
        assert listed["results"][0]["id"] in str(part)
        for citation, told in (
            ("7 CFR part 999", "Nothing of 7 CFR part 999 is loaded here"),
            ("Executive Order 13771", "Executive Order 13771 is not loaded here"),
            ("42 U.S.C. 7401 et seq.", "The U.S. Code itself is not covered"),
        ):
            missing = await ask.call("fetch", id=citation)
            assert missing["_meta"]["error_code"] == "record_not_found", citation
            assert told in str(missing), citation
            named = await ask.answer("resolve_entity", query=citation, entity_type="agencies")
            assert told in named["note"], citation
