"""What the policy commands print for people: sections, changes and labels as lines."""

from collections.abc import Iterable, Mapping
from typing import Any

from readingroom.bases.policy.registry.records import format_section_name
from readingroom.console.layout import make_bold
from readingroom.protocol.search import UnreadRevision, make_unread_cautions


def format_listed_section(listed_section: dict[str, Any]) -> str:
    """Return `Policy LP5: Meeting Housing Need, p. 20 (printed 18)`."""
    section_name = format_section_name(
        listed_section["section_ref"], listed_section["section_title"]
    )
    page_number_text, printed_page = (
        str(listed_section["page_number"]),
        listed_section["printed_page"],
    )
    printed_page_note = (
        f" (printed {printed_page})" if printed_page not in (None, page_number_text) else ""
    )
    return f"{section_name}, p. {page_number_text}{printed_page_note}"


def format_section_change(section_change: dict[str, Any]) -> str:
    """Return a change for people: what happened to which section, and the words."""
    templates_by_operation = {"delete": "[-{}-]", "insert": "{{+{}+}}", "equal": "{}"}
    old_and_new_refs = [section_change["from_section_ref"], section_change["to_section_ref"]]
    joined_refs_text = " → ".join(dict.fromkeys(filter(None, old_and_new_refs)))
    section_name = format_section_name(joined_refs_text, section_change["section_title"])
    marked_text = " ".join(
        templates_by_operation[diff_part["op"]].format(diff_part["text"])
        for diff_part in section_change["diff"]
    )
    return f"{section_name}: {section_change['kind']}\n  {marked_text}".rstrip()


def format_import_summary(import_report: Mapping[str, Any]) -> str:
    """Return how many policies and revisions an import added, took up again and found there."""
    taken_up_count = len(import_report["taken_up_again"])
    return (
        f"Added {len(import_report['policies_added'])} policies and "
        f"{len(import_report['revisions_added'])} revisions; "
        + (f"{taken_up_count} taken up again; " if taken_up_count else "")
        + f"{len(import_report['already_there'])} were there already."
    )


def format_filled_fields(policy_fields: Mapping[str, Any], field_names: Iterable[str]) -> list[str]:
    """Return a line for each of these fields that is not empty: `  local authority: Fenland`."""
    return [
        f"  {field_name.replace('_', ' ')}: {policy_fields[field_name]}"
        for field_name in field_names
        if policy_fields[field_name] is not None
    ]


def format_search_answer(search_answer: Mapping[str, Any]) -> list[str]:
    """Return the passages of a search, each under its citation, then what was left out."""
    cited_passage_texts = [
        f"{make_bold(hit['citation'])}\n  {' '.join(hit['text'].split())}"
        for hit in search_answer["results"]
    ]
    exclusion_lines = [
        f"({policy_exclusion['source']}: {policy_exclusion['reason']})"
        for policy_exclusion in search_answer["excluded"]
    ]
    return cited_passage_texts + exclusion_lines


def list_cautions(answer_fields: Mapping[str, Any]) -> list[str]:
    """Return a line for each policy of which a revision could not be read: `(NPPF: …)`."""
    unread_revisions = map(UnreadRevision.model_validate, answer_fields.get("unread_revisions", ()))
    return [
        f"({policy_slug}: {caution_text})"
        for policy_slug, caution_text in make_unread_cautions([*unread_revisions]).items()
    ]


def format_version_label(revision_fields: dict[str, Any] | None) -> str:
    return revision_fields["version_label"] if revision_fields else "–"
