"""Descriptions of tools that depend on what is loaded, written for a model that chooses."""

from collections.abc import Callable, Iterable, Sequence

from readingroom.bases.federal.schema.sources import RecordTable, Shape, Source, list_source_names

FieldNameLister = Callable[[RecordTable], Iterable[str]]

_REGISTRIES_SENTENCE = (
    "Registries (people, offices, committees, topics) hold names: use `resolve_entity`."
)


def describe_search_tool(record_sources: tuple[Source, ...]) -> str:
    return (
        "Search federal records when you have a topic and no id: what the government, Congress and "
        "its agencies are doing or have done, said or published about a subject, bills, rules, "
        "hearings and reports on it, recently or since a year, by words and meaning at once. Each "
        "result has an id, a title, a url, a passage and a citation. To open one use `fetch`. With "
        "the number of a bill use `get_bill`, with a bioguide id `get_legislator`. Sources: "
        f"{_join_source_names(record_sources, Shape.BODY, Shape.SHORT)}. {_REGISTRIES_SENTENCE}"
    )


def describe_lexical_search_tool(record_sources: tuple[Source, ...]) -> str:
    return (
        "Search federal documents for exact words: which bills, statutes, notices, reports, "
        "statements or speeches contain, cite, mention or use this very word, term or phrase in "
        "quotes, literally? Matches words as they are written and nothing that only means the "
        "same, best match first (BM25). Pick it when the wording matters: names of acts, rare "
        "terms. For the same thing in other words use `semantic_search`. Sources: "
        f"{_join_source_names(record_sources, Shape.BODY, Shape.SHORT)}. {_REGISTRIES_SENTENCE}"
    )


def describe_semantic_search_tool(record_sources: tuple[Source, ...]) -> str:
    return (
        "Search federal documents for a meaning, however it is worded: which bills, proposals, "
        "rules, reports or speeches are about this idea, theme or concern, similar in spirit or "
        "conceptually close to another, getting at the same thing in different words, even if it "
        "is not called that? Pick it when authors phrase it in many ways and no particular "
        "terminology can be relied on. Filters apply before scoring. For exact words use "
        f"`lexical_search`. Sources: {_join_source_names(record_sources, Shape.BODY)}. "
        f"{_REGISTRIES_SENTENCE}"
    )


def _join_source_names(record_sources: tuple[Source, ...], *accepted_shapes: Shape) -> str:
    return ", ".join(
        list_source_names(
            record_source
            for record_source in record_sources
            if record_source.shape in accepted_shapes
        )
    )


def describe_count_tool(record_tables: tuple[RecordTable, ...]) -> str:
    return (
        "Count federal records: how many there are, how often something happened, or the number in "
        "each group, the largest first: how many bills were introduced, by party or policy area, "
        "laws enacted, which agencies publish the most rules, who sponsored the most, hearings "
        "each committee held, how the parties split on a vote, who lobbied on a bill. Pick it for "
        "how many and which most. For amounts of money use `sum`. For how a number changed over "
        "time use `time_series`. Fields for group_by, by resource: "
        f"{_describe_fields(record_tables, _list_group_field_names)}. "
        "Filters are these fields, since and until."
    )


def describe_sum_tool(record_tables: tuple[RecordTable, ...]) -> str:
    return (
        "Add up money or another number of federal records exactly, in total or for each group, "
        "the largest first: how much (in dollars) a company or client spent or paid on lobbying, "
        "the biggest spenders of a year, the income that lobbying firms and registrants earned, "
        "all expenses reported; yea votes cast. Pick it for amounts and totals. For how many "
        "records there are use `count`. Fields for sum_field, by resource: "
        f"{_describe_fields(record_tables, _list_sum_field_names)}. "
        "Fields for group_by, by resource: "
        f"{_describe_fields(_select_summable_tables(record_tables), _list_group_field_names)}."
    )


def describe_time_series_tool(record_tables: tuple[RecordTable, ...]) -> str:
    return (
        "Count federal records over time, per day, week, month, quarter or year, without gaps: the "
        "trend. Has it increased, how did it develop, are there more or fewer each year, up or "
        "down, slower or faster, quarter by quarter? Gives weekly, monthly or yearly numbers to "
        "plot, chart or graph; with sum_field, amounts, such as lobbying spend; with group_by, one "
        "series for each group. Pick it when the question asks how a number changed. For one "
        "number use `count`. Fields for time_field: "
        f"{_describe_time_fields(record_tables)}. "
        "Fields for sum_field: "
        f"{_describe_fields(_select_summable_tables(record_tables), _list_sum_field_names)}. "
        "Those for group_by are as in `count`."
    )


def collect_aggregate_choices(
    record_tables: tuple[RecordTable, ...], argument_names: Sequence[str]
) -> dict[str, list[str]]:
    """Return the values that arguments of an aggregate may have, over all tables."""
    if "sum_field" in argument_names and "time_field" not in argument_names:
        record_tables = _select_summable_tables(record_tables)
    choices_by_argument = {
        "resource": [record_table.slug for record_table in record_tables],
        "group_by": _list_distinct_field_names(record_tables, _list_group_field_names),
        "sum_field": _list_distinct_field_names(record_tables, _list_sum_field_names),
        "time_field": _list_distinct_field_names(record_tables, _list_time_field_names),
    }
    return {argument_name: choices_by_argument[argument_name] for argument_name in argument_names}


def _list_distinct_field_names(
    record_tables: Iterable[RecordTable], list_field_names: FieldNameLister
) -> list[str]:
    return sorted(
        {
            field_name
            for record_table in record_tables
            for field_name in list_field_names(record_table)
        }
    )


def _select_summable_tables(record_tables: tuple[RecordTable, ...]) -> tuple[RecordTable, ...]:
    return tuple(
        record_table for record_table in record_tables if record_table.aggregation_plan.measures
    )


def _list_group_field_names(record_table: RecordTable) -> Iterable[str]:
    return record_table.aggregation_plan.group_names


def _list_sum_field_names(record_table: RecordTable) -> Iterable[str]:
    return (sum_measure.name for sum_measure in record_table.aggregation_plan.measures)


def _list_time_field_names(record_table: RecordTable) -> Iterable[str]:
    return dict(record_table.aggregation_plan.date_names_and_columns)


def _describe_time_fields(record_tables: tuple[RecordTable, ...]) -> str:
    """List the dates of each table; most have `published_at` alone, which is said once."""
    tables_with_own_times = tuple(
        record_table
        for record_table in record_tables
        if list(_list_time_field_names(record_table)) != ["published_at"]
    )
    return f"published_at, but of {_describe_fields(tables_with_own_times, _list_time_field_names)}"


def _describe_fields(
    record_tables: tuple[RecordTable, ...], list_field_names: FieldNameLister
) -> str:
    """List the fields of each table that has any."""
    slugs_and_field_names = (
        (record_table.slug, ", ".join(list_field_names(record_table)))
        for record_table in record_tables
    )
    return "; ".join(
        f"{table_slug}: {field_names_text}"
        for table_slug, field_names_text in slugs_and_field_names
        if field_names_text
    )
