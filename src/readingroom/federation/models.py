"""What the desk is asked and what it answers: the federal base's contract, for every base."""

from typing import Annotated

from pydantic import AfterValidator, Field

from readingroom.core.scores import CONFIDENCE_DESCRIPTION, ConfidenceLevel
from readingroom.protocol.search import DeskHit, UnreadRevisions
from readingroom.protocol.tool import (
    Answer,
    Day,
    NonBlankText,
    ShortText,
    ToolArguments,
    clean_reference,
)

ApplicationReference = Annotated[
    str,
    Field(min_length=1, max_length=100, description="A planning application: `25/01178/REM`."),
    AfterValidator(clean_reference),
]
PolicyDay = Annotated[
    Day | None,
    Field(description="Policies as they were in force on this day; today when left out."),
]


# --- questions ---


class DeskSearch(ToolArguments):
    """A search over everything in the room, or over what `source` names."""

    query: NonBlankText = Field(
        min_length=1, max_length=1000, description="What to look for, in words."
    )
    source: Annotated[list[ShortText], Field(max_length=30)] | ShortText | None = Field(
        default=None,
        description="Bases (policy, documents, guidance, text, federal) or sources of the federal "
        "base (bills, federal_register, …); everything when left out.",
    )
    date: PolicyDay = None
    application_ref: ApplicationReference | None = Field(
        default=None, description="Only this planning application, among application documents."
    )
    since: Day | None = Field(
        default=None, description="Federal records and guidance published on this day or later."
    )
    until: Day | None = Field(
        default=None, description="Federal records and guidance published on this day or earlier."
    )
    limit: int = Field(default=10, ge=1, le=50)
    offset: int = Field(default=0, ge=0, le=100, description="`next_offset` of the last answer.")


class DeskFetch(ToolArguments):
    """An id of any base."""

    id: Annotated[str, Field(min_length=1, max_length=300)] = Field(
        description="Any id that a search gave: `policy:…`, `doc:…`, `guidance:/…`, `text:kb`, or "
        "a federal id such as `hr:119:1`."
    )
    offset: int = Field(
        default=0, ge=0, le=2**31, description="Where to go on: `next_offset` of the last answer."
    )


class AssessAgainstPolicy(ToolArguments):
    """An application, and what about it."""

    application_ref: ApplicationReference
    topic: NonBlankText = Field(
        min_length=1, max_length=1000, description="What to compare on: `cycle parking`."
    )
    date: Day | None = Field(
        default=None,
        description="Policy as in force on this day; by default the day it was validated.",
    )
    limit: int = Field(default=5, ge=1, le=20, description="Passages of each side.")
    sources: Annotated[list[ShortText], Field(min_length=1, max_length=30)] | None = Field(
        default=None, description="Only these policies, by slug: `NPPF`."
    )
    local_authority: NonBlankText | None = Field(
        default=None,
        max_length=200,
        description="Whose local plan applies; by default the application's own authority.",
    )


# --- answers ---


class Note(Answer):
    """A base that could not answer, and why; the others' results stand."""

    base: str
    code: str
    message: str


class ExcludedBase(Answer):
    """A base that was not searched, and why."""

    base: str
    reason: str


class DeskAnswer(Answer):
    """What was found, best first, with what was asked and what stayed silent."""

    results: list[DeskHit]
    total: int = Field(description="How many were found, as far as each base was read.")
    took_ms: float
    searched: list[str] = Field(description="The bases that answered.")
    excluded: list[ExcludedBase] = Field(
        default_factory=list, description="The bases that were not asked, and why."
    )
    notes: list[Note] = Field(description="The bases that did not answer, and why.")
    confidence: ConfidenceLevel = Field(description=CONFIDENCE_DESCRIPTION)
    confidence_reason: str
    next_offset: int | None = None
    unread_revisions: UnreadRevisions = Field(default=[])


class ExcludedPolicy(Answer):
    """A policy that was not searched, and why."""

    source: str
    reason: str


class AssessedSide(Answer):
    """What one side was searched in."""

    searched: list[str] = Field(description="Revisions or documents; at most fifty are named.")
    searched_count: int
    excluded: list[ExcludedPolicy]
    empty_reason: str | None = Field(description="Why there are no passages, where there are none.")


class Assessment(Answer):
    """What an application says on a topic, beside the policy of its day. No judgement is made."""

    application_ref: str
    topic: str
    date: str = Field(description="The day whose policy is shown.")
    date_from: str = Field(description="Where that day comes from: `asked`, or `validation_date`.")
    application: list[DeskHit] = Field(description="Passages of the application's documents.")
    policy: list[DeskHit] = Field(description="Passages of policies in force on the day.")
    notes: list[Note]
    application_known: bool = Field(
        default=True, description="Whether anything is known of the application."
    )
    local_authority: str | None = Field(
        default=None, description="Whose plans were searched; null: everybody's."
    )
    authority_from: str | None = Field(
        default=None, description="Where it comes from: `asked`, or `application`."
    )
    application_side: AssessedSide | None = None
    policy_side: AssessedSide | None = None
    unread_revisions: UnreadRevisions = Field(default=[])
