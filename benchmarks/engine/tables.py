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
    yield embedding.measure_batches(rounds, 8 if quick else 32)
    yield embedding.measure_question(questions)
    yield embedding.measure_cold_start(1 if quick else 3)
    yield store.measure_filtered_search(4 if quick else 20)
    yield store.measure_refill(1 if quick else 3)
    yield store.measure_memory()
    yield vectors.measure_scan(4 if quick else 20)
    yield vectors.measure_sign_choice()
    yield lexical.measure_search(questions)
    yield lexical.measure_agreement(2 * questions)
    yield quality.measure()
    yield quality.measure_precision()
