"""The search modes, which have the same names in every base."""

from typing import Literal

Mode = Literal["semantic", "hybrid", "lexical"]
"""By meaning, by both, or by words."""
