"""Parses the elements of BILLSTATUS XML: people, actions, votes, committees, summaries."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts.people import (
    format_name,
    parse_affiliation,
    parse_chamber,
)
from readingroom.bases.federal.formats.parts.xml import (
    get_text,
    parse_iso_date,
    strip_html,
)
from readingroom.bases.federal.schema.congress import SPOKEN, get_first_day
from readingroom.bases.federal.schema.entries import (
    Link,
)
from readingroom.bases.federal.schema.ids import (
    make_amendment_id,
    make_bill_id,
    make_committee_id,
    make_law_id,
    make_vote_id,
    parse_estimate_id,
)
from readingroom.bases.federal.schema.records import (
    BillAction,
    BillCommittee,
    BillSummary,
    CalendarNumber,
    CommitteeActivity,
    Cosponsor,
    CostEstimate,
    LatestAction,
    LinkKind,
    Person,
    RelatedBill,
    TextVersion,
)

MAX_EVIDENCE = 300
"""How many characters of an action are quoted as evidence of a link."""
_HOUSE_CALENDAR = re.compile(r"([UHPD])(\d{1,5})", re.ASCII)
_HOUSE_CALENDARS = {
    "U": "Union Calendar",
    "H": "House Calendar",
    "P": "Private Calendar",
    "D": "Discharge Calendar",
}
_COUNTED_LISTS = (
    ("cosponsors", "cosponsors/item", "countIncludingWithdrawnCosponsors"),
    ("actions", "actions/actions/item", "count"),
)
"""Lists that state how many items they have: where the items are, and the name of the count."""
# The oldest files leave the fields of votes and reports empty: only the words of actions name them.
_ROLL_CALL_TEXT = re.compile(r"\(Roll no\. (\d{1,4})\)|\bRecord Vote Number: (\d{1,4})\b", re.ASCII)
_REPORT_TEXT = re.compile(
    r"(?:^Reported |^Conference report |\breported an original measure|\breport filed by )"
    r".*?(H\. Rept\. \d+-\d+(?:, Part [IVX]+)?)|\bWith written report No\. (\d+-\d+)",
    re.ASCII,
)


def _is_recorded(action: Element) -> bool:
    return action.find("recordedVotes") is not None


def build_vote_links(items: Iterable[Element], actions: Iterable[BillAction]) -> Iterator[Link]:
    """The roll calls that actions record; the action's words say what was voted on.

    Several actions may tell of one: what stands in a field comes before what only words say.
    """
    pairs = zip(map(_is_recorded, items), actions, strict=True)
    for recorded, action in sorted(pairs, key=lambda pair: not pair[0]):
        field = "recordedVotes" if recorded else "text"
        for vote in action.votes:
            words = f"{action.date} {action.text}"[:MAX_EVIDENCE]
            yield Link(LinkKind.VOTE, vote, f"actions/item/{field}: {words}")


def parse_reports(element: Element, actions: Iterable[BillAction]) -> Iterator[tuple[str, str]]:
    """The reports on a bill as they are cited, each with what says so."""
    citations = _get_texts(element.iterfind("committeeReports/committeeReport/citation"))
    for citation in citations:
        yield citation, f"committeeReports/committeeReport: {citation}"
    # Only where the fields are empty: they are the better evidence.
    for action in actions if not citations else ():
        if match := _REPORT_TEXT.search(action.text):
            words = f"{action.date} {action.text}"[:MAX_EVIDENCE]
            yield match[1] or f"S. Rept. {match[2]}", f"actions/item/text: {words}"


def require_text(element: Element, *names: str) -> str:
    """Return a value that identifies the record. Raise `ValueError` if the file has none."""
    for name in names:
        if value := get_text(element, name):
            return value
    raise ValueError(f"no <{names[0]}> in this file")


def drop_empty_fields(facets: dict[str, Sequence[str | None]]) -> dict[str, list[str]]:
    return {field: [value for value in values if value] for field, values in facets.items()}


def _get_texts(elements: Iterable[Element]) -> list[str]:
    return [text for element in elements if (text := get_text(element))]


def _map_children(item: Element) -> dict[str, Element]:
    """Return the first child of each name: cheaper than a search for every name."""
    return {child.tag: child for child in reversed(item)}


def parse_person(item: Element) -> Person:
    return Person(**_parse_person_fields(_map_children(item)))


def _parse_person_fields(children: Mapping[str, Element]) -> dict[str, Any]:
    full = get_text(children.get("fullName")) or get_text(children.get("name")) or ""
    # Where a file has no fields for party, state and district, the name has them: [D-NC-12].
    affiliation = parse_affiliation(full)
    return {
        "bioguide_id": get_text(children.get("bioguideId")),
        "name": format_name(full),
        "party": get_text(children.get("party")) or affiliation["party"],
        "state": get_text(children.get("state")) or affiliation["state"],
        "district": get_text(children.get("district")) or affiliation["district"],
    }


def parse_cosponsor(item: Element) -> Cosponsor:
    children = _map_children(item)
    return Cosponsor(
        **_parse_person_fields(children),
        sponsored_at=parse_iso_date(get_text(children.get("sponsorshipDate"))),
        # The files have Python's spelling of a boolean.
        original=get_text(children.get("isOriginalCosponsor")) == "True",
        withdrawn_at=parse_iso_date(get_text(children.get("sponsorshipWithdrawnDate"))),
    )


def parse_action(item: Element, congress: int) -> BillAction:
    children = _map_children(item)
    date = parse_iso_date(get_text(children.get("actionDate"))) or ""
    text = get_text(children.get("text")) or ""
    recorded = [id for vote in children.get("recordedVotes", ()) for id in parse_vote_ids(vote)]
    return BillAction(
        date=date,
        time=get_text(children.get("actionTime")),
        text=text,
        type=get_text(children.get("type")),
        code=get_text(children.get("actionCode")),
        committees=[make_committee_id(code) for code in _list_committee_codes(children)],
        votes=recorded or list(_find_roll_calls(text, date, congress)),
    )


def _list_committee_codes(children: Mapping[str, Element]) -> list[str]:
    listed = [*children.get("committees", ())]
    if "committee" in children:
        listed.append(children["committee"])
    return [code for committee in listed if (code := get_text(committee, "systemCode"))]


def _find_roll_calls(text: str, date: str, congress: int) -> Iterator[str]:
    """`(Roll no. 58)` is the House's way to say it, `Record Vote Number: 13` the Senate's."""
    if not date:
        return
    # The words name no session. The first is that of the year in which the Congress began.
    session = 1 if int(date[:4]) <= get_first_day(congress).year else 2
    for house, senate in _ROLL_CALL_TEXT.findall(text):
        yield make_vote_id("house" if house else "senate", congress, session, house or senate)


def parse_law_ids(law: Element) -> Iterator[str]:
    if number := get_text(law, "number"):
        yield make_law_id(number, private="private" in (get_text(law, "type") or "").lower())


def parse_vote_ids(vote: Element) -> Iterator[str]:
    parts = [
        get_text(vote, name) for name in ("chamber", "congress", "sessionNumber", "rollNumber")
    ]
    if all(parts):
        yield make_vote_id(*[part or "" for part in parts])


def parse_latest_action(item: Element | None) -> LatestAction | None:
    text = get_text(item, "text")
    return (
        LatestAction(date=parse_iso_date(get_text(item, "actionDate")), text=text) if text else None
    )


def parse_committees(bill: Element) -> Iterator[BillCommittee]:
    # `billCommittees` is the extra level of the oldest generation.
    items = bill.findall("committees/item") + bill.findall("committees/billCommittees/item")
    for item in items:
        chamber = get_text(item, "chamber")
        for committee in (item, *item.findall("subcommittees/item")):
            if code := get_text(committee, "systemCode"):
                yield BillCommittee(
                    id=make_committee_id(code),
                    name=get_text(committee, "name") or code,
                    chamber=parse_chamber(chamber),
                    activities=_get_texts(committee.iterfind("activities/item/name")),
                    dated_activities=list(_parse_activities(committee)),
                )


def _parse_activities(committee: Element) -> Iterator[CommitteeActivity]:
    for item in committee.iterfind("activities/item"):
        if name := get_text(item, "name"):
            yield CommitteeActivity(name=name, date=parse_iso_date(get_text(item, "date")))


def parse_calendar_numbers(element: Element) -> Iterator[CalendarNumber]:
    """`U00125` is number 125 of the Union Calendar; the Senate's has a name and a number."""
    for item in element.iterfind("calendarNumbers/item"):
        stated = [get_text(item, "calendar"), get_text(item, "number")]
        house = next(filter(None, (_HOUSE_CALENDAR.fullmatch(text or "") for text in stated)), None)
        if house:
            yield CalendarNumber(calendar=_HOUSE_CALENDARS[house[1]], number=int(house[2]))
        elif stated[0]:
            digits = stated[1] or ""
            number = int(digits) if digits.isdecimal() else None
            yield CalendarNumber(calendar=stated[0], number=number)


def describe_miscounted_lists(element: Element, what: str) -> Iterator[str]:
    """Compare the cosponsors and actions of a bill or an amendment with the file's own counts."""
    for list_name, path, count_name in _COUNTED_LISTS:
        stated = get_text(element, f"{list_name}/{count_name}") or ""
        listed = len(element.findall(path))
        if stated.isdecimal() and int(stated) > listed:
            yield f"{what} has {stated} {list_name} by its own count and {listed} in the file"


def count_cosponsors(element: Element, cosponsors: Sequence[Cosponsor]) -> int:
    """Return how many cosponsor now: who withdrew stays listed, with a date.

    The oldest files tell of an amendment only how many there are, and not who.
    """
    stated = get_text(element, "cosponsors/currentCount") or ""
    if not cosponsors and stated.isdecimal():
        return int(stated)
    return sum(cosponsor.withdrawn_at is None for cosponsor in cosponsors)


def parse_subjects(element: Element) -> Iterator[str]:
    for path in (
        "subjects/legislativeSubjects/item/name",
        "subjects/billSubjects/legislativeSubjects/item/name",
        "subjects/billSubjects/otherSubjects/item/name",
    ):
        yield from _get_texts(element.iterfind(path))


def parse_summaries(element: Element) -> Iterator[BillSummary]:
    for path in ("summaries/summary", "summaries/billSummaries/item"):
        for item in element.iterfind(path):
            # The text is HTML in a CDATA section or escaped: to us it is text either way.
            text = item.findtext("text") or item.findtext("cdata/text") or ""
            if plain := strip_html(text):
                yield BillSummary(
                    version=get_text(item, "versionCode"),
                    date=parse_iso_date(get_text(item, "actionDate")),
                    description=get_text(item, "actionDesc") or get_text(item, "name"),
                    text=plain,
                )


def parse_short_titles(element: Element) -> list[str]:
    titles = (
        get_text(item, "title")
        for item in element.iterfind("titles/item")
        if "short" in (get_text(item, "titleType") or "").lower()
    )
    return list(dict.fromkeys(title for title in titles if title))


def parse_text_versions(element: Element) -> list[TextVersion]:
    return [
        TextVersion(
            type=get_text(item, "type") or "",
            date=parse_iso_date(get_text(item, "date")),
            url=get_text(item, "formats/item/url"),
        )
        for item in element.iterfind("textVersions/item")
    ]


def parse_related_bills(element: Element) -> Iterator[RelatedBill]:
    for item in element.iterfind("relatedBills/item"):
        congress, kind, number = (get_text(item, name) for name in ("congress", "type", "number"))
        kind = re.sub(r"[.\s]", "", kind or "").lower()  # the oldest files write `H.Res.`
        if congress and number and kind in SPOKEN:
            yield RelatedBill(
                id=make_bill_id(congress, kind, number),
                title=get_text(item, "title") or get_text(item, "latestTitle"),
                relationships=_get_texts(item.iterfind("relationshipDetails/item/type")),
            )


def parse_cost_estimate(item: Element) -> CostEstimate:
    # GPO has dropped the `rpt` from these names; the oldest files still have it.
    url = get_text(item, "url") or get_text(item, "rptUrl")
    return CostEstimate(
        id=parse_estimate_id(url or ""),
        title=get_text(item, "title") or get_text(item, "rptTitle") or "Cost estimate",
        date=parse_iso_date(get_text(item, "pubDate") or get_text(item, "rptPubDate")),
        url=url,
    )


def parse_amended_id(item: Element) -> str | None:
    amended = item.find("amendedAmendment")
    parts = [get_text(amended, name) for name in ("congress", "type", "number")]
    return make_amendment_id(*[part or "" for part in parts]) if all(parts) else None
