"""Counts by group beside the same counts in SQL written by hand, over 20,000 bills."""

import json
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from benchmarks.federal.world import make_database
from benchmarks.table import Ratio, Table
from readingroom.bases.federal import store
from readingroom.bases.federal.filters import parse_filters
from readingroom.bases.federal.query.aggregates import Aggregation, Aggregator, Budget
from readingroom.bases.federal.schema.sources import TABLES_BY_NAME
from readingroom.storage.database import Database

_BILLS, _QUICK_BILLS = 20_000, 2_000
_MEMBERS, _TOPICS, _COMMITTEES = 540, 600, 220
_TARGET = 1.3

# The quickest statements we know, with the indexes named: no budget, no labels.
_BY_HAND = {
    "topic": """SELECT value AS key, count(*) AS value FROM facets
        WHERE field = 'topic' AND doc IN (SELECT doc FROM documents WHERE source = 'bills')
        GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20""",
    "committee": """SELECT committee_id AS key, count(*) AS value FROM bill_committees
        WHERE bill_id IN (SELECT id FROM bills INDEXED BY bills_facts WHERE status = 'active')
        GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20""",
    "cosponsor": """SELECT bioguide_id AS key, count(*) AS value
        FROM bill_cosponsors INDEXED BY bill_cosponsors_person
        WHERE bill_id IN (SELECT id FROM bills INDEXED BY bills_facts WHERE status = 'active')
        GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20""",
}
_BY_HAND_COLUMN = """SELECT {name} AS key, count(*) AS value FROM bills INDEXED BY bills_facts
    WHERE status = 'active' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20"""


def measure(quick: bool) -> Table:
    """Return how long each `group_by` of bills takes, beside the statement written by hand."""
    count, rounds = (_QUICK_BILLS, 2) if quick else (_BILLS, 15)
    path = Path("build") / f"federal-groups-{count}.db"
    path.parent.mkdir(exist_ok=True)
    make_database(path, lambda db: _add_bills(db, count))
    with closing(store.connect(path)) as db:
        rows = tuple(
            _compare(db, name, rounds)
            for name in TABLES_BY_NAME["bills"].aggregation_plan.group_names
        )
    return Table(
        f"Counts by group over {count:,} bills",
        ("`group_by`", "median ms, ours", "median ms, SQL by hand", "ratio", "target"),
        rows,
        "Processor time on one connection, taking turns; both give the same numbers. Each bill has "
        "8 topics, 2 committees and 20 cosponsors.",
    )


def _compare(db: Database, name: str, rounds: int) -> tuple[str, ...]:
    by_hand = _BY_HAND.get(name) or _BY_HAND_COLUMN.format(name=name)

    def run_ours() -> list[tuple[object, object]]:
        table = TABLES_BY_NAME["bills"]
        request = Aggregation(table, parse_filters(table, None), group_by=name)
        answer = Aggregator(db, Budget(max_seconds=60.0)).compute_total(request)
        return [(bucket.key, bucket.value) for bucket in answer.buckets]  # type: ignore[union-attr]

    def run_by_hand() -> list[tuple[object, object]]:
        return [tuple(row) for row in db.execute(by_hand)]

    assert sorted(run_ours(), key=str) == sorted(run_by_hand(), key=str), name
    pairs = [(_measure_cpu(run_ours), _measure_cpu(run_by_hand)) for _ in range(rounds)]
    ours, hand = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    ratio = Ratio(ours, hand)
    return (name, _format_median(ours), _format_median(hand), str(ratio), ratio.against(_TARGET))


def _measure_cpu(run: Callable[[], object]) -> float:
    started = time.process_time()
    run()
    return time.process_time() - started


def _format_median(seconds: list[float]) -> str:
    return f"{sorted(seconds)[len(seconds) // 2] * 1000:.1f}"


def _add_bills(db: sqlite3.Connection, count: int) -> None:
    chance = random.Random(19)
    members = [f"M{number:06}" for number in range(_MEMBERS)]
    committees = [f"HS{chr(65 + n // 26)}{chr(65 + n % 26)}" for n in range(_COMMITTEES)]
    db.execute("BEGIN")
    for table, ids in (("legislators", members), ("committees", committees)):
        db.executemany(
            f"INSERT INTO {table} (id, record, loader) VALUES (?, ?, 'bench')",
            [(id, json.dumps({"id": id, "title": id})) for id in ids],
        )
    for number in range(1, count + 1):
        _add_bill(db, number, chance, members, committees)
    db.execute("COMMIT")


def _add_bill(
    db: sqlite3.Connection,
    number: int,
    chance: random.Random,
    members: list[str],
    committees: list[str],
) -> None:
    id = f"hr:119:{number}"
    record = {
        "id": id,
        "title": id,
        "congress": 119,
        "type": chance.choice(("hr", "hr", "s", "hres", "sres")),
        "origin_chamber": chance.choice(("house", "senate")),
        "published_at": f"2025-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}",
        "policy_area": f"Area {chance.randint(1, 32)}",
        "sponsors": [
            {
                "bioguide_id": chance.choice(members),
                "party": chance.choice("DRI"),
                "state": f"S{chance.randint(1, 55)}",
            }
        ],
        "cosponsor_count": 20,
        # As long as the record of a bill is on average.
        "summary": {"text": "x" * 6_000},
    }
    db.execute(
        "INSERT INTO bills (id, record, loader) VALUES (?, ?, 'bench')", (id, json.dumps(record))
    )
    db.execute(
        "INSERT INTO documents VALUES (?, ?, 'bills', ?)", (number, id, record["published_at"])
    )
    facets = [("congress", "119"), *(("topic", f"Topic {n}") for n in _draw(chance, _TOPICS, 8))]
    db.executemany("INSERT INTO facets VALUES (?, ?, ?)", [(*facet, number) for facet in facets])
    db.executemany(
        "INSERT INTO bill_committees VALUES (?, ?)",
        [(id, committees[n]) for n in _draw(chance, len(committees), 2)],
    )
    db.executemany(
        "INSERT INTO bill_cosponsors VALUES (?, ?, ?, '{}')",
        [(id, n, members[m]) for n, m in enumerate(_draw(chance, len(members), 20), start=1)],
    )


def _draw(chance: random.Random, count: int, size: int) -> Iterator[int]:
    return iter(chance.sample(range(count), size))
