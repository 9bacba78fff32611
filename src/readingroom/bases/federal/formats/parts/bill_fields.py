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
    find_text,
    parse_iso_date,
    strip_html,
)
from readingroom.bases.federal.schema.congress import LABEL_BY_BILL_TYPE, get_first_day_of_congress
from readingroom.bases.federal.schema.entries import (
    RecordLink,
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

MAX_EVIDENCE_CHARS = 300
"""How many characters of an action are quoted as evidence of a link."""
_HOUSE_CALENDAR_PATTERN = re.compile(r"([UHPD])(\d{1,5})", re.ASCII)
_HOUSE_CALENDARS_BY_LETTER = {
    "U": "Union Calendar",
    "H": "House Calendar",
    "P": "Private Calendar",
    "D": "Discharge Calendar",
}
_COUNTED_LIST_PATHS = (
    ("cosponsors", "cosponsors/item", "countIncludingWithdrawnCosponsors"),
    ("actions", "actions/actions/item", "count"),
)
"""Lists that state how many items they have: where the items are, and the name of the count."""
# The oldest files leave the fields of votes and reports empty: only the words of actions name them.
_ROLL_CALL_PATTERN = re.compile(
    r"\(Roll no\. (\d{1,4})\)|\bRecord Vote Number: (\d{1,4})\b", re.ASCII
)
_REPORT_CITATION_PATTERN = re.compile(
    r"(?:^Reported |^Conference report |\breported an original measure|\breport filed by )"
    r".*?(H\. Rept\. \d+-\d+(?:, Part [IVX]+)?)|\bWith written report No\. (\d+-\d+)",
    re.ASCII,
)


def _has_recorded_votes(action_element: Element) -> bool:
    return action_element.find("recordedVotes") is not None


def build_vote_links(
    action_elements: Iterable[Element], bill_actions: Iterable[BillAction]
) -> Iterator[RecordLink]:
    """The roll calls that actions record; the action's words say what was voted on.

    Several actions may tell of one: what stands in a field comes before what only words say.
    """
    flags_and_actions = zip(map(_has_recorded_votes, action_elements), bill_actions, strict=True)
    for is_recorded, bill_action in sorted(
        flags_and_actions, key=lambda flag_and_action: not flag_and_action[0]
    ):
        stating_field_name = "recordedVotes" if is_recorded else "text"
        for vote_id in bill_action.votes:
            evidence_text = f"{bill_action.date} {bill_action.text}"[:MAX_EVIDENCE_CHARS]
            yield RecordLink(
                LinkKind.VOTE, vote_id, f"actions/item/{stating_field_name}: {evidence_text}"
            )


def find_cited_reports(
    bill_element: Element, bill_actions: Iterable[BillAction]
) -> Iterator[tuple[str, str]]:
    """The reports on a bill as they are cited, each with what says so."""
    report_citations = _list_element_texts(
        bill_element.iterfind("committeeReports/committeeReport/citation")
    )
    for report_citation in report_citations:
        yield report_citation, f"committeeReports/committeeReport: {report_citation}"
    # Only where the fields are empty: they are the better evidence.
    for bill_action in bill_actions if not report_citations else ():
        if report_match := _REPORT_CITATION_PATTERN.search(bill_action.text):
            evidence_text = f"{bill_action.date} {bill_action.text}"[:MAX_EVIDENCE_CHARS]
            yield (
                report_match[1] or f"S. Rept. {report_match[2]}",
                f"actions/item/text: {evidence_text}",
            )


def require_text(element: Element, *xml_paths: str) -> str:
    """Return a value that identifies the record. Raise `ValueError` if the file has none."""
    for xml_path in xml_paths:
        if element_text := find_text(element, xml_path):
            return element_text
    raise ValueError(f"no <{xml_paths[0]}> in this file")


def drop_empty_values(values_by_facet: dict[str, Sequence[str | None]]) -> dict[str, list[str]]:
    return {
        facet_name: [facet_value for facet_value in facet_values if facet_value]
        for facet_name, facet_values in values_by_facet.items()
    }


def _list_element_texts(text_elements: Iterable[Element]) -> list[str]:
    return [
        element_text for text_element in text_elements if (element_text := find_text(text_element))
    ]


def _index_child_elements_by_tag(parent_element: Element) -> dict[str, Element]:
    """Return the first child of each name: cheaper than a search for every name."""
    return {child_element.tag: child_element for child_element in reversed(parent_element)}


def parse_person(person_element: Element) -> Person:
    return Person(**_parse_person_fields(_index_child_elements_by_tag(person_element)))


def _parse_person_fields(child_by_tag: Mapping[str, Element]) -> dict[str, Any]:
    printed_name = (
        find_text(child_by_tag.get("fullName")) or find_text(child_by_tag.get("name")) or ""
    )
    # Where a file has no fields for party, state and district, the name has them: [D-NC-12].
    affiliation_fields = parse_affiliation(printed_name)
    return {
        "bioguide_id": find_text(child_by_tag.get("bioguideId")),
        "name": format_name(printed_name),
        "party": find_text(child_by_tag.get("party")) or affiliation_fields["party"],
        "state": find_text(child_by_tag.get("state")) or affiliation_fields["state"],
        "district": find_text(child_by_tag.get("district")) or affiliation_fields["district"],
    }


def parse_cosponsor(cosponsor_element: Element) -> Cosponsor:
    child_by_tag = _index_child_elements_by_tag(cosponsor_element)
    return Cosponsor(
        **_parse_person_fields(child_by_tag),
        sponsored_at=parse_iso_date(find_text(child_by_tag.get("sponsorshipDate"))),
        # The files have Python's spelling of a boolean.
        original=find_text(child_by_tag.get("isOriginalCosponsor")) == "True",
        withdrawn_at=parse_iso_date(find_text(child_by_tag.get("sponsorshipWithdrawnDate"))),
    )


def parse_action(action_element: Element, congress: int) -> BillAction:
    child_by_tag = _index_child_elements_by_tag(action_element)
    action_date = parse_iso_date(find_text(child_by_tag.get("actionDate"))) or ""
    action_text = find_text(child_by_tag.get("text")) or ""
    recorded_vote_ids = [
        vote_id
        for vote_element in child_by_tag.get("recordedVotes", ())
        for vote_id in parse_vote_ids(vote_element)
    ]
    return BillAction(
        date=action_date,
        time=find_text(child_by_tag.get("actionTime")),
        text=action_text,
        type=find_text(child_by_tag.get("type")),
        code=find_text(child_by_tag.get("actionCode")),
        committees=[
            make_committee_id(committee_code)
            for committee_code in _list_committee_codes(child_by_tag)
        ],
        votes=recorded_vote_ids or list(_find_roll_call_ids(action_text, action_date, congress)),
    )


def _list_committee_codes(child_by_tag: Mapping[str, Element]) -> list[str]:
    committee_elements = [*child_by_tag.get("committees", ())]
    if "committee" in child_by_tag:
        committee_elements.append(child_by_tag["committee"])
    return [
        committee_code
        for committee_element in committee_elements
        if (committee_code := find_text(committee_element, "systemCode"))
    ]


def _find_roll_call_ids(action_text: str, action_date: str, congress: int) -> Iterator[str]:
    """`(Roll no. 58)` is the House's way to say it, `Record Vote Number: 13` the Senate's."""
    if not action_date:
        return
    # The words name no session. The first is that of the year in which the Congress began.
    session_number = 1 if int(action_date[:4]) <= get_first_day_of_congress(congress).year else 2
    for house_vote_number, senate_vote_number in _ROLL_CALL_PATTERN.findall(action_text):
        yield make_vote_id(
            "house" if house_vote_number else "senate",
            congress,
            session_number,
            house_vote_number or senate_vote_number,
        )


def parse_law_ids(law_element: Element) -> Iterator[str]:
    if law_number := find_text(law_element, "number"):
        yield make_law_id(
            law_number, is_private="private" in (find_text(law_element, "type") or "").lower()
        )


def parse_vote_ids(vote_element: Element) -> Iterator[str]:
    id_parts = [
        find_text(vote_element, field_name)
        for field_name in ("chamber", "congress", "sessionNumber", "rollNumber")
    ]
    if all(id_parts):
        yield make_vote_id(*[id_part or "" for id_part in id_parts])


def parse_latest_action(action_element: Element | None) -> LatestAction | None:
    action_text = find_text(action_element, "text")
    return (
        LatestAction(date=parse_iso_date(find_text(action_element, "actionDate")), text=action_text)
        if action_text
        else None
    )


def parse_committees(bill_element: Element) -> Iterator[BillCommittee]:
    # `billCommittees` is the extra level of the oldest generation.
    committee_elements = bill_element.findall("committees/item") + bill_element.findall(
        "committees/billCommittees/item"
    )
    for committee_element in committee_elements:
        chamber_name = find_text(committee_element, "chamber")
        for committee_or_subcommittee in (
            committee_element,
            *committee_element.findall("subcommittees/item"),
        ):
            if committee_code := find_text(committee_or_subcommittee, "systemCode"):
                yield BillCommittee(
                    id=make_committee_id(committee_code),
                    name=find_text(committee_or_subcommittee, "name") or committee_code,
                    chamber=parse_chamber(chamber_name),
                    activities=_list_element_texts(
                        committee_or_subcommittee.iterfind("activities/item/name")
                    ),
                    dated_activities=list(_parse_committee_activities(committee_or_subcommittee)),
                )


def _parse_committee_activities(committee_element: Element) -> Iterator[CommitteeActivity]:
    for activity_element in committee_element.iterfind("activities/item"):
        if activity_name := find_text(activity_element, "name"):
            yield CommitteeActivity(
                name=activity_name, date=parse_iso_date(find_text(activity_element, "date"))
            )


def parse_calendar_numbers(bill_element: Element) -> Iterator[CalendarNumber]:
    """`U00125` is number 125 of the Union Calendar; the Senate's has a name and a number."""
    for calendar_element in bill_element.iterfind("calendarNumbers/item"):
        calendar_name_and_number = [
            find_text(calendar_element, "calendar"),
            find_text(calendar_element, "number"),
        ]
        house_calendar_match = next(
            filter(
                None,
                (
                    _HOUSE_CALENDAR_PATTERN.fullmatch(calendar_text or "")
                    for calendar_text in calendar_name_and_number
                ),
            ),
            None,
        )
        if house_calendar_match:
            yield CalendarNumber(
                calendar=_HOUSE_CALENDARS_BY_LETTER[house_calendar_match[1]],
                number=int(house_calendar_match[2]),
            )
        elif calendar_name_and_number[0]:
            number_text = calendar_name_and_number[1] or ""
            calendar_number = int(number_text) if number_text.isdecimal() else None
            yield CalendarNumber(calendar=calendar_name_and_number[0], number=calendar_number)


def describe_miscounted_lists(record_element: Element, record_label: str) -> Iterator[str]:
    """Yield which lists of a bill or an amendment are shorter than the count in the same file."""
    for list_name, list_path, count_tag in _COUNTED_LIST_PATHS:
        stated_count_text = find_text(record_element, f"{list_name}/{count_tag}") or ""
        listed_count = len(record_element.findall(list_path))
        if stated_count_text.isdecimal() and int(stated_count_text) > listed_count:
            yield (
                f"{record_label} has {stated_count_text} {list_name} by its own count "
                f"and {listed_count} in the file"
            )


def count_cosponsors(record_element: Element, cosponsors: Sequence[Cosponsor]) -> int:
    """Return how many cosponsor now: who withdrew stays listed, with a date.

    The oldest files tell of an amendment only how many there are, and not who.
    """
    stated_count_text = find_text(record_element, "cosponsors/currentCount") or ""
    if not cosponsors and stated_count_text.isdecimal():
        return int(stated_count_text)
    return sum(cosponsor.withdrawn_at is None for cosponsor in cosponsors)


def parse_subject_names(bill_element: Element) -> Iterator[str]:
    for subject_path in (
        "subjects/legislativeSubjects/item/name",
        "subjects/billSubjects/legislativeSubjects/item/name",
        "subjects/billSubjects/otherSubjects/item/name",
    ):
        yield from _list_element_texts(bill_element.iterfind(subject_path))


def parse_summaries(bill_element: Element) -> Iterator[BillSummary]:
    for summary_path in ("summaries/summary", "summaries/billSummaries/item"):
        for summary_element in bill_element.iterfind(summary_path):
            # The text is HTML in a CDATA section or escaped: to us it is text either way.
            summary_markup = (
                summary_element.findtext("text") or summary_element.findtext("cdata/text") or ""
            )
            if summary_text := strip_html(summary_markup):
                yield BillSummary(
                    version=find_text(summary_element, "versionCode"),
                    date=parse_iso_date(find_text(summary_element, "actionDate")),
                    description=find_text(summary_element, "actionDesc")
                    or find_text(summary_element, "name"),
                    text=summary_text,
                )


def parse_short_titles(bill_element: Element) -> list[str]:
    title_texts = (
        find_text(title_element, "title")
        for title_element in bill_element.iterfind("titles/item")
        if "short" in (find_text(title_element, "titleType") or "").lower()
    )
    return list(dict.fromkeys(short_title for short_title in title_texts if short_title))


def parse_text_versions(bill_element: Element) -> list[TextVersion]:
    return [
        TextVersion(
            type=find_text(version_element, "type") or "",
            date=parse_iso_date(find_text(version_element, "date")),
            url=find_text(version_element, "formats/item/url"),
        )
        for version_element in bill_element.iterfind("textVersions/item")
    ]


def parse_related_bills(bill_element: Element) -> Iterator[RelatedBill]:
    for related_bill_element in bill_element.iterfind("relatedBills/item"):
        congress_text, bill_type, bill_number_text = (
            find_text(related_bill_element, field_name)
            for field_name in ("congress", "type", "number")
        )
        bill_type = re.sub(r"[.\s]", "", bill_type or "").lower()  # the oldest files write `H.Res.`
        if congress_text and bill_number_text and bill_type in LABEL_BY_BILL_TYPE:
            yield RelatedBill(
                id=make_bill_id(congress_text, bill_type, bill_number_text),
                title=find_text(related_bill_element, "title")
                or find_text(related_bill_element, "latestTitle"),
                relationships=_list_element_texts(
                    related_bill_element.iterfind("relationshipDetails/item/type")
                ),
            )


def parse_cost_estimate(estimate_element: Element) -> CostEstimate:
    # GPO has dropped the `rpt` from these names; the oldest files still have it.
    estimate_url = find_text(estimate_element, "url") or find_text(estimate_element, "rptUrl")
    return CostEstimate(
        id=parse_estimate_id(estimate_url or ""),
        title=find_text(estimate_element, "title")
        or find_text(estimate_element, "rptTitle")
        or "Cost estimate",
        date=parse_iso_date(
            find_text(estimate_element, "pubDate") or find_text(estimate_element, "rptPubDate")
        ),
        url=estimate_url,
    )


def parse_amended_amendment_id(amendment_element: Element) -> str | None:
    amended_amendment_element = amendment_element.find("amendedAmendment")
    id_parts = [
        find_text(amended_amendment_element, field_name)
        for field_name in ("congress", "type", "number")
    ]
    return make_amendment_id(*[id_part or "" for id_part in id_parts]) if all(id_parts) else None
