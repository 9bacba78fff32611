"""The federal base on PostgreSQL beside SQLite and bare psycopg.

`python -m benchmarks.scale.federal [RECORDS]`: 1,000,000 take about 12 minutes. Seven in ten are
amendments with their words, facets and links, the others dockets with names; both engines load
them through the product's writer, a file of 1,000 at a time. Processor time is that of this
process and the database's.
"""

import operator
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from benchmarks.scale.engines import DATABASE, SERVER_OPTIONS, measure_cpu, print_progress
from readingroom.bases.federal import store
from readingroom.bases.federal.filters import build_sql_filter
from readingroom.bases.federal.load.writer import Writer
from readingroom.bases.federal.names.resolver import resolve_name
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
    RecordLink,
    SearchableFields,
    build_citation_fields,
)
from readingroom.bases.federal.schema.records import (
    Amendment,
    BillAction,
    Docket,
    LatestAction,
    LinkKind,
    Person,
)
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME
from readingroom.bases.federal.store import FederalPlace, FederalStore, SharedRecords
from tests.support.postgres import PostgresServer, make_template, run_server

_RECORDS_PER_FILE = 1_000
_AMENDMENTS_PER_FILE = 700
_PAGE = 20
_CALLS, _ROUNDS = 200, 7
_NAMES = 60
# As varied as the syllables of real names: some are common, most are rare.
_SYLLABLES = [
    start + vowel + end
    for start in ("b", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "st")
    for vowel in ("a", "e", "i", "o", "u")
    for end in ("", "n", "r", "l", "s", "ck", "nd", "rt", "m", "t")
]
_COMMONNESS = [1 / (1 + place * 7 % len(_SYLLABLES)) for place in range(len(_SYLLABLES))]
_FIRST = ("Ada", "Boris", "Clara", "David", "Elena", "Frank", "Greta", "Henry", "Ines", "Jonas")
_WORDS = (
    *("amend", "improve", "provide", "require", "study", "limit", "funds", "grants", "roads"),
    *("schools", "water", "energy", "farms", "veterans", "health", "rural", "safety", "trade"),
    *("labor", "housing", "border", "research", "defense", "training"),
)


@dataclass
class Loaded:
    """How fast a place was filled."""

    rate: float
    client_microseconds: float
    database_microseconds: float
    """Processor time a record, of this process and of the database's."""


def main(record_count: int) -> None:
    with (
        run_server(SERVER_OPTIONS) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        make_template(server)
        file_place = store.get_database_path(Path(folder))
        bare_place = SharedRecords(server.make_room("bare"))
        shared_place = SharedRecords(server.url(DATABASE))
        loads = [_load(place, record_count, server) for place in (shared_place, file_place)]
        server.execute("VACUUM ANALYZE", DATABASE)
        print_progress("tables are vacuumed and counted")
        print(f"| federal, {record_count:,} records | measured | |")
        _print_loads(*loads)
        _copy_bare(server, shared_place, bare_place, record_count)
        _compare_reads(server, shared_place, record_count)
        _compare_names(server, shared_place, file_place, record_count)


def _print_loads(shared: Loaded, in_file: Loaded) -> None:
    ratio = shared.rate / in_file.rate
    print(
        f"| records a second, PostgreSQL / SQLite | {shared.rate:,.0f} / {in_file.rate:,.0f} = "
        f"{ratio:.2f}; CPU {shared.client_microseconds:.0f} and in the database "
        f"{shared.database_microseconds:.0f} / {in_file.client_microseconds:.0f} µs a record "
        f"| {'met' if ratio >= 1.5 else '**missed**'} (at least 1.5) |",
        flush=True,
    )


# --- loading ---


def _load(place: FederalPlace, record_count: int, server: PostgresServer) -> Loaded:
    name = "SQLite" if isinstance(place, Path) else "PostgreSQL"
    store.prepare_records(place)
    # Connected before: the process that serves a connection must be there to be counted.
    with closing(store.connect(place, writing=True)) as db, ThreadPoolExecutor(1) as thread:
        started = time.monotonic()

        def fill() -> None:
            writer = Writer(db, thread)
            for first in range(0, record_count, _RECORDS_PER_FILE):
                # As in a load, while the file before it is committed.
                parsed_records = list(_make_file(first))
                with writer.file_savepoint():
                    writer.put_records(parsed_records, "benchmark/1")
                if first and first % 100_000 == 0:
                    rate = first / (time.monotonic() - started)
                    print_progress(f"{name}: {first:,} records, {rate:,.0f} a second")
            with writer.transaction():
                writer.update_source_counts()
            writer.wait_and_report_undone()

        own, database = measure_cpu(None if isinstance(place, Path) else server, fill)
        seconds = time.monotonic() - started
    print_progress(f"{name}: {record_count:,} records in {seconds:.0f} s")
    return Loaded(record_count / seconds, 1e6 * own / record_count, 1e6 * database / record_count)


def _make_file(first: int) -> Iterator[ParsedRecord]:
    for number in range(first, first + _RECORDS_PER_FILE):
        if number % _RECORDS_PER_FILE < _AMENDMENTS_PER_FILE:
            yield _make_amendment(number)
        else:
            yield _make_docket(number)


def _make_amendment(number: int) -> ParsedRecord:
    chance = random.Random(number)
    congress, kind = 100 + number % 19, ("samdt", "hamdt")[number % 2]
    day = f"{1987 + 2 * (congress - 100) + number % 2}-{1 + number % 12:02}-{1 + number % 28:02}"
    words = " ".join(chance.choices(_WORDS, k=12))
    bill_id = f"hr:{congress}:{1 + number % 5_000}"
    action = LatestAction(date=day, text=f"Amendment {number} was not agreed to in the Senate")
    record = Amendment(
        id=_name_amendment(number),
        title=f"S.Amdt. {number} to H.R. {number % 5_000}: {words}",
        congress=congress,
        type=kind,
        number=number,
        chamber="senate" if kind == "samdt" else "house",
        bill_id=bill_id,
        purpose=words,
        submitted_at=day,
        sponsors=[Person(bioguide_id=f"B{number % 600:06}", name="Sen. Some Body", state="MA")],
        latest_action=action,
        actions=[BillAction(date=day, text=action.text), BillAction(date=day, text="Proposed")],
        **_cite(day),
    )
    return ParsedRecord(
        record,
        searchable_fields=SearchableFields(record.title, "", action.text),
        values_by_facet={"congress": [str(congress)], "chamber": [str(record.chamber)]},
        links=[
            RecordLink(LinkKind.AMENDMENT, bill_id, "amendments/amendment in the file of the bill")
        ],
        revision=day,
    )


def _name_amendment(number: int) -> str:
    return f"{('samdt', 'hamdt')[number % 2]}:{100 + number % 19}:{number}"


def _make_docket(number: int) -> ParsedRecord:
    name = _name_docket(number)
    record = Docket(
        id=f"docket:X-{number:07}",
        title=name,
        agency="X",
        type="Rulemaking",
        abstract=name,
        **_cite("2003-01-03"),
    )
    return ParsedRecord(record, names=(name,))


def _name_docket(number: int) -> str:
    chance = random.Random(f"docket {number}")
    last = "".join(chance.choices(_SYLLABLES, _COMMONNESS, k=3)).capitalize()
    middle = "".join(chance.choices(_SYLLABLES, _COMMONNESS, k=2)).capitalize()
    return f"{chance.choice(_FIRST)} {middle} {last}"


def _cite(day: str) -> dict[str, Any]:
    file_stamp = FileStamp("2026-11-16T00:00:00Z", "0" * 64, day)
    return build_citation_fields(
        file_stamp, url="https://www.congress.gov/x", org="GPO", cite="Some", published_at=day
    )


# What a load of these records writes to, those that others refer to first.
_WRITTEN_TABLES = {
    "amendments": "(id, record, loader)",
    "regulations_dot_gov_dockets": "(id, record, loader)",
    "documents": "",
    "facets": "",
    "chunks": "",
    "passages": "",
    "passage_words": "",
    "links": "",
    "names": "",
    "name_forms": "",
    "changes": "",
}


def _copy_bare(
    server: PostgresServer, filled: SharedRecords, empty: SharedRecords, record_count: int
) -> None:
    """What the same rows cost when nobody has to make them: one COPY a table, indexes in place."""
    store.prepare_records(empty)
    options = "-c search_path=readingroom_federal,public"
    blocks_by_table: dict[str, list[bytes]] = {}
    with psycopg.connect(filled.url, options=options) as source:
        for table, columns in _WRITTEN_TABLES.items():
            with source.cursor().copy(f"COPY {table} {columns} TO STDOUT") as stream:
                blocks_by_table[table] = [b"".join(bytes(block) for block in stream)]
    with psycopg.connect(empty.url, options=options) as target:

        def fill() -> None:
            for table, columns in _WRITTEN_TABLES.items():
                with target.cursor().copy(f"COPY {table} {columns} FROM STDIN") as stream:
                    for block in blocks_by_table[table]:
                        stream.write(block)
            target.commit()

        started = time.monotonic()
        own, database = measure_cpu(server, fill)
        seconds = time.monotonic() - started
    print(
        f"| the same rows by a bare COPY, records a second | {record_count / seconds:,.0f}; CPU "
        f"{1e6 * own / record_count:.0f} and in the database {1e6 * database / record_count:.0f} "
        "µs a record | |",
        flush=True,
    )


# --- lookups and lists ---


def _compare_reads(server: PostgresServer, place: SharedRecords, record_count: int) -> None:
    source = SOURCES_BY_NAME["amendments"]
    chance = random.Random(3)
    numbers = [
        _RECORDS_PER_FILE * chance.randrange(record_count // _RECORDS_PER_FILE)
        + chance.randrange(_AMENDMENTS_PER_FILE)
        for _ in range(_CALLS)
    ]
    filters = [
        build_sql_filter(
            source.record_table,
            {"congress": 100 + number % 19, "chamber": ("senate", "house")[number % 2]},
        )
        for number in numbers
    ]
    records = FederalStore(place)
    url = server.url(DATABASE)
    options = "-c search_path=readingroom_federal,public"
    with psycopg.connect(url, autocommit=True, options=options) as bare:
        bare_record = "SELECT record::text FROM amendments WHERE id = %s"
        bare_page = (
            "SELECT id, published_at, record::text FROM amendments WHERE status = 'active' "
            "AND congress = %s AND chamber = %s "
            f"ORDER BY published_at DESC NULLS LAST, id LIMIT {_PAGE + 1}"
        )

        def look_up_bare() -> None:
            for number in numbers:
                bare.execute(bare_record, (_name_amendment(number),)).fetchone()

        def look_up() -> None:
            for number in numbers:
                record_id = _name_amendment(number)
                records.query_now(lambda db, id=record_id: store.read_record_json(db, source, id))

        def list_bare() -> None:
            for number in numbers:
                chamber = ("senate", "house")[number % 2]
                bare.execute(bare_page, (100 + number % 19, chamber)).fetchall()

        def list_page() -> None:
            for sql_filter in filters:
                records.query_now(
                    lambda db, f=sql_filter: store.list_records(db, source, f, _PAGE, None)
                )

        _compare_calls(server, "lookup by id", look_up, look_up_bare)
        _compare_calls(server, "filtered list of 20, newest first", list_page, list_bare)
    records.close()


def _compare_calls(
    server: PostgresServer, name: str, ours: Callable[[], None], bare: Callable[[], None]
) -> None:
    for call in (ours, bare):
        call()  # plans, connections and pages are there then
    our_ms, bare_ms = [], []
    for _ in range(_ROUNDS):
        our_ms.append(1000 * sum(measure_cpu(server, ours)) / _CALLS)
        bare_ms.append(1000 * sum(measure_cpu(server, bare)) / _CALLS)
    ratio = median(our / other for our, other in zip(our_ms, bare_ms, strict=True))
    print(
        f"| {name}, the store / bare psycopg, CPU | {median(our_ms):.3f} / {median(bare_ms):.3f} "
        f"ms = {ratio:.2f} | {'met' if ratio <= 3 else '**missed**'} (at most 3) |",
        flush=True,
    )


# --- names ---


def _compare_names(
    server: PostgresServer, shared: SharedRecords, in_file: Path, record_count: int
) -> None:
    chance = random.Random(5)
    numbers = [_choose_docket(chance, record_count) for _ in range(_NAMES)]
    letters_left_out = {_misspell(number): _name_docket(number) for number in numbers}
    # Made after the search was, so that nothing can be fitted to it.
    chance = random.Random(97)
    other_mistakes = {}
    for _ in range(_NAMES):
        name = _name_docket(_choose_docket(chance, record_count))
        other_mistakes[_misspell_anyhow(name, chance)] = name
    for mistakes, names in (
        ("a letter left out", letters_left_out),
        ("left out, put in, changed or swapped", other_mistakes),
    ):
        results = [
            _resolve_names(server if place is shared else None, place, names)
            for place in (shared, in_file)
        ]
        (shared_ms, shared_found, shared_answers), (file_ms, file_found, file_answers) = results
        same = sum(map(operator.eq, shared_answers, file_answers))
        ratio = shared_ms / file_ms
        print(
            f"| misspelt name among {record_count * 3 // 10:,} ({mistakes}), PostgreSQL / SQLite, "
            f"CPU | {shared_ms:.1f} / {file_ms:.1f} ms = {ratio:.2f}; found in five {shared_found} "
            f"/ {file_found}, the same answers {same} of {len(names)} | "
            f"{'met' if ratio <= 0.5 else '**missed**'} (at most 0.5) |",
            flush=True,
        )


def _resolve_names(
    server: PostgresServer | None, place: SharedRecords | Path, names: dict[str, str]
) -> tuple[float, int, list[Any]]:
    """Milliseconds a name, how many are among the first five, and all answers to each."""
    source = SOURCES_BY_NAME["regulations_dot_gov_dockets"]
    sql_filter = build_sql_filter(source.record_table, {})
    with closing(store.connect(place)) as db:
        found = 0
        answers = []
        for misspelt, name in names.items():  # what a process keeps of names is there then
            matches = resolve_name(db, source, misspelt, sql_filter)
            found += name in [match.record["title"] for match in matches[:5]]
            answers.append([(match.id, match.score) for match in matches])

        def resolve() -> None:
            for misspelt in names:
                resolve_name(db, source, misspelt, sql_filter)

        seconds = sum(measure_cpu(server, resolve))
    return 1000 * seconds / len(names), found, answers


def _choose_docket(chance: random.Random, record_count: int) -> int:
    return _RECORDS_PER_FILE * chance.randrange(
        record_count // _RECORDS_PER_FILE
    ) + chance.randrange(_AMENDMENTS_PER_FILE, _RECORDS_PER_FILE)


def _misspell(number: int) -> str:
    name, chance = _name_docket(number), random.Random(number)
    place = chance.randrange(1, len(name) - 1)
    return name[:place] + name[place + 1 :]


def _misspell_anyhow(name: str, chance: random.Random) -> str:
    place, mistake = chance.randrange(1, len(name) - 1), chance.randrange(4)
    if mistake == 3:
        return name[: place - 1] + name[place] + name[place - 1] + name[place + 1 :]
    other = "" if mistake == 0 else chance.choice("aeioustrn")
    return name[:place] + other + name[place + (mistake != 2) :]


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 100_000)
