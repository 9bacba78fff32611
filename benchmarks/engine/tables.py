"""The engine's measurements, on the shared data beside the project; nothing without it."""

from collections.abc import Iterator

from benchmarks.engine import embedding, lexical, quality, store, vectors
from benchmarks.engine.corpus import SHARED
from benchmarks.table import Table


def tables(quick: bool) -> Iterator[Table]:
    """Each table as it is measured. The first run also builds what is measured: some minutes."""
    if not SHARED.is_dir():
        print(f"The engine is not measured: there is no {SHARED}", flush=True)
        return
    rounds = 2 if quick else 5
    questions = 10 if quick else 60
    yield embedding.bulk(rounds, 8 if quick else 32)
    yield embedding.question(questions)
    yield embedding.cold(1 if quick else 3)
    yield store.filtered(4 if quick else 20)
    yield store.refill(1 if quick else 3)
    yield store.memory()
    yield vectors.scan(4 if quick else 20)
    yield vectors.signs()
    yield lexical.search(questions)
    yield lexical.agreement(2 * questions)
    yield quality.measure()
