"""The sources of the federal base: their names, shapes, tables, filters and aggregates.

Adding a source is one entry here, one record model and one loader.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import get_args

from readingroom.bases.federal.schema.ids import BILL_TYPES
from readingroom.bases.federal.schema.records import (
    Agency,
    Amendment,
    Bill,
    BillOutcome,
    BillStage,
    CboEstimate,
    CfrSection,
    Committee,
    CommitteeReport,
    Compilation,
    CrsReport,
    Docket,
    Filing,
    Hearing,
    Law,
    Legislator,
    Membership,
    Office,
    PolicyPosition,
    PresidentialDocument,
    Proceeding,
    Record,
    RollCall,
    Rule,
    Sap,
    Topic,
)
from readingroom.bases.federal.schema.uncovered import find_uncovered_kind
from readingroom.core.errors import InvalidArguments, UnknownSource
from readingroom.storage.dialect import SQLITE


class Shape(StrEnum):
    """How a source can be searched."""

    BODY = "body"
    """Long texts: by words and by meaning."""
    SHORT = "short"
    """Short texts: by words, and by words and meaning together; not by meaning alone."""
    REGISTRY = "registry"
    """Names rather than texts: by name only."""


@dataclass(frozen=True, slots=True)
class Column:
    """A field of the record that lists are filtered by, generated as a column of the table."""

    name: str
    sql_type: str = "TEXT"
    json_path: str = ""
    """JSON path in the record, unless it is a top-level field of the same name."""
    choices: tuple[str, ...] = ()
    """All possible values, where they are few."""
    is_measure: bool = False
    """Whether it is only summed: lists are not filtered by it, and it has no index of its own."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A number that can be summed. Money is stored in whole cents, so that sums are exact."""

    name: str
    column_name: str
    decimal_digits: int = 0
    """How many digits of the column's whole numbers are decimals."""
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Facet:
    """A field with several values per record; `rows_sql` selects `id` and `value`."""

    name: str
    rows_sql: str
    rows_by_value_sql: str = ""
    """The same in the order of an index on the value: quicker where all of them are counted."""
    search_field: str = ""
    """The field of the search's facets that it is; these have numbers of documents, not ids."""


@dataclass(frozen=True, slots=True)
class AggregationPlan:
    """What a table can be grouped by, which numbers can be summed, and which dates it has."""

    group_column_names: tuple[str, ...] = ()
    """Names of columns; empty for every column that lists are filtered by."""
    facets: tuple[Facet, ...] = ()
    measures: tuple[Measure, ...] = ()
    date_names_and_columns: tuple[tuple[str, str], ...] = (("published_at", "published_at"),)
    """Names of dates, each with its column."""

    @property
    def group_names(self) -> tuple[str, ...]:
        return (*self.group_column_names, *(group_facet.name for group_facet in self.facets))


@dataclass(frozen=True, slots=True)
class RecordTable:
    """A table whose rows can be filtered and counted."""

    name: str
    columns: tuple[Column, ...]
    aggregation_plan: AggregationPlan
    row_count_sql: str
    """SQL that quickly tells about how many rows there are."""
    covering_index_name: str | None = None
    """The index that covers every aggregate."""
    indexed_column_names: tuple[str, ...] = ()
    """The columns that have an index of their own."""
    newest_value_queries: tuple[tuple[str, str], ...] = ()
    """Some of these columns, each with SQL for its newest value, to suggest as a filter."""
    active_rows_condition: str = "status = 'active'"
    date_sql: str = "published_at"
    """The date that `since` and `until` are compared with."""

    @property
    def slug(self) -> str:
        return self.name.replace("_", "-")

    @property
    def filter_columns(self) -> tuple[Column, ...]:
        return tuple(table_column for table_column in self.columns if not table_column.is_measure)


@dataclass(frozen=True, slots=True)
class Source:
    """A source: the table has its name, the records have its model."""

    name: str
    shape: Shape
    record_class: type[Record]
    columns: tuple[Column, ...] = ()
    aliases: tuple[str, ...] = ()
    newest_date_field: str = "published_at"
    """The field whose newest value is the date of the newest record."""
    complete_file_loader_name: str | None = None
    """The loader each of whose files has every record up to its date: the source is complete up to
    the newest of these dates."""
    issue_loader_name: str | None = None
    """The loader each of whose files has every record of one day, and says nothing of others."""
    series_column_name: str | None = None
    """A column that is equal for records that replace each other: the newest one is active."""
    included_source_names: tuple[str, ...] = ()
    """Sources that are parts of this one: a search of it covers them too."""
    aggregation_plan: AggregationPlan = field(default_factory=AggregationPlan)

    @property
    def has_names(self) -> bool:
        """Whether its records are found by name: registries, and bills by their short titles."""
        return self.shape is Shape.REGISTRY or self.name == "bills"

    @property
    def record_table(self) -> RecordTable:
        """The table of the source, to filter and count its rows."""
        filter_column_names = tuple(
            table_column.name for table_column in self.columns if not table_column.is_measure
        )
        return RecordTable(
            self.name,
            self.columns,
            replace(
                self.aggregation_plan,
                group_column_names=self.aggregation_plan.group_column_names or filter_column_names,
            ),
            row_count_sql=f"SELECT records FROM progress WHERE source = '{self.name}'",
            covering_index_name=f"{self.name}_facts",
            indexed_column_names=filter_column_names,
            newest_value_queries=tuple(
                (table_column.name, f"SELECT max({table_column.name}) FROM {self.name}")
                for table_column in self.columns
                if table_column.sql_type == "INTEGER" and not table_column.is_measure
            ),
        )

    @property
    def label(self) -> str:
        """The source as people write it: `CFR sections`."""
        return _LABELS_BY_SOURCE.get(self.name) or self.name.replace("_", " ").capitalize()

    @property
    def slug(self) -> str:
        """The name of its endpoint under `/v1`."""
        return self.name.replace("_", "-")


_LABELS_BY_SOURCE = {
    "cbo_cost_estimates": "CBO cost estimates",
    "cfr_sections": "CFR sections",
    "congressional_record": "Congressional Record",
    "crs_reports": "CRS reports",
    "federal_register": "Federal Register",
    "lda_filings": "Lobbying filings",
    "regulations_dot_gov_dockets": "Dockets of Regulations.gov",
    "saps": "Statements of Administration Policy",
    "topic_taxonomy": "Topics",
}


def _make_search_facet(facet_name: str) -> Facet:
    """Return a facet that searches filter by: it serves lists and aggregates too."""
    return Facet(
        facet_name,
        f"""SELECT d.id AS id, f.value AS value FROM facets f JOIN documents d USING (doc)
            WHERE f.field = '{facet_name}'""",
        search_field=facet_name,
    )


def _make_link_facet(facet_name: str, *link_kinds: str) -> Facet:
    """Return the facet of records linked by these kinds, in either direction."""
    kinds_sql = ", ".join(f"'{link_kind}'" for link_kind in link_kinds)
    return Facet(
        facet_name,
        f"""SELECT from_id AS id, to_id AS value FROM links WHERE kind IN ({kinds_sql})
            UNION SELECT to_id, from_id FROM links WHERE kind IN ({kinds_sql})""",
    )


def _list_choices(record_class: type[Record], field_name: str) -> tuple[str, ...]:
    """Return the values that a record's model allows for a field."""
    return get_args(record_class.model_fields[field_name].annotation)


_CONGRESS_COLUMN = Column("congress", "INTEGER")
_CHAMBER_COLUMN = Column("chamber")
_TYPE_COLUMN = Column("type")

SOURCES = (
    Source(
        "bills",
        Shape.BODY,
        Bill,
        (
            _CONGRESS_COLUMN,
            Column("type", choices=BILL_TYPES),
            Column("chamber", json_path="$.origin_chamber"),
            Column("policy_area"),
            Column("sponsor", json_path="$.sponsors[0].bioguide_id"),
            Column("party", json_path="$.sponsors[0].party"),
            Column("state", json_path="$.sponsors[0].state"),
            Column("stage", choices=get_args(BillStage)),
            Column("outcome", choices=get_args(BillOutcome)),
            Column("cosponsor_count", "INTEGER", is_measure=True),
            Column("action_count", "INTEGER", is_measure=True),
            Column("amendment_count", "INTEGER", is_measure=True),
        ),
        ("bill",),
        newest_date_field="updated_at",
        aggregation_plan=AggregationPlan(
            facets=(
                _make_search_facet("topic"),
                Facet(
                    "committee", "SELECT bill_id AS id, committee_id AS value FROM bill_committees"
                ),
                Facet(
                    "cosponsor",
                    "SELECT bill_id AS id, bioguide_id AS value FROM bill_cosponsors",
                    f"""SELECT bill_id AS id, bioguide_id AS value FROM bill_cosponsors
                        {SQLITE.build_index_hint_sql("bill_cosponsors_person")}""",
                ),
            ),
            measures=(
                Measure("cosponsor_count", "cosponsor_count"),
                Measure("action_count", "action_count"),
                Measure("amendment_count", "amendment_count"),
            ),
            date_names_and_columns=(
                ("published_at", "published_at"),
                ("introduced_at", "published_at"),
            ),
        ),
    ),
    Source(
        "amendments",
        Shape.BODY,
        Amendment,
        (
            _CONGRESS_COLUMN,
            Column("type", choices=("hamdt", "samdt", "suamdt")),
            _CHAMBER_COLUMN,
            Column("bill_id"),
            Column("sponsor", json_path="$.sponsors[0].bioguide_id"),
        ),
        ("amendment", "amdt"),
    ),
    Source(
        "public_laws",
        Shape.BODY,
        Law,
        (_CONGRESS_COLUMN, Column("bill_id"), Column("private", "BOOLEAN")),
        ("laws", "law", "pl"),
    ),
    Source(
        "federal_register",
        Shape.BODY,
        Rule,
        (_TYPE_COLUMN, Column("subtype")),
        ("fr", "rules"),
        issue_loader_name="register-issue",
        # The President's documents are printed there, but are records of a source of their own.
        included_source_names=("presidential_documents",),
        aggregation_plan=AggregationPlan(
            facets=(
                Facet(
                    "agency",
                    f"""SELECT r.id AS id, j.value {SQLITE.any_case_sql} AS value
                        FROM federal_register r,
                             {SQLITE.build_field_items_sql("r.record", "agency_slugs")} j""",
                ),
                _make_search_facet("topic"),
                _make_link_facet("law", "authority", "mention"),
            ),
        ),
    ),
    Source(
        "presidential_documents",
        Shape.BODY,
        PresidentialDocument,
        (_TYPE_COLUMN, Column("president")),
        ("presdoc", "presdocs"),
        issue_loader_name="register-issue",
    ),
    Source(
        "congressional_record",
        Shape.BODY,
        Proceeding,
        (
            _CONGRESS_COLUMN,
            _CHAMBER_COLUMN,
            Column("type", choices=("house", "senate", "extensions", "digest")),
            Column("category"),
        ),
        ("crec", "record", "speeches"),
        aggregation_plan=AggregationPlan(
            facets=(_make_link_facet("speaker", "speech"), _make_link_facet("bill", "mention"))
        ),
    ),
    Source(
        "crs_reports",
        Shape.BODY,
        CrsReport,
        (_TYPE_COLUMN, Column("archived", "BOOLEAN")),
        ("crs",),
        aggregation_plan=AggregationPlan(facets=(_make_link_facet("bill", "crs_report"),)),
    ),
    Source(
        "cfr_sections",
        Shape.BODY,
        CfrSection,
        (Column("cfr_title", "INTEGER"), Column("part"), Column("agency")),
        ("cfr", "regulations"),
        aggregation_plan=AggregationPlan(facets=(_make_link_facet("law", "authority", "mention"),)),
    ),
    Source(
        "statute_compilations",
        Shape.BODY,
        Compilation,
        (_CONGRESS_COLUMN, Column("law_id")),
        ("comps", "compilations"),
    ),
    Source(
        "cbo_cost_estimates",
        Shape.BODY,
        CboEstimate,
        (_CONGRESS_COLUMN, Column("bill_id", json_path="$.bills[0]")),
        ("cbo", "cost_estimates"),
    ),
    Source(
        "committee_reports",
        Shape.BODY,
        CommitteeReport,
        (
            _CONGRESS_COLUMN,
            _CHAMBER_COLUMN,
            Column("type", choices=("hrpt", "srpt", "erpt")),
            Column("conference", "BOOLEAN"),
            Column("bill_id", json_path="$.bills[0]"),
        ),
        ("crpt", "reports"),
        aggregation_plan=AggregationPlan(
            facets=(
                Facet(
                    "committee",
                    f"""SELECT r.id AS id, j.value AS value
                        FROM committee_reports r,
                             {SQLITE.build_field_items_sql("r.record", "committees")} j""",
                ),
            )
        ),
    ),
    Source(
        "saps",
        Shape.SHORT,
        Sap,
        (
            _CONGRESS_COLUMN,
            Column("president"),
            Column("president_number", "INTEGER"),
            Column("position", choices=get_args(PolicyPosition)),
        ),
        ("sap",),
        complete_file_loader_name="saps",
    ),
    Source(
        "legislators",
        Shape.REGISTRY,
        Legislator,
        (
            _CHAMBER_COLUMN,
            Column("party"),
            Column("state"),
            Column("current", "BOOLEAN"),
            Column("lis", json_path="$.ids.lis"),
        ),
        ("members", "legislator"),
        complete_file_loader_name="legislators",
        newest_date_field="as_of",
    ),
    Source(
        "committees",
        Shape.REGISTRY,
        Committee,
        (_CHAMBER_COLUMN, Column("parent_id"), Column("current", "BOOLEAN")),
        ("committee",),
        newest_date_field="as_of",
    ),
    Source(
        "committee_memberships",
        Shape.REGISTRY,
        Membership,
        (
            _CONGRESS_COLUMN,
            Column("committee_id"),
            Column("bioguide_id"),
            Column("rank", "INTEGER"),
        ),
        ("memberships",),
        newest_date_field="as_of",
    ),
    Source(
        "roll_call_votes",
        Shape.REGISTRY,
        RollCall,
        (
            _CONGRESS_COLUMN,
            _CHAMBER_COLUMN,
            Column("session", "INTEGER"),
            Column("result"),
            Column("yea", "INTEGER", "$.totals.yea", is_measure=True),
            Column("nay", "INTEGER", "$.totals.nay", is_measure=True),
            Column("not_voting", "INTEGER", "$.totals.not_voting", is_measure=True),
            Column("recorded", "INTEGER", is_measure=True),
        ),
        ("votes", "rolls"),
        aggregation_plan=AggregationPlan(
            measures=(
                Measure("yea", "yea"),
                Measure("nay", "nay"),
                Measure("not_voting", "not_voting"),
            ),
            date_names_and_columns=(("published_at", "published_at"), ("voted_at", "published_at")),
        ),
    ),
    Source(
        "topic_taxonomy",
        Shape.REGISTRY,
        Topic,
        (
            Column("policy_area", "BOOLEAN"),
            Column("parent_id"),
            Column("vocabulary", choices=_list_choices(Topic, "vocabulary")),
        ),
        ("topics",),
        newest_date_field="as_of",
    ),
    Source(
        "staff_directories",
        Shape.REGISTRY,
        Office,
        (
            Column("type", choices=_list_choices(Office, "type")),
            Column("bioguide_id"),
            Column("state"),
            Column("city"),
        ),
        ("staff", "offices"),
        newest_date_field="as_of",
    ),
    Source(
        "lda_filings",
        Shape.REGISTRY,
        Filing,
        (
            _TYPE_COLUMN,
            Column("year", "INTEGER"),
            Column("period"),
            Column("registrant_id"),
            Column("registrant"),
            Column("client_id"),
            Column("client"),
            Column("registration", "BOOLEAN"),
            Column("series"),
            Column("amount_cents", "INTEGER", is_measure=True),
        ),
        ("lda", "filings", "lobbying"),
        series_column_name="series",
        aggregation_plan=AggregationPlan(
            ("type", "year", "period", "registrant", "client", "registration"),
            (
                Facet(
                    "issue",
                    f"""SELECT DISTINCT r.id AS id,
                               (j.value ->> 'issue_code') {SQLITE.any_case_sql} AS value
                        FROM lda_filings r,
                             {SQLITE.build_field_objects_sql("r.record", "activities")} j""",
                ),
                _make_link_facet("bill", "filing"),
            ),
            (Measure("amount", "amount_cents", decimal_digits=2, unit="USD"),),
            (("published_at", "published_at"), ("posted_at", "published_at")),
        ),
    ),
    Source(
        "regulations_dot_gov_dockets",
        Shape.REGISTRY,
        Docket,
        (_TYPE_COLUMN, Column("agency"), Column("rin")),
        ("dockets", "docket"),
    ),
    Source("agencies", Shape.REGISTRY, Agency, aliases=("agency",), newest_date_field="as_of"),
    Source(
        "hearings",
        Shape.REGISTRY,
        Hearing,
        (_CONGRESS_COLUMN, _CHAMBER_COLUMN, Column("type", choices=_list_choices(Hearing, "type"))),
        ("hearing", "meetings"),
        aggregation_plan=AggregationPlan(
            facets=(
                _make_link_facet("committee", "committee"),
                _make_link_facet("bill", "hearing"),
            ),
            date_names_and_columns=(("published_at", "published_at"), ("held_at", "published_at")),
        ),
    ),
)

SOURCES_BY_NAME = {source.name: source for source in SOURCES}

_NEWEST_VOTE_ID_SQL = """SELECT id FROM roll_call_votes WHERE status = 'active'
    ORDER BY published_at DESC NULLS LAST, id LIMIT 1"""
_VOTER_ID_SQL = "SELECT bioguide_id FROM member_votes WHERE bioguide_id IS NOT NULL AND vote_id"

MEMBER_VOTES = RecordTable(
    "member_votes",
    (
        Column("bioguide_id"),
        _CONGRESS_COLUMN,
        Column("party"),
        Column("state"),
        Column("position"),
        Column("standard_position", choices=("yea", "nay", "present", "not_voting")),
        Column("vote_id"),
    ),
    AggregationPlan(
        (
            "position",
            "standard_position",
            "party",
            "state",
            "congress",
            "bioguide_id",
            "vote_id",
        ),
        date_names_and_columns=(("voted_at", "sorted_at"),),
    ),
    row_count_sql="SELECT sum(recorded) FROM roll_call_votes",
    indexed_column_names=("bioguide_id", "vote_id"),
    newest_value_queries=(
        ("vote_id", _NEWEST_VOTE_ID_SQL),
        ("bioguide_id", f"{_VOTER_ID_SQL} = ({_NEWEST_VOTE_ID_SQL}) LIMIT 1"),
    ),
    # NOT IN the inactive ones, rather than IN the active ones: that list is short and read once.
    active_rows_condition=(
        "vote_id NOT IN (SELECT id FROM roll_call_votes WHERE status <> 'active')"
    ),
    date_sql="substr(sorted_at, 1, 10)",
)
"""How each member voted in each roll call: counted here, listed only by member or by vote."""

_ALL_TABLES = (*(source.record_table for source in SOURCES), MEMBER_VOTES)
TABLES_BY_NAME = {table.name: table for table in _ALL_TABLES}
_SOURCE_BY_ALIAS = {alias: source for source in SOURCES for alias in source.aliases}


def get_source(source_name: str) -> Source:
    """Return a source by its name or an alias, with `-` or `_`; raise UnknownSource if none."""
    record_source = _find_source_named(source_name)
    if record_source is None:
        raise UnknownSource(
            _describe_unknown_source(source_name), valid_sources=list_source_names(SOURCES)
        )
    return record_source


def _describe_unknown_source(source_name: str) -> str:
    problem_text = f"There is no source {source_name[:100]!r}"
    uncovered_kind = find_uncovered_kind(source_name)
    if uncovered_kind:
        return f"{problem_text}. {uncovered_kind.notice}"
    return f"{problem_text}; there are {', '.join(list_source_names(SOURCES))}"


def is_source_name(written_name: str) -> bool:
    """Return whether this is the name of a source, or an alias."""
    return _find_source_named(written_name) is not None


def get_registry(registry_name: str) -> Source:
    """Return a registry by its name or an alias; raise InvalidArguments if it is not one."""
    record_source = _find_source_named(registry_name)
    if record_source is not None and record_source.has_names:
        return record_source
    valid_names_text = ", ".join(
        registry_source.slug for registry_source in SOURCES if registry_source.has_names
    )
    problem_text = (
        f"{record_source.name} is searched with search, not by name"
        if record_source
        else _describe_unknown_source(registry_name)
    )
    raise InvalidArguments(
        [{"field": "entity_type", "message": f"{problem_text}; one of {valid_names_text}"}]
    )


def get_record_table(table_name: str) -> RecordTable:
    """Return what can be aggregated, by its name or an alias; raise InvalidArguments if none."""
    record_source = _find_source_named(table_name)
    table = TABLES_BY_NAME.get(
        record_source.name if record_source else _fold_source_name(table_name)
    )
    if table is None:
        valid_names_text = ", ".join(valid_table.slug for valid_table in TABLES_BY_NAME.values())
        uncovered_kind = find_uncovered_kind(table_name)
        notice_text = f". {uncovered_kind.notice} Valid are" if uncovered_kind else "; one of"
        problem_text = f"there is no {table_name[:100]!r}{notice_text} {valid_names_text}"
        raise InvalidArguments([{"field": "resource", "message": problem_text}])
    return table


def list_sources_and_included(source_names: str | Sequence[str] | None) -> tuple[Source, ...]:
    """Return the sources of a list of names, or of names with commas between, and their parts."""
    if source_names is None:
        return ()
    source_names = source_names.split(",") if isinstance(source_names, str) else source_names
    found_sources = [get_source(source_name) for source_name in source_names if source_name.strip()]
    included_sources = [
        SOURCES_BY_NAME[included_name]
        for record_source in found_sources
        for included_name in record_source.included_source_names
    ]
    return tuple(dict.fromkeys((*found_sources, *included_sources)))


def _find_source_named(source_name: str) -> Source | None:
    folded_name = _fold_source_name(source_name)
    return SOURCES_BY_NAME.get(folded_name) or _SOURCE_BY_ALIAS.get(folded_name)


def _fold_source_name(source_name: str) -> str:
    return source_name.strip().lower().replace("-", "_")


def list_sources_of_shape(*shapes: Shape) -> tuple[Source, ...]:
    return tuple(record_source for record_source in SOURCES if record_source.shape in shapes)


def list_source_names(record_sources: Iterable[Source]) -> list[str]:
    return [record_source.name for record_source in record_sources]
