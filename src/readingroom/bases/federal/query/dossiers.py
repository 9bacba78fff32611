"""Everything about one bill, member, committee or law, in sections, read in one snapshot."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from pydantic_core import from_json

from readingroom.bases.federal import store
from readingroom.bases.federal.filters import build_sql_filter
from readingroom.bases.federal.names.gaps import describe_gaps
from readingroom.bases.federal.query import cursors
from readingroom.bases.federal.query.cards import make_card
from readingroom.bases.federal.query.dossier_models import Section, SectionError
from readingroom.bases.federal.query.links import (
    FoundLink,
    list_links_and_sponsors,
    read_sponsor_evidence,
    read_titles_and_urls,
)
from readingroom.bases.federal.query.lists import (
    add_party_and_state,
    describe_missing_roster,
    describe_missing_status,
    describe_missing_votes,
    describe_stub,
)
from readingroom.bases.federal.query.votes import summarize_member_votes
from readingroom.bases.federal.schema.congress import overlaps_congress
from readingroom.bases.federal.schema.loaded import describe_loaded_records
from readingroom.bases.federal.schema.records import LinkKind, SponsorKind
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME, Source
from readingroom.core.errors import KnowledgeError
from readingroom.storage.database import Database, DatabaseError

logger = logging.getLogger(__name__)

MAX_SECTION_ITEMS = 5
"""How many items a section has at most; `more_url` leads to the rest."""


@dataclass(frozen=True)
class DossierSubject:
    """The record that a dossier is about, and the connection it is read from."""

    db: Database
    source: Source
    record: Mapping[str, Any]
    congress: int | None = None

    @property
    def id(self) -> str:
        return str(self.record["id"])

    @property
    def rest_api_path(self) -> str:
        return f"/v1/{self.source.slug}/{self.id}"


SectionReader = Callable[[DossierSubject], Section]


def read_sections(
    dossier_subject: DossierSubject, reader_by_section_name: Mapping[str, SectionReader]
) -> dict[str, Section]:
    """Read every section. One that fails has an error, and does not affect the others."""
    return {
        section_name: _read_section(section_name, read_section, dossier_subject)
        for section_name, read_section in reader_by_section_name.items()
    }


def _read_section(
    section_name: str, read_section: SectionReader, dossier_subject: DossierSubject
) -> Section:
    try:
        with dossier_subject.db.contain_failed_read():
            return read_section(dossier_subject)
    except KnowledgeError as error:
        section_error = SectionError(code=error.code, message=error.message)
    except (DatabaseError, ValueError, KeyError, TypeError) as error:
        logger.error("a section of a dossier failed", exc_info=error)
        section_error = SectionError(
            code="section_failed", message=f"{section_name} could not be read"
        )
    return Section(items=[], total=None, truncated=False, error=section_error)


# --- kinds of sections ---


def make_child_reader(
    table_name: str, part_name: str, id_field_name: str | None = None
) -> SectionReader:
    """Return a reader of what belongs to a bill, in its own order; `id_field_name` has the id."""

    def read_section(dossier_subject: DossierSubject) -> Section:
        child_page, total_count = store.list_children(
            dossier_subject.db, table_name, "bill_id", dossier_subject.id, MAX_SECTION_ITEMS, 0
        )
        child_records = [from_json(child_row["record"]) for child_row in child_page.rows]
        if id_field_name:
            child_records = [
                {"id": child_record[id_field_name], **child_record}
                for child_record in child_records
            ]
        return _build_section(
            f"{table_name}:{dossier_subject.id}",
            child_records,
            total_count,
            f"{dossier_subject.rest_api_path}/{part_name}",
            child_page.after_key,
        )

    return read_section


_SOURCE_NAME_BY_LINK_KIND: Mapping[LinkKind | SponsorKind, str] = {
    LinkKind.CRS_REPORT: "crs_reports",
    LinkKind.COST_ESTIMATE: "cbo_cost_estimates",
    LinkKind.STATEMENT: "saps",
    LinkKind.COMMITTEE_REPORT: "committee_reports",
    LinkKind.HEARING: "hearings",
    LinkKind.VOTE: "roll_call_votes",
    LinkKind.COMPILATION: "statute_compilations",
}


def make_link_reader(link_kind: LinkKind | SponsorKind) -> SectionReader:
    """Return a reader of linked records; of one that is not loaded, only the id."""

    def read_section(dossier_subject: DossierSubject) -> Section:
        found_links, after_key, total_count = list_links_and_sponsors(
            dossier_subject.db, dossier_subject.id, link_kind, MAX_SECTION_ITEMS, None
        )
        linked_record_by_id = _read_linked_records(dossier_subject.db, found_links)
        link_section = _build_section(
            f"links:{dossier_subject.id}",
            [
                make_card(linked_record_by_id[found_link.id] | {"evidence": found_link.evidence})
                for found_link in found_links
            ],
            total_count,
            f"{dossier_subject.rest_api_path}/links",
            after_key,
            kind=link_kind.value,
        )
        linked_source_name = _find_linked_source_name(dossier_subject, link_kind)
        if total_count or linked_source_name is None:
            return link_section
        return _add_note(
            link_section, describe_loaded_records(dossier_subject.db, linked_source_name)
        )

    return read_section


def _find_linked_source_name(
    dossier_subject: DossierSubject, link_kind: LinkKind | SponsorKind
) -> str | None:
    if link_kind is LinkKind.LAW:
        return "public_laws" if dossier_subject.source.name == "bills" else "bills"
    return _SOURCE_NAME_BY_LINK_KIND.get(link_kind)


def _read_linked_records(
    db: Database, found_links: Sequence[FoundLink]
) -> dict[str, dict[str, Any]]:
    linked_record_by_id = {
        found_link.id: {"id": found_link.id, "source": found_link.source, "loaded": False}
        for found_link in found_links
    }
    for source_name in {
        found_link.source
        for found_link in found_links
        if found_link.source and found_link.title is not None
    }:
        ids_of_source = [
            found_link.id for found_link in found_links if found_link.source == source_name
        ]
        record_rows = db.execute(
            f"""SELECT id, record FROM {source_name}
                WHERE id IN ({", ".join("?" * len(ids_of_source))}) AND status = 'active'""",
            ids_of_source,
        )
        for record_row in record_rows:
            linked_record_by_id[record_row["id"]] = from_json(record_row["record"]) | {
                "loaded": True
            }
    return linked_record_by_id


def make_list_reader(
    source_name: str, filter_name: str, *, is_limited_to_congress: bool = False
) -> SectionReader:
    """Return a reader of the records of a source whose field has this id, newest first."""
    record_source = SOURCES_BY_NAME[source_name]

    def read_section(dossier_subject: DossierSubject) -> Section:
        filter_values: dict[str, Any] = {filter_name: dossier_subject.id}
        if is_limited_to_congress and dossier_subject.congress is not None:
            filter_values["congress"] = dossier_subject.congress
        sql_filter = build_sql_filter(record_source.record_table, filter_values)
        record_page = store.list_records(
            dossier_subject.db, record_source, sql_filter, MAX_SECTION_ITEMS, None
        )
        total_count = (
            store.count_records(dossier_subject.db, record_source, sql_filter)
            if record_page.after_key
            else len(record_page.rows)
        )
        list_section = _build_section(
            record_source.name,
            [make_card(listed_record) for listed_record in record_page.rows],
            total_count,
            f"/v1/{record_source.slug}",
            record_page.after_key,
            **filter_values,
        )
        found_gaps = describe_gaps(
            *(dossier_subject.db, record_source.record_table, filter_values),
            is_empty=not total_count,
        )
        return _add_note(list_section, found_gaps)

    return read_section


def make_field_reader(field_name: str, *, is_limited_to_congress: bool = False) -> SectionReader:
    """Return a reader of a list in the record itself: terms, leadership posts."""

    def read_section(dossier_subject: DossierSubject) -> Section:
        field_items = list(dossier_subject.record.get(field_name) or ())
        if is_limited_to_congress and dossier_subject.congress is not None:
            field_items = [
                field_item
                for field_item in field_items
                if overlaps_congress(field_item, dossier_subject.congress)
            ]
        # The record lists them from the first to the last.
        is_truncated = len(field_items) > MAX_SECTION_ITEMS
        return Section(
            items=list(reversed(field_items))[:MAX_SECTION_ITEMS],
            total=len(field_items),
            truncated=is_truncated,
            more_url=dossier_subject.rest_api_path if is_truncated else None,
            note=describe_stub(dossier_subject.record),
        )

    return read_section


# --- sections of a single dossier ---

_read_cosponsor_section = make_child_reader("bill_cosponsors", "cosponsors", "bioguide_id")


def read_cosponsors(dossier_subject: DossierSubject) -> Section:
    """Read the first cosponsors of a bill, each with what the bill's file says of them."""
    cosponsor_section = _read_cosponsor_section(dossier_subject)
    for cosponsor_fields in cosponsor_section.items:
        if cosponsor_fields["bioguide_id"]:
            cosponsor_fields["evidence"] = read_sponsor_evidence(
                dossier_subject.db,
                SponsorKind.COSPONSOR,
                dossier_subject.id,
                cosponsor_fields["bioguide_id"],
            )
    return cosponsor_section


_read_sponsored_bill_section = make_list_reader("bills", "sponsor", is_limited_to_congress=True)


def read_sponsored_bills(dossier_subject: DossierSubject) -> Section:
    """Read the newest bills that a member sponsored, each with what its file says of that."""
    bill_section = _read_sponsored_bill_section(dossier_subject)
    for bill_card in bill_section.items:
        bill_card["evidence"] = read_sponsor_evidence(
            dossier_subject.db, SponsorKind.SPONSOR, bill_card["id"], dossier_subject.id
        )
    return bill_section


def read_bill_counts(dossier_subject: DossierSubject) -> Section:
    """Count the bills that a member sponsored and cosponsored, by Congress."""
    congress_condition = "" if dossier_subject.congress is None else "WHERE congress = ?"
    count_rows = dossier_subject.db.execute(
        f"""SELECT congress, sum(sponsored) AS sponsored, sum(cosponsored) AS cosponsored FROM (
               SELECT congress, 1 AS sponsored, 0 AS cosponsored FROM bills
               WHERE sponsor = ? AND status = 'active'
               UNION ALL
               SELECT b.congress, 0, 1 FROM bill_cosponsors c JOIN bills b ON b.id = c.bill_id
               WHERE c.bioguide_id = ? AND b.status = 'active') AS bills_by_role
           {congress_condition} GROUP BY congress ORDER BY congress DESC NULLS LAST""",
        (
            dossier_subject.id,
            dossier_subject.id,
            *(() if dossier_subject.congress is None else (dossier_subject.congress,)),
        ),
    ).fetchall()
    count_items = [
        {
            **dict(count_row),
            "sponsored_url": _build_url(
                "/v1/bills", sponsor=dossier_subject.id, congress=count_row[0]
            ),
        }
        for count_row in count_rows
    ]
    note_text = None if count_items else describe_loaded_records(dossier_subject.db, "bills")
    return Section(items=count_items, total=len(count_items), truncated=False, note=note_text)


def read_committee_seats(dossier_subject: DossierSubject) -> Section:
    """Read a member's seats on committees, with the committees' names."""
    seat_section = make_list_reader(
        "committee_memberships", "bioguide_id", is_limited_to_congress=True
    )(dossier_subject)
    title_and_url_by_id = read_titles_and_urls(
        dossier_subject.db,
        (committee_seat["committee_id"] for committee_seat in seat_section.items),
    )
    seat_items = [
        {
            **committee_seat,
            "committee": title_and_url_by_id.get(committee_seat["committee_id"], {}).get("title"),
        }
        for committee_seat in seat_section.items
    ]
    return seat_section.model_copy(update={"items": seat_items})


def read_subcommittees(dossier_subject: DossierSubject) -> Section:
    """Read the subcommittees, those that sit now first; of one Congress, those it had."""
    subcommittee_rows = dossier_subject.db.execute(
        """SELECT id, record, current FROM committees
           WHERE parent_id = ? AND status = 'active' ORDER BY current DESC NULLS LAST, id""",
        (dossier_subject.id,),
    ).fetchall()
    subcommittee_records = [
        from_json(subcommittee_row["record"]) for subcommittee_row in subcommittee_rows
    ]
    if dossier_subject.congress is not None:
        subcommittee_records = [
            subcommittee_record
            for subcommittee_record in subcommittee_records
            if _existed_in_congress(subcommittee_record, dossier_subject.congress)
        ]
    subcommittee_items = [
        {
            "id": subcommittee_record["id"],
            "title": subcommittee_record["title"],
            "current": subcommittee_record["current"],
        }
        for subcommittee_record in subcommittee_records
    ]
    is_history_unknown = dossier_subject.congress is not None and any(
        not subcommittee_record.get("congresses") for subcommittee_record in subcommittee_records
    )
    return Section(
        items=subcommittee_items,
        total=len(subcommittee_items),
        truncated=False,
        note="Of those that sit now, the files do not say since when."
        if is_history_unknown
        else None,
    )


def _existed_in_congress(committee_fields: Mapping[str, Any], congress: int) -> bool:
    known_congresses = committee_fields.get("congresses") or []
    return congress in known_congresses if known_congresses else bool(committee_fields["current"])


def summarize_votes(dossier_subject: DossierSubject) -> Section:
    """Count by Congress how often a member voted, missed votes and agreed with the party."""
    summary_items = summarize_member_votes(
        dossier_subject.db, dossier_subject.id, dossier_subject.congress
    )
    voting_section = Section(items=summary_items, total=len(summary_items), truncated=False)
    missing_votes_note = describe_missing_votes(
        dossier_subject.db, len(summary_items), dossier_subject.congress
    )
    return _add_note(
        voting_section, missing_votes_note or "Counted over the votes that are loaded here."
    )


def read_members(dossier_subject: DossierSubject) -> Section:
    """Read who sits on a committee: the majority first, each side by rank."""
    member_page, total_count, congress = store.list_members(
        dossier_subject.db,
        dossier_subject.id,
        dossier_subject.congress,
        MAX_SECTION_ITEMS,
        store.KEY_BEFORE_FIRST_MEMBER,
    )
    member_section = _build_section(
        f"committee_members:{dossier_subject.id}",
        [
            make_card(committee_seat)
            for committee_seat in add_party_and_state(dossier_subject.db, member_page.rows)
        ],
        total_count,
        f"{dossier_subject.rest_api_path}/members",
        member_page.after_key,
        congress=congress,
    )
    return _add_note(member_section, describe_missing_roster(total_count, congress))


def _add_note(section: Section, note_text: str | None) -> Section:
    return section.model_copy(update={"note": note_text or section.note})


def add_missing_status_note(read_section: SectionReader) -> SectionReader:
    """Return a reader that tells what only the status file of a bill lists, where it is missing."""
    return lambda dossier_subject: _add_note(
        read_section(dossier_subject), describe_missing_status(dossier_subject.record)
    )


# --- the four dossiers ---

READER_BY_BILL_SECTION: dict[str, SectionReader] = {
    "sponsors": make_link_reader(SponsorKind.SPONSOR),
    "cosponsors": add_missing_status_note(read_cosponsors),
    "actions": add_missing_status_note(make_child_reader("bill_actions", "actions")),
    "crs_reports": make_link_reader(LinkKind.CRS_REPORT),
    "cost_estimates": add_missing_status_note(make_link_reader(LinkKind.COST_ESTIMATE)),
    "saps": make_link_reader(LinkKind.STATEMENT),
    "committee_reports": add_missing_status_note(make_link_reader(LinkKind.COMMITTEE_REPORT)),
    "hearings": add_missing_status_note(make_link_reader(LinkKind.HEARING)),
    "votes": add_missing_status_note(make_link_reader(LinkKind.VOTE)),
    "amendments": add_missing_status_note(make_list_reader("amendments", "bill_id")),
    "laws": add_missing_status_note(make_link_reader(LinkKind.LAW)),
}
READER_BY_MEMBER_SECTION: dict[str, SectionReader] = {
    "terms": make_field_reader("terms", is_limited_to_congress=True),
    "committees": read_committee_seats,
    "bill_counts": read_bill_counts,
    "sponsored_bills": read_sponsored_bills,
    "leadership": make_field_reader("leadership", is_limited_to_congress=True),
    "offices": make_list_reader("staff_directories", "bioguide_id"),
    "speeches": make_list_reader("congressional_record", "speaker", is_limited_to_congress=True),
    "voting": summarize_votes,
}
READER_BY_COMMITTEE_SECTION: dict[str, SectionReader] = {
    "members": read_members,
    "subcommittees": read_subcommittees,
    "hearings": make_list_reader("hearings", "committee", is_limited_to_congress=True),
    "bills": make_list_reader("bills", "committee", is_limited_to_congress=True),
    "reports": make_list_reader("committee_reports", "committee", is_limited_to_congress=True),
}
READER_BY_LAW_SECTION: dict[str, SectionReader] = {
    "originating_bill": make_link_reader(LinkKind.LAW),
    "cfr_sections": make_list_reader("cfr_sections", "law"),
    "implementing_rules": make_list_reader("federal_register", "law"),
    "compilations": make_link_reader(LinkKind.COMPILATION),
}


# --- sections and their URLs ---


def _build_section(
    list_name: str,
    section_items: list[dict[str, Any]],
    total_count: int,
    list_path: str,
    after_key: tuple[Any, ...] | None,
    **query_params: Any,
) -> Section:
    more_url = None
    if after_key is not None:
        more_url = _build_url(
            list_path,
            **query_params,
            limit=MAX_SECTION_ITEMS,
            cursor=cursors.encode(cursors.build_list_name(list_name, query_params), after_key),
        )
    return Section(
        items=section_items, total=total_count, truncated=after_key is not None, more_url=more_url
    )


def _build_url(list_path: str, **query_params: Any) -> str:
    stated_params = {
        param_name: param_value
        for param_name, param_value in query_params.items()
        if param_value is not None
    }
    return f"{list_path}?{urlencode(stated_params)}"
