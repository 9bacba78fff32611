"""One federal record: a bill, a vote, a member, a committee, a law; and what it is linked to."""

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from readingroom.bases.federal.models import LinkedRecord
from readingroom.bases.federal.pages.lists import ListPages, make_record_address, render
from readingroom.bases.federal.pages.series import SeriesPages
from readingroom.bases.federal.pages.texts import (
    BillTextPages,
    TextVersionLink,
    list_text_versions,
)
from readingroom.bases.federal.query.dossier_models import Section
from readingroom.bases.federal.query.votes import count_votes_needed
from readingroom.bases.federal.schema.ids import parse_federal_id
from readingroom.bases.federal.schema.records import MemberVote
from readingroom.bases.federal.schema.sources import BY_NAME, find_source
from readingroom.bases.federal.service import FederalService
from readingroom.core.errors import RecordNotFound
from readingroom.protocol.pages import (
    BasePage,
    BasePages,
    PageLink,
    PageRequest,
    ReadingAid,
    RenderedPage,
    SeeOther,
    ToolExample,
)
from readingroom.protocol.search import DeskRecord, make_read_path
from readingroom.protocol.tool import Answer
from readingroom.storage.jobs.store import JobStore
from readingroom.web.charts import (
    Chart,
    Edge,
    GanttRow,
    StackedRow,
    TimeSpan,
    draw_gantt,
    draw_graph,
    draw_stacked,
)
from readingroom.web.templates import format_day, format_words

_MAX_LINKS = 40
_MAX_MEMBERS = 600
_MEMBERS_PER_READ = 200
_POSITIONS = ("Yea", "Nay", "Present", "Not Voting")
_SYNONYMS = {"Aye": "Yea", "Yes": "Yea", "No": "Nay"}


def make_pages(service: FederalService, jobs: JobStore) -> BasePages:
    """Return the pages of the federal base."""
    lists, record_pages = ListPages(service), RecordPages(service)
    return BasePages(
        [
            BasePage(
                "/records",
                lists.show_sources,
                menu_label="Records",
                summary="Bills, votes, members, laws and rules of the United States, over time.",
            ),
            BasePage("/records/view", record_pages.show_record),
            BasePage("/records/links", record_pages.show_links),
            BasePage("/records/text", BillTextPages(service).show_text),
            BasePage("/records/{source}", lists.show_source),
            BasePage("/records/{source}/series", SeriesPages(service).show_series),
        ],
        aid_reading=record_pages.aid_reading,
        list_freshness=lists.list_freshness,
    )


class RecordPages:
    """The pages of single records."""

    def __init__(self, service: FederalService) -> None:
        self._service = service

    async def show_record(self, request: PageRequest) -> RenderedPage | SeeOther:
        """Return the dossier of a bill, member, committee or law, or a vote; else lead to `/read`.

        Raise UnrecognizedId and RecordNotFound.
        """
        record_id = request.get("id")
        source_name = parse_federal_id(record_id).source
        if source_name == "roll_call_votes":
            return await self._show_vote(record_id)
        dossier = await self._read_dossier(source_name, record_id)
        if dossier is None:
            return SeeOther(make_read_path(record_id))
        versions: Sequence[TextVersionLink] = ()
        if source_name == "bills":
            versions = await list_text_versions(self._service, str(dossier.record["id"]))
        return _render_dossier(dossier, versions)

    async def _read_dossier(self, source_name: str, record_id: str) -> "_Dossier | None":
        match source_name:
            case "bills":
                bill = await self._service.build_bill_dossier(record_id)
                return _Dossier(bill, bill.bill.model_dump(), "get_bill_dossier", "bill_id")
            case "legislators":
                member_dossier = await self._service.build_legislator_dossier(record_id, None)
                member_fields = member_dossier.legislator.model_dump()
                return _Dossier(
                    member_dossier, member_fields, "get_legislator_dossier", "bioguide_id"
                )
            case "committees":
                committee = await self._service.build_committee_dossier(record_id, None)
                member_fields = committee.committee.model_dump()
                return _Dossier(committee, member_fields, "get_committee_dossier", "committee_id")
            case "public_laws":
                law = await self._service.build_public_law_dossier(record_id)
                member_fields = law.public_law.model_dump()
                return _Dossier(law, member_fields, "get_public_law_dossier", "id")
        return None

    async def _show_vote(self, vote_id: str) -> RenderedPage:
        """Return a roll call: party by position, and every member."""
        vote = await self._service.fetch(vote_id)
        members = await self._list_members(vote_id)
        vote_fields = vote.record
        chart = _draw_vote(members, vote_fields)
        body_html = render(
            "vote.html",
            record=vote_fields,
            citation=vote.citation.citation_string,
            chart=chart,
            members=sorted(members, key=lambda member: (member.party or "", member.name)),
            positions=_count_positions(members),
            make_record_address=make_record_address,
        )
        return RenderedPage(
            vote.citation.citation_string,
            body_html,
            data={"vote": vote_fields, "members": [member.model_dump() for member in members]},
            tool_example=ToolExample("fetch", {"id": vote_id}),
        )

    async def _list_members(self, vote_id: str) -> list[MemberVote]:
        members: list[MemberVote] = []
        cursor: str | None = None
        while len(members) < _MAX_MEMBERS:
            voter_page = await self._service.list_roll_call_votes(
                vote_id, _MEMBERS_PER_READ, cursor
            )
            members += voter_page.results
            cursor = voter_page.next_cursor
            if cursor is None:
                break
        return members

    async def show_links(self, request: PageRequest) -> RenderedPage:
        """Return what a record is linked to, one hop away, each link with its evidence."""
        parsed = parse_federal_id(request.get("id"))
        record_source = BY_NAME.get(parsed.source)
        if record_source is None:
            raise RecordNotFound(f"No record {parsed.id} has been loaded", source=parsed.source)
        link_page = await self._service.list_links(record_source, parsed.id, None, _MAX_LINKS, None)
        shown_count = len(link_page.results)
        plural = "s" if link_page.total != 1 else ""
        finding = f"{parsed.id} is linked to {link_page.total} record{plural}"
        finding += f"; the first {shown_count} are shown." if shown_count < link_page.total else "."
        edges = [_make_edge(linked_record) for linked_record in link_page.results]
        chart = draw_graph(parsed.id, edges, finding)
        body_html = render("links.html", chart=chart, record_id=parsed.id, edges=edges)
        return RenderedPage(f"Links of {parsed.id}", body_html, data=link_page)

    async def aid_reading(self, request: PageRequest, desk_record: DeskRecord) -> ReadingAid:
        """Return the ways from a record to its dossier, its links and its list."""
        record_source = find_source(desk_record.source)
        related = [PageLink(f"All {record_source.label}", f"/records/{record_source.name}")]
        if record_source.name in (
            "bills",
            "legislators",
            "committees",
            "public_laws",
            "roll_call_votes",
        ):
            related.insert(0, PageLink("Everything about it", make_record_address(desk_record.id)))
        return ReadingAid(related=related)


class _Dossier:
    """A dossier with what is needed to show it."""

    def __init__(
        self,
        dossier_answer: Answer,
        record_fields: Mapping[str, Any],
        tool_name: str,
        argument_name: str,
    ) -> None:
        self.answer = dossier_answer
        self.record = record_fields
        self.example = ToolExample(tool_name, {argument_name: record_fields["id"]})

    @property
    def sections(self) -> dict[str, Section]:
        """Its sections that have something in them, by name."""
        answer_fields = (
            (field_name, getattr(self.answer, field_name))
            for field_name in type(self.answer).model_fields
        )
        return {
            field_name: section
            for field_name, section in answer_fields
            if isinstance(section, Section) and (section.items or section.error)
        }


def _render_dossier(dossier: _Dossier, versions: Sequence[TextVersionLink]) -> RenderedPage:
    record_fields = dossier.record
    sections = dossier.sections
    actions = sections.pop("actions", None)
    bill_summary = record_fields.get("summary") or {}
    body_html = render(
        "dossier.html",
        record_id=record_fields["id"],
        source_name=record_fields["source"],
        name=record_fields.get("title") or record_fields.get("name") or record_fields["id"],
        citation=record_fields.get("citation_string") or "",
        official_url=str(record_fields.get("url") or ""),
        summary=bill_summary.get("text") or "",
        facts=_list_facts(record_fields),
        actions=actions,
        progress=_draw_progress(record_fields, actions),
        versions=versions,
        sections=[
            {
                "title": format_words(section_name),
                "total": section.total,
                "truncated": section.truncated,
                "error": section.error,
                "items": [_describe_item(section_item) for section_item in section.items],
            }
            for section_name, section in sections.items()
        ],
    )
    page_title = str(
        record_fields.get("citation_string") or record_fields.get("title") or record_fields["id"]
    )
    return RenderedPage(page_title, body_html, data=dossier.answer, tool_example=dossier.example)


_STAGES = ("introduced", "reported", "passed_one", "passed_both", "law")
_STAGE_WORDS = {
    "reported": ("reported by", "ordered to be reported"),
    "passed_one": ("passed house", "passed senate", "on passage passed", "passed/agreed to in"),
    "law": ("became public law", "became private law"),
}
"""What the words of an action say when it brings a bill to a stage."""


def _draw_progress(record_fields: Mapping[str, Any], actions: Section | None) -> Chart | None:
    """Return how long a bill stood at each stage, as far as the actions that are shown tell."""
    reached = _find_stage_days(record_fields, actions)
    if len(reached) < 2:
        return None
    ends = [later - dt.timedelta(days=1) for _, later in reached[1:]]
    spans = [
        GanttRow(
            format_words(stage),
            [TimeSpan(format_words(stage), stage_day, max(stage_day, stage_end), "superseded")],
        )
        for (stage, stage_day), stage_end in zip(reached, ends, strict=False)
    ]
    last_stage, last_day = reached[-1]
    spans.append(
        GanttRow(
            format_words(last_stage),
            [TimeSpan(format_words(last_stage), last_day, None, "active")],
        )
    )
    days = (last_day - reached[0][1]).days
    finding = f"{format_words(last_stage)} after {days:,} days."
    return draw_gantt(spans, last_day, finding)


def _find_stage_days(
    record_fields: Mapping[str, Any], actions: Section | None
) -> list[tuple[str, dt.date]]:
    days: dict[str, str] = {}
    if record_fields.get("introduced_at"):
        days["introduced"] = str(record_fields["introduced_at"])
    for action in actions.items if actions else []:
        action_text = str(action.get("text") or "").casefold()
        for stage, openings in _STAGE_WORDS.items():
            if any(opening in action_text for opening in openings) and action.get("date"):
                days[stage] = min(days.get(stage, "9999"), str(action["date"]))
    if record_fields.get("stage") in _STAGES and record_fields.get("stage_at"):
        days[str(record_fields["stage"])] = str(record_fields["stage_at"])
    reached = [
        (stage, dt.date.fromisoformat(days[stage][:10])) for stage in _STAGES if stage in days
    ]
    return sorted(reached, key=lambda item: (item[1], _STAGES.index(item[0])))


_FACTS = {
    "stage": "Stage",
    "outcome": "Outcome",
    "introduced_at": "Introduced",
    "policy_area": "Policy area",
    "chamber": "Chamber",
    "party": "Party",
    "state": "State",
    "congress": "Congress",
    "published_at": "Published",
    "as_of": "As of",
}


def _list_facts(record_fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = [
        (fact_label, _format_fact(field_name, record_fields[field_name]))
        for field_name, fact_label in _FACTS.items()
        if record_fields.get(field_name) not in (None, "", [])
    ]
    sponsors = record_fields.get("sponsors") or []
    if sponsors:
        field_names = [
            f"{sponsor['name']} ({sponsor['party']}-{sponsor['state']})" for sponsor in sponsors
        ]
        facts.insert(0, ("Sponsor", ", ".join(field_names)))
    return facts


_DAYS = ("published_at", "sponsored_at", "start")


def _format_fact(field_name: str, field_value: object) -> str:
    if field_name in ("stage", "outcome"):
        return format_words(str(field_value))
    return (
        format_day(str(field_value))
        if field_name.endswith("_at") or field_name == "as_of"
        else str(field_value)
    )


def _describe_item(section_item: Mapping[str, Any]) -> dict[str, str | None]:
    """Return one line of a dossier's section: what it is, its page, and a date or a detail."""
    item_label = (
        section_item.get("title")
        or section_item.get("name")
        or section_item.get("text")
        or section_item.get("key")
    )
    record_id = (
        section_item.get("id")
        or section_item.get("bioguide_id")
        or section_item.get("committee_id")
    )
    item_details = [
        format_day(str(section_item[field_name]))
        if field_name in _DAYS
        else section_item[field_name]
        for field_name in (*_DAYS, "congress", "party", "state", "value")
        if section_item.get(field_name) not in (None, "")
    ]
    return {
        "label": str(item_label or record_id or ""),
        "href": make_record_address(str(record_id)) if record_id else None,
        "detail": ", ".join(str(detail) for detail in item_details),
    }


# --- votes ---


def _draw_vote(members: Sequence[MemberVote], vote_fields: Mapping[str, Any]) -> Chart | None:
    if not members:
        return None
    parties = Counter(member.party or "none" for member in members)
    party_rows = [StackedRow("All", _count_positions(members))]
    party_rows += [
        StackedRow(
            party,
            _count_positions(
                [member_vote for member_vote in members if (member_vote.party or "none") == party]
            ),
        )
        for party, _ in parties.most_common()
    ]
    yea, nay = party_rows[0].counts[0], party_rows[0].counts[1]
    threshold = count_votes_needed(str(vote_fields.get("majority_required") or ""), yea + nay)
    finding = f"{vote_fields.get('result') or 'Counted'}: {yea} for, {nay} against"
    finding += f"; {threshold} were needed (the red line)." if threshold else "."
    return draw_stacked(party_rows, list(_POSITIONS), finding, "Party", threshold)


def _count_positions(members: Sequence[MemberVote]) -> list[int]:
    position_counts = Counter(_SYNONYMS.get(member.position, member.position) for member in members)
    folded = {
        position.casefold(): member_count for position, member_count in position_counts.items()
    }
    return [folded.get(position.casefold(), 0) for position in _POSITIONS]


# --- links ---


def _make_edge(linked_record: LinkedRecord) -> Edge:
    evidence = "; ".join(
        f"{link_evidence.words} ({link_evidence.said_by})"
        for link_evidence in linked_record.evidence
    )
    href = make_record_address(linked_record.id) if linked_record.title else None
    return Edge(
        format_words(linked_record.kind), linked_record.title or linked_record.id, href, evidence
    )
