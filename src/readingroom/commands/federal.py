"""`readingroom federal`: load official bulk files, see how far each source has come."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from readingroom.bases.federal.errors import LoadFailed
from readingroom.commands.console import bar, common, say
from readingroom.core.settings import load as load_settings

if TYPE_CHECKING:  # the base's libraries are loaded when a command runs, not for `--help`
    from readingroom.bases.federal.load.loading import Summary
    from readingroom.bases.federal.schema.sources import Source

_SHOWN = 20
"""How many files are named, at most, that came to nothing."""
_FORMATS = "Which formats are read: `readingroom federal load --help`, docs/federal.md"


@click.group()
def federal() -> None:
    """Federal records: bills, people, votes, laws and rules.

    Loading beside a running server is fine: it answers from what was there until a file is in.
    """


@federal.command("load")
@click.argument("paths", nargs=-1, required=True, metavar="[SOURCE] PATH…")
@common
def load_files(paths: tuple[str, ...], data: str | None, as_json: bool) -> None:
    """Load files, folders and zips of official bulk data; the format is sniffed.

    \b
      readingroom federal load congress-legislators/ BILLSTATUS-119-hr.zip
      readingroom federal load bills BILLSTATUS-119-hr.zip

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
    from readingroom.bases.federal.load import loading

    only, files = _sources_and_files(paths)
    with bar("Loading", as_json) as told:
        summary = loading.load(_file(data), files, only, told)
    _say_summary(summary, only, as_json)


@federal.command()
@click.argument("paths", nargs=-1, required=True, metavar="[SOURCE] PATH…")
@click.option(
    "--even-most",
    is_flag=True,
    help="Believe a file that leaves out most of what an older one had.",
)
@common
def update(paths: tuple[str, ...], even_most: bool, data: str | None, as_json: bool) -> None:
    """Apply newer bulk files over older ones and say what changed.

    What a file should hold and no longer does is withdrawn: a seat on a roster, a document of an
    issue, a file of a zip. Its id then answers 410, with its successor where one is known.
    """
    from readingroom.bases.federal.load import loading

    only, files = _sources_and_files(paths)
    with bar("Updating", as_json) as told:
        summary = loading.update(_file(data), files, only, told, even_most=even_most)
    _say_summary(summary, only, as_json)


@federal.command()
@click.option("--since", required=True, metavar="DATE", help="Loaded on this day (UTC) or later.")
@click.option("--source", help="Of this source alone.")
@click.option("--limit", default=200, show_default=True, type=click.IntRange(1, 10_000))
@common
def changes(since: str, source: str | None, limit: int, data: str | None, as_json: bool) -> None:
    """List what came, changed or was withdrawn since a day, each record once, oldest first."""
    from readingroom.bases.federal import store
    from readingroom.bases.federal.query import changes as changed
    from readingroom.bases.federal.schema.sources import find_source
    from readingroom.core.dates import parse_day

    day = parse_day(since).isoformat()
    meant = find_source(source) if source else None
    path = _file(data)
    store.prepare(path)
    reader = store.FederalStore(path)
    rows, _, more = reader.now(lambda db: changed.since(db, day, meant, None, limit, 0))
    reader.close()
    lines = [
        f"{row['changed_at']}  {row['kind']:<9}  {row['id']}  {row['title'][:80]}"
        + (f" → {row['successor_id']}" if row["successor_id"] else "")
        for row in rows
    ]
    if more:
        lines.append(f"… and more: the first {limit} are shown (--limit)")
    say(as_json, {"since": day, "results": rows, "has_more": more}, "\n".join(lines))


@federal.command()
@click.argument("source")
@click.option("--since", metavar="DATE", help="Only what was published or changed since this day.")
@common
def sync(source: str, since: str | None, data: str | None, as_json: bool) -> None:
    """Fetch the official files of a source and apply what is new in them.

    \b
      readingroom federal sync bills
      readingroom federal sync roll-call-votes --since 2026-11-01

    Files are kept in the data directory and asked for again only when they have changed; a download
    that broke off goes on where it was.
    """
    from readingroom.bases.federal.load import sync as syncing
    from readingroom.bases.federal.load.bulk import Hosts
    from readingroom.bases.federal.schema.sources import find_source
    from readingroom.core.dates import parse_day

    settings = load_settings({"data": data})
    hosts = Hosts(
        govinfo=settings.govinfo_url,
        federal_register=settings.federal_register_url,
        legislators=settings.legislators_url,
        house_clerk=settings.house_clerk_url,
        senate=settings.senate_url,
    )
    day = parse_day(since) if since else None
    with bar("Fetching", as_json) as told, bar("Updating", as_json) as loading_told:
        synced = syncing.sync(
            _file(data),
            find_source(source),
            day,
            hosts,
            settings.sync_pause_seconds,
            told,
            loading_told,
        )
    body = vars(synced) | {"update": _told_of(synced.update)}
    lines = [
        f"{synced.downloaded} files fetched ({synced.bytes:,} bytes), "
        f"{synced.unchanged} unchanged, {synced.missing} not there, {synced.failed} failed.",
        *(f"  {one['file']}: {one['error']}" for one in synced.errors[:_SHOWN]),
        *_lines_of(synced.update),
    ]
    nowhere = synced.files > 0 and synced.missing == synced.files
    if nowhere:
        lines.append(
            "No file is where its host should have it: docs/settings.md has the addresses."
        )
    say(as_json, body, "\n".join(lines))
    if synced.failed or nowhere:
        sys.exit(1)


@federal.command()
@common
def embed(data: str | None, as_json: bool) -> None:
    """Embed what has no vector yet, for search by meaning. Stop and go on at any time."""
    from contextlib import closing

    from readingroom.bases.federal import store
    from readingroom.bases.federal.search import vectors
    from readingroom.server.catalogue import embedder_of

    settings = load_settings({"data": data})
    path = _file(data)
    store.prepare(path)
    with (
        store.storage(path),
        closing(store.connect(path, writing=True)) as db,
        bar("Embedding", as_json) as told,
    ):
        done = vectors.embed(db, embedder_of(settings), told)
    say(as_json, {"embedded": done}, f"{done} chunks embedded.")


@federal.command()
@common
def status(data: str | None, as_json: bool) -> None:
    """Show the rows, chunks and vectors of each source, and the date it is loaded up to."""
    from readingroom.bases.federal import store
    from readingroom.bases.federal.load import loading

    path = _file(data)
    store.prepare(path)
    reader = store.FederalStore(path)
    rows = reader.now(store.status)
    failed = [dict(row) for row in reader.now(lambda db: list(loading.list_failures(db)))]
    reader.close()
    lines = [f"{'source':<26} {'records':>9} {'chunks':>9} {'embedded':>9}  loaded up to"]
    lines += [
        f"{row['source']:<26} {row['records']:>9,} {row['chunks']:>9,} {row['embedded']:>9,}  "
        f"{row['loaded_up_to'] or '-'}"
        for row in rows
    ]
    lines += [f"failed: {one['file']}: {one['error']}" for one in failed]
    say(as_json, {"sources": rows, "failed": failed}, "\n".join(lines))


def _say_summary(summary: "Summary", only: "Source | None", as_json: bool) -> None:
    say(as_json, _told_of(summary), "\n".join(_lines_of(summary, only)))
    if not summary.loaded and not summary.unchanged:
        sys.exit(1)


def _told_of(summary: "Summary") -> dict[str, Any]:
    tallies = {source: vars(tally) for source, tally in summary.changes.items()}
    hint = {"hint": _FORMATS} if _is_puzzling(summary) else {}
    return {**vars(summary), "by_loader": dict(summary.by_loader), "changes": tallies, **hint}


def _lines_of(summary: "Summary", only: "Source | None" = None) -> list[str]:
    why = f"it is no file of {only.name}" if only else "its format is not recognised"
    more = len(summary.unrecognised) - _SHOWN
    return [
        f"{summary.loaded} files loaded, {summary.unchanged} unchanged, {summary.ignored} ignored, "
        f"{summary.failed} failed; {summary.records} records read.",
        *(
            f"  {source}: {tally.new} new, {tally.changed} changed, {tally.withdrawn} withdrawn"
            for source, tally in summary.changes.items()
        ),
        *(f"  {one['file']}: {one['error']}" for one in summary.errors[:_SHOWN]),
        *(f"  {name}: ignored, {why}" for name in summary.unrecognised[:_SHOWN]),
        *([f"  … and {more} more were ignored"] if more > 0 else []),
        *(["No file to load was found."] if not summary.files else []),
        *([_FORMATS] if _is_puzzling(summary) else []),
    ]


def _is_puzzling(summary: "Summary") -> bool:
    """Whether somebody may wonder why a file was not taken."""
    return bool(summary.unrecognised) or not summary.files


def _sources_and_files(paths: tuple[str, ...]) -> "tuple[Source | None, list[Path]]":
    """A first word that names a source and no file is the source that is meant."""
    from readingroom.bases.federal.schema.sources import find_source

    only, rest = None, list(paths)
    if not Path(rest[0]).exists() and len(rest) > 1:
        only, rest = find_source(rest[0]), rest[1:]
    missing = [path for path in rest if not Path(path).exists()]
    if missing:
        raise LoadFailed(f"There is no file or folder {missing[0]}")
    return only, [Path(path) for path in rest]


def _file(data: str | None) -> Path:
    from readingroom.bases.federal.store import file_in

    return file_in(load_settings({"data": data}).data)
