"""What the bases made of files work with, as the operator wants it."""

from functools import lru_cache
from typing import Literal

from readingroom.core.settings import Settings
from readingroom.engine.embedding.embedder import Embedder
from readingroom.ingest.context import IngestContext
from readingroom.ingest.document import ReadOptions
from readingroom.ingest.intake import Roots
from readingroom.ingest.pipeline import Pipeline
from readingroom.ingest.read.sandbox import Limits, Sandbox

FileBase = Literal["documents", "policy"]


def workbench_of(base: FileBase, settings: Settings, embedder: Embedder) -> IngestContext:
    return IngestContext(pipeline_of(settings), embedder, roots_of(base, settings))


@lru_cache
def pipeline_of(settings: Settings) -> Pipeline:
    """One pipeline for all bases of a process: it holds the seats, as many as there are cores."""
    options = ReadOptions(
        enable_ocr=settings.enable_ocr,
        image_ratio_threshold=settings.image_ratio_threshold,
        image_skip=settings.image_skip,
    )
    return Pipeline(Sandbox(Limits(wall_seconds=settings.ingest_seconds)), options)


def roots_of(base: FileBase, settings: Settings) -> Roots:
    """The folders a base may take files from: those that are set, else its inbox and uploads."""
    setting, chosen = {
        "documents": ("DOCUMENT_ROOTS", settings.document_roots),
        "policy": ("POLICY_ROOTS", settings.policy_roots),
    }[base]
    own = settings.data / base
    folders = (own / "inbox", own / "uploads") if chosen is None else chosen
    return Roots(setting, folders, settings.max_document_bytes)
