"""Reads BILLSTATUS XML of the Government Publishing Office, in its three generations.

The oldest files have no version and wrap lists once more (`committees/billCommittees/item`); 1.0.0
and 3.0.0 differ in the names of a few elements. One parser reads them all: it looks for each value
in every element that has ever held it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats import cbo, reports
from readingroom.bases.federal.formats.parts.bill_fields import (
    MAX_EVIDENCE,
    build_vote_links,
    count_cosponsors,
    describe_miscounted_lists,
    drop_empty_fields,
    parse_action,
    parse_amended_id,
    parse_calendar_numbers,
    parse_committees,
    parse_cosponsor,
    parse_cost_estimate,
    parse_latest_action,
    parse_law_ids,
    parse_person,
    parse_related_bills,
    parse_reports,
    parse_short_titles,
    parse_subjects,
    parse_summaries,
    parse_text_versions,
    parse_vote_ids,
    require_text,
)
from readingroom.bases.federal.formats.parts.bill_stage import determine_progress
from readingroom.bases.federal.formats.parts.files import FileStart, RawFile
from readingroom.bases.federal.formats.parts.people import (
    build_committee_stub,
    build_legislator_stub,
    name_sponsors,
    parse_chamber,
)
from readingroom.bases.federal.formats.parts.topics import (
    build_topic,
    build_topic_links,
    drop_repeated_topics,
)
from readingroom.bases.federal.formats.parts.xml import (
    get_text,
    hash_element,
    parse,
    parse_iso_date,
)
from readingroom.bases.federal.schema.congress import (
    GPO,
    SPOKEN,
    build_bill_page_url,
    format_bill_number,
    format_ordinal,
)
from readingroom.bases.federal.schema.entries import (
    FileProblem,
    Link,
    ParsedRecord,
    Provenance,
    SearchHead,
    build_citation_fields,
)
from readingroom.bases.federal.schema.ids import (
    make_amendment_id,
    make_bill_id,
    parse_report_citation,
)
from readingroom.bases.federal.schema.records import (
    Amendment,
    Bill,
    BillSummary,
    LinkKind,
    Person,
    SummaryVersion,
)

_MAX_LISTED_AMENDMENTS = 250
_AMENDMENT_ACTIONS = "actions/actions/item"
_VOTE_FIELDS = ("date", "chamber", "rollNumber", "fullActionName")


class BillStatus:
    """`BILLSTATUS-117hr1.xml`: a bill's status, and its amendments, topics and people."""

    format_id: ClassVar[str] = "billstatus/8"
    sources: ClassVar[tuple[str, ...]] = (
        "bills",
        "amendments",
        "cbo_cost_estimates",
        "committee_reports",
        "topic_taxonomy",
    )
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return b"<billStatus" in start.head

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord | FileProblem]:
        bill = parse(file.data).find("bill")
        if bill is None:
            raise ValueError("no <bill> in this file")
        parser = _BillParser(bill, provenance)
        # Stubs first: rows of cosponsors and committees have foreign keys to them.
        yield from parser.build_referenced_records()
        yield parser.build_bill()
        yield from parser.build_amendments()
        yield from parser.build_estimates()
        yield from parser.build_reports()
        yield from parser.find_missing_items()


class _BillParser:
    """Parses the file of one bill."""

    def __init__(self, element: Element, provenance: Provenance) -> None:
        self._element = element
        self._provenance = provenance
        self._stubbed: set[str] = set()
        self.congress = int(require_text(element, "congress"))
        self.kind = require_text(element, "type", "billType").lower()
        self.number = int(require_text(element, "number", "billNumber"))
        self.id = make_bill_id(self.congress, self.kind, self.number)
        self.page = build_bill_page_url(self.congress, self.kind, self.number)
        self.sponsors = [parse_person(item) for item in element.findall("sponsors/item")]
        self.cosponsors = [parse_cosponsor(item) for item in element.findall("cosponsors/item")]
        self.actions = [
            parse_action(item, self.congress) for item in element.findall("actions/item")
        ]
        self.committees = list(parse_committees(element))
        self.subjects = list(dict.fromkeys(parse_subjects(element)))
        self.costs = [
            parse_cost_estimate(item) for item in element.findall("cboCostEstimates/item")
        ]
        self.reported = dict(parse_reports(element, self.actions))
        # The oldest files wrap it in `billSubjects`, or still call it `primarySubject`.
        self.policy_area = get_text(element, "policyArea/name") or get_text(
            element, "subjects/billSubjects/policyArea/name"
        ) or get_text(element, "primarySubject/name")  # fmt: skip

    def build_referenced_records(self) -> Iterator[ParsedRecord]:
        """Yield stubs of what the bill refers to, so that every reference leads somewhere."""
        yield from self._build_people_stubs((*self.sponsors, *self.cosponsors))
        for committee in self.committees:
            yield build_committee_stub(
                committee.id, committee.name, committee.chamber, self._provenance
            )
        yield from self._build_topics()

    def build_bill(self) -> ParsedRecord:
        summaries = list(parse_summaries(self._element))
        record = self._build_bill_record(summaries)
        latest = record.latest_action
        return ParsedRecord(
            record,
            head=SearchHead(
                "\n".join((self._cite(record.title), *record.short_titles)),
                record.summary.text if record.summary else "",
                "\n".join((latest.text if latest else "", *name_sponsors(record.sponsors))).strip(),
            ),
            facets=self._build_facets(record),
            children=self._build_children(summaries),
            links=list(self._build_links(record)),
            revision=record.updated_at,
        )

    def _cite(self, title: str) -> str:
        return f"{format_bill_number(self.congress, self.kind, self.number)}, {title}"

    def _build_bill_record(self, summaries: Sequence[BillSummary]) -> Bill:
        element = self._element
        title = get_text(element, "title") or self.id
        introduced = parse_iso_date(get_text(element, "introducedDate"))
        updated = get_text(element, "updateDate")
        law_ids = [id for law in element.iterfind("laws/item") for id in parse_law_ids(law)]
        progress = determine_progress(
            self.congress,
            self.kind,
            self.actions,
            introduced_at=introduced,
            has_law=bool(law_ids),
            as_of=parse_iso_date(updated),
        )
        return Bill(
            id=self.id,
            title=title,
            congress=self.congress,
            type=self.kind,
            number=self.number,
            origin_chamber=parse_chamber(get_text(element, "originChamber")),
            introduced_at=introduced,
            updated_at=updated,
            policy_area=self.policy_area,
            subjects=self.subjects,
            sponsors=self.sponsors,
            committees=self.committees,
            latest_action=parse_latest_action(element.find("latestAction")),
            laws=law_ids,
            # A summary is written anew at each stage: the newest describes the bill as it stands.
            summary=max(summaries, key=lambda summary: summary.date or "", default=None),
            short_titles=parse_short_titles(element),
            text_versions=parse_text_versions(element),
            related_bills=list(parse_related_bills(element)),
            cost_estimates=self.costs,
            committee_reports=list(self.reported),
            report_ids=list(dict.fromkeys(filter(None, map(parse_report_citation, self.reported)))),
            votes=list(dict.fromkeys(self._list_votes())),
            cosponsor_count=count_cosponsors(element, self.cosponsors),
            action_count=len(self.actions),
            amendment_count=len(element.findall("amendments/amendment")),
            stage=progress.stage,
            stage_at=progress.reached_at
            or (introduced if progress.stage == "introduced" else None),
            outcome=progress.outcome,
            calendar_numbers=list(parse_calendar_numbers(element)),
            summary_versions=[
                SummaryVersion(
                    version=summary.version,
                    date=summary.date,
                    description=summary.description,
                    characters=len(summary.text),
                )
                for summary in summaries
            ],
            **build_citation_fields(
                self._provenance,
                url=self.page,
                org=GPO,
                cite=self._cite(title),
                published_at=introduced,
                as_of=updated,
            ),
        )

    def build_amendments(self) -> Iterator[ParsedRecord]:
        for item in self._element.findall("amendments/amendment"):
            yield from self._parse_amendment(item)

    def build_estimates(self) -> Iterator[ParsedRecord]:
        """Yield the cost estimates that CBO gave a number: each is a record of its own."""
        for estimate in self.costs:
            if estimate.id and estimate.url:
                yield cbo.build_estimate(
                    estimate.url,
                    estimate.title,
                    estimate.date,
                    [self.id],
                    self._provenance,
                    partial=True,
                )

    def build_reports(self) -> Iterator[ParsedRecord]:
        for citation in self.reported:
            if parse_report_citation(citation):
                yield reports.build_cited_report(citation, [self.id], self._provenance)

    def find_missing_items(self) -> Iterator[FileProblem]:
        """Yield where the file holds less than it says."""
        label = f"{SPOKEN[self.kind]} {self.number}"
        amendments = self._element.findall("amendments/amendment")
        miscounted = list(describe_miscounted_lists(self._element, label))
        for item in amendments:
            name = f"{require_text(item, 'type')} {require_text(item, 'number')}"
            miscounted += describe_miscounted_lists(item, name)
        if miscounted:
            more = f" (and {len(miscounted) - 1} more such lists)" if len(miscounted) > 1 else ""
            yield FileProblem(f"{miscounted[0]}{more}: download the file again")
        if len(amendments) == _MAX_LISTED_AMENDMENTS:
            yield FileProblem(
                f"{label} has {_MAX_LISTED_AMENDMENTS} amendments in the file, the most that GPO "
                "lists: there may be more, at congress.gov"
            )

    def _list_topics(self) -> list[str]:
        return drop_repeated_topics((self.policy_area, *self.subjects))

    def _build_topics(self) -> Iterator[ParsedRecord]:
        """Only the oldest files say to which wider subject one belongs."""
        items = self._element.findall("subjects/billSubjects/otherSubjects/item")
        parents = {get_text(item, "name"): get_text(item, "parentSubject/name") for item in items}
        for name in drop_repeated_topics((*parents.values(), *self._list_topics())):
            yield build_topic(name, self._provenance, parent=parents.get(name))

    def _list_votes(self) -> Iterator[str]:
        for action in self.actions:
            yield from action.votes
        for vote in self._element.findall("recordedVotes/recordedVote"):
            yield from parse_vote_ids(vote)

    def _build_facets(self, record: Bill) -> dict[str, list[str]]:
        sponsor = self.sponsors[:1]
        facets: dict[str, Sequence[str | None]] = {
            "congress": [str(self.congress)],
            "type": [self.kind],
            "chamber": [record.origin_chamber],
            "party": [person.party for person in sponsor],
            "state": [person.state for person in sponsor],
            "topic": self._list_topics(),
            "member": [sponsor.bioguide_id for sponsor in self.sponsors],
        }
        return drop_empty_fields(facets)

    def _build_children(self, summaries: Sequence[BillSummary]) -> dict[str, list[tuple[Any, ...]]]:
        committees = sorted({committee.id for committee in self.committees})
        return {
            "bill_cosponsors": [
                (position, cosponsor.bioguide_id, cosponsor.model_dump_json())
                for position, cosponsor in enumerate(self.cosponsors, start=1)
            ],
            "bill_actions": [
                (position, action.date, action.model_dump_json())
                for position, action in enumerate(self.actions, start=1)
            ],
            "bill_committees": [(committee,) for committee in committees],
            "bill_summaries": [
                (position, summary.model_dump_json())
                for position, summary in enumerate(summaries, start=1)
            ],
        }

    def _build_links(self, record: Bill) -> Iterator[Link]:
        """What the file names beside the bill, each with the field that names it."""
        for law in self._element.iterfind("laws/item"):
            for id in parse_law_ids(law):
                words = " ".join(filter(None, (get_text(law, "type"), get_text(law, "number"))))
                yield Link(LinkKind.LAW, id, f"laws/item: {words}")
        for vote in self._element.iterfind("recordedVotes/recordedVote"):
            words = " ".join(filter(None, (get_text(vote, name) for name in _VOTE_FIELDS)))
            for id in parse_vote_ids(vote):
                yield Link(LinkKind.VOTE, id, f"recordedVotes/recordedVote: {words}")
        yield from build_vote_links(self._element.iterfind("actions/item"), self.actions)
        for other in record.related_bills:
            how = ", ".join(other.relationships) or "related"
            yield Link(LinkKind.RELATED, other.id, f"relatedBills/item: {how}")
        for estimate in record.cost_estimates:
            if estimate.id:
                evidence = f"cboCostEstimates/item: {estimate.title} {estimate.url}"
                yield Link(LinkKind.COST_ESTIMATE, estimate.id, evidence)
        for citation, evidence in self.reported.items():
            if report := parse_report_citation(citation):
                yield Link(LinkKind.COMMITTEE_REPORT, report, evidence)
        yield from build_topic_links(drop_repeated_topics((self.policy_area,)), "policyArea")
        yield from build_topic_links(drop_repeated_topics(self.subjects), "subjects")

    def _parse_amendment(self, item: Element) -> Iterator[ParsedRecord]:
        record = self._build_amendment_record(item)
        yield from self._build_people_stubs((*record.sponsors, *record.cosponsors))
        facets: dict[str, Sequence[str | None]] = {
            "congress": [str(record.congress)],
            "type": [record.type],
            "chamber": [record.chamber],
            "party": [sponsor.party for sponsor in record.sponsors[:1]],
            "state": [sponsor.state for sponsor in record.sponsors[:1]],
            "member": [sponsor.bioguide_id for sponsor in record.sponsors],
            "bill": [self.id],
        }
        latest = record.latest_action
        yield ParsedRecord(
            record,
            head=SearchHead(record.title, record.description or "", latest.text if latest else ""),
            facets=drop_empty_fields(facets),
            links=[
                *self._build_amendment_links(item, record),
                *build_vote_links(item.findall(_AMENDMENT_ACTIONS), record.actions),
            ],
            revision=get_text(item, "updateDate"),
        )

    def _build_amendment_record(self, item: Element) -> Amendment:
        # Number, congress and type stand twice in one amendment; the first of each is its own.
        congress, kind = int(require_text(item, "congress")), require_text(item, "type").lower()
        number = int(require_text(item, "number"))
        cosponsors = [parse_cosponsor(element) for element in item.iterfind("cosponsors/item")]
        actions = [parse_action(element, congress) for element in item.iterfind(_AMENDMENT_ACTIONS)]
        submitted = parse_iso_date(get_text(item, "submittedDate"))
        proposed = parse_iso_date(get_text(item, "proposedDate"))
        first_action = min((action.date for action in actions if action.date), default=None)
        latest = parse_latest_action(item.find("latestAction"))
        latest_date = latest.date if latest else None
        purpose = get_text(item, "purpose")
        label = f"{'S.Amdt.' if kind == 'samdt' else 'H.Amdt.'} {number}"
        cite = f"{label} to {SPOKEN[self.kind]} {self.number}, {format_ordinal(congress)} Congress"
        slug = "senate-amendment" if kind == "samdt" else "house-amendment"
        return Amendment(
            id=make_amendment_id(congress, kind, number),
            title=f"{cite}: {purpose}" if purpose else cite,
            congress=congress,
            type=kind,
            number=number,
            # The oldest files leave it empty; the type says it.
            chamber=parse_chamber(get_text(item, "chamber") or kind),
            bill_id=self.id,
            amends=parse_amended_id(item),
            purpose=purpose,
            description=get_text(item, "description"),
            submitted_at=submitted,
            proposed_at=proposed,
            sponsors=[parse_person(element) for element in item.iterfind("sponsors/item")],
            cosponsor_count=count_cosponsors(item, cosponsors),
            cosponsors=cosponsors,
            latest_action=latest,
            actions=actions,
            votes=list(dict.fromkeys(vote for action in actions for vote in action.votes)),
            **build_citation_fields(
                self._provenance,
                url=f"https://www.congress.gov/amendment/{format_ordinal(congress)}-congress/{slug}/{number}",
                org=GPO,
                cite=cite,
                published_at=submitted or proposed or first_action or latest_date,
                as_of=get_text(item, "updateDate") or get_text(self._element, "updateDate"),
                # Its own: else an action on the bill would make all its amendments look changed.
                raw_sha256=hash_element(item),
            ),
        )

    def _build_amendment_links(self, item: Element, record: Amendment) -> Iterator[Link]:
        bill = f"{SPOKEN[self.kind]} {self.number}"
        yield Link(LinkKind.AMENDMENT, self.id, f"amendments/amendment in the file of {bill}")
        if record.amends:
            parts = (f"amendedAmendment/{name}" for name in ("type", "number", "purpose"))
            words = " ".join(filter(None, (get_text(item, part) for part in parts)))[:MAX_EVIDENCE]
            yield Link(LinkKind.AMENDMENT, record.amends, f"amendedAmendment: {words}")

    def _build_people_stubs(self, people: Iterable[Person]) -> Iterator[ParsedRecord]:
        """Stubs of those whom the file has not named before; a Senator may offer a hundred."""
        for person in people:
            if person.bioguide_id and person.bioguide_id not in self._stubbed:
                self._stubbed.add(person.bioguide_id)
                yield build_legislator_stub(person, self._provenance)
