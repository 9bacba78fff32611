"""Records of the registry: policies, their revisions, and the rules for their names."""

import re
from collections.abc import Sequence
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from readingroom.core.text import cite_pages

# The slug is part of keys, paths and ids, so nothing in it may need escaping.
SLUG_PATTERN = r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*"
REVISION_ID_PATTERN = r"[A-Za-z0-9_-]{1,120}"
_MAX_CITED_TITLE_CHARS = 100
_COMMON_AUTHORITY_WORDS_PATTERN = re.compile(
    "the|of|council|borough|district|city|county|metropolitan|london|royal|unitary|authority|former"
)
_COMPILED_SLUG_PATTERN = re.compile(SLUG_PATTERN, re.ASCII)


def _validate_slug(slug_text: str) -> str:
    if not _COMPILED_SLUG_PATTERN.fullmatch(slug_text):
        raise ValueError("must be UPPER_SNAKE_CASE, such as LTN_1_20")
    return slug_text


SourceSlug = Annotated[
    str,
    Field(max_length=80, description="Policy source slug, such as `NPPF` or `LTN_1_20`."),
    AfterValidator(_validate_slug),
]


StoredRevisionId = Annotated[str, Field(pattern=f"^{REVISION_ID_PATTERN}$")]
"""An id that the registry has given; it names a folder too, so it must be nothing else."""


class PolicyCategory(StrEnum):
    """What kind of authority a policy has."""

    NATIONAL_POLICY = "national_policy"
    NATIONAL_GUIDANCE = "national_guidance"
    LOCAL_PLAN = "local_plan"
    LOCAL_GUIDANCE = "local_guidance"
    COUNTY_STRATEGY = "county_strategy"
    SUPPLEMENTARY = "supplementary"


class RevisionStatus(StrEnum):
    """State of a revision. Only `active` and `superseded` ones count: they can be in force."""

    PROCESSING = "processing"
    ACTIVE = "active"
    SUPERSEDED = "superseded"
    FAILED = "failed"
    EMERGING = "emerging"


NotInForceReason = Literal["date_before_first_revision", "date_in_gap", "no_active_revision"]
"""Why no revision of a policy is in force on a day."""

PlanStage = Literal[
    "draft", "regulation_18", "regulation_19", "submitted", "examination", "modifications"
]
"""How far a plan has come that is not adopted yet."""

IN_FORCE_STATUSES = (RevisionStatus.ACTIVE, RevisionStatus.SUPERSEDED)


class Policy(BaseModel):
    """A policy document; its text is in its revisions."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    source: SourceSlug
    title: str
    description: str | None = None
    category: PolicyCategory
    created_at: datetime
    updated_at: datetime
    local_authority: str | None = None
    """Whose policy it is; several authorities are separated by semicolons."""
    area: str | None = None
    """The places that it covers, likewise separated: a former district, towns, parishes."""
    successor_authorities: str | None = None
    """Authorities that took the place of the first, likewise separated."""

    @property
    def is_unattributed(self) -> bool:
        """Whether it is a local policy of which nothing says whose it is."""
        return not self.is_national and not self.local_authority

    @property
    def is_national(self) -> bool:
        return self.category in (PolicyCategory.NATIONAL_POLICY, PolicyCategory.NATIONAL_GUIDANCE)

    def is_applicable_in(self, local_authority: str) -> bool:
        """Whether a policy applies where this authority decides: its own, and the nation's.

        The name of an area that it covers will do: people go on using that of a former district.
        """
        if self.is_national:
            return True
        folded_asked_name = fold_authority_name(local_authority)
        semicolon_separated_names = (self.local_authority, self.successor_authorities, self.area)
        return bool(folded_asked_name) and folded_asked_name in _fold_names(
            *semicolon_separated_names
        )

    def is_inherited_by(self, local_authority: str) -> bool:
        """Whether it applies there only because the authority took the place of its own."""
        folded_asked_name = fold_authority_name(local_authority)
        return folded_asked_name in _fold_names(self.successor_authorities) - _fold_names(
            self.local_authority, self.area
        )

    def covers(self, site_address: str) -> bool:
        """Whether an address names one of the places that the policy covers."""
        folded_site_address = f" {fold_authority_name(site_address)} "
        return any(
            f" {place_name} " in folded_site_address for place_name in _fold_names(self.area)
        )


class Revision(BaseModel):
    """One version of a policy and the days it is in force, both ends included."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    revision_id: StoredRevisionId
    source: SourceSlug
    version_label: str
    effective_from: date
    effective_to: date | None = None
    status: RevisionStatus = RevisionStatus.PROCESSING
    file_path: str | None = None
    file_size_bytes: int | None = None
    page_count: int | None = None
    chunk_count: int = 0
    notes: str | None = None
    created_at: datetime
    ingested_at: datetime | None = None
    error: str | None = None
    stage: PlanStage | None = None
    """Set for a plan that is not adopted: it is never in force, and closes nothing."""
    closed_by: str | None = None
    """The successor whose creation set `effective_to`; the end applies once that one counts."""

    @property
    def can_be_in_force(self) -> bool:
        """Whether this revision can be in force: it was ingested at least once."""
        return self.status in IN_FORCE_STATUSES

    @property
    def is_readable(self) -> bool:
        """Whether its text was ingested, be it in force one day or not adopted yet."""
        return self.can_be_in_force or self.status == RevisionStatus.EMERGING


def _fold_names(*semicolon_separated_names: str | None) -> set[str]:
    """Return the names of authorities or places in these lists, each separated by semicolons."""
    raw_names = ";".join(filter(None, semicolon_separated_names)).split(";")
    return {folded_name for raw_name in raw_names if (folded_name := fold_authority_name(raw_name))}


def fold_authority_name(authority_name: str) -> str:
    """Return the name of an authority as it compares: `Fenland District Council` is `fenland`."""
    name_words = re.findall(r"[a-z]+", authority_name.casefold().replace("&", " and "))
    return " ".join(
        name_word
        for name_word in name_words
        if not _COMMON_AUTHORITY_WORDS_PATTERN.fullmatch(name_word)
    )


def format_citation(
    revision: Revision,
    section_ref: str,
    page_numbers: Sequence[int],
    section_title: str = "",
    kind_note: str = "",
    printed_pages: Sequence[str] = (),
) -> str:
    """Return `NPPF (December 2024), Para 116, p. 33–34`.

    A section's title and what it weighs beside policies follow its reference; the numbers printed
    on the pages follow theirs, where they differ.
    """
    section_name = format_section_name(section_ref, section_title)
    if kind_note:
        section_name = f"{section_name} ({kind_note})".strip()
    cited_pages_text = cite_pages(page_numbers)
    if printed_pages and list(printed_pages) != [str(page_number) for page_number in page_numbers]:
        cited_pages_text += f" (printed {_join_page_labels(printed_pages)})"
    return ", ".join(filter(None, [format_revision(revision), section_name, cited_pages_text]))


def format_revision(revision: Revision) -> str:
    """Return `NPPF (December 2024)`; of a plan that is not adopted also its stage."""
    return format_revision_name(revision.source, revision.version_label, revision.stage)


def format_revision_name(
    policy_slug: str, version_label: str, draft_plan_stage: PlanStage | None
) -> str:
    """Return how a revision is cited; one that is not adopted says so."""
    stage_text = f", emerging: {draft_plan_stage.replace('_', ' ')}" if draft_plan_stage else ""
    return f"{policy_slug} ({version_label}{stage_text})"


def format_section_name(section_ref: str, section_title: str) -> str:
    """Return `Policy LP5: Meeting Housing Need`; a long title is cut."""
    if not section_ref or not section_title:
        return section_ref
    is_title_long = len(section_title) > _MAX_CITED_TITLE_CHARS
    shown_title = (
        section_title[: _MAX_CITED_TITLE_CHARS - 1].rstrip() + "…"
        if is_title_long
        else section_title
    )
    return f"{section_ref}: {shown_title}"


def _join_page_labels(page_labels: Sequence[str]) -> str:
    """Return `19–21`, the first and the last of printed page numbers."""
    # Two pages side by side have one label for both: `50–51`.
    first_label, last_label = page_labels[0].partition("–")[0], page_labels[-1].rpartition("–")[2]
    return first_label if first_label == last_label else f"{first_label}–{last_label}"
