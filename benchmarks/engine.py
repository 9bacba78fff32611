"""The engine's measurements, on the shared data beside the project; nothing without it."""

from collections.abc import Iterator

from benchmarks import (
    engine_embedding,
    engine_lexical,
    engine_quality,
    engine_store,
    engine_vectors,
)
from benchmarks.engine_corpus import SHARED
from benchmarks.table import Table


def tables(quick: bool) -> Iterator[Table]:
    """Each table as it is measured. The first run also builds what is measured: some minutes."""
    if not SHARED.is_dir():
        print(f"The engine is not measured: there is no {SHARED}", flush=True)
        return
    rounds = 2 if quick else 5
    questions = 10 if quick else 60
    yield engine_embedding.bulk(rounds, 8 if quick else 32)
    yield engine_embedding.question(questions)
    yield engine_embedding.cold(1 if quick else 3)
    yield engine_store.filtered(4 if quick else 20)
    yield engine_store.refill(1 if quick else 3)
    yield engine_store.memory()
    yield engine_vectors.scan(4 if quick else 20)
    yield engine_vectors.signs()
    yield engine_lexical.search(questions)
    yield engine_lexical.agreement(2 * questions)
    yield engine_quality.measure()
