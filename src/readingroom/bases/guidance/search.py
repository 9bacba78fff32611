"""Searches of GOV.UK: parameters made from a caller's filters, and results read from the answer."""

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json

from readingroom.bases.guidance.models import Hit, make_guidance_id
from readingroom.bases.guidance.pages.page import COMMISSION_SLUG
from readingroom.bases.guidance.pages.values import is_plain_path, make_website_url
from readingroom.core.errors import InvalidArguments
from readingroom.net.errors import UpstreamParameterError
from readingroom.net.upstream import QueryParams

# Without this list GOV.UK's search sends many fields that nobody here reads.
_SEARCH_FIELD_NAMES = (
    "content_id",
    "content_store_document_type",
    "description",
    "link",
    "public_timestamp",
    "title",
)

# The form of GOV.UK's own slugs: nothing else can match, or break out of a parameter.
_Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,99}$")]
_Slugs = _Slug | Annotated[list[_Slug], Field(min_length=1, max_length=20)]


class _Filters(BaseModel):
    """The filters that a search accepts; any other is rejected by name."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    organisation: _Slugs = COMMISSION_SLUG
    organisations: _Slugs = COMMISSION_SLUG
    format: _Slugs | None = None
    document_type: _Slugs | None = None
    public_timestamp_from: date | None = None
    public_timestamp_to: date | None = None


def make_scope_params(result_count: int, first_index: int) -> list[tuple[str, str]]:
    """Return the parameters of every search, whatever the caller wants."""
    return [
        ("filter_organisations", COMMISSION_SLUG),
        ("count", str(result_count)),
        ("start", str(first_index)),
        *(("fields", field_name) for field_name in _SEARCH_FIELD_NAMES),
    ]


def translate_filters(caller_filters: Mapping[str, Any]) -> QueryParams:
    """Return the caller's filters as GOV.UK names them; raise `UpstreamParameterError`."""
    try:
        # By way of JSON: strict mode takes a date from a JSON string, not from a Python one.
        valid_filters = _Filters.model_validate_json(to_json(caller_filters))
    except ValidationError as error:
        filter_problems = InvalidArguments.from_validation_error(error).errors
        problem_text = "; ".join(
            f"{filter_problem['field']}: {filter_problem['message']}"
            for filter_problem in filter_problems
        )
        raise UpstreamParameterError(
            f"These filters cannot be used: {problem_text}",
            known_filters=sorted(_Filters.model_fields),
        ) from error
    for organisation_slugs in (valid_filters.organisation, valid_filters.organisations):
        if set(_make_slug_list(organisation_slugs)) != {COMMISSION_SLUG}:
            raise UpstreamParameterError(
                f"Only guidance of {COMMISSION_SLUG} can be searched in this base",
                organisation=COMMISSION_SLUG,
            )
    return [
        *(
            ("filter_format", filter_value)
            for filter_value in _make_slug_list(valid_filters.format)
        ),
        *(
            ("filter_content_store_document_type", filter_value)
            for filter_value in _make_slug_list(valid_filters.document_type)
        ),
        *_make_period_params(
            valid_filters.public_timestamp_from, valid_filters.public_timestamp_to
        ),
    ]


def _make_slug_list(slug_or_slugs: str | list[str] | None) -> list[str]:
    if slug_or_slugs is None:
        return []
    return [slug_or_slugs] if isinstance(slug_or_slugs, str) else slug_or_slugs


def _make_period_params(first_day: date | None, last_day: date | None) -> QueryParams:
    period_bounds = [
        f"{bound_name}:{bound_day}"
        for bound_name, bound_day in (("from", first_day), ("to", last_day))
        if bound_day
    ]
    return [("filter_public_timestamp", ",".join(period_bounds))] if period_bounds else []


def group_params_by_name(query_params: QueryParams) -> dict[str, list[str]]:
    """Return the values of each parameter, by name."""
    values_by_param_name: dict[str, list[str]] = {}
    for param_name, param_value in query_params:
        values_by_param_name.setdefault(param_name, []).append(param_value)
    return values_by_param_name


def group_params_by_filter_name(query_params: QueryParams) -> dict[str, list[str]]:
    """Return the values of each filter, by the name that callers know."""
    param_names_and_values = group_params_by_name(query_params).items()
    return {
        param_name.removeprefix("filter_"): param_values
        for param_name, param_values in param_names_and_values
    }


def parse_hits(search_response: Mapping[str, Any]) -> list[Hit]:
    """Return the results that can be cited."""
    raw_results = search_response.get("results")
    hits = (
        _parse_hit(search_result)
        for search_result in raw_results or []
        if isinstance(search_result, Mapping)
    )
    return [hit for hit in hits if hit is not None]


def _parse_hit(search_result: Mapping[str, Any]) -> Hit | None:
    """Return a search result as a hit; None where it has no title or no link to cite."""
    hit_title, hit_link = (
        _read_text_field(search_result, "title"),
        _read_text_field(search_result, "link"),
    )
    hit_url = make_website_url(hit_link) if hit_link else None
    if not hit_title or not hit_link or not hit_url:
        return None
    # The search also returns pages of other sites, which only have an address.
    page_path = hit_link if is_plain_path(hit_link) else None
    return Hit(
        title=hit_title,
        url=hit_url,
        summary=_read_text_field(search_result, "description") or "",
        public_updated_at=_read_text_field(search_result, "public_timestamp"),
        path=page_path,
        id=make_guidance_id(page_path) if page_path else None,
        document_type=_read_text_field(search_result, "content_store_document_type"),
        passage=None,
        section=None,
        score=None,
        withdrawn=None,
        change_note=None,
    )


def _read_text_field(search_result: Mapping[str, Any], field_name: str) -> str | None:
    field_value = search_result.get(field_name)
    return field_value if isinstance(field_value, str) and field_value else None
