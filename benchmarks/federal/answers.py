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
from benchmarks.federal.scale import (
    measure_cpu_seconds,
    measure_wall_seconds,
    open_client,
    render_median_and_p95,
)
from benchmarks.federal.world import RandomEmbedder
from benchmarks.table import Ratio, Table
from readingroom.bases.federal import store
from readingroom.bases.federal.errors import AggregateTimeout, AggregateTooBroad
from readingroom.bases.federal.filters import parse_filters
from readingroom.bases.federal.load import loading
from readingroom.bases.federal.names import resolver
from readingroom.bases.federal.query import dossiers
from readingroom.bases.federal.query.aggregates import Aggregation, Aggregator, Budget
from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME, get_record_table
from readingroom.bases.federal.service import FederalService
from readingroom.bases.federal.store import DATABASE_FILE_NAME

OFFICIAL = Path(__file__).parents[3] / "shared" / "data" / "federal"
LARGEST_BILL = "hr:117:5376"


def tables(quick: bool) -> Iterator[Table]:
    yield measure_names(quick)
    yield measure_aggregates(quick)
    yield measure_dossier(quick)


@cache
def _open_service(quick: bool) -> tuple[FederalService, federal_registries.Size]:
    size = QUICK if quick else WHOLE
    path = Path("build") / f"federal-registries-{size.filers}.db"
    path.parent.mkdir(exist_ok=True)
    federal_registries.build_database(path, size)
    # On a busy machine a whole scan may take longer than a server lets it.
    return FederalService(path, RandomEmbedder(), Budget(max_seconds=60)), size  # type: ignore[arg-type]


# --- names ---


def measure_names(quick: bool) -> Table:
    service, size = _open_service(quick)
    rounds = 5 if quick else 40
    rows = []
    with closing(store.connect(service.place)) as db, open_client(service) as get:
        for source in ("legislators", "lda_filings"):
            path = f"/v1/{SOURCES_BY_NAME[source].slug}"
            bare_seconds, resolver_seconds, rest_seconds = [], [], []
            for name in federal_registries.make_misspelt_names(source, service.place, rounds + 3):
                bare_seconds.append(
                    measure_wall_seconds(partial(_search_trigrams, db, source, name))
                )
                resolver_seconds.append(
                    measure_wall_seconds(partial(_resolve_name, db, source, name))
                )
                rest_seconds.append(
                    measure_wall_seconds(partial(get, path, {"q": name, "limit": 10}))
                )
            bare_seconds, resolver_seconds, rest_seconds = (
                bare_seconds[3:],
                resolver_seconds[3:],
                rest_seconds[3:],
            )
            ratio = Ratio(rest_seconds, bare_seconds)
            rows += [
                (
                    f"{source}: bare trigrams, the 10 best rows",
                    *render_median_and_p95(bare_seconds),
                    "1.000",
                    "",
                ),
                (
                    f"{source}: ranked records",
                    *render_median_and_p95(resolver_seconds),
                    str(Ratio(resolver_seconds, bare_seconds)),
                    "",
                ),
                (
                    f"{source}: `GET {path}?q=`",
                    *render_median_and_p95(rest_seconds),
                    str(ratio),
                    ratio.against(3.0),
                ),
            ]
    note = (
        f"{size.people:,} legislators and {size.filers:,} names of LDA filings in one file; "
        f"{rounds} names of each, a letter changed, some in another order. The bare query asks "
        "FTS5 for the rows of the same source that share any piece with the name, by rank. Wall "
        "time, taking turns."
    )
    header = ("names", "median ms", "median p95 ms", "ratio", "target")
    return Table("Federal names", header, tuple(rows), note)


def _search_trigrams(db: sqlite3.Connection, source: str, name: str) -> None:
    trigrams = dict.fromkeys(
        trigram for word in fold.fold_name(name) for trigram in fold.list_trigrams(word)
    )
    first = fold.get_first_name_id(source)
    db.execute(
        """SELECT rowid FROM names_fts WHERE names_fts MATCH ? AND rowid BETWEEN ? AND ?
           ORDER BY rank LIMIT 10""",
        (
            " OR ".join(f'"{trigram}"' for trigram in trigrams),
            first,
            first + fold.MAX_NAMES_PER_SOURCE,
        ),
    ).fetchall()


def _resolve_name(db: sqlite3.Connection, source: str, name: str) -> None:
    source_spec = SOURCES_BY_NAME[source]
    resolver.resolve_name(db, source_spec, name, parse_filters(source_spec.record_table, {}))


# --- numbers ---

_AGGREGATES = (
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


def measure_aggregates(quick: bool) -> Table:
    service, size = _open_service(quick)
    rounds = 3 if quick else 15
    rows: list[tuple[str, ...]] = []
    with (
        closing(store.connect(service.place)) as db,
        anyio.from_thread.start_blocking_portal() as portal,
    ):
        for name, sql, asked in _AGGREGATES:
            ask = _make_aggregation(dict(asked))
            call = service.compute_time_series if ask.time_field else service.compute_aggregate
            bare_seconds, our_seconds = [], []
            for _ in range(rounds + 1):
                bare_seconds.append(measure_cpu_seconds(lambda s=sql: db.execute(s).fetchall()))
                our_seconds.append(measure_cpu_seconds(lambda c=call, a=ask: portal.call(c, a)))
            ratio = Ratio(our_seconds[1:], bare_seconds[1:])
            rows += [
                (f"{name}: bare SQL", *render_median_and_p95(bare_seconds[1:]), "1.000", ""),
                (
                    f"{name}: the answer",
                    *render_median_and_p95(our_seconds[1:]),
                    str(ratio),
                    ratio.against(1.3),
                ),
            ]
        rows.append(_measure_stopping(db))
    note = (
        f"{size.votes:,} votes, {size.filings:,} filings. Processor time, taking turns. Each "
        "answer counts what it will read, holds a transaction and a meter, and fills gaps. The "
        "last row is stopped by its limit; the time is until the error with its suggestions is "
        "there."
    )
    header = ("numbers", "median ms", "median p95 ms", "ratio", "target")
    return Table("Federal numbers", header, tuple(rows), note)


def _make_aggregation(asked: dict[str, Any]) -> Aggregation:
    resource_spec = get_record_table(asked.pop("resource"))
    return Aggregation(
        resource_spec, parse_filters(resource_spec, asked.pop("filters", None)), **asked
    )


def _make_broad_aggregation() -> Aggregation:
    return _make_aggregation({"resource": "member_votes", "group_by": "bioguide_id"})


def _measure_stopping(db: sqlite3.Connection) -> tuple[str, ...]:
    """Given a third of the time the broad one takes at best, so that it is surely stopped."""
    unbounded = Budget(max_rows=10**9, max_seconds=600)
    whole_seconds = min(
        measure_wall_seconds(
            lambda: Aggregator(db, unbounded).compute_total(_make_broad_aggregation())
        )
        for _ in range(5)
    )
    budget = Budget(max_rows=10**9, max_seconds=whole_seconds / 3)
    seconds_taken = [measure_wall_seconds(lambda: _expect_refusal(db, budget)) for _ in range(9)]
    ratio = Ratio(seconds_taken, [budget.max_seconds] * len(seconds_taken))
    label = f"stopped after {budget.max_seconds * 1000:,.0f} ms of wall time"
    return (label, *render_median_and_p95(seconds_taken), str(ratio), ratio.against(1.1))


def _expect_refusal(db: sqlite3.Connection, budget: Budget) -> None:
    try:
        Aggregator(db, budget).compute_total(_make_broad_aggregation())
    except (AggregateTimeout, AggregateTooBroad):
        return
    raise AssertionError("it was not stopped")


# --- dossiers ---


def measure_dossier(quick: bool) -> Table:
    """Needs the shared data; without it the table says so."""
    header = ("dossier", "median ms", "median p95 ms", "ratio", "target")
    if not OFFICIAL.is_dir():
        return Table("Federal dossiers", header, (), f"Not measured: there is no {OFFICIAL}.")
    rounds = 10 if quick else 100
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / DATABASE_FILE_NAME
        loading.load(path, [OFFICIAL / "billstatus", OFFICIAL / "saps"], None)
        service = FederalService(path, RandomEmbedder())  # type: ignore[arg-type]
        with open_client(service) as get:
            dossier_seconds, separate_seconds = [], []
            for _ in range(rounds + 2):
                dossier_seconds.append(
                    measure_wall_seconds(lambda: get(f"/v1/bills/{LARGEST_BILL}/dossier", {}))
                )
                separate_seconds.append(measure_wall_seconds(lambda: _fetch_separately(get)))
        service.store.close()
    ratio = Ratio(dossier_seconds[2:], separate_seconds[2:])
    rows = (
        (
            f"{len(_SEPARATE_CALLS) + 1} calls, one after the other",
            *render_median_and_p95(separate_seconds[2:]),
            "1.000",
            "",
        ),
        (
            f"`GET /v1/bills/{LARGEST_BILL}/dossier`",
            *render_median_and_p95(dossier_seconds[2:]),
            str(ratio),
            ratio.against(0.7),
        ),
    )
    note = (
        f"The real bill {LARGEST_BILL}, with 250 amendments; lists of {dossiers.MAX_SECTION_ITEMS} "
        "in both. The calls are those an agent would make for the same sections; the records at "
        "the other end of links, which the dossier has too, are not fetched by them. Wall time, "
        "taking turns."
    )
    return Table("Federal dossiers", header, rows, note)


_LINK_KINDS = (
    "crs_report",
    "cost_estimate",
    "statement",
    "committee_report",
    "hearing",
    "vote",
    "law",
)
_SEPARATE_CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/cosponsors", {}),
    ("/actions", {}),
    ("/amendments", {}),
    *(("/links", {"kind": kind}) for kind in _LINK_KINDS),
)


def _fetch_separately(get: Callable[[str, dict[str, Any]], Any]) -> None:
    get(f"/v1/bills/{LARGEST_BILL}", {})
    for path, params in _SEPARATE_CALLS:
        get(f"/v1/bills/{LARGEST_BILL}{path}", {"limit": dossiers.MAX_SECTION_ITEMS, **params})


if __name__ == "__main__":
    import sys

    for measure in (measure_names, measure_aggregates, measure_dossier):
        print(measure("--quick" in sys.argv), end="\n\n", flush=True)
