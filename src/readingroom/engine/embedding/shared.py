"""The embedder that all bases of a process share, and the reranker of the desk."""

from pathlib import Path

from readingroom.core.settings import RoomSettings
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.embedding.reranker import Reranker

_RERANKERS: dict[tuple[Path, int | None], Reranker] = {}
_EMBEDDERS: dict[tuple[object, ...], Embedder] = {}


def embedder_for(settings: RoomSettings) -> Embedder:
    """Return the one embedder for these settings; nothing is loaded before the first text."""
    model_settings = (
        settings.models,
        settings.embedding_model_dir,
        settings.embedding_precision,
        settings.embedding_threads,
        settings.embedding_device,
        settings.embedder,
    )
    if model_settings not in _EMBEDDERS:
        _EMBEDDERS[model_settings] = Embedder(*model_settings)
    return _EMBEDDERS[model_settings]


def reranker_for(settings: RoomSettings) -> Reranker | None:
    """Return the one cross-encoder for these settings, if they name one."""
    if settings.reranker is None:
        return None
    model_settings = (settings.reranker, settings.embedding_threads)
    if model_settings not in _RERANKERS:
        _RERANKERS[model_settings] = Reranker(*model_settings)
    return _RERANKERS[model_settings]
