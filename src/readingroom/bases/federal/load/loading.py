"""Loads files into the federal base: sniffed, each whole or not at all, a bad one skipped."""

import contextlib
import gc
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from readingroom.bases.federal.formats import LOADERS, Loader, Sitting
from readingroom.bases.federal.formats.parts.files import BAD_FILE, Opened, found, package_of
from readingroom.bases.federal.load.read_ahead import Reading, Turn, complaint, in_turn, turn_of
from readingroom.bases.federal.load.writer import Writer, Written, cut_short, too_many
from readingroom.bases.federal.query import changes
from readingroom.bases.federal.query.changes import Tally
from readingroom.bases.federal.schema.entries import Entry
from readingroom.bases.federal.schema.sources import BY_NAME, Source
from readingroom.bases.federal.store import connect, prepare, storage
from readingroom.core import clock
from readingroom.core.progress import ReportProgressSync, no_progress_sync


@dataclass
class Summary:
    """What a load came to."""

    files: int = 0
    loaded: int = 0
    unchanged: int = 0
    ignored: int = 0
    failed: int = 0
    records: int = 0
    changed: int = 0
    withdrawn: int = 0
    changes: dict[str, Tally] = field(default_factory=dict)
    by_loader: Counter[str] = field(default_factory=Counter)
    errors: list[dict[str, str]] = field(default_factory=list)
    unrecognised: list[str] = field(default_factory=list)
    """The files that were ignored: no loader takes them."""


def load(
    path: Path,
    files: Sequence[Path],
    only: Source | None,
    report: ReportProgressSync = no_progress_sync,
) -> Summary:
    """Load these files and folders into the federal file at `path`."""
    return _loaded(path, files, only, report, Manner())


def update(
    path: Path,
    files: Sequence[Path],
    only: Source | None,
    report: ReportProgressSync = no_progress_sync,
    *,
    even_most: bool = False,
) -> Summary:
    """Apply newer files over older ones: what they leave out, where they hold all, is withdrawn."""
    return _loaded(path, files, only, report, Manner(updating=True, even_most=even_most))


def _loaded(
    path: Path,
    files: Sequence[Path],
    only: Source | None,
    report: ReportProgressSync,
    manner: "Manner",
) -> Summary:
    prepare(path)
    chosen = [one for one in LOADERS if only is None or only.name in one.sources]
    opened = list(found(files))
    with (
        storage(path),
        closing(connect(path, writing=True)) as db,
        ThreadPoolExecutor(1, "federal-load") as beside,
    ):
        return _Load(db, Writer(db, beside), chosen, report, manner).run(opened)


@dataclass(frozen=True, slots=True)
class Manner:
    """How files are taken: as more of what there is, or as what there is now."""

    updating: bool = False
    even_most: bool = False
    """A file may leave out most of what an older one had."""


class _Load:
    def __init__(
        self,
        db: sqlite3.Connection,
        writer: Writer,
        loaders: Sequence[Loader],
        report: ReportProgressSync,
        manner: Manner,
    ) -> None:
        self._db = db
        self._manner = manner
        self._writer = writer
        self._seen = writer.seen()
        self._loaders = loaders
        self._report = report
        self.summary = Summary()

    def run(self, opened: Sequence[Opened]) -> Summary:
        """People first, then what they did: the loaders' order, each file when its turn comes."""
        began, seen = clock.stamp(), changes.last(self._db)
        turns = self._turns(opened)
        try:
            with _uncollected():
                self._read_all(turns)
        finally:
            self._writer.commit()  # what was read whole is kept, whatever ends the load
        with self._writer.transaction():
            if self._manner.updating:
                self._withdraw_left_out(turns, began)
            self._writer.link()
            self._writer.count()
        self._writer.settle()
        self.summary.changes = changes.tallied(self._db, seen)
        self.summary.withdrawn = sum(one.withdrawn for one in self.summary.changes.values())
        return self.summary

    def _read_all(self, turns: Sequence[Turn]) -> None:
        self.summary.files = len(turns)
        for done, reading in enumerate(in_turn(turns, self._is_new), start=1):
            self._report(done, len(turns), Path(reading.turn.name).name)
            self._file(reading)

    def _withdraw_left_out(self, turns: Sequence[Turn], at: str) -> None:
        """A zip is an official package: a file that it no longer holds, by any name, is gone."""
        packages: dict[str, set[str]] = {}
        here = {turn.sha256 for turn in turns}
        for turn in turns:
            if packed := package_of(turn.name):
                packages.setdefault(packed[0], set()).add(packed[1])
        for package, members in packages.items():
            gone = [
                one for one in _left_out(self._db, package, members) if one["sha256"] not in here
            ]
            if too_many(gone, members) and not self._manner.even_most:
                self._tell_failure(package, complaint(cut_short("files", gone, members)))
                continue
            for row in gone:
                for source in _sources_of(row["loader"]):
                    self._writer.withdraw_file(source, row["sha256"], at)
                self._writer.forget_file(row["file"])

    def _turns(self, opened: Sequence[Opened]) -> list[Turn]:
        """In the loaders' order. Only names and loaders are kept, never the bytes."""
        places: dict[Loader | None, int] = {one: place for place, one in enumerate(self._loaders)}
        turns = [turn_of(self._loaders, *one) for one in opened]
        return sorted(turns, key=lambda one: places.get(one.loader, len(places)))

    def _is_new(self, turn: Turn) -> bool:
        return turn.loader is not None and (turn.sha256, turn.loader.name) not in self._seen

    def _file(self, reading: Reading) -> None:
        turn, loader = reading.turn, reading.turn.loader
        if not self._is_new(turn) or not turn.may_go_ahead:
            self._writer.commit()  # nobody else waits while this is read for long, or for nothing
        try:
            outcome = self._take(reading)
        except BAD_FILE as error:
            said = complaint(error)
            self._tell_failure(turn.name, said)
            with self._writer.step():
                self._writer.log(
                    clock.stamp(), turn.name, turn.sha256, _name(loader), "failed", Written(), said
                )
            return
        setattr(self.summary, outcome, getattr(self.summary, outcome) + 1)
        if loader and outcome in ("loaded", "unchanged"):
            self.summary.by_loader[loader.name.partition("/")[0]] += 1

    def _tell_failure(self, file: str, said: str) -> None:
        self.summary.failed += 1
        self.summary.errors.append({"file": file, "error": said})

    def _take(self, reading: Reading) -> str:
        """Write what a file says, and tell which count of the summary it belongs to."""
        contents, loader = reading.contents(), reading.turn.loader
        if loader is None:
            self.summary.unrecognised.append(reading.turn.name)
            return "ignored"
        seen = (contents.identity, loader.name) in self._seen
        # A file that holds all may say again what it said before the last one.
        all_of_something = loader.whole or isinstance(loader, Sitting)
        if seen and not (self._manner.updating and all_of_something):
            return "unchanged"
        entries = _begun(contents.entries)
        with self._writer.step():
            done = self._writer.put_all(entries, loader.name)
            if loader.whole and not done.older:
                self._withdraw_missing(loader, loader.whole, done, contents.at)
            if self._manner.updating and isinstance(loader, Sitting):
                source = BY_NAME[loader.sitting]
                kept = done.ids.get(source.name, set())
                done.changed += self._writer.retire_missing(
                    source, kept, contents.at, even_most=self._manner.even_most
                )
            if seen and not done.changed and not done.withdrawn:
                return "unchanged"
            self._writer.log(
                contents.at, reading.turn.name, contents.identity, loader.name, "loaded", done
            )
        self._seen.add((contents.identity, loader.name))
        self.summary.records += done.records
        self.summary.changed += done.changed
        return "loaded"

    def _withdraw_missing(self, loader: Loader, whole: str, done: Written, at: str) -> None:
        for name, kept in done.ids.items():
            done.withdrawn += self._writer.withdraw_missing(
                BY_NAME[name], loader.name, whole, kept, at, even_most=self._manner.even_most
            )


def _left_out(db: sqlite3.Connection, package: str, members: Set[str]) -> list[sqlite3.Row]:
    """The files that were loaded from a package and are no longer in it by name.

    The newest one may lie elsewhere, under the same name: then it shares files with the old one.
    """
    logged = db.execute(
        """SELECT file, sha256, loader, max(log) FROM ingestion_logs
           WHERE outcome = 'loaded' AND instr(file, ?) GROUP BY file""",
        (f"{Path(package).name}!",),
    )
    before: dict[str, dict[str, sqlite3.Row]] = {}
    for row in logged:
        place, member = package_of(row["file"]) or ("", "")
        if Path(place).name == Path(package).name:
            before.setdefault(place, {})[member] = row
    return [
        row
        for place, files in before.items()
        if place == package or files.keys() & members
        for member, row in files.items()
        if member not in members
    ]


def _sources_of(loader: str) -> list[Source]:
    return [BY_NAME[name] for one in LOADERS if one.name == loader for name in one.sources]


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """A file is hundreds of thousands of objects and no cycles: nothing for the collector here."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _begun(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The same entries, of which the first is read now: to come to it, a file is parsed whole, and
    that goes on while the file before it is still being written.
    """
    rest = iter(entries)
    first = list(islice(rest, 1))
    return chain(first, rest)


def _name(loader: Loader | None) -> str | None:
    return loader.name if loader else None


def failures(db: sqlite3.Connection, most: int = 20) -> Iterator[sqlite3.Row]:
    """The files that could not be loaded and have not been since, newest first."""
    yield from db.execute(
        """SELECT at, file, error FROM ingestion_logs l WHERE outcome = 'failed'
           AND NOT EXISTS (SELECT 1 FROM ingestion_logs n
                           WHERE (n.file = l.file OR instr(n.file, l.file || '!') = 1)
                           AND n.outcome = 'loaded' AND n.log > l.log)
           ORDER BY log DESC LIMIT ?""",
        (most,),
    )
