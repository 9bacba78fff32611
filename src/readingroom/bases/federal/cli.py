"""`readingroom federal`: load official bulk files, and show how far each source has come."""

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click

from readingroom.bases.federal import store
from readingroom.bases.federal.errors import LoadFailed
from readingroom.bases.federal.load import completeness, loading
from readingroom.bases.federal.load.bulk import Hosts
from readingroom.bases.federal.load.loading import LoadSummary
from readingroom.bases.federal.load.sync import sync as sync_source
from readingroom.bases.federal.query.changes import read_change_page
from readingroom.bases.federal.schema.sources import SOURCES, Source, get_source, is_source_name
from readingroom.bases.federal.search import vectors
from readingroom.bases.federal.settings import FederalSettings
from readingroom.console.completion import complete_with
from readingroom.console.layout import format_table
from readingroom.console.options import (
    add_common_options,
    add_embedding_options,
    explain_interrupt,
    make_tenths_printer,
    print_result,
    show_progress_bar,
)
from readingroom.core.dates import parse_day
from readingroom.core.settings import RoomSettings
from readingroom.engine.embedding.shared import get_shared_embedder

_MAX_NAMED_FILES = 20  # files that are named when they could not be loaded
_FILES_KEPT_SENTENCE = (
    "Files that were in are kept: run the same command again to go on with the others"
)
_FORMATS_HINT = "Which formats are read: `readingroom federal load --help`, docs/federal.md"


def _list_source_names(settings: RoomSettings, typed_arguments: Mapping[str, Any]) -> list[str]:
    return [record_source.name for record_source in SOURCES]


@click.group()
def federal() -> None:
    """Federal records: bills, people, votes, laws and rules.

    Loading beside a running server is fine: it answers from what was there until a file is in.
    """


@federal.command("load")
@click.argument("paths", nargs=-1, required=True, metavar="[SOURCE] PATH…")
@add_common_options
def load_files(paths: tuple[str, ...], settings: FederalSettings, as_json: bool) -> None:
    """Load files, folders and zips of official bulk data; the format is sniffed.

    \b
      readingroom federal load congress-legislators/ BILLSTATUS-119-hr.zip
      readingroom federal load bills BILLSTATUS-119-hr.zip

    A folder with the name of a source is written `./bills`, if other paths follow.
    A file that is in already is passed over; one that cannot be read, or is in none of these
    formats, is reported and skipped. With nothing to load at all the command ends with 1.

    \b
      congress-legislators YAML: people, committees, rosters, offices
      BILLSTATUS XML; bill texts, public laws, statute compilations, CFR volumes and
        Federal Register issues in USLM XML; Federal Register documents in JSON
      Congressional Record: CREC-*.htm with mods.xml; committee reports: CRPT-*.htm
      api.congress.gov JSON: CRS reports, committee reports, meetings, hearings
      CBO cost estimates XML; House Clerk and Senate LIS votes XML
      docs.house.gov XML: meetings and witnesses; lda.senate.gov JSON: filings
      Regulations.gov JSON: dockets; SAP YAML with its PDFs
    """

    only_source, file_paths = _split_source_and_files(paths)
    records_place = _prepare_records(settings)
    with (
        explain_interrupt(_FILES_KEPT_SENTENCE),
        show_progress_bar("Loading", as_json) as report_progress,
    ):
        load_summary = loading.load(records_place, file_paths, only_source, report_progress)
    _print_summary(load_summary, only_source, as_json)


@federal.command()
@click.argument("paths", nargs=-1, required=True, metavar="[SOURCE] PATH…")
@click.option(
    "--even-most",
    is_flag=True,
    help="Believe a file that leaves out most of what an older one had.",
)
@add_common_options
def update(
    paths: tuple[str, ...], even_most: bool, settings: FederalSettings, as_json: bool
) -> None:
    """Apply newer bulk files over older ones and say what changed.

    What a file should hold and no longer does is withdrawn: a seat on a roster, a document of an
    issue, a file of a zip. Its id then answers 410, with its successor where one is known.
    """

    only_source, file_paths = _split_source_and_files(paths)
    records_place = _prepare_records(settings)
    with (
        explain_interrupt(_FILES_KEPT_SENTENCE),
        show_progress_bar("Updating", as_json) as report_progress,
    ):
        update_summary = loading.update(
            records_place,
            file_paths,
            only_source,
            report_progress,
            may_drop_most=even_most,
        )
    _print_summary(update_summary, only_source, as_json)


@federal.command()
@click.option("--since", required=True, metavar="DATE", help="Loaded on this day (UTC) or later.")
@click.option(
    "--source", shell_complete=complete_with(_list_source_names), help="Of this source alone."
)
@click.option("--limit", default=200, show_default=True, type=click.IntRange(1, 10_000))
@add_common_options
def changes(
    since: str, source: str | None, limit: int, settings: FederalSettings, as_json: bool
) -> None:
    """List what came, changed or was withdrawn since a day, each record once, oldest first."""

    since_day_text = parse_day(since).isoformat()
    only_source = get_source(source) if source else None
    with _open_store_reader(settings) as federal_store:
        change_rows, _, has_more = federal_store.query_now(
            lambda db: read_change_page(db, since_day_text, only_source, None, limit, 0)
        )
    table_rows = [
        (
            change_row["changed_at"],
            change_row["kind"],
            change_row["id"],
            change_row["title"][:80]
            + (f" → {change_row['successor_id']}" if change_row["successor_id"] else ""),
        )
        for change_row in change_rows
    ]
    output_lines = [
        format_table(table_rows)
        or f"Nothing came, changed or was withdrawn since {since_day_text}."
    ]
    if has_more:
        output_lines.append(f"… and more: the first {limit} are shown (--limit)")
    print_result(
        as_json,
        {"since": since_day_text, "results": change_rows, "has_more": has_more},
        "\n".join(output_lines),
    )


@federal.command()
@click.argument("source", shell_complete=complete_with(_list_source_names))
@click.option("--since", metavar="DATE", help="Only what was published or changed since this day.")
@add_common_options
def sync(source: str, since: str | None, settings: FederalSettings, as_json: bool) -> None:
    """Fetch the official files of a source and apply what is new in them.

    \b
      readingroom federal sync bills
      readingroom federal sync roll-call-votes --since 2026-11-01

    Files are kept in the data directory and asked for again only when they have changed; a download
    that broke off goes on where it was.
    """

    host_addresses = Hosts(
        govinfo_url=settings.govinfo_url,
        federal_register_url=settings.federal_register_url,
        legislators_url=settings.legislators_url,
        house_clerk_url=settings.house_clerk_url,
        senate_url=settings.senate_url,
    )
    since_day = parse_day(since) if since else None
    with (
        explain_interrupt(
            "What was fetched is kept, and so are files that were in: run the same command again "
            "to go on"
        ),
        show_progress_bar("Fetching", as_json) as report_progress,
        show_progress_bar("Updating", as_json) as report_update_progress,
    ):
        sync_summary = sync_source(
            store.get_database_path(settings.data),
            get_source(source),
            since_day,
            host_addresses,
            settings.sync_pause_seconds,
            report_progress,
            report_update_progress,
            store.locate_records(settings),
        )
    json_body = vars(sync_summary) | {"update": _build_summary_json(sync_summary.update)}
    output_lines = [
        f"{sync_summary.downloaded} files fetched ({sync_summary.bytes:,} bytes), "
        f"{sync_summary.unchanged} unchanged, {sync_summary.missing} not there, "
        f"{sync_summary.failed} failed.",
        *(
            f"  {sync_error['file']}: {sync_error['error']}"
            for sync_error in sync_summary.errors[:_MAX_NAMED_FILES]
        ),
        *_format_summary_lines(sync_summary.update),
    ]
    are_all_files_missing = sync_summary.files > 0 and sync_summary.missing == sync_summary.files
    if are_all_files_missing:
        output_lines.append(
            "No file is where its host should have it: docs/settings.md has the addresses."
        )
    print_result(as_json, json_body, "\n".join(output_lines))
    if sync_summary.failed or are_all_files_missing:
        sys.exit(1)


@federal.command()
@add_embedding_options
def embed(settings: FederalSettings, as_json: bool) -> None:
    """Embed what has no vector yet, for search by meaning. Stop and go on at any time."""

    federal_place = _prepare_records(settings)
    with (
        explain_interrupt("What is embedded stays: `readingroom federal embed` goes on"),
        store.translate_errors(federal_place),
        closing(store.connect(federal_place, writing=True)) as db,
        show_progress_bar("Embedding", as_json or not sys.stderr.isatty()) as report_progress,
    ):
        if not (as_json or sys.stderr.isatty()):  # a log shows no bar
            report_progress = make_tenths_printer("{} of {} passages embedded")
        embedded_count = vectors.embed_passages(db, get_shared_embedder(settings), report_progress)
    print_result(as_json, {"embedded": embedded_count}, f"{embedded_count} chunks embedded.")


@federal.command()
@add_common_options
def status(settings: FederalSettings, as_json: bool) -> None:
    """Show the rows, chunks and vectors of each source, and up to when it is complete.

    A source is complete up to a day if a file that holds all of it, or a sync, says so. Files that
    failed, were not used, or lack what they name follow, each with what to do.
    """

    with _open_store_reader(settings) as federal_store:
        status_rows = federal_store.query_now(store.read_status)
        failed_files = [
            dict(log_row)
            for log_row in federal_store.query_now(
                lambda db: list(completeness.list_failed_files(db))
            )
        ]
        incomplete_files = [
            dict(log_row)
            for log_row in federal_store.query_now(
                lambda db: list(completeness.list_incomplete_files(db))
            )
        ]
        ignored_files = [
            dict(log_row)
            for log_row in federal_store.query_now(
                lambda db: list(completeness.list_ignored_files(db))
            )
        ]
    column_headings = ("source", "records", "chunks", "embedded", "%", "complete to", "newest")
    table_rows = [
        (
            status_row["source"],
            f"{status_row['records']:,}",
            f"{status_row['chunks']:,}",
            f"{status_row['embedded']:,}",
            _format_percent(status_row["embedded_percent"]),
            status_row["loaded_up_to"] or "unknown",
            status_row["newest_record_at"] or "-",
        )
        for status_row in status_rows
    ]
    output_lines = [format_table(table_rows, column_headings, right_aligned_columns=[1, 2, 3, 4])]
    if not any(status_row["records"] for status_row in status_rows):
        output_lines.append(
            "Nothing is loaded yet: `readingroom federal load PATH…` loads official files."
        )
    sources_left_to_embed = [
        status_row["source"]
        for status_row in status_rows
        if status_row["embedded"] < status_row["chunks"]
    ]
    if sources_left_to_embed:
        output_lines.append(
            f"Not embedded whole: {', '.join(sources_left_to_embed)}. What has no vector is "
            "found by its words alone; `readingroom federal embed` goes on where it stopped."
        )
    output_lines += [
        f"failed: {failed_file_entry['file']}: {failed_file_entry['error']}"
        for failed_file_entry in failed_files
    ]
    output_lines += [
        f"incomplete: {incomplete_file_entry['file']}: {incomplete_file_entry['error']}"
        for incomplete_file_entry in incomplete_files
    ]
    output_lines += [
        f"ignored: {ignored_file_entry['file']}: {ignored_file_entry['error']}"
        for ignored_file_entry in ignored_files[:_MAX_NAMED_FILES]
    ]
    output_lines += _format_unnamed_count(
        len(ignored_files), "files that were ignored (all of them: --json)"
    )
    json_body = {
        "sources": status_rows,
        "failed": failed_files,
        "incomplete": incomplete_files,
        "ignored": ignored_files,
    }
    print_result(as_json, json_body, "\n".join(output_lines))


def _prepare_records(settings: FederalSettings) -> store.FederalPlace:
    """Return the place of the records, which can be used then."""
    records_place = store.locate_records(settings)
    store.prepare_records(records_place)
    return records_place


@contextmanager
def _open_store_reader(settings: FederalSettings) -> Iterator[store.FederalStore]:
    """Yield a reader of the database; where there is none, of an empty one that goes afterwards."""
    with tempfile.TemporaryDirectory(prefix="readingroom-") as scratch_folder:
        records_place = store.locate_records(settings)
        if isinstance(records_place, Path) and not records_place.exists():
            records_place = store.get_database_path(Path(scratch_folder))
        store.prepare_records(records_place)
        with closing(store.FederalStore(records_place)) as federal_store:
            yield federal_store


def _format_percent(embedded_percent: int | None) -> str:
    return "-" if embedded_percent is None else str(embedded_percent)


def _print_summary(load_summary: LoadSummary, only_source: Source | None, as_json: bool) -> None:
    print_result(
        as_json,
        _build_summary_json(load_summary),
        "\n".join(_format_summary_lines(load_summary, only_source)),
    )
    if not load_summary.loaded and not load_summary.unchanged:
        sys.exit(1)


def _build_summary_json(load_summary: LoadSummary) -> dict[str, Any]:
    tally_by_source = {
        source_name: vars(source_tally)
        for source_name, source_tally in load_summary.changes.items()
    }
    hint_field = {"hint": _FORMATS_HINT} if _needs_formats_hint(load_summary) else {}
    return {
        **vars(load_summary),
        "by_loader": dict(load_summary.by_loader),
        "changes": tally_by_source,
        **hint_field,
    }


def _format_summary_lines(
    load_summary: LoadSummary, only_source: Source | None = None
) -> list[str]:
    ignored_reason = (
        f"it is not a file of {only_source.name}" if only_source else "its format is not recognised"
    )
    return [
        f"{load_summary.loaded} files loaded, {load_summary.unchanged} unchanged, "
        f"{load_summary.ignored} ignored, "
        f"{load_summary.failed} failed; {load_summary.records} records read.",
        *([_describe_concurrent_load(load_summary)] if load_summary.loaded_beside else []),
        *(
            f"  {source_name}: {source_tally.new} new, {source_tally.changed} changed, "
            f"{source_tally.withdrawn} withdrawn"
            for source_name, source_tally in load_summary.changes.items()
        ),
        *(
            f"  {file_error['file']}: {file_error['error']}"
            for file_error in load_summary.errors[:_MAX_NAMED_FILES]
        ),
        *(
            f"  {incomplete_file_problem['file']}: {incomplete_file_problem['problem']}"
            for incomplete_file_problem in load_summary.incomplete[:_MAX_NAMED_FILES]
        ),
        *_format_unnamed_count(
            len(load_summary.incomplete), "things that are missing (`federal status`)"
        ),
        *(
            f"  {file_name}: ignored, {ignored_reason}"
            for file_name in load_summary.unrecognised[:_MAX_NAMED_FILES]
        ),
        *_format_unnamed_count(len(load_summary.unrecognised), "were ignored"),
        *(
            f"  {file_name}: {completeness.UNUSED_PDF_REASON}"
            for file_name in load_summary.unused_pdfs[:1]
        ),
        *(
            f"  {file_name}: not read either"
            for file_name in load_summary.unused_pdfs[1:_MAX_NAMED_FILES]
        ),
        *_format_unnamed_count(len(load_summary.unused_pdfs), "PDFs were not read"),
        *(["No file to load was found."] if not load_summary.files else []),
        *([_FORMATS_HINT] if _needs_formats_hint(load_summary) else []),
    ]


def _describe_concurrent_load(load_summary: LoadSummary) -> str:
    return (
        f"  Another load ran beside this one: {load_summary.loaded_beside} of the unchanged files "
        "are in by it, and were not written again."
    )


def _format_unnamed_count(total_count: int, items_noun: str) -> list[str]:
    """Return the line that ends a list of which only the first are named, if any are left out."""
    return (
        [f"  … and {total_count - _MAX_NAMED_FILES} more {items_noun}"]
        if total_count > _MAX_NAMED_FILES
        else []
    )


def _needs_formats_hint(load_summary: LoadSummary) -> bool:
    """Return whether somebody may wonder why a file was not loaded."""
    return bool(load_summary.unrecognised) or not load_summary.files


def _split_source_and_files(path_arguments: tuple[str, ...]) -> tuple[Source | None, list[Path]]:
    """Return the source and the files: a first word that is a source's name is no file.

    Raise `LoadFailed` when a file is missing.
    """

    only_source, remaining_path_arguments = None, list(path_arguments)
    if len(remaining_path_arguments) > 1 and (
        is_source_name(remaining_path_arguments[0])
        or not Path(remaining_path_arguments[0]).exists()
    ):
        only_source, remaining_path_arguments = (
            get_source(remaining_path_arguments[0]),
            remaining_path_arguments[1:],
        )
    missing_path_arguments = [
        path_argument
        for path_argument in remaining_path_arguments
        if not Path(path_argument).exists()
    ]
    if missing_path_arguments:
        source_names_text = ", ".join(record_source.name for record_source in SOURCES)
        raise LoadFailed(
            f"There is no file or folder {missing_path_arguments[0]}. Before files, a source "
            f"may be named: {source_names_text}"
        )
    return only_source, [Path(path_argument) for path_argument in remaining_path_arguments]
