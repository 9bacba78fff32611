"""Resolves the values of filters, as people write them, to those that records have.

One mechanism for lists, counts, sums, series, names and searches: a value is taken by its id, its
name, its slug, its abbreviation or the words that a record prints. One that means nothing is
refused with the nearest values; it never becomes an answer of nothing.
"""

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from readingroom.bases.federal.filters import SqlFilter, build_sql_filter, raise_invalid_filter
from readingroom.bases.federal.names import people, resolver
from readingroom.bases.federal.names.agencies import list_initials, match_agency_values
from readingroom.bases.federal.names.scoring import find_sure_match
from readingroom.bases.federal.names.stored_values import (
    FacetValues,
    ValueLookup,
    choose_value_lookup,
    has_row,
)
from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.congress import get_congress_on
from readingroom.bases.federal.schema.ids import make_law_id, parse_federal_id
from readingroom.bases.federal.schema.sources import (
    SOURCES_BY_NAME,
    RecordTable,
    Source,
    list_sources_and_included,
)
from readingroom.core.clock import now
from readingroom.core.errors import UnrecognizedId
from readingroom.storage.database import Database

Scalar = str | int | bool | tuple[str, ...]

SOURCE_NAME_BY_REFERENCE_FILTER = {
    **dict.fromkeys(("bill", "bill_id"), "bills"),
    **dict.fromkeys(people.PERSON_FILTERS, "legislators"),
    **dict.fromkeys(("committee", "committee_id"), "committees"),
    **dict.fromkeys(("law", "law_id"), "public_laws"),
    "vote_id": "roll_call_votes",
}
"""Filters whose values are ids, each with the source of the records."""
_EQUIVALENT_WORDS_BY_FILTER = {
    "position": (
        {"Yea": ("yea", "aye", "yes", "for"), "Aye": ("yea", "aye", "yes", "for")}
        | {"Nay": ("nay", "no", "against"), "No": ("nay", "no", "against")}
        | {"Not Voting": ("not voting", "absent", "missed"), "Present": ("present",)}
    ),
}
"""By filter, values as they are stored, each with the words that mean it."""
# Filters by the name of a firm, which is printed in many ways: every match counts.
_FIRM_NAME_FILTERS = ("client", "registrant")
# How many different values are compared with one that is not stored as it was written.
_MAX_READ_VALUES = 50_000
_MAX_NEAREST_VALUES = 6
_LAW_NUMBER_PATTERN = re.compile(r"[1-9]\d{1,2}[-\u2013][1-9]\d{0,3}", re.ASCII)


def resolve_filters(db: Database, table: RecordTable, sql_filter: SqlFilter) -> SqlFilter:
    """Return the filter with every value as it is stored.

    Raise InvalidArguments, which lists the nearest values, for one that means nothing here.
    """
    written_filters = _replace_president_name(db, table, sql_filter.filters)
    resolved_filters = {
        filter_name: _resolve_value(db, table, filter_name, filter_value, written_filters)
        for filter_name, filter_value in written_filters.items()
    }
    if resolved_filters == dict(sql_filter.filters):
        return sql_filter
    return build_sql_filter(table, resolved_filters)


def _replace_president_name(
    db: Database, table: RecordTable, filters: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the filters with a full name as the president's number: surnames are shared."""
    written_words = set(fold.fold_name(str(filters.get("president") or ""))) - {"president"}
    if table.name != "saps" or not written_words:
        return filters
    name_words_by_number = read_president_name_words(db)
    # George W. Bush is not George H. W. Bush, whose name has all of these words too.
    matching_numbers = [
        president_number
        for president_number, name_words in name_words_by_number.items()
        if written_words == name_words - {str(president_number)}
    ] or [
        president_number
        for president_number, name_words in name_words_by_number.items()
        if written_words <= name_words
    ]
    if len(matching_numbers) != 1:
        return filters
    other_filters = {
        filter_name: filters[filter_name] for filter_name in filters if filter_name != "president"
    }
    return {**other_filters, "president_number": matching_numbers[0]}


def read_president_name_words(db: Database) -> dict[int, set[str]]:
    """Return the presidents of the loaded statements by number, each with the words of the name."""
    president_rows = db.execute(
        """SELECT president_number AS number, max(record ->> 'president_name') AS name,
                  max(president) AS surname FROM saps
           WHERE president_number IS NOT NULL GROUP BY president_number"""
    )
    return {
        president_row["number"]: {
            *fold.fold_name(president_row["name"] or president_row["surname"] or ""),
            str(president_row["number"]),
        }
        for president_row in president_rows
    }


def resolve_search_filters(
    db: Database,
    filters: Mapping[str, Any],
    searched_sources: str | Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return the filters of a search with each value as it is stored; raise InvalidArguments."""
    source_names = tuple(source.name for source in list_sources_and_included(searched_sources))
    return {
        filter_name: _resolve_search_value(db, filter_name, filter_value, filters, source_names)
        for filter_name, filter_value in filters.items()
    }


def find_reinterpreted_values(
    written_filters: Mapping[str, Any], resolved_filters: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the values that were read otherwise than they were written; None if there are none.

    Another case or punctuation is not told.
    """
    reinterpreted_values = {
        filter_name: list(resolved_value) if isinstance(resolved_value, tuple) else resolved_value
        for filter_name, resolved_value in resolved_filters.items()
        if isinstance(resolved_value, tuple)
        or _fold_value(str(resolved_value))
        != _fold_value(str(written_filters.get(filter_name, "")))
    }
    return reinterpreted_values or None


def _resolve_search_value(
    db: Database,
    filter_name: str,
    filter_value: Any,
    filters: Mapping[str, Any],
    source_names: tuple[str, ...],
) -> Any:
    if filter_name == "congress":
        _check_congress(filter_value)
    if not isinstance(filter_value, str):
        return filter_value
    facet_values = FacetValues(db, filter_name, source_names)
    if filter_name in SOURCE_NAME_BY_REFERENCE_FILTER:
        referenced_source = SOURCES_BY_NAME[SOURCE_NAME_BY_REFERENCE_FILTER[filter_name]]
        return _resolve_reference(
            db, facet_values, referenced_source, filter_name, filter_value, filters
        )
    if filter_name == "agency":
        return _resolve_agency_values(db, facet_values, filter_value)
    if facet_values.has_value(filter_value) or not facet_values.list_values(1):
        return filter_value
    return _simplify_values(
        _match_values(db, filter_name, filter_value, facet_values.list_values(_MAX_READ_VALUES))
    )


def _resolve_value(
    db: Database,
    table: RecordTable,
    filter_name: str,
    filter_value: Any,
    filters: Mapping[str, Any],
) -> Scalar:
    if filter_name == "congress":
        _check_congress(filter_value)
    if not isinstance(filter_value, str) or filter_name in ("since", "until"):
        unchanged_value: Scalar = filter_value
        return unchanged_value
    value_lookup = choose_value_lookup(db, table, filter_name)
    # What a record belongs to is of its own kind: a committee, a topic.
    referenced_source_name = (
        table.name
        if filter_name == "parent_id"
        else SOURCE_NAME_BY_REFERENCE_FILTER.get(filter_name)
    )
    if referenced_source_name:
        referenced_source = SOURCES_BY_NAME[referenced_source_name]
        return _resolve_reference(
            db, value_lookup, referenced_source, filter_name, filter_value, filters
        )
    if equivalent_values := _find_equivalent_values(filter_name, filter_value):
        return equivalent_values
    if filter_name == "agency":
        return _resolve_agency_values(db, value_lookup, filter_value)
    if value_lookup.has_value(filter_value) or not value_lookup.list_values(1):
        return filter_value  # also where nothing is loaded that could tell a wrong value
    return _simplify_values(
        _match_values(db, filter_name, filter_value, value_lookup.list_values(_MAX_READ_VALUES))
    )


def _simplify_values(matching_values: tuple[str, ...]) -> Scalar:
    return matching_values if len(matching_values) > 1 else matching_values[0]


def _check_congress(congress: Any) -> None:
    newest_congress = get_congress_on(now().isoformat()) + 1
    if isinstance(congress, int) and not 1 <= congress <= newest_congress:
        raise_invalid_filter(
            "congress", f"there is no {congress}th Congress; from 1 to {newest_congress}"
        )


def _find_equivalent_values(filter_name: str, filter_value: str) -> tuple[str, ...]:
    folded_value = " ".join(fold.fold_all_words(filter_value))
    return tuple(
        stored_value
        for stored_value, equivalent_words in _EQUIVALENT_WORDS_BY_FILTER.get(
            filter_name, {}
        ).items()
        if folded_value in equivalent_words
    )


# --- ids and names of records ---


def _resolve_reference(
    db: Database,
    value_lookup: ValueLookup,
    referenced_source: Source,
    filter_name: str,
    written_value: str,
    filters: Mapping[str, Any],
) -> str:
    """Return the id that a filter's value means: an id in any spelling, or a name.

    Raise InvalidArguments for an id of another source, and for one that is neither loaded nor named
    by the records that are filtered.
    """
    congress = filters.get("congress")
    if referenced_source.name == "public_laws" and _LAW_NUMBER_PATTERN.fullmatch(written_value):
        written_value = make_law_id(written_value)  # alone it would be a Register document
    try:
        parsed_id = parse_federal_id(written_value, congress if isinstance(congress, int) else None)
    except UnrecognizedId:
        if referenced_source.name == "legislators":
            return people.resolve_person(db, value_lookup, filter_name, written_value)
        return _get_id_by_name(db, referenced_source, filter_name, written_value)
    if parsed_id.source != referenced_source.name:
        if referenced_source.name == "legislators" and people.find_namesakes(db, written_value):
            # A surname of four letters looks like the id of a committee: Hill, Soto.
            return people.resolve_person(db, value_lookup, filter_name, written_value)
        problem_text = (
            f"{parsed_id.id} is an id of {parsed_id.source}, not of {referenced_source.name}"
        )
        raise_invalid_filter(
            filter_name,
            f"{problem_text}; an id such as `{_EXAMPLE_ID_BY_SOURCE[referenced_source.name]}`",
        )
    is_record_loaded = has_row(
        db, f"SELECT 1 FROM {referenced_source.name} WHERE id = ?", parsed_id.id
    )
    if is_record_loaded or value_lookup.has_value(parsed_id.id):
        return parsed_id.id
    nearest_ids = _list_neighbouring_ids(db, referenced_source, parsed_id.id)
    nearest_ids = nearest_ids or value_lookup.list_values(_MAX_NEAREST_VALUES)
    if nearest_ids:  # else nothing is loaded that could tell a wrong id
        raise_invalid_filter(
            filter_name,
            f"{parsed_id.id} is not loaded here, and nothing that is loaded names it; the nearest "
            f"of {referenced_source.name}: {', '.join(nearest_ids)}; "
            "`resolve_entity` finds ids by name",
        )
    return parsed_id.id


def _list_neighbouring_ids(db: Database, source: Source, record_id: str) -> list[str]:
    """Return the loaded ids of a source that stand around one in their order."""
    max_ids_per_side = _MAX_NEAREST_VALUES // 2
    id_rows_before = db.execute(
        f"SELECT id FROM {source.name} WHERE id < ? ORDER BY id DESC LIMIT ?",
        (record_id, max_ids_per_side),
    )
    id_rows_after = db.execute(
        f"SELECT id FROM {source.name} WHERE id > ? ORDER BY id LIMIT ?",
        (record_id, max_ids_per_side),
    )
    return sorted(id_row["id"] for id_rows in (id_rows_before, id_rows_after) for id_row in id_rows)


def _get_id_by_name(db: Database, source: Source, filter_name: str, record_name: str) -> str:
    entity_matches = resolver.resolve_name(
        db, source, record_name, build_sql_filter(source.record_table, {})
    )
    if sure_match := find_sure_match(entity_matches):
        return sure_match.id
    nearest_names_text = ", ".join(
        f"{entity_match.id} ({entity_match.record['title']})" for entity_match in entity_matches[:4]
    )
    raise_invalid_filter(
        filter_name,
        f"{record_name!r} may be several: {nearest_names_text}; say its id"
        if nearest_names_text
        else f"{record_name!r} is no id "
        f"and no name of {source.slug} here; an id such as `{_EXAMPLE_ID_BY_SOURCE[source.name]}`",
    )


_EXAMPLE_ID_BY_SOURCE = {
    "bills": "hr:119:1",
    "committees": "HSAG",
    "legislators": people.EXAMPLE_PERSON_ID,
    "public_laws": "pl:117-103",
    "roll_call_votes": "house:118:1:37",
    "topic_taxonomy": "topic:taxation",
}


# --- agencies ---


def _resolve_agency_values(db: Database, value_lookup: ValueLookup, written_name: str) -> Scalar:
    """Return the values under which records of an agency are stored: its slugs, names or code.

    Raise InvalidArguments, which lists the nearest, for a text that means no agency. One that is
    registered and has no record here keeps its slug: that there is none is a true answer.
    """
    all_stored_values = value_lookup.list_values(_MAX_READ_VALUES)
    if not all_stored_values:
        return written_name  # nothing is loaded that could tell a wrong value
    written_name = written_name.removeprefix("agency:")
    matching_values = match_agency_values([written_name], all_stored_values)
    if not matching_values:
        agency_source = SOURCES_BY_NAME["agencies"]
        sure_match = find_sure_match(
            resolver.resolve_name(
                db, agency_source, written_name, build_sql_filter(agency_source.record_table, {})
            )
        )
        if sure_match is None:
            matching_values = _match_values(db, "agency", written_name, all_stored_values)
        else:
            agency_fields = sure_match.record
            matching_values = match_agency_values(
                [*agency_fields["names"], *agency_fields["abbreviations"]], all_stored_values
            ) or (agency_fields["slug"],)
    # Names and slugs of agencies are both facets; lists and groups go by the slug.
    agency_slugs = tuple(stored_value for stored_value in matching_values if stored_value.islower())
    return _simplify_values(agency_slugs or matching_values)


# --- words ---


def _match_values(
    db: Database, filter_name: str, written_value: str, stored_values: Sequence[str]
) -> tuple[str, ...]:
    """Return the stored values that a text means; raise InvalidArguments if there is none."""
    expanded_value = _expand_alias(db, filter_name, written_value)
    folded_value = _fold_value(expanded_value)
    if equal_values := tuple(
        stored_value for stored_value in stored_values if _fold_value(stored_value) == folded_value
    ):
        return equal_values
    containing_values = _find_containing_values(expanded_value, stored_values)
    is_one_distinct_value = (
        len({_fold_value(stored_value) for stored_value in containing_values}) == 1
    )
    if containing_values and (is_one_distinct_value or filter_name in _FIRM_NAME_FILTERS):
        return tuple(containing_values)
    nearest_values_text = ", ".join(
        _list_nearest_values(expanded_value, stored_values, containing_values)
    )
    raise_invalid_filter(
        filter_name, f"nothing here has {written_value!r}; the nearest: {nearest_values_text}"
    )


def _expand_alias(db: Database, filter_name: str, written_value: str) -> str:
    """Return the words for an id or a code: the name of a topic, the type behind `PRORULE`."""
    if filter_name in ("topic", "policy_area") and written_value.lower().startswith("topic:"):
        row = db.execute(
            "SELECT record ->> 'name' AS name FROM topic_taxonomy WHERE id = ?",
            (written_value.lower(),),
        ).fetchone()
        return str(row["name"]) if row else written_value
    if filter_name == "issue":
        row = db.execute(
            f"""SELECT item.value ->> 'issue_code' AS code FROM lda_filings r,
                       {db.dialect.build_field_objects_sql("r.record", "activities")} item
                WHERE item.value ->> 'issue' = ? {db.dialect.any_case_sql} LIMIT 1""",
            (written_value,),
        ).fetchone()
        return str(row["code"]) if row else written_value
    value_by_alias = fold.load_vocabulary().value_aliases_by_filter.get(filter_name, {})
    return value_by_alias.get("".join(fold.fold_all_words(written_value)), written_value)


def _fold_value(filter_value: str) -> str:
    """Return a value without case, accents and punctuation; `&` and `and` are the same."""
    return "".join(word for word in fold.fold_all_words(filter_value) if word != "and")


def _find_containing_values(written_value: str, stored_values: Iterable[str]) -> list[str]:
    """Return the values that have all words of a text, or whose words are all in it."""
    written_words = set(fold.fold_name(written_value))
    weak_words = fold.load_vocabulary().weak_words
    containing_values = []
    for stored_value in stored_values:
        value_words = set(fold.fold_name(stored_value))
        if written_words <= value_words or (
            value_words <= written_words and value_words - weak_words
        ):
            containing_values.append(stored_value)
    return containing_values


def _list_nearest_values(
    written_value: str, stored_values: Sequence[str], containing_values: Sequence[str]
) -> list[str]:
    """Return the values nearest to a text, each in one spelling."""
    if len(stored_values) <= _MAX_NEAREST_VALUES:
        return list(stored_values)
    written_trigrams = set(fold.list_trigrams(_fold_value(written_value)))

    def make_nearness_sort_key(stored_value: str) -> tuple[bool, float]:
        value_trigrams = set(fold.list_trigrams(_fold_value(stored_value)))
        possible_initials = list_initials(stored_value)
        initial_trigrams = set(chain.from_iterable(map(fold.list_trigrams, possible_initials)))
        closest_trigrams = max(
            value_trigrams,
            initial_trigrams,
            key=lambda some_trigrams: (
                len(written_trigrams & some_trigrams) / (len(some_trigrams) or 1)
            ),
        )
        shared_count = len(written_trigrams & closest_trigrams)
        return stored_value in containing_values, shared_count / (
            len(written_trigrams) + len(closest_trigrams)
        )

    # Of a name and its slug, the name is shown.
    value_by_folded_value = {
        _fold_value(stored_value): stored_value
        for stored_value in sorted(stored_values, key=str.islower, reverse=True)
    }
    return heapq.nlargest(
        _MAX_NEAREST_VALUES, value_by_folded_value.values(), key=make_nearness_sort_key
    )
