"""Columns of a design matrix: scales, QR factors, linear independence and missing values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.long_arrays import is_long, long_blocks

MISSING_LEVEL = -1.0


@dataclass(frozen=True, slots=True)
class QRFactors:
    """QR factors of a scaled matrix: x = q triangle diag(scales).

    q: orthonormal columns, (n, K)
    triangle: upper triangle, (K, K)
    scales: powers of two, (K,)

    What is computed on q is as precise as if the columns of x were uncorrelated and of one length: only the way back to
    coefficients of x sees that they are not.
    """

    q: Floats
    triangle: Floats
    scales: Floats

    def coefficients_from_q(self, on_q: Floats) -> Floats:
        """Return the coefficients (K,) of x from those of q; infinite where they overflow a double."""
        with np.errstate(over="ignore"):
            return np.asarray(_solve_triangle(self.triangle, on_q) / self.scales)

    def coefficients_by_column(self, on_q: Floats) -> Floats:
        """Return the coefficients of x for each column of ``on_q`` (K, k), the coefficients of q: (K, k)."""
        with np.errstate(over="ignore"):
            return np.asarray(_solve_triangle(self.triangle, on_q) / self.scales[:, None])

    def standard_errors(self, root: Floats) -> Floats:
        """Return the standard errors (K,) of coefficients of x; infinite where they overflow a double.

        root: root of the covariance ``root`` root' of the coefficients of q, (K, K)
        """
        with np.errstate(over="ignore"):
            return np.asarray(np.linalg.norm(_solve_triangle(self.triangle, root), axis=1) / self.scales)


def _solve_triangle(triangle: Floats, right: Floats) -> Floats:
    """Solve triangle b = right for b, (K, ...)."""
    from scipy.linalg import (
        solve_triangular,
    )  # which a process that fits nothing does without

    return np.asarray(solve_triangular(triangle, right))


def column_scales(x: Floats) -> Floats:
    """Return the power of two above the largest absolute value of each column of x (n, ...), 1 for a column of zeros:
    (...).
    """
    largest = np.abs(x).max(axis=0)
    # Division by a power of two is exact (but for underflow), and squares of the quotients neither overflow nor vanish.
    exponents = np.where(largest > 0, np.frexp(largest)[1], 0)
    return np.asarray(np.ldexp(1.0, np.clip(exponents, -1021, 1023)), dtype=np.float64)


def standard_deviation(values: Floats, ddof: int = 0) -> float:
    """Return the standard deviation of values (n,), with divisor n - ``ddof``, whatever their scale."""
    # Squares of the values themselves may overflow, or vanish.
    if not is_long(len(values)):
        scale = float(column_scales(values))
        return float(np.std(values / scale, ddof=ddof)) * scale
    scale = max(float(column_scales(values[rows])) for rows in long_blocks(len(values)))
    mean = sum(float((values[rows] / scale).sum()) for rows in long_blocks(len(values))) / len(values)
    squares = sum(float(((values[rows] / scale - mean) ** 2).sum()) for rows in long_blocks(len(values)))
    return math.sqrt(squares / (len(values) - ddof)) * scale


def qr_factors(x: Floats) -> QRFactors:
    """Compute the QR factors of x (n, K), finite and with independent columns."""
    scales = column_scales(x)
    q, triangle = np.linalg.qr(x / scales)
    return QRFactors(np.asarray(q), np.asarray(triangle), scales)


def independent_columns(x: Floats, tolerance: float = 1e-10) -> NDArray[np.bool_]:
    """Mark the columns of x (n, K), finite, that are linearly independent of the marked ones before: (K,).

    A column is dependent when what the others leave of it is below ``tolerance`` of its length, whatever its scale.
    """
    triangle = np.asarray(np.linalg.qr(x / column_scales(x), mode="r"))
    kept = np.zeros(x.shape[1], dtype=np.bool_)
    basis = np.empty((len(triangle), 0))
    for k, column in enumerate(triangle.T):
        rest = column - basis @ (basis.T @ column)
        # Gram-Schmidt once leaves rounding errors of the order of the column; twice is enough.
        rest = rest - basis @ (basis.T @ rest)
        length = np.linalg.norm(rest)
        kept[k] = length > tolerance * np.linalg.norm(column)
        if kept[k]:
            basis = np.column_stack([basis, rest / length])
    return kept


def missing_as_level(codes: Floats) -> Floats:
    """Return codes of levels (n,) with one more level, -1, for missing ones (NaN)."""
    return np.where(np.isnan(codes), MISSING_LEVEL, codes)


def fill_with_mean(values: Floats) -> tuple[Floats, Floats]:
    """Replace missing numbers (NaN) by the mean of the others, and return them with an indicator of who was missing:
    (n,) each.

    Where no number is present all are 0.
    """
    missing = np.isnan(values)
    if not missing.any():
        return values, missing.astype(np.float64)
    # Sorted, so that the rounding of the mean does not depend on the order of the records.
    present = np.sort(values[~missing])
    mean = (present / (scale := column_scales(present))).mean() * scale if present.size else 0.0
    return np.where(missing, mean, values), missing.astype(np.float64)


def missing_values_text(missing: int, records: int) -> str:
    """Return ``12 of 120 records have no value``; empty where no value is missing."""
    return f"{missing:,} of {records:,} records have no value" if missing else ""
