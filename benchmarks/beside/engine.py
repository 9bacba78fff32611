"""Both versions' engine: chunks cut and embedded, the indexes filled and searched, the store."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.beside.rounds import KEPT, ROUNDS, Costs, compare, open_versions, run_workload
from benchmarks.engine.corpus import SHARED, load_chunks
from benchmarks.redesign.tables import Version
from benchmarks.table import Table

_TEXTS = KEPT / "texts.json"
MODELS_FOLDER = KEPT / "models"
_CHUNKS = 6_000


def tables(quick: bool) -> Iterator[Table]:
    if not SHARED.is_dir():
        print(f"The engine is not measured: there is no {SHARED}", flush=True)
        return
    write_texts()
    yield compare(
        "Beside 0.1.0: the engine",
        "beside-engine",
        open_versions(KEPT),
        [partial(measure, "engine"), partial(measure, "store")],
        1 if quick else ROUNDS,
    )


def measure(workload: str, version: Version) -> Costs:
    costs: Costs = run_workload(workload, version, str(_TEXTS), str(MODELS_FOLDER))
    return costs


def write_texts() -> Path:
    """Keep the real texts that both versions work on; they are cut by the present tree."""
    if not _TEXTS.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        _TEXTS.write_text(json.dumps(load_chunks(_CHUNKS)), "utf-8")
    return _TEXTS
