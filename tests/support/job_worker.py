"""A process that claims a job on a shared database, says so, and never ends it."""

import sys
import time
from pathlib import Path

from readingroom.storage.postgres.database import open_database
from readingroom.storage.postgres.state import SharedJobStore


def hang(url: str, folder: Path, kind: str) -> None:
    job = SharedJobStore(folder, open_database(url)).claim_job((kind,), "hanging")
    assert job is not None
    print(job.id, flush=True)
    time.sleep(3600)


if __name__ == "__main__":
    hang(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
