"""numpy, imported when it is first used, and names for the kinds of its arrays.

Importing numpy takes an eighth of the time in which all bases are opened, and much of what is done
with them computes nothing. Where annotations name another kind than those here, they are quoted.
"""

from typing import TYPE_CHECKING, Any

from readingroom.core.imports import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float32]
    RowNumbers = NDArray[np.int64]
    RowMask = NDArray[np.bool_]
else:
    np = LazyModule("numpy")
    ArrayLike = NDArray = Floats = RowNumbers = RowMask = Any

Vector = Floats
"""384 numbers of unit length."""
Matrix = Floats
"""One vector a row."""

__all__ = ["ArrayLike", "Floats", "Matrix", "NDArray", "RowMask", "RowNumbers", "Vector", "np"]
