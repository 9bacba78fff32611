"""Vectors that another machine made: right ones pass, wrong ones are noticed."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest

from readingroom.engine.embedding.received import check_sampled_vectors
from readingroom.engine.errors import VectorsRefused


class CaselessModel:
    """As the real model: capitals make no difference."""

    identity = "caseless/float32"

    def embed_each(self, texts: Sequence[str]) -> Any:
        vectors = []
        for text in texts:
            numbers = np.random.default_rng(list(text.lower().encode())).normal(size=16)
            vectors.append((numbers / np.linalg.norm(numbers)).astype(np.float32))
        return np.array(vectors)


MODEL = cast(Any, CaselessModel())
TEXTS = [*(f"passage {number}" for number in range(200)), "Sunshine Act", "SUNSHINE ACT"]


def test_texts_that_differ_in_capitals_alone_may_have_the_same_vector() -> None:
    check_sampled_vectors(MODEL, TEXTS, MODEL.embed_each(TEXTS))


def test_the_vector_of_one_text_for_another_one_is_always_noticed() -> None:
    matrix = MODEL.embed_each(TEXTS)
    matrix[7] = matrix[8]
    matrix[201] = matrix[200] = MODEL.embed_each(["something else"])[0]
    with pytest.raises(VectorsRefused):
        check_sampled_vectors(MODEL, TEXTS, matrix)
