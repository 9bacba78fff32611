"""`readingroom model`: the embedding model, found or fetched."""

import click

from readingroom.console.options import add_common_options, print_result
from readingroom.core.progress import no_progress_sync
from readingroom.core.settings import RoomSettings
from readingroom.engine.embedding.shared import find_shared_reranker, get_shared_embedder
from readingroom.engine.embedding.weights import WeightsFolder, download_weights, get_weights_folder
from readingroom.engine.errors import ModelUnavailable


@click.group()
def model() -> None:
    """The embedding model that search by meaning needs; search by words works without it."""


@model.command()
@add_common_options
def install(settings: RoomSettings, as_json: bool) -> None:
    """Fetch the embedding model (90 MB, pinned by checksum) unless one is here already."""
    try:
        weights_folder = get_weights_folder(settings.models_folder, settings.embedding_model_dir)
    except ModelUnavailable:
        if settings.embedding_model_dir is not None:
            raise
        weights_folder = _download_model(settings, is_quiet=as_json)
    installed_model_fields = {
        "model": weights_folder.name,
        "folder": str(weights_folder.folder),
        "sha256": weights_folder.digest,
    }
    print_result(
        as_json, installed_model_fields, f"{weights_folder.name} is in {weights_folder.folder}."
    )


@model.command()
@add_common_options
def build(settings: RoomSettings, as_json: bool) -> None:
    """Prepare the model to run, as the first search does otherwise: for images and installers."""
    get_shared_embedder(settings).embed("ready")
    cross_encoder = find_shared_reranker(settings)
    if cross_encoder is not None:
        cross_encoder.load()
    model_file_names = sorted(
        model_path.name for model_path in settings.models_folder.glob("*.onnx")
    )
    print_result(
        as_json,
        {"folder": str(settings.models_folder), "files": model_file_names},
        f"Ready in {settings.models_folder}.",
    )


def _download_model(settings: RoomSettings, is_quiet: bool) -> WeightsFolder:
    def print_progress(done_bytes: float, total_bytes: float | None, file_name: str | None) -> None:
        percent_text = (
            f"{100 * done_bytes // total_bytes:3.0f} %"
            if total_bytes
            else f"{done_bytes / (1 << 20):.0f} MB"
        )
        click.echo(f"\r{file_name:<20} {percent_text}", nl=done_bytes == total_bytes, err=True)

    return download_weights(
        settings.model_url, settings.models_folder, no_progress_sync if is_quiet else print_progress
    )
