"""Two revisions of a policy side by side: a map of where the changes lie, then each of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import get_args
from urllib.parse import quote, urlencode

import anyio.to_thread

from readingroom.bases.policy.compare.diffs import (
    ChangeName,
    count_changes,
    find_change_name,
    make_revision_diff,
)
from readingroom.bases.policy.compare.likeness import SectionPair
from readingroom.bases.policy.compare.pairing import PairedRevisions
from readingroom.bases.policy.models import ComparePolicyRevisions, RevisionDiff
from readingroom.bases.policy.pages.periods import describe_period
from readingroom.bases.policy.pages.reading import make_page_address
from readingroom.bases.policy.pages.sections import make_history_address, make_section_address
from readingroom.bases.policy.service import PolicyService
from readingroom.core.errors import validate_model
from readingroom.protocol.pages import PageRequest, RenderedPage, ToolExample
from readingroom.protocol.search import describe_unread_revisions
from readingroom.web.templates import format_count, render_template

_render = partial(render_template, template_folder=Path(__file__).parent / "templates")

_CHANGES_PER_PAGE = 40
_MAX_MAP_CELLS = 2000
"""Of the map: a longer text has only the cells of sections that changed."""
_NO_CHANGE_NAME = "unchanged"
_LABEL_BY_CHANGE_NAME: Mapping[str, str] = {
    "changed": "reworded",
    "added": "new",
    "removed": "gone",
    "moved": "another number",
    _NO_CHANGE_NAME: "unchanged",
}


@dataclass(frozen=True, slots=True)
class _MapCell:
    """A section on the map of changes."""

    section_ref: str
    change: str
    """`changed`, `added`, `removed`, `moved` or `unchanged`: a class of the style sheet."""
    href: str | None


class ComparisonPages:
    """The page that compares two revisions."""

    def __init__(self, policy_service: PolicyService) -> None:
        self._service = policy_service

    async def show_comparison(self, request: PageRequest) -> RenderedPage:
        """Return two revisions side by side, section by section.

        Raise PolicyNotFound, RevisionNotFound, SectionNotFound and InvalidCursor.
        """
        policy_slug = request.get_parameter("source")
        argument_values = {
            "source": policy_slug,
            "from_date": request.get_parameter("from"),
            "to_date": request.get_parameter("to"),
            "section_ref": request.get_parameter("section") or None,
            "cursor": request.get_parameter("cursor") or None,
        }
        valid_arguments = validate_model(
            ComparePolicyRevisions, {**argument_values, "limit": _CHANGES_PER_PAGE}
        )
        shown_change_name = (
            request.get_parameter("only")
            if request.get_parameter("only") in get_args(ChangeName)
            else ""
        )
        shows_whole_texts = request.get_parameter("whole") == "yes"
        paired_revisions = await self._service.pair_revisions(valid_arguments)
        # Diffs are slow on long texts, so they must not block the event loop.
        revision_diff = await anyio.to_thread.run_sync(
            _diff_revisions, valid_arguments, paired_revisions, shown_change_name, shows_whole_texts
        )
        map_cells = _make_map_cells(request, paired_revisions.section_pairs, revision_diff)
        body_html = _render(
            "compare.html",
            diff=revision_diff,
            summary=_describe_diff(revision_diff),
            cells=map_cells,
            cell_counts=Counter(map_cell.change for map_cell in map_cells),
            labels=_LABEL_BY_CHANGE_NAME,
            shown=shown_change_name,
            section=request.get_parameter("section"),
            shows_whole_texts=shows_whole_texts,
            make_address=partial(_make_comparison_address, request),
            make_change_address=partial(_make_section_or_page_address, policy_slug),
            make_history_address=partial(make_history_address, policy_slug),
            caution=describe_unread_revisions(revision_diff.unread_revisions),
            from_date=valid_arguments.from_date,
            to_date=valid_arguments.to_date,
        )
        old_revision, new_revision = revision_diff.from_revision, revision_diff.to_revision
        example_arguments = {
            parameter_name: parameter_value
            for parameter_name, parameter_value in argument_values.items()
            if parameter_value
        }
        return RenderedPage(
            f"{policy_slug}: {old_revision.version_label} and {new_revision.version_label}",
            body_html,
            data=revision_diff,
            tool_example=ToolExample("compare_policy_revisions", example_arguments),
            print_note=" ".join(
                f"{revision.version_label}: "
                f"{describe_period(revision.effective_from, revision.effective_to)}"
                for revision in (old_revision, new_revision)
            ),
        )


def _diff_revisions(
    arguments: ComparePolicyRevisions,
    paired_revisions: PairedRevisions,
    shown_change_name: str,
    shows_whole_texts: bool,
) -> RevisionDiff:
    """Return a page of the changes of one kind, or of all, with the counts of all of them."""
    all_section_pairs = paired_revisions.section_pairs
    shown_section_pairs = [
        section_pair
        for section_pair in all_section_pairs
        if shown_change_name in ("", find_change_name(section_pair))
    ]
    revision_diff = make_revision_diff(
        arguments,
        shown_section_pairs,
        paired_revisions.old_revision,
        paired_revisions.new_revision,
        shows_whole_texts,
    )
    change_summary = count_changes(all_section_pairs)
    return revision_diff.model_copy(
        update={
            "sections_compared": len(all_section_pairs),
            "sections_unchanged": change_summary.unchanged,
            "summary": change_summary,
            "unread_revisions": paired_revisions.unread_revisions,
        }
    )


def _make_map_cells(
    request: PageRequest, section_pairs: Sequence[SectionPair], revision_diff: RevisionDiff
) -> list[_MapCell]:
    """Return a cell for each section, in reading order; each that changed leads to its change."""
    change_number_by_refs = {
        (section_change.from_section_ref, section_change.to_section_ref): change_number
        for change_number, section_change in enumerate(revision_diff.changes, 1)
    }
    map_cells = []
    for section_pair in section_pairs:
        change_name = find_change_name(section_pair)
        if change_name is None and len(section_pairs) > _MAX_MAP_CELLS:
            continue
        old_ref = section_pair.old_section.ref if section_pair.old_section else None
        new_ref = section_pair.new_section.ref if section_pair.new_section else None
        section_ref = new_ref or old_ref or ""
        change_number = change_number_by_refs.get((old_ref, new_ref))
        change_href = None
        if change_name and change_number:
            change_href = f"#change-{change_number}"
        elif change_name and section_ref:
            # On another page, or left out by what is shown.
            change_href = _make_comparison_address(request, section=section_ref, only="", cursor="")
        map_cells.append(
            _MapCell(
                section_ref or "Before the first section",
                change_name or _NO_CHANGE_NAME,
                change_href,
            )
        )
    return map_cells[:_MAX_MAP_CELLS]


def _make_comparison_address(request: PageRequest, **changed_parameter_values: str) -> str:
    """Return the address of this page with some of its parameters changed; empty ones go."""
    parameter_names = ("from", "to", "section", "only", "whole", "cursor")
    parameter_values = {
        parameter_name: request.get_parameter(parameter_name) for parameter_name in parameter_names
    } | changed_parameter_values
    non_empty_values = {
        parameter_name: parameter_value
        for parameter_name, parameter_value in parameter_values.items()
        if parameter_value
    }
    url_encoded_slug = quote(request.get_parameter("source"), safe="")
    return f"/policies/{url_encoded_slug}/compare?{urlencode(non_empty_values)}"


def _make_section_or_page_address(
    policy_slug: str, revision_id: str, section_ref: str | None, page_number: int
) -> str:
    """Return the address of a section; of what stands before the first one, that of its page."""
    if section_ref:
        return make_section_address(policy_slug, revision_id, section_ref)
    return make_page_address(policy_slug, revision_id, page_number)


def _describe_diff(revision_diff: RevisionDiff) -> str:
    change_summary = revision_diff.summary
    # A section that moved may be reworded too: it counts once, as what a reader has to read.
    count_by_label = {
        "with another number only": change_summary.moved_unchanged,
        "reworded": change_summary.reworded + change_summary.moved - change_summary.moved_unchanged,
        "new": change_summary.added,
        "gone": change_summary.removed,
    }
    summary_parts = [f"{revision_diff.sections_unchanged} unchanged"]
    summary_parts += [
        f"{change_count} {change_label}"
        for change_label, change_count in count_by_label.items()
        if change_count
    ]
    section_count_text = format_count(revision_diff.sections_compared, "section")
    return f"{section_count_text}: {', '.join(summary_parts)}."
