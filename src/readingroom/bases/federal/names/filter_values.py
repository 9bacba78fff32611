"""Resolves the values of filters, as people write them, to those that records have.

One mechanism for lists, counts, sums, series, names and searches: a value is taken by its id, its
name, its slug, its abbreviation or the words that a record prints. One that means nothing is
refused with the nearest values; it never becomes an answer of nothing.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from readingroom.bases.federal.filters import RowFilter, build_row_filter
from readingroom.bases.federal.names import resolver
from readingroom.bases.federal.names.agencies import (
    fold_agency,
    list_initials,
    match_abbreviation,
)
from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.congress import get_congress_on
from readingroom.bases.federal.schema.ids import parse_federal_id
from readingroom.bases.federal.schema.sources import BY_NAME, Facet, RecordTable, Source
from readingroom.core.clock import now
from readingroom.core.errors import InvalidArguments, UnrecognizedId
from readingroom.storage.database import Database

FilterValue = str | int | bool | tuple[str, ...]

REFERENCES = {
    **dict.fromkeys(("bill", "bill_id"), "bills"),
    **dict.fromkeys(("bioguide_id", "cosponsor", "member", "speaker", "sponsor"), "legislators"),
    **dict.fromkeys(("committee", "committee_id"), "committees"),
    **dict.fromkeys(("law", "law_id"), "public_laws"),
    "vote_id": "roll_call_votes",
}
"""Filters whose values are ids, each with the source of the records."""
_EQUIVALENTS = {
    "position": (
        {"Yea": ("yea", "aye", "yes", "for"), "Aye": ("yea", "aye", "yes", "for")}
        | {"Nay": ("nay", "no", "against"), "No": ("nay", "no", "against")}
        | {"Not Voting": ("not voting", "absent", "missed"), "Present": ("present",)}
    ),
}
"""By filter, values as they are stored, each with the words that mean it."""
_ORGANIZATIONS = ("client", "registrant")
"""Filters by the name of a firm, which is printed in many ways: every match counts."""
_MAX_VALUES = 50_000
"""How many different values are compared with one that is not stored as it was written."""
_MAX_NEAREST = 6
_SURE_SCORE, _SCORE_GAP = 0.8, 0.04
"""A name is taken for one record if that scores at least this, and the next is so far behind."""


def resolve_filters(db: Database, table: RecordTable, row_filter: RowFilter) -> RowFilter:
    """Return the filter with every value as it is stored.

    Raise InvalidArguments, which lists the nearest values, for one that means nothing here.
    """
    written = _name_one_president(db, table, row_filter.filters)
    resolved = {
        name: _resolve_value(db, table, name, value, written) for name, value in written.items()
    }
    if resolved == dict(row_filter.filters):
        return row_filter
    return build_row_filter(table, resolved)


def _name_one_president(
    db: Database, table: RecordTable, filters: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the filters with a full name as the president's number: surnames are shared."""
    said = set(fold.words(str(filters.get("president") or ""))) - {"president"}
    if table.name != "saps" or not said:
        return filters
    presidents = list_presidents(db)
    # George W. Bush is not George H. W. Bush, whose name has all of these words too.
    meant = [number for number, words in presidents.items() if said == words - {str(number)}]
    meant = meant or [number for number, words in presidents.items() if said <= words]
    if len(meant) != 1:
        return filters
    others = {name: value for name, value in filters.items() if name != "president"}
    return {**others, "president_number": meant[0]}


def list_presidents(db: Database) -> dict[int, set[str]]:
    """Return the presidents of the loaded statements by number, each with the words of the name."""
    rows = db.execute(
        """SELECT president_number AS number, max(record ->> 'president_name') AS name,
                  max(president) AS surname FROM saps
           WHERE president_number IS NOT NULL GROUP BY president_number"""
    )
    return {
        row["number"]: {*fold.words(row["name"] or row["surname"] or ""), str(row["number"])}
        for row in rows
    }


def resolve_search_filters(db: Database, filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the filters of a search with each value as it is stored; raise InvalidArguments."""
    return {
        name: _resolve_search_value(db, name, value, filters) for name, value in filters.items()
    }


def describe_reading(
    written: Mapping[str, Any], resolved: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the values that were read otherwise than they were written; None if there are none.

    Another case or punctuation is not told.
    """
    changed = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in resolved.items()
        if isinstance(value, tuple)
        or _fold_value(str(value)) != _fold_value(str(written.get(name, "")))
    }
    return changed or None


def describe_missing_numbers(
    db: Database, table: RecordTable, filters: Mapping[str, Any]
) -> str | None:
    """Return which number of a filter no loaded record has, and which there are; None if each has.

    A Congress or a year of which nothing is loaded means something, so it is told and not refused.
    """
    numeric = {column.name for column in table.filters if column.kind == "INTEGER"}
    for name, value in filters.items():
        stored = _ColumnValues(db, table, name)
        if name not in numeric or stored.has(value):
            continue
        nearest = sorted(stored.list_some(_MAX_VALUES), key=lambda number: abs(number - value))
        shown = ", ".join(str(number) for number in sorted(nearest[:_MAX_NEAREST]))
        loaded = f"the nearest that are: {shown}" if shown else "none has any"
        return f"No record of {table.path} with {name} {value} is loaded here; {loaded}."
    return None


def _resolve_search_value(db: Database, name: str, value: Any, filters: Mapping[str, Any]) -> Any:
    if name == "congress":
        _check_congress(value)
    if not isinstance(value, str):
        return value
    stored = _FacetValues(db, name)
    if name in REFERENCES:
        return _resolve_reference(db, stored, name, value, filters)
    if stored.has(value) or not stored.list_some(1):
        return value
    return _match_text(db, name, value, stored.list_some(_MAX_VALUES))[0]


def _resolve_value(
    db: Database, table: RecordTable, name: str, value: Any, filters: Mapping[str, Any]
) -> FilterValue:
    if name == "congress":
        _check_congress(value)
    if not isinstance(value, str) or name in ("since", "until"):
        unchanged: FilterValue = value
        return unchanged
    facet = next((facet for facet in table.plan.facets if facet.name == name), None)
    stored = _choose_values(db, table, name, facet)
    if name in REFERENCES:
        return _resolve_reference(db, stored, name, value, filters)
    if equivalents := _find_equivalents(name, value):
        return equivalents
    # Names and slugs of agencies are both facets; lists and groups go by the slug.
    goes_by_slug = facet is not None and name == "agency"
    is_stored = stored.has(value) and not (goes_by_slug and value != value.lower())
    if is_stored or not stored.list_some(1):
        return value  # also where nothing is loaded that could tell a wrong value
    matches = _match_text(db, name, value, stored.list_some(_MAX_VALUES))
    if goes_by_slug:
        matches = tuple(match for match in matches if match == match.lower()) or matches
    return matches if len(matches) > 1 else matches[0]


def _check_congress(congress: Any) -> None:
    newest = get_congress_on(now().isoformat()) + 1
    if isinstance(congress, int) and not 1 <= congress <= newest:
        _refuse("congress", f"there is no {congress}th Congress; from 1 to {newest}")


def _find_equivalents(name: str, value: str) -> tuple[str, ...]:
    said = " ".join(fold.fold_all_words(value))
    return tuple(stored for stored, words in _EQUIVALENTS.get(name, {}).items() if said in words)


# --- the values that are stored ---


@dataclass(frozen=True)
class _ColumnValues:
    """The values of a column of a table."""

    db: Database
    table: RecordTable
    column: str

    def has(self, value: str | int) -> bool:
        return _has_row(
            self.db, f"SELECT 1 FROM {self.table.name} WHERE {self.column} = ? LIMIT 1", value
        )

    def list_some(self, limit: int) -> list[Any]:
        name, column = self.table.name, self.column
        if column not in self.table.lookups:
            sql = f"SELECT DISTINCT {column} FROM {name} WHERE {column} IS NOT NULL LIMIT ?"
            return [row[0] for row in self.db.execute(sql, (limit,))]
        # From each value to the next by the column's index: rows with equal values are not read.
        rows = self.db.execute(
            f"""WITH RECURSIVE stored (value) AS (
                    SELECT min({column}) FROM {name}
                    UNION ALL
                    SELECT (SELECT min({column}) FROM {name} WHERE {column} > value)
                    FROM stored WHERE value IS NOT NULL)
                SELECT value FROM stored WHERE value IS NOT NULL LIMIT ?""",
            (limit,),
        )
        return [row["value"] for row in rows]


@dataclass(frozen=True)
class _FacetValues:
    """The values of a facet that searches filter by, of any source."""

    db: Database
    field: str

    def has(self, value: str) -> bool:
        return _has_row(
            self.db,
            f"SELECT 1 FROM facets WHERE field = '{self.field}' AND value = ? LIMIT 1",
            value,
        )

    def list_some(self, limit: int) -> list[str]:
        rows = self.db.execute(
            """WITH RECURSIVE stored (value) AS (
                   SELECT min(value) FROM facets WHERE field = ?1
                   UNION ALL
                   SELECT (SELECT min(f.value) FROM facets f
                           WHERE f.field = ?1 AND f.value > stored.value)
                   FROM stored WHERE value IS NOT NULL)
               SELECT value FROM stored WHERE value IS NOT NULL LIMIT ?2""",
            (self.field, limit),
        )
        return [row["value"] for row in rows]


@dataclass(frozen=True)
class _ItemValues:
    """The values of a facet that is read from the records themselves."""

    db: Database
    facet: Facet

    def has(self, value: str) -> bool:
        return _has_row(
            self.db, f"SELECT 1 FROM ({self.facet.rows}) WHERE value = ? LIMIT 1", value
        )

    def list_some(self, limit: int) -> list[str]:
        rows = self.db.execute(
            f"SELECT DISTINCT value FROM ({self.facet.rows}) WHERE value IS NOT NULL LIMIT ?",
            (limit,),
        )
        return [row["value"] for row in rows]


_StoredValues = _ColumnValues | _FacetValues | _ItemValues


def _choose_values(
    db: Database, table: RecordTable, name: str, facet: Facet | None
) -> _StoredValues:
    if facet is None:
        return _ColumnValues(db, table, name)
    return _FacetValues(db, name) if name in ("agency", "topic") else _ItemValues(db, facet)


def _has_row(db: Database, sql: str, value: str | int) -> bool:
    return db.execute(sql, (value,)).fetchone() is not None


# --- ids and names of records ---


def _resolve_reference(
    db: Database, stored: _StoredValues, name: str, text: str, filters: Mapping[str, Any]
) -> str:
    """Return the id that a filter's value means: an id in any spelling, or a name.

    Raise InvalidArguments for an id of another source, and for one that is neither loaded nor named
    by the records that are filtered.
    """
    source = BY_NAME[REFERENCES[name]]
    congress = filters.get("congress")
    try:
        parsed = parse_federal_id(text, congress if isinstance(congress, int) else None)
    except UnrecognizedId:
        return _find_named(db, source, name, text)
    if parsed.source != source.name:
        problem = f"{parsed.id} is an id of {parsed.source}, not of {source.name}"
        _refuse(name, f"{problem}; an id such as `{_EXAMPLES[source.name]}`")
    is_loaded = _has_row(db, f"SELECT 1 FROM {source.name} WHERE id = ?", parsed.id)
    if is_loaded or stored.has(parsed.id):
        return parsed.id
    nearest = _list_neighbouring_ids(db, source, parsed.id) or stored.list_some(_MAX_NEAREST)
    if nearest:  # else nothing is loaded that could tell a wrong id
        _refuse(
            name,
            f"{parsed.id} is not loaded here, and nothing that is loaded names it; the nearest of "
            f"{source.name}: {', '.join(nearest)}; `resolve_entity` finds ids by name",
        )
    return parsed.id


def _list_neighbouring_ids(db: Database, source: Source, id: str) -> list[str]:
    """Return the loaded ids of a source that stand around one in their order."""
    each_side = _MAX_NEAREST // 2
    before = db.execute(
        f"SELECT id FROM {source.name} WHERE id < ? ORDER BY id DESC LIMIT ?", (id, each_side)
    )
    after = db.execute(
        f"SELECT id FROM {source.name} WHERE id > ? ORDER BY id LIMIT ?", (id, each_side)
    )
    return sorted(row["id"] for rows in (before, after) for row in rows)


def _find_named(db: Database, source: Source, name: str, text: str) -> str:
    everything = build_row_filter(source.table, {})
    matches = resolver.resolve(db, source, text, everything)
    likely = [match for match in matches if match.score >= _SURE_SCORE]
    if likely and (
        len(likely) == 1
        or likely[0].score - likely[1].score >= _SCORE_GAP
        or _is_only_current(likely)
    ):
        return likely[0].id
    nearest = ", ".join(f"{match.id} ({match.record['title']})" for match in matches[:4])
    _refuse(
        name,
        f"{text!r} may be several: {nearest}; say its id"
        if nearest
        else f"{text!r} is no id "
        f"and no name of {source.path} here; an id such as `{_EXAMPLES[source.name]}`",
    )


_EXAMPLES = {
    "bills": "hr:119:1",
    "committees": "HSAG",
    "legislators": "S000033",
    "public_laws": "pl:117-103",
    "roll_call_votes": "house:118:1:37",
}


def _is_only_current(likely: Sequence[resolver.EntityMatch]) -> bool:
    """Return whether the first alone sits now, of those who score as well."""
    return bool(likely[0].record.get("current")) and not any(
        match.record.get("current")
        for match in likely[1:]
        if likely[0].score - match.score < _SCORE_GAP
    )


# --- words ---


def _match_text(db: Database, name: str, text: str, stored: Sequence[str]) -> tuple[str, ...]:
    """Return the stored values that a text means; raise InvalidArguments if there is none."""
    meant = _expand_alias(db, name, text)
    fold_value = fold_agency if name == "agency" else _fold_value
    folded = fold_value(meant)
    if equal := tuple(value for value in stored if fold_value(value) == folded):
        return equal
    if name == "agency" and (matching := match_abbreviation(meant, stored)):
        return matching
    containing = _find_containing(meant, stored)
    is_one_value = len({fold_value(value) for value in containing}) == 1
    if containing and (is_one_value or name in _ORGANIZATIONS):
        return tuple(containing)
    nearest = ", ".join(_list_nearest(meant, stored, containing))
    _refuse(name, f"nothing here has {text!r}; the nearest: {nearest}")


def _expand_alias(db: Database, name: str, text: str) -> str:
    """Return the words for an id or a code: the name of a topic, the type behind `PRORULE`."""
    if name in ("topic", "policy_area") and text.lower().startswith("topic:"):
        row = db.execute(
            "SELECT record ->> 'name' AS name FROM topic_taxonomy WHERE id = ?", (text.lower(),)
        ).fetchone()
        return str(row["name"]) if row else text
    if name == "issue":
        row = db.execute(
            f"""SELECT item.value ->> 'issue_code' AS code FROM lda_filings r,
                       {db.dialect.list_field_items("r.record", "activities")} item
                WHERE item.value ->> 'issue' = ? {db.dialect.any_case} LIMIT 1""",
            (text,),
        ).fetchone()
        return str(row["code"]) if row else text
    aliases = fold.load_vocabulary().value_aliases.get(name, {})
    return aliases.get("".join(fold.fold_all_words(text)), text)


def _fold_value(text: str) -> str:
    """Return a value without case, accents and punctuation; `&` and `and` are the same."""
    return "".join(word for word in fold.fold_all_words(text) if word != "and")


def _find_containing(text: str, stored: Iterable[str]) -> list[str]:
    """Return the values that have all words of a text, or whose words are all in it."""
    said = set(fold.words(text))
    weak = fold.load_vocabulary().weak
    containing = []
    for value in stored:
        words = set(fold.words(value))
        if said <= words or (words <= said and words - weak):
            containing.append(value)
    return containing


def _list_nearest(text: str, stored: Sequence[str], containing: Sequence[str]) -> list[str]:
    """Return the values nearest to a text, each in one spelling."""
    if len(stored) <= _MAX_NEAREST:
        return list(stored)
    pieces = set(fold.trigrams(_fold_value(text)))

    def count_shared(value: str) -> tuple[bool, float]:
        own = set(fold.trigrams(_fold_value(value)))
        letters = {piece for initials in list_initials(value) for piece in fold.trigrams(initials)}
        closest = max(own, letters, key=lambda each: len(pieces & each) / (len(each) or 1))
        return value in containing, len(pieces & closest) / (len(pieces) + len(closest))

    # Of a name and its slug, the name is shown.
    by_fold = {_fold_value(value): value for value in sorted(stored, key=str.islower, reverse=True)}
    return heapq.nlargest(_MAX_NEAREST, by_fold.values(), key=count_shared)


def _refuse(name: str, problem: str) -> NoReturn:
    raise InvalidArguments([{"field": f"filters.{name}", "message": problem}])
