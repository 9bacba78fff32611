"""`readingroom policy`: register policies and revisions, and look at what is in force."""

import sys
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import click

from readingroom.bases.policy import SPEC
from readingroom.bases.policy.admin.import_list import prepare_import
from readingroom.bases.policy.admin.printing import (
    format_filled_fields,
    format_import_summary,
    format_listed_section,
    format_search_answer,
    format_section_change,
    format_version_label,
    list_cautions,
)
from readingroom.bases.policy.admin_models import NewPolicy, NewRevision, PolicyPatch, RevisionPatch
from readingroom.bases.policy.commands import (
    AddPolicy,
    ChangePolicy,
    ChangeRevision,
    CompareRevisions,
    DeletePolicy,
    DeleteRevision,
    EffectiveOn,
    ImportPolicies,
    ListPolicies,
    ListSections,
    ReadSection,
    ReingestRevision,
    RevisePolicy,
    SearchPolicies,
    ShowPolicy,
    TakeSnapshot,
    VerifyQuote,
)
from readingroom.bases.policy.ingest.files import choose_file_extension
from readingroom.bases.policy.models import (
    ComparePolicyRevisions,
    GetPolicySection,
    ListPolicySections,
    PolicySnapshot,
    SearchPolicy,
    VerifyPolicyQuote,
)
from readingroom.bases.policy.registry.records import PlanStage, PolicyCategory
from readingroom.console.completion import complete_with, run_quietly
from readingroom.console.layout import format_table, make_bold
from readingroom.console.options import (
    add_common_options,
    add_embedding_options,
    build_model,
    explain_interrupt,
    print_result,
    run_command,
)
from readingroom.core.dates import parse_day
from readingroom.core.modes import Mode
from readingroom.core.settings import RoomSettings
from readingroom.storage.handover import hand_over_file

_NO_POLICIES_YET = "There are no policies yet: `readingroom policy add` registers one."


def _list_policy_slugs(settings: RoomSettings, typed_values: Mapping[str, Any]) -> list[str]:
    return [policy["source"] for policy in run_quietly(ListPolicies(), SPEC, settings)["policies"]]


def _list_revision_ids(settings: RoomSettings, typed_values: Mapping[str, Any]) -> list[str]:
    policy_fields = run_quietly(
        build_model(ShowPolicy, source=typed_values["source"]), SPEC, settings
    )
    return [revision["revision_id"] for revision in policy_fields["revisions"]]


def _list_section_refs(settings: RoomSettings, typed_values: Mapping[str, Any]) -> list[str]:
    arguments = build_model(ListPolicySections, source=typed_values["source"])
    listed_sections = run_quietly(ListSections(question=arguments), SPEC, settings)["sections"]
    return [listed_section["section_ref"] for listed_section in listed_sections]


_add_source_argument = click.argument("source", shell_complete=complete_with(_list_policy_slugs))
_add_id_argument = click.argument("revision_id", shell_complete=complete_with(_list_revision_ids))
_category_choice = click.Choice([str(category) for category in PolicyCategory])


def _add_revision_options(command_function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that choose a revision: by its id, or by a day."""
    add_day_option = click.option("--on", "date", help="The revision in force on this day.")
    add_id_option = click.option(
        "--revision",
        "revision_id",
        shell_complete=complete_with(_list_revision_ids),
        help="A revision; by default today's.",
    )
    return add_id_option(add_day_option(command_function))


@click.group()
def policy() -> None:
    """Policies and their revisions: what was in force on a day.

    A command runs here, or in the server that owns the data directory while one runs.
    """


@policy.command()
@click.argument("source")
@click.option("--title", required=True)
@click.option("--category", type=_category_choice, required=True)
@click.option("--description")
@click.option("--authority", "local_authority", help="Whose policy it is; several by semicolons.")
@click.option("--area", help="The area that it covers.")
@click.option("--successors", "successor_authorities", help="Authorities that took its place.")
@add_common_options
def add(source: str, settings: RoomSettings, as_json: bool, **options: Any) -> None:
    """Register a policy under the slug SOURCE, such as NPPF."""
    category = PolicyCategory(options.pop("category"))
    new_policy = build_model(NewPolicy, source=source, category=category, **options)
    policy_fields = run_command(AddPolicy(policy=new_policy), SPEC, settings)
    print_result(
        as_json,
        policy_fields,
        f"Added {source}. Add its text: readingroom policy revise {source} FILE",
    )


@policy.command()
@_add_source_argument
@click.option("--title")
@click.option("--category", type=_category_choice)
@click.option("--description")
@click.option("--authority", "local_authority", help="Whose policy it is; several by semicolons.")
@click.option("--area", help="The area that it covers.")
@click.option("--successors", "successor_authorities", help="Authorities that took its place.")
@add_common_options
def change(source: str, settings: RoomSettings, as_json: bool, **options: str | None) -> None:
    """Change what is known of SOURCE; "" clears a description, an authority or an area."""
    changed_values = {
        field_name: field_value or None
        for field_name, field_value in options.items()
        if field_value is not None
    }
    if not changed_values:
        raise click.UsageError("Name what to change, such as --authority")
    policy_patch = build_model(PolicyPatch, **changed_values)
    command = build_model(ChangePolicy, source=source, patch=policy_patch)
    policy_fields = run_command(command, SPEC, settings)
    filled_field_lines = format_filled_fields(policy_fields, options)
    print_result(as_json, policy_fields, "\n".join([make_bold(source), *filled_field_lines]))


@policy.command()
@_add_source_argument
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--label", required=True, help='Label of this revision, for example "December 2024".')
@click.option("--from", "start", required=True, help="First day in force, YYYY-MM-DD.")
@click.option("--to", "end", help="Last day in force; leave it out for a revision that still is.")
@click.option("--notes")
@click.option(
    "--stage",
    type=click.Choice(get_args(PlanStage)),
    help="Of a plan that is not adopted yet: it is never in force.",
)
@add_embedding_options
def revise(source: str, file: Path, settings: RoomSettings, as_json: bool, **options: Any) -> None:
    """Add a revision of SOURCE from FILE and wait until it can be searched.

    FILE is a PDF, or a .docx, .md or .html whose headings tell its sections.
    """
    new_revision = _build_new_revision(
        options["label"], options["start"], options["end"], options["notes"], options["stage"]
    )
    handed_over_name = hand_over_file(settings.data / "policy", file)
    command = build_model(
        RevisePolicy,
        source=source,
        revision=new_revision,
        file=handed_over_name,
        extension=choose_file_extension(file.name),
    )
    ingested_fields = run_command(command, SPEC, settings)
    summary_line = (
        f"{ingested_fields['revision_id']}: {ingested_fields['chunks_created']} chunks, "
        f"{ingested_fields['page_count']} pages"
    )
    print_result(as_json, ingested_fields, summary_line)


@policy.command("list")
@add_common_options
def list_policies(settings: RoomSettings, as_json: bool) -> None:
    """List every policy with the revision in force today."""
    policies_answer = run_command(ListPolicies(), SPEC, settings)
    table_rows = [
        (
            make_bold(policy["source"]),
            format_version_label(policy["current_revision"]),
            policy["title"],
        )
        for policy in policies_answer["policies"]
    ]
    print_result(as_json, policies_answer, format_table(table_rows) or _NO_POLICIES_YET)


@policy.command()
@_add_source_argument
@add_common_options
def show(source: str, settings: RoomSettings, as_json: bool) -> None:
    """Show a policy and its revisions, newest first."""
    policy_fields = run_command(build_model(ShowPolicy, source=source), SPEC, settings)
    bold_slug = make_bold(policy_fields["source"])
    heading_line = f"{bold_slug}: {policy_fields['title']} ({policy_fields['category']})"
    table_rows = [
        (
            f"  {revision['revision_id']}",
            f"{revision['effective_from']} – {revision['effective_to'] or ''}".rstrip(),
            revision["status"],
            f"{revision['chunk_count']} chunks",
            revision["version_label"],
        )
        for revision in policy_fields["revisions"]
    ]
    print_result(as_json, policy_fields, f"{heading_line}\n{format_table(table_rows)}".rstrip())


@policy.command()
@click.argument("day")
@add_common_options
def effective(day: str, settings: RoomSettings, as_json: bool) -> None:
    """Tell which revision of every policy was in force on DAY (YYYY-MM-DD)."""
    policies_answer = run_command(EffectiveOn(day=day), SPEC, settings)
    table_rows = [
        (make_bold(policy["source"]), format_version_label(policy["effective_revision"]))
        for policy in policies_answer["policies"]
    ]
    slugs_without_revision = [
        *policies_answer["policies_not_yet_effective"],
        *policies_answer["policies_with_no_revision_for_date"],
    ]
    table_rows += [
        (make_bold(slug_without_revision), "–") for slug_without_revision in slugs_without_revision
    ]
    printed_lines = [format_table(table_rows) or _NO_POLICIES_YET, *list_cautions(policies_answer)]
    print_result(as_json, policies_answer, "\n".join(printed_lines))


@policy.command()
@click.argument("query")
@click.option("--on", "day", help="Only revisions in force on this day.")
@click.option(
    "--source",
    "sources",
    multiple=True,
    shell_complete=complete_with(_list_policy_slugs),
    help="Only this policy; may be repeated.",
)
@click.option("--mode", type=click.Choice(get_args(Mode)), default="hybrid")
@click.option("--authority", "local_authority", help="Only what applies where it decides.")
@click.option("--include-emerging", is_flag=True, help="Also plans that are not adopted yet.")
@click.option("-n", "--limit", "n_results", default=5, show_default=True, help="How many passages.")
@add_common_options
def search(query: str, settings: RoomSettings, as_json: bool, **options: Any) -> None:
    """Search the policies."""
    policy_slugs = list(options.pop("sources")) or None
    options["effective_date"] = options.pop("day")
    arguments = build_model(SearchPolicy, query=query, sources=policy_slugs, **options)
    search_answer = run_command(SearchPolicies(question=arguments), SPEC, settings)
    printed_lines = format_search_answer(search_answer)
    if not printed_lines:
        has_no_policies = not run_command(ListPolicies(), SPEC, settings)["policies"]
        printed_lines = [_NO_POLICIES_YET if has_no_policies else "Nothing was found."]
    if search_answer["degraded"]:
        printed_lines.append(f"({search_answer['degraded']})")
    printed_lines += list_cautions(search_answer)
    print_result(as_json, search_answer, "\n\n".join(printed_lines))


@policy.command()
@_add_source_argument
@click.argument("section_ref", shell_complete=complete_with(_list_section_refs))
@_add_revision_options
@add_common_options
def section(
    source: str, section_ref: str, settings: RoomSettings, as_json: bool, **options: str | None
) -> None:
    """Read one section of SOURCE, such as "Para 116"."""
    arguments = build_model(GetPolicySection, source=source, section_ref=section_ref, **options)
    section_fields = run_command(ReadSection(question=arguments), SPEC, settings)
    citation, section_text = make_bold(section_fields["citation"]), section_fields["text"]
    printed_parts = [citation, section_text, *list_cautions(section_fields)]
    print_result(as_json, section_fields, "\n\n".join(printed_parts))


@policy.command()
@_add_source_argument
@_add_revision_options
@add_common_options
def sections(source: str, settings: RoomSettings, as_json: bool, **options: str | None) -> None:
    """List the sections of SOURCE with their titles and pages."""
    arguments = build_model(ListPolicySections, source=source, **options)
    sections_answer = run_command(ListSections(question=arguments), SPEC, settings)
    printed_lines = [
        format_listed_section(listed_section) for listed_section in sections_answer["sections"]
    ]
    heading_line = (
        f"{source} ({sections_answer['version_label']}), "
        f"{sections_answer['section_count']} sections"
    )
    print_result(as_json, sections_answer, "\n".join([heading_line, *printed_lines]))


@policy.command()
@_add_source_argument
@click.argument("from_date")
@click.argument("to_date")
@click.option("--section", "section_ref", help="Only this section and those in it.")
@click.option("-n", "--limit", default=20, show_default=True, help="How many changes.")
@click.option("--cursor", help="The page after this one.")
@add_common_options
def compare(source: str, settings: RoomSettings, as_json: bool, **options: Any) -> None:
    """Show what changed in SOURCE between FROM_DATE and TO_DATE."""
    arguments = build_model(ComparePolicyRevisions, source=source, **options)
    comparison_answer = run_command(CompareRevisions(question=arguments), SPEC, settings)
    summary_line = ", ".join(
        f"{change_count} {change_kind.replace('_', ' but ')}"
        for change_kind, change_count in comparison_answer["summary"].items()
    )
    from_label = comparison_answer["from_revision"]["version_label"]
    to_label = comparison_answer["to_revision"]["version_label"]
    printed_lines = [f"{from_label} → {to_label}: {summary_line}"]
    printed_lines += map(format_section_change, comparison_answer["changes"])
    if comparison_answer["next_cursor"]:
        printed_lines.append(f"More: --cursor {comparison_answer['next_cursor']}")
    printed_lines += list_cautions(comparison_answer)
    print_result(as_json, comparison_answer, "\n\n".join(printed_lines))


@policy.command()
@_add_source_argument
@click.argument("quote")
@click.option("--on", "date", required=True, help="The day it is cited for, YYYY-MM-DD.")
@add_common_options
def verify(source: str, quote: str, date: str, settings: RoomSettings, as_json: bool) -> None:
    """Check whether SOURCE says QUOTE on a day. Ends with 1 when it does not."""
    arguments = build_model(VerifyPolicyQuote, source=source, quote=quote, date=date)
    quote_answer = run_command(VerifyQuote(question=arguments), SPEC, settings)
    printed_lines = [
        quote_answer["verdict"],
        *(quote_place["citation"] for quote_place in quote_answer["found"]),
    ]
    if quote_answer["nearest"]:
        printed_lines.append(f"The nearest words: {quote_answer['nearest']['text']}")
    printed_lines += list_cautions(quote_answer)
    print_result(as_json, quote_answer, "\n".join(printed_lines))
    sys.exit(0 if quote_answer["verdict"] == "verified" else 1)


@policy.command()
@click.argument("day")
@add_common_options
def snapshot(day: str, settings: RoomSettings, as_json: bool) -> None:
    """Show every policy with its revision in force on DAY, or why it has none."""
    arguments = build_model(PolicySnapshot, date=day)
    snapshot_fields = run_command(TakeSnapshot(question=arguments), SPEC, settings)
    table_rows = [
        (
            make_bold(snapshot_entry["source"]),
            format_version_label(snapshot_entry["revision"])
            if snapshot_entry["revision"]
            else snapshot_entry["reason"] or "",
        )
        for snapshot_entry in snapshot_fields["policies"]
    ]
    caution_lines = chain.from_iterable(map(list_cautions, snapshot_fields["policies"]))
    table_text = format_table(table_rows) or _NO_POLICIES_YET
    print_result(as_json, snapshot_fields, "\n".join([table_text, *caution_lines]))


@policy.command()
@_add_source_argument
@_add_id_argument
@click.option("--from", "start", help="First day in force, YYYY-MM-DD.")
@click.option("--to", "end", help='Last day in force; "open" for a revision that still is.')
@click.option("--label", "version_label", help="Its label.")
@click.option("--notes")
@add_common_options
def dates(
    source: str, revision_id: str, settings: RoomSettings, as_json: bool, **options: str | None
) -> None:
    """Change the days, the label or the notes of a revision."""
    first_day_text, last_day_text = options.pop("start"), options.pop("end")
    changed_values: dict[str, Any] = {
        field_name: field_value
        for field_name, field_value in options.items()
        if field_value is not None
    }
    if first_day_text is not None:
        changed_values["effective_from"] = parse_day(first_day_text)
    if last_day_text is not None:
        changed_values["effective_to"] = (
            None if last_day_text == "open" else parse_day(last_day_text)
        )
    revision_patch = build_model(RevisionPatch, **changed_values)
    command = ChangeRevision(source=source, revision_id=revision_id, patch=revision_patch)
    revision_fields = run_command(command, SPEC, settings)
    period_text = f"{revision_fields['effective_from']} – {revision_fields['effective_to'] or ''}"
    print_result(
        as_json, revision_fields, f"{revision_id}: {period_text} {revision_fields['version_label']}"
    )


@policy.command()
@_add_source_argument
@_add_id_argument
@add_common_options
def delete(source: str, revision_id: str, settings: RoomSettings, as_json: bool) -> None:
    """Delete a revision of SOURCE, its text and its file."""
    delete_command = build_model(DeleteRevision, source=source, revision_id=revision_id)
    deletion = run_command(delete_command, SPEC, settings)
    print_result(as_json, deletion, f"Deleted {revision_id}, {deletion['chunks_removed']} chunks.")


@policy.command("delete-policy")
@_add_source_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@add_common_options
def delete_policy(source: str, yes: bool, settings: RoomSettings, as_json: bool) -> None:
    """Delete SOURCE with all its revisions, their texts and their files."""
    policy_fields = run_command(build_model(ShowPolicy, source=source), SPEC, settings)
    if not yes:
        revision_count = policy_fields["revision_count"]
        confirmation_text = f"Delete {policy_fields['title']!r} and its {revision_count} revisions?"
        click.confirm(confirmation_text, abort=True, err=True)
    deletion = run_command(build_model(DeletePolicy, source=source), SPEC, settings)
    summary_line = f"{deletion['revisions_removed']} revisions, {deletion['chunks_removed']} chunks"
    print_result(as_json, deletion, f"Deleted {source}: {summary_line}.")


@policy.command()
@_add_source_argument
@_add_id_argument
@add_embedding_options
def reindex(source: str, revision_id: str, settings: RoomSettings, as_json: bool) -> None:
    """Read the file of a revision again and wait until it can be searched."""
    reindex_command = build_model(ReingestRevision, source=source, revision_id=revision_id)
    ingested_fields = run_command(reindex_command, SPEC, settings)
    chunk_count, page_count = ingested_fields["chunks_created"], ingested_fields["page_count"]
    summary_line = f"{revision_id}: {chunk_count} chunks, {page_count} pages"
    print_result(as_json, ingested_fields, summary_line)


@policy.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@add_embedding_options
def import_policies(file: Path, settings: RoomSettings, as_json: bool) -> None:
    """Add policies and revisions in bulk from a JSON FILE; what is there already is left alone.

    A revision that was cut off is finished, one that failed before is tried again with the file
    named now. Ends with 1 when one failed.

    \b
      {"policies": [{"source": "NPPF", "title": "…", "category": "national_policy",
        "revisions": [{"file": "nppf.pdf", "version_label": "December 2024",
                       "effective_from": "2024-12-12"}]}]}

    Paths are relative to FILE.
    """
    with explain_interrupt("What was in is kept: run the same command again to go on"):
        imported_policies, failure_messages = prepare_import(file, settings)
        import_report = run_command(ImportPolicies(policies=imported_policies), SPEC, settings)
    import_report["failed"] += failure_messages
    summary_line = format_import_summary(import_report)
    output_lines = [summary_line, *(f"Failed: {failure}" for failure in import_report["failed"])]
    print_result(as_json, import_report, "\n".join(output_lines))
    sys.exit(1 if import_report["failed"] else 0)


def _build_new_revision(
    version_label: str,
    first_day_text: str,
    last_day_text: str | None,
    revision_notes: str | None,
    draft_plan_stage: str | None,
) -> NewRevision:
    return build_model(
        NewRevision,
        version_label=version_label,
        effective_from=parse_day(first_day_text),
        effective_to=parse_day(last_day_text) if last_day_text else None,
        notes=revision_notes,
        stage=draft_plan_stage,
    )
