"""Log-linear models of a contingency table: Poisson means that keep all margins of some number of variables.

The most likely means are those of the joint table that has these margins and nothing else (Bishop, Fienberg & Holland
1975, §3.5), products of shares where they are of single variables. SciPy has no such fit; statsmodels needs the design
matrix, and fails where fitted means are 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Literal, Self

import numpy as np

from ..data.arrays import Floats
from ..errors import NotComputable
from .domain import Domain, margin_of
from .joint_table import fit_joint_table

Order = Literal[1, 2]

MAX_SWEEPS = 2_000
FIT_TOLERANCE = 1e-10
MAX_MARGIN_DISTANCE = 1e-5


@dataclass(frozen=True, eq=False)
class LogLinearModel:
    """Poisson means of the cells of a table, with the same margins of ``order`` variables as the table.

    order: number of variables of the margins
    fitted_means: the means, in the shape of the table
    """

    order: Order
    fitted_means: Floats

    @classmethod
    def from_table(cls, table: Floats, order: Order) -> Self:
        """Fit the most likely means, of main effects (1) or of all two-way interactions too (2), to weighted counts.

        Raises:
            NotComputable: when margins still differ by more than ``MAX_MARGIN_DISTANCE`` of the records after
            ``MAX_SWEEPS`` sweeps.
        """
        total, every = float(table.sum()), tuple(range(table.ndim))
        cliques = combinations(every, min(order, table.ndim))
        wanted = {clique: margin_of(table, every, clique) / total for clique in cliques}
        found = fit_joint_table(Domain(table.shape), wanted, sweeps=MAX_SWEEPS, near=FIT_TOLERANCE)
        if found.distance > MAX_MARGIN_DISTANCE:
            raise NotComputable(f"two-way interactions did not fit their margins after {found.sweeps:,} sweeps")
        return cls(order, found.table * total)

    def project(self, values: Floats) -> Floats:
        """Project ``values`` of the cells on the model's terms, by least squares weighted by the means.

        The weighted sum of squares of the result is the variance, by the delta method, of an estimate whose derivatives
        by the cells' log means are ``values`` times the means; of residuals times ``values`` only what it leaves
        varies.
        """
        from scipy.sparse.linalg import LinearOperator, lsqr

        root = np.sqrt(self.fitted_means)
        margins = list(combinations(range(root.ndim), min(self.order, root.ndim)))
        # Terms of unit length, or lsqr would converge slowly where margins are small.
        scales = [_inverse_root(_margin_with_axes(self.fitted_means, axes)) for axes in margins]
        sizes = np.cumsum([0, *(scale.size for scale in scales)])

        def multiply_by_terms(coefficients: Floats) -> Floats:
            """Return the weighted combination of the terms, flat."""
            total = np.zeros(root.shape)
            for scale, first, last in zip(scales, sizes[:-1], sizes[1:], strict=True):
                total += coefficients[first:last].reshape(scale.shape) * scale
            return np.asarray((total * root).ravel())

        def multiply_by_transpose(residuals: Floats) -> Floats:
            """Return the products of each term with the residuals."""
            weighed = residuals.reshape(root.shape) * root
            return np.concatenate(
                [
                    (_margin_with_axes(weighed, axes) * scale).ravel()
                    for axes, scale in zip(margins, scales, strict=True)
                ]
            )

        # No design matrix is made: its products with a vector are margins of tables, so that cost grows with the cells
        # and not with the parameters.
        terms = LinearOperator(
            (root.size, int(sizes[-1])), matvec=multiply_by_terms, rmatvec=multiply_by_transpose, dtype=np.float64
        )
        found = lsqr(terms, (values * root).ravel(), atol=1e-12, btol=1e-12, iter_lim=1_000)[0]
        return np.divide(multiply_by_terms(found).reshape(root.shape), root, out=np.zeros(root.shape), where=root > 0)


def _margin_with_axes(table: Floats, axes: tuple[int, ...]) -> Floats:
    """Return the sums over all axes but these; the others are kept with length 1."""
    others = tuple(axis for axis in range(table.ndim) if axis not in axes)
    return np.asarray(table.sum(axis=others, keepdims=True), dtype=np.float64)


def _inverse_root(margin: Floats) -> Floats:
    return np.divide(1.0, np.sqrt(margin), out=np.zeros(margin.shape), where=margin > 0)
