"""The Search API of the GOV.UK emulator: which items a query finds, and in which order."""

import json
import re
from collections.abc import Iterable
from typing import Any

ContentItem = dict[str, Any]

_SEARCH_PARAMETERS = {
    "q",
    "count",
    "start",
    "order",
    "fields",
    "filter_organisations",
    "filter_format",
    "filter_content_store_document_type",
    "filter_content_id",
    "filter_public_timestamp",
}
_SORT_ORDERS = {None, "public_timestamp", "-public_timestamp", "title", "-title"}
_MAX_RESULTS = 1500
_PERIOD_PATTERN = re.compile(r"(?:(?:from|to):\d{4}-\d{2}-\d{2},?)+")


def find_parameter_problem(query_params: Iterable[tuple[str, str]]) -> str | None:
    """Return what is wrong with the parameters, about which GOV.UK is strict; else None."""
    for param_name, param_value in query_params:
        if param_name not in _SEARCH_PARAMETERS:
            return f"Unexpected parameters: {param_name}"
        if param_name in ("count", "start") and not (
            param_value.isdecimal() and int(param_value) <= _MAX_RESULTS
        ):
            return f"Invalid value for {param_name}"
        if param_name == "order" and param_value not in _SORT_ORDERS:
            return f"Sorting by {param_value} is not allowed"
        if param_name == "filter_public_timestamp" and not _PERIOD_PATTERN.fullmatch(param_value):
            return "Invalid value for public_timestamp"
    return None


def matches_filters(content_item: ContentItem, query_params: Iterable[tuple[str, str]]) -> bool:
    """Whether an item passes every filter; several values of one filter are alternatives."""
    if content_item.get("schema_name") in ("redirect", "gone"):
        return False
    values_by_filter_name: dict[str, set[str]] = {}
    for param_name, param_value in query_params:
        if param_name.startswith("filter_"):
            values_by_filter_name.setdefault(param_name.removeprefix("filter_"), set()).add(
                param_value
            )
    return all(
        _passes_filter(content_item, param_name, param_values)
        for param_name, param_values in values_by_filter_name.items()
    )


def _passes_filter(content_item: ContentItem, filter_name: str, filter_values: set[str]) -> bool:
    match filter_name:
        case "organisations":
            organisation_paths = [
                organisation["base_path"] for organisation in _list_organisations(content_item)
            ]
            organisation_slugs = {
                organisation_path.rpartition("/")[2] for organisation_path in organisation_paths
            }
            return bool(organisation_slugs & filter_values)
        case "format":
            return content_item.get("schema_name") in filter_values
        case "content_store_document_type":
            return content_item.get("document_type") in filter_values
        case "content_id":
            return content_item.get("content_id") in filter_values
    updated_on = str(content_item.get("public_updated_at") or "")[:10]
    (period_text,) = filter_values
    period_days_by_end = dict(
        name_and_day.split(":") for name_and_day in period_text.split(",") if name_and_day
    )
    return period_days_by_end.get("from", "") <= updated_on <= period_days_by_end.get("to", "9999")


def _list_organisations(content_item: ContentItem) -> list[ContentItem]:
    organisations: list[ContentItem] = content_item.get("links", {}).get("organisations", [])
    return organisations


def sort_items(
    matching_items: list[ContentItem], query_text: str, sort_order: str | None
) -> list[ContentItem]:
    query_words = set(re.findall(r"\w+", query_text.lower()))
    if query_words:
        scores_and_items = [
            (_score_item(content_item, query_words), content_item)
            for content_item in matching_items
        ]
        matching_items = [
            content_item
            for match_score, content_item in sorted(
                scores_and_items, key=lambda score_and_item: -score_and_item[0]
            )
            if match_score
        ]
    if sort_order:
        sort_field_name = sort_order.lstrip("-").replace("public_timestamp", "public_updated_at")
        matching_items = sorted(
            matching_items,
            key=lambda content_item: str(content_item.get(sort_field_name)),
            reverse=sort_order[0] == "-",
        )
    return matching_items


def _score_item(content_item: ContentItem, query_words: set[str]) -> int:
    title_text, details_text = (
        str(content_item.get("title")).lower(),
        json.dumps(content_item.get("details")).lower(),
    )
    description_text = str(content_item.get("description")).lower()
    return sum(
        9 * (query_word_text in title_text)
        + 3 * (query_word_text in description_text)
        + (query_word_text in details_text)
        for query_word_text in query_words
    )


def make_search_result(content_item: ContentItem, wanted_field_names: list[str]) -> ContentItem:
    """Return the search result for an item; the Search API has its own names for the fields."""
    result_values = {
        "title": content_item.get("title"),
        "link": content_item.get("base_path"),
        "description": content_item.get("description"),
        "public_timestamp": content_item.get("public_updated_at"),
        "content_id": content_item.get("content_id"),
        "format": content_item.get("schema_name"),
        "content_store_document_type": content_item.get("document_type"),
    }
    chosen_result_values = {
        field_name: result_values[field_name]
        for field_name in wanted_field_names or result_values
        if result_values.get(field_name) is not None
    }
    return chosen_result_values | {
        "index": "govuk",
        "es_score": None,
        "_id": content_item["base_path"],
    }
