"""Files of the federal registries in their native formats, made up from a seed.

Lobbyists, dockets and meetings here do not exist. Loaders read these files as official ones.
"""

import json
import random
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any
from uuid import UUID
from xml.sax.saxutils import escape

from tests.support.federal.world import Member, World

_FIRMS = ("Alder & Finch", "Brookline Partners", "Capstone Row", "Dovetail Strategies")
_CLIENTS = ("Sample Rail Association", "Orchard Growers of Nowhere", "Made-up Batteries, Inc.")
_ISSUES = (("TAX", "Taxation/Internal Revenue Code"), ("TRA", "Transportation"), ("ENG", "Energy"))
_QUARTERS = ("first_quarter", "second_quarter", "third_quarter", "fourth_quarter")
_AGENCIES = ("EPA-HQ-OAR", "FAA", "USCG", "APHIS")
_COMMITTEES = (("RU00", "Committee on Rules"), ("AG00", "Committee on Agriculture"))


def filings(world: World, count: int) -> str:
    """A page of /api/v1/filings/; every fifth filing amends the one before it."""
    told = [_filing(world, number) for number in range(count)]
    page = {"count": count, "next": None, "previous": None, "results": told}
    return json.dumps(page, indent=1)


def dockets(world: World, count: int) -> Iterator[tuple[str, str]]:
    """Names and contents of /v4/dockets/ID."""
    for number in range(1, count + 1):
        chance = random.Random(f"{world.seed}/docket/{number}")
        id = f"{chance.choice(_AGENCIES)}-2025-{number:04}"
        yield f"docket-{id}.json", json.dumps({"data": _docket(world, id, chance)})


def meetings(world: World, count: int) -> Iterator[tuple[str, str]]:
    """Names and contents of the House's XML, each on one bill of the 119th Congress."""
    for number in range(1, count + 1):
        chance = random.Random(f"{world.seed}/meeting/{number}")
        yield f"HMTG-119-{number:05}.xml", _meeting(world, number, chance)


def witnesses(world: World, meeting: int) -> str:
    """The list of witnesses of one of those meetings."""
    chance = random.Random(f"{world.seed}/witnesses/{meeting}")
    panel = "".join(
        f"<witness><honorific>Dr.</honorific><firstname>{one.first}</firstname>"
        f"<lastname>{one.last}</lastname><position>Director</position>"
        f"<organization>{chance.choice(_CLIENTS)}</organization><witness-documents>"
        '<witness-document><files><file doc-url="http://docs.house.gov/'
        f'HHRG-119-RU00-Bio-{meeting}.pdf"/></files></witness-document></witness-documents>'
        "</witness>"
        for one in chance.sample(world.members, 2)
    )
    return f'<witness-list meeting-id="{900000 + meeting}"><panel>{panel}</panel></witness-list>'


def api_meeting(world: World, event: int) -> str:
    """A meeting of the Senate, as api.congress.gov gives it."""
    chance = random.Random(f"{world.seed}/event/{event}")
    told = {
        "eventId": str(event),
        "updateDate": "2025-04-02T10:00:00Z",
        "congress": 119,
        "type": "Meeting",
        "title": f"Business meeting to consider {world.sentence(chance, 8)}",
        "meetingStatus": "Scheduled",
        "date": "2025-04-01T14:30:00Z",
        "chamber": "Senate",
        "committees": [{"systemCode": "ssaf00", "name": "Senate Agriculture Committee"}],
        "location": {"room": "328A", "building": "Russell Senate Office Building"},
        "witnesses": [{"name": "Dr. Ada Ashgrove", "position": "Head", "organization": "Nobody"}],
        "relatedItems": {"bills": [{"type": "S", "number": "3", "congress": 119}]},
    }
    return json.dumps({"committeeMeeting": told})


def api_hearing(jacket: int, event: int) -> str:
    """The printed record of that meeting."""
    told = {
        "jacketNumber": jacket,
        "updateDate": "2025-09-02T10:00:00Z",
        "congress": 119,
        "chamber": "Senate",
        "title": "A MADE-UP HEARING ON FREIGHT RAIL SAFETY",
        "citation": "S.Hrg.119-7",
        "committees": [{"systemCode": "ssaf00", "name": "Senate Agriculture Committee"}],
        "dates": [{"date": "2025-04-01"}],
        "associatedMeeting": {"eventId": str(event)},
    }
    return json.dumps({"hearing": told})


def district_offices(world: World) -> str:
    """`legislators-district-offices.yaml`."""
    return "".join(map(_office, world.members))


def social_media(world: World) -> str:
    """`legislators-social-media.yaml`."""
    return "".join(
        f"- id:\n    bioguide: {one.bioguide}\n  social:\n    twitter: Rep{one.first}{one.last}\n"
        for one in world.members
    )


def _filing(world: World, number: int) -> dict[str, Any]:
    amends = number % 5 == 4
    # An amendment repeats registrant, client and quarter of the filing before it.
    same = random.Random(f"{world.seed}/filing/{number - 1 if amends else number}")
    chance = random.Random(f"{world.seed}/filing/own/{number}")
    firm, client = same.randrange(len(_FIRMS)), number - 1 if amends else number
    quarter, code = same.randrange(4), same.choice(_ISSUES)
    posted = date(2025, 4, 1) + timedelta(days=number)
    form = f"{quarter + 1}A" if amends else f"Q{quarter + 1}"
    bill = f"H.R. {chance.randrange(1, 30)}"
    return {
        "filing_uuid": str(UUID(int=chance.getrandbits(128), version=4)),
        "filing_type": form,
        "filing_type_display": f"Quarter {quarter + 1} - {'Amendment' if amends else 'Report'}",
        "filing_year": 2025,
        "filing_period": _QUARTERS[quarter],
        "income": f"{chance.randrange(1, 40)}0000.00",
        "expenses": None,
        "dt_posted": f"{posted}T12:00:00-04:00",
        "registrant": {"id": 900 + firm, "name": _FIRMS[firm].upper()},
        "client": {"id": 7000 + client, "name": _CLIENTS[client % len(_CLIENTS)].upper()},
        "lobbying_activities": [
            {
                "general_issue_code": code[0],
                "general_issue_code_display": code[1],
                "description": f"{world.sentence(chance, 10)} {bill}, a bill on rail.",
                "lobbyists": [{"lobbyist": {"first_name": "PIA", "last_name": "MARLOW"}}],
                "government_entities": [{"id": 1, "name": "SENATE"}],
            }
        ],
    }


def _docket(world: World, id: str, chance: random.Random) -> dict[str, Any]:
    return {
        "id": id,
        "type": "dockets",
        "attributes": {
            "agencyId": id.partition("-")[0],
            "docketType": chance.choice(("Rulemaking", "Nonrulemaking")),
            "dkAbstract": world.passage(chance, 300),
            "title": world.sentence(chance, 9),
            "rin": "Not Assigned",
            "keywords": ["noise"],
            "modifyDate": f"2025-03-{chance.randrange(1, 28):02}T07:09:24Z",
        },
    }


def _meeting(world: World, number: int, chance: random.Random) -> str:
    code, committee = chance.choice(_COMMITTEES)
    bill = f"H.R. {chance.randrange(1, 30)}"
    day = date(2025, 3, 1) + timedelta(days=number)
    title = f"{bill}\u2014{world.sentence(chance, 7)}"
    return f"""<committee-meeting congress-num="119" session-num="1"
 meeting-id="HMTG{900000 + number}" meeting-type="HMTG" update-date="{day}T10:00:00">
<current-status>S</current-status><meeting-details>
<committees><committee-name id="{code}">{committee}</committee-name></committees>
<meeting-date><calendar-date>{day}</calendar-date><start-time>17:00:00</start-time></meeting-date>
<meeting-location><capitol-complex><room>H-313</room><building>CAPITOL</building></capitol-complex>
</meeting-location><meeting-title>{escape(title)}</meeting-title></meeting-details>
<meeting-documents><meeting-document type="BR"><legis-num>{bill}</legis-num></meeting-document>
</meeting-documents></committee-meeting>"""


def _office(member: Member) -> str:
    return f"""- id:
    bioguide: {member.bioguide}
  offices:
  - id: {member.bioguide}-nowhere
    address: 1 Made-up St.
    city: Nowhere
    state: {member.state}
    zip: '00000'
    phone: 202-555-0100
"""
