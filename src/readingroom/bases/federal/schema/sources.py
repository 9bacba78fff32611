"""The sources of the federal base: their names, shapes, tables and what each can be filtered by.

Adding a source is one entry here, one record model and one loader.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import get_args

from readingroom.bases.federal.schema.ids import BILL_TYPES
from readingroom.bases.federal.schema.records import (
    Amendment,
    Bill,
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
    PresidentialDocument,
    Proceeding,
    Record,
    RollCall,
    Rule,
    Sap,
    Topic,
)
from readingroom.core.errors import InvalidArguments, UnknownSource


class Shape(StrEnum):
    """What of a source can be searched."""

    BODY = "body"
    SHORT = "short"
    REGISTRY = "registry"


@dataclass(frozen=True, slots=True)
class Column:
    """A field of the record that lists are filtered by, kept as a column of its own."""

    name: str
    kind: str = "TEXT"
    path: str = ""
    """Where it stands in the record, when not at the top under its own name."""
    among: tuple[str, ...] = ()
    """All the values there can be, where these are few and known."""
    measure: bool = False
    """Whether it is only summed: no list is filtered by it, and it has no index of its own."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What can be summed. Money is kept in whole cents, so that no sum of it is ever rounded."""

    name: str
    column: str
    digits: int = 0
    """How many decimal digits of the column's whole numbers come after the point."""
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Facet:
    """A field of which a record may have several values; `rows` selects `id` and `value`."""

    name: str
    rows: str


@dataclass(frozen=True, slots=True)
class AggregationPlan:
    """What of a resource can be counted by, summed, and laid out over time."""

    group_by: tuple[str, ...] = ()
    """Names of columns; none means each that lists are filtered by."""
    facets: tuple[Facet, ...] = ()
    sums: tuple[Measure, ...] = ()
    times: tuple[tuple[str, str], ...] = (("published_at", "published_at"),)
    """Names of dates, each with its column."""

    @property
    def groups(self) -> tuple[str, ...]:
        return (*self.group_by, *(facet.name for facet in self.facets))


@dataclass(frozen=True, slots=True)
class Resource:
    """A table whose rows can be narrowed and counted."""

    name: str
    columns: tuple[Column, ...]
    plan: AggregationPlan
    size: str
    """SQL that tells at once about how many rows there are."""
    facts: str | None = None
    """The index that alone answers every aggregate."""
    lookups: tuple[str, ...] = ()
    """The columns that have an index of their own."""
    newest: tuple[tuple[str, str], ...] = ()
    """Some of these, each with the SQL of its newest value: what to narrow an aggregate to."""
    where: str = "status = 'active'"
    dated: str = "published_at"
    """What `since` and `until` speak of."""

    @property
    def path(self) -> str:
        return self.name.replace("_", "-")

    @property
    def filters(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if not column.measure)


@dataclass(frozen=True, slots=True)
class Source:
    """One source: its table has its name, its records have its model."""

    name: str
    shape: Shape
    record: type[Record]
    columns: tuple[Column, ...] = ()
    aliases: tuple[str, ...] = ()
    as_of: str = "published_at"
    """The field whose newest value says up to when the source is loaded."""
    newest_of: str | None = None
    """A column that is alike for records that replace each other: the newest posted is active."""
    holds: tuple[str, ...] = ()
    """Sources that are parts of this one: a search of it looks through them too."""
    plan: AggregationPlan = field(default_factory=AggregationPlan)

    @property
    def resource(self) -> Resource:
        """The source as something to narrow and count."""
        filters = tuple(column.name for column in self.columns if not column.measure)
        return Resource(
            self.name,
            self.columns,
            replace(self.plan, group_by=self.plan.group_by or filters),
            size=f"SELECT records FROM progress WHERE source = '{self.name}'",
            facts=f"{self.name}_facts",
            lookups=filters,
            newest=tuple(
                (column.name, f"SELECT max({column.name}) FROM {self.name}")
                for column in self.columns
                if column.kind == "INTEGER" and not column.measure
            ),
        )

    @property
    def path(self) -> str:
        """Its place under `/v1`."""
        return self.name.replace("_", "-")


# The words a record can be searched by are kept ready beside it.
_FACET = """SELECT d.id AS id, f.value AS value FROM facets f JOIN documents d USING (doc)
            WHERE f.field = '{field}'"""


def _linked(name: str, *kinds: str) -> Facet:
    """The records at the other end of links of these kinds, whichever end says so."""
    among = ", ".join(f"'{kind}'" for kind in kinds)
    return Facet(
        name,
        f"""SELECT from_id AS id, to_id AS value FROM links WHERE kind IN ({among})
            UNION SELECT to_id, from_id FROM links WHERE kind IN ({among})""",
    )


def _choices(record: type[Record], field: str) -> tuple[str, ...]:
    """The values that a record's model allows."""
    return get_args(record.model_fields[field].annotation)


_CONGRESS = Column("congress", "INTEGER")
_CHAMBER = Column("chamber")
_TYPE = Column("type")

SOURCES = (
    Source(
        "bills",
        Shape.BODY,
        Bill,
        (
            _CONGRESS,
            Column("type", among=BILL_TYPES),
            Column("chamber", path="$.origin_chamber"),
            Column("policy_area"),
            Column("sponsor", path="$.sponsors[0].bioguide_id"),
            Column("party", path="$.sponsors[0].party"),
            Column("state", path="$.sponsors[0].state"),
            Column("cosponsor_count", "INTEGER", measure=True),
            Column("action_count", "INTEGER", measure=True),
            Column("amendment_count", "INTEGER", measure=True),
        ),
        ("bill",),
        as_of="updated_at",
        plan=AggregationPlan(
            facets=(
                Facet("topic", _FACET.format(field="topic")),
                Facet(
                    "committee", "SELECT bill_id AS id, committee_id AS value FROM bill_committees"
                ),
                Facet(
                    "cosponsor", "SELECT bill_id AS id, bioguide_id AS value FROM bill_cosponsors"
                ),
            ),
            sums=(
                Measure("cosponsor_count", "cosponsor_count"),
                Measure("action_count", "action_count"),
                Measure("amendment_count", "amendment_count"),
            ),
            times=(("published_at", "published_at"), ("introduced_at", "published_at")),
        ),
    ),
    Source(
        "amendments",
        Shape.BODY,
        Amendment,
        (
            _CONGRESS,
            Column("type", among=("hamdt", "samdt", "suamdt")),
            _CHAMBER,
            Column("bill_id"),
            Column("sponsor", path="$.sponsors[0].bioguide_id"),
        ),
        ("amendment", "amdt"),
    ),
    Source(
        "public_laws",
        Shape.BODY,
        Law,
        (_CONGRESS, Column("bill_id"), Column("private", "BOOLEAN")),
        ("laws", "law", "pl"),
    ),
    Source(
        "federal_register",
        Shape.BODY,
        Rule,
        (_TYPE, Column("subtype")),
        ("fr", "rules"),
        # The President's documents are printed there; each is one record, under its own source.
        holds=("presidential_documents",),
        plan=AggregationPlan(
            facets=(
                Facet(
                    "agency",
                    """SELECT r.id AS id, j.value COLLATE NOCASE AS value
                       FROM federal_register r, json_each(r.record, '$.agency_slugs') j""",
                ),
                Facet("topic", _FACET.format(field="topic")),
                _linked("law", "authority", "mention"),
            ),
        ),
    ),
    Source(
        "presidential_documents",
        Shape.BODY,
        PresidentialDocument,
        (_TYPE, Column("president")),
        ("presdoc", "presdocs"),
    ),
    Source(
        "congressional_record",
        Shape.BODY,
        Proceeding,
        (
            _CONGRESS,
            _CHAMBER,
            Column("type", among=("house", "senate", "extensions", "digest")),
            Column("category"),
        ),
        ("crec", "record", "speeches"),
        plan=AggregationPlan(facets=(_linked("speaker", "speech"), _linked("bill", "mention"))),
    ),
    Source(
        "crs_reports",
        Shape.BODY,
        CrsReport,
        (_TYPE, Column("archived", "BOOLEAN")),
        ("crs",),
        plan=AggregationPlan(facets=(_linked("bill", "crs_report"),)),
    ),
    Source(
        "cfr_sections",
        Shape.BODY,
        CfrSection,
        (Column("cfr_title", "INTEGER"), Column("part"), Column("agency")),
        ("cfr", "regulations"),
        plan=AggregationPlan(facets=(_linked("law", "authority", "mention"),)),
    ),
    Source(
        "statute_compilations",
        Shape.BODY,
        Compilation,
        (_CONGRESS, Column("law_id")),
        ("comps", "compilations"),
    ),
    Source(
        "cbo_cost_estimates",
        Shape.BODY,
        CboEstimate,
        (_CONGRESS, Column("bill_id", path="$.bills[0]")),
        ("cbo", "cost_estimates"),
    ),
    Source(
        "committee_reports",
        Shape.BODY,
        CommitteeReport,
        (
            _CONGRESS,
            _CHAMBER,
            Column("type", among=("hrpt", "srpt", "erpt")),
            Column("conference", "BOOLEAN"),
            Column("bill_id", path="$.bills[0]"),
        ),
        ("crpt", "reports"),
        plan=AggregationPlan(
            facets=(
                Facet(
                    "committee",
                    """SELECT r.id AS id, j.value AS value
                       FROM committee_reports r, json_each(r.record, '$.committees') j""",
                ),
            )
        ),
    ),
    Source("saps", Shape.SHORT, Sap, (_CONGRESS, Column("president")), ("sap",)),
    Source(
        "legislators",
        Shape.REGISTRY,
        Legislator,
        (
            _CHAMBER,
            Column("party"),
            Column("state"),
            Column("current", "BOOLEAN"),
            Column("lis", path="$.ids.lis"),
        ),
        ("members", "legislator"),
        as_of="retrieved_at",
    ),
    Source(
        "committees",
        Shape.REGISTRY,
        Committee,
        (_CHAMBER, Column("parent_id"), Column("current", "BOOLEAN")),
        ("committee",),
        as_of="retrieved_at",
    ),
    Source(
        "committee_memberships",
        Shape.REGISTRY,
        Membership,
        (_CONGRESS, Column("committee_id"), Column("bioguide_id"), Column("rank", "INTEGER")),
        ("memberships",),
        as_of="retrieved_at",
    ),
    Source(
        "roll_call_votes",
        Shape.REGISTRY,
        RollCall,
        (
            _CONGRESS,
            _CHAMBER,
            Column("session", "INTEGER"),
            Column("result"),
            Column("yea", "INTEGER", "$.totals.yea", measure=True),
            Column("nay", "INTEGER", "$.totals.nay", measure=True),
            Column("not_voting", "INTEGER", "$.totals.not_voting", measure=True),
            Column("recorded", "INTEGER", measure=True),
        ),
        ("votes", "rolls"),
        plan=AggregationPlan(
            sums=(
                Measure("yea", "yea"),
                Measure("nay", "nay"),
                Measure("not_voting", "not_voting"),
            ),
            times=(("published_at", "published_at"), ("voted_at", "published_at")),
        ),
    ),
    Source(
        "topic_taxonomy",
        Shape.REGISTRY,
        Topic,
        (
            Column("policy_area", "BOOLEAN"),
            Column("parent_id"),
            Column("vocabulary", among=_choices(Topic, "vocabulary")),
        ),
        ("topics",),
        as_of="retrieved_at",
    ),
    Source(
        "staff_directories",
        Shape.REGISTRY,
        Office,
        (
            Column("type", among=_choices(Office, "type")),
            Column("bioguide_id"),
            Column("state"),
            Column("city"),
        ),
        ("staff", "offices"),
        as_of="retrieved_at",
    ),
    Source(
        "lda_filings",
        Shape.REGISTRY,
        Filing,
        (
            _TYPE,
            Column("year", "INTEGER"),
            Column("period"),
            Column("registrant_id"),
            Column("registrant"),
            Column("client_id"),
            Column("client"),
            Column("registration", "BOOLEAN"),
            Column("series"),
            Column("amount_cents", "INTEGER", measure=True),
        ),
        ("lda", "filings", "lobbying"),
        newest_of="series",
        plan=AggregationPlan(
            ("type", "year", "period", "registrant", "client", "registration"),
            (
                Facet(
                    "issue",
                    """SELECT DISTINCT r.id AS id, 
                              (j.value ->> '$.issue_code') COLLATE NOCASE AS value
                       FROM lda_filings r, json_each(r.record, '$.activities') j""",
                ),
                _linked("bill", "filing"),
            ),
            (Measure("amount", "amount_cents", digits=2, unit="USD"),),
            (("published_at", "published_at"), ("posted_at", "published_at")),
        ),
    ),
    Source(
        "regulations_dot_gov_dockets",
        Shape.REGISTRY,
        Docket,
        (_TYPE, Column("agency"), Column("rin")),
        ("dockets", "docket"),
    ),
    Source(
        "hearings",
        Shape.REGISTRY,
        Hearing,
        (_CONGRESS, _CHAMBER, Column("type", among=_choices(Hearing, "type"))),
        ("hearing", "meetings"),
        plan=AggregationPlan(
            facets=(_linked("committee", "committee"), _linked("bill", "hearing")),
            times=(("published_at", "published_at"), ("held_at", "published_at")),
        ),
    ),
)

BY_NAME = {source.name: source for source in SOURCES}

_NEWEST_VOTE = """SELECT id FROM roll_call_votes WHERE status = 'active'
    ORDER BY published_at DESC, id LIMIT 1"""
_VOTER = "SELECT bioguide_id FROM member_votes WHERE bioguide_id IS NOT NULL AND vote_id"

MEMBER_VOTES = Resource(
    "member_votes",
    (
        Column("bioguide_id"),
        _CONGRESS,
        Column("party"),
        Column("state"),
        Column("position"),
        Column("vote_id"),
    ),
    AggregationPlan(
        ("position", "party", "state", "congress", "bioguide_id", "vote_id"),
        times=(("voted_at", "sorted_at"),),
    ),
    size="SELECT sum(recorded) FROM roll_call_votes",
    lookups=("bioguide_id", "vote_id"),
    newest=(("vote_id", _NEWEST_VOTE), ("bioguide_id", f"{_VOTER} = ({_NEWEST_VOTE}) LIMIT 1")),
    # Not those that are: the list of the others is short, and read once.
    where="vote_id NOT IN (SELECT id FROM roll_call_votes WHERE status <> 'active')",
    dated="substr(sorted_at, 1, 10)",
)
"""How each member voted in each roll call: counted, though listed only by member or by vote."""

RESOURCES = {one.name: one for one in (*(source.resource for source in SOURCES), MEMBER_VOTES)}
_ALIASES = {alias: source for source in SOURCES for alias in source.aliases}


def named(name: str) -> Source:
    """A source by its name or an alias; `-` and `_` are the same."""
    folded = name.strip().lower().replace("-", "_")
    found = BY_NAME.get(folded) or _ALIASES.get(folded)
    if found is None:
        raise UnknownSource(
            f"There is no source {name[:100]!r}", valid_sources=[one.name for one in SOURCES]
        )
    return found


def registry(name: str) -> Source:
    """A registry by its name; what is no registry does not fit the argument."""
    try:
        found = named(name)
        problem = f"{found.name} is searched with search, not by name"
    except UnknownSource as error:
        found, problem = None, error.message
    if found is None or found.shape is not Shape.REGISTRY:
        valid = ", ".join(one.path for one in of_shape(Shape.REGISTRY))
        told = {"field": "entity_type", "message": f"{problem}; one of {valid}"}
        raise InvalidArguments([told])
    return found


def resource(name: str) -> Resource:
    """What can be aggregated, by its name or an alias of its source."""
    folded = name.strip().lower().replace("-", "_")
    source = BY_NAME.get(folded) or _ALIASES.get(folded)
    found = RESOURCES.get(source.name if source else folded)
    if found is None:
        valid = ", ".join(one.path for one in RESOURCES.values())
        told = {"field": "resource", "message": f"there is no {name[:100]!r}; one of {valid}"}
        raise InvalidArguments([told])
    return found


def several(names: str | Sequence[str] | None) -> tuple[Source, ...]:
    """The sources meant by a list of names, or by names with commas between them."""
    if names is None:
        return ()
    written = names.split(",") if isinstance(names, str) else names
    meant = [named(name) for name in written if name.strip()]
    parts = [BY_NAME[part] for source in meant for part in source.holds]
    return tuple(dict.fromkeys((*meant, *parts)))


def of_shape(*shapes: Shape) -> tuple[Source, ...]:
    return tuple(source for source in SOURCES if source.shape in shapes)


def names_of(sources: Iterable[Source]) -> list[str]:
    return [source.name for source in sources]
