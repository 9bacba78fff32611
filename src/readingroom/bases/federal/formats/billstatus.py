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

    def matches(self, file_start: FileStart) -> bool:
        return b"<billStatus" in file_start.head

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

    def __init__(self, bill_element: Element, provenance: Provenance) -> None:
        self._element = bill_element
        self._provenance = provenance
        self._stubbed: set[str] = set()
        self.congress = int(require_text(bill_element, "congress"))
        self.kind = require_text(bill_element, "type", "billType").lower()
        self.number = int(require_text(bill_element, "number", "billNumber"))
        self.id = make_bill_id(self.congress, self.kind, self.number)
        self.page = build_bill_page_url(self.congress, self.kind, self.number)
        self.sponsors = [
            parse_person(sponsor_element)
            for sponsor_element in bill_element.findall("sponsors/item")
        ]
        self.cosponsors = [
            parse_cosponsor(sponsor_element)
            for sponsor_element in bill_element.findall("cosponsors/item")
        ]
        self.actions = [
            parse_action(sponsor_element, self.congress)
            for sponsor_element in bill_element.findall("actions/item")
        ]
        self.committees = list(parse_committees(bill_element))
        self.subjects = list(dict.fromkeys(parse_subjects(bill_element)))
        self.costs = [
            parse_cost_estimate(sponsor_element)
            for sponsor_element in bill_element.findall("cboCostEstimates/item")
        ]
        self.reported = dict(parse_reports(bill_element, self.actions))
        # The oldest files wrap it in `billSubjects`, or still call it `primarySubject`.
        self.policy_area = get_text(bill_element, "policyArea/name") or get_text(
            bill_element, "subjects/billSubjects/policyArea/name"
        ) or get_text(bill_element, "primarySubject/name")  # fmt: skip

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
        bill_record = self._build_bill_record(summaries)
        latest = bill_record.latest_action
        return ParsedRecord(
            bill_record,
            head=SearchHead(
                "\n".join((self._cite(bill_record.title), *bill_record.short_titles)),
                bill_record.summary.text if bill_record.summary else "",
                "\n".join(
                    (latest.text if latest else "", *name_sponsors(bill_record.sponsors))
                ).strip(),
            ),
            facets=self._build_facets(bill_record),
            children=self._build_children(summaries),
            links=list(self._build_links(bill_record)),
            revision=bill_record.updated_at,
        )

    def _cite(self, bill_title: str) -> str:
        return f"{format_bill_number(self.congress, self.kind, self.number)}, {bill_title}"

    def _build_bill_record(self, summaries: Sequence[BillSummary]) -> Bill:
        bill_element = self._element
        bill_title = get_text(bill_element, "title") or self.id
        introduced = parse_iso_date(get_text(bill_element, "introducedDate"))
        updated = get_text(bill_element, "updateDate")
        law_ids = [
            law_id for law in bill_element.iterfind("laws/item") for law_id in parse_law_ids(law)
        ]
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
            title=bill_title,
            congress=self.congress,
            type=self.kind,
            number=self.number,
            origin_chamber=parse_chamber(get_text(bill_element, "originChamber")),
            introduced_at=introduced,
            updated_at=updated,
            policy_area=self.policy_area,
            subjects=self.subjects,
            sponsors=self.sponsors,
            committees=self.committees,
            latest_action=parse_latest_action(bill_element.find("latestAction")),
            laws=law_ids,
            # A summary is written anew at each stage: the newest describes the bill as it stands.
            summary=max(summaries, key=lambda summary: summary.date or "", default=None),
            short_titles=parse_short_titles(bill_element),
            text_versions=parse_text_versions(bill_element),
            related_bills=list(parse_related_bills(bill_element)),
            cost_estimates=self.costs,
            committee_reports=list(self.reported),
            report_ids=list(dict.fromkeys(filter(None, map(parse_report_citation, self.reported)))),
            votes=list(dict.fromkeys(self._list_votes())),
            cosponsor_count=count_cosponsors(bill_element, self.cosponsors),
            action_count=len(self.actions),
            amendment_count=len(bill_element.findall("amendments/amendment")),
            stage=progress.stage,
            stage_at=progress.reached_at
            or (introduced if progress.stage == "introduced" else None),
            outcome=progress.outcome,
            calendar_numbers=list(parse_calendar_numbers(bill_element)),
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
                cite=self._cite(bill_title),
                published_at=introduced,
                as_of=updated,
            ),
        )

    def build_amendments(self) -> Iterator[ParsedRecord]:
        for amendment_element in self._element.findall("amendments/amendment"):
            yield from self._parse_amendment(amendment_element)

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
        bill_label = f"{SPOKEN[self.kind]} {self.number}"
        amendments = self._element.findall("amendments/amendment")
        miscounted = list(describe_miscounted_lists(self._element, bill_label))
        for amendment_element in amendments:
            amendment_type = require_text(amendment_element, "type")
            amendment_label = f"{amendment_type} {require_text(amendment_element, 'number')}"
            miscounted += describe_miscounted_lists(amendment_element, amendment_label)
        if miscounted:
            more = f" (and {len(miscounted) - 1} more such lists)" if len(miscounted) > 1 else ""
            yield FileProblem(f"{miscounted[0]}{more}: download the file again")
        if len(amendments) == _MAX_LISTED_AMENDMENTS:
            yield FileProblem(
                f"{bill_label} has {_MAX_LISTED_AMENDMENTS} amendments in the file, the most that "
                "GPO lists: there may be more, at congress.gov"
            )

    def _list_topics(self) -> list[str]:
        return drop_repeated_topics((self.policy_area, *self.subjects))

    def _build_topics(self) -> Iterator[ParsedRecord]:
        """Only the oldest files say to which wider subject one belongs."""
        subject_elements = self._element.findall("subjects/billSubjects/otherSubjects/item")
        parents = {
            get_text(subject_element, "name"): get_text(subject_element, "parentSubject/name")
            for subject_element in subject_elements
        }
        for topic_name in drop_repeated_topics((*parents.values(), *self._list_topics())):
            yield build_topic(topic_name, self._provenance, parent_name=parents.get(topic_name))

    def _list_votes(self) -> Iterator[str]:
        for action in self.actions:
            yield from action.votes
        for vote in self._element.findall("recordedVotes/recordedVote"):
            yield from parse_vote_ids(vote)

    def _build_facets(self, bill_record: Bill) -> dict[str, list[str]]:
        sponsor = self.sponsors[:1]
        facets: dict[str, Sequence[str | None]] = {
            "congress": [str(self.congress)],
            "type": [self.kind],
            "chamber": [bill_record.origin_chamber],
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

    def _build_links(self, bill_record: Bill) -> Iterator[Link]:
        """What the file names beside the bill, each with the field that names it."""
        for law in self._element.iterfind("laws/item"):
            for law_id in parse_law_ids(law):
                vote_description = " ".join(
                    filter(None, (get_text(law, "type"), get_text(law, "number")))
                )
                yield Link(LinkKind.LAW, law_id, f"laws/item: {vote_description}")
        for vote in self._element.iterfind("recordedVotes/recordedVote"):
            vote_description = " ".join(
                filter(None, (get_text(vote, field_name) for field_name in _VOTE_FIELDS))
            )
            for law_id in parse_vote_ids(vote):
                yield Link(LinkKind.VOTE, law_id, f"recordedVotes/recordedVote: {vote_description}")
        yield from build_vote_links(self._element.iterfind("actions/item"), self.actions)
        for related_bill in bill_record.related_bills:
            how = ", ".join(related_bill.relationships) or "related"
            yield Link(LinkKind.RELATED, related_bill.id, f"relatedBills/item: {how}")
        for estimate in bill_record.cost_estimates:
            if estimate.id:
                evidence = f"cboCostEstimates/item: {estimate.title} {estimate.url}"
                yield Link(LinkKind.COST_ESTIMATE, estimate.id, evidence)
        for citation, evidence in self.reported.items():
            if report_id := parse_report_citation(citation):
                yield Link(LinkKind.COMMITTEE_REPORT, report_id, evidence)
        yield from build_topic_links(drop_repeated_topics((self.policy_area,)), "policyArea")
        yield from build_topic_links(drop_repeated_topics(self.subjects), "subjects")

    def _parse_amendment(self, amendment_element: Element) -> Iterator[ParsedRecord]:
        amendment_record = self._build_amendment_record(amendment_element)
        yield from self._build_people_stubs(
            (*amendment_record.sponsors, *amendment_record.cosponsors)
        )
        facets: dict[str, Sequence[str | None]] = {
            "congress": [str(amendment_record.congress)],
            "type": [amendment_record.type],
            "chamber": [amendment_record.chamber],
            "party": [sponsor.party for sponsor in amendment_record.sponsors[:1]],
            "state": [sponsor.state for sponsor in amendment_record.sponsors[:1]],
            "member": [sponsor.bioguide_id for sponsor in amendment_record.sponsors],
            "bill": [self.id],
        }
        latest = amendment_record.latest_action
        yield ParsedRecord(
            amendment_record,
            head=SearchHead(
                amendment_record.title,
                amendment_record.description or "",
                latest.text if latest else "",
            ),
            facets=drop_empty_fields(facets),
            links=[
                *self._build_amendment_links(amendment_element, amendment_record),
                *build_vote_links(
                    amendment_element.findall(_AMENDMENT_ACTIONS), amendment_record.actions
                ),
            ],
            revision=get_text(amendment_element, "updateDate"),
        )

    def _build_amendment_record(self, amendment_element: Element) -> Amendment:
        # Number, congress and type stand twice in one amendment; the first of each is its own.
        congress, amendment_type = (
            int(require_text(amendment_element, "congress")),
            require_text(amendment_element, "type").lower(),
        )
        amendment_number = int(require_text(amendment_element, "number"))
        cosponsors = [
            parse_cosponsor(cosponsor_element)
            for cosponsor_element in amendment_element.iterfind("cosponsors/item")
        ]
        actions = [
            parse_action(cosponsor_element, congress)
            for cosponsor_element in amendment_element.iterfind(_AMENDMENT_ACTIONS)
        ]
        submitted = parse_iso_date(get_text(amendment_element, "submittedDate"))
        proposed = parse_iso_date(get_text(amendment_element, "proposedDate"))
        first_action = min((action.date for action in actions if action.date), default=None)
        latest = parse_latest_action(amendment_element.find("latestAction"))
        latest_date = latest.date if latest else None
        purpose = get_text(amendment_element, "purpose")
        amendment_label = (
            f"{'S.Amdt.' if amendment_type == 'samdt' else 'H.Amdt.'} {amendment_number}"
        )
        bill_label = f"{SPOKEN[self.kind]} {self.number}"
        cite = f"{amendment_label} to {bill_label}, {format_ordinal(congress)} Congress"
        slug = "senate-amendment" if amendment_type == "samdt" else "house-amendment"
        return Amendment(
            id=make_amendment_id(congress, amendment_type, amendment_number),
            title=f"{cite}: {purpose}" if purpose else cite,
            congress=congress,
            type=amendment_type,
            number=amendment_number,
            # The oldest files leave it empty; the type says it.
            chamber=parse_chamber(get_text(amendment_element, "chamber") or amendment_type),
            bill_id=self.id,
            amends=parse_amended_id(amendment_element),
            purpose=purpose,
            description=get_text(amendment_element, "description"),
            submitted_at=submitted,
            proposed_at=proposed,
            sponsors=[
                parse_person(cosponsor_element)
                for cosponsor_element in amendment_element.iterfind("sponsors/item")
            ],
            cosponsor_count=count_cosponsors(amendment_element, cosponsors),
            cosponsors=cosponsors,
            latest_action=latest,
            actions=actions,
            votes=list(dict.fromkeys(vote for action in actions for vote in action.votes)),
            **build_citation_fields(
                self._provenance,
                url=f"https://www.congress.gov/amendment/{format_ordinal(congress)}-congress/{slug}/{amendment_number}",
                org=GPO,
                cite=cite,
                published_at=submitted or proposed or first_action or latest_date,
                as_of=get_text(amendment_element, "updateDate")
                or get_text(self._element, "updateDate"),
                # Its own: else an action on the bill would make all its amendments look changed.
                raw_sha256=hash_element(amendment_element),
            ),
        )

    def _build_amendment_links(
        self, amendment_element: Element, amendment_record: Amendment
    ) -> Iterator[Link]:
        bill = f"{SPOKEN[self.kind]} {self.number}"
        yield Link(LinkKind.AMENDMENT, self.id, f"amendments/amendment in the file of {bill}")
        if amendment_record.amends:
            field_paths = (
                f"amendedAmendment/{field_name}" for field_name in ("type", "number", "purpose")
            )
            amended_description = " ".join(
                filter(
                    None, (get_text(amendment_element, field_path) for field_path in field_paths)
                )
            )[:MAX_EVIDENCE]
            yield Link(
                LinkKind.AMENDMENT,
                amendment_record.amends,
                f"amendedAmendment: {amended_description}",
            )

    def _build_people_stubs(self, people: Iterable[Person]) -> Iterator[ParsedRecord]:
        """Stubs of those whom the file has not named before; a Senator may offer a hundred."""
        for person in people:
            if person.bioguide_id and person.bioguide_id not in self._stubbed:
                self._stubbed.add(person.bioguide_id)
                yield build_legislator_stub(person, self._provenance)
