"""Questions and answers of dossiers."""

from typing import Annotated, Any

from pydantic import Field

from readingroom.bases.federal.models import Congress, Id
from readingroom.bases.federal.schema.records import Bill, Committee, Law, Legislator
from readingroom.protocol.tool import Answer, ToolArguments


class GetBillDossier(ToolArguments):
    bill_id: Id = Field(description="Such as `hr:119:1`.")


class GetLegislatorDossier(ToolArguments):
    bioguide_id: Id = Field(description="The bioguide id, such as `S000033`.")
    congress: Congress | None = Field(None, description="Only what falls into this Congress.")


class GetCommitteeDossier(ToolArguments):
    committee_id: Id = Field(description="Such as `HSAG`, `HSAG15`.")
    congress: Congress | None = Field(None, description="Only what falls into this Congress.")


class GetPublicLawDossier(ToolArguments):
    id: Id = Field(description="Such as `pl:117-103`.")


# --- answers ---


class SectionError(Answer):
    code: str
    message: str


class Section(Answer):
    """One part of a dossier: its first items, and the way to the rest."""

    items: list[dict[str, Any]]
    total: int | None = Field(description="How many there are; null when that could not be read.")
    truncated: bool
    more_url: str | None = Field(
        default=None, description="Where the list goes on, when it is truncated."
    )
    note: str | None = Field(
        default=None, description="What to know about it, such as that nothing is loaded."
    )
    error: SectionError | None = Field(
        default=None, description="Why this section could not be read."
    )


Shortened = Annotated[
    dict[str, str] | None,
    Field(description="Fields of the record that are cut here; `fetch` has them whole."),
]


class BillDossier(Answer):
    """A bill and everything that is linked to it here."""

    bill: Bill
    sponsors: Section
    cosponsors: Section
    actions: Section
    crs_reports: Section
    cost_estimates: Section
    saps: Section
    committee_reports: Section
    hearings: Section
    votes: Section
    amendments: Section
    laws: Section
    shortened: Shortened = None


class LegislatorDossier(Answer):
    """A member of Congress: seats, bills, offices, speeches."""

    legislator: Legislator
    congress: int | None
    terms: Section
    committees: Section
    bill_counts: Section
    sponsored_bills: Section
    leadership: Section
    offices: Section
    speeches: Section
    voting: Section
    shortened: Shortened = None


class CommitteeDossier(Answer):
    """A committee: who sits on it and what it does."""

    committee: Committee
    congress: int | None
    members: Section
    subcommittees: Section
    hearings: Section
    bills: Section
    reports: Section
    shortened: Shortened = None


class PublicLawDossier(Answer):
    """A law, the bill it was, and the regulations that rest on it."""

    public_law: Law
    originating_bill: Section
    cfr_sections: Section
    implementing_rules: Section
    compilations: Section
    shortened: Shortened = None
