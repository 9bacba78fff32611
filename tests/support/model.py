"""The embedding model that tests share, made once and kept in `build`; and one that is no model."""

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from readingroom.engine.embedding.embedder import Embedder

MODELS = Path(__file__).parents[2] / "build" / "models"
EMBEDDER = Embedder(MODELS)


def link_model(data: Path) -> Path:
    """A data directory, made if it is not there, that has the model, which is slow to make."""
    MODELS.mkdir(parents=True, exist_ok=True)
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    (data / "models").symlink_to(MODELS)
    return data


class WordEmbedder:
    """Vectors from the words of a text: alike texts are near each other. No model."""

    identity = "words"
    reranker = None

    def embed(self, text: str) -> Any:
        vector = np.zeros(384, np.float32)
        for word in text.lower().split():
            vector[zlib.crc32(word.encode()) % 384] += 1
        return vector / np.linalg.norm(vector)

    def embed_batch(self, texts: Sequence[str], **options: Any) -> Any:
        return np.stack([self.embed(text) for text in texts])
