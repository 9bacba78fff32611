"""Names that everybody uses: bills, posts and agencies, measured over the official files.

First as somebody wrote them down, then as the official files print them, read by a script that uses
none of our readers.
"""

import html
import random
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.support.federal.base import serve_in_process

pytestmark = [pytest.mark.anyio, pytest.mark.data]

BILLS = {
    "Inflation Reduction Act": "hr:117:5376",
    "Build Back Better": "hr:117:5376",
    "Build Back Better Act": "hr:117:5376",
    "For the People Act": "hr:117:1",
    "NDAA FY22": "hr:117:4350",
    "2022 NDAA": "hr:117:4350",
    "National Defense Authorization Act 2022": "hr:117:4350",
    "PROMESA": "hr:114:5278",
    "Puerto Rico Oversight Act": "hr:114:5278",
    "SCRUB Act": "hr:114:1155",
    "Bipartisan Budget Act": "hr:114:1314",
    "WRDA 2016": "s:114:2848",
    "Water Resources Development Act": "s:114:2848",
    "TRUST Act": "hr:116:4907",
    "Hearing Protection Act": "hr:115:367",
    "Consolidated Appropriations Act 2022": "hr:117:2471",
    "US Innovation and Competition Act": "s:117:1260",
    "USICA": "s:117:1260",
    "Adoptive Family Relief Act": "s:114:1300",
    "Eugene Goodman gold medal": "s:117:35",
    "Sports Medicine Licensure Clarity": "hr:115:302",
    "Improving Rural Call Quality": "hr:114:2566",
    "Women Veterans health services act": "s:114:469",
    "Interior appropriations 2016": "hr:114:2822",
    "construction reform act": "hr:114:3106",
    "Inflation Reducton Act": "hr:117:5376",
    "IRA": "hr:117:5376",
    "rural health workforce act": "s:116:2902",
    "breastfeeding mothers jury duty": "hr:116:5183",
    "SAFE Banking Act": "hr:117:4350",
    "VAWA reauthorization 2022": "hr:117:2471",
    "TAA reauthorization": "hr:114:1314",
}
POSTS = {
    "Speaker of the House": "J000299",
    "Speaker": "J000299",
    "House Speaker": "J000299",
    "Senate majority leader": "T000250",
    "Senate minority leader": "S000148",
    "House minority leader": "J000294",
    "House majority leader": "S001176",
    "House majority whip": "E000294",
    "Senate minority whip": "D000563",
    "president pro tempore": "G000386",
    "chair of Ways and Means": "S001195",
    "ranking member of Ways and Means": "N000015",
    "chair of the Senate Judiciary Committee": "G000386",
    "chairman of House Agriculture": "T000467",
    "ranking member House Ag": "C001119",
    "chair of Senate Finance": "C000880",
    "House Republican Conference Chair": "M001136",
    "House Democratic leader": "J000294",
    "Texas 21st district": "R000614",
    "representative of Texas's 21st congressional district": "R000614",
    "TX-21": "R000614",
    "chair of Senate Banking": "S001184",
    "Speaker of the House in 2022": "P000197",
    "chair of HPSCI": "C001087",
    "Majority Leader of the Senate": "T000250",
}
AGENCIES = {
    "EPA": "agency:environmental-protection-agency",
    "FDA": "agency:food-and-drug-administration",
    "HHS": "agency:health-and-human-services-department",
    "Health and Human Services": "agency:health-and-human-services-department",
    "DOT": "agency:transportation-department",
    "Transportation Department": "agency:transportation-department",
    "Coast Guard": "agency:coast-guard",
    "USCG": "agency:coast-guard",
    "SEC": "agency:securities-and-exchange-commission",
    "FCC": "agency:federal-communications-commission",
    "FERC": "agency:federal-energy-regulatory-commission",
    "FAA": "agency:federal-aviation-administration",
    "CFPB": "agency:consumer-financial-protection-bureau",
    "Consumer Financial Protection Bureau": "agency:consumer-financial-protection-bureau",
    "USDA": "agency:agriculture-department",
    "Agriculture Department": "agency:agriculture-department",
    "DHS": "agency:homeland-security-department",
    "Homeland Security": "agency:homeland-security-department",
    "DOJ": "agency:justice-department",
    "Justice Department": "agency:justice-department",
    "Dept. of Energy": "agency:energy-department",
    "DOE": "agency:energy-department",
    "CMS": "agency:centers-for-medicare-medicaid-services",
    "Centers for Medicare and Medicaid": "agency:centers-for-medicare-medicaid-services",
    "CDC": "agency:centers-for-disease-control-and-prevention",
    "Commerce": "agency:commerce-department",
    "Interior": "agency:interior-department",
    "Fish & Wildlife": "agency:fish-and-wildlife-service",
    "FWS": "agency:fish-and-wildlife-service",
    "FDIC": "agency:federal-deposit-insurance-corporation",
    "Enviromental Protection Agency": "agency:environmental-protection-agency",
    "food and drug": "agency:food-and-drug-administration",
    "DOL": "agency:labor-department",
    "Labor": "agency:labor-department",
    "Education Department": "agency:education-department",
    "APHIS": "agency:animal-and-plant-health-inspection-service",
    "BIS": "agency:industry-and-security-bureau",
    "BOEM": "agency:ocean-energy-management-bureau",
    "CPSC": "agency:consumer-product-safety-commission",
    "ATF": "agency:alcohol-tobacco-firearms-and-explosives-bureau",
}


async def find_ranks(data: Path, entity_type: str, wanted: Mapping[str, str]) -> dict[str, int]:
    """Return the place of each wanted record among the answers, from 1; 99 if it is not there."""
    ranks = {}
    async with serve_in_process(data) as ask:
        for query, id in wanted.items():
            answer = await ask.answer("resolve_entity", query=query, entity_type=entity_type)
            ids = [record["id"] for record in answer["results"]]
            ranks[query] = ids.index(id) + 1 if id in ids else 99
    return ranks


def share_of(ranks: Mapping[str, int], at_most: int) -> float:
    return sum(rank <= at_most for rank in ranks.values()) / len(ranks)


async def test_bills_are_found_by_their_popular_names(official: Path) -> None:
    ranks = await find_ranks(official, "bills", BILLS)
    assert share_of(ranks, 3) >= 0.9, ranks


async def test_posts_are_found(official: Path) -> None:
    ranks = await find_ranks(official, "legislators", POSTS)
    assert share_of(ranks, 1) == 1.0, ranks


async def test_agencies_are_found_by_name_and_abbreviation(official: Path) -> None:
    ranks = await find_ranks(official, "agencies", AGENCIES)
    assert share_of(ranks, 1) >= 0.95, ranks


# --- names as the files print them ---

ISSUE = "federal/uslm/sample-files/FR-2017-10-03-uslm.xml"
SMALL_WORDS = frozenset(["and", "for", "of", "on", "states", "the", "united"])


def extract_words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", name.lower())) - SMALL_WORDS


def read_printed_agencies(path: Path) -> dict[str, str]:
    """Return agencies as an issue prints them, by every way it writes each.

    The name is that above a document; others are those of the contents (`Labor Department`), their
    slugs, and the abbreviations in brackets after a name.
    """
    xml = html.unescape(path.read_text("utf-8"))
    above = re.findall(r'<organization[^>]*:(?:AGENCY|SUBAGY)">\s*([^<]*?)\s*</organization>', xml)
    names = {extract_words(name): " ".join(name.split()) for name in above}
    contents = re.findall(
        r'<groupItem role="agency" id="([^"]+)"[^>]*>\s*(?:<ear.*?</ear>\s*)?<label[^>]*>([^<]+)<',
        xml,
    )
    written = {name: name for name in names.values()}
    for slug, label in contents:
        if name := names.get(extract_words(label)):
            written |= {slug: name, label: name, label.lower(): name}
    plain = " ".join(re.sub(r"<[^>]+>", " ", xml).split())
    for name in names.values():
        for abbreviation in re.findall(rf"(?i:\b{re.escape(name)}) \(([A-Z]{{2,7}})\)", plain):
            written[abbreviation] = name
    return written


async def test_agencies_are_found_as_an_issue_of_the_register_prints_them(
    official: Path, shared_data: Path
) -> None:
    written = read_printed_agencies(shared_data / ISSUE)
    assert len(written) >= 120
    wrong = []
    async with serve_in_process(official) as ask:
        for query, name in written.items():
            answer = await ask.answer("resolve_entity", query=query, entity_type="agencies")
            first = answer["results"][0]["name"] if answer["results"] else ""
            if extract_words(first) != extract_words(name):
                wrong.append((query, name, first))
    assert len(wrong) <= 0.05 * len(written), wrong


def read_printed_titles(paths: Iterable[Path]) -> dict[str, set[str]]:
    """Return short titles and popular names of bills, each with the bills whose files print it."""
    titles: dict[str, set[str]] = {}
    for path in paths:
        xml = path.read_text("utf-8")
        number = re.search(r"BILLSTATUS-(\d+)([a-z]+)(\d+)", path.name)
        assert number
        for item in re.findall(r"<item>(?:(?!<item>).)*?</item>", xml, re.DOTALL):
            kind = re.search(r"<titleType>([^<]*)", item)
            title = re.search(r"<title>([^<]*)", item)
            if kind and title and re.match("(?i)short title|popular title", kind[1].strip()):
                text = " ".join(html.unescape(title[1]).split())
                titles.setdefault(text, set()).add(f"{number[2]}:{number[1]}:{number[3]}")
    return titles


async def test_bills_are_found_by_every_short_title_that_their_files_print(
    official: Path, shared_data: Path
) -> None:
    titles = read_printed_titles(
        (shared_data / "federal" / "billstatus").rglob("*BILLSTATUS-*.xml")
    )
    assert len(titles) >= 100
    drawn = random.Random(19).sample(sorted(titles), 100)
    # As printed, and as people shorten it.
    queries = {title: titles[title] for title in drawn}
    queries |= {re.sub(r" of \d{4}$", "", title).lower(): titles[title] for title in drawn[:50]}
    missed = []
    async with serve_in_process(official) as ask:
        for query, ids in queries.items():
            answer = await ask.answer("resolve_entity", query=query[:200], entity_type="bills")
            if not ids & {record["id"] for record in answer["results"][:3]}:
                missed.append((query, ids))
    assert len(missed) <= 0.1 * len(queries), missed
