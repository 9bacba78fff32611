"""Federal questions of very common words on PostgreSQL beside SQLite, over the shared files.

`python -m benchmarks.scale.phrases [FOLDER]` loads the official files of a folder, which takes a
minute. Processor time is that of this process and the database's, to the last row of the answer.
"""

import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from benchmarks.scale.engines import DATABASE, SERVER_OPTIONS, measure_cpu, print_progress
from readingroom.bases.federal.load.copying import copy_records
from readingroom.bases.federal.search.full_text import find_passages
from readingroom.bases.federal.store import SharedRecords, connect, get_database_path
from readingroom.storage.database import Database
from tests.support.federal.base import load_files
from tests.support.postgres import PostgresServer, make_template, run_server

_ROUNDS = 7
_QUESTIONS = (
    *('"of the"', '"in the"', '"united states"', '"of the united states"'),
    *('"to the" water', '"of the" act', "the", "the of", "airport noise near schools"),
)


def main(official_files: Path) -> None:
    with run_server(SERVER_OPTIONS) as server, tempfile.TemporaryDirectory() as folder:
        load_files(Path(folder), official_files, embed=False)
        print_progress("the files are loaded into SQLite")
        make_template(server)
        shared_place = SharedRecords(server.make_room(DATABASE))
        copy_records(get_database_path(Path(folder)), shared_place)
        server.execute("VACUUM ANALYZE", DATABASE)
        print_progress("and copied to PostgreSQL")
        print("| question | passages | CPU ms PostgreSQL / SQLite | ratio | ranks differ by |")
        print("| --- | ---: | --- | ---: | --- |")
        with (
            closing(connect(get_database_path(Path(folder)))) as file_db,
            closing(connect(shared_place)) as shared_db,
        ):
            for question in _QUESTIONS:
                _compare(server, file_db, shared_db, question)


def _compare(server: PostgresServer, file_db: Database, shared_db: Database, question: str) -> None:
    ranks_by_engine = []
    seconds_by_engine = []
    for db, measured_server in ((shared_db, server), (file_db, None)):
        ranks_by_engine.append(dict(find_passages(db, question, "", ())))
        ask = _make_question(db, question)
        seconds_by_engine.append(
            min(sum(measure_cpu(measured_server, ask)) for _ in range(_ROUNDS))
        )
    shared_ranks, file_ranks = ranks_by_engine
    assert shared_ranks.keys() == file_ranks.keys(), question
    difference = max(abs(rank - file_ranks[chunk]) for chunk, rank in shared_ranks.items())
    shared_seconds, file_seconds = seconds_by_engine
    print(
        f"| `{question}` | {len(file_ranks):,} | {shared_seconds * 1e3:.1f} / "
        f"{file_seconds * 1e3:.1f} | {shared_seconds / file_seconds:.2f} | {difference:.0e} |",
        flush=True,
    )


def _make_question(db: Database, question: str) -> Callable[[], object]:
    return lambda: list(find_passages(db, question, "", ()))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data/federal"))
