"""The embedder that all bases of a process share, what helps it, and the reranker of the desk."""

from functools import partial
from pathlib import Path

from readingroom.core.settings import RoomSettings, reveal_secret
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.embedding.reranker import Reranker
from readingroom.engine.embedding.waiting_texts import (
    HelpedEmbedder,
    WaitingTexts,
    create_waiting_tables,
)
from readingroom.storage.postgres.state import list_collection_models, open_waiting_tables

_RERANKERS: dict[tuple[Path, int | None], Reranker] = {}
_EMBEDDERS: dict[tuple[object, ...], Embedder] = {}
_HELPED_EMBEDDERS: dict[tuple[object, ...], HelpedEmbedder] = {}


def embedder_for(settings: RoomSettings) -> HelpedEmbedder:
    """Return the one embedder for these settings; nothing is loaded before the first text.

    Rooms of one process share the model, but not the texts that their workers may embed.
    """
    model_settings = (
        settings.models_folder,
        settings.embedding_model_dir,
        settings.embedding_precision,
        settings.embedding_threads,
        settings.embedding_device,
        settings.embedder,
    )
    if model_settings not in _EMBEDDERS:
        _EMBEDDERS[model_settings] = Embedder(*model_settings)
    room_settings = (*model_settings, settings.data, reveal_secret(settings.database_url))
    if room_settings not in _HELPED_EMBEDDERS:
        _HELPED_EMBEDDERS[room_settings] = HelpedEmbedder(
            WaitingTexts(
                open_waiting_tables(settings, create_waiting_tables),
                _EMBEDDERS[model_settings],
                list_stored_models=partial(list_collection_models, settings),
            )
        )
    return _HELPED_EMBEDDERS[room_settings]


def reranker_for(settings: RoomSettings) -> Reranker | None:
    """Return the one cross-encoder for these settings, if they name one."""
    if settings.reranker is None:
        return None
    model_settings = (settings.reranker, settings.embedding_threads)
    if model_settings not in _RERANKERS:
        _RERANKERS[model_settings] = Reranker(*model_settings)
    return _RERANKERS[model_settings]
