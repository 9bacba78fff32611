"""Federal files in their native formats, made up from a seed: any number of them, always the same.

People, bills and rules here do not exist. Loaders read these files as they read official ones.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from typing import Any
from xml.sax.saxutils import escape

_FIRST_NAMES = "Ada Bela Cora Dana Elio Fern Gil Hana Ivo Juno Kira Lars Mina Nero Ola Pia"
_LAST_NAMES = (
    "Ashgrove Birchwell Coldwater Dunmore Eastlake Fairbrook Greyling Holloway Ironside Juniper "
    "Kestrel Larkspur Marlow Northgate Oakhurst Penrose Quillan Ravenel Stonebridge Thornbury"
)
_FIRST, _LAST = _FIRST_NAMES.split(), _LAST_NAMES.split()
_STATES = ("AL", "CA", "FL", "GA", "IL", "MA", "MI", "NY", "OH", "OR", "PA", "TX", "VA", "WA")
_VERBS = ("improve", "modernize", "study", "fund", "reform", "protect", "expand", "coordinate")
_THINGS = (
    "rural broadband",
    "veterans' health care",
    "coastal flood insurance",
    "school nutrition",
    "small business lending",
    "wildfire prevention",
    "drinking water standards",
    "semiconductor research",
    "freight rail safety",
    "opioid treatment",
    "child care subsidies",
    "orbital debris",
    "pollinator habitats",
    "tribal courts",
    "grid resilience",
    "passenger rail",
    "apprenticeships",
    "data privacy",
    "prescription drug prices",
    "airport noise",
)
_SUBJECTS = ("Taxation", "Health", "Education", "Energy", "Agriculture and Food", "Commerce")
_COMMITTEES = {"HSAG": "Agriculture", "HSWM": "Ways and Means"}
_PROSE = (
    "agency program grant eligible entity fiscal year report committee assessment funding State "
    "local service standard review implementation requirement authority public record notice plan "
    "facility technology safety training community measure cost benefit application approval term"
)
_WORDS = _PROSE.split()


@dataclass(frozen=True, slots=True)
class Member:
    """A legislator who does not exist."""

    bioguide: str
    lis: str
    first: str
    last: str
    state: str
    party: str
    senator: bool


class World:
    """Everything that follows from one seed."""

    def __init__(self, seed: int = 1, people: int = 120) -> None:
        self.seed = seed
        self._people = people

    @cached_property
    def members(self) -> list[Member]:
        chance = random.Random(f"{self.seed}/members")
        return [self._member(number, chance) for number in range(self._people)]

    def legislators(self) -> str:
        """`legislators-current.yaml`."""
        return "".join(map(_legislator_yaml, self.members))

    def bills(self, count: int, congress: int = 119) -> Iterator[tuple[str, str]]:
        """Names and contents of BILLSTATUS files."""
        for number in range(1, count + 1):
            chance = random.Random(f"{self.seed}/bill/{congress}/{number}")
            kind = chance.choice(("hr", "s"))
            yield (
                f"BILLSTATUS-{congress}{kind}{number}.xml",
                self._bill(congress, kind, number, chance),
            )

    def votes(self, count: int, congress: int = 118) -> Iterator[tuple[str, str]]:
        """Names and contents of House Clerk files; every member votes in each."""
        for number in range(1, count + 1):
            chance = random.Random(f"{self.seed}/vote/{congress}/{number}")
            yield f"roll{number:03}.xml", self._vote(congress, number, chance)

    def committees(self) -> str:
        """`committees-current.yaml`."""
        return "".join(
            f"- type: house\n  name: House Committee on {name}\n  thomas_id: {code}\n"
            f"  jurisdiction: {name} and what belongs to it.\n"
            for code, name in _COMMITTEES.items()
        )

    def rosters(self) -> str:
        """`committee-membership-current.yaml`: three members on each committee."""
        told = ""
        for place, code in enumerate(_COMMITTEES):
            told += f"{code}:\n"
            for rank, one in enumerate(self.members[3 * place : 3 * place + 3], start=1):
                told += f"- name: {one.first} {one.last}\n  party: majority\n  rank: {rank}\n"
                told += f"  bioguide: {one.bioguide}\n"
        return told

    def text(self, congress: int, kind: str, number: int) -> tuple[str, str]:
        """Name and content of the text of a bill as introduced."""
        chance = random.Random(f"{self.seed}/text/{congress}/{kind}/{number}")
        version = "ih" if kind[0] == "h" else "is"
        cite = f"{congress}{kind}{number}{version}"
        sections = "".join(
            f"<section><num>{place}.</num><content>{escape(self.passage(chance))}</content>"
            "</section>"
            for place in range(1, 4)
        )
        return (
            f"BILLS-{cite}.xml",
            f"""<?xml version="1.0" encoding="UTF-8"?>
<bill xmlns="http://schemas.gpo.gov/xml/uslm"><meta><citableAs>{cite}</citableAs>
<docStage>Introduced</docStage><congress>{congress}</congress></meta>
<main><longTitle><officialTitle>To {chance.choice(_VERBS)} {chance.choice(_THINGS)}.</officialTitle>
</longTitle>{sections}</main></bill>""",
        )

    def sentence(self, chance: random.Random, words: int = 18) -> str:
        said = [chance.choice(_WORDS) for _ in range(words - 3)]
        said.insert(
            chance.randrange(len(said)), f"{chance.choice(_VERBS)} {chance.choice(_THINGS)}"
        )
        return " ".join(said).capitalize() + "."

    def passage(self, chance: random.Random, length: int = 780) -> str:
        """Prose of about this many characters."""
        said = ""
        while len(said) < length:
            said += self.sentence(chance) + " "
        return said[:length]

    def _member(self, number: int, chance: random.Random) -> Member:
        last = chance.choice(_LAST)
        return Member(
            bioguide=f"{last[0]}9{number:05}",
            lis=f"S9{number:03}",
            first=chance.choice(_FIRST),
            last=last,
            state=chance.choice(_STATES),
            party=chance.choice(("Democrat", "Republican")),
            senator=number % 5 == 0,
        )

    def _bill(self, congress: int, kind: str, number: int, chance: random.Random) -> str:
        about = chance.choice(_THINGS)
        title = f"To {chance.choice(_VERBS)} {about}, and for other purposes."
        sponsor, *others = chance.sample(self.members, 1 + chance.randrange(6))
        day = date(2 * congress + 1787, 1, 10) + timedelta(days=chance.randrange(600))
        cosponsors = "".join(
            f"<item>{_person(one)}<sponsorshipDate>{day}</sponsorshipDate>"
            "<isOriginalCosponsor>True</isOriginalCosponsor></item>"
            for one in others
        )
        return f"""<?xml version="1.0" encoding="utf-8"?>
<billStatus><version>3.0.0</version><bill>
<number>{number}</number><type>{kind.upper()}</type><congress>{congress}</congress>
<updateDate>{day + timedelta(days=30)}T05:00:00Z</updateDate>
<originChamber>{"House" if kind[0] == "h" else "Senate"}</originChamber>
<introducedDate>{day}</introducedDate><title>{escape(title)}</title>
<policyArea><name>{chance.choice(_SUBJECTS)}</name></policyArea>
<subjects><legislativeSubjects>
<item><name>{escape(about.title())}</name></item></legislativeSubjects></subjects>
<sponsors><item>{_person(sponsor)}</item></sponsors>
<cosponsors>{cosponsors}</cosponsors>
<actions><item><actionDate>{day}</actionDate><text>Introduced.</text><type>IntroReferral</type>
</item></actions>
<summaries><summary><versionCode>00</versionCode><actionDate>{day}</actionDate>
<actionDesc>Introduced</actionDesc><text>{escape(self.passage(chance, 500))}</text></summary>
</summaries>
<latestAction><actionDate>{day}</actionDate><text>Referred to committee.</text></latestAction>
</bill></billStatus>"""

    def _vote(self, congress: int, number: int, chance: random.Random) -> str:
        day = date(2 * congress + 1787, 1, 10) + timedelta(days=number % 300)
        ballots = [(one, chance.choice(("Yea", "Nay", "Not Voting"))) for one in self.members]
        rows = "".join(
            f'<recorded-vote><legislator name-id="{one.bioguide}" party="{one.party[0]}" '
            f'state="{one.state}">{one.last}</legislator><vote>{cast}</vote></recorded-vote>'
            for one, cast in ballots
        )
        yeas = sum(cast == "Yea" for _, cast in ballots)
        nays = sum(cast == "Nay" for _, cast in ballots)
        return f"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE rollcall-vote PUBLIC "-//US Congress//DTDs/vote v1.0 20031119 //EN" "../vote.dtd">
<rollcall-vote><vote-metadata><congress>{congress}</congress><session>1st</session>
<rollcall-num>{number}</rollcall-num><legis-num>H R {number}</legis-num>
<vote-question>On Passage</vote-question><vote-type>YEA-AND-NAY</vote-type>
<vote-result>{"Passed" if yeas > nays else "Failed"}</vote-result>
<action-date>{day:%d-%b-%Y}</action-date>
<vote-totals><totals-by-vote><yea-total>{yeas}</yea-total><nay-total>{nays}</nay-total>
<present-total>0</present-total>
<not-voting-total>{len(ballots) - yeas - nays}</not-voting-total></totals-by-vote></vote-totals>
</vote-metadata><vote-data>{rows}</vote-data></rollcall-vote>"""


def register_document(number: str, day: str, title: str, **told: Any) -> dict[str, Any]:
    """A document as the Federal Register's API gives it."""
    return {
        "document_number": number,
        "type": "Rule",
        "title": title,
        "abstract": None,
        "publication_date": day,
        "agencies": [{"name": "Sample Agency", "slug": "sample-agency"}],
        "html_url": f"https://www.federalregister.gov/d/{number}",
        **told,
    }


def _person(member: Member) -> str:
    title = "Sen." if member.senator else "Rep."
    place = f"{member.party[0]}-{member.state}"
    return (
        f"<bioguideId>{member.bioguide}</bioguideId>"
        f"<fullName>{title} {member.last}, {member.first} [{place}]</fullName>"
        f"<party>{member.party[0]}</party><state>{member.state}</state>"
    )


def _legislator_yaml(member: Member) -> str:
    seat = "type: sen\n    class: 1" if member.senator else "type: rep\n    district: 1"
    return f"""- id:
    bioguide: {member.bioguide}
    lis: {member.lis}
  name:
    first: {member.first}
    last: {member.last}
    official_full: {member.first} {member.last}
  bio:
    gender: F
  terms:
  - {seat}
    start: '2025-01-03'
    end: '2027-01-03'
    state: {member.state}
    party: {member.party}
"""
