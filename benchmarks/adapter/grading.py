"""The log-odds of pairs by a graph as searches run it, int8 and each pair alone."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from readingroom.engine.embedding.machine import count_cores
from readingroom.engine.embedding.session import open_session


def grade_pairs(graph_path: Path, pairs: Any, rows: Any) -> Any:
    """Return the log-odds of the rows that are wanted; those of the others are not numbers."""
    session = open_session(graph_path, 1)
    input_names = [graph_input.name for graph_input in session.get_inputs()]
    starts = np.concatenate([[0], np.cumsum(pairs["length"])])

    def grade(row: int) -> float:
        ids = pairs["ids"][starts[row] : starts[row + 1]].astype(np.int64)
        inputs = {
            "input_ids": ids,
            "token_type_ids": (np.arange(len(ids)) >= pairs["second"][row]).astype(np.int64),
            "attention_mask": np.ones_like(ids),
        }
        output = session.run(None, {name: inputs[name][np.newaxis] for name in input_names})
        return float(output[0][0, 0])

    log_odds = np.full(len(pairs["length"]), np.nan, np.float32)
    with ThreadPoolExecutor(count_cores()) as executor:
        log_odds[rows] = list(executor.map(grade, rows))
    return log_odds
