"""What a base made of files works with, in one piece."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from readingroom.core import clock
from readingroom.engine.embedding.embedder import Embedder
from readingroom.ingest.intake import Roots
from readingroom.ingest.pipeline import Pipeline
from readingroom.storage.changes import Step, unnoticed


@dataclass(frozen=True, slots=True)
class Workbench:
    """The reader of files, the model, the folders files may come from, and the clock."""

    pipeline: Pipeline
    embedder: Embedder
    roots: Roots
    now: Callable[[], datetime] = clock.now
    at: Step = unnoticed
    """Hears each named step of a change."""
