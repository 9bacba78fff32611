"""What a federal record is linked to, each link with its evidence."""

from collections.abc import Mapping, Sequence
from typing import Any

from readingroom.bases.federal.listing import list_link_cards
from readingroom.bases.federal.pages.lists import (
    list_member_bill_links,
    make_record_address,
    render,
)
from readingroom.bases.federal.schema.ids import parse_federal_id
from readingroom.bases.federal.schema.records import SponsorKind
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME, Source
from readingroom.bases.federal.service import FederalService
from readingroom.core.errors import RecordNotFound
from readingroom.protocol.pages import PageLink, PageRequest, RenderedPage, ToolExample
from readingroom.web.charts import GraphEdge, draw_link_graph
from readingroom.web.templates import format_count, format_identifier

LinkCard = Mapping[str, Any]
"""A linked record as `list_records` gives it: kind, id, evidence, and its title if loaded."""

_MAX_LINKS = 40
_MAX_SPONSORSHIPS = 10
"""How many sponsors and how many cosponsors are drawn where the citations leave them no room."""
_LINK_REASON_BY_SOURCE = dict.fromkeys(("bills", "legislators"), "by citation or sponsorship")
_UNDRAWN_RELATIONS_BY_SOURCE = {
    "bills": "The actions and the votes of members",
    "committees": "Members, bills, hearings and reports",
    "legislators": "Seats and votes",
    "roll_call_votes": "The members and how each voted",
}
"""By source, what belongs to a record and is no citation link; its own page shows it."""


class LinkPages:
    """The page of a record's links."""

    def __init__(self, federal_service: FederalService) -> None:
        self._service = federal_service

    async def show_links(self, request: PageRequest) -> RenderedPage:
        """Return what a record is linked to, one hop away, each link with its evidence."""
        parsed_id = parse_federal_id(request.get_parameter("id"))
        record_source = SOURCES_BY_NAME.get(parsed_id.source)
        if record_source is None:
            raise RecordNotFound(
                f"No record {parsed_id.id} has been loaded", source=parsed_id.source
            )
        link_page = await list_link_cards(
            self._service, record_source, parsed_id.id, None, _MAX_LINKS
        )
        link_cards: list[LinkCard] = list(link_page.results)
        if link_page.has_more:
            link_cards += await self._list_sponsorships(record_source, parsed_id.id)
        link_cards = _drop_repeated_links(link_cards)
        shown_link_count = len(link_cards)
        chart_caption = (
            f"{parsed_id.id} is linked to {format_count(link_page.total or 0, 'record')} "
            f"{_LINK_REASON_BY_SOURCE.get(record_source.name, 'by citation')}"
        )
        chart_caption += (
            f"; {shown_link_count} are shown." if shown_link_count < (link_page.total or 0) else "."
        )
        link_edges = [_make_graph_edge(link_card) for link_card in link_cards]
        link_chart = draw_link_graph(parsed_id.id, link_edges, chart_caption)
        body_html = render(
            "links.html",
            chart=link_chart,
            record_id=parsed_id.id,
            edges=link_edges,
            undrawn_relations=_UNDRAWN_RELATIONS_BY_SOURCE.get(record_source.name),
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

    async def _list_sponsorships(self, record_source: Source, record_id: str) -> list[LinkCard]:
        """Return the first sponsors and cosponsors of a bill, or bills of a member."""
        sponsor_pages = [
            await list_link_cards(
                self._service, record_source, record_id, sponsor_kind, _MAX_SPONSORSHIPS
            )
            for sponsor_kind in SponsorKind
        ]
        return [link_card for sponsor_page in sponsor_pages for link_card in sponsor_page.results]


def _drop_repeated_links(link_cards: Sequence[LinkCard]) -> list[LinkCard]:
    return list(
        {(link_card["kind"], link_card["id"]): link_card for link_card in link_cards}.values()
    )


def _list_bill_links(source_name: str, record_id: str) -> Sequence[PageLink]:
    return list_member_bill_links(record_id) if source_name == "legislators" else ()


def _make_graph_edge(link_card: LinkCard) -> GraphEdge:
    evidence_text = "; ".join(
        f"{link_evidence['words']} ({link_evidence['said_by']})"
        if isinstance(link_evidence, Mapping)
        else str(link_evidence)  # how much evidence there is, where it is cut
        for link_evidence in link_card["evidence"]
    )
    record_title = link_card.get("title")
    return GraphEdge(
        format_identifier(link_card["kind"]),
        record_title or link_card["id"],
        make_record_address(link_card["id"]) if record_title else None,
        evidence_text,
    )
