"""One federal record: a bill, a vote, a member, a committee, a law; and what it is linked to."""

import datetime as dt
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
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
    lists, records = ListPages(service), RecordPages(service)
    return BasePages(
        [
            BasePage(
                "/records",
                lists.show_sources,
                menu_label="Records",
                summary="Bills, votes, members, laws and rules of the United States, over time.",
            ),
            BasePage("/records/view", records.show_record),
            BasePage("/records/links", records.show_links),
            BasePage("/records/text", BillTextPages(service).show_text),
            BasePage("/records/{source}", lists.show_source),
            BasePage("/records/{source}/series", SeriesPages(service).show_series),
        ],
        aid_reading=records.aid_reading,
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
                member = await self._service.build_legislator_dossier(record_id, None)
                record = member.legislator.model_dump()
                return _Dossier(member, record, "get_legislator_dossier", "bioguide_id")
            case "committees":
                committee = await self._service.build_committee_dossier(record_id, None)
                record = committee.committee.model_dump()
                return _Dossier(committee, record, "get_committee_dossier", "committee_id")
            case "public_laws":
                law = await self._service.build_public_law_dossier(record_id)
                record = law.public_law.model_dump()
                return _Dossier(law, record, "get_public_law_dossier", "id")
        return None

    async def _show_vote(self, vote_id: str) -> RenderedPage:
        """Return a roll call: party by position, and every member."""
        vote = await self._service.fetch(vote_id)
        members = await self._list_members(vote_id)
        record = vote.record
        chart = _draw_vote(members, record)
        body = render(
            "vote.html",
            record=record,
            citation=vote.citation.citation_string,
            chart=chart,
            members=sorted(members, key=lambda member: (member.party or "", member.name)),
            positions=_count_positions(members),
            make_record_address=make_record_address,
        )
        return RenderedPage(
            vote.citation.citation_string,
            body,
            data={"vote": record, "members": [member.model_dump() for member in members]},
            tool_example=ToolExample("fetch", {"id": vote_id}),
        )

    async def _list_members(self, vote_id: str) -> list[MemberVote]:
        members: list[MemberVote] = []
        cursor: str | None = None
        while len(members) < _MAX_MEMBERS:
            page = await self._service.list_roll_call_votes(vote_id, _MEMBERS_PER_READ, cursor)
            members += page.results
            cursor = page.next_cursor
            if cursor is None:
                break
        return members

    async def show_links(self, request: PageRequest) -> RenderedPage:
        """Return what a record is linked to, one hop away, each link with its evidence."""
        parsed = parse_federal_id(request.get("id"))
        source = BY_NAME.get(parsed.source)
        if source is None:
            raise RecordNotFound(f"No record {parsed.id} has been loaded", source=parsed.source)
        page = await self._service.list_links(source, parsed.id, None, _MAX_LINKS, None)
        shown = len(page.results)
        finding = f"{parsed.id} is linked to {page.total} record{'s' if page.total != 1 else ''}"
        finding += f"; the first {shown} are shown." if shown < page.total else "."
        edges = [_make_edge(link) for link in page.results]
        chart = draw_graph(parsed.id, edges, finding)
        body = render("links.html", chart=chart, record_id=parsed.id, edges=edges)
        return RenderedPage(f"Links of {parsed.id}", body, data=page)

    async def aid_reading(self, request: PageRequest, record: DeskRecord) -> ReadingAid:
        """Return the ways from a record to its dossier, its links and its list."""
        source = find_source(record.source)
        related = [PageLink(f"All {source.label}", f"/records/{source.name}")]
        if source.name in ("bills", "legislators", "committees", "public_laws", "roll_call_votes"):
            related.insert(0, PageLink("Everything about it", make_record_address(record.id)))
        return ReadingAid(related=related)


class _Dossier:
    """A dossier with what is needed to show it."""

    def __init__(
        self, answer: Answer, record: Mapping[str, Any], tool_name: str, argument_name: str
    ) -> None:
        self.answer = answer
        self.record = record
        self.example = ToolExample(tool_name, {argument_name: record["id"]})

    @property
    def sections(self) -> dict[str, Section]:
        """Its sections that have something in them, by name."""
        fields = ((name, getattr(self.answer, name)) for name in type(self.answer).model_fields)
        return {
            name: section
            for name, section in fields
            if isinstance(section, Section) and (section.items or section.error)
        }


def _render_dossier(dossier: _Dossier, versions: Sequence[TextVersionLink]) -> RenderedPage:
    record = dossier.record
    sections = dossier.sections
    actions = sections.pop("actions", None)
    summary = record.get("summary") or {}
    body = render(
        "dossier.html",
        record_id=record["id"],
        source_name=record["source"],
        name=record.get("title") or record.get("name") or record["id"],
        citation=record.get("citation_string") or "",
        official_url=str(record.get("url") or ""),
        summary=summary.get("text") or "",
        facts=_list_facts(record),
        actions=actions,
        progress=_draw_progress(record, actions),
        versions=versions,
        sections=[
            {
                "title": format_words(name),
                "total": section.total,
                "truncated": section.truncated,
                "error": section.error,
                "items": [_describe_item(item) for item in section.items],
            }
            for name, section in sections.items()
        ],
    )
    title = str(record.get("citation_string") or record.get("title") or record["id"])
    return RenderedPage(title, body, data=dossier.answer, tool_example=dossier.example)


_STAGES = ("introduced", "reported", "passed_one", "passed_both", "law")
_STAGE_WORDS = {
    "reported": ("reported by", "ordered to be reported"),
    "passed_one": ("passed house", "passed senate", "on passage passed", "passed/agreed to in"),
    "law": ("became public law", "became private law"),
}
"""What the words of an action say when it brings a bill to a stage."""


def _draw_progress(record: Mapping[str, Any], actions: Section | None) -> Chart | None:
    """Return how long a bill stood at each stage, as far as the actions that are shown tell."""
    reached = _find_stage_days(record, actions)
    if len(reached) < 2:
        return None
    ends = [later - dt.timedelta(days=1) for _, later in reached[1:]]
    spans = [
        GanttRow(
            format_words(stage),
            [TimeSpan(format_words(stage), day, max(day, end), "superseded")],
        )
        for (stage, day), end in zip(reached, ends, strict=False)
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
    record: Mapping[str, Any], actions: Section | None
) -> list[tuple[str, dt.date]]:
    days: dict[str, str] = {}
    if record.get("introduced_at"):
        days["introduced"] = str(record["introduced_at"])
    for action in actions.items if actions else []:
        words = str(action.get("text") or "").casefold()
        for stage, openings in _STAGE_WORDS.items():
            if any(opening in words for opening in openings) and action.get("date"):
                days[stage] = min(days.get(stage, "9999"), str(action["date"]))
    if record.get("stage") in _STAGES and record.get("stage_at"):
        days[str(record["stage"])] = str(record["stage_at"])
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


def _list_facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = [
        (label, _format_fact(field, record[field]))
        for field, label in _FACTS.items()
        if record.get(field) not in (None, "", [])
    ]
    sponsors = record.get("sponsors") or []
    if sponsors:
        names = [
            f"{sponsor['name']} ({sponsor['party']}-{sponsor['state']})" for sponsor in sponsors
        ]
        facts.insert(0, ("Sponsor", ", ".join(names)))
    return facts


_DAYS = ("published_at", "sponsored_at", "start")


def _format_fact(field: str, value: object) -> str:
    if field in ("stage", "outcome"):
        return format_words(str(value))
    return format_day(str(value)) if field.endswith("_at") or field == "as_of" else str(value)


def _describe_item(item: Mapping[str, Any]) -> dict[str, str | None]:
    """Return one line of a dossier's section: what it is, its page, and a date or a detail."""
    label = item.get("title") or item.get("name") or item.get("text") or item.get("key")
    record_id = item.get("id") or item.get("bioguide_id") or item.get("committee_id")
    details = [
        format_day(str(item[field])) if field in _DAYS else item[field]
        for field in (*_DAYS, "congress", "party", "state", "value")
        if item.get(field) not in (None, "")
    ]
    return {
        "label": str(label or record_id or ""),
        "href": make_record_address(str(record_id)) if record_id else None,
        "detail": ", ".join(str(detail) for detail in details),
    }


# --- votes ---


def _draw_vote(members: Sequence[MemberVote], record: Mapping[str, Any]) -> Chart | None:
    if not members:
        return None
    parties = Counter(member.party or "none" for member in members)
    rows = [StackedRow("All", _count_positions(members))]
    rows += [
        StackedRow(
            party, _count_positions([item for item in members if (item.party or "none") == party])
        )
        for party, _ in parties.most_common()
    ]
    yea, nay = rows[0].counts[0], rows[0].counts[1]
    threshold = _find_threshold(str(record.get("majority_required") or ""), yea + nay)
    finding = f"{record.get('result') or 'Counted'}: {yea} for, {nay} against"
    finding += f"; {threshold} were needed (the red line)." if threshold else "."
    return draw_stacked(rows, list(_POSITIONS), finding, "Party", threshold)


def _count_positions(members: Sequence[MemberVote]) -> list[int]:
    counts = Counter(_SYNONYMS.get(member.position, member.position) for member in members)
    folded = {position.casefold(): count for position, count in counts.items()}
    return [folded.get(position.casefold(), 0) for position in _POSITIONS]


def _find_threshold(majority: str, votes: int) -> int | None:
    """Return how many votes were needed: more than a half, or at least another share."""
    numerator, slash, denominator = majority.partition("/")
    if not (slash and numerator.isdecimal() and denominator.isdecimal() and int(denominator)):
        return None
    share = Fraction(int(numerator), int(denominator))
    if share == Fraction(1, 2):
        return votes // 2 + 1
    return math.ceil(share * votes)


# --- links ---


def _make_edge(link: LinkedRecord) -> Edge:
    evidence = "; ".join(f"{item.words} ({item.said_by})" for item in link.evidence)
    href = make_record_address(link.id) if link.title else None
    return Edge(format_words(link.kind), link.title or link.id, href, evidence)
