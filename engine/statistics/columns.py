"""Columns of a design matrix: their scales, x = QR, which are linear combinations of those before, and missing values beside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats

MISSING_LEVEL = -1.0


@dataclass(frozen=True, slots=True)
class QRFactors:
    """Factors of a matrix: x = q triangle diag(scales).

    What is computed on q is as precise as if the columns of x were uncorrelated and of one length, however nearly collinear
    and of whatever scales they are: only the way back to coefficients of x sees that.

    q: orthonormal columns, (n, K)
    triangle: upper triangle, (K, K)
    scales: powers of two, (K,)
    """

    q: Floats
    triangle: Floats
    scales: Floats

    def coefficients_from_q(self, on_q: Floats) -> Floats:
        """Return the coefficients (K,) of x from those of q; infinite where a double has no room for them."""
        with np.errstate(over="ignore"):
            return np.asarray(_solve_triangle(self.triangle, on_q) / self.scales)

    def coefficients_by_column(self, on_q: Floats) -> Floats:
        """Return the coefficients of x from every column of ``on_q`` (K, k), as ``coefficients_from_q`` does: (K, k)."""
        with np.errstate(over="ignore"):
            return np.asarray(_solve_triangle(self.triangle, on_q) / self.scales[:, None])

    def standard_errors(self, root: Floats) -> Floats:
        """Return the standard errors (K,) of coefficients of x, where those of q have the covariance ``root`` root', (K, K).

        Infinite where a double has no room for them.
        """
        with np.errstate(over="ignore"):
            return np.asarray(np.linalg.norm(_solve_triangle(self.triangle, root), axis=1) / self.scales)


def _solve_triangle(triangle: Floats, right: Floats) -> Floats:
    """Return the solution (K, ...) of triangle b = right."""
    from scipy.linalg import (
        solve_triangular,
    )  # which a process that fits nothing does without

    return np.asarray(solve_triangular(triangle, right))


def column_scales(x: Floats) -> Floats:
    """The power of two above the largest absolute value of each column of x (n, ...), 1 for a column of zeros: (...).

    Division by it is exact, but for what falls below the smallest number; squares then neither overflow nor vanish.
    """
    largest = np.abs(x).max(axis=0)
    exponents = np.where(largest > 0, np.frexp(largest)[1], 0)
    return np.asarray(np.ldexp(1.0, np.clip(exponents, -1021, 1023)), dtype=np.float64)


def qr_factors(x: Floats) -> QRFactors:
    """Return the factors of x (n, K), finite and of independent columns."""
    scales = column_scales(x)
    q, triangle = np.linalg.qr(x / scales)
    return QRFactors(np.asarray(q), np.asarray(triangle), scales)


def independent_columns(x: Floats, tolerance: float = 1e-10) -> NDArray[np.bool_]:
    """Whether each column of x (n, K), finite, is linearly independent of the independent ones before it: (K,).

    A column counts as dependent when what the others leave of it is below ``tolerance`` of its length, so the
    answer does not depend on the columns' scales. Gram-Schmidt with a second pass, on the triangle of x = QR.
    """
    triangle = np.asarray(np.linalg.qr(x / column_scales(x), mode="r"))
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


def missing_as_level(codes: Floats) -> Floats:
    """Return codes of levels (n,), at least 0, with one level more for those that are missing (NaN)."""
    return np.where(np.isnan(codes), MISSING_LEVEL, codes)


def fill_with_mean(values: Floats) -> tuple[Floats, Floats]:
    """Return numbers (n,), the missing ones (NaN) at the mean of the others, and who is missing: both (n,).

    The mean does not depend on the order of the records. Where no number is present all are 0.
    """
    missing = np.isnan(values)
    if not missing.any():
        return values, missing.astype(np.float64)
    present = np.sort(values[~missing])
    mean = (present / (scale := column_scales(present))).mean() * scale if present.size else 0.0
    return np.where(missing, mean, values), missing.astype(np.float64)


def missing_values_text(missing: int, records: int) -> str:
    """Return ``12 of 120 records have no value``; empty where none is missing."""
    return f"{missing:,} of {records:,} records have no value" if missing else ""
