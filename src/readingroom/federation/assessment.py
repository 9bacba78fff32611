"""What each side of an assessment was searched in, and why a side is empty."""

from collections import Counter
from collections.abc import Sequence

from readingroom.federation.models import AssessedSide, ExcludedPolicy
from readingroom.protocol.search import (
    COUNTED_WORDS_BY_REASON,
    DeskHit,
    KnownApplication,
    SearchScope,
)

_MAX_LISTED_NAMES = 50


def build_application_side(
    known_application: KnownApplication | None, hits: Sequence[DeskHit]
) -> AssessedSide:
    """Return which documents were searched, and why none of them has a passage."""
    document_names = known_application.document_names if known_application else ()
    if hits:
        empty_reason = None
    elif known_application is None:
        empty_reason = "Nothing is known of this application; check its reference"
    elif not document_names:
        empty_reason = "The application has a record and no documents: ingest_document adds them"
    else:
        empty_reason = f"None of its {len(document_names)} documents says anything on the topic"
    return _make_assessed_side(document_names, (), empty_reason)


def build_policy_side(
    search_scope: SearchScope, policy_day: str, hits: Sequence[DeskHit]
) -> AssessedSide:
    """Return which revisions were searched, and why none of them has a passage."""
    empty_reason = None if hits else _describe_missing_policy(search_scope, policy_day)
    return _make_assessed_side(search_scope.searched, search_scope.excluded, empty_reason)


def _describe_missing_policy(search_scope: SearchScope, policy_day: str) -> str:
    if search_scope.searched:
        searched_count = len(search_scope.searched)
        return f"None of the {searched_count} revisions searched says anything on the topic"
    if not search_scope.excluded:
        return "There are no policies here"
    counts_by_reason = Counter(exclusion_reason for _, exclusion_reason in search_scope.excluded)
    counted_reason_texts = [
        f"{policy_count} {COUNTED_WORDS_BY_REASON.get(exclusion_reason, exclusion_reason)}"
        for exclusion_reason, policy_count in counts_by_reason.items()
    ]
    excluded_count = len(search_scope.excluded)
    return (
        f"No policy here applies on {policy_day}: of {excluded_count}, "
        f"{', '.join(counted_reason_texts)}"
    )


def _make_assessed_side(
    searched_names: Sequence[str],
    sources_and_exclusion_reasons: Sequence[tuple[str, str]],
    empty_reason: str | None,
) -> AssessedSide:
    return AssessedSide(
        searched=list(searched_names[:_MAX_LISTED_NAMES]),
        searched_count=len(searched_names),
        excluded=[
            ExcludedPolicy(source=policy_source, reason=exclusion_reason)
            for policy_source, exclusion_reason in sources_and_exclusion_reasons[:_MAX_LISTED_NAMES]
        ],
        empty_reason=empty_reason,
    )
