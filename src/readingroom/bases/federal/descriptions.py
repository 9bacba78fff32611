"""Descriptions of tools that depend on what is loaded, written for a model that chooses."""

from collections.abc import Callable, Iterable, Sequence

from readingroom.bases.federal.schema.sources import Resource, Shape, Source, source_names

FieldsOf = Callable[[Resource], Iterable[str]]

_REGISTRIES = (
    "Registries (people, offices, committees, topics) are out of scope here: they hold names, not "
    "texts; `resolve_entity` looks names up."
)


def search(sources: tuple[Source, ...]) -> str:
    return (
        "Search federal records when you have a topic and no id: what the government, Congress and "
        "its agencies are doing or have done, said or published about a subject, bills, rules, "
        "hearings and reports on it, recently or since a year, by words and meaning at once. Each "
        "result has an id, a title, a url, a passage and a citation. To open one use `fetch`. With "
        "the number of a bill use `get_bill`, with a bioguide id `get_legislator`. Sources: "
        f"{_list_names(sources, Shape.BODY, Shape.SHORT)}. {_REGISTRIES}"
    )


def lexical_search(sources: tuple[Source, ...]) -> str:
    return (
        "Search federal documents for exact words: which bills, statutes, notices, reports, "
        "statements or speeches contain, cite, mention or use this very word, term or phrase in "
        "quotes, literally? Matches words as they are written and nothing that only means the "
        "same, best match first (BM25). Pick it when the wording matters: names of acts, rare "
        "terms. For the same thing in other words use `semantic_search`. Sources: "
        f"{_list_names(sources, Shape.BODY, Shape.SHORT)}. {_REGISTRIES}"
    )


def semantic_search(sources: tuple[Source, ...]) -> str:
    return (
        "Search federal documents for a meaning, however it is worded: which bills, proposals, "
        "rules, reports or speeches are about this idea, theme or concern, similar in spirit or "
        "conceptually close to another, getting at the same thing in different words, even if it "
        "is not called that? Pick it when authors phrase it in many ways and no particular "
        "terminology can be relied on. Filters apply before scoring. For exact words use "
        f"`lexical_search`. Sources: {_list_names(sources, Shape.BODY)}. {_REGISTRIES}"
    )


def _list_names(sources: tuple[Source, ...], *shapes: Shape) -> str:
    return ", ".join(source_names(source for source in sources if source.shape in shapes))


def count(resources: tuple[Resource, ...]) -> str:
    return (
        "Count federal records: how many there are, how often something happened, or the number in "
        "each group, the largest first: bills by party or policy area, laws enacted, which "
        "agencies publish the most rules, who sponsored the most bills, how many hearings each "
        "committee held, how many members are Republicans. Pick it for how many and which most; it "
        "does not list the records. For amounts of money use `sum`. For how a number changed over "
        f"time use `time_series`. Fields for group_by, by resource: {_fields(resources, _groups)}. "
        "Filters are these fields, since and until."
    )


def sum(resources: tuple[Resource, ...]) -> str:
    return (
        "Add up money or another number of federal records exactly, in total or for each group, "
        "the largest first: how much (in dollars) a company or client spent or paid on lobbying, "
        "the biggest spenders of a year, the income that lobbying firms and registrants earned, "
        "all expenses reported; yea votes cast. Pick it for amounts and totals. For how many "
        "records there are use `count`. Fields for sum_field, by resource: "
        f"{_fields(resources, _sums)}. Fields for group_by, by resource: "
        f"{_fields(_summable(resources), _groups)}."
    )


def time_series(resources: tuple[Resource, ...]) -> str:
    return (
        "Count federal records over time, per day, week, month, quarter or year, without gaps: the "
        "trend. Has it increased, how did it develop, are there more or fewer each year, up or "
        "down, slower or faster, quarter by quarter? Gives weekly, monthly or yearly numbers to "
        "plot, chart or graph; with sum_field, amounts, such as lobbying spend; with group_by, one "
        "series for each group. Pick it when the question asks how a number changed. For one "
        f"number use `count`. Fields for time_field, by resource: {_fields(resources, _times)}. "
        f"Fields for sum_field: {_fields(_summable(resources), _sums)}. "
        "Those for group_by are as in `count`."
    )


def aggregate_choices(
    resources: tuple[Resource, ...], arguments: Sequence[str]
) -> dict[str, list[str]]:
    """Return the values that arguments of an aggregate may have, over all resources."""
    if "sum_field" in arguments and "time_field" not in arguments:
        resources = _summable(resources)
    choices = {
        "resource": [resource.path for resource in resources],
        "group_by": _distinct(resources, _groups),
        "sum_field": _distinct(resources, _sums),
        "time_field": _distinct(resources, _times),
    }
    return {name: choices[name] for name in arguments}


def _distinct(resources: Iterable[Resource], fields: FieldsOf) -> list[str]:
    return sorted({name for resource in resources for name in fields(resource)})


def _summable(resources: tuple[Resource, ...]) -> tuple[Resource, ...]:
    return tuple(resource for resource in resources if resource.plan.sums)


def _groups(resource: Resource) -> Iterable[str]:
    return resource.plan.groups


def _sums(resource: Resource) -> Iterable[str]:
    return (measure.name for measure in resource.plan.sums)


def _times(resource: Resource) -> Iterable[str]:
    return dict(resource.plan.times)


def _fields(resources: tuple[Resource, ...], fields: FieldsOf) -> str:
    """List the fields of each resource that has any."""
    by_path = ((resource.path, ", ".join(fields(resource))) for resource in resources)
    return "; ".join(f"{path}: {names}" for path, names in by_path if names)
