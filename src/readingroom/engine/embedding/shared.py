"""The embedder and the cross-encoder that all bases of a process share, and what helps them."""

from functools import partial
from pathlib import Path

from readingroom.core.settings import RoomSettings, reveal_secret
from readingroom.engine.embedding.cross_encoder.reranker import Reranker, find_packaged_reranker
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.embedding.waiting_texts import (
    WaitingTexts,
    WorkerAidedEmbedder,
    create_waiting_tables,
)
from readingroom.storage.postgres.state import list_collection_models, open_waiting_tables

_RERANKERS_BY_SETTINGS: dict[tuple[Path, int | None, Path | None], Reranker] = {}
_PLAIN_EMBEDDERS_BY_SETTINGS: dict[tuple[object, ...], Embedder] = {}
_WORKER_AIDED_EMBEDDERS_BY_SETTINGS: dict[tuple[object, ...], WorkerAidedEmbedder] = {}


def get_shared_embedder(settings: RoomSettings) -> WorkerAidedEmbedder:
    """Return the one embedder for these settings; nothing is loaded before the first text.

    Rooms of one process share the model, but not the texts that their workers may embed.
    """
    embedder_arguments = (
        settings.models_folder,
        settings.embedding_model_dir,
        settings.embedding_precision,
        settings.embedding_threads,
        settings.embedding_device,
        settings.embedder,
    )
    if embedder_arguments not in _PLAIN_EMBEDDERS_BY_SETTINGS:
        _PLAIN_EMBEDDERS_BY_SETTINGS[embedder_arguments] = Embedder(*embedder_arguments)
    reranker = find_shared_reranker(settings)
    aided_embedder_settings = (
        *embedder_arguments,
        reranker,
        settings.data,
        reveal_secret(settings.database_url),
    )
    if aided_embedder_settings not in _WORKER_AIDED_EMBEDDERS_BY_SETTINGS:
        _WORKER_AIDED_EMBEDDERS_BY_SETTINGS[aided_embedder_settings] = WorkerAidedEmbedder(
            WaitingTexts(
                open_waiting_tables(settings, create_waiting_tables),
                _PLAIN_EMBEDDERS_BY_SETTINGS[embedder_arguments],
                list_stored_identities=partial(list_collection_models, settings),
            ),
            reranker,
        )
    return _WORKER_AIDED_EMBEDDERS_BY_SETTINGS[aided_embedder_settings]


def find_shared_reranker(settings: RoomSettings) -> Reranker | None:
    """Return the one cross-encoder for these settings: the named one, else the packaged one.

    Return None where there is none, or where the settings want no second look.
    """
    model_folder = settings.reranker or find_packaged_reranker()
    if model_folder is None or not settings.second_look:
        return None
    # The shorter graph is that of the packaged model; an operator's own is run as it is.
    graphs_folder = None if settings.reranker else settings.models_folder
    reranker_arguments = (model_folder, settings.embedding_threads, graphs_folder)
    if reranker_arguments not in _RERANKERS_BY_SETTINGS:
        _RERANKERS_BY_SETTINGS[reranker_arguments] = Reranker(*reranker_arguments)
    return _RERANKERS_BY_SETTINGS[reranker_arguments]
