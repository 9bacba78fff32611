"""What names, numbers and dossiers cost beside the bare queries and the calls they stand for."""

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import Any

import anyio

from benchmarks.federal import registries as federal_registries
from benchmarks.federal.registries import QUICK, WHOLE
from benchmarks.federal.scale import client, spent, spread, timed
from benchmarks.federal.world import Stand
from benchmarks.table import Ratio, Table
from readingroom.bases.federal import store
from readingroom.bases.federal.errors import AggregateTimeout, AggregateTooBroad
from readingroom.bases.federal.filters import parse_filters
from readingroom.bases.federal.load import loading
from readingroom.bases.federal.names import resolver
from readingroom.bases.federal.query import dossiers
from readingroom.bases.federal.query.aggregates import Aggregation, Aggregator, Budget
from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.sources import BY_NAME, find_resource
from readingroom.bases.federal.service import FederalService
from readingroom.bases.federal.store import FILE

OFFICIAL = Path(__file__).parents[3] / "shared" / "data" / "federal"
LARGEST = "hr:117:5376"


def tables(quick: bool) -> Iterator[Table]:
    yield names(quick)
    yield numbers(quick)
    yield whole_bill(quick)


@cache
def _opened(quick: bool) -> tuple[FederalService, federal_registries.Size]:
    size = QUICK if quick else WHOLE
    path = Path("build") / f"federal-registries-{size.filers}.db"
    path.parent.mkdir(exist_ok=True)
    federal_registries.build(path, size)
    # On a busy machine a whole scan may take longer than a server lets it.
    return FederalService(path, Stand(), Budget(seconds=60)), size  # type: ignore[arg-type]


# --- names ---


def names(quick: bool) -> Table:
    service, size = _opened(quick)
    rounds = 5 if quick else 40
    rows = []
    with closing(store.connect(service.path)) as db, client(service) as get:
        for source in ("legislators", "lda_filings"):
            path = f"/v1/{BY_NAME[source].path}"
            bare, resolved, rest = [], [], []
            for name in federal_registries.questions(source, service.path, rounds + 3):
                bare.append(timed(partial(_bare_trigrams, db, source, name)))
                resolved.append(timed(partial(_resolved, db, source, name)))
                rest.append(timed(partial(get, path, {"q": name, "limit": 10})))
            bare, resolved, rest = bare[3:], resolved[3:], rest[3:]
            ratio = Ratio(rest, bare)
            rows += [
                (f"{source}: bare trigrams, the 10 best rows", *spread(bare), "1.000", ""),
                (f"{source}: ranked records", *spread(resolved), str(Ratio(resolved, bare)), ""),
                (f"{source}: `GET {path}?q=`", *spread(rest), str(ratio), ratio.against(3.0)),
            ]
    note = (
        f"{size.people:,} legislators and {size.filers:,} names of LDA filings in one file; "
        f"{rounds} names of each, a letter changed, some in another order. The bare query asks "
        "FTS5 for the rows of the same source that share any piece with the name, by rank. Wall "
        "time, taking turns."
    )
    header = ("names", "median ms", "median p95 ms", "ratio", "target")
    return Table("Federal names", header, tuple(rows), note)


def _bare_trigrams(db: sqlite3.Connection, source: str, name: str) -> None:
    pieces = dict.fromkeys(piece for word in fold.words(name) for piece in fold.trigrams(word))
    first = fold.first_row(source)
    db.execute(
        """SELECT rowid FROM names_fts WHERE names_fts MATCH ? AND rowid BETWEEN ? AND ?
           ORDER BY rank LIMIT 10""",
        (" OR ".join(f'"{piece}"' for piece in pieces), first, first + fold.ROWS),
    ).fetchall()


def _resolved(db: sqlite3.Connection, source: str, name: str) -> None:
    source_spec = BY_NAME[source]
    resolver.resolve(db, source_spec, name, parse_filters(source_spec.resource, {}))


# --- numbers ---

_BARE = (
    (
        "votes by position",
        "SELECT position, count(*) FROM member_votes GROUP BY 1 ORDER BY 2 DESC LIMIT 20",
        {"resource": "member_votes", "group_by": "position"},
    ),
    (
        "votes by month",
        "SELECT substr(sorted_at, 1, 7), count(*) FROM member_votes GROUP BY 1",
        {"resource": "member_votes", "time_field": "voted_at", "interval": "month"},
    ),
    (
        "money by registrant in a year",
        """SELECT registrant, sum(amount_cents) FROM lda_filings
           WHERE status = 'active' AND year = 2020 GROUP BY 1 ORDER BY 2 DESC LIMIT 20""",
        {
            "resource": "lda_filings",
            "sum_field": "amount",
            "group_by": "registrant",
            "filters": {"year": 2020},
        },
    ),
    (
        "filings by quarter",
        """SELECT substr(published_at, 1, 7), count(*) FROM lda_filings
           WHERE status = 'active' GROUP BY 1""",
        {"resource": "lda_filings", "time_field": "posted_at", "interval": "quarter"},
    ),
)


def numbers(quick: bool) -> Table:
    service, size = _opened(quick)
    rounds = 3 if quick else 15
    rows: list[tuple[str, ...]] = []
    with (
        closing(store.connect(service.path)) as db,
        anyio.from_thread.start_blocking_portal() as portal,
    ):
        for name, sql, asked in _BARE:
            ask = _aggregation(dict(asked))
            call = service.time_series if ask.time_field else service.aggregate
            bare, ours = [], []
            for _ in range(rounds + 1):
                bare.append(spent(lambda s=sql: db.execute(s).fetchall()))
                ours.append(spent(lambda c=call, a=ask: portal.call(c, a)))
            ratio = Ratio(ours[1:], bare[1:])
            rows += [
                (f"{name}: bare SQL", *spread(bare[1:]), "1.000", ""),
                (f"{name}: the answer", *spread(ours[1:]), str(ratio), ratio.against(1.3)),
            ]
        rows.append(_stopped(db))
    note = (
        f"{size.votes:,} votes, {size.filings:,} filings. Processor time, taking turns. Each "
        "answer counts what it will read, holds a transaction and a meter, and fills gaps. The "
        "last row is stopped by its limit; the time is until the error with its suggestions is "
        "there."
    )
    header = ("numbers", "median ms", "median p95 ms", "ratio", "target")
    return Table("Federal numbers", header, tuple(rows), note)


def _aggregation(asked: dict[str, Any]) -> Aggregation:
    resource_spec = find_resource(asked.pop("resource"))
    return Aggregation(
        resource_spec, parse_filters(resource_spec, asked.pop("filters", None)), **asked
    )


def _broad() -> Aggregation:
    return _aggregation({"resource": "member_votes", "group_by": "bioguide_id"})


def _stopped(db: sqlite3.Connection) -> tuple[str, ...]:
    """Given a third of the time the broad one takes at best, so that it is surely stopped."""
    unbounded = Budget(rows=10**9, seconds=600)
    whole = min(timed(lambda: Aggregator(db, unbounded).total(_broad())) for _ in range(5))
    budget = Budget(rows=10**9, seconds=whole / 3)
    took = [timed(lambda: _refused(db, budget)) for _ in range(9)]
    ratio = Ratio(took, [budget.seconds] * len(took))
    label = f"stopped after {budget.seconds * 1000:,.0f} ms of wall time"
    return (label, *spread(took), str(ratio), ratio.against(1.1))


def _refused(db: sqlite3.Connection, budget: Budget) -> None:
    try:
        Aggregator(db, budget).total(_broad())
    except (AggregateTimeout, AggregateTooBroad):
        return
    raise AssertionError("it was not stopped")


# --- dossiers ---


def whole_bill(quick: bool) -> Table:
    """Needs the shared data; without it the table says so."""
    header = ("dossier", "median ms", "median p95 ms", "ratio", "target")
    if not OFFICIAL.is_dir():
        return Table("Federal dossiers", header, (), f"Not measured: there is no {OFFICIAL}.")
    rounds = 10 if quick else 100
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / FILE
        loading.load(path, [OFFICIAL / "billstatus", OFFICIAL / "saps"], None)
        service = FederalService(path, Stand())  # type: ignore[arg-type]
        with client(service) as get:
            together, separate = [], []
            for _ in range(rounds + 2):
                together.append(timed(lambda: get(f"/v1/bills/{LARGEST}/dossier", {})))
                separate.append(timed(lambda: _separately(get)))
        service.store.close()
    ratio = Ratio(together[2:], separate[2:])
    rows = (
        (f"{len(_SEPARATE) + 1} calls, one after the other", *spread(separate[2:]), "1.000", ""),
        (
            f"`GET /v1/bills/{LARGEST}/dossier`",
            *spread(together[2:]),
            str(ratio),
            ratio.against(0.7),
        ),
    )
    note = (
        f"The real bill {LARGEST}, with 250 amendments; lists of {dossiers.MAX_ITEMS} in both. The "
        "calls are those an agent would make for the same sections; the records at the other end "
        "of links, which the dossier has too, are not fetched by them. Wall time, taking turns."
    )
    return Table("Federal dossiers", header, rows, note)


_KINDS = ("crs_report", "cost_estimate", "statement", "committee_report", "hearing", "vote", "law")
_SEPARATE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/cosponsors", {}),
    ("/actions", {}),
    ("/amendments", {}),
    *(("/links", {"kind": kind}) for kind in _KINDS),
)


def _separately(get: Callable[[str, dict[str, Any]], Any]) -> None:
    get(f"/v1/bills/{LARGEST}", {})
    for path, params in _SEPARATE:
        get(f"/v1/bills/{LARGEST}{path}", {"limit": dossiers.MAX_ITEMS, **params})


if __name__ == "__main__":
    import sys

    for measure in (names, numbers, whole_bill):
        print(measure("--quick" in sys.argv), end="\n\n", flush=True)
