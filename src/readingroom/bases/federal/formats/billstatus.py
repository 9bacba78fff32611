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
    MAX_EVIDENCE_CHARS,
    build_vote_links,
    count_cosponsors,
    describe_miscounted_lists,
    drop_empty_values,
    find_cited_reports,
    parse_action,
    parse_amended_amendment_id,
    parse_calendar_numbers,
    parse_committees,
    parse_cosponsor,
    parse_cost_estimate,
    parse_latest_action,
    parse_law_ids,
    parse_person,
    parse_related_bills,
    parse_short_titles,
    parse_subject_names,
    parse_summaries,
    parse_text_versions,
    parse_vote_ids,
    require_text,
)
from readingroom.bases.federal.formats.parts.bill_stage import determine_progress
from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.formats.parts.people import (
    build_committee_stub,
    build_legislator_stub,
    format_sponsor_lines,
    parse_chamber,
)
from readingroom.bases.federal.formats.parts.topics import (
    build_topic,
    build_topic_links,
    drop_repeated_topics,
)
from readingroom.bases.federal.formats.parts.xml import (
    find_text,
    hash_element,
    parse_iso_date,
    parse_xml,
)
from readingroom.bases.federal.schema.congress import (
    GPO_PUBLISHER,
    LABEL_BY_BILL_TYPE,
    build_bill_page_url,
    format_bill_number,
    format_ordinal,
)
from readingroom.bases.federal.schema.entries import (
    FileProblem,
    FileStamp,
    ParsedRecord,
    RecordLink,
    SearchableFields,
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
_AMENDMENT_ACTION_PATH = "actions/actions/item"
_VOTE_TAGS = ("date", "chamber", "rollNumber", "fullActionName")


class BillStatusLoader:
    """`BILLSTATUS-117hr1.xml`: a bill's status, and its amendments, topics and people."""

    format_id: ClassVar[str] = "billstatus/8"
    record_source_names: ClassVar[tuple[str, ...]] = (
        "bills",
        "amendments",
        "cbo_cost_estimates",
        "committee_reports",
        "topic_taxonomy",
    )
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return b"<billStatus" in file_start_reader.first_bytes

    def parse(
        self, raw_file: RawFile, file_stamp: FileStamp
    ) -> Iterator[ParsedRecord | FileProblem]:
        bill_element = parse_xml(raw_file.data).find("bill")
        if bill_element is None:
            raise ValueError("no <bill> in this file")
        bill_parser = _BillParser(bill_element, file_stamp)
        # Stubs first: rows of cosponsors and committees have foreign keys to them.
        yield from bill_parser.build_referenced_records()
        yield bill_parser.build_bill()
        yield from bill_parser.build_amendments()
        yield from bill_parser.build_estimates()
        yield from bill_parser.build_reports()
        yield from bill_parser.list_file_problems()


class _BillParser:
    """Parses the file of one bill."""

    def __init__(self, bill_element: Element, file_stamp: FileStamp) -> None:
        self._bill_element = bill_element
        self._file_stamp = file_stamp
        self._stubbed_ids: set[str] = set()
        self.congress = int(require_text(bill_element, "congress"))
        self.bill_type = require_text(bill_element, "type", "billType").lower()
        self.bill_number = int(require_text(bill_element, "number", "billNumber"))
        self.bill_id = make_bill_id(self.congress, self.bill_type, self.bill_number)
        self.bill_url = build_bill_page_url(self.congress, self.bill_type, self.bill_number)
        self.sponsors = [
            parse_person(sponsor_element)
            for sponsor_element in bill_element.findall("sponsors/item")
        ]
        self.cosponsors = [
            parse_cosponsor(cosponsor_element)
            for cosponsor_element in bill_element.findall("cosponsors/item")
        ]
        self.actions = [
            parse_action(action_element, self.congress)
            for action_element in bill_element.findall("actions/item")
        ]
        self.committees = list(parse_committees(bill_element))
        self.subjects = list(dict.fromkeys(parse_subject_names(bill_element)))
        self.cost_estimates = [
            parse_cost_estimate(estimate_element)
            for estimate_element in bill_element.findall("cboCostEstimates/item")
        ]
        self.evidence_by_citation = dict(find_cited_reports(bill_element, self.actions))
        # The oldest files wrap it in `billSubjects`, or still call it `primarySubject`.
        self.policy_area = find_text(bill_element, "policyArea/name") or find_text(
            bill_element, "subjects/billSubjects/policyArea/name"
        ) or find_text(bill_element, "primarySubject/name")  # fmt: skip

    def build_referenced_records(self) -> Iterator[ParsedRecord]:
        """Yield stubs of what the bill refers to, so that every reference leads somewhere."""
        yield from self._build_people_stubs((*self.sponsors, *self.cosponsors))
        for bill_committee in self.committees:
            yield build_committee_stub(
                bill_committee.id, bill_committee.name, bill_committee.chamber, self._file_stamp
            )
        yield from self._build_topics()

    def build_bill(self) -> ParsedRecord:
        summaries = list(parse_summaries(self._bill_element))
        bill_record = self._build_bill_record(summaries)
        action_text = bill_record.latest_action.text if bill_record.latest_action else ""
        return ParsedRecord(
            bill_record,
            searchable_fields=SearchableFields(
                "\n".join((self._format_citation(bill_record.title), *bill_record.short_titles)),
                bill_record.summary.text if bill_record.summary else "",
                "\n".join((action_text, *format_sponsor_lines(bill_record.sponsors))).strip(),
            ),
            values_by_facet=self._build_facets(bill_record),
            child_rows_by_table=self._build_children(summaries),
            links=list(self._build_links(bill_record)),
            revision=bill_record.updated_at,
        )

    def _format_citation(self, bill_title: str) -> str:
        bill_label = format_bill_number(self.congress, self.bill_type, self.bill_number)
        return f"{bill_label}, {bill_title}"

    def _build_bill_record(self, summaries: Sequence[BillSummary]) -> Bill:
        bill_element = self._bill_element
        bill_title = find_text(bill_element, "title") or self.bill_id
        introduced_at = parse_iso_date(find_text(bill_element, "introducedDate"))
        updated_at = find_text(bill_element, "updateDate")
        law_ids = [
            law_id
            for law_element in bill_element.iterfind("laws/item")
            for law_id in parse_law_ids(law_element)
        ]
        report_ids = map(parse_report_citation, self.evidence_by_citation)
        bill_progress = determine_progress(
            self.congress,
            self.bill_type,
            self.actions,
            introduced_at=introduced_at,
            has_law=bool(law_ids),
            as_of=parse_iso_date(updated_at),
        )
        return Bill(
            id=self.bill_id,
            title=bill_title,
            congress=self.congress,
            type=self.bill_type,
            number=self.bill_number,
            origin_chamber=parse_chamber(find_text(bill_element, "originChamber")),
            introduced_at=introduced_at,
            updated_at=updated_at,
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
            cost_estimates=self.cost_estimates,
            committee_reports=list(self.evidence_by_citation),
            report_ids=list(dict.fromkeys(filter(None, report_ids))),
            votes=list(dict.fromkeys(self._list_vote_ids())),
            cosponsor_count=count_cosponsors(bill_element, self.cosponsors),
            action_count=len(self.actions),
            amendment_count=len(bill_element.findall("amendments/amendment")),
            stage=bill_progress.stage,
            stage_at=bill_progress.reached_at
            or (introduced_at if bill_progress.stage == "introduced" else None),
            outcome=bill_progress.outcome,
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
                self._file_stamp,
                url=self.bill_url,
                org=GPO_PUBLISHER,
                cite=self._format_citation(bill_title),
                published_at=introduced_at,
                as_of=updated_at,
            ),
        )

    def build_amendments(self) -> Iterator[ParsedRecord]:
        for amendment_element in self._bill_element.findall("amendments/amendment"):
            yield from self._parse_amendment(amendment_element)

    def build_estimates(self) -> Iterator[ParsedRecord]:
        """Yield the cost estimates that CBO gave a number: each is a record of its own."""
        for cost_estimate in self.cost_estimates:
            if cost_estimate.id and cost_estimate.url:
                yield cbo.build_estimate_record(
                    cost_estimate.url,
                    cost_estimate.title,
                    cost_estimate.date,
                    [self.bill_id],
                    self._file_stamp,
                    is_partial=True,
                )

    def build_reports(self) -> Iterator[ParsedRecord]:
        for report_citation in self.evidence_by_citation:
            if parse_report_citation(report_citation):
                yield reports.build_cited_report(report_citation, [self.bill_id], self._file_stamp)

    def list_file_problems(self) -> Iterator[FileProblem]:
        """Yield where the file holds less than it says."""
        bill_label = f"{LABEL_BY_BILL_TYPE[self.bill_type]} {self.bill_number}"
        amendment_elements = self._bill_element.findall("amendments/amendment")
        miscount_messages = list(describe_miscounted_lists(self._bill_element, bill_label))
        for amendment_element in amendment_elements:
            amendment_type = require_text(amendment_element, "type")
            amendment_label = f"{amendment_type} {require_text(amendment_element, 'number')}"
            miscount_messages += describe_miscounted_lists(amendment_element, amendment_label)
        if miscount_messages:
            further_count = len(miscount_messages) - 1
            further_note = f" (and {further_count} more such lists)" if further_count else ""
            yield FileProblem(f"{miscount_messages[0]}{further_note}: download the file again")
        if len(amendment_elements) == _MAX_LISTED_AMENDMENTS:
            yield FileProblem(
                f"{bill_label} has {_MAX_LISTED_AMENDMENTS} amendments in the file, the most that "
                "GPO lists: there may be more, at congress.gov"
            )

    def _list_topic_names(self) -> list[str]:
        return drop_repeated_topics((self.policy_area, *self.subjects))

    def _build_topics(self) -> Iterator[ParsedRecord]:
        """Only the oldest files say to which wider subject one belongs."""
        subject_elements = self._bill_element.findall("subjects/billSubjects/otherSubjects/item")
        parent_by_topic = {
            find_text(subject_element, "name"): find_text(subject_element, "parentSubject/name")
            for subject_element in subject_elements
        }
        topic_names = drop_repeated_topics((*parent_by_topic.values(), *self._list_topic_names()))
        for topic_name in topic_names:
            parent_name = parent_by_topic.get(topic_name)
            yield build_topic(topic_name, self._file_stamp, parent_topic_name=parent_name)

    def _list_vote_ids(self) -> Iterator[str]:
        for bill_action in self.actions:
            yield from bill_action.votes
        for vote_element in self._bill_element.findall("recordedVotes/recordedVote"):
            yield from parse_vote_ids(vote_element)

    def _build_facets(self, bill_record: Bill) -> dict[str, list[str]]:
        first_sponsors = self.sponsors[:1]
        values_by_facet: dict[str, Sequence[str | None]] = {
            "congress": [str(self.congress)],
            "type": [self.bill_type],
            "chamber": [bill_record.origin_chamber],
            "party": [named_person.party for named_person in first_sponsors],
            "state": [named_person.state for named_person in first_sponsors],
            "topic": self._list_topic_names(),
            "member": [bill_sponsor.bioguide_id for bill_sponsor in self.sponsors],
        }
        return drop_empty_values(values_by_facet)

    def _build_children(self, summaries: Sequence[BillSummary]) -> dict[str, list[tuple[Any, ...]]]:
        committee_ids = sorted({bill_committee.id for bill_committee in self.committees})
        return {
            "bill_cosponsors": [
                (list_position, bill_cosponsor.bioguide_id, bill_cosponsor.model_dump_json())
                for list_position, bill_cosponsor in enumerate(self.cosponsors, start=1)
            ],
            "bill_actions": [
                (list_position, bill_action.date, bill_action.model_dump_json())
                for list_position, bill_action in enumerate(self.actions, start=1)
            ],
            "bill_committees": [(committee_id,) for committee_id in committee_ids],
            "bill_summaries": [
                (list_position, summary.model_dump_json())
                for list_position, summary in enumerate(summaries, start=1)
            ],
        }

    def _build_links(self, bill_record: Bill) -> Iterator[RecordLink]:
        """What the file names beside the bill, each with the field that names it."""
        for law_element in self._bill_element.iterfind("laws/item"):
            for law_id in parse_law_ids(law_element):
                law_description = " ".join(
                    filter(None, (find_text(law_element, "type"), find_text(law_element, "number")))
                )
                yield RecordLink(LinkKind.LAW, law_id, f"laws/item: {law_description}")
        for vote_element in self._bill_element.iterfind("recordedVotes/recordedVote"):
            vote_description = " ".join(
                filter(None, (find_text(vote_element, field_name) for field_name in _VOTE_TAGS))
            )
            for vote_id in parse_vote_ids(vote_element):
                evidence_text = f"recordedVotes/recordedVote: {vote_description}"
                yield RecordLink(LinkKind.VOTE, vote_id, evidence_text)
        yield from build_vote_links(self._bill_element.iterfind("actions/item"), self.actions)
        for related_bill in bill_record.related_bills:
            relations_text = ", ".join(related_bill.relationships) or "related"
            evidence_text = f"relatedBills/item: {relations_text}"
            yield RecordLink(LinkKind.RELATED, related_bill.id, evidence_text)
        for cost_estimate in bill_record.cost_estimates:
            if cost_estimate.id:
                evidence_text = f"cboCostEstimates/item: {cost_estimate.title} {cost_estimate.url}"
                yield RecordLink(LinkKind.COST_ESTIMATE, cost_estimate.id, evidence_text)
        for report_citation, evidence_text in self.evidence_by_citation.items():
            if report_id := parse_report_citation(report_citation):
                yield RecordLink(LinkKind.COMMITTEE_REPORT, report_id, evidence_text)
        yield from build_topic_links(drop_repeated_topics((self.policy_area,)), "policyArea")
        yield from build_topic_links(drop_repeated_topics(self.subjects), "subjects")

    def _parse_amendment(self, amendment_element: Element) -> Iterator[ParsedRecord]:
        amendment_record = self._build_amendment_record(amendment_element)
        yield from self._build_people_stubs(
            (*amendment_record.sponsors, *amendment_record.cosponsors)
        )
        values_by_facet: dict[str, Sequence[str | None]] = {
            "congress": [str(amendment_record.congress)],
            "type": [amendment_record.type],
            "chamber": [amendment_record.chamber],
            "party": [sponsor.party for sponsor in amendment_record.sponsors[:1]],
            "state": [sponsor.state for sponsor in amendment_record.sponsors[:1]],
            "member": [sponsor.bioguide_id for sponsor in amendment_record.sponsors],
            "bill": [self.bill_id],
        }
        latest_action = amendment_record.latest_action
        yield ParsedRecord(
            amendment_record,
            searchable_fields=SearchableFields(
                amendment_record.title,
                amendment_record.description or "",
                latest_action.text if latest_action else "",
            ),
            values_by_facet=drop_empty_values(values_by_facet),
            links=[
                *self._build_amendment_links(amendment_element, amendment_record),
                *build_vote_links(
                    amendment_element.findall(_AMENDMENT_ACTION_PATH), amendment_record.actions
                ),
            ],
            revision=find_text(amendment_element, "updateDate"),
        )

    def _build_amendment_record(self, amendment_element: Element) -> Amendment:
        # Number, congress and type stand twice in one amendment; the first of each is its own.
        congress = int(require_text(amendment_element, "congress"))
        amendment_type = require_text(amendment_element, "type").lower()
        amendment_number = int(require_text(amendment_element, "number"))
        amendment_cosponsors = [
            parse_cosponsor(cosponsor_element)
            for cosponsor_element in amendment_element.iterfind("cosponsors/item")
        ]
        actions = [
            parse_action(action_element, congress)
            for action_element in amendment_element.iterfind(_AMENDMENT_ACTION_PATH)
        ]
        submitted_at = parse_iso_date(find_text(amendment_element, "submittedDate"))
        proposed_at = parse_iso_date(find_text(amendment_element, "proposedDate"))
        first_action_date = min((action.date for action in actions if action.date), default=None)
        latest_action = parse_latest_action(amendment_element.find("latestAction"))
        latest_action_date = latest_action.date if latest_action else None
        purpose = find_text(amendment_element, "purpose")
        amendment_label = (
            f"{'S.Amdt.' if amendment_type == 'samdt' else 'H.Amdt.'} {amendment_number}"
        )
        bill_label = f"{LABEL_BY_BILL_TYPE[self.bill_type]} {self.bill_number}"
        citation_text = f"{amendment_label} to {bill_label}, {format_ordinal(congress)} Congress"
        url_slug = "senate-amendment" if amendment_type == "samdt" else "house-amendment"
        return Amendment(
            id=make_amendment_id(congress, amendment_type, amendment_number),
            title=f"{citation_text}: {purpose}" if purpose else citation_text,
            congress=congress,
            type=amendment_type,
            number=amendment_number,
            # The oldest files leave it empty; the type says it.
            chamber=parse_chamber(find_text(amendment_element, "chamber") or amendment_type),
            bill_id=self.bill_id,
            amends=parse_amended_amendment_id(amendment_element),
            purpose=purpose,
            description=find_text(amendment_element, "description"),
            submitted_at=submitted_at,
            proposed_at=proposed_at,
            sponsors=[
                parse_person(sponsor_element)
                for sponsor_element in amendment_element.iterfind("sponsors/item")
            ],
            cosponsor_count=count_cosponsors(amendment_element, amendment_cosponsors),
            cosponsors=amendment_cosponsors,
            latest_action=latest_action,
            actions=actions,
            votes=list(dict.fromkeys(vote_id for action in actions for vote_id in action.votes)),
            **build_citation_fields(
                self._file_stamp,
                url=f"https://www.congress.gov/amendment/{format_ordinal(congress)}-congress/{url_slug}/{amendment_number}",
                org=GPO_PUBLISHER,
                cite=citation_text,
                published_at=submitted_at or proposed_at or first_action_date or latest_action_date,
                as_of=find_text(amendment_element, "updateDate")
                or find_text(self._bill_element, "updateDate"),
                # Its own: else an action on the bill would make all its amendments look changed.
                raw_sha256=hash_element(amendment_element),
            ),
        )

    def _build_amendment_links(
        self, amendment_element: Element, amendment_record: Amendment
    ) -> Iterator[RecordLink]:
        bill_label = f"{LABEL_BY_BILL_TYPE[self.bill_type]} {self.bill_number}"
        evidence_text = f"amendments/amendment in the file of {bill_label}"
        yield RecordLink(LinkKind.AMENDMENT, self.bill_id, evidence_text)
        if amendment_record.amends:
            field_paths = (
                f"amendedAmendment/{field_name}" for field_name in ("type", "number", "purpose")
            )
            amended_description = " ".join(
                filter(
                    None, (find_text(amendment_element, field_path) for field_path in field_paths)
                )
            )[:MAX_EVIDENCE_CHARS]
            yield RecordLink(
                LinkKind.AMENDMENT,
                amendment_record.amends,
                f"amendedAmendment: {amended_description}",
            )

    def _build_people_stubs(self, named_people: Iterable[Person]) -> Iterator[ParsedRecord]:
        """Stubs of those whom the file has not named before; a Senator may offer a hundred."""
        for named_person in named_people:
            if named_person.bioguide_id and named_person.bioguide_id not in self._stubbed_ids:
                self._stubbed_ids.add(named_person.bioguide_id)
                yield build_legislator_stub(named_person, self._file_stamp)
