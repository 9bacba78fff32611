"""What a base needs in order to ingest files, in one object."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from readingroom.core import clock
from readingroom.engine.embedding.embedder import Embedder
from readingroom.ingest.pipeline import Pipeline
from readingroom.ingest.private_copy import AllowedFolders
from readingroom.storage.changes import StepHook, ignore_step
from readingroom.storage.postgres.database import PostgresDatabase


@dataclass(frozen=True, slots=True)
class IngestContext:
    """The pipeline that reads files, the embedder, the allowed folders and the clock."""

    pipeline: Pipeline
    embedder: Embedder
    roots: AllowedFolders
    get_now: Callable[[], datetime] = clock.now
    on_step: StepHook = ignore_step
    """Called at each named step of a change; tests interrupt it there."""
    database: PostgresDatabase | None = None
    """The database that several processes share; None where the base's folder has everything."""
