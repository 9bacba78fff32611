"""Opens every base on an empty data directory and prints the processor seconds it took.

Run by `redesign/tables.py` with the source tree of either version.
"""

import importlib
import sys
import time
from pathlib import Path


def open_all(data: Path) -> int:
    """Open every base as the shell commands do; return how many."""
    try:
        catalogue = importlib.import_module("readingroom.server.catalogue")
        settings = importlib.import_module("readingroom.core.settings").Settings(data=data)
        return len(catalogue.open_bases(catalogue.OFFERS, settings))
    except ModuleNotFoundError:
        settings = importlib.import_module("readingroom.settings").Settings(data=data)
        specs = importlib.import_module("readingroom.bases").BASES
        return len([spec.open_base(settings) for spec in specs.values()])


before = time.process_time()
assert open_all(Path(sys.argv[1])) == 5
print(time.process_time() - before)
