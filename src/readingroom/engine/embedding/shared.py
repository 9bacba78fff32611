"""The embedder that all bases of a process share."""

from readingroom.core.settings import RoomSettings
from readingroom.engine.embedding.embedder import Embedder

_EMBEDDERS: dict[tuple[object, ...], Embedder] = {}


def embedder_for(settings: RoomSettings) -> Embedder:
    """Return the one embedder for these settings; nothing is loaded before the first text."""
    key = (
        settings.models,
        settings.embedding_model_dir,
        settings.embedding_precision,
        settings.embedding_threads,
        settings.embedding_device,
    )
    if key not in _EMBEDDERS:
        _EMBEDDERS[key] = Embedder(*key)
    return _EMBEDDERS[key]
