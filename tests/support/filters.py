"""What a filter means, said once: every backend must agree with it."""

from readingroom.core.filters import (
    Condition,
    Filter,
    In,
    Metadata,
    Range,
    Scalar,
    flatten_filter,
    make_comparison_key,
)


def passes(metadata: Metadata, where: Filter | None) -> bool:
    """Whether a chunk with this metadata may answer."""
    return all(_holds(metadata.get(part.field_name), part) for part in flatten_filter(where))


def _holds(value: Scalar | None, part: Condition) -> bool:
    match part:
        case _ if value is None:
            return False
        case In(values=values):
            return make_comparison_key(value) in {make_comparison_key(each) for each in values}
        case Range(low=low, high=high):
            if isinstance(value, bool | str):
                return False
            return (low is None or low <= value) and (high is None or value <= high)
