"""Which columns of a design matrix are linear combinations of those before them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["independent_columns"]

Floats = NDArray[np.float64]


def independent_columns(x: Floats, tolerance: float = 1e-10) -> NDArray[np.bool_]:
    """Whether each column of x (n, K) is linearly independent of the independent ones before it: (K,).

    A column counts as dependent when what the others leave of it is below ``tolerance`` of its length, so the
    answer does not depend on the columns' scales. Gram-Schmidt with a second pass, on the triangle of x = QR.
    """
    triangle = np.asarray(np.linalg.qr(x, mode="r"))
    kept = np.zeros(x.shape[1], dtype=np.bool_)
    basis = np.empty((len(triangle), 0))
    for k, column in enumerate(triangle.T):
        rest = column - basis @ (basis.T @ column)
        rest = rest - basis @ (basis.T @ rest)
        length = np.linalg.norm(rest)
        kept[k] = length > tolerance * np.linalg.norm(column)
        if kept[k]:
            basis = np.column_stack([basis, rest / length])
    return kept
