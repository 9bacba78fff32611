"""One federal record: a bill, a vote, a member, a committee, a law."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from readingroom.bases.federal.pages.links import LinkPages
from readingroom.bases.federal.pages.lists import (
    ListPages,
    list_member_bill_links,
    make_list_address,
    make_record_address,
    render,
)
from readingroom.bases.federal.pages.series import SeriesPages
from readingroom.bases.federal.pages.texts import (
    BillTextPages,
    TextVersionLink,
    list_text_versions,
)
from readingroom.bases.federal.pages.vote_chart import count_positions, draw_vote_chart
from readingroom.bases.federal.query.dossier_models import Section
from readingroom.bases.federal.schema.ids import parse_federal_id
from readingroom.bases.federal.schema.records import MemberVote
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME, get_source
from readingroom.bases.federal.service import FederalService
from readingroom.protocol.pages import (
    BasePage,
    BasePages,
    PageLink,
    PageRequest,
    RecordPageExtras,
    RenderedPage,
    SeeOther,
    ToolExample,
)
from readingroom.protocol.search import DeskRecord, make_record_page_path
from readingroom.protocol.tool import Answer
from readingroom.storage.jobs.store import JobStore
from readingroom.web.charts import (
    Chart,
    GanttRow,
    GanttSpan,
    draw_gantt,
)
from readingroom.web.templates import format_day, format_identifier

_MAX_MEMBER_VOTES = 600
_MEMBER_VOTES_PER_READ = 200


def make_pages(federal_service: FederalService, job_store: JobStore) -> BasePages:
    """Return the pages of the federal base."""
    list_pages, record_pages = ListPages(federal_service), RecordPages(federal_service)
    series_pages = SeriesPages(federal_service)
    return BasePages(
        [
            BasePage(
                "/records",
                list_pages.show_sources,
                menu_label="Records",
                summary="Bills, votes, members, laws and rules of the United States, over time.",
            ),
            BasePage("/records/view", record_pages.show_record),
            BasePage("/records/links", LinkPages(federal_service).show_links),
            BasePage("/records/text", BillTextPages(federal_service).show_text),
            BasePage(
                "/records/{source}", list_pages.show_source, render_form_page=list_pages.show_source
            ),
            BasePage(
                "/records/{source}/series",
                series_pages.show_series,
                render_form_page=series_pages.show_refused_form,
            ),
        ],
        build_record_page_extras=record_pages.build_record_page_extras,
        list_source_freshness=list_pages.list_source_freshness,
    )


class RecordPages:
    """The pages of single records."""

    def __init__(self, federal_service: FederalService) -> None:
        self._service = federal_service

    async def show_record(self, request: PageRequest) -> RenderedPage | SeeOther:
        """Return the dossier of a bill, member, committee or law, or a vote; else lead to `/read`.

        Raise UnrecognizedId and RecordNotFound.
        """
        record_id = request.get_parameter("id")
        source_name = parse_federal_id(record_id).source
        if source_name == "roll_call_votes":
            return await self._show_vote(record_id, request.sample_citation_prefix)
        record_dossier = await self._read_dossier(source_name, record_id)
        if record_dossier is None:
            return SeeOther(make_record_page_path(record_id))
        version_links: Sequence[TextVersionLink] = ()
        if source_name == "bills":
            version_links = await list_text_versions(
                self._service, str(record_dossier.record_fields["id"])
            )
        return _render_dossier(record_dossier, version_links, request.sample_citation_prefix)

    async def _read_dossier(self, source_name: str, record_id: str) -> "_Dossier | None":
        match source_name:
            case "bills":
                bill_dossier = await self._service.build_bill_dossier(record_id)
                return _Dossier(
                    bill_dossier, bill_dossier.bill.model_dump(), "get_bill_dossier", "bill_id"
                )
            case "legislators":
                member_dossier = await self._service.build_legislator_dossier(record_id, None)
                record_fields = member_dossier.legislator.model_dump()
                return _Dossier(
                    member_dossier, record_fields, "get_legislator_dossier", "bioguide_id"
                )
            case "committees":
                committee_dossier = await self._service.build_committee_dossier(record_id, None)
                record_fields = committee_dossier.committee.model_dump()
                return _Dossier(
                    committee_dossier, record_fields, "get_committee_dossier", "committee_id"
                )
            case "public_laws":
                law_dossier = await self._service.build_public_law_dossier(record_id)
                record_fields = law_dossier.public_law.model_dump()
                return _Dossier(law_dossier, record_fields, "get_public_law_dossier", "id")
        return None

    async def _show_vote(self, vote_id: str, sample_citation_prefix: str) -> RenderedPage:
        """Return a roll call: party by position, and every member."""
        fetched_vote = await self._service.fetch_record(vote_id)
        member_votes = await self._list_member_votes(vote_id)
        vote_fields = fetched_vote.record
        shown_citation = sample_citation_prefix + fetched_vote.citation.citation_string
        vote_chart = draw_vote_chart(member_votes, vote_fields)
        body_html = render(
            "vote.html",
            record=vote_fields,
            citation=shown_citation,
            chart=vote_chart,
            members=sorted(
                member_votes, key=lambda member_vote: (member_vote.party or "", member_vote.name)
            ),
            positions=count_positions(member_votes),
            make_record_address=make_record_address,
        )
        return RenderedPage(
            shown_citation,
            body_html,
            data={
                "vote": vote_fields,
                "members": [member_vote.model_dump() for member_vote in member_votes],
            },
            tool_example=ToolExample("fetch", {"id": vote_id}),
        )

    async def _list_member_votes(self, vote_id: str) -> list[MemberVote]:
        member_votes: list[MemberVote] = []
        vote_cursor: str | None = None
        while len(member_votes) < _MAX_MEMBER_VOTES:
            member_vote_page = await self._service.list_roll_call_votes(
                vote_id, _MEMBER_VOTES_PER_READ, vote_cursor
            )
            member_votes += member_vote_page.results
            vote_cursor = member_vote_page.next_cursor
            if vote_cursor is None:
                break
        return member_votes

    async def build_record_page_extras(
        self, request: PageRequest, desk_record: DeskRecord
    ) -> RecordPageExtras:
        """Return the ways from a record to its dossier, its links and its list."""
        record_source = get_source(desk_record.source)
        related_links = [PageLink(f"All {record_source.label}", f"/records/{record_source.name}")]
        if record_source.name in (
            "bills",
            "legislators",
            "committees",
            "public_laws",
            "roll_call_votes",
        ):
            related_links.insert(
                0, PageLink("Everything about it", make_record_address(desk_record.id))
            )
        breadcrumb_links = [
            PageLink("Federal records", "/records"),
            PageLink(record_source.label, f"/records/{record_source.name}"),
        ]
        return RecordPageExtras(trail=breadcrumb_links, related=related_links)


class _Dossier:
    """A dossier with what is needed to show it."""

    def __init__(
        self,
        dossier_answer: Answer,
        record_fields: Mapping[str, Any],
        tool_name: str,
        argument_name: str,
    ) -> None:
        self.dossier_answer = dossier_answer
        self.record_fields = record_fields
        self.tool_example = ToolExample(tool_name, {argument_name: record_fields["id"]})

    @property
    def sections(self) -> dict[str, Section]:
        """Its sections that have something in them, by name."""
        field_names_and_values = (
            (field_name, getattr(self.dossier_answer, field_name))
            for field_name in type(self.dossier_answer).model_fields
        )
        return {
            field_name: section
            for field_name, section in field_names_and_values
            if isinstance(section, Section) and (section.items or section.error)
        }


def _render_dossier(
    dossier: _Dossier, version_links: Sequence[TextVersionLink], sample_citation_prefix: str
) -> RenderedPage:
    record_fields = dossier.record_fields
    section_by_name = dossier.sections
    action_section = section_by_name.pop("actions", None)
    bill_summary = record_fields.get("summary") or {}
    citation_text = record_fields.get("citation_string") or ""
    shown_citation = f"{sample_citation_prefix}{citation_text}" if citation_text else ""
    body_html = render(
        "dossier.html",
        record_id=record_fields["id"],
        source_name=record_fields["source"],
        name=record_fields.get("title") or record_fields.get("name") or record_fields["id"],
        citation=shown_citation,
        official_url=str(record_fields.get("url") or ""),
        summary=bill_summary.get("text") or "",
        facts=_list_facts(record_fields),
        actions=action_section,
        progress=_draw_stage_chart(record_fields, action_section),
        versions=version_links,
        bill_links=list_member_bill_links(record_fields["id"])
        if record_fields["source"] == "legislators"
        else (),
        sections=[
            {
                "title": format_identifier(section_name),
                "table": _make_section_table(section_name, section, record_fields["id"]),
                "total": section.total,
                "truncated": section.truncated,
                "error": section.error,
                "items": [_make_section_line(section_item) for section_item in section.items],
            }
            for section_name, section in section_by_name.items()
        ],
    )
    page_title = str(shown_citation or record_fields.get("title") or record_fields["id"])
    return RenderedPage(
        page_title, body_html, data=dossier.dossier_answer, tool_example=dossier.tool_example
    )


_LABEL_BY_STAGE = {
    "introduced": "Introduced",
    "reported": "Reported",
    "passed_one": "Passed one chamber",
    "passed_both": "Passed both chambers",
    "law": "Law",
}
_STAGE_NAMES = tuple(_LABEL_BY_STAGE)
_PHRASES_BY_STAGE = {
    "reported": ("reported by", "ordered to be reported"),
    "passed_one": ("passed house", "passed senate", "on passage passed", "passed/agreed to in"),
    "law": ("became public law", "became private law"),
}
"""What the words of an action say when it brings a bill to a stage."""


def _draw_stage_chart(
    record_fields: Mapping[str, Any], action_section: Section | None
) -> Chart | None:
    """Return how long a bill stood at each stage, as far as the actions that are shown tell."""
    stages_with_days = _find_stage_days(record_fields, action_section)
    if len(stages_with_days) < 2:
        return None
    stage_last_days = [
        next_stage_first_day - dt.timedelta(days=1)
        for _, next_stage_first_day in stages_with_days[1:]
    ]
    gantt_rows = [
        GanttRow(
            _LABEL_BY_STAGE[stage_name],
            [
                GanttSpan(
                    _LABEL_BY_STAGE[stage_name],
                    stage_day,
                    max(stage_day, stage_last_day),
                    "superseded",
                )
            ],
        )
        for (stage_name, stage_day), stage_last_day in zip(
            stages_with_days, stage_last_days, strict=False
        )
    ]
    last_stage, last_day = stages_with_days[-1]
    last_label = _LABEL_BY_STAGE[last_stage]
    gantt_rows.append(GanttRow(last_label, [GanttSpan(last_label, last_day, None, "active")]))
    day_count = (last_day - stages_with_days[0][1]).days
    chart_caption = f"{last_label} after {day_count:,} days."
    return draw_gantt(gantt_rows, last_day, chart_caption, ("Stage", "Bar"), "still there")


def _find_stage_days(
    record_fields: Mapping[str, Any], action_section: Section | None
) -> list[tuple[str, dt.date]]:
    day_by_stage: dict[str, str] = {}
    if record_fields.get("introduced_at"):
        day_by_stage["introduced"] = str(record_fields["introduced_at"])
    for action_fields in action_section.items if action_section else []:
        action_text = str(action_fields.get("text") or "").casefold()
        for stage_name, stage_phrases in _PHRASES_BY_STAGE.items():
            if any(
                stage_phrase in action_text for stage_phrase in stage_phrases
            ) and action_fields.get("date"):
                day_by_stage[stage_name] = min(
                    day_by_stage.get(stage_name, "9999"), str(action_fields["date"])
                )
    if record_fields.get("stage") in _STAGE_NAMES and record_fields.get("stage_at"):
        day_by_stage[str(record_fields["stage"])] = str(record_fields["stage_at"])
    stages_with_days = [
        (stage_name, dt.date.fromisoformat(day_by_stage[stage_name][:10]))
        for stage_name in _STAGE_NAMES
        if stage_name in day_by_stage
    ]
    return sorted(
        stages_with_days,
        key=lambda stage_and_day: (stage_and_day[1], _STAGE_NAMES.index(stage_and_day[0])),
    )


_LABEL_BY_FACT_FIELD = {
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


_REPLACING_FIELD_BY_FACT_FIELD = {"outcome": "stage", "published_at": "introduced_at"}
"""Fields that are left out where another one says the same."""


def _list_facts(record_fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    labelled_facts = [
        (fact_label, _format_fact(field_name, record_fields))
        for field_name, fact_label in _LABEL_BY_FACT_FIELD.items()
        if record_fields.get(field_name) not in (None, "", [])
        and record_fields[field_name]
        != record_fields.get(_REPLACING_FIELD_BY_FACT_FIELD.get(field_name, ""))
    ]
    sponsors = record_fields.get("sponsors") or []
    if sponsors:
        sponsor_names = [
            f"{sponsor['name']} ({sponsor['party']}-{sponsor['state']})" for sponsor in sponsors
        ]
        labelled_facts.insert(0, ("Sponsor", ", ".join(sponsor_names)))
    return labelled_facts


_DATE_FIELDS = ("published_at", "sponsored_at", "start")


def _format_fact(field_name: str, record_fields: Mapping[str, Any]) -> str:
    field_text = str(record_fields[field_name])
    if field_text == "pending" and record_fields.get("as_of"):
        # Its Congress may have ended since: what became of the bill then is not in the file.
        return f"Pending on {format_day(str(record_fields['as_of']))}, the day of its file"
    if field_name in ("stage", "outcome"):
        return format_identifier(field_text)
    is_day = field_name.endswith("_at") or field_name == "as_of"
    return format_day(field_text) if is_day else field_text


def _make_section_line(section_item: Mapping[str, Any]) -> dict[str, str | None]:
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
        if field_name in _DATE_FIELDS
        else section_item[field_name]
        for field_name in (*_DATE_FIELDS, "congress", "party", "state", "value")
        if section_item.get(field_name) not in (None, "")
    ]
    return {
        "label": str(item_label or record_id or ""),
        "href": make_record_address(str(record_id)) if record_id else None,
        "detail": ", ".join(str(item_detail) for item_detail in item_details),
    }


_LABEL_BY_FIELD_BY_SECTION = {
    "bill_counts": {
        "congress": "Congress",
        "sponsored": "Sponsored",
        "cosponsored": "Cosponsored",
    },
    "voting": {
        "congress": "Congress",
        "party": "Party",
        "votes": "Votes",
        "missed": "Missed",
        "missed_percent": "Missed %",
        "with_party": "With the party",
        "with_party_percent": "With the party %",
    },
}
"""Sections that are numbers by Congress, each with the fields that its table shows."""
_BILL_FILTER_BY_COUNT_FIELD = {"sponsored": "sponsor", "cosponsored": "cosponsor"}


def _make_section_table(
    section_name: str, section: Section, member_id: str
) -> dict[str, Any] | None:
    """Return headers and rows of a section of numbers; None for a section that is a list."""
    label_by_field = _LABEL_BY_FIELD_BY_SECTION.get(section_name)
    if label_by_field is None:
        return None
    table_rows = [
        [
            {
                "text": ""
                if number_by_field[field_name] is None
                else str(number_by_field[field_name]),
                "href": _make_count_address(field_name, number_by_field, member_id),
            }
            for field_name in label_by_field
        ]
        for number_by_field in section.items
    ]
    return {"headers": list(label_by_field.values()), "rows": table_rows, "note": section.note}


def _make_count_address(
    field_name: str, number_by_field: Mapping[str, Any], member_id: str
) -> str | None:
    """Return the list of the bills that a number counts; None for a number of something else."""
    if field_name not in _BILL_FILTER_BY_COUNT_FIELD or not number_by_field[field_name]:
        return None
    filter_values = {
        _BILL_FILTER_BY_COUNT_FIELD[field_name]: member_id,
        "congress": number_by_field["congress"],
    }
    return make_list_address(SOURCES_BY_NAME["bills"], filter_values)
