"""The sample corpus: loaded into its own data directory while it is already served."""

import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from readingroom.bases import BASES
from readingroom.console.dispatch import dispatch
from readingroom.core.errors import KnowledgeError
from readingroom.core.progress import ReportProgressSync, no_progress
from readingroom.core.settings import MODELS_FOLDER, RoomSettings
from readingroom.demo.corpus import digest
from readingroom.engine.embedding.weights import download_weights, find_weights
from readingroom.engine.errors import ModelUnavailable
from readingroom.protocol.command import Command
from readingroom.protocol.sample import (
    BaseSample,
    SampleState,
    SampleStep,
    read_sample_state,
    write_sample_state,
)
from readingroom.storage.lock import FolderLock

logger = logging.getLogger(__name__)

Announce = Callable[[str], None]
"""Shows a sentence about the loading to whoever watches."""


def renew_sample(data: Path, reset: bool) -> None:
    """Empty the directory on request, after a failure, or when its corpus is another one."""
    sample_state = read_sample_state(data)
    if not reset and sample_state.state != "failed" and sample_state.corpus in (None, digest()):
        return
    _check_unused(data)
    for entry in data.iterdir():
        # The model would have to be fetched again, a link may lead to somebody's own folder, and
        # what a restore moved aside (`.replaced`) is no part of the sample.
        is_kept = entry.name == MODELS_FOLDER or entry.name.startswith(".") or entry.is_symlink()
        if entry.is_dir() and not is_kept:
            shutil.rmtree(entry)
    write_sample_state(data)


def load_in_background(settings: RoomSettings, bases: Iterable[str], announce: Announce) -> None:
    """Load what is missing, on a thread that ends with the process."""
    threading.Thread(
        target=_load_sample, args=(settings, list(bases), announce), name="sample", daemon=True
    ).start()


def _load_sample(settings: RoomSettings, bases: list[str], announce: Announce) -> None:
    corpus = digest()
    if read_sample_state(settings.data) == SampleState(corpus, "loaded"):
        return
    write_sample_state(settings.data, SampleState(corpus))
    if not has_model(settings, announce):
        write_sample_state(settings.data, SampleState(corpus, "failed"))
        return
    with tempfile.TemporaryDirectory(prefix="readingroom-sample-") as corpus_folder:
        steps = _list_steps(settings, bases, Path(corpus_folder))
        outcomes = [
            _run_step(step, f"{number} of {len(steps)}", announce)
            for number, step in enumerate(steps, 1)
        ]
    if not all(outcomes):
        write_sample_state(settings.data, SampleState(corpus, "failed"))
        announce("sample: not everything could be loaded; the next start begins anew")
        return
    if set(bases) >= _SAMPLED:
        write_sample_state(settings.data, SampleState(corpus, "loaded"))
    announce("sample: everything is loaded")


def has_model(settings: RoomSettings, announce: Announce) -> bool:
    """Return whether documents can be embedded; a model that is missing is fetched first."""
    try:
        find_weights(settings.models, settings.embedding_model_dir)
        return True
    except ModelUnavailable as error:
        model_error = error
    if settings.embedding_model_dir is None:
        announce("sample: fetching the embedding model, 90 MB")
        try:
            download_weights(settings.model_url, settings.models)
            return True
        except ModelUnavailable as error:
            announce(f"sample: {error.message}")
    announce(f"sample: nothing can be loaded. {model_error.message} Then start again.")
    return False


def _list_steps(settings: RoomSettings, bases: list[str], corpus_folder: Path) -> list[SampleStep]:
    steps: list[SampleStep] = []
    for spec in BASES.values():
        if spec.sample and spec.name in bases:
            sample: BaseSample = spec.sample.load()
            steps += sample.steps(settings, corpus_folder, partial(_run_command, spec.name))
    return sorted(steps, key=lambda step: step.turn)


def _run_command(base_name: str, command: Command, settings: RoomSettings) -> dict[str, Any]:
    return anyio.run(dispatch, command, BASES[base_name], settings, no_progress)


def _run_step(step: SampleStep, position: str, announce: Announce) -> bool:
    """Return whether a step succeeded; the others are tried in any case."""
    announce(f"sample {position}: {step.title}")
    try:
        step.load(_announce_quarters(step.title, announce))
    except KnowledgeError as error:
        announce(f"sample: {step.title} could not be loaded: {error.message}")
        return False
    except Exception as error:
        logger.error("the sample %s could not be loaded", step.title, exc_info=error)
        return False
    return True


def _announce_quarters(title: str, announce: Announce) -> ReportProgressSync:
    """Return a callback that says when a quarter, a half and three quarters are done."""
    announced = 0

    def report(done: float, total: float | None, message: str | None) -> None:
        nonlocal announced
        quarters = int(4 * done / total) if total else 0
        if announced < quarters < 4:
            announced = quarters
            announce(f"sample: {title}, {25 * quarters} %")

    return report


def _check_unused(data: Path) -> None:
    """Raise `FolderInUse` when a process has one of the bases."""
    for path in data.glob("*/lock"):
        lock = FolderLock(path.parent)
        lock.acquire()
        lock.release()


_SAMPLED = {spec.name for spec in BASES.values() if spec.sample}
