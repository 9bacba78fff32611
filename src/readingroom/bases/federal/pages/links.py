"""What a federal record is linked to, each link with its evidence."""

from collections.abc import Sequence

from readingroom.bases.federal.models import LinkedRecord
from readingroom.bases.federal.pages.lists import (
    list_member_bill_links,
    make_record_address,
    render,
)
from readingroom.bases.federal.schema.ids import parse_federal_id
from readingroom.bases.federal.schema.sources import BY_NAME
from readingroom.bases.federal.service import FederalService
from readingroom.core.errors import RecordNotFound
from readingroom.protocol.pages import PageLink, PageRequest, RenderedPage, ToolExample
from readingroom.web.charts import Edge, draw_graph
from readingroom.web.templates import format_count, format_words

_MAX_LINKS = 40
_UNDRAWN_RELATIONS = {
    "bills": "The sponsor, the cosponsors, the actions and the votes",
    "committees": "Members, bills, hearings and reports",
    "legislators": "Sponsorships, cosponsorships, seats and votes",
    "roll_call_votes": "The members and how each voted",
}
"""By source, what belongs to a record and is no citation link; its own page shows it."""


class LinkPages:
    """The page of a record's links."""

    def __init__(self, service: FederalService) -> None:
        self._service = service

    async def show_links(self, request: PageRequest) -> RenderedPage:
        """Return what a record is linked to, one hop away, each link with its evidence."""
        parsed_id = parse_federal_id(request.get("id"))
        record_source = BY_NAME.get(parsed_id.source)
        if record_source is None:
            raise RecordNotFound(
                f"No record {parsed_id.id} has been loaded", source=parsed_id.source
            )
        link_page = await self._service.list_links(
            record_source, parsed_id.id, None, _MAX_LINKS, None
        )
        shown_count = len(link_page.results)
        chart_caption = (
            f"{parsed_id.id} is linked to {format_count(link_page.total, 'record')} by citation"
        )
        chart_caption += (
            f"; the first {shown_count} are shown." if shown_count < link_page.total else "."
        )
        link_edges = [_make_edge(linked_record) for linked_record in link_page.results]
        link_chart = draw_graph(parsed_id.id, link_edges, chart_caption)
        body_html = render(
            "links.html",
            chart=link_chart,
            record_id=parsed_id.id,
            edges=link_edges,
            undrawn_relations=_UNDRAWN_RELATIONS.get(record_source.name),
            bill_links=_list_bill_links(record_source.name, parsed_id.id),
        )
        return RenderedPage(
            f"Links of {parsed_id.id}",
            body_html,
            data=link_page,
            tool_example=ToolExample(
                "list_records",
                {"source": parsed_id.source, "id": parsed_id.id, "part": "links"},
            ),
        )


def _list_bill_links(source_name: str, record_id: str) -> Sequence[PageLink]:
    return list_member_bill_links(record_id) if source_name == "legislators" else ()


def _make_edge(linked_record: LinkedRecord) -> Edge:
    evidence_text = "; ".join(
        f"{link_evidence.words} ({link_evidence.said_by})"
        for link_evidence in linked_record.evidence
    )
    record_href = make_record_address(linked_record.id) if linked_record.title else None
    return Edge(
        format_words(linked_record.kind),
        linked_record.title or linked_record.id,
        record_href,
        evidence_text,
    )
