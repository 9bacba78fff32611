"""What some tools say of themselves: written for a model that chooses, with live values."""

from collections.abc import Callable, Iterable, Sequence

from readingroom.bases.federal.sources import Resource, Shape, Source, names_of

_REGISTRIES = (
    "Registries (people, offices, committees, topics) are out of scope here: they hold names, not "
    "texts; resolve_entity looks names up."
)


def search(sources: tuple[Source, ...]) -> str:
    return (
        "Find official federal material on a subject when you have only a topic: what the "
        "government and its agencies are doing or have done, said or published about something, "
        "recently or since a year, by words and meaning at once. It does not look up identifiers: "
        "with one (H.R. 1, a bioguide id) use the typed tools. Each result has an id for fetch, a "
        "title, a url, a passage and a citation. Sources: "
        f"{_listed(sources, Shape.BODY, Shape.SHORT)}. {_REGISTRIES}"
    )


def lexical_search(sources: tuple[Source, ...]) -> str:
    return (
        "Search federal documents for exact words: which bills, statutes, notices, reports or "
        "speeches contain, mention or use a term or phrase literally, verbatim, as it appears in "
        "quotes; names of acts, rare terms (BM25). Pick it when the wording matters; it does not "
        f"find other wordings of the same thing. Sources: "
        f"{_listed(sources, Shape.BODY, Shape.SHORT)}. {_REGISTRIES}"
    )


def semantic_search(sources: tuple[Source, ...]) -> str:
    return (
        "Search federal documents for a meaning, however it is worded: bills, legislation, rules "
        "and reports similar or comparable to another, resembling or along the lines of an idea, a "
        "proposal, concept or theme, related to or dealing with it in different words, by whatever "
        "name, even if not called that. Pick it for free-text questions without exact terms; it "
        "does not match words. Filters apply before scoring. "
        f"Sources: {_listed(sources, Shape.BODY)}. {_REGISTRIES}"
    )


def _listed(sources: tuple[Source, ...], *shapes: Shape) -> str:
    return ", ".join(names_of(source for source in sources if source.shape in shapes))


def count(resources: tuple[Resource, ...]) -> str:
    return (
        "Count federal records: how many there are, how many times or how often something "
        "happened, or the number in each group, the largest first: the breakdown of bills by "
        "party, how many laws were enacted, which agencies publish the most rules, who introduced "
        "most bills, how many members are Republicans. Pick it for how many and which most; "
        "it does not list the records, and it adds nothing up: sum does. group_by, by resource: "
        f"{_fields(resources, _groups)}. Filters are these fields, since and until."
    )


def sum(resources: tuple[Resource, ...]) -> str:
    return (
        "Add up a number of federal records exactly, in all or for each group, the largest first: "
        "how much money (dollars) a company or client spent or paid on lobbying, the top or "
        "biggest spenders of a year, the income or revenue that lobbying firms and registrants "
        "earned, total expenses, combined cosponsors, yea votes cast. Pick it for amounts and "
        "totals; it does not count records: count does. sum_field, by resource: "
        f"{_fields(resources, _sums)}. group_by, by resource: "
        f"{_fields(_summable(resources), _groups)}."
    )


def time_series(resources: tuple[Resource, ...]) -> str:
    return (
        "Count federal records over time, per day, week, month, quarter or year, without gaps: "
        "the trend or development over years and decades, whether there are fewer or more each "
        "year, up or down, where they peak, quarter by quarter; monthly or yearly numbers to plot, "
        "chart or graph; with sum_field, amounts. With group_by, one series for each group. Pick "
        "it when the question asks how a number changed; it does not give one number: count does. "
        f"time_field, by resource: {_fields(resources, _times)}. group_by as in count."
    )


def aggregate_choices(
    resources: tuple[Resource, ...], arguments: Sequence[str]
) -> dict[str, list[str]]:
    """The values that the arguments of an aggregate may have, over all resources."""
    if "sum_field" in arguments and "time_field" not in arguments:
        resources = _summable(resources)
    told = {
        "resource": [one.path for one in resources],
        "group_by": sorted({name for one in resources for name in _groups(one)}),
        "sum_field": sorted({name for one in resources for name in _sums(one)}),
        "time_field": sorted({name for one in resources for name in _times(one)}),
    }
    return {name: told[name] for name in arguments}


def _summable(resources: tuple[Resource, ...]) -> tuple[Resource, ...]:
    return tuple(one for one in resources if one.plan.sums)


def _groups(resource: Resource) -> Iterable[str]:
    return resource.plan.groups


def _sums(resource: Resource) -> Iterable[str]:
    return (one.name for one in resource.plan.sums)


def _times(resource: Resource) -> Iterable[str]:
    return dict(resource.plan.times)


def _fields(resources: tuple[Resource, ...], fields: Callable[[Resource], Iterable[str]]) -> str:
    told = ((one.path, ", ".join(fields(one))) for one in resources)
    return "; ".join(f"{path}: {names}" for path, names in told if names)
