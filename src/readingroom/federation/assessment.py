"""What each side of an assessment was searched in, and why a side is empty."""

from collections import Counter
from collections.abc import Sequence

from readingroom.federation.models import AssessedSide, ExcludedPolicy
from readingroom.protocol.search import DeskHit, KnownApplication, SearchScope

_MAX_NAMED = 50
_REASON_WORDS = {
    "date_before_first_revision": "came into force later",
    "date_in_gap": "had no revision in force on the day",
    "no_active_revision": "have not been read yet",
    "no_chunks": "have no text here",
    "unknown_source": "are not here",
    "other_authority": "are another authority's",
    "authority_unknown": "do not say whose they are (policy `local_authority`)",
}


def describe_application_side(
    application: KnownApplication | None, hits: Sequence[DeskHit]
) -> AssessedSide:
    """Return which documents were searched, and why none of them has a passage."""
    names = application.document_names if application else ()
    if hits:
        reason = None
    elif application is None:
        reason = "Nothing is known of this application; check its reference"
    elif not names:
        reason = "The application has a record and no documents: ingest_document adds them"
    else:
        reason = f"None of its {len(names)} documents says anything on the topic"
    return _make_side(names, (), reason)


def describe_policy_side(scope: SearchScope, day: str, hits: Sequence[DeskHit]) -> AssessedSide:
    """Return which revisions were searched, and why none of them has a passage."""
    reason = None if hits else _explain_no_policy(scope, day)
    return _make_side(scope.searched, scope.excluded, reason)


def _explain_no_policy(scope: SearchScope, day: str) -> str:
    if scope.searched:
        return f"None of the {len(scope.searched)} revisions searched says anything on the topic"
    if not scope.excluded:
        return "There are no policies here"
    counts = Counter(reason for _, reason in scope.excluded)
    causes = [f"{count} {_REASON_WORDS.get(reason, reason)}" for reason, count in counts.items()]
    return f"No policy here applies on {day}: of {len(scope.excluded)}, {', '.join(causes)}"


def _make_side(
    names: Sequence[str], excluded: Sequence[tuple[str, str]], empty_reason: str | None
) -> AssessedSide:
    return AssessedSide(
        searched=list(names[:_MAX_NAMED]),
        searched_count=len(names),
        excluded=[
            ExcludedPolicy(source=source, reason=reason) for source, reason in excluded[:_MAX_NAMED]
        ],
        empty_reason=empty_reason,
    )
