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


def build_vote_links(
    action_elements: Iterable[Element], actions: Iterable[BillAction]
) -> Iterator[Link]:
    """The roll calls that actions record; the action's words say what was voted on.

    Several actions may tell of one: what stands in a field comes before what only words say.
    """
    pairs = zip(map(_is_recorded, action_elements), actions, strict=True)
    for recorded, action in sorted(pairs, key=lambda pair: not pair[0]):
        stating_field = "recordedVotes" if recorded else "text"
        for vote in action.votes:
            evidence = f"{action.date} {action.text}"[:MAX_EVIDENCE]
            yield Link(LinkKind.VOTE, vote, f"actions/item/{stating_field}: {evidence}")


def parse_reports(
    bill_element: Element, actions: Iterable[BillAction]
) -> Iterator[tuple[str, str]]:
    """The reports on a bill as they are cited, each with what says so."""
    citations = _get_texts(bill_element.iterfind("committeeReports/committeeReport/citation"))
    for citation in citations:
        yield citation, f"committeeReports/committeeReport: {citation}"
    # Only where the fields are empty: they are the better evidence.
    for action in actions if not citations else ():
        if report_match := _REPORT_TEXT.search(action.text):
            evidence = f"{action.date} {action.text}"[:MAX_EVIDENCE]
            yield report_match[1] or f"S. Rept. {report_match[2]}", f"actions/item/text: {evidence}"


def require_text(element: Element, *names: str) -> str:
    """Return a value that identifies the record. Raise `ValueError` if the file has none."""
    for path in names:
        if path_text := get_text(element, path):
            return path_text
    raise ValueError(f"no <{names[0]}> in this file")


def drop_empty_fields(facets: dict[str, Sequence[str | None]]) -> dict[str, list[str]]:
    return {field: [value for value in values if value] for field, values in facets.items()}


def _get_texts(elements: Iterable[Element]) -> list[str]:
    return [element_text for element in elements if (element_text := get_text(element))]


def _map_children(parent_element: Element) -> dict[str, Element]:
    """Return the first child of each name: cheaper than a search for every name."""
    return {child.tag: child for child in reversed(parent_element)}


def parse_person(person_element: Element) -> Person:
    return Person(**_parse_person_fields(_map_children(person_element)))


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


def parse_cosponsor(cosponsor_element: Element) -> Cosponsor:
    children = _map_children(cosponsor_element)
    return Cosponsor(
        **_parse_person_fields(children),
        sponsored_at=parse_iso_date(get_text(children.get("sponsorshipDate"))),
        # The files have Python's spelling of a boolean.
        original=get_text(children.get("isOriginalCosponsor")) == "True",
        withdrawn_at=parse_iso_date(get_text(children.get("sponsorshipWithdrawnDate"))),
    )


def parse_action(action_element: Element, congress: int) -> BillAction:
    children = _map_children(action_element)
    action_date = parse_iso_date(get_text(children.get("actionDate"))) or ""
    action_text = get_text(children.get("text")) or ""
    recorded = [
        vote_id for vote in children.get("recordedVotes", ()) for vote_id in parse_vote_ids(vote)
    ]
    return BillAction(
        date=action_date,
        time=get_text(children.get("actionTime")),
        text=action_text,
        type=get_text(children.get("type")),
        code=get_text(children.get("actionCode")),
        committees=[
            make_committee_id(committee_code) for committee_code in _list_committee_codes(children)
        ],
        votes=recorded or list(_find_roll_calls(action_text, action_date, congress)),
    )


def _list_committee_codes(children: Mapping[str, Element]) -> list[str]:
    listed = [*children.get("committees", ())]
    if "committee" in children:
        listed.append(children["committee"])
    return [
        committee_code
        for committee in listed
        if (committee_code := get_text(committee, "systemCode"))
    ]


def _find_roll_calls(action_text: str, action_date: str, congress: int) -> Iterator[str]:
    """`(Roll no. 58)` is the House's way to say it, `Record Vote Number: 13` the Senate's."""
    if not action_date:
        return
    # The words name no session. The first is that of the year in which the Congress began.
    session = 1 if int(action_date[:4]) <= get_first_day(congress).year else 2
    for house, senate in _ROLL_CALL_TEXT.findall(action_text):
        yield make_vote_id("house" if house else "senate", congress, session, house or senate)


def parse_law_ids(law: Element) -> Iterator[str]:
    if law_number := get_text(law, "number"):
        yield make_law_id(law_number, private="private" in (get_text(law, "type") or "").lower())


def parse_vote_ids(vote: Element) -> Iterator[str]:
    vote_numbers = [
        get_text(vote, field_name)
        for field_name in ("chamber", "congress", "sessionNumber", "rollNumber")
    ]
    if all(vote_numbers):
        yield make_vote_id(*[vote_number or "" for vote_number in vote_numbers])


def parse_latest_action(action_element: Element | None) -> LatestAction | None:
    action_text = get_text(action_element, "text")
    return (
        LatestAction(date=parse_iso_date(get_text(action_element, "actionDate")), text=action_text)
        if action_text
        else None
    )


def parse_committees(bill: Element) -> Iterator[BillCommittee]:
    # `billCommittees` is the extra level of the oldest generation.
    committee_elements = bill.findall("committees/item") + bill.findall(
        "committees/billCommittees/item"
    )
    for committee_element in committee_elements:
        chamber = get_text(committee_element, "chamber")
        for committee in (committee_element, *committee_element.findall("subcommittees/item")):
            if committee_code := get_text(committee, "systemCode"):
                yield BillCommittee(
                    id=make_committee_id(committee_code),
                    name=get_text(committee, "name") or committee_code,
                    chamber=parse_chamber(chamber),
                    activities=_get_texts(committee.iterfind("activities/item/name")),
                    dated_activities=list(_parse_activities(committee)),
                )


def _parse_activities(committee: Element) -> Iterator[CommitteeActivity]:
    for activity_element in committee.iterfind("activities/item"):
        if activity_name := get_text(activity_element, "name"):
            yield CommitteeActivity(
                name=activity_name, date=parse_iso_date(get_text(activity_element, "date"))
            )


def parse_calendar_numbers(bill_element: Element) -> Iterator[CalendarNumber]:
    """`U00125` is number 125 of the Union Calendar; the Senate's has a name and a number."""
    for calendar_element in bill_element.iterfind("calendarNumbers/item"):
        stated = [get_text(calendar_element, "calendar"), get_text(calendar_element, "number")]
        house = next(
            filter(None, (_HOUSE_CALENDAR.fullmatch(stated_text or "") for stated_text in stated)),
            None,
        )
        if house:
            yield CalendarNumber(calendar=_HOUSE_CALENDARS[house[1]], number=int(house[2]))
        elif stated[0]:
            digits = stated[1] or ""
            calendar_number = int(digits) if digits.isdecimal() else None
            yield CalendarNumber(calendar=stated[0], number=calendar_number)


def describe_miscounted_lists(bill_element: Element, what: str) -> Iterator[str]:
    """Compare the cosponsors and actions of a bill or an amendment with the file's own counts."""
    for list_name, list_path, count_name in _COUNTED_LISTS:
        stated = get_text(bill_element, f"{list_name}/{count_name}") or ""
        listed = len(bill_element.findall(list_path))
        if stated.isdecimal() and int(stated) > listed:
            yield f"{what} has {stated} {list_name} by its own count and {listed} in the file"


def count_cosponsors(bill_element: Element, cosponsors: Sequence[Cosponsor]) -> int:
    """Return how many cosponsor now: who withdrew stays listed, with a date.

    The oldest files tell of an amendment only how many there are, and not who.
    """
    stated = get_text(bill_element, "cosponsors/currentCount") or ""
    if not cosponsors and stated.isdecimal():
        return int(stated)
    return sum(cosponsor.withdrawn_at is None for cosponsor in cosponsors)


def parse_subjects(bill_element: Element) -> Iterator[str]:
    for subject_path in (
        "subjects/legislativeSubjects/item/name",
        "subjects/billSubjects/legislativeSubjects/item/name",
        "subjects/billSubjects/otherSubjects/item/name",
    ):
        yield from _get_texts(bill_element.iterfind(subject_path))


def parse_summaries(bill_element: Element) -> Iterator[BillSummary]:
    for summary_path in ("summaries/summary", "summaries/billSummaries/item"):
        for summary_element in bill_element.iterfind(summary_path):
            # The text is HTML in a CDATA section or escaped: to us it is text either way.
            summary_markup = (
                summary_element.findtext("text") or summary_element.findtext("cdata/text") or ""
            )
            if plain := strip_html(summary_markup):
                yield BillSummary(
                    version=get_text(summary_element, "versionCode"),
                    date=parse_iso_date(get_text(summary_element, "actionDate")),
                    description=get_text(summary_element, "actionDesc")
                    or get_text(summary_element, "name"),
                    text=plain,
                )


def parse_short_titles(bill_element: Element) -> list[str]:
    titles = (
        get_text(title_element, "title")
        for title_element in bill_element.iterfind("titles/item")
        if "short" in (get_text(title_element, "titleType") or "").lower()
    )
    return list(dict.fromkeys(short_title for short_title in titles if short_title))


def parse_text_versions(bill_element: Element) -> list[TextVersion]:
    return [
        TextVersion(
            type=get_text(version_element, "type") or "",
            date=parse_iso_date(get_text(version_element, "date")),
            url=get_text(version_element, "formats/item/url"),
        )
        for version_element in bill_element.iterfind("textVersions/item")
    ]


def parse_related_bills(bill_element: Element) -> Iterator[RelatedBill]:
    for related_element in bill_element.iterfind("relatedBills/item"):
        congress, bill_type, bill_number = (
            get_text(related_element, field_name) for field_name in ("congress", "type", "number")
        )
        bill_type = re.sub(r"[.\s]", "", bill_type or "").lower()  # the oldest files write `H.Res.`
        if congress and bill_number and bill_type in SPOKEN:
            yield RelatedBill(
                id=make_bill_id(congress, bill_type, bill_number),
                title=get_text(related_element, "title")
                or get_text(related_element, "latestTitle"),
                relationships=_get_texts(related_element.iterfind("relationshipDetails/item/type")),
            )


def parse_cost_estimate(estimate_element: Element) -> CostEstimate:
    # GPO has dropped the `rpt` from these names; the oldest files still have it.
    url = get_text(estimate_element, "url") or get_text(estimate_element, "rptUrl")
    return CostEstimate(
        id=parse_estimate_id(url or ""),
        title=get_text(estimate_element, "title")
        or get_text(estimate_element, "rptTitle")
        or "Cost estimate",
        date=parse_iso_date(
            get_text(estimate_element, "pubDate") or get_text(estimate_element, "rptPubDate")
        ),
        url=url,
    )


def parse_amended_id(amendment_element: Element) -> str | None:
    amended = amendment_element.find("amendedAmendment")
    amended_parts = [get_text(amended, field_name) for field_name in ("congress", "type", "number")]
    return (
        make_amendment_id(*[amended_part or "" for amended_part in amended_parts])
        if all(amended_parts)
        else None
    )
