"""Reads BILLSTATUS XML of the Government Publishing Office, in its three generations.

The oldest files have no version and wrap lists once more (`committees/billCommittees/item`); 1.0.0
and 3.0.0 differ in the names of a few elements. Here one reading serves them all: each value is
looked for in every place it has ever stood.
"""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats import cbo, reports
from readingroom.bases.federal.formats.parts.files import FileStart, RawFile
from readingroom.bases.federal.formats.parts.people import (
    build_committee_stub,
    build_legislator_stub,
    format_name,
    parse_affiliation,
    parse_chamber,
)
from readingroom.bases.federal.formats.parts.topics import (
    build_topic,
    build_topic_links,
    distinct_topics,
)
from readingroom.bases.federal.formats.parts.xml import get_text, hash_element, iso_date, parse
from readingroom.bases.federal.schema.congress import GPO, SPOKEN, began, bill_page, ordinal, spoken
from readingroom.bases.federal.schema.entries import (
    Link,
    ParsedRecord,
    Provenance,
    SearchHead,
    citation_fields,
)
from readingroom.bases.federal.schema.ids import (
    amendment_id,
    bill_id,
    cited_report,
    committee_id,
    estimate_id,
    law_id,
    vote_id,
)
from readingroom.bases.federal.schema.records import (
    Amendment,
    Bill,
    BillAction,
    BillCommittee,
    BillSummary,
    Cosponsor,
    CostEstimate,
    LatestAction,
    LinkKind,
    Person,
    RelatedBill,
    TextVersion,
)

_EVIDENCE = 300
_OF_VOTE = ("date", "chamber", "rollNumber", "fullActionName")
# What actions say in words where the fields for it are empty, as in the oldest files.
_ROLL_CALL = re.compile(r"\(Roll no\. (\d{1,4})\)|\bRecord Vote Number: (\d{1,4})\b", re.ASCII)
_REPORTED = re.compile(
    r"(?:^Reported |^Conference report |\breported an original measure|\breport filed by )"
    r".*?(H\. Rept\. \d+-\d+(?:, Part [IVX]+)?)|\bWith written report No\. (\d+-\d+)",
    re.ASCII,
)
_TAG = re.compile(r"<[^>]+>")
_BREAK = re.compile(r"</?(?:p|br|li|ul|h\d)[^>]*>", re.IGNORECASE)


class BillStatus:
    """`BILLSTATUS-117hr1.xml`: a bill's status, and its amendments, topics and people."""

    name: ClassVar[str] = "billstatus/6"
    sources: ClassVar[tuple[str, ...]] = (
        "bills",
        "amendments",
        "cbo_cost_estimates",
        "committee_reports",
        "topic_taxonomy",
    )
    complete_for: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return b"<billStatus" in start.head

    def read(self, file: RawFile, origin: Provenance) -> Iterator[ParsedRecord]:
        told = parse(file.data).find("bill")
        if told is None:
            raise ValueError("no <bill> in this file")
        reading = _Reading(told, origin)
        yield from reading.named()
        yield reading.bill()
        yield from reading.amendments()
        yield from reading.estimates()
        yield from reading.reports()


class _Reading:
    """One bill's file on its way to entries."""

    def __init__(self, told: Element, origin: Provenance) -> None:
        self._told = told
        self._origin = origin
        self._named: set[str] = set()
        self.congress = int(_need(told, "congress"))
        self.kind = _need(told, "type", "billType").lower()
        self.number = int(_need(told, "number", "billNumber"))
        self.id = bill_id(self.congress, self.kind, self.number)
        self.page = bill_page(self.congress, self.kind, self.number)
        self.sponsors = [_person(item) for item in told.findall("sponsors/item")]
        self.cosponsors = [_cosponsor(item) for item in told.findall("cosponsors/item")]
        self.actions = [_action(item, self.congress) for item in told.findall("actions/item")]
        self.committees = list(_committees(told))
        self.subjects = list(dict.fromkeys(_subjects(told)))
        self.costs = [_estimate(item) for item in told.findall("cboCostEstimates/item")]
        self.reported = dict(_reports(told, self.actions))
        self.policy_area = get_text(told, "policyArea/name") or get_text(
            told, "subjects/billSubjects/policyArea/name"
        ) or get_text(told, "primarySubject/name")  # fmt: skip

    def named(self) -> Iterator[ParsedRecord]:
        """What the bill refers to, so that no reference leads nowhere."""
        yield from self._people((*self.sponsors, *self.cosponsors))
        for committee in self.committees:
            yield build_committee_stub(
                committee.id, committee.name, committee.chamber, self._origin
            )
        yield from self._subjects()

    def bill(self) -> ParsedRecord:
        told = self._told
        title = get_text(told, "title") or self.id
        latest = _latest(told.find("latestAction"))
        introduced = iso_date(get_text(told, "introducedDate"))
        updated = get_text(told, "updateDate")
        summaries = list(_summaries(told))
        cite = f"{spoken(self.congress, self.kind, self.number)}, {title}"
        record = Bill(
            id=self.id,
            title=title,
            congress=self.congress,
            type=self.kind,
            number=self.number,
            origin_chamber=parse_chamber(get_text(told, "originChamber")),
            introduced_at=introduced,
            updated_at=updated,
            policy_area=self.policy_area,
            subjects=self.subjects,
            sponsors=self.sponsors,
            committees=self.committees,
            latest_action=latest,
            laws=[id for law in told.iterfind("laws/item") for id in _law(law)],
            summary=max(summaries, key=lambda one: one.date or "", default=None),
            short_titles=_short_titles(told),
            text_versions=_versions(told),
            related_bills=list(_related(told)),
            cost_estimates=self.costs,
            committee_reports=list(self.reported),
            report_ids=list(dict.fromkeys(filter(None, map(cited_report, self.reported)))),
            votes=list(dict.fromkeys(self._votes())),
            cosponsor_count=sum(one.withdrawn_at is None for one in self.cosponsors),
            action_count=len(self.actions),
            amendment_count=len(told.findall("amendments/amendment")),
            **citation_fields(
                self._origin, url=self.page, org=GPO, cite=cite, published_at=introduced
            ),
        )
        return ParsedRecord(
            record,
            head=SearchHead(
                "\n".join((cite, *record.short_titles)),
                record.summary.text if record.summary else "",
                latest.text if latest else "",
            ),
            facets=self._facets(record),
            children=self._children(),
            links=list(self._links(record)),
            revision=updated,
        )

    def amendments(self) -> Iterator[ParsedRecord]:
        for item in self._told.findall("amendments/amendment"):
            yield from self._amendment(item)

    def estimates(self) -> Iterator[ParsedRecord]:
        """What CBO said it would cost: a record of its own wherever CBO gave it a number."""
        for one in self.costs:
            if one.id and one.url:
                yield cbo.build_estimate(
                    one.url, one.title, one.date, [self.id], self._origin, partial=True
                )

    def reports(self) -> Iterator[ParsedRecord]:
        for citation in self.reported:
            if cited_report(citation):
                yield reports.build_cited_report(citation, [self.id], self._origin)

    def _topics(self) -> list[str]:
        return distinct_topics((self.policy_area, *self.subjects))

    def _subjects(self) -> Iterator[ParsedRecord]:
        """Only the oldest files say to which wider subject one belongs."""
        items = self._told.findall("subjects/billSubjects/otherSubjects/item")
        parents = {get_text(item, "name"): get_text(item, "parentSubject/name") for item in items}
        for name in distinct_topics((*parents.values(), *self._topics())):
            yield build_topic(name, self._origin, parent=parents.get(name))

    def _votes(self) -> Iterator[str]:
        for action in self.actions:
            yield from action.votes
        for vote in self._told.findall("recordedVotes/recordedVote"):
            yield from _vote(vote)

    def _facets(self, record: Bill) -> dict[str, list[str]]:
        sponsor = self.sponsors[:1]
        facets: dict[str, Sequence[str | None]] = {
            "congress": [str(self.congress)],
            "type": [self.kind],
            "chamber": [record.origin_chamber],
            "party": [one.party for one in sponsor],
            "state": [one.state for one in sponsor],
            "topic": self._topics(),
            "member": [one.bioguide_id for one in self.sponsors],
        }
        return _known(facets)

    def _children(self) -> dict[str, list[tuple[Any, ...]]]:
        committees = sorted({one.id for one in self.committees})
        return {
            "bill_cosponsors": [
                (place, one.bioguide_id, one.model_dump_json())
                for place, one in enumerate(self.cosponsors, start=1)
            ],
            "bill_actions": [
                (place, one.date, one.model_dump_json())
                for place, one in enumerate(self.actions, start=1)
            ],
            "bill_committees": [(committee,) for committee in committees],
        }

    def _links(self, record: Bill) -> Iterator[Link]:
        """What the file names beside the bill, each with the field that names it."""
        for law in self._told.iterfind("laws/item"):
            for id in _law(law):
                words = " ".join(filter(None, (get_text(law, "type"), get_text(law, "number"))))
                yield Link(LinkKind.LAW, id, f"laws/item: {words}")
        for vote in self._told.iterfind("recordedVotes/recordedVote"):
            words = " ".join(filter(None, (get_text(vote, name) for name in _OF_VOTE)))
            for id in _vote(vote):
                yield Link(LinkKind.VOTE, id, f"recordedVotes/recordedVote: {words}")
        yield from _vote_links(self._told.iterfind("actions/item"), self.actions)
        for other in record.related_bills:
            how = ", ".join(other.relationships) or "related"
            yield Link(LinkKind.RELATED, other.id, f"relatedBills/item: {how}")
        for estimate in record.cost_estimates:
            if estimate.id:
                said_so = f"cboCostEstimates/item: {estimate.title} {estimate.url}"
                yield Link(LinkKind.COST_ESTIMATE, estimate.id, said_so)
        for citation, said_so in self.reported.items():
            if report := cited_report(citation):
                yield Link(LinkKind.COMMITTEE_REPORT, report, said_so)
        yield from build_topic_links(distinct_topics((self.policy_area,)), "policyArea")
        yield from build_topic_links(distinct_topics(self.subjects), "subjects")

    def _amendment(self, item: Element) -> Iterator[ParsedRecord]:
        # Number, congress and type stand twice in one amendment; the first of each is its own.
        congress, kind = int(_need(item, "congress")), _need(item, "type").lower()
        number = int(_need(item, "number"))
        sponsors = [_person(one) for one in item.findall("sponsors/item")]
        yield from self._people(sponsors)
        roll_calls = list(_roll_calls(item))
        voted = [_action(one, congress) for one in roll_calls]
        submitted = iso_date(get_text(item, "submittedDate"))
        proposed = iso_date(get_text(item, "proposedDate"))
        latest = _latest(item.find("latestAction"))
        purpose, description = get_text(item, "purpose"), get_text(item, "description")
        label = f"{'S.Amdt.' if kind == 'samdt' else 'H.Amdt.'} {number}"
        cite = f"{label} to {SPOKEN[self.kind]} {self.number}, {ordinal(congress)} Congress"
        slug = "senate-amendment" if kind == "samdt" else "house-amendment"
        record = Amendment(
            id=amendment_id(congress, kind, number),
            title=f"{cite}: {purpose}" if purpose else cite,
            congress=congress,
            type=kind,
            number=number,
            chamber=parse_chamber(get_text(item, "chamber")),
            bill_id=self.id,
            amends=_amended(item),
            purpose=purpose,
            description=description,
            submitted_at=submitted,
            proposed_at=proposed,
            sponsors=sponsors,
            cosponsor_count=len(item.findall("cosponsors/item")),
            latest_action=latest,
            votes=list(dict.fromkeys(vote for action in voted for vote in action.votes)),
            **citation_fields(
                self._origin,
                url=f"https://www.congress.gov/amendment/{ordinal(congress)}-congress/{slug}/{number}",
                org=GPO,
                cite=cite,
                published_at=submitted or proposed,
                raw_sha256=hash_element(item),
            ),
        )
        facets: dict[str, Sequence[str | None]] = {
            "congress": [str(congress)],
            "type": [kind],
            "chamber": [record.chamber],
            "party": [one.party for one in sponsors[:1]],
            "state": [one.state for one in sponsors[:1]],
            "member": [one.bioguide_id for one in sponsors],
            "bill": [self.id],
        }
        yield ParsedRecord(
            record,
            head=SearchHead(record.title, description or "", latest.text if latest else ""),
            facets=_known(facets),
            links=[*self._amendment_links(item, record), *_vote_links(roll_calls, voted)],
            revision=get_text(item, "updateDate"),
        )

    def _amendment_links(self, item: Element, record: Amendment) -> Iterator[Link]:
        bill = f"{SPOKEN[self.kind]} {self.number}"
        yield Link(LinkKind.AMENDMENT, self.id, f"amendments/amendment in the file of {bill}")
        if record.amends:
            parts = (f"amendedAmendment/{name}" for name in ("type", "number", "purpose"))
            words = " ".join(filter(None, (get_text(item, part) for part in parts)))[:_EVIDENCE]
            yield Link(LinkKind.AMENDMENT, record.amends, f"amendedAmendment: {words}")

    def _people(self, people: Iterable[Person]) -> Iterator[ParsedRecord]:
        """Stubs of those whom the file has not named before; a Senator may offer a hundred."""
        for person in people:
            if person.bioguide_id and person.bioguide_id not in self._named:
                self._named.add(person.bioguide_id)
                yield build_legislator_stub(person, self._origin)


def _roll_calls(amendment: Element) -> Iterator[Element]:
    """The actions on an amendment that were roll calls; the others are many, and not kept."""
    for action in amendment.iterfind("actions/actions/item"):
        if _is_recorded(action) or _ROLL_CALL.search(get_text(action, "text") or ""):
            yield action


def _is_recorded(action: Element) -> bool:
    return action.find("recordedVotes") is not None


def _vote_links(items: Iterable[Element], actions: Iterable[BillAction]) -> Iterator[Link]:
    """The roll calls that actions record; the action's words say what was voted on.

    Several actions may tell of one: what stands in a field comes before what only words say.
    """
    told = zip(map(_is_recorded, items), actions, strict=True)
    for recorded, action in sorted(told, key=lambda one: not one[0]):
        field = "recordedVotes" if recorded else "text"
        for vote in action.votes:
            words = f"{action.date} {action.text}"[:_EVIDENCE]
            yield Link(LinkKind.VOTE, vote, f"actions/item/{field}: {words}")


def _reports(told: Element, actions: Iterable[BillAction]) -> Iterator[tuple[str, str]]:
    """The reports on a bill as they are cited, each with what says so."""
    listed = _all(told.iterfind("committeeReports/committeeReport/citation"))
    for citation in listed:
        yield citation, f"committeeReports/committeeReport: {citation}"
    for action in actions if not listed else ():
        if found := _REPORTED.search(action.text):
            words = f"{action.date} {action.text}"[:_EVIDENCE]
            yield found[1] or f"S. Rept. {found[2]}", f"actions/item/text: {words}"


def _need(told: Element, *names: str) -> str:
    """A value that makes the record's identity: without it the file is not read."""
    for name in names:
        if value := get_text(told, name):
            return value
    raise ValueError(f"no <{names[0]}> in this file")


def _known(facets: dict[str, Sequence[str | None]]) -> dict[str, list[str]]:
    return {field: [one for one in values if one] for field, values in facets.items()}


def _all(elements: Iterable[Element]) -> list[str]:
    return [text for element in elements if (text := get_text(element))]


def _person(item: Element) -> Person:
    full = get_text(item, "fullName") or get_text(item, "name") or ""
    known = parse_affiliation(full)
    return Person(
        bioguide_id=get_text(item, "bioguideId"),
        name=format_name(full),
        party=get_text(item, "party") or known["party"],
        state=get_text(item, "state") or known["state"],
        district=get_text(item, "district") or known["district"],
    )


def _cosponsor(item: Element) -> Cosponsor:
    return Cosponsor(
        **_person(item).model_dump(),
        sponsored_at=iso_date(get_text(item, "sponsorshipDate")),
        original=get_text(item, "isOriginalCosponsor") == "True",
        withdrawn_at=iso_date(get_text(item, "sponsorshipWithdrawnDate")),
    )


def _action(item: Element, congress: int) -> BillAction:
    codes = _all(
        (*item.iterfind("committees/item/systemCode"), *item.iterfind("committee/systemCode"))
    )
    date, text = iso_date(get_text(item, "actionDate")) or "", get_text(item, "text") or ""
    recorded = [id for vote in item.iterfind("recordedVotes/recordedVote") for id in _vote(vote)]
    return BillAction(
        date=date,
        time=get_text(item, "actionTime"),
        text=text,
        type=get_text(item, "type"),
        code=get_text(item, "actionCode"),
        committees=[committee_id(code) for code in codes],
        votes=recorded or list(_votes_told(text, date, congress)),
    )


def _votes_told(text: str, date: str, congress: int) -> Iterator[str]:
    """`(Roll no. 58)` is the House's way to say it, `Record Vote Number: 13` the Senate's."""
    if not date:
        return
    session = 1 if int(date[:4]) <= began(congress).year else 2
    for house, senate in _ROLL_CALL.findall(text):
        yield vote_id("house" if house else "senate", congress, session, house or senate)


def _law(law: Element) -> Iterator[str]:
    if number := get_text(law, "number"):
        yield law_id(number, private="private" in (get_text(law, "type") or "").lower())


def _vote(vote: Element) -> Iterator[str]:
    parts = [
        get_text(vote, name) for name in ("chamber", "congress", "sessionNumber", "rollNumber")
    ]
    if all(parts):
        yield vote_id(*[part or "" for part in parts])


def _latest(item: Element | None) -> LatestAction | None:
    text = get_text(item, "text")
    return LatestAction(date=iso_date(get_text(item, "actionDate")), text=text) if text else None


def _committees(told: Element) -> Iterator[BillCommittee]:
    whole = told.findall("committees/item") + told.findall("committees/billCommittees/item")
    for item in whole:
        chamber = get_text(item, "chamber")
        for one in (item, *item.findall("subcommittees/item")):
            if code := get_text(one, "systemCode"):
                yield BillCommittee(
                    id=committee_id(code),
                    name=get_text(one, "name") or code,
                    chamber=parse_chamber(chamber),
                    activities=_all(one.iterfind("activities/item/name")),
                )


def _subjects(told: Element) -> Iterator[str]:
    for path in (
        "subjects/legislativeSubjects/item/name",
        "subjects/billSubjects/legislativeSubjects/item/name",
        "subjects/billSubjects/otherSubjects/item/name",
    ):
        yield from _all(told.iterfind(path))


def _summaries(told: Element) -> Iterator[BillSummary]:
    for path in ("summaries/summary", "summaries/billSummaries/item"):
        for item in told.iterfind(path):
            # The text is HTML in a CDATA section or escaped: to us it is text either way.
            text = item.findtext("text") or item.findtext("cdata/text") or ""
            if plain := strip_html(text):
                yield BillSummary(
                    version=get_text(item, "versionCode"),
                    date=iso_date(get_text(item, "actionDate")),
                    description=get_text(item, "actionDesc") or get_text(item, "name"),
                    text=plain,
                )


def strip_html(markup: str) -> str:
    """What HTML says, a line for each of its paragraphs."""
    lines = _BREAK.sub("\n", markup).split("\n")
    told = (" ".join(html.unescape(_TAG.sub("", line)).split()) for line in lines)
    return "\n".join(line for line in told if line)


def _short_titles(told: Element) -> list[str]:
    titles = (
        get_text(item, "title")
        for item in told.iterfind("titles/item")
        if "short" in (get_text(item, "titleType") or "").lower()
    )
    return list(dict.fromkeys(title for title in titles if title))


def _versions(told: Element) -> list[TextVersion]:
    return [
        TextVersion(
            type=get_text(item, "type") or "",
            date=iso_date(get_text(item, "date")),
            url=get_text(item, "formats/item/url"),
        )
        for item in told.iterfind("textVersions/item")
    ]


def _related(told: Element) -> Iterator[RelatedBill]:
    for item in told.iterfind("relatedBills/item"):
        congress, kind, number = (get_text(item, name) for name in ("congress", "type", "number"))
        kind = re.sub(r"[.\s]", "", kind or "").lower()  # the oldest files write `H.Res.`
        if congress and number and kind in SPOKEN:
            yield RelatedBill(
                id=bill_id(congress, kind, number),
                title=get_text(item, "title") or get_text(item, "latestTitle"),
                relationships=_all(item.iterfind("relationshipDetails/item/type")),
            )


def _estimate(item: Element) -> CostEstimate:
    url = get_text(item, "url") or get_text(item, "rptUrl")
    return CostEstimate(
        id=estimate_id(url or ""),
        title=get_text(item, "title") or get_text(item, "rptTitle") or "Cost estimate",
        date=iso_date(get_text(item, "pubDate") or get_text(item, "rptPubDate")),
        url=url,
    )


def _amended(item: Element) -> str | None:
    amended = item.find("amendedAmendment")
    parts = [get_text(amended, name) for name in ("congress", "type", "number")]
    return amendment_id(*[part or "" for part in parts]) if all(parts) else None
