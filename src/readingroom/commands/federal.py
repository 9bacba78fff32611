"""`readingroom federal`: load official bulk files, see how far each source has come."""

import sys
from pathlib import Path
from typing import Any

import click

from readingroom.commands.options import common, say
from readingroom.core.errors import LoadFailed
from readingroom.core.settings import load as load_settings


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

    A file that is in already is passed over; one that cannot be read is reported and skipped.
    """
    from readingroom.bases.federal import loading

    only, files = _sources_and_files(paths)
    with _bar(as_json, "Loading") as told:
        summary = loading.load(_file(data), files, only, told)
    body = vars(summary) | {"by_loader": dict(summary.by_loader)}
    lines = [
        f"{summary.loaded} files loaded, {summary.unchanged} unchanged, {summary.ignored} ignored, "
        f"{summary.failed} failed; {summary.records} records read, {summary.changed} changed.",
        *(f"  {one['file']}: {one['error']}" for one in summary.errors[:20]),
    ]
    say(as_json, body, "\n".join(lines))
    if summary.failed and not summary.loaded and not summary.unchanged:
        sys.exit(1)


@federal.command()
@common
def embed(data: str | None, as_json: bool) -> None:
    """Embed what has no vector yet, for search by meaning. Stop and go on at any time."""
    from contextlib import closing

    from readingroom.bases.federal import store, vectors
    from readingroom.server.catalogue import embedder_of

    settings = load_settings({"data": data})
    path = _file(data)
    store.prepare(path)
    with (
        store.storage(path),
        closing(store.connect(path, writing=True)) as db,
        _bar(as_json, "Embedding") as told,
    ):
        done = vectors.embed(db, embedder_of(settings), lambda done, of: told(done, of, ""))
    say(as_json, {"embedded": done}, f"{done} chunks embedded.")


@federal.command()
@common
def status(data: str | None, as_json: bool) -> None:
    """Show the rows, chunks and vectors of each source, and the date it is loaded up to."""
    from readingroom.bases.federal import loading, store

    path = _file(data)
    store.prepare(path)
    reader = store.FederalStore(path)
    rows = reader.now(store.status)
    failed = [dict(row) for row in reader.now(lambda db: list(loading.failures(db)))]
    reader.close()
    lines = [f"{'source':<26} {'records':>9} {'chunks':>9} {'embedded':>9}  loaded up to"]
    lines += [
        f"{row['source']:<26} {row['records']:>9,} {row['chunks']:>9,} {row['embedded']:>9,}  "
        f"{row['loaded_up_to'] or '-'}"
        for row in rows
    ]
    lines += [f"failed: {one['file']}: {one['error']}" for one in failed]
    say(as_json, {"sources": rows, "failed": failed}, "\n".join(lines))


def _sources_and_files(paths: tuple[str, ...]) -> tuple[Any, list[Path]]:
    """A first word that names a source and no file is the source that is meant."""
    from readingroom.bases.federal.sources import named

    only, rest = None, list(paths)
    if not Path(rest[0]).exists() and len(rest) > 1:
        only, rest = named(rest[0]), rest[1:]
    missing = [path for path in rest if not Path(path).exists()]
    if missing:
        raise LoadFailed(f"There is no file or folder {missing[0]}")
    return only, [Path(path) for path in rest]


def _file(data: str | None) -> Path:
    from readingroom.bases.federal.service import FILE

    return load_settings({"data": data}).data / "federal" / FILE


class _bar:
    """A progress bar on standard error, or silence when a machine is reading."""

    def __init__(self, as_json: bool, label: str) -> None:
        self._hidden = as_json
        self._label = label
        self._bar: Any = None

    def __enter__(self) -> Any:
        return self._told

    def _told(self, done: int, total: int, name: str) -> None:
        if self._bar is None:
            self._bar = click.progressbar(
                length=total,
                label=self._label,
                file=sys.stderr,
                hidden=self._hidden,
                item_show_func=lambda name: name,
            )
            self._bar.__enter__()
        self._bar.update(done - self._bar.pos, name)

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(*raised)
