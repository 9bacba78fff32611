"""Requests and responses of REST and the commands that register and change policies."""

from datetime import date, datetime
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from readingroom.bases.policy.models import ListedPolicy, ListedRevision
from readingroom.bases.policy.registry.records import (
    PlanStage,
    PolicyCategory,
    RevisionStatus,
    SourceSlug,
)
from readingroom.core.dates import parse_day
from readingroom.core.errors import InvalidDate
from readingroom.protocol.doctor import Complaint
from readingroom.protocol.resources import PageMark
from readingroom.protocol.search import UnreadRevisions
from readingroom.protocol.tool import Answer, Body, NonBlankText
from readingroom.storage.handover import HandoverName


def _parse_day(day_value: object) -> object:
    """Accept YYYY-MM-DD only: Pydantic itself would read a number as seconds since 1970."""
    if isinstance(day_value, date):
        return day_value
    try:
        return parse_day(str(day_value))
    except InvalidDate as error:
        raise ValueError(error.message) from error


RevisionExtension = Literal[".pdf", ".docx", ".md", ".html", ".htm"]
"""What the file of a revision is; handed over, it has no name that would say so."""
Day = Annotated[date, BeforeValidator(_parse_day)]


AUTHORITY_DESCRIPTION = (
    "Whose policy it is, such as `Fenland District Council`; several by semicolons."
)
SUCCESSORS_DESCRIPTION = "Authorities that took its place since; several by semicolons."
STAGE_DESCRIPTION = (
    "How far a plan has come that is not adopted: it is never in force, and replaces nothing."
)


class NewPolicy(Body):
    """A policy to register."""

    source: SourceSlug
    title: Annotated[NonBlankText, Field(max_length=300)]
    description: str | None = Field(default=None, max_length=4000)
    category: PolicyCategory
    local_authority: str | None = Field(
        default=None, max_length=500, description=AUTHORITY_DESCRIPTION
    )
    area: str | None = Field(default=None, max_length=300)
    successor_authorities: str | None = Field(
        default=None, max_length=500, description=SUCCESSORS_DESCRIPTION
    )


class PolicyPatch(Body):
    """Fields of a policy to change; those left out stay."""

    title: Annotated[NonBlankText, Field(max_length=300)] | None = None
    description: str | None = Field(default=None, max_length=4000)
    category: PolicyCategory | None = None
    local_authority: str | None = Field(
        default=None, max_length=500, description=AUTHORITY_DESCRIPTION
    )
    area: str | None = Field(default=None, max_length=300)
    successor_authorities: str | None = Field(
        default=None, max_length=500, description=SUCCESSORS_DESCRIPTION
    )


class NewRevision(Body):
    """A revision to register; its file comes with it."""

    version_label: Annotated[NonBlankText, Field(max_length=120)]
    effective_from: Day
    effective_to: Day | None = None
    notes: str | None = Field(default=None, max_length=4000)
    stage: PlanStage | None = Field(default=None, description=STAGE_DESCRIPTION)

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.effective_to is not None and self.effective_to < self.effective_from:
            raise ValueError("effective_to is before effective_from")
        return self


class RevisionPatch(Body):
    """Fields of a revision to change; its neighbours keep their dates."""

    version_label: Annotated[NonBlankText, Field(max_length=120)] | None = None
    effective_from: Day | None = None
    effective_to: Day | None = Field(
        default=None, description="null: in force until further notice"
    )
    notes: str | None = Field(default=None, max_length=4000)


class ImportedRevision(BaseModel):
    """A revision of a bulk import, with its handed-over file."""

    model_config = ConfigDict(defer_build=True)

    revision: NewRevision
    # A copy in the base's folder: the server may not be allowed to read the caller's file.
    file: HandoverName
    extension: RevisionExtension = ".pdf"


class ImportedPolicy(BaseModel):
    """A policy of a bulk import."""

    model_config = ConfigDict(defer_build=True)

    policy: NewPolicy
    revisions: list[ImportedRevision]


class ImportReport(Answer):
    """What a bulk import added, found already there, and could not add."""

    policies_added: list[str]
    revisions_added: list[str]
    taken_up_again: list[str] = Field(
        default=[], description="What an earlier import had begun and this one finished."
    )
    already_there: list[str]
    failed: list[str] = Field(description="What could not be added, and why.")


class RevisionSummary(ListedRevision):
    """A revision as lists show it."""

    ingested_at: datetime | None


class RevisionDetail(RevisionSummary):
    """A revision with all its fields."""

    source: str
    file_path: str | None
    file_size_bytes: int | None
    page_count: int | None
    notes: str | None
    created_at: datetime
    error: str | None
    stage: PlanStage | None = Field(default=None, description=STAGE_DESCRIPTION)


class PolicySummary(ListedPolicy):
    """A policy as lists show it."""

    current_revision: RevisionSummary | None
    revision_count: int


class PolicyDetail(Answer):
    """A policy with its revisions, newest first."""

    source: str
    title: str
    description: str | None
    category: PolicyCategory
    revisions: list[RevisionDetail]
    current_revision: RevisionSummary | None
    revision_count: int
    created_at: datetime
    updated_at: datetime
    local_authority: str | None = Field(default=None, description=AUTHORITY_DESCRIPTION)
    area: str | None = None
    successor_authorities: str | None = Field(default=None, description=SUCCESSORS_DESCRIPTION)


class PolicyIndex(Answer):
    """Policies, as a list."""

    policies: list[PolicySummary]
    total: int


class EffectivePolicy(ListedPolicy):
    """A policy and its revision in force."""

    effective_revision: RevisionSummary


class EffectivePolicies(Answer):
    """What was in force on a day, and what was not."""

    effective_date: date
    policies: list[EffectivePolicy]
    policies_not_yet_effective: list[str]
    policies_with_no_revision_for_date: list[str]
    unread_revisions: UnreadRevisions = Field(default=[])


class SideEffects(Answer):
    """What a new revision does to the one before it, once it is active."""

    superseded_revision: str | None
    superseded_effective_to: date | None


class Links(Answer):
    """Where to look next."""

    self: str
    status: str
    policy: str


class RevisionAccepted(Answer):
    """A revision that is being ingested."""

    source: str
    revision_id: str
    version_label: str
    effective_from: date
    effective_to: date | None
    status: RevisionStatus
    ingestion_job_id: str
    links: Links
    side_effects: SideEffects


class ReindexAccepted(Answer):
    """A revision that is being ingested again; its old chunks answer until that is done."""

    source: str
    revision_id: str
    status: RevisionStatus
    ingestion_job_id: str
    links: Links


class Progress(Answer):
    """How much of an ingestion is done."""

    phase: str
    percent_complete: int
    chunks_processed: int


class RevisionProgress(Answer):
    """A revision's status, and how much of its ingestion is done."""

    revision_id: str
    status: RevisionStatus
    progress: Progress


class RevisionPageMarks(Answer):
    """Where a passage stands on a page of a revision."""

    status: Literal["success"] = "success"
    source: str
    revision_id: str
    page: int
    marks: list[PageMark] = Field(
        description="One for each line; empty where the passage is not on this page."
    )


class PolicyDeleted(Answer):
    """A policy that was deleted with all its revisions."""

    source: str
    status: Literal["deleted"] = "deleted"
    revisions_removed: int
    chunks_removed: int


class RevisionDeleted(Answer):
    """A revision that was deleted."""

    source: str
    revision_id: str
    status: Literal["deleted"] = "deleted"
    chunks_removed: int


class PolicyDiagnosis(Answer):
    """The result of a check of the whole base."""

    policies: int
    revisions: int
    chunks: int
    complaints: list[Complaint]
