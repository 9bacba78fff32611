"""The embedder that all bases of a process share, and the reranker of the desk."""

from pathlib import Path

from readingroom.core.settings import RoomSettings
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.embedding.reranker import Reranker

_RERANKERS: dict[tuple[Path, int | None], Reranker] = {}
_EMBEDDERS: dict[tuple[object, ...], Embedder] = {}


def embedder_for(settings: RoomSettings) -> Embedder:
    """Return the one embedder for these settings; nothing is loaded before the first text."""
    key = (
        settings.models,
        settings.embedding_model_dir,
        settings.embedding_precision,
        settings.embedding_threads,
        settings.embedding_device,
        settings.embedder,
    )
    if key not in _EMBEDDERS:
        _EMBEDDERS[key] = Embedder(*key)
    return _EMBEDDERS[key]


def reranker_for(settings: RoomSettings) -> Reranker | None:
    """Return the one cross-encoder for these settings, if they name one."""
    if settings.reranker is None:
        return None
    key = (settings.reranker, settings.embedding_threads)
    if key not in _RERANKERS:
        _RERANKERS[key] = Reranker(*key)
    return _RERANKERS[key]
