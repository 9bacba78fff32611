"""Checks vectors that another machine made, so that a wrong or hostile one is noticed."""

import random
from collections.abc import Sequence

from readingroom.core.arrays import Matrix, np
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.errors import VectorsRefused

LEASE_SECONDS = 90.0
"""How long passages are a worker's after a sign of life."""
SAMPLED_TEXT_COUNT = 3
"""How many texts of a batch are embedded again to compare."""
_MIN_COSINE_BY_PRECISION = {"float32": 0.9995, "int8": 0.98}
"""What vectors of one model have in common, whatever made them; int8 differs by processor."""
_MAX_NORM_ERROR = 1e-3
_random_generator = random.SystemRandom()  # a worker must not foresee which texts are compared


def unpack_vectors(vector_bytes: bytes, vector_count: int, dimensions: int) -> Matrix:
    """Return the vectors that are written one after the other as float32, little-endian.

    Raise `VectorsRefused` unless there are so many, finite and of unit length.
    """
    if len(vector_bytes) != vector_count * dimensions * 4:
        raise VectorsRefused(
            f"{len(vector_bytes)} bytes are not {vector_count} vectors "
            f"of {dimensions} float32 numbers"
        )
    matrix = np.frombuffer(vector_bytes, "<f4").reshape(vector_count, dimensions)
    if not np.isfinite(matrix).all():
        raise VectorsRefused("A vector has a number that is not finite")
    if vector_count and np.abs(np.linalg.norm(matrix, axis=1) - 1).max() > _MAX_NORM_ERROR:
        raise VectorsRefused("A vector is not of unit length")
    return matrix


def check_sampled_vectors(embedder: Embedder, texts: Sequence[str], matrix: Matrix) -> None:
    """Embed some of the texts here, chosen at random, and compare.

    Where different texts have the same vector, two of them are among those compared: texts that
    differ in their capitals alone rightly have the same, others do not. Raise `VectorsRefused`
    when a vector is another one.
    """
    sampled_text_numbers = _random_generator.sample(
        range(len(texts)), min(SAMPLED_TEXT_COUNT, len(texts))
    )
    sampled_text_numbers += _choose_text_numbers_sharing_vector(texts, matrix)
    vectors_made_here = embedder.embed_each(
        [texts[text_number] for text_number in sampled_text_numbers]
    )
    precision = embedder.identity.rpartition("/")[2]
    for text_number, vector_made_here in zip(sampled_text_numbers, vectors_made_here, strict=True):
        cosine = float(matrix[text_number] @ vector_made_here)
        if cosine < _MIN_COSINE_BY_PRECISION.get(precision, 0.9995):
            raise VectorsRefused(
                f"A vector is not that of its text: embedded here, the cosine is {cosine:.4f}"
            )


def _choose_text_numbers_sharing_vector(texts: Sequence[str], matrix: Matrix) -> list[int]:
    """Return the numbers of two different texts that have the same vector, if there are any."""
    text_numbers_by_vector: dict[bytes, dict[str, int]] = {}
    for text_number, text in enumerate(texts):
        text_numbers_by_vector.setdefault(matrix[text_number].tobytes(), {})[text] = text_number
    text_number_groups = [
        [*number_by_text.values()]
        for number_by_text in text_numbers_by_vector.values()
        if len(number_by_text) > 1
    ]
    return (
        _random_generator.sample(_random_generator.choice(text_number_groups), 2)
        if text_number_groups
        else []
    )
