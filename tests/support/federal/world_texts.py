"""Federal texts in their native formats, made up from a seed: what no official file here shows.

Nothing here was said, reported or estimated. Loaders read these files as they read official ones.
"""

import json
import random
from collections.abc import Iterator
from datetime import date
from html import escape
from typing import Any

from tests.support.federal.world import Member, World

Files = Iterator[tuple[str, str]]
_USLM = 'xmlns="http://schemas.gpo.gov/xml/uslm" xmlns:dc="http://purl.org/dc/elements/1.1/"'
_THINGS = ("lighthouses", "ferries", "orchards", "observatories", "canals", "seed banks")


def every_text(world: World) -> Files:
    """One small file or two of each format."""
    yield from record_issue(world, date(2025, 3, 4))
    yield from crs_reports(world, 3)
    yield from committee_reports(world, 2)
    yield "119congress-cost-estimates.xml", cost_estimates(world, 3)
    yield "CFR-2025-title7-vol1-uslm.xml", regulations(world, 3)
    yield "117publ103-uslm.xml", law(world)
    yield "COMPS-90001.xml", compilation(world, 90001)


# --- the Congressional Record ---


def record_issue(world: World, day: date, items: int = 4) -> Files:
    """A day's issue: `mods.xml`, and a page for each item; the last prints amendments."""
    issue = f"CREC-{day}"
    chance = random.Random(f"{world.seed}/crec/{day}")
    members = chance.sample(world.members, items)
    told = []
    for number, member in enumerate(members, start=1):
        granule = f"{issue}-pt1-Pg{'S' if member.senator else 'H'}{100 + number}"
        title = f"IN PRAISE OF {chance.choice(_THINGS).upper()}"
        told.append(_constituent(granule, title, member, day, number))
        said = f"  Mr. {member.last.upper()}. {world.passage(chance, 400)}\n"
        yield f"{granule}.htm", _page(day, granule.rpartition("Pg")[2], title, said)
    granule = f"{issue}-pt1-PgS{100 + items + 1}"
    yield f"{granule}.htm", _page(day, f"S{101 + items}", "TEXT OF AMENDMENTS", _amendments(world))
    yield "mods.xml", _mods(issue, day, told)


def _mods(issue: str, day: date, constituents: list[str]) -> str:
    return f"""<mods xmlns="http://www.loc.gov/mods/v3" version="3.3">
<extension><collectionCode>CREC</collectionCode></extension>
<originInfo><dateIssued encoding="w3cdtf">{day}</dateIssued></originInfo>
<extension><docClass>CREC</docClass><accessId>{issue}</accessId><volume>{day.year - 1854}</volume>
<issue>41</issue><congress>119</congress><session>1</session></extension>
{"".join(constituents)}</mods>"""


def _constituent(granule: str, title: str, member: Member, day: date, bill: int) -> str:
    page = granule.rpartition("Pg")[2]
    return f"""<relatedItem type="constituent" ID="id-{granule}">
<titleInfo><title>{escape(title)}</title></titleInfo>
<part type="article"><extent unit="pages"><start>{page}</start><end>{page}</end></extent></part>
<extension><granuleClass>{"SENATE" if member.senator else "HOUSE"}</granuleClass>
<accessId>{granule}</accessId><subGranuleClass>ALLOTHER</subGranuleClass>
<pagePrefix>{page[0]}</pagePrefix><chamber>{"SENATE" if member.senator else "HOUSE"}</chamber>
<granuleDate>{day}</granuleDate>
<congMember bioGuideId="{member.bioguide}" chamber="{page[0]}" congress="119"
 party="{member.party[0]}" role="SPEAKING" state="{member.state}">
<name type="parsed">Mr. {member.last.upper()}</name>
<name type="authority-fnf">{member.first} {member.last}</name></congMember>
<bill congress="119" context="OTHER" number="{bill}" type="HR"></bill>
<law congress="117" isPrivate="false" number="103"></law>
</extension></relatedItem>"""


def _page(day: date, page: str, title: str, said: str) -> str:
    part = {"H": "House", "S": "Senate"}[page[0]]
    return f"""<html>
<head><title>Congressional Record, Volume {day.year - 1854} Issue 41</title></head>
<body><pre>
[Congressional Record Volume {day.year - 1854}, Number 41 ({day:%A, %B} {day.day}, {day.year})]
[{part}]
[Page {page}]
From the Congressional Record Online through the Government Publishing Office [www.gpo.gov]


{title:^70}

{escape(said)}
</pre></body>
</html>"""


def _amendments(world: World) -> str:
    chance = random.Random(f"{world.seed}/amendments")
    return "\n".join(
        f"  SA {number}. Mr. {chance.choice(world.members).last.upper()} submitted an amendment "
        f"intended to be proposed by him to the bill H.R. {number - 900}; as follows:\n"
        f"       {world.passage(chance, 200)}\n"
        for number in (901, 902)
    )


# --- api.congress.gov ---


def crs_reports(world: World, count: int) -> Files:
    """`/crsreport/R99001` and on."""
    for number in range(1, count + 1):
        chance = random.Random(f"{world.seed}/crs/{number}")
        told = {
            "id": f"R{99000 + number}",
            "status": "Active" if number % 3 else "Archived",
            "contentType": "Reports",
            "publishDate": f"2025-0{1 + number % 9}-05T11:34:25Z",
            "updateDate": f"2025-0{1 + number % 9}-07T01:36:49Z",
            "version": number,
            "title": f"Federal Policy on {chance.choice(_THINGS).title()}",
            "authors": [{"author": f"{one.first} {one.last}"} for one in world.members[:2]],
            "topics": [{"topic": "Transportation Policy"}],
            "relatedMaterials": [
                {"congress": 119, "number": str(number), "type": "HR", "title": None},
                {"congress": 117, "number": "103", "type": "PUB", "title": None},
            ],
            "formats": [{"format": "PDF", "url": f"https://example.gov/R{99000 + number}.pdf"}],
            "summary": f"<p>{world.passage(chance, 900)}</p><p>{world.sentence(chance)}</p>",
        }
        yield f"{told['id']}.json", _answer(CRSReport=told)


def committee_reports(world: World, count: int) -> Files:
    """`/committee-report/119/hrpt/901` and on, each with the page that holds its text."""
    for number in range(901, 901 + count):
        chance = random.Random(f"{world.seed}/crpt/{number}")
        title = f"{chance.choice(_THINGS).upper()} ACT"
        told = {
            "citation": f"H. Rept. 119-{number}",
            "congress": 119,
            "type": "HRPT",
            "number": number,
            "part": 1,
            "chamber": "House",
            "sessionNumber": 1,
            "isConferenceReport": False,
            "issueDate": "2025-06-07T04:00:00Z",
            "updateDate": "2025-06-21T23:26:16Z",
            "title": title,
            "reportType": "H.Rept.",
            "committees": [{"systemCode": "hsag00", "name": "Agriculture Committee"}],
            "associatedBill": [{"congress": 119, "type": "HR", "number": str(number - 900)}],
        }
        yield f"hrpt{number}.json", _answer(committeeReports=[told])
        yield (
            f"CRPT-119hrpt{number}.htm",
            f"<html>\n<title> - {title}</title>\n<body><pre>\n[House Report 119-{number}]\n"
            "[From the U.S. Government Publishing Office]\n\n"
            f"{escape(world.passage(chance, 1200))}\n</pre></body></html>",
        )


def _answer(**told: Any) -> str:
    return json.dumps({**told, "request": {"contentType": "application/json", "format": "json"}})


# --- CBO ---


def cost_estimates(world: World, count: int) -> str:
    """CBO's list of a Congress; the last names no bill, as some do."""
    items = ""
    for number in range(count):
        chance = random.Random(f"{world.seed}/cbo/{number}")
        bill = f"H.R. {number + 1}" if number < count - 1 else ""
        title = f"{bill}, {chance.choice(_THINGS).title()} Act" if bill else "Suspended rules"
        items += (
            f'<item key="{number}"><Title>{title}</Title>'
            "<Date>Fri, 11 Apr 2025 17:00:00 -0400</Date>"
            f"<Link>https://www.cbo.gov/publication/{90001 + number}</Link>"
            f"<Description>{world.passage(chance, 300)}</Description>"
            f"<Bill_Number>{bill}</Bill_Number></item>"
        )
    return f'<?xml version="1.0"?>\n<response>{items}</response>'


# --- USLM ---


def regulations(world: World, count: int) -> str:
    """A volume of the CFR with one part and its appendix; the last section has a letter."""
    chance = random.Random(f"{world.seed}/cfr")
    sections = ""
    for number in range(1, count + 1):
        printed = f"990.{number}" if number < count else f"990.{number - 1}a"
        sections += f"""<section identifier="/us/cfr/t7/s990.{number}">
<num value="990.{number}">\u00a7\u2009{printed}</num>
<heading>Upkeep of {chance.choice(_THINGS)}.</heading>
<content><p>{world.passage(chance, 300)}</p>
<source>[<ref href="/us/fr/90/1234">90 FR 1234</ref>]</source></content></section>"""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<cfrDoc {_USLM}><meta><dc:title>Title 7 Agriculture</dc:title><docNumber>7</docNumber>
<docReleasePoint>2025-01-01</docReleasePoint></meta>
<main><title><chapter><num value="I">CHAPTER I\u2014</num><heading>SAMPLE AGENCY</heading>
<part identifier="/us/cfr/t7/p990"><num value="990">PART 990\u2014</num>
<heading>PUBLIC WORKS</heading>
<authority><heading>Authority:</heading> <ref href="/us/pl/117/103">Pub. L. 117\u2013103</ref>,
<ref href="/us/usc/t7/s1621">7 U.S.C. 1621</ref>.</authority>
{sections}<appendix><heading>Appendix A to Part 990\u2014Upkeep Forms</heading>
<p>As <ref href="/us/cfr/t7/s990.1">7 CFR 990.1</ref> requires. {world.passage(chance, 200)}</p>
</appendix></part></chapter></title></main></cfrDoc>"""


def law(world: World) -> str:
    """Public Law 117-103, which other made-up files refer to."""
    chance = random.Random(f"{world.seed}/law")
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<pLaw {_USLM}><meta><dc:title>Public Law 117\u2013103: To keep up public works.</dc:title>
<dc:type>Public Law</dc:type><docNumber>103</docNumber>
<citableAs>Public Law 117\u2013103</citableAs><citableAs>136 Stat. 49</citableAs>
<congress>117</congress><publicPrivate>public</publicPrivate></meta>
<main><longTitle><officialTitle>To keep up public works.</officialTitle>
<sidenote><p>Mar. 15, 2022</p><p><ref href="/us/bill/117/hr/1">[H.R. 1]</ref></p></sidenote>
</longTitle><section><num value="1">SECTION 1. </num>
<content>{world.passage(chance, 600)}</content></section></main></pLaw>"""


def compilation(world: World, number: int) -> str:
    chance = random.Random(f"{world.seed}/comps/{number}")
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<statuteCompilation {_USLM}><meta><dc:title>PUBLIC {chance.choice(_THINGS).upper()} ACT</dc:title>
<citableAs>Public Law 117\u2013103, as amended</citableAs><docNumber>103</docNumber>
<currentThroughPublicLaw>117\u2013103</currentThroughPublicLaw>
<property role="fileId">{number}</property><congress>117</congress>
<approvedDate>2022-03-15</approvedDate></meta>
<preface><editionNote>[As Amended Through
<currentThroughPublicLaw>P.L. 118\u201342</currentThroughPublicLaw>, Enacted
<date date="2024-03-09">March 9, 2024</date>]</editionNote></preface>
<main><section identifier="/us/sComp/117/103/s1"><num value="1">SEC. 1. </num>
<heading>UPKEEP.</heading><content>{world.passage(chance, 900)}</content></section></main>
</statuteCompilation>"""


# --- the Federal Register ---


def register_issue(leave_out: str = "") -> str:
    """An issue with a notice and an order of the President, a rule and a notice of an agency.

    Its contents list all four; `leave_out` is the number of one that the file does not hold.
    """
    documents = {
        "2018-90001": ("presidentialDoc", "Continuation of Sample Emergency", _SIGNED_NOTICE),
        "2018-90002": ("presidentialDoc", "Efficient Sample Operations", _SIGNED_ORDER),
        "2018-90003": ("rule", "Sample Rule", _AGENCY_DOCUMENT),
        "2018-90004": ("notice", "Sample Notice", _AGENCY_DOCUMENT),
    }
    listed, printed = "", ""
    for number, (tag, title, content) in documents.items():
        dashed = number.replace("-", "\u2013")
        listed += f"""<referenceItem><label>{title}
, </label><target href="/us/fr/83/21900">21900</target>
<target role="fr-doc-id" href="/us/fr/83/frdoc{number}">{dashed}</target></referenceItem>"""
        if number != leave_out:
            printed += f"""<component><{tag} identifier="/us/fr/83/frdoc{number}"><meta>
<dc:title>Federal Register</dc:title><startingPage>21900</startingPage>
<docNumber>{dashed}</docNumber></meta>{content.format(title=title)}</{tag}></component>"""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<frDoc {_USLM}><meta><dc:type>Federal Register Issue</dc:type><volume>83</volume>
<dc:date>2018-05-10</dc:date></meta><main><collection>
<component><meta><docNumber>FR20180510_Contents</docNumber></meta><main>
<toc role="fr-contents">{listed}</toc></main></component>
<component><meta><docNumber>FR20180510_Documents</docNumber></meta><main>
<collection>{printed}</collection></main></component></collection></main></frDoc>"""


_SIGNED_NOTICE = """<preface><heading>Title 3\u2014</heading><heading>The President</heading>
<p>Notice of May 9, 2018</p></preface>
<main><heading>Continuation of the National Emergency About Sample Rivers</heading>
<p>The emergency goes on.</p></main>"""
_SIGNED_ORDER = """<preface><docTitle>Executive Order 13999 of May 7, 2018</docTitle>
<heading>{title}</heading></preface><main><p>Agencies shall lead by example.</p></main>"""
_AGENCY_DOCUMENT = """<preface><organization style="-uslm-sgm:AGENCY">DEPARTMENT OF SAMPLES
</organization><subject>{title}</subject></preface><main><p>Samples are kept.</p></main>"""
