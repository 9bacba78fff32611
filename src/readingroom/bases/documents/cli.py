"""`readingroom documents`: files of planning applications in, passages with their pages out."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

import click

from readingroom.bases.documents import SPEC
from readingroom.bases.documents.commands import (
    DescribeApplication,
    DropDocument,
    HandedFile,
    IngestFiles,
    ListApplications,
    ListDocuments,
    ReadDocument,
    SearchDocuments,
    ShowApplication,
)
from readingroom.bases.documents.models import (
    ApplicationOverview,
    DocumentType,
    FileOutcome,
    GetDocumentText,
    ListIngestedDocuments,
    RemoveDocument,
    SearchApplicationDocs,
    SetApplication,
)
from readingroom.console.completion import complete_with, run_quietly
from readingroom.console.layout import format_table, make_bold
from readingroom.console.options import (
    add_common_options,
    add_embedding_options,
    build_model,
    explain_interrupt,
    print_result,
    run_command,
    show_progress_bar,
)
from readingroom.core.modes import Mode
from readingroom.core.settings import RoomSettings
from readingroom.ingest.errors import FileNotFound
from readingroom.storage.handover import hand_over_file

_NO_DOCUMENTS_MESSAGE = "There are no documents yet: `readingroom documents ingest` brings them in."


def _list_application_references(
    settings: RoomSettings, typed_values: Mapping[str, Any]
) -> list[str]:
    listed_applications = run_quietly(ListApplications(), SPEC, settings)["applications"]
    return [listed_application["reference"] for listed_application in listed_applications]


def _list_document_ids(settings: RoomSettings, typed_values: Mapping[str, Any]) -> Iterator[str]:
    for application_ref in _list_application_references(settings, typed_values):
        arguments = build_model(ListIngestedDocuments, application_ref=application_ref)
        listing_answer = run_quietly(ListDocuments(question=arguments), SPEC, settings)
        yield from (document_entry["document_id"] for document_entry in listing_answer["documents"])


_complete_application_reference = complete_with(_list_application_references)
_add_document_argument = click.argument(
    "document_id", shell_complete=complete_with(_list_document_ids)
)
_add_application_option = click.option(
    "--application",
    "application_ref",
    metavar="REF",
    required=True,
    shell_complete=_complete_application_reference,
)
_document_type_choice = click.Choice(get_args(DocumentType))


@click.group()
def documents() -> None:
    """Documents of planning applications: ingest, search, read.

    A command runs here, or in the server that owns the data directory while one runs.
    """


@documents.command()
@click.argument("paths", metavar="FILE|FOLDER…", nargs=-1, required=True, type=click.Path())
@_add_application_option
@click.option(
    "--type",
    "document_type",
    type=_document_type_choice,
    help="Type of all of them [by name and text].",
)
@add_embedding_options
def ingest(paths: tuple[str, ...], settings: RoomSettings, as_json: bool, **values: Any) -> None:
    """Ingest files, or all files below folders, into the application REF.

    A file that cannot be read does not stop the others; the table at the end shows the outcome of
    each. Ends with 1 when one failed.
    """
    # Validated without its files first: a bad reference is refused before any file is copied.
    ingest_command = build_model(IngestFiles, files=[], **values)
    with ExitStack() as command_stack:
        command_stack.enter_context(
            explain_interrupt(
                "Documents that were in are kept: run the same command again to go on with the "
                "others"
            )
        )
        handed_files, outcomes_of_unreadable_files = _hand_over_all_files(paths, settings)
        show_progress = command_stack.enter_context(
            show_progress_bar(f"{len(handed_files)} files", as_json)
        )

        async def report_progress(
            done_count: float, total_count: float | None, step_message: str | None
        ) -> None:
            show_progress(round(100 * done_count), 100 * len(handed_files), step_message)

        ingest_report = run_command(
            ingest_command.model_copy(update={"files": handed_files}),
            SPEC,
            settings,
            report_progress,
        )
    ingest_report["files"] += [
        file_outcome.model_dump(mode="json") for file_outcome in outcomes_of_unreadable_files
    ]
    ingest_report["file_count"] += len(outcomes_of_unreadable_files)
    ingest_report["failed"] += len(outcomes_of_unreadable_files)
    print_result(as_json, ingest_report, _render_ingest_report(ingest_report))
    if ingest_report["failed"]:
        sys.exit(1)


@documents.command("list")
@click.option(
    "--application",
    "application_ref",
    metavar="REF",
    shell_complete=_complete_application_reference,
    help="Its documents.",
)
@add_common_options
def list_documents(application_ref: str | None, settings: RoomSettings, as_json: bool) -> None:
    """List the documents of an application, or every application."""
    if application_ref is None:
        listing_answer = run_command(ListApplications(), SPEC, settings)
        table_text = format_table(
            [
                (
                    make_bold(listed_application["reference"]),
                    str(listed_application["document_count"]),
                    listed_application["validation_date"] or "",
                )
                for listed_application in listing_answer["applications"]
            ],
            right_aligned_columns=[1],
        )
    else:
        arguments = build_model(ListIngestedDocuments, application_ref=application_ref)
        listing_answer = run_command(ListDocuments(question=arguments), SPEC, settings)
        table_rows = [
            (
                make_bold(document_entry["document_id"]),
                document_entry["document_type"],
                f"{document_entry['chunk_count']} chunks",
                f"{Path(document_entry['file_path']).name}{_describe_textless_pages(document_entry)}",
            )
            for document_entry in listing_answer["documents"]
        ]
        table_text = format_table(table_rows, right_aligned_columns=[2])
    print_result(as_json, listing_answer, table_text or _NO_DOCUMENTS_MESSAGE)


@documents.command()
@click.argument("query")
@click.option(
    "--application",
    "application_ref",
    metavar="REF",
    shell_complete=_complete_application_reference,
    help="Only in this application.",
)
@click.option(
    "--type", "document_types", type=_document_type_choice, multiple=True, help="May be repeated."
)
@click.option("--mode", type=click.Choice(get_args(Mode)), default="hybrid")
@click.option(
    "-n", "--limit", "max_results", default=5, show_default=True, help="How many passages."
)
@add_common_options
def search(query: str, settings: RoomSettings, as_json: bool, **values: Any) -> None:
    """Search the documents."""
    document_types = list(values.pop("document_types")) or None
    arguments = build_model(
        SearchApplicationDocs, query=query, document_types=document_types, **values
    )
    search_answer = run_command(SearchDocuments(question=arguments), SPEC, settings)
    printed_lines = [
        f"{make_bold(document_hit['citation'])}\n  {' '.join(document_hit['text'].split())}"
        for document_hit in search_answer["results"]
    ]
    if not printed_lines:
        has_no_documents = search_answer["empty_because"] == "no_documents"
        printed_lines = [
            _NO_DOCUMENTS_MESSAGE
            if has_no_documents
            else f"Nothing was found: {search_answer['empty_because']}."
        ]
    if search_answer["degraded"]:
        printed_lines.append(f"({search_answer['degraded']})")
    print_result(as_json, search_answer, "\n\n".join(printed_lines))


@documents.command()
@_add_document_argument
@click.option("--pages", help="Only these: 14, 14-16, 1,4-6.")
@add_common_options
def text(document_id: str, pages: str | None, settings: RoomSettings, as_json: bool) -> None:
    """Print a document's text."""
    arguments = build_model(GetDocumentText, document_id=document_id, pages=pages)
    text_answer = run_command(ReadDocument(question=arguments), SPEC, settings)
    print_result(as_json, text_answer, text_answer["text"])


@documents.command()
@_add_document_argument
@add_common_options
def remove(document_id: str, settings: RoomSettings, as_json: bool) -> None:
    """Remove a document with all its chunks."""
    arguments = build_model(RemoveDocument, document_id=document_id)
    removal_answer = run_command(DropDocument(question=arguments), SPEC, settings)
    print_result(
        as_json,
        removal_answer,
        f"Removed {removal_answer['document_id']}: {removal_answer['chunks_removed']} chunks.",
    )


@documents.command()
@click.argument("reference", metavar="REF", shell_complete=_complete_application_reference)
@click.option("--address")
@click.option("--description")
@click.option("--validated", "validation_date", help="The day it was validated, YYYY-MM-DD.")
@click.option("--status")
@click.option("--authority", "local_authority", help="Who decides it: its local plan applies.")
@add_common_options
def application(reference: str, settings: RoomSettings, as_json: bool, **values: Any) -> None:
    """Show the application REF; with options, first write them down ("" clears one)."""
    given_fields = {
        field_name: field_value
        for field_name, field_value in values.items()
        if field_value is not None
    }
    if given_fields:
        arguments = build_model(SetApplication, reference=reference, **given_fields)
        run_command(DescribeApplication(question=arguments), SPEC, settings)
    overview_arguments = build_model(ApplicationOverview, application_ref=reference)
    overview_answer = run_command(ShowApplication(question=overview_arguments), SPEC, settings)
    print_result(as_json, overview_answer, "\n".join(_iterate_overview_lines(overview_answer)))


def _hand_over_all_files(
    typed_paths: tuple[str, ...], settings: RoomSettings
) -> tuple[list[HandedFile], list[FileOutcome]]:
    """Hand over every file; return those, and the outcomes of those that cannot be read."""
    handed_files, outcomes_of_unreadable_files = [], []
    for file_name, file_path in _iterate_files_with_names(typed_paths):
        try:
            handed_copy_name = hand_over_file(settings.data / "documents", file_path)
            handed_files.append(HandedFile(name=file_name, copied=handed_copy_name))
        except (FileNotFoundError, PermissionError) as error:
            error_message = f"{file_path} cannot be read: {error.strerror}"
            error_code = FileNotFound.code
            outcomes_of_unreadable_files.append(
                FileOutcome(
                    file=file_name, status="error", error_type=error_code, message=error_message
                )
            )
    return handed_files, outcomes_of_unreadable_files


def _iterate_files_with_names(typed_paths: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """Yield every file with its path below the folder it was found in, except hidden ones."""
    for typed_path in map(Path, typed_paths):
        if not typed_path.is_dir():
            yield typed_path.name, typed_path
            continue
        for file_path in sorted(typed_path.rglob("*")):
            relative_path = file_path.relative_to(typed_path)
            # Hidden files are the system's (.DS_Store) or half written, and nobody submitted them.
            if file_path.is_file() and not any(
                path_part.startswith(".") for path_part in relative_path.parts
            ):
                yield str(relative_path), file_path


def _render_ingest_report(ingest_report: dict[str, Any]) -> str:
    table_rows = [
        (file_outcome["file"], file_outcome["status"], _describe_file_outcome(file_outcome))
        for file_outcome in ingest_report["files"]
    ]
    printed_lines = [format_table(table_rows)] if table_rows else []
    printed_lines.append(
        f"{ingest_report['file_count']} files: {ingest_report['ingested']} ingested, "
        f"{ingest_report['already_ingested']} were there, {ingest_report['skipped']} skipped, "
        f"{ingest_report['failed']} failed"
    )
    return "\n".join(printed_lines)


def _describe_file_outcome(file_outcome: dict[str, Any]) -> str:
    match file_outcome["status"]:
        case "success":
            textless_pages_note = _describe_textless_pages(file_outcome)
            chunk_count = file_outcome["chunks_created"]
            return f"{file_outcome['document_id']}, {chunk_count} chunks{textless_pages_note}"
        case "already_ingested":
            return str(file_outcome["document_id"])
        case "skipped":
            return str(file_outcome["reason"])
    return f"{file_outcome['error_type']}: {file_outcome['message']}"


def _describe_textless_pages(document_entry: dict[str, Any]) -> str:
    """Return a note on the pages that gave no text; "" where all did."""
    textless_page_count = len(document_entry["pages_without_text"])
    if not textless_page_count:
        return ""
    textless_pages_reason = document_entry.get("pages_without_text_reason")
    textless_pages_note = (
        f" ({textless_page_count} of {document_entry['page_count']} pages gave no text"
    )
    return (
        f"{textless_pages_note}: {textless_pages_reason})"
        if textless_pages_reason
        else f"{textless_pages_note})"
    )


def _iterate_overview_lines(overview_answer: dict[str, Any]) -> Iterator[str]:
    yield f"{overview_answer['application_ref']}: {overview_answer['document_count']} documents"
    for field_name, field_value in (overview_answer["application"] or {}).items():
        if field_value is not None and field_name not in ("reference", "updated_at"):
            yield f"  {field_name.replace('_', ' ')}: {field_value}"
    for type_entry in overview_answer["types"]:
        type_size_text = f"{type_entry['page_count']} pages, {type_entry['word_count']} words"
        yield f"{type_entry['document_type']}: {type_size_text}"
        for document_entry in type_entry["documents"]:
            textless_pages_note = _describe_textless_pages(document_entry)
            yield (
                f"  {document_entry['document_id']:<32} "
                f"{document_entry['source_file']}{textless_pages_note}"
            )
    for unread_file in overview_answer["not_ingested"]:
        yield f"not ingested: {unread_file['source_file']} ({unread_file['reason']})"
    if overview_answer["missing_types"]:
        yield f"missing: {', '.join(overview_answer['missing_types'])}"
