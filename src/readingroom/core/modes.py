"""The ways to search, named alike in every base that has them."""

from typing import Literal

Mode = Literal["semantic", "hybrid", "lexical"]
"""By meaning, by both, or by words."""
