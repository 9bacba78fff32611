"""Lexical search beside an earlier release: `python -m benchmarks.engine.lexical_release SRC`.

SRC is the `src` folder of a checkout of that release, for example of 0.1.0. Each version runs in a
process of its own, over the same index file, and both answer every question in turn.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.engine.corpus import CACHE_FOLDER, load_chunks, make_questions
from benchmarks.table import Ratio, Table
from readingroom.core.filters import FilterFields
from readingroom.engine.lexical import LexicalDocument, LexicalIndex

CHUNK_COUNT = 24_000
COLUMNS = {"text": 1.0}
CURRENT = Path(__file__).parents[2] / "src"
_INDEX_PATH = CACHE_FOLDER / f"words-real-{CHUNK_COUNT}.sqlite"


def measure(release: Path, questions: int = 60, rounds: int = 5, k: int = 100) -> Table:
    """Compare the processor time of a search: the machine is shared, so wall time is noise."""
    _build_index()
    milliseconds: dict[str, list[float]] = {"release": [], "current": []}
    questions_asked = make_questions(questions)
    with _start_worker(release, k) as old, _start_worker(CURRENT, k) as new:
        for number in range(rounds + 1):  # the first round warms both
            for question in questions_asked:
                (old_ms, old_ids), (new_ms, new_ids) = (
                    _ask_worker(old, question),
                    _ask_worker(new, question),
                )
                assert old_ids == new_ids, f"the ranking of {question!r} has changed"
                if number:
                    milliseconds["release"].append(old_ms)
                    milliseconds["current"].append(new_ms)
    ratio = Ratio(milliseconds["current"], milliseconds["release"])
    return Table(
        f"Lexical search for {k} hits over {CHUNK_COUNT:,} chunks, beside the release before",
        ("version", "median CPU ms", "ratio", "target"),
        (
            ("release", f"{median(milliseconds['release']):.2f}", "1.000", ""),
            ("current", f"{median(milliseconds['current']):.2f}", str(ratio), ratio.against(0.5)),
        ),
        f"{rounds} rounds of {questions} questions in turn after one not counted, each version in "
        "its own process over the same file. Both find the same chunks in the same order.",
    )


def _build_index() -> None:
    with contextlib.closing(LexicalIndex(_INDEX_PATH, COLUMNS, FilterFields())) as index:
        if index.generation is None:
            texts = enumerate(load_chunks(CHUNK_COUNT))
            index.replace_documents(
                (LexicalDocument(str(row), {"text": text}, {}) for row, text in texts), 1
            )


@contextlib.contextmanager
def _start_worker(source: Path, k: int) -> Iterator[Any]:
    """Start a process that imports `readingroom` from `source` and answers line by line."""
    environment = os.environ | {"PYTHONPATH": str(source)}
    code = f"{_WORKER_SOURCE}\nanswer({str(_INDEX_PATH)!r}, {k})"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def _ask_worker(worker: Any, question: str) -> tuple[float, list[str]]:
    worker.stdin.write(json.dumps(question) + "\n")
    worker.stdin.flush()
    milliseconds, ids = json.loads(worker.stdout.readline())
    return milliseconds, ids


# Source text, because the worker must not import this module's version of `readingroom`.
_WORKER_SOURCE = """
import json, sys, time
from pathlib import Path
from readingroom.core import filters
from readingroom.engine.lexical import LexicalIndex

def answer(path, k):
    fields = getattr(filters, "FilterFields", None) or filters.Fields  # its name in 0.1.0
    index = LexicalIndex(Path(path), {"text": 1.0}, fields())
    for line in sys.stdin:
        began = time.process_time()
        ids = [hit.id for hit in index.search(json.loads(line), k)]
        print(json.dumps([1000 * (time.process_time() - began), ids]), flush=True)
"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("release", type=Path, metavar="SRC")
    print(measure(parser.parse_args().release))
